"""From a nest to a kernel that a device can run: legal tiles, registers, threads, buffers, style.

Tiles are multiples of the least common multiple of the hardware's units: the matrix instruction's
shape, and 128-byte lines along the contiguous axis of a tensor (FlashAttention on a Napkin, section
4.3; CUDA C++ Programming Guide, device memory accesses).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import lcm
from typing import Any

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm, Step
from perfmodel.count import KernelCost, rule
from perfmodel.count.cost import Elements, count_kernel, footprint
from perfmodel.errors import ProblemError
from perfmodel.napkin.nests import Nest, product_of, schedule
from perfmodel.napkin.tiles import combined
from perfmodel.schedules.schedule import Kernel, Loop, Schedule
from perfmodel.timing import attention_style, matmul
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import usual
from perfmodel.timing.machine import Machine
from perfmodel.timing.menu import GROUP
from perfmodel.timing.occupancy import ADDRESSING_REGISTERS
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Code, Style

LINE_BYTES = 128
# Registers of a thread for tiles; the rest of the 255 are for addresses and indices.
_TILE_REGISTERS = 200
_ADDRESSING_BYTES = 4 * ADDRESSING_REGISTERS
_MOST_THREADS = 1024
_STEPS = np.array([1, 2, 3, 4, 6, 8, 12, 16])
_POWERS = 2 ** np.arange(9)
_WIDEST = 256  # longest tile edge of a matrix kernel
_ROWS = np.array([1, 2, 4, 8, 16, 32, 64, 128])
_LINES = np.array([1, 2, 4, 8, 16, 32, 64])
LARGEST_TILE = 64 * int(_LINES[-1])
"""Longest tile of an axis, and longest side of several axes together: longer extents have equal
menus."""


@dataclass(frozen=True)
class Target:
    """A device and the fitted constants, which a kernel's shape and time depend on."""

    machine: Machine
    """The device."""
    constants: Constants
    """Constants of the time model."""
    dtype: str
    """Type of the data."""

    @property
    def compute(self) -> str:
        """Type that contractions run at: the data's, or the nearest wider type of the device."""
        types = self.machine.device.matrix_types
        return next((t for t in (self.dtype, "bf16", "fp16", "tf32") if t in types), "fp32")

    @property
    def shared_bytes(self) -> float:
        """On-chip memory of a block: shared memory, or a unit's share of the last cache where there
        is none."""
        chip = self.machine
        if chip.device.shared_max_per_block_bytes is not None:
            return chip.shared_per_block
        if not chip.l2_capacity:
            raise ProblemError(f"{chip.device.slug} states no on-chip memory to tile for")
        return chip.l2_capacity / chip.units

    @property
    def chip_bytes(self) -> float:
        """All on-chip memory of a block: `shared_bytes`, plus registers where the spec has them."""
        registers = self.machine.device.registers
        return self.shared_bytes + (4.0 * registers if registers else 0.0)

    @property
    def rows_of_instruction(self) -> int:
        """Output rows of one matrix instruction: 16 (mma), 64 (wgmma), 128 (tcgen05)."""
        return self.machine.architecture.rows

    @property
    def shape(self) -> tuple[object, ...]:
        """All numbers of the device on which tiles and their counts depend."""
        chip = self.machine
        copies = chip.architecture.copies
        return self.rows_of_instruction, copies, self.shared_bytes, chip.registers_bytes

    def operand_tile(self) -> tuple[int, int]:
        """Rows and columns of output that share one operand fetch."""
        return (64, 64) if self.rows_of_instruction == 16 else (self.rows_of_instruction, 128)

    def style(self, fused: Algorithm) -> Style:
        """The style of a kernel of these steps."""
        setting, steps = Setting(self.machine, self.constants), fused.steps
        contractions = sum(step.kind == "contraction" for step in steps)
        # Products run as in the device's usual library, fused chains of products as in the newest
        # attention kernels.
        if contractions > 1:
            newest = usual("attention", "bf16", self.machine)
            return attention_style.chained(newest, self.compute, setting)
        if contractions == 1:
            return matmul.products(usual("gemm", self.compute, self.machine), self.compute, setting)
        return Style(
            compute=self.compute,
            overlap=self.constants["pipelined_overlap"],
            code=Code(vector_share=self.constants["vector_share"]),
            persistent=self.machine.architecture.copies == "tensor",
        )


