"""Operations that the units execute: whole tiles, with masked lanes and padding.

`Cost` counts the algorithm's operations with exact ragged ends. A matrix instruction works on whole
tiles, so the time model needs the same counts with every extent rounded up to its tiles.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

import numpy as np

from perfmodel.arithmetic import Number, ceil_div, is_symbolic, wide
from perfmodel.count import rule
from perfmodel.count.band import Visits
from perfmodel.count.cost import KernelCost, operations
from perfmodel.frozen import dataclass
from perfmodel.schedules.schedule import Schedule

Extents = Mapping[str, tuple[int, ...]]
"""Extents that a kernel was compiled for, ascending, by axis. Others are padded to the next."""
_ANY: Extents = MappingProxyType({})


@dataclass(frozen=True)
class Executed:
    """Operations that units execute, padding included."""

    matrix_flops: Number
    """Operations on the matrix unit; a multiply-add is two."""
    vector_ops: Number
    """Operations on the vector unit."""
    special_ops: Number
    """Operations on the special-function unit."""


def executed(
    schedule: Schedule,
    cost: KernelCost,
    compiled_for: Extents = _ANY,
    *,
    whole_tiles: bool = True,
) -> Executed:
    """The kernel's operations with every extent rounded up to whole tiles.

    An axis without a loop is rounded up to the extent that the kernel was `compiled_for`; without
    an entry there it is not rounded.
    """
    if not cost.nest.kernel.steps or not whole_tiles:
        return Executed(cost.matrix_flops, cost.vector_ops, cost.special_ops)
    return Executed(*operations(schedule, cost.nest.kernel, padded(cost.nest, compiled_for)))


def padded(nest: rule.Nest, compiled_for: Extents = _ANY) -> rule.Nest:
    """The nest with extents rounded up: to trips × tile, or to what the kernel was compiled for."""
    sizes = dict(nest.sizes)
    for axis, extent in nest.sizes.items():
        loops = nest.kernel.loops(axis)
        if loops:
            sizes[axis] = nest.trips(axis, loops) * loops[-1].tile
        elif axis in compiled_for and not is_symbolic(extent):
            sizes[axis] = next_extent(extent, compiled_for[axis])
    visits = nest.visits
    if visits is not None and nest.mask is not None:
        rows = nest.kernel.loops(nest.mask.query)
        keys = nest.kernel.loops(nest.mask.key)
        br = wide(rows[-1].tile) if rows else nest.sizes[nest.mask.query]
        bc = wide(keys[-1].tile) if keys else nest.sizes[nest.mask.key]
        pairs = visits.pairs
        full = Visits(pairs, pairs * br, pairs * bc, pairs * br * bc, 0, 0, 0, 0)
        return replace(nest, sizes=sizes, visits=full)
    return replace(nest, sizes=sizes)


def next_extent(extent: Number, menu: tuple[int, ...]) -> Number:
    """The smallest entry of a menu that is at least `extent`; beyond the last, multiples of the
    first. Without a menu nothing is padded."""
    if not menu:
        return extent
    extents, entries = np.asarray(extent), np.array(menu)
    index = np.searchsorted(entries, extents)
    nearest = np.where(
        index < len(entries),
        entries[np.minimum(index, len(entries) - 1)],
        ceil_div(extents, menu[0]) * menu[0],
    )
    return nearest if isinstance(extent, np.ndarray) else int(nearest)
