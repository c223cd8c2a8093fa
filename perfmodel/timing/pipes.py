"""Seconds of each pipe of the busiest compute unit, and how the pipes overlap."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number, ceil_div, product
from perfmodel.count import KernelCost, rule
from perfmodel.frozen import dataclass
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.occupancy import Residency


@dataclass(frozen=True)
class Balance:
    """How evenly a grid's work is spread over the units, in blocks of mean length."""

    share: np.ndarray
    """Work on the busiest unit."""
    longest: np.ndarray
    """Length of the longest block."""


def balance(cost: KernelCost, where: Residency, *, longest_first: bool) -> Balance:
    """The balance of a grid whose blocks start in order, the longest of a head first or last."""
    share = busiest_share(cost, where, longest_first=longest_first)
    return Balance(share, longest_share(cost))


def per_unit_seconds(total: Number, rate: Number, grid: Number, share: np.ndarray) -> np.ndarray:
    """Seconds of the busiest unit: its share of blocks times one block's work over the rate.

    `share` includes wave quantisation: of t blocks on p units the busiest has ⌈t/p⌉, so the device
    works at t / (⌈t/p⌉·p) of its rate (NVIDIA Matmul Background User's Guide).
    """
    return np.asarray(total / grid * share / rate, dtype=np.float64)


def vector_slots(machine: Machine, vector_ops: Number, integer_ops: Number) -> np.ndarray:
    """Vector-unit slots that floating-point and integer instructions need together.

    The largest of three: floating-point on their lanes, integer on theirs, both through the
    schedulers. The result is in operations at the vector rate.
    """
    rate = machine.vector_ops_per_unit
    integer = integer_ops * (rate / machine.integer_per_unit)
    issued = (vector_ops + integer_ops) * (rate / machine.issue_per_unit)
    return np.asarray(np.maximum(vector_ops, np.maximum(integer, issued)))


def issue_lanes(machine: Machine, constants: Constants) -> float:
    """Lanes that a unit's schedulers issue to in a clock; 0 where it is not documented."""
    has_lanes = machine.architecture.issue_lanes and "lanes" not in constants.off
    return machine.issue_per_unit / machine.clock_hz if has_lanes else 0.0


def awake_share(machine: Machine, constants: Constants, threads: Number) -> np.ndarray:
    """Share of a unit's lanes that `threads` resident threads can use.

    Lanes belong to schedulers, a quarter of a unit to each since Volta, and a warp belongs to one
    scheduler. Two warps alone leave half of the matrix and vector lanes idle (Volta white paper,
    streaming multiprocessor).
    """
    return np.asarray(np.minimum(threads / max(issue_lanes(machine, constants), 1.0), 1.0))


def busiest_share(cost: KernelCost, where: Residency, *, longest_first: bool) -> np.ndarray:
    """Work on the busiest unit, in mean blocks: ⌈t/p⌉ where blocks are equal."""
    visits, mask = cost.nest.visits, cost.nest.mask
    if visits is None or mask is None:
        return np.asarray(where.busiest)
    longest = longest_share(cost)
    axis = mask.key if by_keys(cost.nest) else mask.query
    rows = ceil_div(np.asarray(cost.nest.sizes[axis]), cost.nest.tile(axis))
    first_rows = rows / where.active_units if longest_first else None
    excess = beyond_even(longest, where.concurrent, first_rows)
    mean = np.asarray(cost.blocks, dtype=np.float64) / where.active_units
    return np.asarray(np.maximum(np.minimum(where.busiest * longest, mean + excess), longest))


def beyond_even(uneven: Number, resident: Number, rows_per_unit: Number | None) -> np.ndarray:
    """Work of the busiest unit beyond an even share, in mean blocks, under a mask.

    λ = `uneven` is the longest block over the mean one. Units take blocks in launch order, all rows
    of a head before the next head. When the last block starts, a running block has E[l²] / 2E[l]
    left on average (the inspection paradox).

    Where rows start in order (`rows_per_unit` None), the last block is a longest one. It ends λ −
    E[l²] / 2E[l]² later than an even share would. Lengths spread evenly about their mean have E[l²]
    / E[l]² = 1 + (λ − 1)² / 3. Resident blocks share a unit's rate, so less of the remaining work
    is done meanwhile.

    Where the longest rows of a head start first, `rows_per_unit` is the rows of a head over the
    units. The blocks that start last are then short, and shorter the more rows a head has. In the
    backward pass rows are tiles of keys, and the first keys are seen by the most queries. Tests
    simulate both orders.
    """
    rest = (1.0 + (np.asarray(uneven) - 1.0) ** 2 / 3.0) / 2.0
    if rows_per_unit is None:
        return np.asarray(uneven - rest / resident)
    return np.asarray((uneven - rest) / (1.0 + rows_per_unit))


def by_keys(nest: rule.Nest) -> bool:
    """Whether a block is one tile of keys and streams queries, as in the backward pass."""
    loops = nest.kernel.loops(nest.mask.key) if nest.mask is not None else ()
    return bool(loops) and loops[-1].grid


def longest_share(cost: KernelCost) -> np.ndarray:
    """Work of the longest block in mean blocks: 1 without a mask."""
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
    """max + (1 − overlap) × the rest: 0 adds all times, 1 leaves the longest.

    FlashAttention-1 and simple kernels are near 0, warp-specialised ping-pong kernels near one
    half. Software-pipelined kernels with two query tiles hide most (FlashAttention-3 section 3.2,
    -4 section 3.1).
    """
    total = sum(times[1:], start=times[0])
    longest = times[0]
    for time in times[1:]:
        longest = np.maximum(longest, time)
    return np.asarray(longest + (1.0 - overlap) * (total - longest))


def together(times: list[np.ndarray], power: float) -> np.ndarray:
    """p-norm of overlapping resources: near the largest where one dominates, more where two tie.

    A plain maximum misses the loss where two resources are equally busy.
    """
    top = times[0]
    for time in times[1:]:
        top = np.maximum(top, time)
    scale = np.where(top > 0, top, 1.0)
    total = sum((np.power(time / scale, power) for time in times), start=np.zeros(()))
    return np.where(top > 0, scale * np.power(total, 1.0 / power), 0.0)
