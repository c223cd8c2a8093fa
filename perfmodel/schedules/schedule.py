"""How an algorithm is mapped onto a memory hierarchy: kernels, loop nests, tiles. No device.

This is the *mapping* of Timeloop, and the group partition (grid loops) and stream partition
(sequential loops) of FlashAttention on a Napkin, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass


@dataclass(frozen=True)
class Loop:
    """A loop over one axis in tiles of `tile`; a grid loop is spread over thread blocks.

    A `mesh` loop is a grid loop whose blocks are devices. `mesh` names the mesh axis, and `tile` is
    the largest shard of the `ranks` devices.
    """

    axis: str
    """The axis."""
    tile: Number
    """Extent of one trip."""
    grid: bool = False
    """Whether its trips are spread over thread blocks."""
    mesh: str | None = None
    """The mesh axis that the loop is spread over; None within a device."""
    ranks: Number = 1
    """Devices of the mesh axis: the trips of a mesh loop."""
    trips: Number | None = None
    """Trips, on average, over an axis whose extent is the mean of uneven ones: its ragged ends are
    many. None: the extent over the tile, rounded up."""


@dataclass(frozen=True)
class Kernel:
    """Fused steps under one loop nest. An axis without a loop is held whole."""

    name: str
    """Name of the kernel within its schedule."""
    steps: tuple[str, ...]
    """Steps of the algorithm that it carries out, in order."""
    nest: tuple[Loop, ...]
    """Its loops, outermost first: mesh loops, grid loops, then sequential ones."""
    first_pass: Mapping[str, str] = field(default_factory=dict)
    """Tensors that are touched only on the first pass of a loop, with the axis of that loop."""
    atomic: frozenset[str] = frozenset()
    """Outputs that blocks add to in memory when a grid loop reduces them. Any other such output
    leaves a partial result for each slice."""
    zeroed: frozenset[str] = frozenset()
    """Outputs that are read back on every pass, the first included."""
    spill: Mapping[str, str] = field(default_factory=dict)
    """Outputs that are rewritten, with their element role before the last write."""
    within: frozenset[str] = frozenset()
    """Inputs that are part of another input's tile, which brings them along: values that are the
    first columns of the keys."""
    registers: frozenset[str] = frozenset()
    """Operands and results in registers or tensor memory: they never cross the shared-memory
    boundary."""
    staged: frozenset[str] = frozenset()
    """Outputs that are written through shared memory."""
    operand_tile: tuple[Number, Number] | None = None
    """Rows and columns of output that share one fetch of their operands: the warp tile of a
    register-fed matrix instruction, the instruction's own shape where it reads shared memory."""
    combines: tuple[str, ...] = ()
    """Partial results of an earlier kernel that this kernel, which has no steps, adds up."""
    weights: frozenset[str] = frozenset()
    """The entries of `combines` that are exponential weights."""
    clears: tuple[str, ...] = ()
    """Tensors that it sets to zero for a later kernel to add to."""
    row_passes: Number = 2
    """Passes over a row that is streamed for its normaliser: 2, or 3 where maximum and sum are
    separate."""
    stages: Number = 2
    """Buffers of a streamed tensor on chip."""
    threads: Number = 128
    """Threads of a block."""
    masked: bool = True
    """Whether it skips tiles that the algorithm's mask hides."""

    def __post_init__(self) -> None:
        grid = [loop.grid for loop in self.nest]
        if grid != sorted(grid, reverse=True):
            raise ProblemError(f"kernel {self.name}: grid loops must stand outside all others")
        is_mesh = [loop.mesh is not None for loop in self.nest]
        names = [loop.mesh for loop in self.mesh]
        if is_mesh != sorted(is_mesh, reverse=True) or not all(loop.grid for loop in self.mesh):
            raise ProblemError(f"kernel {self.name}: mesh loops are the outermost of the grid")
        if len(set(names)) < len(names):
            raise ProblemError(f"kernel {self.name} is split twice over one mesh axis")

    @property
    def mesh(self) -> tuple[Loop, ...]:
        """The loops over devices, outermost first."""
        return tuple(loop for loop in self.nest if loop.mesh is not None)

    def in_registers(self, step: str, operand: str) -> bool:
        """Whether a step reads an operand from registers; entries of `registers` may be
        "step.operand"."""
        return operand in self.registers or f"{step}.{operand}" in self.registers

    def loops(self, axis: str) -> tuple[Loop, ...]:
        """The loops over an axis, outermost first."""
        return tuple(loop for loop in self.nest if loop.axis == axis)


@dataclass(frozen=True)
class Schedule:
    """The kernels that carry out an algorithm, in launch order.

    Raises `ProblemError` where a step is in no kernel or in two, or a loop names an unknown axis.
    """

    name: str
    """Name of the schedule."""
    algorithm: Algorithm
    """The algorithm."""
    kernels: tuple[Kernel, ...]
    """Its kernels, in launch order."""

    def __post_init__(self) -> None:
        steps = [step for kernel in self.kernels for step in kernel.steps]
        for step in self.algorithm.steps:
            if steps.count(step.name) != 1:
                times = steps.count(step.name)
                raise ProblemError(f"schedule {self.name}: step {step.name} is in {times} kernels")
        for kernel in self.kernels:
            for name in kernel.steps:
                self.algorithm.step(name)
            for loop in kernel.nest:
                if loop.axis not in self.algorithm.axes:
                    raise ProblemError(
                        f"kernel {kernel.name} loops over no known axis {loop.axis!r}"
                    )

    def reads(self, kernel: Kernel) -> tuple[str, ...]:
        """Tensors that a kernel reads from memory: its inputs that it does not make itself."""
        steps = [self.algorithm.step(name) for name in kernel.steps]
        outputs = {name for step in steps for name in step.outputs}
        return tuple(dict.fromkeys(n for step in steps for n in step.inputs if n not in outputs))

    def writes(self, kernel: Kernel) -> tuple[str, ...]:
        """Tensors that a kernel writes to memory: final outputs, and those that later kernels
        read."""
        steps = [self.algorithm.step(name) for name in kernel.steps]
        outputs = dict.fromkeys(name for step in steps for name in step.outputs)
        inputs = {n for other in self.kernels if other is not kernel for n in self.reads(other)}
        return tuple(name for name in outputs if name in inputs or name in self.algorithm.outputs)
