"""Parts of a day on a GPU that fail, hang or die; a process of their own loads neither torch nor
pytest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measuring import CASES, FakeKernel, fake_bench

from perfmodel.cases import Case
from perfmodel.measured import dayparts, readingparts
from perfmodel.measured.journal import Announce
from perfmodel.measured.measure import measure, plan
from perfmodel.measured.microbench import Readings, now
from perfmodel.measured.rivals import Prepared

EMPTY = Readings("cuda", "fake", "Fake", 132, 2.0**34, (), (), {}, {}, timestamp_utc=now())
FAULTS: dict[int, Callable[[], object]] = {
    48: lambda: os.kill(os.getpid(), signal.SIGKILL),
    80: lambda: time.sleep(600),
    112: lambda: 1 / 0,
}
"""What happens to a case, by its m."""


class Faulty(FakeKernel):
    """Fails at some cases: raises, hangs, or takes its process along."""

    def prepare(self, case: Case, sets: int, seed: int) -> Prepared:
        FAULTS.get(case.m or 0, lambda: None)()
        return super().prepare(case, sets, seed)


def times(pause_s: float, kind: type[FakeKernel], folder: Path, _: float, tell: Announce) -> bool:
    """A part that times thirty cases."""
    with dayparts.table(folder, "runs") as journal:
        jobs = plan(CASES, [kind("a", pause_s=pause_s)])
        return not measure(jobs, fake_bench(announce=tell), journal).failed


def takes_readings(folder: Path, _: float, announce: Announce) -> bool:
    """A part that takes two readings; the second takes the process along."""
    crash = lambda: os.kill(os.getpid(), signal.SIGKILL)  # noqa: E731
    parts = {"matrix.bf16": lambda: {"matrix.bf16": 1e12}, "matrix.fp8": crash}
    taken = readingparts.take(
        EMPTY, parts, report=print, methods={}, partial=folder / "readings.json", announce=announce,
    )  # type: ignore[arg-type]  # fmt: skip
    return not readingparts.missing(taken)


def ends(error: BaseException | int, folder: Path, _: float, announce: Announce) -> bool:
    """A part that ends at once, in some way."""
    if isinstance(error, int):
        os._exit(error)
    raise error


def starts_another(folder: Path, _: float, announce: Announce) -> bool:
    """A part whose own process outlives it, unless all of them are killed."""
    code = f"import time; open({str(folder / 'child')!r}, 'w').write('x'); time.sleep(600)"
    subprocess.run([sys.executable, "-c", code], check=True)
    return True
