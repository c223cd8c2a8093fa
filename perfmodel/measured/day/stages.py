"""The stages of a measuring run. Each resumes from the files of an earlier run.

plan         which configs to try, and what the model says of each   plan.csv
compile      the binaries of the proof set, on all cores             (Triton's cache)
correctness  every kernel on its own small cases                     correctness.csv
proof        sixty cases, bundled kernels and rivals                 runs.csv, configs.csv
readings     micro-benchmarks, clock and power under load            readings.json
counters     one profiled call of many cases                         counters.csv
measure      the full grid, and a twentieth of it again              runs.csv, configs.csv
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.measured import measure as measuring
from perfmodel.measured import readingparts, session, tuning
from perfmodel.measured.contenders import KernelContender
from perfmodel.measured.day import forecast, precompile, profile
from perfmodel.measured.day.gpu import Gpu
from perfmodel.measured.day.supervisor import DONE, SOME_FAILED
from perfmodel.measured.journal import Journal
from perfmodel.measured.measure import Bench, Job
from perfmodel.measured.pulse import Lost, Pulse
from perfmodel.measured.references import TOLERANCE
from perfmodel.measured.rivals import Contender
from perfmodel.proof.kernel import BundledKernel

AGAIN = 0.05
"""Share of the rows that are measured a second time, to show repeatability."""
_CHECKED = ("kernel", "case", "config", "output", "error", "allowed", "passed", "reason")
_SHOWN = 20  # wrong outputs that are printed; all are in the table
_CHECK = ("kernel", "case", "config", "output")
# Types beyond those of a kernel's own cases, which are what Triton's interpreter can multiply.
_ON_DEVICE = ("bf16",)
_PROOF_RIVALS = ("cudnn", "flash2", "matmul", "scaled_mm", "softmax", "norm", "pointwise")
_PROOF_KERNELS_NOT = (
    "attention-standard", "attention-standard-backward", "attention-flash1", "matmul-split-k",
)  # fmt: skip


def stage(name: str, folder: Path, bed: Gpu, limit_s: float | None) -> int:
    """Run a stage in this process and return its exit code; raises `PerfmodelError` if it cannot
    run."""
    return STAGES[name](folder, bed, limit_s)


# ---- Plan and compile ----------------------------------------------------------------------------


def _plan(folder: Path, bed: Gpu, limit_s: float | None) -> int:
    path = folder / forecast.NAME
    if path.exists():
        print(f"  {path.name} is there already")
        return DONE
    line = forecast.write(path, bed.spec(), bed.launcher(), race(bed, "proof"))
    print(f"  {line}")
    return DONE


def _compile(folder: Path, bed: Gpu, limit_s: float | None) -> int:
    command = bed.compiler(folder)
    if command is None:
        print("  nothing to compile here")
        return DONE
    print(f"  {precompile.everything(command, folder, limit_s)}")
    return DONE


# ---- Correctness ---------------------------------------------------------------------------------


def _correctness(folder: Path, bed: Gpu, limit_s: float | None) -> int:
    """Check every kernel on its own cases, outputs poisoned; one row for each output or failure."""
    from perfmodel.proof import registry

    begin = time.monotonic()
    pulse = Pulse(folder)
    with Journal(folder / "correctness.csv", _CHECKED, _CHECK).open(resume=True) as journal:
        _lost_check(journal, pulse.claim())
        for kernel, problem, config, seed in checks(bed):
            identity = {"kernel": kernel.name, "case": str(problem), "config": str(config)}
            if any(journal.has(identity | {"output": name}) for name in _outputs(kernel, problem)):
                continue
            if limit_s is not None and time.monotonic() - begin > limit_s:
                break
            pulse.beat(identity)
            for row in _check_rows(kernel, problem, config, seed, bed):
                journal.append(identity | row)
            pulse.rest()
        misses = [row for row in journal.rows() if row["passed"] != "True"]
        print(f"  {len(journal)} outputs checked, {len(misses)} wrong or failed")
        for row in misses[:_SHOWN]:
            text = row["reason"] or f"error {row['error']}, {row['allowed']} allowed"
            print(f"  {row['kernel']} {row['output']}: {text[:120]}")
    for line in registry.failures():
        print(f"  skipped {line}")
    return SOME_FAILED if misses else DONE


def checks(bed: Gpu) -> Iterator[tuple[BundledKernel, Any, Any, int]]:
    """(kernel, problem, config, seed) of every check.

    Kernels that no interpreter can run come last, since they could hang. Among the others, and
    among them, the types that only a device can multiply come first.
    """
    from perfmodel.proof import registry

    kernels = [k for k in registry.kernels().values() if bed.runs(k)]
    yield from _checks_of([k for k in kernels if k.interpreted], bed)
    yield from _checks_of([k for k in kernels if not k.interpreted], bed)


def _checks_of(
    kernels: Sequence[BundledKernel], bed: Gpu
) -> Iterator[tuple[BundledKernel, Any, Any, int]]:
    for kernel in kernels:
        for dtype in bed.types([t for t in _ON_DEVICE if t in kernel.dtypes]):
            for seed, (problem, config) in enumerate(kernel.cases[:2]):
                yield kernel, replace(problem, dtype=dtype), config, seed
    for kernel in kernels:
        for seed, (problem, config) in enumerate(kernel.cases[: bed.checked_cases]):
            yield kernel, problem, config, seed


def _outputs(kernel: BundledKernel, problem: Any) -> list[str]:
    """Names under which a check is recorded: the kernel's outputs, or "" for a failed run."""
    arrays = kernel.arrays(problem, kernel.configs[0])
    return ["", *(array.name for array in arrays if array.role == "output")]


