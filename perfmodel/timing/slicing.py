"""The number of slices that a kernel cuts the keys into: by its library's rule, or the fastest."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfmodel.algorithms.attention import SOFTMAX_VECTOR
from perfmodel.arithmetic import Number
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import AttentionFacts
from perfmodel.timing.libraries.rules import (
    EvenRule,
    HeadRule,
    SegmentRule,
    SplitRule,
    WaveRule,
)
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import loaded_seconds
from perfmodel.timing.occupancy import ADDRESSING_REGISTERS
from perfmodel.timing.plan import combining_seconds
from perfmodel.timing.style import Style

# Numbers of slices that the full model times.
KEEP = 6
# Slices that a split-KV launch may choose from (FlashAttention-2 tries all up to 128).
SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128])
_MOST_SLICES = 128
# Resident blocks of the combining kernel on a unit.
_COMBINING = 12.0


def by_rule(
    sizes: Mapping[str, Number], tile: tuple[Number, ...], rule: SplitRule, machine: Machine
) -> np.ndarray:
    """Numbers of slices, shape (n, 1), by the library's own rule; see `SplitRule`."""
    rows, bc, _ = tile
    b, g, r, q, x = columns(sizes, "bgrqx")
    slots = machine.units * rule.blocks_per_unit
    grid = b * g * np.ceil(r * q / rows)
    tiles = np.ceil(x / bc)
    slices = np.arange(1.0, _MOST_SLICES + 1)[None]
    waves = grid * slices / slots
    fill = _last_wave(waves)
    # Excluded: more slices than tiles, and a slicing with the same tiles a slice as the one before.
    longest = np.ceil(tiles / slices)
    twins = np.concatenate([np.zeros_like(tiles, bool), longest[:, 1:] == longest[:, :-1]], axis=1)
    fill = np.where((slices > np.minimum(tiles, slots)) | twins, 0.0, fill)
    best = np.argmax(fill >= rule.near * fill.max(axis=1, keepdims=True), axis=1) + 1.0
    unsplit = (grid >= rule.full * slots) | (tiles <= rule.whole_tiles)
    unsplit = unsplit | (rule.grouped_only & (r == 1))
    return np.where(unsplit, 1.0, best[:, None])


def queries_of_heads(sizes: Mapping[str, Number], rule: HeadRule, machine: Machine) -> np.ndarray:
    """Numbers of slices of a head's queries, shape (n, 1); see `HeadRule`."""
    b, g, r = columns(sizes, "bgr")
    slices = np.arange(1.0, rule.most + 1)[None]
    fill = _last_wave(b * g * r * slices / (machine.units * rule.blocks_per_unit))
    fills = fill > rule.near * fill.max(axis=1, keepdims=True)
    return np.asarray(np.argmax(fills, axis=1)[:, None] + 1.0)


def keys_of_heads(
    sizes: Mapping[str, Number], bc: Number, rule: HeadRule, machine: Machine, *, causal: bool
) -> np.ndarray:
    """Numbers of slices of a head's keys in the backward pass, shape (n, 1); see `HeadRule`."""
    b, g, r, x = columns(sizes, "bgrx")
    heads, tiles = b * g * r / machine.units, np.ceil(x / bc)
    gain = _last_wave(heads * tiles) / (1.0 + (0.5 if causal else 1.0) * bc / x)
    spread = (gain > _last_wave(heads)) | (causal & (tiles >= rule.spread))
    return np.where(spread, tiles, 1.0)


def columns(sizes: Mapping[str, Number], axes: str) -> list[np.ndarray]:
    """Sizes as columns of shape (n, 1), or (1, 1) where all problems share one."""
    return [np.atleast_2d(np.asarray(sizes[axis], dtype=np.float64)) for axis in axes]


def _last_wave(waves: np.ndarray) -> np.ndarray:
    """Mean share of the slots that a grid of so many waves keeps busy (wave quantisation)."""
    return np.asarray(waves / np.ceil(waves))


def evenly(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    rule: EvenRule,
    machine: Machine,
) -> np.ndarray:
    """Numbers of slices that give every unit an even share; see `EvenRule`.

    Shape (n, 1), or (n, c) for tiles of (1, c) rows and keys.
    """
    rows, bc = tile[:2]
    b, g, r, q, x = columns(sizes, "bgrqx")
    tiles = np.ceil(x / bc)
    share = np.ceil(rule.margin * b * g * np.ceil(r * q / rows) * tiles / machine.units)
    return np.asarray(np.minimum(np.ceil(tiles / share), rule.most))


def by_waves(sizes: Mapping[str, Number], rule: WaveRule, machine: Machine) -> np.ndarray:
    """Numbers of slices for whole waves of blocks, shape (n, 1); see `WaveRule`.

    A block has one query of all heads that share their keys.
    """
    b, g, q, x = columns(sizes, "bgqx")
    slices = np.ceil(x / rule.keys) if rule.rounds_up else np.floor(x / rule.keys)
    if rule.root:
        slices = np.minimum(slices, np.round(np.sqrt(rule.root * slices)))
    waves = np.full_like(x, rule.waves)
    if rule.doubles_from:
        waves = waves * np.maximum(np.log2(x / rule.doubles_from), 1.0)
    room = waves * machine.units / (b * g * q)
    room = np.minimum(np.ceil(room) if rule.begun else np.floor(room), rule.most)
    return np.asarray(np.maximum(np.minimum(slices, room), 1.0))


def by_segments(sizes: Mapping[str, Number], rule: SegmentRule) -> np.ndarray:
    """Numbers of slices of small grids, shape (n, 1); see `SegmentRule`."""
    b, g = columns(sizes, "bg")
    return np.where(b * g <= rule.most_blocks, float(rule.slices), 1.0)


