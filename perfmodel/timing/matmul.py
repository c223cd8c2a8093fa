"""Plans for matmul: tiles × slices of k from the class's menu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.algorithms.matmul import WIDENED, Matmul, matmul, matmul_format
from perfmodel.arithmetic import Number, as_floats
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import KernelClass, matrix_share
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import hbm_rate, mean_latency
from perfmodel.timing.plan import Part, Plan, combining_seconds
from perfmodel.timing.power import power_seconds
from perfmodel.timing.traffic import held_share

# Row blocks launched together so that their columns are shared in L2 (theory: √(slots·BN/BM)).
_GROUP = 8

# Columns of the menu that are timed in full.
KEEP = 8
# Blocks of the combining kernel that a unit holds at once.
_COMBINING = 12.0


def compute_type(problem: Matmul, machine: Machine) -> str:
    """Rate the matrix unit runs at; a device without bf16 runs it as fp16, without fp16 as fp32."""
    wanted = matmul_format(problem.dtype).compute
    types = machine.device.matrix_types
    if wanted == "bf16" and "bf16" not in types and "fp16" in types:
        return "fp16"
    return wanted


@dataclass(frozen=True)
class Candidates:
    """Columns of the menu: tile rows, tile columns, threads, slices of k; (1, c) or (n, c).

    Every tile has the same `splits` slicings of k, next to each other and in rising order. A tile
    serves problems of `above` < m <= `upto` rows.
    """

    rows: np.ndarray
    columns: np.ndarray
    threads: np.ndarray
    above: np.ndarray
    upto: np.ndarray
    slices: np.ndarray
    splits: int

    def serves(self, m: Number) -> np.ndarray:
        """Whether the library has a column for problems of m rows."""
        return np.asarray((m > self.above) & (m <= self.upto))

    def take(self, index: np.ndarray) -> Candidates:
        """The columns `index` (n, c) of a (1, m) menu."""
        return replace(
            self,
            rows=self.rows[0][index],
            columns=self.columns[0][index],
            threads=self.threads[0][index],
            above=self.above[0][index],
            upto=self.upto[0][index],
            slices=self.slices[0][index],
        )


def candidates(kernel: KernelClass) -> Candidates:
    """Every tile of the class with every slicing of k; menus by rows where a library has them."""
    limits = sorted(kernel.tiles)
    above = dict(zip(limits, [0, *limits], strict=False))
    tiles = [
        (*tile, above[limit], limit or np.inf) for limit in limits for tile in kernel.tiles[limit]
    ]
    menu = np.array(tiles, dtype=np.float64)
    each, slices = np.meshgrid(np.arange(len(menu)), np.array(kernel.splits, float), indexing="ij")
    rows, columns, threads, least, most = menu[each.ravel()].T[:, None]
    slices = slices.ravel()[None]
    return Candidates(rows, columns, threads, least, most, slices, len(kernel.splits))


def plan(
    problem: Matmul,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
    *,
    keep: int = KEEP,
) -> Plan:
    """The `keep` most promising columns of the menu; the caller takes the fastest."""
    elements, sizes = problem.elements(), as_floats(problem.sizes())
    width = max(elements["data"].bytes, elements["weights"].bytes)
    how = _style(problem, kernel, machine, constants, around)
    menu = candidates(kernel)
    depth = _depth(kernel, menu, width, elements["weights"].bytes)
    if menu.rows.size > keep:
        kept = _promising(problem, menu, how, machine, constants, depth, keep)
        menu = menu.take(kept)
        depth = depth if np.ndim(depth) == 0 else np.asarray(depth)[0][kept]
    slice_k = _slice_k(sizes["k"] * np.ones(1), menu.slices, depth)
    sizes = {**sizes, "m": _clustered(sizes["m"], menu.rows, kernel.cluster)}
    schedule = tiled_matmul(
        menu.rows,
        menu.columns,
        depth,
        group_m=_group(sizes, menu, kernel),
        split_k=slice_k if len(kernel.splits) > 1 else None,
        stages=_stages(machine, (menu.rows + menu.columns) * depth * width),
        threads=menu.threads,
        operand_tile=_operand_tile(kernel, machine, menu.rows, menu.columns),
        algorithm=matmul(
            dequantise=problem.dtype in WIDENED,
            promote_every=128 if kernel.promoted else None,
        ),
    )
    part = Part(schedule, sizes, elements, how)
    tile = {"m": menu.rows, "n": menu.columns, "slices": menu.slices}
    return Plan(schedule.name, (part,), tile, allowed=menu.serves(sizes["m"]))


def _depth(kernel: KernelClass, menu: Candidates, width: float, weight: float) -> Number:
    """Extent of a step of k: a 128-byte line of the wider operand (16 in vector kernels).

    Kernels for a few rows have no matrix instructions to feed: all threads of a block load `few`
    bytes of weights each.
    """
    line = 16 if kernel.instruction == "vector" else int(128 // width)
    if not kernel.few_load:
        return line
    of_threads = menu.threads * kernel.few_load / (menu.columns * weight)
    return np.where(menu.upto <= min(kernel.tiles), of_threads, line)


def _clustered(m: Number, rows: np.ndarray, cluster: int) -> Number:
    """Rows of the product with a first one of each tile that only fills up a cluster.

    A cluster's blocks start together or not at all: those beyond the last row load nothing and
    multiply all the same.
    """
    tiles = np.ceil(m / rows)
    whole = np.ceil(tiles / cluster) * cluster
    return (
        np.where((whole > tiles) & (tiles > 1), (whole - 1.0) * rows + 1.0, m) if cluster > 1 else m
    )


def _group(sizes: Mapping[str, Number], menu: Candidates, kernel: KernelClass) -> Number:
    """Row blocks that are launched together, column by column.

    A few where the library swizzles; else all of them where they are fewer than the columns, and
    one cluster where they are not (CUTLASS, RasterOrderOptions::Heuristic).
    """
    if kernel.swizzles:
        return _GROUP
    down, across = np.ceil(sizes["m"] / menu.rows), np.ceil(sizes["n"] / menu.columns)
    return np.where(across > down, np.maximum(down, kernel.cluster), kernel.cluster)


def _slice_k(k: np.ndarray, slices: np.ndarray, depth: Number) -> np.ndarray:
    """Extent of k that a slice sums: whole pairs of steps."""
    return np.asarray(np.ceil(np.ceil(k / slices) / (2 * depth)) * (2 * depth))


def _promising(
    problem: Matmul,
    menu: Candidates,
    how: Style,
    machine: Machine,
    constants: Constants,
    depth: Number,
    keep: int,
) -> np.ndarray:
    """Columns of the menu that can be fastest, by the few terms that tell them apart.

    Quantised matrix time, L2 and least memory time, latency, power, the price of a round of blocks
    and the partial sums, joined much as the full model joins them. Tests hold the choice against
    the whole menu.
    """
    # Axes: problem, tile, slicing. Most terms need two of them, which keeps the arrays small.
    # Single precision chooses as well in half the time, where it holds the counts.
    sizes, elements = as_floats(problem.sizes()), problem.elements()
    largest = float(np.max(sizes["b"] * sizes["m"] * sizes["n"] * sizes["k"]))
    kind: Any = np.float32 if largest < 1e30 else np.float64
    shape = (1, -1, menu.splits)
    menus = (menu.rows, menu.columns, menu.threads, menu.above, menu.upto)
    rows, columns, threads, above, upto = (
        part.reshape(shape)[..., :1].astype(kind) for part in menus
    )
    if isinstance(depth, np.ndarray):
        depth = depth.reshape(shape)[..., :1].astype(kind)
    b, m, n, k = ((sizes[axis] * np.ones((1, 1)))[..., None].astype(kind) for axis in "bmnk")
    data, weights = elements["data"].bytes, elements["weights"].bytes
    slices = np.ceil(k / _slice_k(k, menu.slices.reshape(shape)[:, :1].astype(kind), depth))
    across, down = np.ceil(n / columns), np.ceil(m / rows)
    tiles = b * across * down
    stages = _stages(machine, (rows + columns) * depth * max(data, weights))
    held = (rows * data + columns * weights) * depth * stages
    # Matrix and widening seconds of a whole tile.
    work = rows * columns * (2.0 * k)
    matrix_rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    matrix = work / matrix_rate
    if problem.dtype in WIDENED:
        widening = columns * (k / (machine.vector_ops_per_unit * how.vector_share))
        matrix = matrix + (1.0 - how.overlap) * widening
    least = b * (m * k * data + k * n * weights) / hbm_rate(machine, constants)
    # Ragged tiles move only what is there, so the busiest port sees so many mean blocks.
    l2_rate = machine.l2_bytes_per_s * constants["l2_share"]
    moved = b * k * (m * across * data + n * down * weights) / how.multicast
    port = moved / (tiles * 64.0 * machine.clock_hz)
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
    group = np.minimum(down, _GROUP)
    reach = np.minimum(wave / group * columns, n)
    touched = k * (np.minimum(group * rows, m) * data + reach * weights)
    again = np.maximum(1.0 - least * hbm_rate(machine, constants) / (touched * tiles / wave), 0.0)
    missed = 1.0 - again * held_share(touched, machine.l2_capacity, constants["l2_knee"])
    chain = mean_latency(machine, missed) / (depth * (stages - 1.0)) * k
    # The combining kernel has a block a tile of the result, as many at once as their registers fit.
    adding = np.maximum(tiles / (machine.units * _COMBINING), 1.0)
    partial = (8.0 / l2_rate) * b * m * n * slices
    limit = power_seconds(
        machine,
        constants,
        how.compute,
        work * tiles,
        0.0,
        activity=how.activity,
        share=how.matrix_share,
    )
    limit = limit - how.credit_seconds

    # Times in units of the problem's least, so that half the digits hold the largest.
    unit = least + b * m * n * (2.0 * k) / (matrix_rate * machine.units)
    second = np.maximum(partial, adding * machine.l2_latency) + adding * price
    second += combining_seconds(machine, constants, how)
    times = (matrix, port, chain, least, moved / l2_rate, limit, second, price)
    score = _score(
        *((time / unit).astype(np.float32, copy=False) for time in times),
        per_step=(depth / k).astype(np.float32, copy=False),
        busiest=np.ceil(tiles / machine.units * slices).astype(np.float32, copy=False),
        slices=slices.astype(np.float32, copy=False),
        together=together.astype(np.float32, copy=False),
        persistent=how.persistent,
        loaded=constants["latency_share"] - 1.0,
    )
    # What does not fit is out, and so is a slicing that comes to the same as the one before it.
    out = (m <= above) | (m > upto) | (held > machine.shared_per_block)
    score = np.where(out, np.inf, score)
    same = slices[..., 1:] == slices[..., :-1]
    score[..., 1:] = np.where(same, np.inf, score[..., 1:])
    flat = score.reshape(len(score), -1)
    kept = np.argpartition(flat, keep - 1, axis=1)[:, : keep - 1]
    # A combining kernel is the largest thing to be wrong about: the best without one is in.
    unsliced = np.argmin(score[..., :1], axis=1) * score.shape[-1]
    return np.concatenate([kept, unsliced], axis=1)


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
    together: np.ndarray,
    persistent: bool,
    loaded: float,
) -> np.ndarray:
    """Times of whole columns from those of a tile, shape (n, tiles, slicings).

    `matrix` and `port` are of a whole tile,
    `chain` that of its loads one after another, longer by `loaded` times while memory is busy;
    `least` of memory, `l2` of the chip and `limit` of its power are of the problem; `second` is
    that of a combining kernel; `per_step` is one over the steps of k.
    """
    rounds = np.maximum(busiest / together, 1)
    share = busiest * (1 / slices)
    waiting = rounds * chain / slices
    traffic = np.maximum(least, l2)
    behind = traffic + waiting
    np.divide(loaded * traffic, behind, out=behind)
    behind += 1
    waiting *= behind
    crossing = np.maximum(share * port, l2)
    share *= matrix
    busy = share * share
    busy += crossing * crossing
    busy += waiting * waiting
    busy += least * least
    score = np.maximum(np.sqrt(busy, out=busy), limit, out=busy)
    # Filling and draining: what is not hidden of the first tile's way, or of every block's.
    beyond = share + crossing
    beyond += waiting
    beyond += least
    beyond -= np.maximum(np.maximum(share, crossing), np.maximum(waiting, least))
    exposed = slices / busiest
    if not persistent:
        exposed += slices / together
    exposed *= per_step
    beyond *= exposed
    score += beyond
    score += second * (slices > 1)
    rounds *= price
    score += rounds
    return np.asarray(score)


def _style(
    problem: Matmul,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
) -> Style:
    on_vector = kernel.instruction == "vector"
    usual = "vector_gemm_share" if on_vector else "matrix_share"
    share = constants[kernel.share or usual]
    if on_vector and machine.lanes_shared:
        share /= 1.0 + constants["integer_share"]
    specialised = machine.generation >= 9 and kernel.instruction == "native"
    return Style(
        compute=compute_type(problem, machine),
        matrix_share=share * matrix_share(kernel, machine),
        overlap=constants[kernel.overlap],
        multicast=2.0 if specialised else 1.0,
        persistent=specialised,
        warm=around.warm,
        activity=around.activity,
        credit_seconds=around.credit_seconds,
        vector_share=constants["vector_share"],
        stream_share=constants["stream_share_tiles"],
    )


def _stages(machine: Machine, stage_bytes: Number) -> Number:
    """Buffers of k steps in flight.

    Double buffering through registers before Ampere and on other makes; then as many asynchronous
    copies as half (Ampere) or all (Hopper on, one block a unit) of the shared memory holds.
    """
    if machine.generation < 8:
        return 2
    if machine.generation < 9:
        return np.clip(machine.shared_per_block / 2 // stage_bytes, 3, 5)
    return np.clip(machine.shared_per_block // stage_bytes, 3, 8)


def _operand_tile(
    kernel: KernelClass, machine: Machine, rows: Number, columns: Number
) -> tuple[Number, Number]:
    """Warp tile where registers feed the unit, instruction shape where shared memory does."""
    if kernel.instruction == "vector":
        return np.minimum(rows, 64), np.minimum(columns, 32)
    if kernel.instruction == "register" or machine.generation < 9:
        return np.minimum(rows, 64), np.minimum(columns, 64)
    return np.minimum(rows, 128 if machine.generation >= 10 else 64), columns