def _check_rows(
    kernel: BundledKernel, problem: Any, config: Any, seed: int, bed: Gpu
) -> list[dict[str, str]]:
    tolerance = TOLERANCE.get(str(getattr(problem, "dtype", "fp32")), 1e-2)
    try:
        inputs = kernel.make_inputs(problem, seed, bed.launcher().device)
        errors = kernel.errors(inputs, kernel.run(inputs, config))
    except Exception as failure:  # a kernel that fails is a result
        return [{"passed": "False", "reason": measuring.describe_failure(failure)[:300]}]
    return [
        {
            "output": name,
            "error": f"{error:.3g}",
            "allowed": f"{tolerance:g}",
            "passed": str(bool(error <= tolerance)),
        }
        for name, error in errors.items()
    ]


def _lost_check(journal: Journal, loss: Lost | None) -> None:
    if loss is not None:
        journal.append(dict(loss.running) | {"passed": "False", "reason": loss.reason})


# ---- Measuring -----------------------------------------------------------------------------------


def compiled_first(
    bed: Gpu, known: forecast.Forecast | None = None
) -> Iterator[tuple[BundledKernel, Any, Any]]:
    """(kernel, problem, config) of everything to compile: the proof set, then the checks."""
    yield from raced(bed, known)
    for kernel, problem, config, _ in checks(bed):
        yield kernel, problem, config


def raced(
    bed: Gpu, known: forecast.Forecast | None = None
) -> Iterator[tuple[BundledKernel, Any, Any]]:
    """(kernel, problem, config) of every config that the proof set tries, by the plan `known`."""
    menu = (known or forecast.Forecast(())).menu(bed.launcher())
    for job in race(bed, "proof"):
        contender = job.contender
        if isinstance(contender, KernelContender) and not job.repeat:
            problem = contender.problem(job.case)
            with suppress(ProblemError):  # no config: measuring writes a row with the reason
                for config in menu(job.case, contender.kernel, problem):
                    yield contender.kernel, problem, config


