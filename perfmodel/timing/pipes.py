"""Seconds that each unit of the busiest compute unit needs, and how they overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.arithmetic import Number, ceil_div, product
from perfmodel.count import KernelCost, rule
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.occupancy import Residency


@dataclass(frozen=True)
class Balance:
    """How evenly a grid's work lies on the units, in blocks of mean length."""

    share: np.ndarray
    """Work of the busiest unit."""
    longest: np.ndarray
    """Length of the longest block."""


def balance(cost: KernelCost, where: Residency, *, longest_first: bool) -> Balance:
    """The balance of a grid whose blocks start in order, a head's longest first or last."""
    share = busiest_share(cost, where, longest_first=longest_first)
    return Balance(share, longest_share(cost))


def per_unit_seconds(total: Number, rate: Number, grid: Number, share: np.ndarray) -> np.ndarray:
    """Seconds for the busiest unit: its share of blocks times one block's work over the rate.

    Wave quantisation is in `share`: with t blocks on p units the busiest does ⌈t/p⌉ of them, so the
    machine works at t / (⌈t/p⌉·p) of its rate (NVIDIA Matmul Background User's Guide).
    """
    return np.asarray(total / grid * share / rate, dtype=np.float64)


def vector_slots(machine: Machine, vector_ops: Number, integer_ops: Number) -> np.ndarray:
    """Slots of the vector unit that floating-point and integer instructions take together.

    The longest of three: the first on their lanes, the second on theirs, both through the
    schedulers. In operations of the vector rate.
    """
    rate = machine.vector_ops_per_unit
    integer = integer_ops * (rate / machine.integer_per_unit)
    issued = (vector_ops + integer_ops) * (rate / machine.issue_per_unit)
    return np.asarray(np.maximum(vector_ops, np.maximum(integer, issued)))


def issue_lanes(machine: Machine, constants: Constants) -> float:
    """Threads that a unit's schedulers issue to in a clock; 0 where that is not documented."""
    known = machine.architecture.issue_lanes and "lanes" not in constants.off
    return machine.issue_per_unit / machine.clock_hz if known else 0.0


def awake_share(machine: Machine, constants: Constants, threads: Number) -> np.ndarray:
    """Share of a unit's lanes that `threads` resident ones keep awake.

    Lanes belong to schedulers, a quarter of a unit to each since Volta, and a warp to one of them:
    two warps by themselves leave half of the matrix and vector lanes with nothing to issue (Volta
    white paper, streaming multiprocessor).
    """
    return np.asarray(np.minimum(threads / max(issue_lanes(machine, constants), 1.0), 1.0))


def busiest_share(cost: KernelCost, where: Residency, *, longest_first: bool) -> np.ndarray:
    """Mean blocks' worth of work on the busiest unit: ⌈t/p⌉ where blocks are equal.

    The last slice of an axis may be short: one of the busiest unit's blocks has a whole one.
    """
    visits, mask = cost.nest.visits, cost.nest.mask
    if visits is None or mask is None:
        return np.asarray(where.busiest + whole_slice(cost.nest) - 1.0)
    uneven = longest_share(cost)
    axis = mask.key if by_keys(cost.nest) else mask.query
    rows = ceil_div(np.asarray(cost.nest.sizes[axis]), cost.nest.tile(axis))
    resident = np.clip(where.busiest, 1.0, np.maximum(where.blocks_per_unit, 1.0))
    beyond = beyond_even(uneven, resident, rows / where.active_units if longest_first else None)
    even = np.asarray(cost.blocks, dtype=np.float64) / where.active_units
    return np.asarray(np.maximum(np.minimum(where.busiest * uneven, even + beyond), uneven))


def whole_extents(nest: rule.Nest) -> dict[str, Number]:
    """Extent of a whole block over the mean one's, by the axes that a grid cuts."""
    found: dict[str, Number] = {}
    for axis in dict.fromkeys(loop.axis for loop in nest.kernel.nest if loop.grid):
        grid = tuple(loop for loop in nest.kernel.loops(axis) if loop.grid)
        found[axis] = nest.block_extent(axis) * (nest.trips(axis, grid) / nest.sizes[axis])
    return found


def whole_block(nest: rule.Nest) -> Number:
    """Work of a block of whole tiles over the mean one's, along axes that the grid alone cuts.

    Ragged ends leave the blocks at them less to do, and the busiest unit has another one.
    """
    streamed = {loop.axis for loop in nest.kernel.nest if not loop.grid}
    cut = whole_extents(nest)
    return product([1.0, *(times for axis, times in cut.items() if axis not in streamed)])


