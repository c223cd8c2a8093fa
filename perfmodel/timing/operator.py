"""An operator on a device: class → plans → best tile → floor, as arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.timing import attention, attention_backward, floors, matmul, rowwise, unfused
from perfmodel.timing.circumstances import Circumstances, circumstances
from perfmodel.timing.classes import KernelClass, is_known, resolve, usual
from perfmodel.timing.constants import Constants
from perfmodel.timing.included import included_seconds
from perfmodel.timing.machine import Machine, machine
from perfmodel.timing.placing import placed
from perfmodel.timing.plan import Estimate, Plan, time_plan

SCHEDULES = {
    "attention": ("auto", "standard", "tiled", "tiled-1", "tiled-2", "tiled-3", "split-kv"),
    "gemm": ("auto", "tiled", "split-k"),
    "rowwise": ("auto",),
}
_BY_SCHEDULE = {"standard": "eager", "tiled-1": "flash1", "tiled-2": "flash2", "tiled-3": "flash3"}


@dataclass(frozen=True)
class Timed:
    """The best column of the menu for each of n problems, with the floor added.

    `assumptions` say what was taken for what the device or the caller leaves open; `unknowns` are
    those among them that widen the range, by what is not known.
    """

    schedule: str
    implementation: str
    seconds: np.ndarray
    estimate: Estimate
    launch_seconds: np.ndarray
    included_seconds: np.ndarray
    tile: dict[str, np.ndarray]
    assumptions: tuple[str, ...]
    unknowns: Mapping[str, str]


def column_shape(problem: Problem) -> tuple[Problem, int]:
    """The problem with every array as a column of shape (n, 1), and n."""
    changes: dict[str, Any] = {}
    n = 1
    for item in fields(problem):
        value = getattr(problem, item.name)
        if isinstance(value, np.ndarray):
            changes[item.name] = value.reshape(-1, 1)
            n = max(n, value.size)
    return (replace(problem, **changes) if changes else problem), n


def time_operator(
    problem: Problem,
    device: Device,
    constants: Constants,
    *,
    schedule: str = "auto",
    implementation: str | None = None,
    harness: str = "kernel",
    includes: Sequence[str] = (),
    place: Mapping[str, str] | None = None,
) -> Timed:
    """Time n problems of one kind; arrays of `problem` must share one head dimension.

    Raises `ProblemError` for a schedule, harness or type that is not there, and where no tile of
    the menu fits on chip.
    """
    here = machine(device)
    columns, n = column_shape(problem)
    name = floors.operator_name(problem)
    around = circumstances(harness, name, constants)
    kernel, said = _class_of(columns, schedule, implementation, here)
    kernel = _ablated(kernel, constants)
    plans = _plans(columns, schedule, kernel, here, constants, around)
    plans, elsewhere = placed(plans, place or {}, device)
    total, tile = _best(here, constants, plans, n)
    if not np.all(np.isfinite(total.seconds)):
        raise ProblemError(_does_not_fit(device, plans[0], columns))
    open_questions = unknowns(name, implementation, harness, device)
    if elsewhere:
        open_questions["link"] = "; ".join(elsewhere)
    if kernel.quantises and harness != "kernel":
        includes = (*includes, "quantise_activations")
    includes = () if "included" in constants.off else tuple(dict.fromkeys(includes))
    other = included_seconds(here, constants, columns, kernel, includes, around)
    extra = np.broadcast_to(np.asarray(other, dtype=np.float64).reshape(-1), (n,))
    device_seconds = total.seconds + extra
    rows = problem.m if isinstance(problem, Matmul) else np.inf
    seconds = floors.with_floor(
        constants, harness, floors.called_as(problem), device_seconds, kernel, rows
    )
    calls = sum(plan.calls for plan in plans)
    seconds = np.maximum(seconds, floors.host_seconds(constants, harness, calls))
    return Timed(
        schedule=" + ".join(dict.fromkeys(plan.schedule for plan in plans)),
        implementation=kernel.name,
        seconds=seconds,
        estimate=total,
        launch_seconds=seconds - device_seconds,
        included_seconds=extra,
        tile=tile,
        assumptions=(*here.assumptions, *said, *open_questions.values()),
        unknowns=open_questions,
    )


def unknowns(name: str, implementation: str | None, harness: str, device: Device) -> dict[str, str]:
    """What is not known of a run: its kernel, how it was timed, a device that is no GPU.

    `name` is the operator's (`floors.operator_name`).
    """
    found = {}
    if implementation and not is_known(name, implementation):
        said = f"implementation {implementation!r} is not known: a good library's is taken"
        found["implementation"] = said
    if harness == floors.UNKNOWN:
        found["harness"] = "how the run was timed is not known: device time is taken"
    if device.kind != "gpu":
        found["kind"] = f"{device.slug} is no GPU, and the model is fitted to GPUs alone"
    return found


def _ablated(kernel: KernelClass, constants: Constants) -> KernelClass:
    """The class with its menu or its slicing left out, where these are switched off."""
    if "menu" in constants.off:
        kernel = replace(kernel, tiles={dim: menu[:1] for dim, menu in kernel.tiles.items()})
    return replace(kernel, splits=(1,)) if "split" in constants.off else kernel


def _class_of(
    problem: Problem, schedule: str, implementation: str | None, here: Machine
) -> tuple[KernelClass, tuple[str, ...]]:
    if isinstance(problem, Rowwise):
        _check_schedule(schedule, "rowwise")
        variant = problem.variant
        return resolve(problem.op, implementation, problem.dtype, here, variant=variant)
    name = "attention" if isinstance(problem, Attention) else "gemm"
    _check_schedule(schedule, name)
    if schedule in _BY_SCHEDULE and implementation is None:
        implementation = _BY_SCHEDULE[schedule]
    dtype, widened = _multiplied_as(problem, here)
    if schedule in ("tiled", "split-kv") and implementation is None:
        return usual(name, dtype, here), widened
    batched = isinstance(problem, Matmul) and problem.batched
    decode = isinstance(problem, Attention) and problem.phase == "decode"
    kernel, said = resolve(name, implementation, dtype, here, batched=batched, decode=decode)
    return kernel, (*widened, *said)


def _multiplied_as(problem: Attention | Matmul, here: Machine) -> tuple[str, tuple[str, ...]]:
    """The type that picks the library's kernel, and what is to be said where it is another one.

    Quantised operands keep the kernels of their format, whatever these multiply.
    """
    wanted = matmul_format(problem.dtype).compute if isinstance(problem, Matmul) else problem.dtype
    run = here.multiplied_as(wanted)
    if run == wanted:
        return problem.dtype, ()
    said = f"{here.device.slug} has no {wanted} rate: values are widened and multiplied as {run}"
    return (run if problem.dtype == wanted else problem.dtype), (said,)


def _check_schedule(schedule: str, name: str) -> None:
    if schedule not in SCHEDULES[name]:
        known = ", ".join(SCHEDULES[name])
        raise ProblemError(f"schedule {schedule!r} is not known for {name}; it is one of {known}")


def _plans(
    problem: Problem,
    schedule: str,
    kernel: KernelClass,
    here: Machine,
    constants: Constants,
    around: Circumstances,
) -> list[Plan]:
    if isinstance(problem, Rowwise):
        return [rowwise.plan(problem, kernel, here, constants, around)]
    if isinstance(problem, Matmul):
        if schedule == "tiled":
            kernel = replace(kernel, splits=(1,))
        return [matmul.plan(problem, kernel, here, constants, around)]
    if kernel.schedule == "standard":
        return unfused.plans(problem, here, constants, around)
    plans = []
    if problem.direction in ("fwd", "fwdbwd"):
        plans.append(
            attention.forward_plan(
                problem, kernel, here, constants, around, split=schedule == "split-kv"
            )
        )
    if problem.direction in ("bwd", "fwdbwd"):
        plans.append(attention_backward.backward_plan(problem, kernel, here, constants, around))
    return plans


def _best(
    here: Machine, constants: Constants, plans: list[Plan], n: int
) -> tuple[Estimate, dict[str, np.ndarray]]:
    """Each plan's fastest column for every problem, added over the plans."""
    total: Estimate | None = None
    tile: dict[str, np.ndarray] = {}
    for plan in plans:
        width = max((value.shape[-1] for value in plan.tile.values()), default=1)
        timing = time_plan(here, constants, plan, (n, width))
        column = np.argmin(timing.seconds, axis=1)
        best = timing.at(column)
        total = best if total is None else total.plus(best)
        tile = tile or {name: np.broadcast_to(v, (n, width))[np.arange(n), column]
                        for name, v in plan.tile.items()}  # fmt: skip
    assert total is not None
    return total, tile


def _does_not_fit(device: Device, plan: Plan, problem: Problem) -> str:
    limit = device.shared_max_per_block_bytes or 0
    smaller = "a smaller head dimension" if isinstance(problem, Attention) else "a narrower type"
    return (
        f"no tile of {plan.schedule} fits on {device.slug}: a block may hold "
        f"{limit / 1024:.0f} KiB of shared memory; use {smaller} or another schedule"
    )
