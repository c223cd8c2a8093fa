"""Cost: operations per unit, bytes per tensor across each boundary, footprint. No seconds.

Boundaries, from the device inwards: `hbm` (the minimum: each tensor once per kernel that touches
it, less what a mask hides), `l2` (bytes between the L2 and the thread blocks, by the counting rule)
and `shared` (operands that the matrix unit fetches from shared memory).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number, is_symbolic, maximum, product, where
from perfmodel.count import rule
from perfmodel.elements import ElementType
from perfmodel.frozen import dataclass
from perfmodel.schedules.schedule import Kernel, Schedule

Elements = Mapping[str, ElementType]


@dataclass(frozen=True)
class Traffic:
    """Bytes of one tensor across one boundary."""

    read_bytes: Number = 0
    """Bytes read."""
    write_bytes: Number = 0
    """Bytes written."""
    atomic_bytes: Number = 0
    """Payload of atomic additions; each one reads and writes it."""

    @property
    def total_bytes(self) -> Number:
        """All bytes that cross, in both directions."""
        return self.read_bytes + self.write_bytes + 2 * self.atomic_bytes


@dataclass(frozen=True)
class KernelCost:
    """Counts of one kernel, over the visited pairs of a mask, with exact ragged ends."""

    name: str
    """Name of the kernel."""
    nest: rule.Nest
    """Its loops with their sizes."""
    blocks: Number
    """Thread blocks."""
    passes: Number
    """Tile iterations of all blocks."""
    matrix_flops: Number
    """Operations on the matrix unit; a multiply-add is two."""
    vector_ops: Number
    """Operations on the vector unit."""
    special_ops: Number
    """Operations on the special-function unit."""
    l2: Mapping[str, Traffic]
    """Traffic of each tensor between L2 and thread blocks."""
    hbm: Mapping[str, Traffic]
    """Least traffic of each tensor between memory and the L2."""
    shared_bytes: Number
    """Bytes from shared memory to the matrix unit."""
    shared_footprint_bytes: Number
    """Bytes of shared memory that one block holds at once."""
    register_footprint_bytes: Number
    """Bytes of registers that one block holds at once."""
    row_passes: Number = 1
    """Number of times that all passes are made: above 1 for a normaliser that is known only after
    the whole row."""

    def bytes_at(self, boundary: str) -> Number:
        """Total bytes at `hbm`, `l2` or `shared`."""
        if boundary == "shared":
            return self.shared_bytes
        table = self.hbm if boundary == "hbm" else self.l2
        return sum(traffic.total_bytes for traffic in table.values())


@dataclass(frozen=True)
class Cost:
    """Counts of a whole schedule, kernel by kernel in launch order."""

    schedule: Schedule
    """The schedule that was counted."""
    kernels: tuple[KernelCost, ...]
    """Counts of each kernel."""
    memory_bytes: Number
    """Bytes of all tensors that lie in memory."""

    def total(self, what: Callable[[KernelCost], Number]) -> Number:
        """Sum of one count over all kernels."""
        return sum(what(kernel) for kernel in self.kernels)

    @property
    def matrix_flops(self) -> Number:
        """Operations on the matrix unit (a multiply-add is two)."""
        return self.total(lambda kernel: kernel.matrix_flops)

    @property
    def vector_ops(self) -> Number:
        """Operations on the vector unit."""
        return self.total(lambda kernel: kernel.vector_ops)

    @property
    def special_ops(self) -> Number:
        """Operations on the special-function unit (exponentials and the like)."""
        return self.total(lambda kernel: kernel.special_ops)

    def bytes_at(self, boundary: str) -> Number:
        """Total bytes at `hbm` (least possible), `l2` or `shared`."""
        return self.total(lambda kernel: kernel.bytes_at(boundary))


def to_bytes(elements: Number, kind: ElementType) -> Number:
    """Elements × bits / 8: an integer where exact, a rational for symbols."""
    if is_symbolic(elements):
        return elements * kind.bits.numerator / (8 * kind.bits.denominator)
    if isinstance(elements, int):
        exact = Fraction(elements) * kind.bits / 8
        return int(exact) if exact.denominator == 1 else float(exact)
    return elements * kind.bytes


def count(schedule: Schedule, sizes: rule.Sizes, elements: Elements) -> Cost:
    """Count a schedule over axis sizes (ints, NumPy arrays or SymPy symbols).

    `elements` maps each tensor role of the algorithm ("data", "kv", "accumulator", ...) to its
    type. Tiles may be arrays too and broadcast against the sizes. With mesh loops the counts are
    those of the device with the largest shard.
    """
    costs = tuple(count_kernel(schedule, kernel, sizes, elements) for kernel in schedule.kernels)
    return Cost(schedule, costs, memory_bytes(schedule, sizes, elements))


def memory_bytes(schedule: Schedule, sizes: rule.Sizes, elements: Elements) -> Number:
    """Device memory of a schedule: every tensor that some kernel reads or writes, once.

    Of a sharded tensor a device holds the largest part that any kernel needs.
    """
    tensors = schedule.algorithm.tensors
    counts: dict[str, Number] = {}
    for kernel in schedule.kernels:
        local = rule.shard(kernel, sizes)[1] if kernel.mesh else sizes
        for name in (*schedule.reads(kernel), *schedule.writes(kernel)):
            if name not in counts or kernel.mesh:
                size = rule.size(local, tensors[name])
                counts[name] = maximum(counts[name], size) if name in counts else size
    return sum(to_bytes(n, elements[tensors[name].element]) for name, n in counts.items())


def count_kernel(
    schedule: Schedule, kernel: Kernel, sizes: rule.Sizes, elements: Elements
) -> KernelCost:
    """Count one kernel of a schedule, as `count` does."""
    if kernel.combines:
        return _count_combine(schedule, kernel, sizes, elements)
    nest = rule.nest(schedule, kernel, sizes)
    kernel, sizes = nest.kernel, nest.sizes
    tensors = schedule.algorithm.tensors
    l2: dict[str, Traffic] = {}
    hbm: dict[str, Traffic] = {}
    row_passes: Number = 1
    for name in schedule.reads(kernel):
        if name in kernel.within:
            l2[name] = hbm[name] = Traffic()
            continue
        kind = elements[tensors[name].element]
        passes = rule.normaliser_passes(schedule, nest, name)
        row_passes = maximum(row_passes, passes)
        l2[name] = Traffic(read_bytes=to_bytes(passes * rule.moved(nest, tensors[name]), kind))
        hbm[name] = Traffic(read_bytes=to_bytes(rule.least(nest, tensors[name]), kind))
    for name in schedule.writes(kernel):
        l2[name] = _output_traffic(schedule, kernel, nest, tensors[name], elements)
        total = rule.size(sizes, tensors[name])
        hbm[name] = Traffic(write_bytes=to_bytes(total, elements[tensors[name].element]))
    for name in kernel.clears:
        total = rule.size(sizes, tensors[name])
        l2[name] = hbm[name] = Traffic(write_bytes=to_bytes(total, elements[tensors[name].element]))
    matrix, vector, special = operations(schedule, kernel, nest)
    shared, registers = footprint(schedule, kernel, nest, elements)
    return KernelCost(
        name=kernel.name,
        nest=nest,
        blocks=rule.blocks(nest),
        passes=_passes(kernel, nest),
        matrix_flops=matrix,
        vector_ops=vector,
        special_ops=special,
        l2=l2,
        hbm=hbm,
        shared_bytes=shared_traffic(schedule, kernel, nest, elements),
        shared_footprint_bytes=shared,
        register_footprint_bytes=registers,
        row_passes=row_passes,
    )


def _output_traffic(
    schedule: Schedule, kernel: Kernel, nest: rule.Nest, tensor: Tensor, elements: Elements
) -> Traffic:
    """Traffic of an output: written once, rewritten on every pass, added atomically, or in partial
    results."""
    final = elements[tensor.element]
    spill = elements[kernel.spill.get(tensor.name, tensor.element)]
    writes, total = rule.moved(nest, tensor), rule.size(nest.sizes, tensor)
    if rule.reduced_outside(schedule, kernel, tensor, grid=True):
        if tensor.name in kernel.atomic:
            return Traffic(atomic_bytes=to_bytes(writes, spill))
        # One slice needs no second kernel: it writes the result in its final type.
        slices = slices_of(schedule, kernel, nest, tensor)
        direct = to_bytes(total, final)
        return Traffic(write_bytes=where(slices == 1, direct, to_bytes(writes, spill)))
    if not rule.reduced_outside(schedule, kernel, tensor, grid=False):
        return Traffic(write_bytes=to_bytes(writes, final))
    # Rows that see no key are written once too, as zeros.
    span = rule.touched(nest, tensor)
    first = 0 if tensor.name in kernel.zeroed else span
    return Traffic(
        read_bytes=to_bytes(writes - first, spill),
        write_bytes=to_bytes(writes - span, spill) + to_bytes(total, final),
    )


def slices_of(schedule: Schedule, kernel: Kernel, nest: rule.Nest, tensor: Tensor) -> Number:
    """Number of grid slices that share one output: 1 where no grid loop reduces it."""
    axes = rule.reduced_outside(schedule, kernel, tensor, grid=True)
    loops = rule.outside(kernel, tensor)
    return product(
        nest.trips(axis, tuple(loop for loop in loops[axis] if loop.grid)) for axis in axes
    )


def _count_combine(
    schedule: Schedule, kernel: Kernel, sizes: rule.Sizes, elements: Elements
) -> KernelCost:
    """A kernel that adds up partial results of an earlier kernel; all counts are 0 where there is
    one slice."""
    tensors = schedule.algorithm.tensors
    l2: dict[str, Traffic] = {}
    hbm: dict[str, Traffic] = {}
    vector: Number = 0
    special: Number = 0
    for name in kernel.combines:
        maker = next(k for k in schedule.kernels if name in schedule.writes(k) and k is not kernel)
        source = rule.nest(schedule, maker, sizes)
        slices = slices_of(schedule, source.kernel, source, tensors[name])
        parts = rule.moved(source, tensors[name])
        spill = elements[maker.spill.get(name, tensors[name].element)]
        final = elements[tensors[name].element]
        sliced = slices != 1
        traffic = Traffic(
            read_bytes=where(sliced, to_bytes(parts, spill), 0),
            write_bytes=where(sliced, to_bytes(rule.size(source.sizes, tensors[name]), final), 0),
        )
        l2[name] = hbm[name] = traffic
        vector = vector + where(sliced, parts, 0)
        if name in kernel.weights:
            special = special + where(sliced, parts, 0)
    nest = rule.Nest(kernel, sizes, None, None)
    return KernelCost(
        name=kernel.name,
        nest=nest,
        blocks=rule.blocks(nest),
        passes=rule.blocks(nest),
        matrix_flops=0,
        vector_ops=vector,
        special_ops=special,
        l2=l2,
        hbm=hbm,
        shared_bytes=0,
        shared_footprint_bytes=0,
        register_footprint_bytes=0,
    )


def _passes(kernel: Kernel, nest: rule.Nest) -> Number:
    axes = dict.fromkeys(loop.axis for loop in kernel.nest)
    return nest.over((), {axis: kernel.loops(axis) for axis in axes})


def operations(
    schedule: Schedule, kernel: Kernel, nest: rule.Nest
) -> tuple[Number, Number, Number]:
    """(matrix, vector, special) operations of a kernel over its nest's visited pairs."""
    matrix: Number = 0
    vector: Number = 0
    special: Number = 0
    for name in kernel.steps:
        step = schedule.algorithm.step(name)
        n = rule.points(schedule, nest, step)
        if step.kind == "contraction":
            matrix = matrix + 2 * n
        if step.vector:
            vector = vector + step.vector * n
        if step.special:
            special = special + step.special * n
    return matrix, vector + _rescales(schedule, kernel, nest), special


