"""The parts of a day on a GPU. Each resumes from the tables that an earlier run left.

compiled     the binaries of the proof set and of the checks, on all cores   (Triton's cache)
correctness  every kernel on its own small cases                             correctness.csv
timed        a grid, bundled kernels and rivals, a twentieth of it again     runs.csv, configs.csv
readings     micro-benchmarks, clock and power under load                    readings.json
counters     one profiled call of many cases                                 ncu.csv, counters.csv
"""

from __future__ import annotations

import csv
import multiprocessing
import os
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.measured import grids, readingparts, session, tuning
from perfmodel.measured import measure as measuring
from perfmodel.measured.contenders import KernelContender, Launcher, Menu
from perfmodel.measured.environment import environment
from perfmodel.measured.journal import Announce, Journal
from perfmodel.measured.measure import Job
from perfmodel.measured.predicted import Predictions
from perfmodel.measured.references import TOLERANCE
from perfmodel.measured.rivals import Contender
from perfmodel.proof.compiled.compilefacts import content, launch_key
from perfmodel.proof.compiled.targets import TARGETS
from perfmodel.proof.kernel import BundledKernel, Descriptor, Launch, torch_type
from perfmodel.replacing import replacing

AGAIN = 0.05
"""Share of the rows that are measured a second time, to show repeatability."""
_CHECKED = ("kernel", "case", "config", "output", "error", "allowed", "passed", "reason")
_TABLES = {
    "runs": (measuring.COLUMNS, measuring.KEY),
    "configs": (tuning.COLUMNS, tuning.KEY),
    "correctness": (_CHECKED, _CHECKED[:4]),
}
_SHOWN = 20  # wrong outputs that are printed; all are in the table
# Types beyond those of a kernel's own cases, which are what Triton's interpreter can multiply.
_ON_DEVICE = ("bf16",)
_PROOF_RIVALS = ("cudnn", "flash2", "matmul", "scaled_mm", "softmax", "norm", "pointwise")
_PROOF_KERNELS_NOT = (
    "attention-standard", "attention-standard-backward", "attention-flash1", "matmul-split-k",
)  # fmt: skip
Check = tuple[BundledKernel, Any, Any, int]
Binary = tuple[BundledKernel, Any, Any, Launch]


def table(folder: Path, name: str) -> Journal:
    """An open table of the day."""
    journal = Journal(folder / f"{name}.csv", *_TABLES[name]).open(resume=True)
    for line in journal.said:
        print(f"  {line}")
    return journal


# ---- Compiling -----------------------------------------------------------------------------------


