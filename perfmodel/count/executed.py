"""Operations as the units carry them out: whole tiles, masked lanes and padding included.

`Cost` counts what the algorithm asks for, ragged ends exact. A matrix instruction works on whole
tiles, so the time model needs the same counts with every extent rounded up to its tiles.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from perfmodel.arithmetic import Number, ceil_div, is_symbolic, wide
from perfmodel.count import rule
from perfmodel.count.band import Visits
from perfmodel.count.cost import KernelCost, operations
from perfmodel.schedules.schedule import Schedule

# Head dimensions that attention kernels are built for; others are padded to the next
# (FlashAttention-2 and -3 dispatch tables). Beyond the last, whole 64s.
_HEAD_DIMS = np.array([32, 64, 96, 128, 192, 256])


@dataclass(frozen=True, slots=True)
class Executed:
    """Operations on the matrix, vector and special-function units, padding included."""

    matrix_flops: Number
    vector_ops: Number
    special_ops: Number


def executed(schedule: Schedule, cost: KernelCost, *, whole_tiles: bool = True) -> Executed:
    """The kernel's operations with every extent rounded up to whole tiles."""
    if not cost.nest.kernel.steps or not whole_tiles:
        return Executed(cost.matrix_flops, cost.vector_ops, cost.special_ops)
    return Executed(*operations(schedule, cost.nest.kernel, padded(cost.nest)))


def padded(nest: rule.Nest) -> rule.Nest:
    """The nest with extents rounded up: to trips × tile, to a built head dimension, or to 16."""
    sizes = dict(nest.sizes)
    for axis, extent in nest.sizes.items():
        loops = nest.kernel.loops(axis)
        if loops:
            sizes[axis] = nest.trips(axis, loops) * loops[-1].tile
        elif axis in ("d", "e") and not is_symbolic(extent):
            sizes[axis] = head_dim(extent)
    visits = nest.visits
    if visits is not None and nest.mask is not None:
        rows = nest.kernel.loops(nest.mask.query)
        keys = nest.kernel.loops(nest.mask.key)
        br = wide(rows[-1].tile) if rows else nest.sizes[nest.mask.query]
        bc = wide(keys[-1].tile) if keys else nest.sizes[nest.mask.key]
        pairs = visits.pairs
        whole = Visits(pairs, pairs * br, pairs * bc, pairs * br * bc, 0, 0, 0, 0)
        return replace(nest, sizes=sizes, visits=whole)
    return replace(nest, sizes=sizes)


def head_dim(extent: Number) -> Number:
    """The head dimension that a kernel is built for: the next of the menu."""
    extents = np.asarray(extent)
    index = np.searchsorted(_HEAD_DIMS, extents)
    built = np.where(
        index < len(_HEAD_DIMS),
        _HEAD_DIMS[np.minimum(index, len(_HEAD_DIMS) - 1)],
        ceil_div(extents, 64) * 64,
    )
    return built if isinstance(extent, np.ndarray) else int(built)
