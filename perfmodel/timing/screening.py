"""Which columns of a matmul's menu can be fastest, by fewer terms than the full model's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.algorithms.matmul import Matmul, is_widened
from perfmodel.arithmetic import Number, as_floats, product
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import hbm_rate, mean_latency, page_seconds, units_together
from perfmodel.timing.menu import GROUP, Candidates, slice_k, stages_held, thread_tile
from perfmodel.timing.occupancy import ADDRESSING_REGISTERS
from perfmodel.timing.pipes import issue_lanes, together
from perfmodel.timing.plan import combining_seconds
from perfmodel.timing.power import power_seconds
from perfmodel.timing.style import Style
from perfmodel.timing.traffic import held_share

# Blocks of the combining kernel that a unit holds at once.
_COMBINING = 12.0


@dataclass(frozen=True)
class Grid:
    """The blocks that every column of a menu makes of every problem.

    Axes: slicing, tile, problem. Most numbers need two of them, which keeps the arrays small; the
    longest axis is the last one, so that numpy runs along it however the others broadcast. Single
    precision chooses as well in half the time, where it holds the counts.
    """

    sizes: Mapping[str, np.ndarray]
    """b, m, n and k, one of a problem."""
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
    """Steps of k that a block holds, the one that it multiplies included."""
    cuts: np.ndarray
    """Slices of k that are asked for."""
    slices: np.ndarray
    """Slices of k that have any: whole pairs of steps."""
    down: np.ndarray
    """Tiles along m."""
    across: np.ndarray
    """Tiles along n."""

    @cached_property
    def tiles(self) -> np.ndarray:
        """Tiles of the result."""
        return np.asarray(self.sizes["b"] * self.across * self.down)

    @cached_property
    def held_bytes(self) -> Number:
        """Shared memory of a block."""
        data, weights = self.widths["data"], self.widths["weights"]
        return (self.rows * data + self.columns * weights) * self.depth * self.stages

    @cached_property
    def input_bytes(self) -> np.ndarray:
        """Both operands, once."""
        b, m, n, k = (self.sizes[axis] for axis in "bmnk")
        return np.asarray(b * (m * k * self.widths["data"] + k * n * self.widths["weights"]))

    @cached_property
    def output_bytes(self) -> np.ndarray:
        """The result, once."""
        b, m, n = (self.sizes[axis] for axis in "bmn")
        return np.asarray(b * m * n * self.widths["output"])

    @cached_property
    def asked_bytes(self) -> np.ndarray:
        """Operands that all blocks ask for: each as often as there are tiles along the other."""
        return np.asarray(self.asked_data_bytes + self.asked_weights_bytes)

    @cached_property
    def asked_data_bytes(self) -> np.ndarray:
        """Of those the activations."""
        b, m, _, k = (self.sizes[axis] for axis in "bmnk")
        return np.asarray(b * k * m * self.across * self.widths["data"])

    @cached_property
    def asked_weights_bytes(self) -> np.ndarray:
        """Of those the weights."""
        b, _, n, k = (self.sizes[axis] for axis in "bmnk")
        return np.asarray(b * k * n * self.down * self.widths["weights"])

    def together(self, machine: Machine) -> np.ndarray:
        """Blocks that a unit holds at once; see `occupancy.residency`."""
        shared = machine.shared_capacity // (self.held_bytes + machine.shared_reserved)
        together = np.minimum(machine.max_threads // self.threads, shared)
        registers = 4.0 * self.rows * self.columns + 4.0 * ADDRESSING_REGISTERS * self.threads
        registers = np.minimum(registers, machine.thread_registers_bytes * self.threads)
        together = np.minimum(together, machine.registers_bytes // registers)
        return np.asarray(np.clip(together, 1.0, machine.max_blocks))


def grid_of(problem: Matmul, menu: Candidates, machine: Machine, depth: Number) -> Grid:
    """The blocks of every column of a (1, m) menu, whose steps of k are `depth` long."""
    sizes, elements = as_floats(problem.sizes()), problem.elements()
    largest = float(np.max(product(sizes[axis] for axis in "bmnk")))
    # The power limit takes the third power of the work over that of the rate (power_seconds).
    kind: Any = np.float32 if largest < 1e24 else np.float64
    rows, columns, threads = (
        menu.of_tiles(part).astype(kind) for part in (menu.rows, menu.columns, menu.threads)
    )
    if isinstance(depth, np.ndarray):
        depth = menu.of_tiles(depth).astype(kind)
    each = {axis: np.ravel(sizes[axis]).astype(kind) for axis in "bmnk"}
    widths = {name: elements[name].bytes for name in ("data", "weights", "output")}
    cuts = menu.slices[0, : menu.splits].astype(kind)[:, None, None]
    widest = max(widths["data"], widths["weights"])
    return Grid(
        sizes=each,
        widths=widths,
        rows=rows,
        columns=columns,
        threads=threads,
        depth=depth,
        stages=stages_held(machine, (rows + columns) * depth * widest),
        cuts=cuts,
        slices=np.ceil(each["k"] / slice_k(each["k"], cuts, depth)),
        down=np.ceil(each["m"] / rows),
        across=np.ceil(each["n"] / columns),
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
) -> np.ndarray:
    """Columns of the menu that can be fastest, by the few terms that tell them apart.

    Quantised matrix time, L2 and least memory time, latency, power, the price of a round of blocks
    and the partial sums, joined much as the full model joins them. Slices that take more than
    `sliced_waves` waves are out. Tests hold the choice against the whole menu.
    """
    grid = grid_of(problem, menu, machine, depth)
    score, _ = scores(grid, problem, how, machine, constants)
    score += _infinite(_left_out(grid, menu, machine))
    # So is a slicing that comes to the same as the one before it.
    score[1:] += _infinite(grid.slices[1:] == grid.slices[:-1])
    if np.isfinite(sliced_waves):
        score[1:] += _infinite(grid.tiles * grid.cuts[1:] > sliced_waves * machine.units)
    flat = score.T.reshape(score.shape[-1], -1)
    # A combining kernel is the largest thing to be wrong about: the two best without one are in.
    kept = smallest(flat, keep - 2)
    first = np.argmin(score[0], axis=0)[None]
    np.put_along_axis(score[0], first, np.float32(np.inf), axis=0)
    second_best = np.argmin(score[0], axis=0)[None]
    unsliced = np.concatenate([first, second_best]).T * menu.splits
    return np.concatenate([kept, unsliced], axis=1)


def _left_out(grid: Grid, menu: Candidates, machine: Machine) -> np.ndarray:
    """Tiles that do not serve a problem, or do not fit."""
    above, upto, widest = (menu.of_tiles(part) for part in (menu.above, menu.upto, menu.widest))
    m, n = (grid.sizes[axis] for axis in ("nm" if menu.turned else "mn"))
    unserved = (m <= above) | (m > upto) | (n > widest)
    return np.asarray(unserved | (grid.held_bytes > machine.shared_per_block))


def scores(
    grid: Grid, problem: Matmul, how: Style, machine: Machine, constants: Constants
) -> tuple[np.ndarray, np.ndarray]:
    """Time of every column in units of its problem's least time, and these units in seconds.

    So half the digits hold the largest.
    """
    together = grid.together(machine)
    times = {
        **_work_seconds(grid, problem, how, machine, constants),
        **_crossing_seconds(grid, how, machine, constants, together),
        "second": _combining_seconds(grid, how, machine, constants),
        "price": machine.at_clock(constants["block_price"]),
    }
    b, m, n, k = (grid.sizes[axis] for axis in "bmnk")
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    unit = times["least"] + b * m * n * (2.0 * k) / (rate * machine.units)
    score = _score(
        **{name: (time / unit).astype(np.float32, copy=False) for name, time in times.items()},
        per_step=(1.0 / np.ceil(k / grid.depth)).astype(np.float32, copy=False),
        busiest=np.ceil(grid.tiles / machine.units * grid.slices).astype(np.float32, copy=False),
        slices=grid.slices.astype(np.float32, copy=False),
        together=together.astype(np.float32, copy=False),
        alone=(issue_lanes(machine, constants) * how.turns.warps / grid.threads).astype(
            np.float32, copy=False
        ),
        persistent=how.persistent,
        loaded=constants["latency_share"] - 1.0,
    )
    return score, unit


def _work_seconds(
    grid: Grid, problem: Matmul, how: Style, machine: Machine, constants: Constants
) -> dict[str, Any]:
    """Matrix and widening seconds of a whole tile, and what the board's power pays for in all.

    Where the warps that multiply fetch the operands in between, matrix seconds are of both.
    """
    k = grid.sizes["k"]
    work = grid.rows * grid.columns * (2.0 * k)
    matrix = work / (machine.matrix_per_unit(how.compute) * how.matrix_share)
    if is_widened(problem.dtype):
        widening = grid.columns * (k / (machine.vector_ops_per_unit * how.code.vector_share))
        matrix = matrix + (1.0 - how.overlap) * widening
    share: Number = how.matrix_share
    if how.turns.fetched_by is not None:
        high, wide = thread_tile(grid.rows, grid.columns, grid.threads)
        rows = np.minimum(grid.rows, grid.sizes["m"])
        columns = np.minimum(grid.columns, grid.sizes["n"])
        fetched = rows * np.ceil(columns / wide) + columns * np.ceil(rows / high)
        fetched = fetched * (grid.widths["data"] / machine.shared_bytes_per_unit) * k
        both = together([matrix, fetched], how.turns.fetched_by)
        share, matrix = share * matrix / both, both
    limit = power_seconds(
        machine,
        constants,
        how.compute,
        work * grid.tiles,
        activity=how.run.activity,
        share=share,
    )
    return {"matrix": matrix, "limit": limit}


def _crossing_seconds(
    grid: Grid, how: Style, machine: Machine, constants: Constants, together: np.ndarray
) -> dict[str, Any]:
    """Seconds of what moves: through memory, the L2, a unit's port, and one load after another."""
    k, tiles, asked = grid.sizes["k"], grid.tiles, grid.asked_bytes
    inputs, output = grid.input_bytes, grid.output_bytes
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    crossing = (np.maximum(asked / how.multicast, inputs) + output) / l2_rate
    if how.pitches and "translation" not in constants.off:
        pitches = {axis: np.ravel(pitch) for axis, pitch in how.pitches.items()}
        resident = np.clip(tiles / machine.units, 1.0, together)
        rows = {"m": grid.rows, "n": grid.columns}
        each = page_seconds(machine, constants, rows, pitches, resident)
        crossing = crossing + tiles * np.ceil(k / grid.depth) * each
    # Ragged tiles move only what is there: the busiest port sees a whole block and mean ones.
    pair = units_together(grid.rows, grid.sizes["m"], how.paired_rows)
    mean = (grid.asked_data_bytes + grid.asked_weights_bytes / pair + output) / tiles
    height, width = (
        np.minimum(grid.rows, grid.sizes["m"]),
        np.minimum(grid.columns, grid.sizes["n"]),
    )
    whole = k * (height * grid.widths["data"] + width * grid.widths["weights"] / pair)
    whole = whole + height * width * grid.widths["output"]
    per_clock = 64.0 * machine.clock_hz
    missed, caught = _missed(grid, machine, constants, together)
    latency = mean_latency(machine, missed, caught=caught)
    return {
        "port": mean / per_clock,
        "whole": np.maximum(whole - mean, 0.0) / per_clock,
        "chain": np.maximum(latency / (grid.stages - 1.0), how.block.turn_seconds) / grid.depth * k,
        "least": (inputs + output) / hbm_rate(machine, constants),
        "l2": crossing,
    }


