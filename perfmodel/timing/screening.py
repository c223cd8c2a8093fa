"""Preselection: which columns of a matmul's menu can be fastest, by fewer terms than the
model's."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.algorithms.matmul import Matmul, is_widened
from perfmodel.arithmetic import Number, as_floats, product
from perfmodel.frozen import dataclass
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import (
    hbm_rate,
    mean_latency,
    port_bytes_per_s,
)
from perfmodel.timing.menu import GROUP, Candidates, slice_k, stages_held, thread_tile
from perfmodel.timing.occupancy import resident_blocks
from perfmodel.timing.pipes import issue_lanes, together
from perfmodel.timing.plan import adding_seconds
from perfmodel.timing.power import power_seconds
from perfmodel.timing.style import Style
from perfmodel.timing.traffic import held_share


@dataclass(frozen=True)
class Grid:
    """The grids of blocks of every column of a menu for every problem.

    Axes: slicing, tile, problem. Most arrays need two of them, which keeps them small. The problem
    axis is the longest and the last, so numpy iterates along it. Single precision chooses as well
    in half the time, where it holds the counts.
    """

    sizes: Mapping[str, np.ndarray]
    """b, m, n and k of each problem."""
    widths: Mapping[str, float]
    """Bytes of an element of `data`, `weights` and `output`."""
    rows: np.ndarray
    """Rows of the tile."""
    columns: np.ndarray
    """Columns of the tile."""
    threads: np.ndarray
    """Threads of a block."""
    depth: Number
    """Extent of a step of k."""
    stages: Number
    """Steps of k that a block holds, the current one included."""
    cuts: np.ndarray
    """Slices of k that are requested."""
    slices: np.ndarray
    """Slices of k that are not empty: each has whole pairs of steps."""
    down: np.ndarray
    """Tiles along m."""
    across: np.ndarray
    """Tiles along n."""

    @cached_property
    def tiles(self) -> np.ndarray:
        """Tiles of the result, batches included."""
        return np.asarray(self.sizes["b"] * self.across * self.down)

    @cached_property
    def held_bytes(self) -> Number:
        """Bytes of shared memory of a block."""
        data, weights = self.widths["data"], self.widths["weights"]
        return (self.rows * data + self.columns * weights) * self.depth * self.stages

    @cached_property
    def input_bytes(self) -> np.ndarray:
        """Bytes of both operands, read once."""
        b, m, n, k = (self.sizes[axis] for axis in "bmnk")
        return np.asarray(b * (m * k * self.widths["data"] + k * n * self.widths["weights"]))

    @cached_property
    def output_bytes(self) -> np.ndarray:
        """Bytes of the result, written once."""
        b, m, n = (self.sizes[axis] for axis in "bmn")
        return np.asarray(b * m * n * self.widths["output"])

    @cached_property
    def asked_bytes(self) -> np.ndarray:
        """Operand bytes that all blocks read: each operand once per tile along the other one."""
        return np.asarray(self.asked_data_bytes + self.asked_weights_bytes)

    @cached_property
    def asked_data_bytes(self) -> np.ndarray:
        """The part of `asked_bytes` that is activations."""
        b, m, _, k = (self.sizes[axis] for axis in "bmnk")
        return np.asarray(b * k * m * self.across * self.widths["data"])

    @cached_property
    def asked_weights_bytes(self) -> np.ndarray:
        """The part of `asked_bytes` that is weights."""
        b, _, n, k = (self.sizes[axis] for axis in "bmnk")
        return np.asarray(b * k * n * self.down * self.widths["weights"])

    def together(self, machine: Machine) -> np.ndarray:
        """Resident blocks of a unit."""
        sums = 4.0 * self.rows * self.columns
        return np.asarray(resident_blocks(machine, self.held_bytes, sums, self.threads))


def grid_of(
    problem: Matmul, menu: Candidates, machine: Machine, depth: Number, stages: int = 0
) -> Grid:
    """The grids of every column of a (1, m) menu; steps of k have extent `depth`, of which a block
    holds at most `stages` (0: as many as fit)."""
    sizes, elements = as_floats(problem.sizes()), problem.elements()
    largest = float(np.max(product(sizes[axis] for axis in "bmnk")))
    # power_seconds has work³ / rate³, which overflows single precision for large problems.
    kind: Any = np.float32 if largest < 1e24 else np.float64
    rows, columns, threads = (
        menu.of_tiles(part).astype(kind) for part in (menu.rows, menu.columns, menu.threads)
    )
    if isinstance(depth, np.ndarray):
        depth = menu.of_tiles(depth).astype(kind)
    flat_sizes = {axis: np.ravel(sizes[axis]).astype(kind) for axis in "bmnk"}
    widths = {name: elements[name].bytes for name in ("data", "weights", "output")}
    cuts = menu.slices[0, : menu.splits].astype(kind)[:, None, None]
    widest = max(widths["data"], widths["weights"])
    down = problem.row_tiles(rows.T)
    return Grid(
        sizes=flat_sizes,
        widths=widths,
        rows=rows,
        columns=columns,
        threads=threads,
        depth=depth,
        stages=stages_held(machine, (rows + columns) * depth * widest, stages),
        cuts=cuts,
        slices=np.ceil(flat_sizes["k"] / slice_k(flat_sizes["k"], cuts, depth)),
        down=np.ceil(flat_sizes["m"] / rows) if down is None else down.T.astype(kind),
        across=np.ceil(flat_sizes["n"] / columns),
    )


def promising(
    problem: Matmul,
    menu: Candidates,
    how: Style,
    machine: Machine,
    constants: Constants,
    depth: Number,
    keep: int,
    sliced_waves: float = np.inf,
    stages: int = 0,
) -> np.ndarray:
    """Columns of the menu that can be fastest, from the few terms that differ between them.

    The terms are quantised matrix time, L2, least memory time, latency, power, block price and
    partial sums, joined about as in the full model. Columns with slices that take more than
    `sliced_waves` waves are out. Tests compare the choice with the whole menu.
    """
    grid = grid_of(problem, menu, machine, depth, stages)
    score, _ = scores(grid, problem, how, machine, constants)
    score += _infinite(_misfits(grid, menu, machine))
    # A slicing with the same slices as the one before it is out too.
    score[1:] += _infinite(grid.slices[1:] == grid.slices[:-1])
    if np.isfinite(sliced_waves):
        score[1:] += _infinite(grid.tiles * grid.cuts[1:] > sliced_waves * machine.units)
    flat = score.T.reshape(score.shape[-1], -1)
    # The estimate errs most on the combining kernel, so the two best columns without one are in.
    best = smallest(flat, keep - 2)
    first = np.argmin(score[0], axis=0)[None]
    np.put_along_axis(score[0], first, np.float32(np.inf), axis=0)
    second_best = np.argmin(score[0], axis=0)[None]
    fallback = np.concatenate([first, second_best]).T * menu.splits
    return np.concatenate([best, fallback], axis=1)


def _misfits(grid: Grid, menu: Candidates, machine: Machine) -> np.ndarray:
    """Tiles that do not serve a problem or do not fit in shared memory."""
    low, high, widest = (menu.of_tiles(part) for part in (menu.above, menu.upto, menu.widest))
    m, n = (grid.sizes[axis] for axis in ("nm" if menu.turned else "mn"))
    misfit = (m <= low) | (m > high) | (n > widest)
    return np.asarray(misfit | (grid.held_bytes > machine.shared_per_block))


def scores(
    grid: Grid, problem: Matmul, how: Style, machine: Machine, constants: Constants
) -> tuple[np.ndarray, np.ndarray]:
    """Time of every column over its problem's least time, and that least time in seconds.

    The scaling keeps the scores in the range of single precision.
    """
    resident = grid.together(machine)
    b, m, n, k = (grid.sizes[axis] for axis in "bmnk")
    times = {
        **_work_seconds(grid, problem, how, machine, constants),
        **_crossing_seconds(grid, how, machine, constants, resident),
        # For each slicing but the first (unsliced) one.
        "second": adding_seconds(machine, constants, how, b * m * n * grid.slices[1:]),
        "price": machine.at_clock(constants["block_price"]),
    }
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    unit = times["least"] + b * m * n * (2.0 * k) / (rate * machine.units)
    score = _score(
        **{name: (time / unit).astype(np.float32, copy=False) for name, time in times.items()},
        per_step=(1.0 / np.ceil(k / grid.depth)).astype(np.float32, copy=False),
        busiest=np.ceil(grid.tiles / machine.units * grid.slices).astype(np.float32, copy=False),
        slices=grid.slices.astype(np.float32, copy=False),
        resident=resident.astype(np.float32, copy=False),
        lane_ratio=(issue_lanes(machine, constants) * how.turns.warps / grid.threads).astype(
            np.float32, copy=False
        ),
        persistent=how.persistent,
        loaded=constants["latency_share"] - 1.0,
    )
    if how.block.setup_seconds:
        score += (machine.at_clock(how.block.setup_seconds) / unit).astype(np.float32, copy=False)
    return score, unit


def _work_seconds(
    grid: Grid, problem: Matmul, style: Style, machine: Machine, constants: Constants
) -> dict[str, Any]:
    """Seconds of a full tile on the matrix unit, and of the whole problem under the power limit.

    Where the multiplying warps also fetch operands, the matrix seconds include the fetches.
    """
    k = grid.sizes["k"]
    work = grid.rows * grid.columns * (2.0 * k)
    matrix = work / (machine.matrix_per_unit(style.compute) * style.matrix_share)
    if is_widened(problem.dtype):
        conversion = grid.columns * (k / (machine.vector_ops_per_unit * style.code.vector_share))
        matrix = matrix + (1.0 - style.overlap) * conversion
    share: Number = style.matrix_share
    if style.turns.fetched_by is not None:
        high, wide = thread_tile(grid.rows, grid.columns, grid.threads)
        rows = np.minimum(grid.rows, grid.sizes["m"])
        columns = np.minimum(grid.columns, grid.sizes["n"])
        fetch = rows * np.ceil(columns / wide) + columns * np.ceil(rows / high)
        fetch = fetch * (grid.widths["data"] / machine.shared_bytes_per_unit) * k
        total = together([matrix, fetch], style.turns.fetched_by)
        share, matrix = share * matrix / total, total
    limit = power_seconds(
        machine,
        constants,
        style.compute,
        work * grid.tiles,
        activity=style.run.activity,
        share=share,
    )
    return {"matrix": matrix, "limit": limit}


def _crossing_seconds(
    grid: Grid, style: Style, machine: Machine, constants: Constants, limit: np.ndarray
) -> dict[str, Any]:
    """Seconds of data movement: memory, L2, a unit's port, and dependent loads."""
    k, tiles, l2_bytes = grid.sizes["k"], grid.tiles, grid.asked_bytes
    inputs, output = grid.input_bytes, grid.output_bytes
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    crossing = (np.maximum(l2_bytes / style.multicast, inputs) + output) / l2_rate
    port = port_bytes_per_s(machine, copied=style.tensor_copies)
    misses, llc_hits = _misses(grid, machine, constants, limit)
    delay = mean_latency(machine, misses, caught=llc_hits)
    return {
        "port": (l2_bytes + output) / tiles / port,
        "chain": np.maximum(delay / (grid.stages - 1.0), style.block.turn_seconds) / grid.depth * k,
        "least": (inputs + output) / hbm_rate(machine, constants),
        "l2": crossing,
    }


