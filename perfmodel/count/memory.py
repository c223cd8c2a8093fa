"""Device memory of a training step: tensors and workspace of the forward and backward passes.

A tensor that both passes touch is one allocation, so tensors count once by name. An output that
takes several passes to finish also has a workspace of its own, in its unfinished type (fp32 where
its own is narrower). The two passes do not overlap, so the larger of their workspaces counts.
"""

from __future__ import annotations

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number, maximum, product, where
from perfmodel.count import rule
from perfmodel.count.cost import Elements, to_bytes
from perfmodel.schedules.schedule import Kernel, Schedule


def training_memory_bytes(
    forward: Schedule,
    backward: Schedule,
    sizes: rule.Sizes,
    elements: Elements,
    *,
    copies: tuple[str, ...] = (),
) -> Number:
    """Bytes of all tensors that two schedules touch, of their workspace, and of second copies.

    `copies` names tensors that the framework holds twice, such as gradients packed into the single
    array that the projection before them needs.
    """
    table: dict[str, Tensor] = {}
    for schedule in (forward, backward):
        for kernel in schedule.kernels:
            for name in (*schedule.reads(kernel), *schedule.writes(kernel)):
                table.setdefault(name, schedule.algorithm.tensors[name])
    pool = [*table.values(), *(table[name] for name in copies)]
    tensors = sum(to_bytes(rule.size(sizes, t), elements[t.element]) for t in pool)
    spaces = [workspace_bytes(schedule, sizes, elements) for schedule in (forward, backward)]
    return tensors + maximum(*spaces)


def workspace_bytes(schedule: Schedule, sizes: rule.Sizes, elements: Elements) -> Number:
    """Bytes of the unfinished outputs of a schedule; 0 where one pass finishes them."""
    total: Number = 0
    for kernel in schedule.kernels:
        nest = rule.nest(schedule, kernel, sizes)
        for name in schedule.writes(kernel):
            tensor = schedule.algorithm.tensors[name]
            spill = elements[kernel.spill.get(name, tensor.element)]
            sequential, parts = _passes(schedule, nest.kernel, nest, tensor)
            full = rule.size(nest.sizes, tensor)
            if name not in kernel.atomic:
                total = total + where(parts > 1, to_bytes(parts * full, spill), 0)
            elif spill != elements[tensor.element]:
                total = total + where(parts > 1, to_bytes(full, spill), 0)
            if spill != elements[tensor.element]:
                total = total + where(sequential > 1, to_bytes(full, spill), 0)
    return total


def _passes(
    schedule: Schedule, kernel: Kernel, nest: rule.Nest, tensor: Tensor
) -> tuple[Number, Number]:
    """How often sequential loops return to an output, and how many grid slices share it."""
    outer = rule.outside(kernel, tensor)
    counts = []
    for grid in (False, True):
        axes = rule.reduced_outside(schedule, kernel, tensor, grid=grid)
        loops = {axis: tuple(x for x in outer[axis] if x.grid is grid) for axis in axes}
        counts.append(product(nest.trips(axis, found) for axis, found in loops.items()))
    return counts[0], counts[1]
