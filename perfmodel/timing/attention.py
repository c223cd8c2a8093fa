"""Plans for attention: which kernels a class of implementation launches, over its menu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from perfmodel.algorithms.algorithm import Band
from perfmodel.algorithms.attention import Attention
from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number, as_floats, ceil_div, product
from perfmodel.schedules import tiled
from perfmodel.timing import rowwise, slicing
from perfmodel.timing.attention_style import exchanging, operand_tile, order_of, passing, style
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import CAPTURED, SEARCHED, GraphRule, KernelClass, TileRow
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Blocks of a combining kernel that finds nothing, of 256 threads, that a unit holds at once.
_IDLE_COMBINING = 8.0


def forward_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
    *,
    split: bool = False,
) -> Plan:
    """Forward attention by the class's schedule; decode adds the choice of slices."""
    how = style(problem, kernel, machine, constants, around)
    if kernel.passed_bytes:
        how = replace(how, exchange=passing(how, kernel, machine, problem.head_dim))
    if (split or problem.phase == "decode") and kernel.schedule != "tiled-1":
        return _split_plan(problem, kernel, machine, constants, around, how)
    tiles = _tiles(problem, kernel, machine)
    if kernel.paged and problem.phase != "decode" and "split" not in constants.off:
        sliced = _sliced_prefill(problem, kernel, machine, constants, how, tiles)
        if sliced is not None:
            return sliced
    br, bc, threads = np.array(tiles).T[:, None]
    query_slice = None
    if kernel.schedule == "tiled-1":
        if kernel.head_rule is not None and "split" not in constants.off:
            sizes = as_floats(problem.sizes())
            slices = slicing.queries_of_heads(sizes, kernel.head_rule, machine)
            query_slice = ceil_div(ceil_div(problem.seq_q, slices), br) * br
        exchange = exchanging(how, machine, bc, threads / 32)
        how = replace(how, exchange=exchange, fills=ceil_div(problem.seq_kv, bc))
    schedule = tiled.tiled(
        problem.mask(),
        br,
        bc,
        order=order_of(kernel),
        pack=as_floats(problem.sizes())["r"] if kernel.packs else 1,
        query_slice=query_slice,
        stages=kernel.stages,
        threads=threads,
        operand_tile=operand_tile(kernel, machine, br, bc, threads),
        score_vector=problem.score_vector(),
    )
    part = Part(schedule, problem.sizes(), problem.elements(), how)
    beside = kernel.prepares * _preparing(machine, constants)
    return Plan(schedule.name, (part,), {"rows": br, "keys": bc}, beside=beside)


def _preparing(machine: Machine, constants: Constants) -> float:
    """Seconds of a small kernel that reads lengths of sequences and leaves where each begins.

    Its launch, its block, and a load, a sum and a store that wait for each other in the L2.
    """
    launched = machine.at_clock(constants["kernel_gap"] + constants["block_price"])
    return float(launched + 3.0 * machine.l2_latency)


def _sliced_prefill(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    how: Style,
    tiles: tuple[TileRow, ...],
) -> Plan | None:
    """Slices of the keys where queries are many but row blocks few, as for decode; else none."""
    sizes, mask = as_floats(problem.sizes()), problem.mask()
    tile = tuple(np.array(tiles, dtype=np.float64).T[:, None])
    if kernel.even_rule is not None:
        cut = slicing.cuts(
            sizes, tile, kernel.even_rule, machine, mask.left if mask is not None else None
        )
        graph = kernel.graph_rule if kernel.graphed else None
        even = slicing.evenly(sizes, tile, kernel.even_rule, machine, graph)
        splits = np.where(cut, even, 1.0)
        idle = _idle_combining(sizes, machine, constants)
        beside = np.where(cut & (splits == 1.0), idle, 0.0)
        if not np.any(cut):
            return None
    elif kernel.graphed and kernel.graph_rule is not None:
        splits, beside = _in_graph(sizes, tile, kernel.graph_rule, machine, constants, how)
    else:
        return None
    made = _sliced_plan(problem, kernel, machine, how, mask, sizes, tile, splits)
    return replace(made, schedule=kernel.schedule, beside=beside)


def _in_graph(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    rule: GraphRule,
    machine: Machine,
    constants: Constants,
    how: Style,
) -> tuple[np.ndarray, np.ndarray]:
    """Slices that have keys, and seconds of what their blocks' time leaves out; see `GraphRule`.

    Every round of blocks looks for its sequences, on average among half of them, and rounds of
    blocks without keys cost their launch.
    """
    rows, bc = tile[:2]
    b, g, r, q, x = (sizes[axis] * np.ones((1, 1)) for axis in "bgrqx")
    asked = np.where(b * q <= CAPTURED, float(rule.slices), 1.0)
    tiles = ceil_div(x, bc)
    used = ceil_div(tiles, ceil_div(tiles, asked))
    blocks = b * g * ceil_div(r * q, rows) / machine.units
    rounds = ceil_div(blocks * asked, 1.0)
    idle = rounds - ceil_div(blocks * used, 1.0)
    search = ceil_div(b, 2.0 * SEARCHED) * constants["tile_search"]
    price = constants["block_price"] * how.price
    return used, machine.at_clock(1.0) * (idle * price + rounds * search)


def _tiles(problem: Attention, kernel: KernelClass, machine: Machine) -> tuple[TileRow, ...]:
    """Tiles for many queries: where keys lie in pages, some libraries run their decode kernel."""
    dim, element = int(np.max(problem.head_dim)), problem.elements()["kv"]
    if kernel.paged and kernel.pages_by_decode:
        return (_decode_tile(kernel, machine, dim, element.bytes),)
    return kernel.menu(dim, decode=False, narrow=element.bits <= 8)


