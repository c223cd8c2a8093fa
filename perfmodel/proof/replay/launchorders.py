"""Matmul and attention cases in different launch orders: the simulated L2 against the model.

Shapes, tiles, group heights and head orders are crossed with devices whose caches differ by a
factor of 25, so that working sets fall below, at and above the capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from perfmodel.algorithms import Attention, Matmul
from perfmodel.count import KernelCost, count
from perfmodel.hardware import load
from perfmodel.proof.kernel import Problem
from perfmodel.proof.replay.cachesim import partitions
from perfmodel.proof.replay.tilestream import exact_retention, model_bytes, simulate
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import tiled, tiled_backward
from perfmodel.timing.machine import machine
from perfmodel.timing.traffic import held_share

DEVICES = ("a100-sxm4-80gb", "h100-sxm", "l40s", "a10", "v100-sxm2-32gb")


@dataclass(frozen=True)
class OrderCase:
    """One kernel on one device."""

    label: str
    """What it is called."""
    device: str
    """Slug of the device."""
    problem: Problem
    """The problem."""
    schedule: Schedule
    """The schedule, of one kernel."""
    concurrent: int
    """Blocks in flight."""


@dataclass(frozen=True, slots=True)
class OrderResult:
    """HBM bytes of one case.

    `closed_form_bytes` uses the retention of the simulated cache, `predicted_bytes` the retention
    fitted to real caches.
    """

    label: str
    """What it is called."""
    device: str
    """Slug of the device."""
    asked_bytes: float
    """Bytes that blocks request."""
    least_bytes: float
    """Compulsory bytes: each tensor once."""
    simulated_bytes: float
    """By the simulated cache."""
    closed_form_bytes: float
    """By the closed form."""
    predicted_bytes: float
    """As the time model predicts them."""

    @property
    def error(self) -> float:
        """closed form / simulated − 1."""
        return self.closed_form_bytes / self.simulated_bytes - 1

    @property
    def predicted_error(self) -> float:
        """predicted / simulated − 1."""
        return self.predicted_bytes / self.simulated_bytes - 1


def reordered(schedule: Schedule, *axes: str) -> Schedule:
    """The same schedule with the grid loops of its last kernel launched in another axis order."""
    kernel = schedule.kernels[-1]
    grid = [loop for loop in kernel.nest if loop.grid]
    inner = tuple(loop for loop in kernel.nest if not loop.grid)
    loops = sorted(grid, key=lambda loop: axes.index(loop.axis))
    last = replace(kernel, nest=(*loops, *inner))
    return replace(schedule, kernels=(*schedule.kernels[:-1], last))


def _matmuls(device: str, units: int) -> Iterator[OrderCase]:
    shapes = ((2048, 2048, 2048), (4096, 4096, 1024), (8192, 1024, 4096), (1000, 6000, 3000))
    for shape in shapes:
        for group in (None, 1, 4, 16):
            label = f"matmul {'x'.join(map(str, shape))} group {group}"
            schedule = tiled_matmul(128, 128, 64, group_m=group)
            yield OrderCase(label, device, Matmul(*shape, dtype="fp16"), schedule, units)


def _attentions(device: str, units: int) -> Iterator[OrderCase]:
    shapes = (
        (1, 16, 16, 2048, 2048, 128),
        (1, 32, 8, 2048, 2048, 128),
        (4, 16, 16, 1000, 1000, 64),
    )
    for shape in shapes:
        for causal in (False, True):
            problem = Attention(*shape, causal=causal, dtype="fp16")
            base = tiled(problem.mask(), 128, 128)
            for order in (("b", "g", "r", "q"), ("q", "b", "g", "r"), ("b", "q", "g", "r")):
                name = "".join(order)
                label = f"attention {'x'.join(map(str, shape))} {'causal ' * causal}{name}"
                yield OrderCase(label, device, problem, reordered(base, *order), units)
    problem = Attention(1, 16, 16, 2048, 2048, 64, dtype="fp16", direction="bwd")
    for axes in (("b", "g", "x"), ("x", "b", "g")):
        schedule = reordered(tiled_backward(None, 128, 128), *axes)
        yield OrderCase(f"attention backward {''.join(axes)}", device, problem, schedule, units)


def cases() -> tuple[OrderCase, ...]:
    """Every case, a block on each unit of the device."""
    entries: list[OrderCase] = []
    for name in DEVICES:
        units = load(name).units
        entries += [*_matmuls(name, units), *_attentions(name, units)]
    return tuple(entries)


def run(case: OrderCase) -> OrderResult:
    """The bytes of one case, simulated and by the model."""
    device = load(case.device)
    problem, schedule = case.problem, case.schedule
    cost = count(schedule, problem.sizes(), problem.elements())
    part: KernelCost = cost.kernels[-1]
    concurrent = min(case.concurrent, int(part.blocks))
    simulation = simulate(
        schedule, part, problem.elements(), concurrent,
        float(device.l2_capacity_bytes or 0.0), partitions(device),
    )  # fmt: skip
    predicted, closed_form = (
        model_bytes(schedule, part, problem.elements(), concurrent, machine(device), retain)
        for retain in (held_share, exact_retention)
    )
    return OrderResult(
        label=case.label,
        device=case.device,
        asked_bytes=float(part.bytes_at("l2")),
        least_bytes=float(part.bytes_at("hbm")),
        simulated_bytes=simulation.total_bytes,
        closed_form_bytes=closed_form,
        predicted_bytes=predicted,
    )


def run_all(progress: Callable[[int, int], None] | None = None) -> tuple[OrderResult, ...]:
    """All cases, in order."""
    entries = cases()
    results = []
    for i, case in enumerate(entries):
        results.append(run(case))
        if progress is not None:
            progress(i + 1, len(entries))
    return tuple(results)
