"""How an algorithm is laid over a memory hierarchy: kernels, loop nests, tiles. No machine.

This is the *mapping* of Timeloop, and the group partition (grid loops) and stream partition
(sequential loops) of FlashAttention on a Napkin, section 2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop over one axis in tiles of `tile`; a grid loop is spread over thread blocks.

    The blocks of a `mesh` loop are devices: it is a grid loop that names the axis of the mesh, and
    its tile is the shard that a device has, the largest of `ranks` where these are uneven.
    """

    axis: str
    """The axis of the algorithm that it runs over."""
    tile: Number
    """Elements of the axis that one pass takes."""
    grid: bool = False
    """Whether its passes are thread blocks instead of one after another."""
    mesh: str | None = None
    """The mesh axis that the loop is spread over; None within a device."""
    ranks: Number = 1
    """Devices of that mesh axis: the trips of a mesh loop."""


@dataclass(frozen=True)
class Kernel:
    """Fused steps under one loop nest: mesh loops, grid loops, then the others."""

    name: str
    """Name of the kernel in its schedule."""
    steps: tuple[str, ...]
    """The algorithm's steps that it fuses."""
    nest: tuple[Loop, ...]
    """Its loops, outermost first. An axis without a loop is held whole."""
    first_pass: Mapping[str, str] = field(default_factory=dict)
    """Tensor to the loop axis on whose first pass alone it is touched."""
    atomic: frozenset[str] = frozenset()
    """Outputs that are added to in memory where a grid loop reduces them; any other such output
    leaves one partial result for each slice."""
    zeroed: frozenset[str] = frozenset()
    """Outputs that are read back on every pass, the first included."""
    spill: Mapping[str, str] = field(default_factory=dict)
    """Output that is rewritten, to the element role that it has until its last write."""
    registers: frozenset[str] = frozenset()
    """Operands and results in registers or tensor memory, which never cross the shared-memory
    boundary."""
    staged: frozenset[str] = frozenset()
    """Outputs that leave through shared memory."""
    operand_tile: tuple[Number, Number] | None = None
    """(rows, columns) of output that share one fetch of their operands: the warp tile of a
    register-fed matrix instruction, the instruction's own shape where it reads shared memory."""
    combines: tuple[str, ...] = ()
    """Partial results of an earlier kernel that it combines; it then has no steps."""
    weights: frozenset[str] = frozenset()
    """Those of `combines` that are exponential weights."""
    clears: tuple[str, ...] = ()
    """Tensors that it sets to zero for a later kernel to add to."""
    row_passes: Number = 2
    """Times that a row streamed for its normaliser goes by: 2, or 3 where maximum and sum are
    taken apart."""
    stages: Number = 2
    """Buffers in shared memory of each tensor that streams through it."""
    threads: Number = 128
    """Threads of a block."""
    masked: bool = True
    """Whether it skips the tiles that the algorithm's mask hides."""

    def __post_init__(self) -> None:
        grid = [loop.grid for loop in self.nest]
        if grid != sorted(grid, reverse=True):
            raise ProblemError(f"kernel {self.name}: grid loops must stand outside all others")
        across = [loop.mesh is not None for loop in self.nest]
        named = [loop.mesh for loop in self.mesh]
        if across != sorted(across, reverse=True) or not all(loop.grid for loop in self.mesh):
            raise ProblemError(f"kernel {self.name}: mesh loops are the outermost of the grid")
        if len(set(named)) < len(named):
            raise ProblemError(f"kernel {self.name} is split twice over one mesh axis")

    @property
    def mesh(self) -> tuple[Loop, ...]:
        """The loops over devices, outermost first."""
        return tuple(loop for loop in self.nest if loop.mesh is not None)

    def in_registers(self, step: str, operand: str) -> bool:
        """Whether a step takes an operand from registers; `registers` may name "step.operand"."""
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
    """What is computed."""
    kernels: tuple[Kernel, ...]
    """The kernels, in launch order."""

    def __post_init__(self) -> None:
        placed = [step for kernel in self.kernels for step in kernel.steps]
        for step in self.algorithm.steps:
            if placed.count(step.name) != 1:
                times = placed.count(step.name)
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
        """Tensors that a kernel takes from memory: its inputs that it does not itself make."""
        steps = [self.algorithm.step(name) for name in kernel.steps]
        made = {name for step in steps for name in step.outputs}
        return tuple(dict.fromkeys(n for step in steps for n in step.inputs if n not in made))

    def writes(self, kernel: Kernel) -> tuple[str, ...]:
        """Tensors that a kernel leaves in memory: final outputs and what later kernels read."""
        steps = [self.algorithm.step(name) for name in kernel.steps]
        made = dict.fromkeys(name for step in steps for name in step.outputs)
        later = {n for other in self.kernels if other is not kernel for n in self.reads(other)}
        return tuple(name for name in made if name in later or name in self.algorithm.outputs)
