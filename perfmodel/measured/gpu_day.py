"""All measurements that need a GPU, in one run: `python -m perfmodel.measured.gpu_day --output
DIR`.

The day is a list of parts (`PARTS`). They run in order until the time is up, each in a process of
its own with a budget. The tables in DIR are the journal: each row is appended and synced before the
next case starts (`perfmodel.measured.journal`), and what has a row is not run again. So a day that
was stopped or killed goes on with the same command, also on another machine with a copy of DIR.

A kernel can hang, or take its process and the device's context down. So a part announces each case
before it runs. If the process dies, or a case takes longer than the part's patience, the case is a
failed row and the part starts again after it. A day that is killed itself marks nothing: the case
that ran is run again.

The machine needs torch and triton; what the model adds is in `perfmodel.measured.predicted`. The
exit code is 0 for success, 1 if something failed, and 2 with one line if nothing can be run here.
"""

from __future__ import annotations

import argparse
import csv
import ctypes
import math
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from statistics import median

from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.measured import dayparts, readingparts
from perfmodel.measured.environment import NoDevice
from perfmodel.measured.journal import Announce
from perfmodel.measured.measure import FAILED, DeviceLost
from perfmodel.measured.measure import KEY as CASE_KEY
from perfmodel.measured.microbench import now

Work = Callable[[Path, float, Announce], bool]
"""Works in a folder for some seconds and announces its cases; whether all of them succeeded."""
Row = Mapping[str, str]
DONE, SOME_FAILED, CANNOT = 0, 1, 2
_DEVICE_LOST, _NO_DEVICE, _INTERRUPTED = 3, 4, 130
_CONTEXT = multiprocessing.get_context("spawn")  # a fork would inherit the device's context
_ENDING_S = 20.0  # for a process to end after its last message
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


@dataclass(frozen=True)
class Part:
    """One part of a day."""

    name: str
    """Its name on the command line."""
    work: Work
    """What it does."""
    budget_s: float
    """The most seconds that it may take."""
    patience_s: float = 90.0
    """Seconds after which a case is taken to hang."""


PARTS = (
    Part("compile", dayparts.compiled, 150.0),
    Part("correctness", dayparts.correctness, 90.0, patience_s=20.0),
    Part("proof", partial(dayparts.timed, "proof"), 480.0),
    Part("readings", dayparts.readings, 150.0),
    Part("counters", dayparts.counters, 240.0),
    Part("measure", partial(dayparts.timed, "full"), math.inf),
)


