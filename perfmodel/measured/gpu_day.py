"""All measurements that need a GPU, in one run: `python -m perfmodel.measured.gpu_day --output
DIR`.

Each stage runs in its own process, has a time limit, and resumes from its files in DIR. A stage
that fails, hangs or crashes does not stop the others (see `perfmodel.measured.day`). The exit code
is 0 for success, 1 if something failed, and 2 with one line if nothing can be run here.

Needs torch and triton only; the spec is made from readings.json elsewhere, by
`perfmodel calibrate --readings`. `--rehearse` goes through the whole day without a GPU.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.measured.day.supervisor import (
    CANNOT,
    DEVICE_LOST,
    DONE,
    NO_DEVICE,
    SOME_FAILED,
    Outcome,
    run_group,
    supervise,
)

NAMES = ("plan", "compile", "correctness", "proof", "readings", "counters", "measure")
BUDGETS_S = {
    "plan": 60.0, "compile": 150.0, "correctness": 90.0, "proof": 480.0, "readings": 150.0,
    "counters": 240.0,
}  # fmt: skip
"""Time limits in seconds of each stage; the last one takes what is left."""
_SILENCE_S, _CHECK_SILENCE_S = 90.0, 20.0
"""A case that runs longer is taken to hang; the small ones of the checks take a second."""
_INTERRUPTED = 130
_RECORDING_S = 20.0  # a stage's process starts, writes one row and ends


def main(arguments: Sequence[str] | None = None) -> int:
    """Run all stages, or one as the supervisor's child; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        if options.profiled is not None:
            return _profile(options)
        if options.stage:
            return _stage(options)
        if options.plan_for:
            return _plan_for(options)
        return _day(options)
    except PerfmodelError as error:
        print("gpu_day:", error, file=sys.stderr)
        return CANNOT
    except KeyboardInterrupt:
        print(f"gpu_day: interrupted; {options.output} goes on from there", file=sys.stderr)
        return _INTERRUPTED


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m perfmodel.measured.gpu_day",
        description="Correctness, measurements, calibration and counters of a GPU, in one go.",
    )
    parser.add_argument("--output", default="gpu-day", help="folder of the results")
    parser.add_argument("--stages", default=",".join(NAMES), help="which, with commas")
    parser.add_argument("--limit-seconds", type=float, help="end everything after this long")
    parser.add_argument(
        "--resume-from", help="folder of an earlier day whose files are copied to --output first"
    )
    parser.add_argument(
        "--silence-seconds", type=float,
        help="a case that takes longer is taken to hang (90; 20 in correctness)",
    )  # fmt: skip
    parser.add_argument("--rehearse", action="store_true", help="without a GPU: no real times")
    parser.add_argument(
        "--fault", action="append", default=[], metavar="KERNEL=FAULT",
        help="in a rehearsal, let a kernel raise, hang or crash",
    )  # fmt: skip
    parser.add_argument(
        "--plan-for", metavar="DEVICE", help="only make the plan, for a device that is not here"
    )
    parser.add_argument("--stage", help=argparse.SUPPRESS)
    parser.add_argument("--profiled", nargs="?", const=0, type=int, help=argparse.SUPPRESS)
    return parser


# ---- The supervisor: no torch here ---------------------------------------------------------------


