"""Jumps: known cases where one more of a size takes over `MOST` times its proportion.

Blocks, tiles and steps are whole, and libraries choose by rules (docs/model.md, section 10).
Anything else is a violation.
"""

from __future__ import annotations

import numpy as np
from changes import Change
from cliffs import Cliff, heads_cut_otherwise, longer_slices, menu_left
from tilings import backward_tiles, k_of_busiest, steps_streamed

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.prediction import Predictions
from perfmodel.timing.libraries import AttentionFacts
from perfmodel.timing.machine import machine

MOST = 1.5
"""Times its proportion that a size larger by one may take, without a reason of its own."""
FIELDS = {"heads": "heads_kv"}
_STEPS = (8, 32, 64, 128)  # of k: of the vector unit, and a line of 128 bytes by type
_INSTRUCTION = 16  # rows and keys of a matrix instruction


def excess(change: Change) -> np.ndarray:
    """Time after over time before, over the ratio of the sizes; shape (n,)."""
    first, second = change.sizes(FIELDS.get(change.what, change.what))
    return change.after.seconds / change.before.seconds * first / second


def _ratio(change: Change, name: str) -> np.ndarray:
    """Extent of a tile after the change over that before; 1 where there is none."""
    first, second = (np.asarray(each.tile.get(name, 1.0)) for each in (change.before, change.after))
    return np.nan_to_num(np.broadcast_to(second / first, len(change.before)), nan=1.0)


def _other_kernel(change: Change) -> bool:
    return change.before.implementation != change.after.implementation


def _busiest(change: Change) -> np.ndarray:
    """Times as many blocks on the busiest unit, of products times as much work of its blocks; of
    attention also of blocks that have a head, or a tile of its keys, as in backward passes."""

    def ratio(blocks: list[np.ndarray]) -> np.ndarray:
        first, second = (np.ceil(each - 1e-9) for each in blocks)
        return np.asarray(second / np.maximum(first, 1.0))

    ends = change.before, change.after
    busiest = ratio([each.waves * each.occupancy for each in ends])
    if isinstance(change.problem, Matmul):
        return np.maximum(busiest, _busiest_work(change))
    if not isinstance(change.problem, Attention):
        return busiest
    ratios = [busiest]
    for keys in (np.inf, *(keys for _, keys in backward_tiles(change.before))):
        blocks = [
            sizes["b"] * sizes["g"] * sizes["r"] * np.maximum(np.ceil(sizes["x"] / keys), 1.0)
            for sizes in (each.problem.sizes() for each in ends)
        ]
        ratios.append(ratio([each / machine(change.before.device).units for each in blocks]))
    return np.asarray(np.max(ratios, axis=0))


def _became_batched(change: Change) -> np.ndarray | bool:
    return isinstance(change.problem, Matmul) and change.what == "batch" and _other_kernel(change)


def _busiest_work(change: Change) -> np.ndarray:
    """Times as many operations, padding included, of a product's busiest unit."""
    first, second = (k_of_busiest(each) for each in (change.before, change.after))
    return second / first * _ratio(change, "m") * _ratio(change, "n")


def _padded(found: Predictions) -> np.ndarray:
    """Results of a product in whole tiles."""
    problem, tile = found.problem, found.tile
    assert isinstance(problem, Matmul)
    sides = ((problem.m, tile["m"]), (problem.n, tile["n"]))
    return np.prod([np.ceil(np.asarray(size) / side) * side for size, side in sides], axis=0)


def _batched_block(change: Change) -> np.ndarray:
    """Times as many operations of a block, over twice the batch, or of a product in whole tiles."""
    first, second = change.sizes("batch")
    larger = np.maximum(_ratio(change, "m") * _ratio(change, "n"), 1.0)
    block = larger / np.minimum(_ratio(change, "slices"), 1.0)
    return np.maximum(block * first / second, _padded(change.after) / _padded(change.before))


def _rows_left(change: Change) -> np.ndarray:
    """Times as many operations of the busiest unit, over the rows more."""
    first, second = change.sizes("m")
    return 1.1 * _busiest_work(change) * first / second


