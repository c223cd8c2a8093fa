"""The numbers of slices of the keys that can be fastest, for kernels whose library has no rule."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfmodel.algorithms.attention import SOFTMAX_VECTOR
from perfmodel.arithmetic import Number
from perfmodel.timing import occupancy
from perfmodel.timing.constants import Constants
from perfmodel.timing.cuts.grid import columns, slice_keys
from perfmodel.timing.libraries import AttentionFacts
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import loaded_seconds
from perfmodel.timing.plan import adding_seconds
from perfmodel.timing.style import Style

# Numbers of slices that the full model times.
KEEP = 6
# Slices that a split-KV launch may choose from (FlashAttention-2 tries all up to 128).
SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128])


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
    second = adding_seconds(machine, constants, how, b * g * r * q * d * slices)
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
    """Resident blocks of a unit for a tile."""
    rows, bc, threads = tile
    shared_bytes = (rows + 2 * kernel.stages * bc) * dim * width
    blocks = occupancy.resident_blocks(machine, shared_bytes, 4.0 * rows * (dim + bc), threads)
    return np.asarray(np.minimum(blocks, how.resident))


def tile_seconds(tile: tuple[Number, ...], dim: Number, machine: Machine, how: Style) -> np.ndarray:
    """Seconds of a unit for the two products and the softmax of a tile of scores."""
    scores = tile[0] * tile[1]
    pipes = (
        4.0 * scores * dim / (machine.matrix_per_unit(how.compute) * how.matrix_share),
        SOFTMAX_VECTOR * scores / (machine.vector_ops_per_unit * how.code.vector_share),
    )
    return np.asarray(np.maximum(*pipes) + (1.0 - how.overlap) * np.minimum(*pipes))