@dataclass(frozen=True)
class Held:
    """What a block holds, for arrays of tiles, or of problems and tiles."""

    stages: np.ndarray
    """Buffers of a stream: as many as fit in half of shared memory, in all of it with tensor
    copies."""
    threads: np.ndarray
    """Threads."""
    shared_bytes: np.ndarray
    """Bytes in shared memory."""
    register_bytes: np.ndarray
    """Bytes in registers, without addresses."""

    def at(self, fits: np.ndarray) -> Held:
        """What it holds for the tiles that fit for some of the problems, shape (problems,
        tiles)."""
        arrays = (self.stages, self.threads, self.shared_bytes, self.register_bytes)
        some = fits.any(axis=0)
        return Held(*(np.broadcast_to(each, fits.shape)[:, some] for each in arrays))


@dataclass(frozen=True)
class Layout:
    """A nest's kernel on a target, for arrays of legal tiles."""

    fused: Algorithm
    """The steps that are fused, as an algorithm."""
    nest: Nest
    """The loop nest."""
    target: Target
    """The device and the constants."""
    sizes: Mapping[str, Any]
    """Extent of each axis: a number, or a column of several problems with the same legal tiles."""
    elements: Elements
    """Element type of each role."""

    @cached_property
    def least(self) -> Mapping[str, int]:
        """The extents of the smallest problem, which stands for all where tiles are chosen."""
        return {axis: int(np.min(size)) for axis, size in self.sizes.items()}

    @cached_property
    def contractions(self) -> tuple[Step, ...]:
        """Steps that run on the matrix unit."""
        return tuple(step for step in self.fused.steps if step.kind == "contraction")

    @cached_property
    def roles(self) -> tuple[tuple[tuple[str, ...], int], ...]:
        """Rows, columns and summed axes of every contraction, and the number that must divide their
        product.

        Axes spread one index at a time and axes of extent 1 are left out.
        """
        multiples: dict[tuple[str, ...], int] = {}
        for step in self.contractions:
            first, second = (set(self.fused.tensors[name].axes) for name in step.inputs)
            live = [
                axis
                for axis in self.fused.step_axes(step)
                if self.least[axis] > 1 and axis not in self.nest.single
            ]
            rows = tuple(a for a in live if a in first and a not in step.reduces)
            columns = tuple(a for a in live if a in second - first and a not in step.reduces)
            summed = tuple(a for a in live if a in step.reduces)
            shapes = ((rows, self.target.rows_of_instruction), (columns, 16), (summed, 16))
            for axes, multiple in shapes:
                multiples[axes] = lcm(multiples.get(axes, 1), multiple)
        return tuple((axes, multiple) for axes, multiple in multiples.items() if axes)

    def granule(self, axis: str) -> int:
        """Number of which tiles of an axis must be multiples."""
        multiples = [multiple for axes, multiple in self.roles if axes == (axis,)]
        for name in self.fused.inputs if self.contractions else ():
            tensor = self.fused.tensors[name]
            if len(tensor.axes) > 1 and tensor.axes[-1] == axis:
                # Scales lie apart: of an element of 8.25 bits, 8 are in the line.
                bits = 2 ** int(np.log2(max(float(self.elements[tensor.element].bits), 4.0)))
                multiples.append(int(8 * LINE_BYTES // bits))
        return lcm(*multiples) if multiples else 1

    def menu(self, axis: str) -> np.ndarray:
        """Legal tiles of an axis below its extent."""
        extent = self.least[axis]
        single = not any(axis in axes and len(axes) > 1 for axes, _ in self.roles)
        if self.contractions:
            grain = self.granule(axis)
            tiles = grain * (_STEPS if single else _POWERS)
            tiles = tiles[tiles <= max(_WIDEST, grain)]
        elif any(t.axes and t.axes[-1] == axis for t in self.fused.tensors.values()):
            tiles = 64 * _LINES
        else:
            tiles = _ROWS
        # A few heads or taps are taken singly or all at once.
        tiles = np.array([1]) if extent <= 16 else tiles
        return tiles[tiles < extent].astype(np.int64)

    def tiles(self) -> dict[str, np.ndarray] | None:
        """All combinations of legal tiles; None where there are none.

        Several axes that form one side of an instruction fill it together.
        """
        menus = {axis: self.menu(axis) for axis in self.nest.tiled}
        if any(not len(menu) for menu in menus.values()):
            return None
        tiles = combined(menus)
        for axes, multiple in self.roles:
            if len(axes) > 1 and any(axis in tiles for axis in axes):
                side = product_of([tiles.get(axis, self.least[axis]) for axis in axes])
                keep = (side % multiple == 0) & (side <= LARGEST_TILE)  # summed axes included
                tiles = {axis: values[keep] for axis, values in tiles.items()}
        return tiles if all(len(values) for values in tiles.values()) else None

    @cached_property
    def _options(self) -> dict[str, Any]:
        """Options of the kernel that do not depend on its tiles."""
        outputs = {n for step in self.fused.steps for n in step.outputs}
        operands = [step.inputs for step in self.contractions]
        registers = set()
        for pair in operands:
            inner = [n for n in pair if n in outputs and n not in self.fused.outputs]
            registers |= set(inner[:1])
        return {
            "registers": frozenset(registers),
            "operand_tile": self.target.operand_tile() if self.contractions else None,
        }

    def contents(self, tiles: Mapping[str, Any]) -> Held:
        """What blocks of these tiles hold, whatever the order of the streamed axes."""
        trial = self._swizzle(tiles, stages=1)
        kernel, machine = trial.kernels[0], self.target.machine
        single, registers = self._footprint(kernel, trial)
        double, _ = self._footprint(replace(kernel, stages=2), trial)
        stage_bytes = np.asarray(double, dtype=np.float64) - np.asarray(single, dtype=np.float64)
        room = self.target.shared_bytes / (1 if machine.architecture.copies == "tensor" else 2)
        stages = np.clip((room - single) // np.maximum(stage_bytes, 1.0) + 1, 2, 6)
        tile_bytes = 128 * 4 * _TILE_REGISTERS
        threads = 128 * np.clip(-(-np.asarray(registers) // tile_bytes), 1, _MOST_THREADS // 128)
        return Held(stages, threads, single + (stages - 1) * stage_bytes, registers)

    def schedule(self, tiles: Mapping[str, Any], contents: Held | None = None) -> Schedule:
        """The kernel with the buffers and threads that its tiles need."""
        contents = contents or self.contents(tiles)
        return self._swizzle(tiles, stages=contents.stages, threads=contents.threads)

    def _swizzle(self, tiles: Mapping[str, Any], **options: Any) -> Schedule:
        base = schedule(self.fused, self.nest, tiles, **self._options, **options)
        kernel = base.kernels[0]
        axes = [axis for axis in self.nest.grid if axis in tiles]
        if len(axes) < 2:
            return base
        rows, columns = axes[-2:]
        grid = [loop for loop in kernel.nest if loop.grid and loop.axis not in (rows, columns)]
        loops = (
            *grid,
            Loop(rows, GROUP * np.asarray(tiles[rows]), grid=True),
            Loop(columns, tiles[columns], grid=True),
            Loop(rows, tiles[rows], grid=True),
            *(loop for loop in kernel.nest if not loop.grid),
        )
        return replace(base, kernels=(replace(kernel, nest=loops), *base.kernels[1:]))

    def _footprint(self, kernel: Kernel, draft: Schedule) -> tuple[Any, Any]:
        base = rule.Nest(kernel, self.sizes, None, None)
        return footprint(draft, kernel, base, self.elements)

    def fits(self, contents: Held) -> np.ndarray:
        """Whether shared memory and registers of a block suffice, for each tile."""
        room = np.minimum(self.target.machine.registers_bytes, contents.threads * 4 * 255)
        registers = contents.register_bytes + _ADDRESSING_BYTES * contents.threads
        shared = contents.shared_bytes <= self.target.shared_bytes
        return np.asarray(shared & (registers <= room))

    def shortage(self, contents: Held) -> tuple[str, float, float]:
        """(constraint, least need of any tile, capacity) where nothing fits."""
        shared, registers = (
            float(np.min(contents.shared_bytes)),
            float(np.min(contents.register_bytes)),
        )
        if shared > self.target.shared_bytes:
            return "shared memory of a block", shared, self.target.shared_bytes
        need = registers + _ADDRESSING_BYTES * 128
        return "registers of a block", need, self.target.machine.registers_bytes

    def count(
        self, tiles: Mapping[str, Any], contents: Held | None = None
    ) -> tuple[Schedule, KernelCost]:
        """The schedule and its counts for arrays of tiles."""
        plan = self.schedule(tiles, contents)
        return plan, count_kernel(plan, plan.kernels[0], self.sizes, self.elements)

    def counted(self, tiles: Mapping[str, Any], elements: Elements) -> KernelCost:
        """The counts with other element types; with types of one unit they are in elements."""
        plan = self.schedule(tiles)
        return count_kernel(plan, plan.kernels[0], self.sizes, elements)
