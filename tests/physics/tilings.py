"""Tiles and slices of a prediction, counted independently of the model."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms import Attention, Matmul
from perfmodel.arithmetic import as_floats, ceil_div
from perfmodel.count.band import visit
from perfmodel.prediction import Predictions
from perfmodel.timing import attention_backward
from perfmodel.timing.attention_style import fed_by_registers, order_of
from perfmodel.timing.cuts import HeadsCut
from perfmodel.timing.libraries import AttentionFacts, MatrixFacts, kernels
from perfmodel.timing.machine import machine
from perfmodel.timing.menu import slice_k


def query_slices(found: Predictions) -> tuple[np.ndarray, np.ndarray]:
    """Slices that FlashAttention-1's rule cuts a head's queries into, and the queries of each.

    Both 1 for other classes.
    """
    kernel = kernels().get(found.implementation)
    if not isinstance(kernel, AttentionFacts) or not isinstance(kernel.cut, HeadsCut):
        return np.ones(len(found)), np.ones(len(found))
    sizes = {axis: np.reshape(s, (-1, 1)) for axis, s in as_floats(found.problem.sizes()).items()}
    asked = kernel.cut.of_queries(sizes, machine(found.device))
    rows = found.tile["rows"][:, None]
    queries = ceil_div(ceil_div(sizes["q"], asked), rows) * rows
    return ceil_div(sizes["q"], queries)[:, 0], queries[:, 0]


def visited(found: Predictions) -> tuple[np.ndarray, ...]:
    """Matrix operations; of a head, pairs of tiles, those of its longest row and column of them.

    The last three for every tile of either pass.
    """
    problem = found.problem
    assert isinstance(problem, Attention)
    sizes, counts = problem.sizes(), [found.flops["matrix"]]
    for rows, keys in (*forward_tiles(found), *backward_tiles(found)):
        visits = visit(problem.mask(), sizes["q"], sizes["x"], rows, keys)
        longest = ceil_div(visits.most_keys, keys), ceil_div(visits.most_queries, rows)
        counts += [visits.pairs, *longest]
    return tuple(counts)


def forward_tiles(found: Predictions) -> list[tuple[np.ndarray, np.ndarray]]:
    """Queries and keys of the forward pass's tile, if there is such a pass and it has one."""
    problem = found.problem
    if not isinstance(problem, Attention) or problem.direction == "bwd":
        return []
    if "keys" not in found.tile:
        return []
    group = problem.heads_q // problem.heads_kv
    kernel = kernels().get(found.implementation)
    # Slices of keys take all query heads of a group in a tile, whatever the class.
    packs = "splits" in found.tile or (isinstance(kernel, AttentionFacts) and kernel.packs)
    rows = np.maximum(found.tile["rows"] // (group if packs else 1), 1.0)
    return [(rows, found.tile["keys"])]


def backward_tiles(found: Predictions) -> list[tuple[int, int]]:
    """Queries and keys of the tiles that the backward pass may have, if there is such a pass."""
    problem, kernel = found.problem, kernels().get(found.implementation)
    if not isinstance(problem, Attention) or problem.direction == "fwd":
        return []
    if not isinstance(kernel, AttentionFacts) or kernel.schedule == "standard":
        return []
    here, order = machine(found.device), order_of(kernel)
    apart = here.architecture.sums_apart and not fed_by_registers(kernel, here)
    rows, keys, _ = attention_backward._backward_tiles(problem, here, order, sums_apart=apart)
    return list(zip(rows[0].tolist(), keys[0].tolist(), strict=True))


def steps_streamed(found: Predictions) -> list[np.ndarray]:
    """Steps of what a block streams, in its longest block, for every tile of either pass.

    Keys in the forward pass; queries in the backward one, and in FlashAttention-1.
    """
    problem, kernel = found.problem, kernels().get(found.implementation)
    if not isinstance(problem, Attention):
        return []
    by_queries = isinstance(kernel, AttentionFacts) and kernel.schedule == "tiled-1"
    sizes, steps = problem.sizes(), []
    for pass_, tiles in enumerate((forward_tiles(found), backward_tiles(found))):
        for rows, keys in tiles:
            visits = visit(problem.mask(), sizes["q"], sizes["x"], rows, keys)
            streams_queries = bool(pass_) or by_queries
            steps.append(
                ceil_div(visits.most_queries, rows)
                if streams_queries
                else ceil_div(visits.most_keys, keys)
            )
    return steps


def k_of_busiest(found: Predictions) -> np.ndarray:
    """Extent of k that the busiest unit multiplies, tile after tile."""
    problem, kernel = found.problem, kernels().get(found.implementation)
    assert isinstance(problem, Matmul)
    elements, tile = problem.elements(), found.tile
    width = max(elements["data"].bytes, elements["weights"].bytes)
    on_vector = isinstance(kernel, MatrixFacts) and kernel.instruction == "vector"
    k = np.asarray(problem.k, dtype=float)
    length = slice_k(k, tile["slices"], 8 if on_vector else int(128 // width))
    tiles = problem.batch * ceil_div(problem.m, tile["m"]) * ceil_div(problem.n, tile["n"])
    return np.ceil(tiles * np.ceil(k / length) / machine(found.device).units) * length
