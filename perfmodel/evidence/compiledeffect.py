"""What a prediction becomes with the real registers and shared memory in place of the counted ones.

The model assumes a footprint from the schedule: tiles in registers and buffers in shared memory.
The compiler decides otherwise, and occupancy follows. The rest of the prediction stays as it is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import KernelCost, count
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.evidence import registry
from perfmodel.evidence.compiled import (
    CompiledKernel,
    CompiledLaunch,
    DoesNotFit,
    compile_kernel,
)
from perfmodel.evidence.kernel import BundledKernel
from perfmodel.evidence.targets import allocated_registers, target_of
from perfmodel.hardware import Device
from perfmodel.predict import Prediction
from perfmodel.timing import attention_style, matmul, rowwise
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import resolve
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.kernel import KernelTime, Style, time_kernel
from perfmodel.timing.machine import Machine, machine

# What `perfmodel.timing.occupancy` adds to a thread's registers of tiles, in registers.
_ADDRESSING_REGISTERS = 40


@dataclass(frozen=True)
class Footprint:
    """What one block really takes: registers of a thread as allocated, bytes of shared memory."""

    registers: int
    shared_bytes: int
    threads: int


@dataclass(frozen=True)
class KernelEffect:
    """One kernel of the schedule: footprints, blocks per unit and seconds, counted and compiled."""

    kernel: str
    assumed_registers: float
    registers: float
    assumed_shared_bytes: float
    shared_bytes: float
    assumed_blocks: float
    blocks: float
    assumed_seconds: float
    seconds: float


@dataclass(frozen=True)
class Effect:
    """All kernels together; `ratio` is the compiled prediction over the assumed one."""

    device: str
    target: str
    kernels: tuple[KernelEffect, ...]

    @property
    def assumed_seconds(self) -> float:
        """With the counted footprints."""
        return sum(item.assumed_seconds for item in self.kernels)

    @property
    def seconds(self) -> float:
        """With the compiled footprints."""
        return sum(item.seconds for item in self.kernels)

    @property
    def ratio(self) -> float:
        """How far the compiled footprints move the prediction; NaN where the counted do not fit."""
        fits = math.isfinite(self.assumed_seconds)
        return self.seconds / self.assumed_seconds if fits else math.nan


def compiled_style(compiled: CompiledKernel) -> dict[str, Footprint]:
    """Footprint by the schedule's kernel; where several launches carry one out, the largest."""
    found: dict[str, Footprint] = {}
    for launch in compiled.launches:
        mine = _footprint(launch)
        last = found.get(launch.kernel, mine)
        found[launch.kernel] = Footprint(
            max(mine.registers, last.registers),
            max(mine.shared_bytes, last.shared_bytes),
            max(mine.threads, last.threads),
        )
    return found


def _footprint(launch: CompiledLaunch) -> Footprint:
    registers = allocated_registers(launch.registers, launch.target.warp_size)
    return Footprint(registers, launch.shared_bytes, launch.threads)


def effect(
    problem: Any,
    device: Device,
    kernel: BundledKernel,
    config: Any,
    *,
    compiled: CompiledKernel | None = None,
    constants: Constants | None = None,
) -> Effect:
    """Time `kernel` with counted and with compiled footprints.

    Raises `ProblemError` for a device without a compile target or a footprint that cannot fit, and
    what `compile_kernel` raises.
    """
    made = compiled or compile_kernel(kernel, problem, config, target_of(device))
    values, here = constants or default(), machine(device)
    schedule = kernel.schedule(problem, config)
    cost = count(schedule, problem.sizes(), problem.elements())
    style = _style(problem, here, values)
    footprints = compiled_style(made)
    found = []
    for counted in cost.kernels:
        footprint = footprints.get(counted.name)
        if footprint is None:  # a combination that this problem does not need
            continue
        real = with_footprint(counted, footprint)
        times = [
            time_kernel(here, values, schedule, item, problem.elements(), style)
            for item in (counted, real)
        ]
        found.append(_compared(counted, footprint, times))
    if not all(np.isfinite(item.seconds) for item in found):
        raise ProblemError(f"{kernel.name} with {config} does not fit on {device.slug}")
    return Effect(device.slug, made.target.name, tuple(found))


def with_footprint(cost: KernelCost, footprint: Footprint) -> KernelCost:
    """`cost` with the registers and shared memory that the compiler really used."""
    threads = float(cost.nest.kernel.threads)
    registers = 4.0 * (footprint.registers * footprint.threads - _ADDRESSING_REGISTERS * threads)
    return replace(
        cost,
        shared_footprint_bytes=float(footprint.shared_bytes),
        register_footprint_bytes=registers,
    )