def _misses(
    grid: Grid, machine: Machine, constants: Constants, resident: np.ndarray
) -> tuple[np.ndarray, np.ndarray | float]:
    """Share of loads that miss the L2, and share that then hits the memory-side cache."""
    m, n, k = (grid.sizes[axis] for axis in "mnk")
    wave = np.minimum(grid.tiles, machine.units * resident)
    group = np.minimum(grid.down, GROUP)
    reach = np.minimum(wave / group * grid.columns, n)
    footprint = np.minimum(group * grid.rows, m) * grid.widths["data"]
    footprint = k * (footprint + reach * grid.widths["weights"])
    reuse = np.maximum(1.0 - grid.input_bytes / (footprint * grid.tiles / wave), 0.0)
    by_l2 = held_share(footprint, machine.l2_distinct_bytes, constants["l2_knee"])
    misses = np.asarray(1.0 - reuse * by_l2)
    if machine.llc is None:
        return misses, 0.0
    by_llc = held_share(footprint, machine.llc.capacity_bytes, constants["l2_knee"])
    return misses, np.asarray(reuse * np.maximum(by_llc - by_l2, 0.0))


def smallest(scores: np.ndarray, number: int) -> np.ndarray:
    """Columns of the `number` smallest of positive float32 scores in each row, in any order.

    Positive floats sort like their bit patterns. The column index replaces the last bits, 1e-5 of a
    score or less. Then `np.partition` on plain values suffices, several times faster than
    `argpartition`.
    """
    last = (1 << (scores.shape[1] - 1).bit_length()) - 1
    bits = (scores.view(np.int32) & ~last) | np.arange(scores.shape[1], dtype=np.int32)
    return np.asarray(np.partition(bits, number - 1, axis=1)[:, :number] & last)