def race(bed: Gpu, grid: str, tuner: tuning.Tuner | None = None, menu: Any = None) -> list[Job]:
    """The jobs of a grid in order; kernels that could hang come last.

    The proof set leaves out implementations that are known to be slower: unfused attention and
    FlashAttention-1.
    """
    pool, notes = bed.contenders(tuner, menu or bed.launcher().menu)
    for line in notes:
        print(f"  skipped {line}")
    entries = [each for each in pool if grid != "proof" or _is_raced(each)]
    jobs = measuring.plan(bed.grid(grid), entries, AGAIN)
    return sorted(jobs, key=lambda job: (job.repeat, _is_untested(job.contender)))


def _is_raced(contender: Contender) -> bool:
    name = contender.implementation.partition(":")[2]
    if isinstance(contender, KernelContender):
        return name not in _PROOF_KERNELS_NOT
    return name in _PROOF_RIVALS


def _is_untested(contender: Contender) -> bool:
    """Whether a kernel could not be run before, since the interpreter does not support it."""
    kernel = getattr(contender, "kernel", None)
    return not getattr(kernel, "interpreted", True)


def _time_grid(grid: str, folder: Path, bed: Gpu, limit_s: float | None) -> int:
    """Time a grid with every implementation; existing rows are not measured again."""
    pulse = Pulse(folder)
    plan = forecast.read(folder / forecast.NAME)
    bench = bed.bench(pulse, plan.beside)
    with (
        Journal(folder / "runs.csv", measuring.COLUMNS, measuring.KEY).open(resume=True) as runs,
        Journal(folder / "configs.csv", tuning.COLUMNS, tuning.KEY).open(resume=True) as configs,
    ):
        for line in (*runs.said, *configs.said):
            print(f"  {line}")
        tuner = session.tuner(bench, configs)
        _lost_run(pulse.claim(), runs, tuner, bench)
        jobs = race(bed, grid, tuner, plan.menu(bed.launcher()))
        tally = measuring.measure(jobs, bench, runs, report=_reporter(), limit_s=limit_s)
        print(f"  {len(runs)} rows, {tally.failed} failed now, {tally.left} left")
        for reason, count in tally.reasons.items():
            print(f"    {count} failed: {reason}")
    return SOME_FAILED if tally.failed else DONE


def _lost_run(loss: Lost | None, runs: Journal, tuner: tuning.Tuner, bench: Bench) -> None:
    """Record what ran when an earlier process died: a config being tuned, or a case."""
    if loss is None:
        return
    print(f"  lost: {loss.running.get('implementation')}: {loss.reason}")
    if "config" in loss.running:
        tuner.record_lost(loss)
    else:
        measuring.record_lost(runs, loss, bench)


def _reporter() -> measuring.Reporter:
    begin = time.monotonic()

    def report(done: int, total: int, what: str) -> None:
        if done % 20 == 0:
            print(f"  {done}/{total} {time.monotonic() - begin:.0f} s {what}", flush=True)

    return report


# ---- Readings and counters -----------------------------------------------------------------------


def _readings(folder: Path, bed: Gpu, limit_s: float | None) -> int:
    readings = bed.readings(folder / "readings.json", Pulse(folder))
    for name, rate in readings.rates.items():
        print(f"  {name} {rate:.4g}")
    gaps = readingparts.missing(readings)
    for name, reason in gaps.items():
        print(f"  {name}: {reason}")
    return SOME_FAILED if gaps else DONE


def _counters(folder: Path, bed: Gpu, limit_s: float | None) -> int:
    return profile.counters(folder, bed, limit_s)


STAGES: dict[str, Callable[[Path, Gpu, float | None], int]] = {
    "plan": _plan,
    "compile": _compile,
    "correctness": _correctness,
    "proof": partial(_time_grid, "proof"),
    "readings": _readings,
    "counters": _counters,
    "measure": partial(_time_grid, "full"),
}
"""Stages by name, in their order."""