def _decode_tile(kernel: KernelClass, machine: Machine, dim: int, width: float) -> TileRow:
    """The first tile of the decode menu that fits in shared memory."""
    return kernel.first_fitting(
        kernel.menu(dim, decode=True),
        lambda tile: (tile[0] + 2 * kernel.stages * tile[1]) * dim * width,
        machine.shared_per_block,
    )


def _split_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
    how: Style,
    *,
    keep: int = slicing.KEEP,
) -> Plan:
    """Split-KV over the `keep` most promising numbers of slices, query heads packed into tiles."""
    sizes = as_floats(problem.sizes())
    width, dim = problem.elements()["kv"].bytes, int(np.max(problem.head_dim))
    chosen = _decode_tile(kernel, machine, dim, width)
    bc = chosen[1]
    mask = problem.mask()
    if problem.phase == "decode" and mask is not None:
        # A window leaves one query the key tiles that it touches, one more than fill it: sequences
        # end anywhere in a tile.
        sizes["x"] = np.minimum(sizes["x"], (ceil_div(mask.left, bc) + 1) * bc)
        mask = None
    splits, beside = np.ones((1, 1)), np.zeros((1, 1))
    if "split" not in constants.off:
        graph = kernel.graph_rule if kernel.graphed else None
        if kernel.even_rule is not None:
            splits = slicing.evenly(sizes, chosen, kernel.even_rule, machine, graph)
        elif graph is not None:
            splits, beside = _in_graph(sizes, chosen, graph, machine, constants, how)
        elif kernel.wave_rule is not None:
            splits = slicing.by_waves(sizes, kernel.wave_rule, machine)
        elif kernel.split_rule is not None:
            splits = slicing.by_rule(sizes, chosen, kernel.split_rule, machine)
        else:
            splits = slicing.promising(sizes, chosen, kernel, machine, constants, how, width, keep)
    made = _sliced_plan(problem, kernel, machine, how, mask, sizes, chosen, splits)
    if kernel.regroups:
        beside = beside + _regrouping(problem, machine, constants, around)
    if kernel.paged and kernel.even_rule is not None:
        idle = _idle_combining(sizes, machine, constants)
        beside = beside + np.where(splits > 1, 0.0, idle)
    return replace(made, beside=beside)


def _sliced_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    how: Style,
    mask: Band | None,
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    splits: np.ndarray,
) -> Plan:
    """Tiles (rows, keys, threads) and numbers of slices, which broadcast, and what adds them."""
    rows, keys, threads = tile
    schedule = tiled.split_kv(
        mask,
        rows,
        slicing.slice_keys(sizes["x"], splits, keys),
        keys,
        pack=sizes["r"],
        stages=kernel.stages,
        operand_tile=operand_tile(kernel, machine, rows, keys, threads),
        score_vector=problem.score_vector(),
        threads=threads,
    )
    full = np.ones_like(splits)
    shown = {"rows": rows * full, "keys": keys * full, "splits": splits}
    # The second kernel adds rows up: its blocks cost what plain ones do.
    second = replace(
        how, price=1.0, together="block_overlap", resident=np.inf, search_seconds=0.0, start=None
    )
    part = Part(schedule, sizes, problem.elements(), how, {"combine": second})
    return Plan("split-kv", (part,), shown)


def _regrouping(
    problem: Attention, machine: Machine, constants: Constants, around: Circumstances
) -> np.ndarray:
    """Seconds of the copies around FlashAttention-2's decode of grouped queries."""
    sizes = {axis: np.asarray(size) for axis, size in problem.sizes().items()}
    heads = rowwise.whole(product([sizes["b"], sizes["g"], sizes["r"]]))
    copied = Rowwise("pointwise", heads, sizes["d"], dtype=problem.dtype)
    copy = rowwise.beside(machine, constants, copied, "torch-pointwise", around)
    return np.asarray(_copies(sizes) * copy)


def _copies(sizes: Mapping[str, Number]) -> np.ndarray:
    """Copy kernels around FlashAttention-2's decode of grouped queries (flash_api.cpp).

    It takes the queries of a group for rows of one problem. That order is a view while there is one
    sequence or one key-value head, and the result alone is copied; else queries, result and
    log-sum-exp are copied there and back: four.
    """
    grouped = np.asarray(sizes["r"] > 1, dtype=np.float64)
    strided = np.asarray((sizes["b"] > 1) & (sizes["g"] > 1), dtype=np.float64)
    return np.asarray(grouped * (1.0 + 3.0 * strided))


def _idle_combining(
    sizes: Mapping[str, Number], machine: Machine, constants: Constants
) -> np.ndarray:
    """Seconds of a combining kernel that finds nothing to combine, beyond the one before it.

    It is launched ahead, so that its blocks alone are left. Each of them, of 1,024 elements of the
    result, learns that from three loads one after another: where its sequence begins, how long it
    is, how many slices it has (flash_fwd_combine_kernel.h).
    """
    b, g, r, q, d = (sizes[axis] * np.ones((1, 1)) for axis in "bgrqd")
    columns = np.where(d <= 64, 64.0, 128.0)
    blocks = b * np.ceil(g * r * q * columns / 1024) * np.ceil(d / columns)
    rounds = np.maximum(blocks / (machine.units * _IDLE_COMBINING), 1.0)
    start = machine.at_clock(constants["block_price"])
    seconds = rounds * (start + 3.0 * machine.l2_latency)
    return np.where(b <= CAPTURED, seconds, 0.0)