def _infinite(out: np.ndarray) -> np.ndarray:
    """Infinity for columns that are out, else 0; it is added to their scores."""
    return np.where(out, np.float32(np.inf), np.float32(0.0))


def _score(
    matrix: np.ndarray,
    port: np.ndarray,
    chain: np.ndarray,
    least: np.ndarray,
    l2: np.ndarray,
    limit: np.ndarray,
    second: np.ndarray,
    price: np.ndarray,
    *,
    per_step: np.ndarray,
    busiest: np.ndarray,
    slices: np.ndarray,
    resident: np.ndarray,
    lane_ratio: np.ndarray,
    persistent: bool,
    loaded: float,
) -> np.ndarray:
    """Times of whole columns from the times of a tile, shape (slicings, tiles, n).

    - `matrix`: of a full tile; `port`: of the mean one
    - `chain`: of a tile's loads one after another, `loaded` times as long while memory is busy
    - `least`, `l2`, `limit`: of the problem on memory, on the L2 and under the power limit
    - `second`: of the combining kernel; the first slicing has none
    - `per_step`: one over the steps of k
    - `lane_ratio`: blocks that are needed to keep a unit's lanes busy
    """
    # Arrays have menu × problems elements. They are overwritten in place, since allocating new ones
    # costs more than the arithmetic.
    rounds = busiest / resident
    np.maximum(rounds, 1, out=rounds)
    share = busiest * (1 / slices)
    wait = np.ceil(rounds)
    wait *= chain
    wait /= slices
    traffic = np.maximum(least, l2)
    load = traffic + wait
    np.divide(loaded * traffic, load, out=load)
    load += 1
    wait *= load
    crossing = np.multiply(share, port, out=load)
    np.maximum(crossing, l2, out=crossing)
    share *= matrix
    few = np.flatnonzero(lane_ratio > 1)
    if few.size:
        share[:, few] *= np.maximum(lane_ratio[few] / np.minimum(busiest[:, few], resident[few]), 1)
    score = share * share
    square = crossing * crossing
    score += square
    score += np.multiply(wait, wait, out=square)
    score += least * least
    np.maximum(np.sqrt(score, out=score), limit, out=score)
    # Pipeline fill and drain: the unhidden part of the first tile, or of every block's first tile.
    longest = np.maximum(share, crossing, out=square)
    np.maximum(longest, wait, out=longest)
    np.maximum(longest, least, out=longest)
    fill = share
    fill += crossing
    fill += wait
    fill += least
    fill -= longest
    fill_share = np.divide(slices, np.maximum(rounds, 1.0), out=wait)
    if not persistent:
        fill_share += np.divide(slices, resident, out=crossing)
    fill_share *= per_step
    fill *= fill_share
    score += fill
    score[1:] += second
    rounds *= price
    score += rounds
    return score