def whole_slice(nest: rule.Nest) -> Number:
    """Steps of a whole slice over the mean one's, for axes that a grid cuts and a block streams."""
    times: list[Number] = [1.0]
    for axis in dict.fromkeys(loop.axis for loop in nest.kernel.nest if not loop.grid):
        grid = tuple(loop for loop in nest.kernel.loops(axis) if loop.grid)
        if grid:
            step = nest.tile(axis)
            slices = ceil_div(nest.sizes[axis], grid[-1].tile)
            steps = ceil_div(nest.sizes[axis], step)
            times.append(ceil_div(nest.block_extent(axis), step) * (slices / steps))
    return product(times)


def beyond_even(uneven: Number, resident: Number, rows_per_unit: Number | None) -> np.ndarray:
    """Mean blocks' worth that the busiest unit does beyond an even share, where a mask makes the
    longest block `uneven` = λ mean ones.

    Units take blocks in launch order, all rows of a head before those of the next. When the last
    block starts, what a unit runs has E[l²] / 2E[l] left on average (the inspection paradox).

    Where rows start in order, the last is a longest one: it ends λ − E[l²] / 2E[l]² later than an
    even share would. Lengths spread evenly about their mean have E[l²] / E[l]² = 1 + (λ − 1)² / 3.
    Resident blocks of a unit share its rate, so that less of what is left is done meanwhile.

    `rows_per_unit`, the rows of a head over the units, is given where a head's longest rows start
    first. What starts last is then short, and shorter the more rows a head has. In the backward
    pass rows are tiles of keys, and the first are seen by the most queries. Tests simulate both.
    """
    left = (1.0 + (np.asarray(uneven) - 1.0) ** 2 / 3.0) / 2.0
    if rows_per_unit is None:
        return np.asarray(uneven - left / resident)
    return np.asarray((uneven - left) / (1.0 + rows_per_unit))


def by_keys(nest: rule.Nest) -> bool:
    """Whether a block is one tile of keys that streams queries, as in the backward pass."""
    loops = nest.kernel.loops(nest.mask.key) if nest.mask is not None else ()
    return bool(loops) and loops[-1].grid


def longest_share(cost: KernelCost) -> np.ndarray:
    """Mean blocks' worth of work in the longest block: 1 without a mask."""
    nest, visits = cost.nest, cost.nest.visits
    if visits is None or nest.mask is None:
        return np.ones(())
    tiles = np.asarray(cost.passes, dtype=np.float64) / cost.blocks
    if by_keys(nest):
        axis, most = nest.mask.query, visits.most_queries
        others = {loop.axis for loop in nest.kernel.nest if not loop.grid} - {axis}
        tiles = tiles / product([nest.trips(name, nest.kernel.loops(name)) for name in others])
    else:
        axis, most = nest.mask.key, visits.most_keys
    most = np.minimum(most, nest.block_extent(axis))
    longest = np.ceil(np.asarray(most, dtype=np.float64) / nest.tile(axis))
    return np.asarray(np.maximum(longest / np.maximum(tiles, 1e-9), 1.0))


def overlapped(times: list[np.ndarray], overlap: Number) -> np.ndarray:
    """max + (1 − overlap) × the rest: 0 runs the units one after another, 1 hides all but one.

    FlashAttention-1 and simple kernels lie near 0, warp-specialised ping-pong kernels hide about
    half, software-pipelined ones with two query tiles most (FlashAttention-3 section 3.2, -4
    section 3.1).
    """
    total = sum(times[1:], start=times[0])
    longest = times[0]
    for time in times[1:]:
        longest = np.maximum(longest, time)
    return np.asarray(longest + (1.0 - overlap) * (total - longest))


def together(times: list[np.ndarray], power: float) -> np.ndarray:
    """p-norm of resources that overlap: the largest where one dominates, more where two tie.

    A plain maximum misses what is lost when two resources are equally busy.
    """
    top = times[0]
    for time in times[1:]:
        top = np.maximum(top, time)
    safe = np.where(top > 0, top, 1.0)
    total = sum((np.power(time / safe, power) for time in times), start=np.zeros(()))
    return np.where(top > 0, safe * np.power(total, 1.0 / power), 0.0)
