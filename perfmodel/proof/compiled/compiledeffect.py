"""A prediction with the binary's registers, shared memory and instructions in place of the model's.

The model derives registers and shared memory from the schedule (tiles in registers, buffers in
shared memory) and counts the algorithm's operations. The binary gives the real values: its
registers and shared memory set the occupancy, and its instructions, register spills included, set
each pipe's busy cycles. The values come from the table of compile facts, or from the compiler where
the table lacks them. The rest of the prediction does not change.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.count import KernelCost, count
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import Device
from perfmodel.operators import find
from perfmodel.operators.library import LibraryOperator
from perfmodel.predict import predict
from perfmodel.prediction import Prediction
from perfmodel.proof import registry
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.compiled import DoesNotFit, compile_kernel
from perfmodel.proof.compiled.compilefacts import UNFIT, LaunchFacts
from perfmodel.proof.compiled.targets import allocated_registers, target_of
from perfmodel.proof.kernel import BundledKernel
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.kernel import KernelTime, Slots, time_kernel
from perfmodel.timing.libraries import resolve
from perfmodel.timing.machine import Machine, machine
from perfmodel.timing.occupancy import addressing_registers
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Code, Style

_IMPLEMENTATION = "triton"
_HARNESS = "cuda_graph"


@dataclass(frozen=True)
class KernelEffect:
    """One kernel of the schedule, as the model counts it (`assumed`) and as compiled."""

    kernel: str
    """The kernel."""
    assumed_registers: float
    """Registers of a thread, as counted."""
    registers: float
    """As compiled."""
    assumed_shared_bytes: float
    """Bytes of shared memory of a block, as counted."""
    shared_bytes: float
    """As compiled."""
    spill_bytes: float
    """Spilled bytes of a thread."""
    assumed_blocks: float
    """Blocks that a unit holds, as counted."""
    blocks: float
    """As compiled."""
    assumed_seconds: float
    """Predicted time, as counted."""
    seconds: float
    """As compiled."""


@dataclass(frozen=True)
class Effect:
    """All kernels together; `ratio` is the compiled prediction over the assumed one."""

    device: str
    """Slug of the device."""
    target: str
    """What was compiled for."""
    kernels: tuple[KernelEffect, ...]
    """Its kernels, in launch order."""

    @property
    def assumed_seconds(self) -> float:
        """Predicted seconds with the model's footprints, summed over kernels."""
        return sum(item.assumed_seconds for item in self.kernels)

    @property
    def seconds(self) -> float:
        """Predicted seconds with the binaries' footprints, summed over kernels."""
        return sum(item.seconds for item in self.kernels)

    @property
    def ratio(self) -> float:
        """`seconds` over `assumed_seconds`; NaN where the assumed footprints do not fit the
        device."""
        fits = math.isfinite(self.assumed_seconds)
        return self.seconds / self.assumed_seconds if fits else math.nan


def binaries(facts: Sequence[LaunchFacts]) -> dict[str, LaunchFacts]:
    """The binary of each kernel of the schedule, by the kernel's name; registers as allocated.

    Where several launches carry out one kernel, the largest footprint counts and their instructions
    are added.
    """
    table: dict[str, LaunchFacts] = {}
    for fact in facts:
        binary = replace(fact, registers=allocated_registers(fact.registers))
        last = table.get(fact.launch)
        if last is not None:
            pipes = {**binary.cycles, **last.cycles}
            cycles = {p: binary.cycles.get(p, 0.0) + last.cycles.get(p, 0.0) for p in pipes}
            largest = {name: max(getattr(binary, name), getattr(last, name)) for name in _FOOTPRINT}
            binary = replace(binary, cycles=cycles, **largest)
        table[fact.launch] = binary
    return table


_FOOTPRINT = ("registers", "shared_bytes", "threads", "spill_bytes")


def facts_of(
    kernel: BundledKernel, problem: Any, config: Any, device: Device
) -> tuple[LaunchFacts, ...]:
    """The facts of every launch, from the table or else from the compiler.

    Raises `DoesNotFit` where a block wants more than the target has, `ProblemError` for a device
    without a compile target, and what `compile_kernel` raises.
    """
    target = target_of(device)
    facts = compilefacts.table().of(kernel, problem, config, target)
    if facts is None:
        return compile_kernel(kernel, problem, config, target).facts()
    for fact in facts:
        if fact.status == UNFIT:
            raise DoesNotFit(fact.reason)
        if fact.reason:
            raise ProblemError(fact.reason)
    return facts