def _fewer_slices(change: Change) -> np.ndarray | bool:
    return isinstance(change.problem, Matmul) & (_ratio(change, "slices") < 1.0)


def _otherwise_tiled(change: Change) -> np.ndarray | bool:
    """Whether attention or its kernel for few queries has another tile or number of slices."""
    if not isinstance(change.kernel, AttentionFacts):
        return False
    other = change.tile_changed("rows", "keys", "splits")
    return other | heads_cut_otherwise(change) | longer_slices(change)


def _more_steps(change: Change) -> np.ndarray:
    """Times as many steps of what a block streams, in the longest block, or whole tiles of an
    axis of attention."""
    ratios = [np.ones(len(change.before))]
    if change.what in ("k", "seq_q", "seq_kv"):
        first, second = change.sizes(change.what)
        whole = (
            _STEPS if change.what == "k" else (_INSTRUCTION, change.before.tile.get("keys", 1.0))
        )
        ratios += [np.ceil(second / step) / np.ceil(first / step) for step in whole]
    if isinstance(change.problem, Attention):
        pairs = zip(steps_streamed(change.before), steps_streamed(change.after), strict=False)
        ratios += [after / np.maximum(before, 1.0) for before, after in pairs]
    return np.max(ratios, axis=0)


def _longer_rows(change: Change) -> bool:
    """Whether rows of a row-wise kernel get longer; unfused attention has one over its scores."""
    scores = change.before.implementation == "eager" and change.what == "seq_kv"
    return scores or (isinstance(change.problem, Rowwise) and change.what == "cols")


JUMPS = (
    Cliff(
        "products that become batched",
        _became_batched,
        lambda change: 1.1 * _batched_block(change),
        "cuBLAS cuts k of a plain product into up to 64 slices, of strided batches only where they "
        "fill an eighth of the units, and has fewer tiles for them (names of its kernels): a block "
        "has more results and all of k.",
    ),
    Cliff(
        "tiles by the rows of a product",
        menu_left,
        _rows_left,
        "TensorRT-LLM and cuBLAS multiply up to 4 rows of int8 without a tile of the matrix unit, "
        "and one row more is a whole tile, whose k is not cut (int8_gemm_template.h: one batch). "
        "vLLM's fp8 has a tile of its own for up to 16, 32 and 64 rows (scaled_mm_sm89.cuh).",
    ),
    Cliff(
        "fewer slices of k",
        _fewer_slices,
        lambda change: 1.1 / _ratio(change, "slices"),
        "Slices come from a short list and fill at most so many waves: one tile more takes the "
        "next shorter entry.",
    ),
    Cliff(
        "tiles of another kernel",
        _otherwise_tiled,
        lambda _: 2.8,
        "FlashAttention-3 has tiles for few queries; FlashAttention-1 to -3 choose slices by "
        "counts of blocks (tile_size.h, heuristics.h, fmha_fwd_launch_template.h).",
    ),
    Cliff(
        "a group of queries in one tile",
        lambda change: change.what == "seq_q" and isinstance(change.problem, Attention),
        lambda change: 1.1 * np.asarray(change.problem.heads_q / change.problem.heads_kv),
        "FlashAttention-2 packs the queries of a group into one tile, and cuts its keys, only for "
        "one query (flash_api.cpp: seqlenq_ngroups_swapped).",
    ),
    Cliff(
        "whole blocks on a unit",
        lambda change: _busiest(change) > 1.0,
        lambda change: 1.1 * _busiest(change),
        "One block more than fills all units is another round of them, or a round of larger ones.",
    ),
    Cliff(
        "whole steps of a stream",
        lambda change: _more_steps(change) > 1.0,
        lambda change: 1.1 * _more_steps(change),
        "One more of k or one more key may be another step, which is multiplied as a whole one.",
    ),
    Cliff(
        "rows that end within a load",
        _longer_rows,
        lambda _: 2.7,
        "What is left of a row, of a softmax over scores as well, after whole loads goes one "
        "element at a time, and a row of more than 1,024 elements takes a block for itself "
        "(PyTorch, PersistentSoftmax.cuh).",
    ),
)
"""The first that applies takes a jump."""
