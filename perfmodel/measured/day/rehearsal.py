"""A measuring run without a GPU: Triton's interpreter, tiny cases and made-up times.

It tests the run itself: every stage, its files, and the handling of kernels that raise, hang or
crash their process (`faults`). It measures nothing.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfmodel.cases import Case, attention, gemm, pointwise, rowwise
from perfmodel.errors import UnknownName
from perfmodel.measured import grids, readingparts
from perfmodel.measured.contenders import KernelContender, Launcher, Menu, contenders
from perfmodel.measured.day.gpu import Beside, Gpu
from perfmodel.measured.environment import Environment, State, versions
from perfmodel.measured.measure import Bench
from perfmodel.measured.microbench import Curve, Readings, now
from perfmodel.measured.pulse import Pulse
from perfmodel.measured.rivals import Contender, Prepared, rivals
from perfmodel.measured.timer import Call, Policy
from perfmodel.measured.tuning import Tuner
from perfmodel.proof.kernel import BundledKernel
from perfmodel.proof.replay import recorder

FAULTS = ("raise", "hang", "crash")
_INVENTED_S = (1e-3, 1.01e-3, 1.02e-3)
_MULTIPLIED = ("fp16", "fp32")  # types that the interpreter multiplies rightly


class Rehearsal(Gpu):
    """A test bed on the processor; `faults` maps kernel names to "raise", "hang" or "crash"."""

    checked_cases: int | None = 1

    def __init__(self, faults: Mapping[str, str] | None = None) -> None:
        self._faults = dict(faults or {})
        for fault in self._faults.values():
            if fault not in FAULTS:
                raise UnknownName("fault", fault, FAULTS)
        recorder.require_interpreter()

    def environment(self) -> Environment:
        """A device with 1 MiB of cache and constant clocks."""
        return Environment(
            "rehearsal", "Triton's interpreter", "cpu", 2.0**20, 2.0**34, versions(), _Gauge(),
            "sm_90", 132,
        )  # fmt: skip

    def spec(self) -> str:
        """The H100: plans are made for it."""
        return "h100-sxm"

    def launcher(self) -> Launcher:
        """The interpreter, with the menus of an H100."""
        return Launcher("cpu", "sm_90", 132)

    def runs(self, kernel: BundledKernel) -> bool:
        """Whether Triton's interpreter can run the kernel."""
        return kernel.interpreted

    def types(self, dtypes: Sequence[str]) -> tuple[str, ...]:
        """fp16 and fp32: the interpreter multiplies bf16 wrongly."""
        return tuple(dtype for dtype in dtypes if dtype in _MULTIPLIED)

    def grid(self, name: str) -> tuple[Case, ...]:
        """A tiny case of each family; one more for the full grid."""
        grids.grid(name)  # raises if there is no such grid
        cases = (
            attention(1, 2, 2, 40, 40, 16, causal=True, dtype="fp16"),
            gemm(48, 32, 64, "fp16"),
            attention(2, 4, 2, 1, 70, 16, dtype="fp16"),
            attention(1, 2, 1, 33, 33, 16, causal=True, dtype="fp16", direction="bwd"),
            rowwise("softmax", 5, 96, "fp16"),
            rowwise("rmsnorm", 5, 96, "fp32", "bwd"),
            pointwise("triad", 4096, "fp32"),
        )
        return cases if name == "proof" else (*cases, gemm(33, 20, 47, "fp32"))

    def bench(self, pulse: Pulse, beside: Beside) -> Bench:
        """Cold, rotating over at least two sets of inputs, with made-up times."""
        policy = Policy(samples=3, least_samples=1, warmup_s=0.0, limit_s=0.0)
        timers = {"graph": _Graph, "events": _Events}
        return Bench(
            self.environment(), policy, timers, cold=True, rotates=True, pulse=pulse,
            beside=beside, watched=True, most_sets=2,
        )  # fmt: skip

    def contenders(
        self, tuner: Tuner | None, menu: Menu
    ) -> tuple[Sequence[Contender], tuple[str, ...]]:
        """Every registered kernel, and torch's on a processor."""
        entries, notes = contenders(self.launcher(), tuner, menu)
        usable = [each for each in entries if self.runs(each.kernel)]
        faulty = [_Faulty(each, self._faults.get(each.kernel.name, "")) for each in usable]
        return [*faulty, *rivals("cpu")], notes

    def compiler(self, folder: Path) -> Sequence[str] | None:
        """The interpreter compiles nothing."""
        return None

    def readings(self, path: Path, pulse: Pulse) -> Readings:
        """One curve and two rates; the fault named `readings` applies to one of the rates."""
        empty = replace(_NOTHING, versions=versions(), timestamp_utc=now())

        def faulty() -> readingparts.Part:
            _commit(self._faults.get("readings", ""))
            return {"matrix.fp8": 2e12}

        curve = Curve("B/s", "invented", ((65536.0, 1e9), (2.0**21, 5e8)))
        parts: dict[str, Any] = {
            "copy": lambda: {"copy": curve},
            "matrix.bf16": lambda: {"matrix.bf16": 1e12},
            "matrix.fp8": faulty,
        }
        return readingparts.take(
            empty, parts, report=lambda what: None, methods={"matrix": "invented"}, partial=path,
            pulse=pulse,
        )  # fmt: skip

    def profiler(self) -> str | None:
        """No profiler counts what an interpreter does."""
        return None


_NOTHING = Readings("cuda", "rehearsal", "Triton's interpreter", 132, 2.0**34, (), (), {}, {})


class _Gauge:
    def read(self) -> State:
        return State(1980.0, 2619.0, 500.0, 50.0, "")


class _Graph:
    """Runs the first call and returns fixed times."""

    timer = "graph"

    def warm(self, calls: Sequence[Call], policy: Policy) -> float:
        calls[0]()
        return _INVENTED_S[0]

    def samples(self, calls: Sequence[Call], per_sample: int, policy: Policy) -> list[float]:
        return list(_INVENTED_S)


class _Events(_Graph):
    timer = "events"


class _Faulty(KernelContender):
    """A kernel that raises, hangs or crashes its process when it is prepared, if a fault says
    so."""

    def __init__(self, sound: KernelContender, fault: str) -> None:
        self.__dict__.update(sound.__dict__)
        self._fault = fault

    def prepare(self, case: Case, sets: int, seed: int) -> Prepared:
        _commit(self._fault)
        return super().prepare(case, sets, seed)


def _commit(fault: str) -> None:
    """Raise, hang or kill this process, as the fault says; an empty fault does nothing."""
    if fault == "raise":
        raise RuntimeError("a fault of the rehearsal")
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGKILL)
    while fault == "hang":
        time.sleep(60)