def effect(
    problem: Any,
    device: Device,
    kernel: BundledKernel,
    config: Any,
    *,
    facts: Sequence[LaunchFacts] | None = None,
    constants: Constants | None = None,
) -> Effect:
    """Predicted times of `kernel` as counted and as compiled; a launch without `facts` keeps the
    count.

    Raises `ProblemError` for a device without a compile target or a footprint that cannot fit, and
    what `facts_of` raises.
    """
    table = binaries(facts_of(kernel, problem, config, device) if facts is None else facts)
    values, chip = constants or default(), machine(device)
    schedule = kernel.schedule(problem, config)
    cost = count(schedule, problem.sizes(), problem.elements())
    style = _style(problem, chip, values, kernel, config)
    effects = []
    names = {launch.kernel for launch in kernel.launches(problem, config)}
    for part in cost.kernels:
        if part.name not in names:  # a kernel that this problem does not launch
            continue
        elements = problem.elements()
        assumed = time_kernel(chip, values, schedule, part, elements, style)
        binary, compiled = table.get(part.name), assumed
        if binary is not None:
            real = with_footprint(part, binary)
            slots = Slots(binary.cycles, binary.flops_per_pass, binary.looped)
            compiled = time_kernel(chip, values, schedule, real, elements, style, slots)
        effects.append(_kernel_effect(part, binary, assumed, compiled))
    if not all(np.isfinite(item.seconds) for item in effects):
        raise ProblemError(f"{kernel.name} with {config} does not fit on {device.slug}")
    return Effect(device.slug, target_of(device).name, tuple(effects))


def with_footprint(cost: KernelCost, binary: LaunchFacts) -> KernelCost:
    """`cost` with the registers and shared memory that the compiler really used."""
    threads = float(cost.nest.kernel.threads)
    registers = 4.0 * (binary.registers * binary.threads - addressing_registers(cost) * threads)
    return replace(
        cost,
        shared_footprint_bytes=float(binary.shared_bytes),
        register_footprint_bytes=registers,
    )


def _kernel_effect(
    cost: KernelCost, binary: LaunchFacts | None, assumed: KernelTime, compiled: KernelTime
) -> KernelEffect:
    """The effect on one kernel; where its binary is not known, its values are the counted ones."""
    threads = float(cost.nest.kernel.threads)
    registers = float(cost.register_footprint_bytes) / 4 / threads + addressing_registers(cost)
    shared = float(cost.shared_footprint_bytes)
    return KernelEffect(
        kernel=cost.name,
        assumed_registers=registers,
        registers=registers if binary is None else float(binary.registers),
        assumed_shared_bytes=shared,
        shared_bytes=shared if binary is None else float(binary.shared_bytes),
        spill_bytes=0.0 if binary is None else float(binary.spill_bytes),
        assumed_blocks=float(assumed.occupancy),
        blocks=float(compiled.occupancy),
        assumed_seconds=float(assumed.seconds),
        seconds=float(compiled.seconds),
    )


@dataclass(frozen=True)
class Forecast:
    """Predicted seconds of a bundled kernel, launch latency included."""

    assumed_seconds: float
    """As counted."""
    low_seconds: float
    """Lower end of its range."""
    high_seconds: float
    """Upper end of it."""
    seconds: float | None
    """As compiled; None where the table of compile facts lacks the binary."""


def forecast(problem: Any, device: Device, kernel: BundledKernel, config: Any) -> Forecast:
    """The predicted time of `kernel` with `config` in a captured graph; nothing is compiled.

    Raises `ProblemError` for what does not fit or no model covers.
    """
    prediction = predict(problem, device, implementation=_IMPLEMENTATION, harness=_HARNESS)
    facts = compilefacts.table().of(kernel, problem, config, target_of(device))
    change = effect(problem, device, kernel, config, facts=facts or ())
    launch = prediction.terms["launch"]
    seconds = launch + change.assumed_seconds
    return Forecast(
        seconds,
        seconds * prediction.low_seconds / prediction.seconds,
        seconds * prediction.high_seconds / prediction.seconds,
        launch + change.seconds if facts else None,
    )


def _style(
    problem: Any, chip: Machine, constants: Constants, kernel: BundledKernel, config: Any
) -> Style:
    """How a bundled kernel of the operator uses the machine."""
    operator = find(getattr(problem, "operator", ""))
    if not isinstance(operator, LibraryOperator):
        code = Code(vector_share=constants["vector_share"])
        return Style(compute="fp32", overlap=1.0, code=code)
    implementation, _ = resolve(operator.name, kernel.style_like, problem.dtype, chip)
    style = operator.style(problem, implementation, Setting(chip, constants))
    if not kernel.overlaps(config):
        return style
    persistent = style.persistent or bool(getattr(config, "persistent", None))
    return replace(style, persistent=persistent, turns=replace(style.turns, alone=False))