def _compared(cost: KernelCost, footprint: Footprint, times: list[KernelTime]) -> KernelEffect:
    threads = float(cost.nest.kernel.threads)
    assumed, real = times
    return KernelEffect(
        kernel=cost.name,
        assumed_registers=float(cost.register_footprint_bytes) / 4 / threads
        + _ADDRESSING_REGISTERS,
        registers=float(footprint.registers),
        assumed_shared_bytes=float(cost.shared_footprint_bytes),
        shared_bytes=float(footprint.shared_bytes),
        assumed_blocks=float(assumed.occupancy),
        blocks=float(real.occupancy),
        assumed_seconds=float(assumed.seconds),
        seconds=float(real.seconds),
    )


def _style(problem: Any, here: Machine, constants: Constants) -> Style:
    """How Triton's kernels of the operator use the machine."""
    if isinstance(problem, Attention):
        chosen, _ = resolve("attention", "triton", problem.dtype, here)
        return attention_style.style(problem, chosen, here, constants, Circumstances())
    if isinstance(problem, Matmul):
        chosen, _ = resolve("gemm", "triton", problem.dtype, here)
        return matmul.plan(problem, chosen, here, constants, Circumstances()).parts[0].style
    if isinstance(problem, Rowwise):
        chosen, _ = resolve(problem.op, "triton", problem.dtype, here)
        return rowwise.plan(problem, chosen, here, constants, Circumstances()).parts[0].style
    return Style(compute="fp32", overlap=1.0, vector_share=constants["vector_share"])


def compiled_prediction(problem: Any, device: Device, found: Prediction) -> Prediction:
    """A prediction with the binary's registers and shared memory in place of the assumed ones.

    The device time moves by the ratio of the nearest bundled kernel timed both ways; what moved it
    is said in the assumptions. Raises `ProblemError` for an operator without a bundled kernel and
    what `compile_kernel` raises where no config fits.
    """
    name, names = bundled_for(problem, found.tile)
    kernel = registry.kernel(name)
    menu = kernel.menu(problem, target_of(device).name, int(device.units))
    refused: PerfmodelError | None = None
    for config in nearest(menu, found.tile, names):
        try:
            moved = effect(problem, device, kernel, config)
        except DoesNotFit as error:
            refused = error
            continue
        return _moved(found, moved, name)
    raise refused or ProblemError(f"no config of {name} fits on {device.slug}")


def _moved(found: Prediction, moved: Effect, kernel: str) -> Prediction:
    device_seconds = found.seconds - found.terms["launch"]
    ratio = moved.ratio
    seconds = moved.seconds if math.isnan(ratio) else device_seconds * ratio
    scale = (found.terms["launch"] + seconds) / found.seconds
    said = [
        f"{kernel} for {moved.target}: {item.kernel} takes {item.registers:.0f} registers and "
        f"{item.shared_bytes / 1024:.0f} KiB (assumed {item.assumed_registers:.0f} and "
        f"{item.assumed_shared_bytes / 1024:.0f}), {item.blocks:.0f} blocks a unit "
        f"(assumed {item.assumed_blocks:.0f})"
        for item in moved.kernels
    ]
    changed = f"compiled footprints move the prediction by {scale - 1:+.1%}"
    return replace(
        found,
        seconds=found.seconds * scale,
        low_seconds=found.low_seconds * scale,
        high_seconds=found.high_seconds * scale,
        assumptions=(*found.assumptions, *said, changed),
    )


def as_rows(found: Effect) -> list[Mapping[str, Any]]:
    """Plain values for a table, a row per kernel."""
    return [
        {"device": found.device, "target": found.target, **vars(item)} for item in found.kernels
    ]


def bundled_for(problem: Any, tile: Mapping[str, float]) -> tuple[str, tuple[str, str]]:
    """The bundled kernel that carries out what `predict` chose, and its config's two tile fields.

    `tile` is a prediction's. Raises `ProblemError` for operators that no bundled kernel does alone.
    """
    if isinstance(problem, Matmul):
        weights = problem.dtype in ("w8a16", "w4a16")
        split = "matmul-split-k" if tile.get("slices", 1) > 1 else "matmul"
        return f"matmul-{problem.dtype}" if weights else split, ("bm", "bn")
    if isinstance(problem, Attention) and problem.direction in ("fwd", "bwd"):
        backward = problem.direction == "bwd"
        forward = "attention-decode" if "splits" in tile else "attention-tiled"
        return "attention-backward" if backward else forward, ("br", "bc")
    if isinstance(problem, Rowwise) and problem.op in ("softmax", "layernorm", "rmsnorm"):
        return f"{problem.op}{'-backward' if problem.direction == 'bwd' else ''}", ("rows", "warps")
    raise ProblemError("no bundled kernel does this operator alone; name one to perfmodel compile")


def nearest(
    configs: Sequence[Any], tile: Mapping[str, float], names: tuple[str, str]
) -> tuple[Any, ...]:
    """The configs, those first whose tile comes nearest to a prediction's (in octaves)."""
    wanted = list(tile.values())[:2]

    def distance(config: Any) -> float:
        sizes = [float(getattr(config, name)) for name in names]
        return sum(abs(math.log2(a / b)) for a, b in zip(sizes, wanted, strict=False) if a and b)

    return tuple(sorted(configs, key=distance))