@dataclass(frozen=True)
class Ending:
    """How a part's process ended."""

    words: str
    """In a few words."""
    code: int | None = None
    """Its exit code; None where it was stopped because its time was up."""
    lost: tuple[str, Row] | None = None
    """Table and identity of the case that it took along; None where no case is to blame."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a day; returns the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m perfmodel.measured.gpu_day",
        description="Correctness, measurements, readings and counters of a GPU, in one go.",
    )
    names = [part.name for part in PARTS]
    parser.add_argument("--output", default="gpu-day", help="folder of the results")
    parser.add_argument("--parts", default=",".join(names), help="which, with commas")
    parser.add_argument("--limit-seconds", type=float, default=math.inf, help="end after this long")
    options = parser.parse_args(arguments)
    try:
        chosen = [name.strip() for name in options.parts.split(",") if name.strip()]
        for name in chosen:
            if name not in names:
                raise UnknownName("part", name, names)
        parts = [part for part in PARTS if part.name in chosen]
        return day(parts, Path(options.output), options.limit_seconds)
    except PerfmodelError as error:
        print("gpu_day:", error, file=sys.stderr)
        return CANNOT
    except KeyboardInterrupt:
        print(f"gpu_day: interrupted; {options.output} goes on from there", file=sys.stderr)
        return _INTERRUPTED


def day(parts: Iterable[Part], folder: Path, limit_s: float) -> int:
    """Run parts in order for `limit_s` seconds and print what they left; returns the exit code."""
    folder.mkdir(parents=True, exist_ok=True)
    begin = time.monotonic()
    failures = 0
    for part in parts:
        spent = time.monotonic() - begin
        if spent >= limit_s:
            print(f"{part.name}: not started, the time is up")
            continue
        print(f"== {part.name} ({spent:.0f} s)", flush=True)
        endings = run(part, folder, min(part.budget_s, limit_s - spent))
        if endings[-1].code == _NO_DEVICE:  # said by the part; no other will find one
            return CANNOT
        failures += any(ending.code not in (DONE, None) for ending in endings)
        print(f"   {part.name}: {endings[-1].words}", flush=True)
    print("\n".join(summary(folder / "runs.csv")))
    return SOME_FAILED if failures else DONE


# ---- One part ------------------------------------------------------------------------------------


def run(part: Part, folder: Path, limit_s: float) -> list[Ending]:
    """Run a part for `limit_s` seconds at most, anew after each case that ended its process."""
    end = time.monotonic() + limit_s
    endings = [_start(part, folder, end)]
    while (lost := endings[-1].lost) is not None:  # each start ends at least one case
        _record(folder, *lost, endings[-1].words)
        print(f"  {endings[-1].words}; going on after {' '.join(filter(None, lost[1].values()))}")
        endings.append(_start(part, folder, end))
    return endings


def _record(folder: Path, table: str, identity: Row, reason: str) -> None:
    """Write the failed row of a case whose process died, unless it has ended before."""
    if table == "readings":
        readingparts.record_lost(folder / "readings.json", identity["reading"], reason)
        return
    with dayparts.table(folder, table) as journal:
        if not journal.has(identity):
            failure = {"flag": FAILED, "passed": "False", "reason": reason, "timestamp_utc": now()}
            journal.append({**identity, **failure})


def _start(part: Part, folder: Path, end: float) -> Ending:
    """One process of a part, until it ends, hangs, or the time is up."""
    receiver, sender = _CONTEXT.Pipe(duplex=False)
    limit_s = max(end - time.monotonic(), 0.0)
    process = _CONTEXT.Process(target=_child, args=(part, folder, limit_s, sender))
    running: tuple[str, Row] | None = None
    try:
        process.start()
        sender.close()
        while True:
            rest = end - time.monotonic()
            patience = part.patience_s if running is not None else math.inf
            wait = min(rest, patience)
            if not receiver.poll(None if wait == math.inf else max(wait, 0.0)):
                if rest <= patience:
                    return Ending("stopped when its time was up")
                words = f"no answer for {patience:g} s; its process was killed"
                return Ending(words, SOME_FAILED, running)
            running = receiver.recv()
    except EOFError:
        process.join(_ENDING_S)
    finally:
        _kill(process)
    return _ending(process.exitcode, running)


def _ending(code: int | None, running: tuple[str, Row] | None) -> Ending:
    words = {DONE: "done", SOME_FAILED: "done, with failures", CANNOT: "cannot run"}
    if code in (*words, _NO_DEVICE):
        return Ending(words.get(code or DONE, "no device"), code)
    if code == _DEVICE_LOST:
        return Ending("the device no longer answered", code, running)
    killed = code is not None and code < 0
    end = f"was ended by {signal.Signals(-code).name}" if killed else f"ended with {code}"  # type: ignore[operator]
    return Ending(f"its process {end}", code, running)


def _child(part: Part, folder: Path, limit_s: float, sender: Connection) -> None:
    """The process of a part: leads a group of its own, which ends with the day."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, 9)
    with suppress(OSError, AttributeError):
        os.setsid()
    try:
        good = part.work(folder, limit_s, lambda table, row: sender.send((table, dict(row))))
    except DeviceLost as error:
        sys.exit(_said(str(error), _DEVICE_LOST))
    except PerfmodelError as error:
        sys.exit(_said(str(error), _NO_DEVICE if isinstance(error, NoDevice) else CANNOT))
    sys.exit(DONE if good else SOME_FAILED)


def _said(line: str, code: int) -> int:
    print("gpu_day:", line, file=sys.stderr)
    return code


def _kill(process: BaseProcess) -> None:
    """End a part's process and all that it started: a profiler's python outlives the profiler."""
    if process.pid is None:
        return
    with suppress(ProcessLookupError, PermissionError, AttributeError):
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.join()


# ---- What it has shown ---------------------------------------------------------------------------


def summary(path: Path) -> list[str]:
    """One line for each kind of case, with the median of (best rival's time / ours) and the share
    of our times in the predicted range; none where there are no rows."""
    kinds: dict[str, list[Row]] = {}
    if path.exists():
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                words = (row[name] for name in ("op", "variant", "phase", "dtype", "direction"))
                kinds.setdefault(" ".join(word for word in words if word), []).append(row)
    head = f"{'case':36} {'rows':>5} {'failed':>6} {'best rival / ours':>18} {'in range':>9}"
    return [head, *(_line(kind, rows) for kind, rows in kinds.items())] if kinds else []


def _line(kind: str, rows: Sequence[Row]) -> str:
    valid = [row for row in rows if row["flag"] != FAILED]
    bundled = [row for row in valid if row["implementation"].startswith("triton-")]
    best = _fastest(row for row in valid if not row["implementation"].startswith("triton-"))
    times = _fastest(bundled)
    shares = [best[case] / times[case] for case in times if case in best]
    hits = [
        float(row["low_us"]) <= float(row["measured_us"]) <= float(row["high_us"])
        for row in bundled
        if row["low_us"] and row["high_us"]
    ]
    share = f"{median(shares):.2f}" if shares else ""
    ranged = f"{sum(hits) / len(hits):.0%}" if hits else ""
    return f"{kind:36} {len(rows):5} {len(rows) - len(valid):6} {share:>18} {ranged:>9}"


def _fastest(rows: Iterable[Row]) -> dict[tuple[str, ...], float]:
    """The shortest time of each case."""
    times: dict[tuple[str, ...], float] = {}
    for row in rows:
        case = tuple(row[name] for name in CASE_KEY if name != "implementation")
        times[case] = min(times.get(case, math.inf), float(row["measured_us"]))
    return times


if __name__ == "__main__":
    sys.exit(main())