def compiled_prediction(problem: Any, device: Device, found: Prediction) -> Prediction:
    """A prediction with the binary's footprint and instructions in place of the assumed ones.

    The device time is scaled by the ratio (compiled over assumed) of the nearest bundled kernel;
    the assumptions state the change. Raises `ProblemError` for an operator without a bundled kernel
    and what `compile_kernel` raises where no config fits.
    """
    name, names = bundled_for(problem, found.tile)
    kernel = registry.kernel(name)
    menu = kernel.menu(problem, target_of(device).name, int(device.units))
    refusal: PerfmodelError | None = None
    for config in nearest(menu, found.tile, names):
        try:
            change = effect(problem, device, kernel, config)
        except DoesNotFit as error:
            refusal = error
            continue
        return _shifted_prediction(found, change, name)
    raise refusal or ProblemError(f"no config of {name} fits on {device.slug}")


def _shifted_prediction(prediction: Prediction, change: Effect, kernel: str) -> Prediction:
    device_seconds = prediction.seconds - prediction.terms["launch"]
    ratio = change.ratio
    seconds = change.seconds if math.isnan(ratio) else device_seconds * ratio
    scale = (prediction.terms["launch"] + seconds) / prediction.seconds
    lines = [_resources_line(kernel, change.target, item) for item in change.kernels]
    note = f"compiled code moves the prediction by {scale - 1:+.1%}"
    return replace(
        prediction,
        seconds=prediction.seconds * scale,
        low_seconds=prediction.low_seconds * scale,
        high_seconds=prediction.high_seconds * scale,
        assumptions=(*prediction.assumptions, *lines, note),
    )


def _resources_line(kernel: str, target: str, item: KernelEffect) -> str:
    """One line: the resources of one kernel's binary beside the assumed ones."""
    spills = f", {item.spill_bytes:.0f} B spilled a thread" if item.spill_bytes else ""
    return (
        f"{kernel} for {target}: {item.kernel} takes {item.registers:.0f} registers and "
        f"{item.shared_bytes / 1024:.0f} KiB (assumed {item.assumed_registers:.0f} and "
        f"{item.assumed_shared_bytes / 1024:.0f}), {item.blocks:.0f} blocks a unit "
        f"(assumed {item.assumed_blocks:.0f}){spills}"
    )


Bundled = tuple[str, tuple[str, str]]


def _product(problem: Any, tile: Mapping[str, float]) -> Bundled:
    weights = problem.dtype in ("w8a16", "w4a16")
    split = "matmul-split-k" if tile.get("slices", 1) > 1 else "matmul"
    return f"matmul-{problem.dtype}" if weights else split, ("bm", "bn")


def _attention(problem: Any, tile: Mapping[str, float]) -> Bundled | None:
    forward = "attention-decode" if "splits" in tile else "attention-tiled"
    names = {"fwd": forward, "bwd": "attention-backward"}
    return (names[problem.direction], ("br", "bc")) if problem.direction in names else None


def _rows(problem: Any, tile: Mapping[str, float]) -> Bundled:
    return f"{problem.op}{'-backward' if problem.direction == 'bwd' else ''}", ("rows", "warps")


_BUNDLED: Mapping[str, Callable[[Any, Mapping[str, float]], Bundled | None]] = {
    "gemm": _product,
    "attention": _attention,
    "softmax": _rows,
    "layernorm": _rows,
    "rmsnorm": _rows,
}


def bundled_for(problem: Any, tile: Mapping[str, float]) -> Bundled:
    """The bundled kernel that carries out what `predict` chose, and its config's two tile fields.

    `tile` is a prediction's. Raises `ProblemError` for operators that no bundled kernel does alone.
    """
    finder = _BUNDLED.get(getattr(problem, "operator", ""))
    match = finder and finder(problem, tile)
    if match:
        return match
    raise ProblemError("no bundled kernel does this operator alone; name one to perfmodel compile")


def nearest(
    configs: Sequence[Any], tile: Mapping[str, float], names: tuple[str, str]
) -> tuple[Any, ...]:
    """The configs, nearest tile first; the distance to the prediction's tile is in octaves."""
    aim = list(tile.values())[:2]

    def distance(config: Any) -> float:
        sizes = [float(getattr(config, name)) for name in names]
        return sum(abs(math.log2(a / b)) for a, b in zip(sizes, aim, strict=False) if a and b)

    return tuple(sorted(configs, key=distance))