def _rescales(schedule: Schedule, kernel: Kernel, nest: rule.Nest) -> Number:
    """Vector operations that rescale a running output while its normaliser is still streaming.

    When a normalisation runs along a streamed axis, every contraction of the same kernel over that
    axis rescales its accumulator once a pass: one multiply per element. An accumulator that leaves
    the chip on every pass is normalised each time: two rescales and a division (FlashAttention-2,
    section 3.1).
    """
    stream_axes = {loop.axis for loop in kernel.nest if not loop.grid}
    steps = [schedule.algorithm.step(name) for name in kernel.steps]
    axes = {step.along for step in steps if step.kind == "normalisation"} & stream_axes
    work: Number = 0
    for step in steps:
        for axis in axes & set(step.reduces) if step.kind == "contraction" else ():
            tensor = schedule.algorithm.tensors[step.outputs[0]]
            repeats = {str(axis): kernel.loops(str(axis))}
            spills = kernel.loops(str(axis)) and rule.reduced_outside(
                schedule, kernel, tensor, grid=False
            )
            work = work + (3 if spills else 1) * nest.over(tensor.axes, repeats)
    return work


def shared_traffic(
    schedule: Schedule, kernel: Kernel, nest: rule.Nest, elements: Elements
) -> Number:
    """Bytes between shared memory and the matrix unit.

    The counting rule one level down: an instruction (or warp) tile of m × n outputs fetches m·k of
    one operand and n·k of the other. A contraction of P points moves P/n elements of the first and
    P/m of the second (FlashAttention-4, equations 1-3 and 7-10). Operands in registers or tensor
    memory are free. An intermediate that is an operand is written once; a staged output is written
    and read once.
    """
    if kernel.operand_tile is None:
        return 0
    rows, columns = kernel.operand_tile
    tensors = schedule.algorithm.tensors
    inner = {n for name in kernel.steps for n in schedule.algorithm.step(name).outputs}
    total: Number = 0
    for name in kernel.steps:
        step = schedule.algorithm.step(name)
        if step.kind != "contraction":
            continue
        n = rule.points(schedule, nest, step)
        for operand, reuse in zip(step.inputs, (columns, rows), strict=True):
            if kernel.in_registers(name, operand):
                continue
            kind = elements[tensors[operand].element]
            total = total + to_bytes(n, kind) / reuse
            if operand in inner:
                total = total + to_bytes(nest.over(tensors[operand].axes, {}), kind)
    for name in kernel.staged:
        role = kernel.spill.get(name, tensors[name].element)
        total = total + 2 * to_bytes(rule.moved(nest, tensors[name]), elements[role])
    return total


