"""Which columns of a matmul's menu can be fastest, by fewer terms than the full model's."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfmodel.algorithms.matmul import WIDENED, Matmul
from perfmodel.arithmetic import Number, as_floats
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import hbm_rate, mean_latency, page_seconds
from perfmodel.timing.menu import GROUP, Candidates, slice_k, stages_held
from perfmodel.timing.pipes import issue_lanes
from perfmodel.timing.plan import combining_seconds
from perfmodel.timing.power import power_seconds
from perfmodel.timing.traffic import held_share

# Blocks of the combining kernel that a unit holds at once.
_COMBINING = 12.0


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
    # Axes: slicing, tile, problem. Most terms need two of them, which keeps the arrays small; the
    # longest axis is the last one, so that numpy runs along it however the others broadcast.
    # Single precision chooses as well in half the time, where it holds the counts.
    sizes, elements = as_floats(problem.sizes()), problem.elements()
    largest = float(np.max(sizes["b"] * sizes["m"] * sizes["n"] * sizes["k"]))
    kind: Any = np.float32 if largest < 1e30 else np.float64
    shape = (-1, menu.splits)
    menus = (menu.rows, menu.columns, menu.threads, menu.above, menu.upto, menu.widest)
    rows, columns, threads, above, upto, widest = (
        part.reshape(shape)[:, :1].astype(kind) for part in menus
    )
    if isinstance(depth, np.ndarray):
        depth = depth.reshape(shape)[:, :1].astype(kind)
    b, m, n, k = ((sizes[axis] * np.ones((1, 1)))[:, 0].astype(kind) for axis in "bmnk")
    data, weights = elements["data"].bytes, elements["weights"].bytes
    cuts = menu.slices.reshape(shape)[0].astype(kind)[:, None, None]
    slices = np.ceil(k / slice_k(k, cuts, depth))
    across, down = np.ceil(n / columns), np.ceil(m / rows)
    tiles = b * across * down
    stages = stages_held(machine, (rows + columns) * depth * max(data, weights))
    held = (rows * data + columns * weights) * depth * stages
    # Matrix and widening seconds of a whole tile.
    work = rows * columns * (2.0 * k)
    matrix_rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    matrix = work / matrix_rate
    if problem.dtype in WIDENED:
        widening = columns * (k / (machine.vector_ops_per_unit * how.vector_share))
        matrix = matrix + (1.0 - how.overlap) * widening
    inputs, output = b * (m * k * data + k * n * weights), b * m * n * elements["output"].bytes
    least = (inputs + output) / hbm_rate(machine, constants)
    # Ragged tiles move only what is there: the busiest port sees a whole block and mean ones.
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    moved = b * k * (m * across * data + n * down * weights) / how.multicast
    crossing = (np.maximum(moved, inputs) + output) / l2_rate
    asked = b * k * (m * across * data + n * down * weights) + output
    mean = asked / tiles
    height, width = np.minimum(rows, m), np.minimum(columns, n)
    whole = k * (height * data + width * weights) + height * width * elements["output"].bytes
    per_clock = 64.0 * machine.clock_hz
    port, beyond = mean / per_clock, np.maximum(whole - mean, 0.0) / per_clock
    price = machine.at_clock(constants["block_price"])
    # Blocks that share a unit start together.
    by_shared = machine.shared_capacity // (held + machine.shared_reserved + 1e-9)
    together = np.minimum(machine.max_threads // threads, by_shared)
    accumulators = 4.0 * rows * columns + 160.0 * threads
    accumulators = np.minimum(accumulators, machine.thread_registers_bytes * threads)
    together = np.minimum(together, machine.registers_bytes // accumulators)
    together = np.clip(together, 1.0, machine.max_blocks)
    # A wave waits for all that the L2 does not hold from the one before.
    wave = np.minimum(tiles, machine.units * together)
    group = np.minimum(down, GROUP)
    reach = np.minimum(wave / group * columns, n)
    touched = k * (np.minimum(group * rows, m) * data + reach * weights)
    again = np.maximum(1.0 - inputs / (touched * tiles / wave), 0.0)
    by_l2 = held_share(touched, machine.l2_capacity, constants["l2_knee"])
    missed, caught = 1.0 - again * by_l2, 0.0
    if machine.llc is not None:
        behind = held_share(touched, machine.llc.capacity_bytes, constants["l2_knee"])
        caught = again * np.maximum(behind - by_l2, 0.0)
    chain = mean_latency(machine, missed, caught=caught) / (depth * (stages - 1.0)) * k
    if how.pitches and "translation" not in constants.off:
        pitches = {axis: (pitch * np.ones((1, 1)))[:, 0] for axis, pitch in how.pitches.items()}
        resident = np.clip(tiles / machine.units, 1.0, together)
        each = page_seconds(machine, constants, {"m": rows, "n": columns}, pitches, resident)
        crossing = crossing + tiles * np.ceil(k / depth) * each
    # The combining kernel has a block a tile of the result, as many at once as their registers fit.
    adding = np.maximum(tiles / (machine.units * _COMBINING), 1.0)
    partial = (8.0 / l2_rate) * b * m * n * slices[1:]
    # What the L2 does not hold of the partial sums goes to memory and back.
    left = 4.0 * b * m * n * slices[1:]
    away = 1.0 - held_share(left, machine.l2_capacity, constants["l2_knee"])
    partial = np.maximum(partial, 2.0 * left * away / hbm_rate(machine, constants))
    limit = power_seconds(
        machine,
        constants,
        how.compute,
        work * tiles,
        0.0,
        activity=how.activity,
        share=how.matrix_share,
    )

    # Times in units of the problem's least, so that half the digits hold the largest.
    unit = least + b * m * n * (2.0 * k) / (matrix_rate * machine.units)
    second = np.maximum(partial, adding * machine.l2_latency)
    second += adding * price
    second += combining_seconds(machine, constants, how)
    times = (matrix, port, beyond, chain, least, crossing, limit, second, price)
    score = _score(
        *((time / unit).astype(np.float32, copy=False) for time in times),
        per_step=(1.0 / np.ceil(k / depth)).astype(np.float32, copy=False),
        busiest=np.ceil(tiles / machine.units * slices).astype(np.float32, copy=False),
        slices=slices.astype(np.float32, copy=False),
        together=together.astype(np.float32, copy=False),
        alone=(issue_lanes(machine, constants) * how.warps / threads).astype(
            np.float32, copy=False
        ),
        persistent=how.persistent,
        loaded=constants["latency_share"] - 1.0,
    )
    # What does not fit is out, and so is a slicing that comes to the same as the one before it.
    score += _infinite((m <= above) | (m > upto) | (n > widest) | (held > machine.shared_per_block))
    score[1:] += _infinite(slices[1:] == slices[:-1])
    if np.isfinite(sliced_waves):
        score[1:] += _infinite(tiles * cuts[1:] > sliced_waves * machine.units)
    flat = score.T.reshape(score.shape[-1], -1)
    # A combining kernel is the largest thing to be wrong about: the two best without one are in.
    kept = smallest(flat, keep - 2)
    first = np.argmin(score[0], axis=0)[None]
    np.put_along_axis(score[0], first, np.float32(np.inf), axis=0)
    second_best = np.argmin(score[0], axis=0)[None]
    unsliced = np.concatenate([first, second_best]).T * menu.splits
    return np.concatenate([kept, unsliced], axis=1)


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

    `matrix` is of a whole tile, `port` of a mean one and `whole` what a whole one takes more,
    `chain` that of its loads one after another, longer by `loaded` times while memory is busy;
    `least` of memory, `l2` of the chip and `limit` of its power are of the problem; `second` is
    that of a combining kernel, which the first slicing has not; `per_step` is one over the steps
    of k; `alone` how many blocks keep a unit's lanes awake.
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
