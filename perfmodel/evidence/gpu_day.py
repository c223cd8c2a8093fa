"""Everything that needs a GPU, in one go: `python -m perfmodel.evidence.gpu_day --output DIR`.

Stages, each resumable and each leaving its files in DIR, so that an interrupted day goes on where
it stopped:

    correctness  every kernel on its own small cases           correctness.csv
    readings     micro-benchmarks, clock and power under load  readings.json, load.csv
    counters     one profiled call of many cases (needs ncu)   ncu.csv, counters.csv
    measure      kernels (configs tuned) and rivals            runs.csv

Needs torch and triton only; the spec is made from readings.json elsewhere, by
`perfmodel calibrate --readings`.
"""

from __future__ import annotations

import argparse
import csv
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.evidence import cases as grids
from perfmodel.evidence.cases import Case
from perfmodel.evidence.journal import Journal
from perfmodel.evidence.measure import COLUMNS, KEY, describe, measure
from perfmodel.evidence.rivals import Contender

STAGES = ("correctness", "readings", "counters", "measure")
_CORRECTNESS = ("kernel", "case", "config", "output", "error", "allowed", "passed", "reason")
_LOAD = ("seconds", "flop_per_s", "clock_mhz", "power_w")
_PROFILED = 64  # cases, spread over the grid
_MOST_PROFILED_BYTES = 4e9
_ALLOWED = {"fp32": 1e-3, "fp16": 1e-2, "bf16": 3e-2, "fp8": 0.15, "int8": 0.02, "w8a8_int8": 0.02}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the stages; the exit code is 0, or 2 with one line for what cannot be."""
    options = _parser().parse_args(arguments)
    folder = Path(options.output)
    try:
        if options.profiled:
            profiled()
            return 0
        stages = [name.strip() for name in options.stages.split(",")]
        for name in stages:
            if name not in STAGES:
                raise UnknownName("stage", name, STAGES)
        folder.mkdir(parents=True, exist_ok=True)
        run(folder, stages, options.cases, options.limit_seconds, tune=not options.no_tune)
    except PerfmodelError as error:
        print("gpu_day:", error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print(f"gpu_day: interrupted; {folder} goes on from there", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perfmodel.evidence.gpu_day",
        description="Correctness, calibration, counters and measurements of a GPU, in one go.",
    )
    parser.add_argument("--output", default="gpu-day", help="folder of the results")
    parser.add_argument("--stages", default=",".join(STAGES), help="which, with commas")
    parser.add_argument("--cases", default="full", help="grid to measure: quick or full")
    parser.add_argument("--limit-seconds", type=float, help="start nothing after this long")
    parser.add_argument("--no-tune", action="store_true", help="each kernel's first config")
    parser.add_argument("--profiled", action="store_true", help=argparse.SUPPRESS)
    return parser


def run(
    folder: Path, stages: Sequence[str], grid: str, limit_s: float | None, *, tune: bool
) -> None:
    """The stages that are asked for and not done yet."""
    begin = time.monotonic()

    def left() -> float | None:
        return None if limit_s is None else max(limit_s - (time.monotonic() - begin), 0.0)

    todo: dict[str, Callable[[], None]] = {
        "correctness": lambda: correctness(folder / "correctness.csv"),
        "readings": lambda: _readings(folder),
        "counters": lambda: _counters(folder, left()),
        "measure": lambda: _measure(folder / "runs.csv", grid, left(), tune),
    }
    for name in stages:
        if left() == 0.0:
            print(f"{name}: not started, the time is up")
            continue
        print(f"== {name} ({time.monotonic() - begin:.0f} s)", flush=True)
        todo[name]()


# ---- Correctness ---------------------------------------------------------------------------------


def correctness(path: Path, device: str = "cuda") -> None:
    """Every kernel on its own cases, outputs poisoned; one row an output or failure."""
    if path.exists():
        print(f"{path} is there already")
        return
    from perfmodel.evidence import registry
    from perfmodel.evidence.contenders import allow_descriptors
    from perfmodel.evidence.environment import environment

    if device != "cpu":
        environment(device)  # says so where there is none
        allow_descriptors(device)
    rows = [
        row
        for kernel in registry.kernels().values()
        if kernel.interpreted or device != "cpu"
        for row in _checked(kernel, device)
    ]
    partial = path.with_suffix(".part")
    _write(partial, _CORRECTNESS, rows)
    partial.replace(path)
    wrong = [row for row in rows if row["passed"] != "True"]
    print(f"{len(rows)} outputs checked, {len(wrong)} wrong or failed")
    for row in wrong[:20]:
        said = row["reason"] or f"error {row['error']}, {row['allowed']} allowed"
        print(f"  {row['kernel']} {row['output']} {row['case']} {row['config']}: {said}")
    for line in registry.failures():
        print(f"  skipped {line}")


def _checked(kernel: Any, device: str) -> Iterator[dict[str, str]]:
    for number, (problem, config) in enumerate(kernel.cases):
        row = dict.fromkeys(_CORRECTNESS, "")
        row |= {"kernel": kernel.name, "case": str(problem), "config": str(config)}
        dtype = str(getattr(problem, "dtype", "fp32"))
        allowed = _ALLOWED.get(dtype, 1e-2)
        try:
            inputs = kernel.make_inputs(problem, number, device)
            errors = kernel.errors(inputs, kernel.run(inputs, config))
        except Exception as failed:  # a kernel that fails is a result
            said = " ".join(f"{type(failed).__name__}: {failed}".split())[:300]
            yield row | {"passed": "False", "reason": said}
            continue
        for name, error in errors.items():
            cells = {"output": name, "error": f"{error:.3g}", "allowed": f"{allowed:g}"}
            yield row | cells | {"passed": str(bool(error <= allowed))}


def _write(path: Path, columns: Sequence[str], rows: Sequence[dict[str, Any]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, columns)
        writer.writeheader()
        writer.writerows(rows)


# ---- Readings ------------------------------------------------------------------------------------


def _readings(folder: Path) -> None:
    path = folder / "readings.json"
    if path.exists():
        print(f"{path} is there already")
        return
    from perfmodel.evidence import microbench

    found = microbench.take("cuda", report=lambda what: print(f"  {what}", flush=True))
    path.write_text(found.dump(), encoding="utf-8")
    points = [dict(zip(_LOAD, point, strict=True)) for point in found.load]
    _write(folder / "load.csv", _LOAD, points)
    for name, rate in found.rates.items():
        print(f"  {name} {rate:.4g}")


# ---- Counters ------------------------------------------------------------------------------------


def _counters(folder: Path, limit_s: float | None) -> None:
    """This module again, under the profiler, one call a case; then the import."""
    from perfmodel.evidence.counters import COLUMNS as COUNTED
    from perfmodel.evidence.counters import NCU_METRICS, import_counters
    from perfmodel.evidence.environment import environment

    raw, table = folder / "ncu.csv", folder / "counters.csv"
    if table.exists():
        print(f"{table} is there already")
        return
    profiler = shutil.which("ncu")
    if profiler is None:
        print("ncu is not on the PATH: no counters; everything else goes on")
        return
    command = [
        profiler, "--csv", "--page", "raw", "--nvtx", "--clock-control", "none",
        "--target-processes", "all", "--profile-from-start", "off",
        "--metrics", ",".join(NCU_METRICS), "--log-file", str(raw),
        sys.executable, "-m", "perfmodel.evidence.gpu_day", "--profiled",
    ]  # fmt: skip
    try:
        done = subprocess.run(command, timeout=limit_s, check=False)
        said = f"ncu ended with {done.returncode}"
    except subprocess.TimeoutExpired:
        said = "ncu was stopped when the time was up"
    try:
        rows, lines = import_counters(raw, device=environment("cuda").device)
    except PerfmodelError as error:
        print(f"{said}; {error}")
        return
    _write(table, COUNTED, rows)
    print("\n".join([*lines, f"{said}; {len(rows)} cases counted"]))


def profiled() -> None:
    """One call of each of many cases, inside a range that names it; for the profiler."""
    import torch

    from perfmodel.evidence import session
    from perfmodel.evidence.environment import environment

    found, _ = session.contenders(environment("cuda"))
    for case, contender in spread(grids.grid("full"), found):
        try:
            prepared = contender.prepare(case, 1, 0)
            prepared.calls[0]()  # compiled and warm before it is counted
            torch.cuda.synchronize()
            torch.cuda.profiler.start()
            with torch.cuda.nvtx.range(case.label(contender.implementation)):
                prepared.calls[0]()
            torch.cuda.synchronize()
            torch.cuda.profiler.stop()
        except Exception as failed:  # one case less
            print(f"not counted: {contender.implementation} {describe(case)}: {failed}")
        torch.cuda.empty_cache()


def spread(
    cases: Sequence[Case], contenders: Sequence[Contender], most: int = _PROFILED
) -> list[tuple[Case, Contender]]:
    """Up to `most` pairs, as many of each contender as there is room, spread over its cases."""
    small = [case for case in cases if case.compulsory_bytes < _MOST_PROFILED_BYTES]
    by = [[(case, each) for case in small if each.takes(case)] for each in contenders]
    by = [pairs for pairs in by if pairs]
    share = max(-(-most // max(len(by), 1)), 2)
    return [pairs[i] for pairs in by for i in _places(len(pairs), share)]


def _places(count: int, wanted: int) -> list[int]:
    if count <= wanted:
        return list(range(count))
    return sorted({round(i * (count - 1) / (wanted - 1)) for i in range(wanted)})


# ---- Measure -------------------------------------------------------------------------------------


def _measure(path: Path, grid: str, limit_s: float | None, tune: bool) -> None:
    from perfmodel.evidence import session

    bench = session.bench("cuda", session.DAY)
    found, skipped = session.contenders(bench.environment, tune=tune)
    for line in skipped:
        print(f"  skipped {line}")
    with Journal(path, COLUMNS, KEY).open(resume=True) as journal:
        for line in journal.said:
            print(f"  {line}")
        begin = time.monotonic()

        def report(done: int, total: int, what: str) -> None:
            if done % 20 == 0:
                print(f"  {done}/{total} {time.monotonic() - begin:.0f} s {what}", flush=True)

        tally = measure(grids.grid(grid), found, bench, journal, report=report, limit_s=limit_s)
        print(f"{len(journal)} rows, {tally.failed} failed now, {tally.left} left")


if __name__ == "__main__":
    sys.exit(main())