def compiled(folder: Path, limit_s: float, announce: Announce) -> bool:
    """Compile the proof set and the checks as launches would, with one process a core.

    The binaries are stored in Triton's own cache, where the later parts find them; a failure fails
    again there, as a row.
    """
    launcher = session.launcher(environment("cuda"))
    menu = Predictions(launcher, environment("cuda").device).menu
    wanted = [*raced(launcher, menu), *(check[:3] for check in checks(launcher))]
    jobs = binaries(wanted, launcher.target)
    shares = max(os.cpu_count() or 1, 1)
    print(f"  {len(jobs)} binaries by {shares} processes", flush=True)
    context = multiprocessing.get_context("spawn")
    names = [(k.name, p, c, k.launches(p, c).index(launch)) for k, p, c, launch in jobs]
    workers = [
        context.Process(target=compile_share, args=(names[share::shares],))
        for share in range(shares)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return True


def compile_share(names: Iterable[tuple[str, Any, Any, int]]) -> None:
    """Compile launches, each by its kernel's name, problem, config and place."""
    from perfmodel.proof import registry

    for name, problem, config, place in names:
        kernel = registry.kernel(name)
        try:
            compile_binary(kernel, problem, config, kernel.launches(problem, config)[place])
        except Exception as error:  # any error of the compiler is that binary's
            text = measuring.describe_failure(error)[:200]
            print(f"  not compiled: {name} with {config}: {text}", flush=True)


def compile_binary(kernel: BundledKernel, problem: Any, config: Any, launch: Launch) -> None:
    """Compile one launch as its kernel's launcher would, without tensors and without a launch."""
    dtypes = {array.name: array.dtype for array in kernel.arrays(problem, config)}
    arguments = {name: _stand_in(value, dtypes) for name, value in launch.arguments.items()}
    launch.function.warmup(
        **arguments,
        **launch.constexprs,
        grid=launch.grid,
        num_warps=launch.num_warps,
        num_stages=launch.num_stages,
    )


def _stand_in(value: Any, dtypes: Mapping[str, str]) -> Any:
    """A placeholder for an argument; only its type matters, since nothing is launched."""
    from triton.runtime.jit import MockTensor

    if isinstance(value, str):
        return MockTensor(torch_type(dtypes[value]))
    if isinstance(value, Descriptor):
        import torch

        base = torch.empty(0, dtype=torch_type(dtypes[value.array]), device="meta")
        return value.on(base)
    return value


def binaries(wanted: Iterable[tuple[BundledKernel, Any, Any]], target: str) -> list[Binary]:
    """The distinct binaries of (kernel, problem, config), without combinations that a kernel
    refuses."""
    by_key: dict[str, Binary] = {}
    for kernel, problem, config in wanted:
        with suppress(ProblemError):
            for launch in kernel.launches(problem, config):
                key = launch_key(content(kernel, problem, config, launch, TARGETS[target]))
                by_key.setdefault(key, (kernel, problem, config, launch))
    return list(by_key.values())


# ---- Correctness ---------------------------------------------------------------------------------


def correctness(folder: Path, limit_s: float, announce: Announce) -> bool:
    """Check every kernel on its own cases, outputs poisoned; one row for each output or failure."""
    begin = time.monotonic()
    launcher = session.launcher(environment("cuda"))
    with table(folder, "correctness") as journal:
        for kernel, problem, config, seed in checks(launcher):
            identity = {"kernel": kernel.name, "case": str(problem), "config": str(config)}
            # A failed run is recorded under the empty name.
            arrays = kernel.arrays(problem, kernel.configs[0])
            outputs = ["", *(array.name for array in arrays if array.role == "output")]
            if any(journal.has(identity | {"output": name}) for name in outputs):
                continue
            if time.monotonic() - begin > limit_s:
                break
            announce("correctness", identity)
            for row in _check_rows(kernel, problem, config, seed, launcher.device):
                journal.append(identity | row)
        misses = [row for row in journal.rows() if row["passed"] != "True"]
        print(f"  {len(journal)} outputs checked, {len(misses)} wrong or failed")
    for row in misses[:_SHOWN]:
        text = row["reason"] or f"error {row['error']}, {row['allowed']} allowed"
        print(f"  {row['kernel']} {row['output']}: {text[:120]}")
    return not misses


def checks(launcher: Launcher) -> Iterator[Check]:
    """(kernel, problem, config, seed) of every check.

    Kernels that no interpreter can run come last, since they could hang. Among the others, and
    among them, the types that only a device can multiply come first. Cases that a kernel has no
    menu for on the target are left out.
    """
    from perfmodel.proof import registry

    kernels = [k for k in registry.kernels().values() if k.takes(launcher.target)]
    for interpreted in (True, False):
        group = [kernel for kernel in kernels if kernel.interpreted is interpreted]
        for kernel in group:
            for dtype in (t for t in _ON_DEVICE if t in kernel.dtypes):
                for seed, (problem, config) in enumerate(kernel.cases[:2]):
                    yield kernel, replace(problem, dtype=dtype), config, seed
        for kernel in group:
            for seed, (problem, config) in enumerate(kernel.cases):
                if kernel.has_menu(problem, launcher.target, launcher.units):
                    yield kernel, problem, config, seed


def _check_rows(
    kernel: BundledKernel, problem: Any, config: Any, seed: int, device: str
) -> list[dict[str, str]]:
    tolerance = TOLERANCE.get(str(getattr(problem, "dtype", "fp32")), 1e-2)
    try:
        inputs = kernel.make_inputs(problem, seed, device)
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


# ---- Measuring -----------------------------------------------------------------------------------


def timed(grid: str, folder: Path, limit_s: float, announce: Announce) -> bool:
    """Time a grid with every implementation; existing rows are not measured again."""
    device = environment("cuda")
    predictions = Predictions(session.launcher(device), device.device)
    if predictions.note:
        print(f"  {predictions.note}")
    bench = session.bench("cuda", session.DAY, announce=announce, beside=predictions.cells)
    with table(folder, "runs") as runs, table(folder, "configs") as configs:
        tuner = session.tuner(bench, configs)
        pool, notes = session.contenders(device, tuner=tuner, menu=predictions.menu)
        for line in notes:
            print(f"  skipped {line}")
        tally = measuring.measure(race(grid, pool), bench, runs, report=_report, limit_s=limit_s)
        print(f"  {len(runs)} rows, {tally.failed} failed now, {tally.left} left")
    for reason, count in tally.reasons.items():
        print(f"    {count} failed: {reason}")
    return not tally.failed


def race(grid: str, pool: Sequence[Contender]) -> list[Job]:
    """The jobs of a grid in order; kernels that could hang come last.

    The proof set leaves out implementations that are known to be slower: unfused attention and
    FlashAttention-1.
    """
    entries = [each for each in pool if grid != "proof" or _is_raced(each)]
    jobs = measuring.plan(grids.grid(grid), entries, AGAIN)
    return sorted(jobs, key=lambda job: (job.repeat, _is_untested(job.contender)))


def raced(launcher: Launcher, menu: Menu) -> Iterator[tuple[BundledKernel, Any, Any]]:
    """(kernel, problem, config) of every config that the proof set tries."""
    from perfmodel.measured.contenders import contenders

    for job in race("proof", contenders(launcher)[0]):
        kernel = job.contender
        if isinstance(kernel, KernelContender) and not job.repeat:
            with suppress(ProblemError):  # no config: measuring writes a row with the reason
                problem = kernel.problem(job.case)
                for config in menu(job.case, kernel.kernel, problem):
                    yield kernel.kernel, problem, config


def _is_raced(contender: Contender) -> bool:
    name = contender.implementation.partition(":")[2]
    if isinstance(contender, KernelContender):
        return name not in _PROOF_KERNELS_NOT
    return name in _PROOF_RIVALS


def _is_untested(contender: Contender) -> bool:
    """Whether a kernel could not be run before, since the interpreter does not support it."""
    return isinstance(contender, KernelContender) and not contender.kernel.interpreted


def _report(done: int, total: int, what: str) -> None:
    if done % 20 == 0:
        print(f"  {done}/{total} {what}", flush=True)


# ---- Readings and counters -----------------------------------------------------------------------


def readings(folder: Path, limit_s: float, announce: Announce) -> bool:
    """Micro-benchmarks of the device."""
    from perfmodel.measured import gpu_probes

    rates = gpu_probes.take(
        environment("cuda"), quick=False, report=lambda name: print(f"  {name}", flush=True),
        partial=folder / "readings.json", announce=announce,
    )  # fmt: skip
    gaps = readingparts.missing(rates)
    for name, reason in gaps.items():
        print(f"  {name}: {reason}")
    return not gaps


def counters(folder: Path, limit_s: float, announce: Announce) -> bool:
    """One call of many cases under Nsight Compute, and the import; nothing where there is no
    `ncu`."""
    from perfmodel.measured import profiledcases
    from perfmodel.measured.counters import COLUMNS

    path = folder / "counters.csv"
    if path.exists():
        return True
    environment("cuda")
    rows, lines = profiledcases.counted(folder / "ncu.csv", limit_s)
    for line in lines:
        print(f"  {line}")
    if rows:
        with replacing(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    return rows is not None