def _missed(
    grid: Grid, machine: Machine, constants: Constants, together: np.ndarray
) -> tuple[np.ndarray, np.ndarray | float]:
    """Shares of loads that the L2 does not hold from the wave before, and that the LLC then has."""
    m, n, k = (grid.sizes[axis] for axis in "mnk")
    wave = np.minimum(grid.tiles, machine.units * together)
    group = np.minimum(grid.down, GROUP)
    reach = np.minimum(wave / group * grid.columns, n)
    touched = np.minimum(group * grid.rows, m) * grid.widths["data"]
    touched = k * (touched + reach * grid.widths["weights"])
    again = np.maximum(1.0 - grid.input_bytes / (touched * grid.tiles / wave), 0.0)
    by_l2 = held_share(touched, machine.l2_distinct_bytes, constants["l2_knee"])
    missed = np.asarray(1.0 - again * by_l2)
    if machine.llc is None:
        return missed, 0.0
    behind = held_share(touched, machine.llc.capacity_bytes, constants["l2_knee"])
    return missed, np.asarray(again * np.maximum(behind - by_l2, 0.0))


def _combining_seconds(
    grid: Grid, how: Style, machine: Machine, constants: Constants
) -> np.ndarray:
    """Seconds of the kernel that adds slices up, for each slicing but the first.

    It has a block a tile of the result, as many at once as their registers fit. What the L2 does
    not hold of the partial sums goes to memory and back.
    """
    b, m, n = (grid.sizes[axis] for axis in "bmn")
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    adding = np.maximum(grid.tiles / (machine.units * _COMBINING), 1.0)
    partial = (8.0 / l2_rate) * b * m * n * grid.slices[1:]
    left = 4.0 * b * m * n * grid.slices[1:]
    away = 1.0 - held_share(left, machine.l2_distinct_bytes, constants["l2_knee"])
    partial = np.maximum(partial, 2.0 * left * away / hbm_rate(machine, constants))
    second = np.maximum(partial, adding * machine.l2_latency)
    second += adding * machine.at_clock(constants["block_price"])
    second += combining_seconds(machine, constants, how)
    return np.asarray(second)