def footprint(
    schedule: Schedule, kernel: Kernel, nest: rule.Nest, elements: Elements
) -> tuple[Number, Number]:
    """Bytes that one block holds in shared memory and in registers: Σ tiles held at once.

    Tiles of streamed inputs count `stages` times. Intermediates, accumulators (as fp32) and the
    tensors listed in `Kernel.registers` are in registers; other inputs are in shared memory. A
    kernel without shared memory (`operand_tile` is None) holds everything in registers.
    """
    tensors = schedule.algorithm.tensors
    stream_axes = {loop.axis for loop in kernel.nest if not loop.grid}
    reads = set(schedule.reads(kernel))
    shared: Number = 0
    registers: Number = 0
    steps = [schedule.algorithm.step(name) for name in kernel.steps]
    names = dict.fromkeys(n for step in steps for n in (*step.inputs, *step.outputs))
    sums = {n for step in steps if step.kind == "contraction" for n in step.outputs}
    operands = {n for step in steps if step.kind == "contraction" for n in step.inputs}
    for name in names:
        if name in kernel.within:
            continue
        tensor = tensors[name]
        tile = product(rule.extents(tensor, nest.allocated))
        kind = elements["accumulator" if name in sums else tensor.element]
        if name in reads and kernel.operand_tile is not None and name not in kernel.registers:
            copies = kernel.stages if stream_axes & set(tensor.axes) else 1
            shared = shared + copies * to_bytes(tile, kind)
        elif name in operands and name not in reads and name not in kernel.registers:
            shared = shared + to_bytes(tile, elements[tensor.element])
            registers = registers + (to_bytes(tile, kind) if name in sums else 0)
        else:
            registers = registers + to_bytes(tile, kind)
    return shared, registers


def as_array(value: Number, shape: tuple[int, ...]) -> np.ndarray:
    """A count as a float64 array of the given shape."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