def cuts(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    rule: EvenRule,
    machine: Machine,
    window: Number | None,
) -> np.ndarray:
    """Whether a grid of many queries may be cut, in the shape of `evenly`; see `EvenRule`."""
    rows, bc = tile[:2]
    g, r, q, x = columns(sizes, "grqx")
    keys = x if window is None else np.minimum(x, window + rows)
    few = g * np.ceil(r * q / rows) < rule.full * machine.units
    return np.asarray(few & (np.ceil(keys / bc) > rule.whole_tiles))


def slice_keys(keys: Number, splits: np.ndarray, bc: Number) -> np.ndarray:
    """Keys of a slice, rounded up to whole tiles."""
    return np.asarray(np.ceil(np.ceil(np.atleast_2d(keys) / splits) / bc) * bc)


def rounds_of_slices(splits: Number, kernel: AttentionFacts) -> Number:
    """Dependent rounds in which a combining kernel loads the slices."""
    return splits / kernel.combine_loads if kernel.combine_loads else 0.0


def promising(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    kernel: AttentionFacts,
    machine: Machine,
    constants: Constants,
    how: Style,
    width: float,
    keep: int,
) -> np.ndarray:
    """The numbers of slices, shape (n, keep), that can be fastest by a short estimate.

    More slices shorten the longest chain of key tiles, but cost rounds of blocks and a combining
    kernel. Tests compare the choice with the whole menu.
    """
    splits = SPLITS[None].astype(np.float64)
    if keep >= splits.size:
        return splits
    score = scores(sizes, tile, kernel, machine, constants, how, width)
    slices = np.ceil(sizes["x"] / slice_keys(sizes["x"], splits, tile[1]))
    # A slicing with the same tiles a slice as the one before it is out.
    score[:, 1:] = np.where(slices[:, 1:] == slices[:, :-1], np.inf, score[:, 1:])
    # The estimate errs most on the combining kernel, so the unsliced keys are always in.
    score[:, 0] = -np.inf
    best = np.argpartition(score, keep, axis=1)[:, :keep]
    return np.take_along_axis(np.broadcast_to(splits, score.shape), best, axis=1)


def scores(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    kernel: AttentionFacts,
    machine: Machine,
    constants: Constants,
    how: Style,
    width: float,
) -> np.ndarray:
    """Estimated seconds of every number of slices, shape (n, splits), from the terms that
    differ."""
    rows, bc, _ = tile
    b, g, r, q, x, d = columns(sizes, "bgrqxd")
    length = slice_keys(x, SPLITS[None].astype(np.float64), bc)
    slices = np.ceil(x / length)
    tiles = np.ceil(np.minimum(length, x) / bc)
    grid = b * g * np.ceil(q / np.maximum(rows // r, 1)) * slices
    busiest = np.ceil(grid / machine.units)
    resident = resident_blocks(tile, d, kernel, machine, how, width)
    rounds = np.maximum(busiest / resident, 1.0)
    stream = 2.0 * b * g * x * d * width / machine.hbm_bytes_per_s
    wait = tiles * rounds * machine.hbm_latency / max(kernel.stages - 1, 1)
    products = tiles * busiest * tile_seconds(tile, d, machine, how)
    chain = np.hypot(loaded_seconds(constants, wait, stream), products)
    price = machine.at_clock(constants["block_price"] * how.block.price)
    second = adding_seconds(b * g * r * q, d, slices, kernel, machine, constants, how)
    second = np.where(slices > 1, second, 0.0)
    return np.asarray(rounds * price + second + np.hypot(chain, stream))


def resident_blocks(
    tile: tuple[Number, ...],
    dim: Number,
    kernel: AttentionFacts,
    machine: Machine,
    how: Style,
    width: float,
) -> np.ndarray:
    """Resident blocks of a unit for a tile; see `occupancy.residency`."""
    rows, bc, threads = tile
    bytes_ = (rows + 2 * kernel.stages * bc) * dim * width + machine.shared_reserved
    registers = 4.0 * rows * (dim + bc) + 4.0 * ADDRESSING_REGISTERS * threads
    registers = np.minimum(registers, machine.thread_registers_bytes * threads)
    resident = np.minimum(machine.shared_capacity // bytes_, machine.registers_bytes // registers)
    most = np.minimum(machine.max_threads // threads, how.resident)
    return np.asarray(np.clip(resident, 1.0, most))


def tile_seconds(tile: tuple[Number, ...], dim: Number, machine: Machine, how: Style) -> np.ndarray:
    """Seconds of a unit for the two products and the softmax of a tile of scores."""
    scores = tile[0] * tile[1]
    pipes = (
        4.0 * scores * dim / (machine.matrix_per_unit(how.compute) * how.matrix_share),
        SOFTMAX_VECTOR * scores / (machine.vector_ops_per_unit * how.code.vector_share),
    )
    return np.asarray(np.maximum(*pipes) + (1.0 - how.overlap) * np.minimum(*pipes))


def adding_seconds(
    rows: Number,
    dim: Number,
    slices: np.ndarray,
    kernel: AttentionFacts,
    machine: Machine,
    constants: Constants,
    how: Style,
) -> np.ndarray:
    """Seconds of the kernel that adds slices up: one block for each of the result's `rows`."""
    rounds = np.maximum(rows / (machine.units * _COMBINING), 1.0)
    partial = (8.0 / machine.l2_bytes_per_s) * rows * dim * slices
    waits = rounds * machine.l2_latency * (1.0 + rounds_of_slices(slices, kernel))
    start = rounds * machine.at_clock(constants["block_price"])
    return np.asarray(
        start + combining_seconds(machine, constants, how) + np.maximum(waits, partial)
    )