def smallest(scores: np.ndarray, number: int) -> np.ndarray:
    """Columns of the `number` smallest of positive float32 scores in each row, in any order.

    Positive numbers are in the order of their bits: with the column in place of the last of them,
    which is 1e-5 of a score or less, values alone are partitioned, several times faster.
    """
    last = (1 << (scores.shape[1] - 1).bit_length()) - 1
    bits = (scores.view(np.int32) & ~last) | np.arange(scores.shape[1], dtype=np.int32)
    return np.asarray(np.partition(bits, number - 1, axis=1)[:, :number] & last)


def _infinite(out: np.ndarray) -> np.ndarray:
    """What is added to the score of columns that are out."""
    return np.where(out, np.float32(np.inf), np.float32(0.0))


def _score(
    matrix: np.ndarray,
    port: np.ndarray,
    whole: np.ndarray,
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
    together: np.ndarray,
    alone: np.ndarray,
    persistent: bool,
    loaded: float,
) -> np.ndarray:
    """Times of whole columns from those of a tile, shape (slicings, tiles, n).

    - `matrix`: of a whole tile; `port`: of a mean one; `whole`: what a whole one takes more
    - `chain`: of a tile's loads one after another, `loaded` times as long while memory is busy
    - `least`, `l2`, `limit`: of the problem, by memory, by the L2 and by power
    - `second`: of a combining kernel, which the first slicing does not have
    - `per_step`: one over the steps of k
    - `alone`: blocks that keep a unit's lanes busy
    """
    # Arrays are as long as the menu times the problems: what is done with is written over, since
    # taking new memory for each costs more than the arithmetic.
    rounds = busiest / together
    np.maximum(rounds, 1, out=rounds)
    share = busiest * (1 / slices)
    waiting = rounds * chain
    waiting /= slices
    traffic = np.maximum(least, l2)
    behind = traffic + waiting
    np.divide(loaded * traffic, behind, out=behind)
    behind += 1
    waiting *= behind
    crossing = np.multiply(share, port, out=behind)
    crossing += whole / slices
    np.maximum(crossing, l2, out=crossing)
    share *= matrix
    few = np.flatnonzero(alone > 1)
    if few.size:
        share[:, few] *= np.maximum(alone[few] / np.minimum(busiest[:, few], together[few]), 1)
    score = share * share
    square = crossing * crossing
    score += square
    score += np.multiply(waiting, waiting, out=square)
    score += least * least
    np.maximum(np.sqrt(score, out=score), limit, out=score)
    # Filling and draining: what is not hidden of the first tile's way, or of every block's.
    longest = np.maximum(share, crossing, out=square)
    np.maximum(longest, waiting, out=longest)
    np.maximum(longest, least, out=longest)
    beyond = share
    beyond += crossing
    beyond += waiting
    beyond += least
    beyond -= longest
    exposed = np.divide(slices, np.maximum(rounds, 1.0), out=waiting)
    if not persistent:
        exposed += np.divide(slices, together, out=crossing)
    exposed *= per_step
    beyond *= exposed
    score += beyond
    score[1:] += second
    rounds *= price
    score += rounds
    return score
