"""Hardware counters: one call of each of many cases under Nsight Compute, then the import.

If one metric is unknown to the tool or the device, the profiler counts nothing at all. The list is
therefore tried on one kernel first, and the refused names are dropped.
"""

from __future__ import annotations

import csv
import sys
from collections.abc import Sequence
from pathlib import Path

from perfmodel.cases import Case
from perfmodel.errors import PerfmodelError
from perfmodel.measured.counters import COLUMNS, import_counters
from perfmodel.measured.day.gpu import Gpu
from perfmodel.measured.day.supervisor import DONE, SOME_FAILED, run_group
from perfmodel.measured.measure import describe
from perfmodel.measured.rivals import Contender
from perfmodel.profile import ncu
from perfmodel.replacing import replacing

RAW, TABLE = "ncu.csv", "counters.csv"
_PROFILED = 64  # cases, spread over the grid
_MOST_BYTES = 4e9  # of a case: the profiler replays each kernel once for each pass over the metrics
_TRIES = 3  # lists of metrics
_TRY_S = 60.0
_IMPORT_S = 10.0  # of the stage's limit, kept to import what was counted until then
_PACKAGE = "perfmodel.measured.gpu_day"


def counters(folder: Path, bed: Gpu, limit_s: float | None) -> int:
    """Profile the cases and import the counters; returns the stage's exit code."""
    log, table = folder / RAW, folder / TABLE
    if table.exists():
        print(f"  {table.name} is there already")
        return DONE
    profiler = bed.profiler()
    if profiler is None:
        print("  ncu is not on the PATH: no counters; everything else goes on")
        return DONE
    metrics = known_metrics(profiler, folder)
    if not metrics:
        return SOME_FAILED
    counting_s = None if limit_s is None else max(limit_s - _IMPORT_S, 0.0)
    code = run_group(command(profiler, metrics, log, ["--profiled"]), counting_s)
    ending = "stopped when the time was up" if code is None else f"ended with {code}"
    for line in ncu.complaints(_text(log)):
        print(f"  ncu: {line}")
    try:
        rows, lines = import_counters(log, device=bed.environment().device)
    except PerfmodelError as error:
        print(f"  ncu {ending}; {error}")
        return SOME_FAILED
    with replacing(table) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    print("\n".join(f"  {line}" for line in (*lines, f"ncu {ending}; {len(rows)} cases counted")))
    return DONE


def known_metrics(profiler: str, folder: Path) -> Sequence[str]:
    """The metrics that the profiler accepts on one kernel; none where it cannot profile at all."""
    metrics: Sequence[str] = ncu.METRICS
    trial = folder / ".ncu-try.csv"
    for _ in range(_TRIES):
        trial.unlink(missing_ok=True)
        code = run_group(command(profiler, metrics, trial, ["--profiled", "1"]), _TRY_S)
        text = _text(trial)
        trial.unlink(missing_ok=True)
        accepted = ncu.accepted_metrics(metrics, text)
        if accepted == tuple(metrics):
            complaints = ncu.complaints(text)
            for line in complaints:
                print(f"  ncu: {line}")
            return () if complaints or code is None else metrics
        print(f"  ncu does not know {', '.join(sorted(set(metrics) - set(accepted)))}")
        metrics = accepted
    return metrics


def command(
    profiler: str, metrics: Sequence[str], log: Path, arguments: Sequence[str]
) -> list[str]:
    """The command that runs this package under the profiler and counts each of its ranges."""
    return [
        profiler, "--csv", "--page", "raw", "--nvtx", "--clock-control", "none",
        "--target-processes", "all", "--profile-from-start", "off",
        "--metrics", ",".join(metrics), "--log-file", str(log),
        sys.executable, "-m", _PACKAGE, *arguments,
    ]  # fmt: skip


def profiled(bed: Gpu, most: int | None = None) -> None:
    """Run one call of each case inside a range named after it, for the profiler."""
    import torch

    entries, _ = bed.contenders(None, bed.launcher().menu)
    for case, contender in spread(bed.grid("proof"), entries, most or _PROFILED):
        try:
            prepared = contender.prepare(case, 1, 0)
            prepared.calls[0]()  # compiled and warm before it is counted
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            with torch.cuda.nvtx.range(case.label(contender.implementation)):
                prepared.calls[0]()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        except Exception as error:  # one case less
            print(f"  not counted: {contender.implementation} {describe(case)}: {error}")
        torch.cuda.empty_cache()


def spread(
    cases: Sequence[Case], contenders: Sequence[Contender], most: int = _PROFILED
) -> list[tuple[Case, Contender]]:
    """Up to `most` (case, contender) pairs: as many of each contender, spread over its cases."""
    small = [case for case in cases if case.compulsory_bytes < _MOST_BYTES]
    groups = [[(case, each) for case in small if each.takes(case)] for each in contenders]
    groups = [pairs for pairs in groups if pairs]
    share = max(-(-most // max(len(groups), 1)), 2)
    return [pairs[i] for pairs in groups for i in _places(len(pairs), share)][:most]


def _places(count: int, limit: int) -> list[int]:
    if count <= limit:
        return list(range(count))
    return sorted({round(i * (count - 1) / (limit - 1)) for i in range(limit)})


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