def _day(options: argparse.Namespace) -> int:
    folder = Path(options.output)
    stages = [name.strip() for name in options.stages.split(",") if name.strip()]
    for name in stages:
        if name not in NAMES:
            raise UnknownName("stage", name, NAMES)
    folder.mkdir(parents=True, exist_ok=True)
    if options.resume_from:
        take_over(Path(options.resume_from), folder)
    begin = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    for name in stages:
        rest = options.limit_seconds
        if rest is not None:
            rest -= time.monotonic() - begin
        if rest is not None and rest <= 0:
            print(f"{name}: not started, the time is up")
            continue
        print(f"== {name} ({time.monotonic() - begin:.0f} s)", flush=True)
        limits = [seconds for seconds in (BUDGETS_S.get(name), rest) if seconds is not None]
        limit = min(limits, default=None)
        outcomes[name] = supervise(
            _command(options, name, limit), folder, limit_s=limit,
            silence_s=options.silence_seconds
            or (_CHECK_SILENCE_S if name == "correctness" else _SILENCE_S),
        )  # fmt: skip
        if outcomes[name].lost_at_limit:  # its row is written now: the next day may be elsewhere
            run_group(_command(options, name, 0.0), _RECORDING_S)
        if outcomes[name].code == NO_DEVICE:  # said by the stage; no other will find one
            return CANNOT
        print(f"   {name}: {outcomes[name].said} ({time.monotonic() - begin:.0f} s)", flush=True)
    _tidy(folder)
    _summary(folder, outcomes)
    return SOME_FAILED if any(outcome.failed for outcome in outcomes.values()) else DONE


def take_over(source: Path, folder: Path) -> None:
    """Copy the files of an earlier run into `folder`, without overwriting any."""
    if not source.is_dir():
        raise PerfmodelError(f"--resume-from {source} is no folder; leave it out to begin anew")
    for item in sorted(source.iterdir()):
        if item.is_file() and not item.name.startswith(".") and not (folder / item.name).exists():
            shutil.copy2(item, folder / item.name)


def _command(options: argparse.Namespace, name: str, limit_s: float | None) -> list[str]:
    command = [
        sys.executable, "-m", "perfmodel.measured.gpu_day", "--output", options.output,
        "--stage", name,
    ]  # fmt: skip
    if limit_s is not None:
        command += ["--limit-seconds", f"{limit_s:.1f}"]
    if options.rehearse:
        command.append("--rehearse")
    for fault in options.fault:
        command += ["--fault", fault]
    return command


def _tidy(folder: Path) -> None:
    """Remove temporary files that only running stages use."""
    for item in folder.glob(".*"):
        if item.is_file():
            item.unlink(missing_ok=True)


def _summary(folder: Path, outcomes: dict[str, Outcome]) -> None:
    from perfmodel.measured.day import summary

    print("\n".join(summary.lines(folder / "runs.csv")))
    for name, outcome in outcomes.items():
        print(f"{name:12} {outcome.said}")


# ---- One stage, in a process of its own ----------------------------------------------------------


def _stage(options: argparse.Namespace) -> int:
    from perfmodel.measured.day.gpu import device
    from perfmodel.measured.day.stages import stage
    from perfmodel.measured.environment import NoDevice
    from perfmodel.measured.measure import DeviceLost

    pairs = (text.partition("=") for text in options.fault)
    faults = {kernel: fault for kernel, _, fault in pairs}
    bed = device(rehearsed=options.rehearse, faults=faults)
    try:
        bed.environment()
    except NoDevice as absent:
        print("gpu_day:", absent, file=sys.stderr)
        return NO_DEVICE
    try:
        return stage(options.stage, Path(options.output), bed, options.limit_seconds)
    except DeviceLost as error:
        print(f"  {error}", flush=True)
        return DEVICE_LOST


def _plan_for(options: argparse.Namespace) -> int:
    from perfmodel.measured.day import forecast, precompile, stages
    from perfmodel.measured.day.gpu import Planned

    bed = Planned(options.plan_for)
    folder = Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    code = stages.stage("plan", folder, bed, None)
    plan = forecast.read(folder / forecast.NAME)
    proof = precompile.binaries(stages.raced(bed, plan), bed.launcher().target)
    checks = precompile.binaries(stages.compiled_first(bed, plan), bed.launcher().target)
    print(f"  {len(proof)} binaries for the proof set, {len(checks)} with those of the checks")
    return code


def _profile(options: argparse.Namespace) -> int:
    from perfmodel.measured.day import profile
    from perfmodel.measured.day.gpu import device

    profile.profiled(device(rehearsed=options.rehearse), options.profiled or None)
    return DONE


if __name__ == "__main__":
    sys.exit(main())
