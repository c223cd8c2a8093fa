"""Split-KV plans: the keys are cut into slices, whose results a second step adds up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from perfmodel.algorithms.algorithm import Band
from perfmodel.algorithms.attention import Attention
from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number, as_floats, ceil_div, product
from perfmodel.elements import ElementType
from perfmodel.schedules import tiled
from perfmodel.timing import rowchain, rowwise, slicing
from perfmodel.timing.attention_style import on_tiles, operand_tile
from perfmodel.timing.libraries.facts import AttentionFacts, TileRow
from perfmodel.timing.libraries.rules import CAPTURED, SEARCHED, GraphRule
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Block, Style

# Resident blocks of a unit of about 256 threads that exit early, for lack of work.
_IDLE_BLOCKS = 8.0


def split_plan(
    problem: Attention,
    mask: Band | None,
    kernel: AttentionFacts,
    setting: Setting,
    how: Style,
    *,
    keep: int = slicing.KEEP,
) -> Plan:
    """Split-KV over the `keep` most promising numbers of slices; query heads are packed into
    tiles."""
    machine = setting.machine
    every = as_floats(problem.sizes())
    tile, width = _tile(problem, kernel, machine), problem.elements()["kv"].bytes
    cuttable: np.ndarray | bool = True
    if kernel.even_rule is not None:
        tile, cuttable = _where_cut(problem, kernel, machine, tile)
    sizes = every
    if problem.phase == "decode" and mask is not None and mask.left is not None:
        sizes = {**every, "x": _seen_keys(every["x"], mask.left, tile[1], kernel)}
        mask = None
    splits, launched, beside = _slices(
        every, sizes, tile, cuttable, kernel, setting, how, width, keep
    )
    pack = 1.0 if kernel.apart else sizes["r"]
    if kernel.regroups:
        apart = _with_window(problem)
        beside = beside + np.where(apart, 0.0, _regrouping(problem, setting))
        if np.any(apart):
            splits, launched, pack = (np.where(apart, 1.0, n) for n in (splits, launched, pack))
    if kernel.adds_in_graphs and kernel.caller.captured:
        launched = np.maximum(launched, 2.0)
    if kernel.grid_slices:
        launched = np.full_like(splits, float(kernel.grid_slices))
        # A block without keys exits at once, in parallel with the other blocks of its unit.
        idle = _rounds(sizes, tile[0], launched - splits, machine) - 1.0
        beside = beside + idle / _IDLE_BLOCKS * setting.at_clock("block_price")
    made = _sliced_plan(problem, mask, kernel, setting, how, sizes, tile, splits, launched, pack)
    if kernel.caller.paged and kernel.even_rule is not None:
        idle = _idle_combining(sizes, setting)
        beside = beside + np.where((launched > 1) | ~np.asarray(cuttable), 0.0, idle)
    if kernel.prepares_decode:
        beside = beside + preparing(kernel, setting)
    return replace(made, beside=beside)


def _slices(
    every: Mapping[str, Number],
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    cuttable: np.ndarray | bool,
    kernel: AttentionFacts,
    setting: Setting,
    how: Style,
    width: float,
    keep: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slices with keys, slices launched, and extra seconds, by the class's own rule.

    `every` has the sizes with all keys, `sizes` those with the keys that the window leaves.
    """
    machine, constants = setting.machine, setting.constants
    none = np.zeros((1, 1))
    graph = kernel.graph_rule if kernel.caller.captured else None
    if "split" in constants.off:
        return none + 1.0, none + 1.0, none
    if kernel.even_rule is not None:
        launched = slicing.evenly(every, tile, kernel.even_rule, machine, graph)
        launched = np.where(cuttable, launched, 1.0)
        splits, beside = _with_keys(sizes, tile, launched, setting, how)
        return splits, launched, beside
    if graph is not None:
        splits, beside = _in_graph(sizes, tile, graph, setting, how)
        return splits, splits, beside
    if kernel.segment_rule is not None:
        launched = slicing.by_segments(sizes, kernel.segment_rule)
        return _with_seen_keys(every, sizes, tile, launched), launched, none
    if kernel.wave_rule is not None:
        splits = slicing.by_waves(sizes, kernel.wave_rule, machine)
    elif kernel.split_rule is not None:
        splits = slicing.by_rule(sizes, tile, kernel.split_rule, machine)
    else:
        splits = slicing.promising(sizes, tile, kernel, machine, constants, how, width, keep)
    return splits, splits, none


def preparing(kernel: AttentionFacts, setting: Setting) -> float:
    """Seconds of the kernels that read sequence lengths and store where each sequence begins."""
    return kernel.prepares * setting.small_kernel_seconds(steps=3)


def _with_window(problem: Attention) -> np.ndarray:
    """Whether a call states a window, even one that hides no key: FlashAttention-2's own test
    (flash_api.cpp, seqlenq_ngroups_swapped)."""
    window = np.asarray(0 if problem.window is None else problem.window)
    return np.atleast_2d(window > 0)


def _seen_keys(keys: Number, window: Number, bc: Number, kernel: AttentionFacts) -> np.ndarray:
    """Keys of the tiles that a window leaves to one query.

    They are the tiles between the window's first key and its last. Where the library aligns tiles
    to the window's first key, they are the tiles that fill the window.
    """
    tiles = ceil_div(window, bc)
    if not kernel.aligned_windows:
        keys_before = np.maximum(np.asarray(keys) - window, 0)
        tiles = ceil_div(keys, bc) - keys_before // bc
    return np.asarray(np.minimum(keys, tiles * bc))


def sliced_prefill(
    problem: Attention,
    mask: Band | None,
    kernel: AttentionFacts,
    setting: Setting,
    how: Style,
    tiles: tuple[TileRow, ...],
    allowed: np.ndarray | bool,
) -> Plan | None:
    """Slices of the keys for many queries but few row blocks, as in decode; None where not cut."""
    machine = setting.machine
    sizes = as_floats(problem.sizes())
    tile = tuple(np.array(tiles, dtype=np.float64).T[:, None])
    if kernel.even_rule is not None:
        cut = slicing.cuts(
            sizes, tile, kernel.even_rule, machine, mask.left if mask is not None else None
        )
        graph = kernel.graph_rule if kernel.caller.captured else None
        even = slicing.evenly(sizes, tile, kernel.even_rule, machine, graph)
        splits = np.where(cut, even, 1.0)
        idle = _idle_combining(sizes, setting)
        beside = np.where(cut & (splits == 1.0), idle, 0.0)
        if not np.any(cut):
            return None
    elif kernel.caller.captured and kernel.graph_rule is not None:
        splits, beside = _in_graph(sizes, tile, kernel.graph_rule, setting, how)
    else:
        return None
    pack = sizes["r"]
    made = _sliced_plan(problem, mask, kernel, setting, how, sizes, tile, splits, splits, pack)
    return replace(made, schedule=kernel.schedule, beside=beside, allowed=allowed)


def _in_graph(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    rule: GraphRule,
    setting: Setting,
    how: Style,
) -> tuple[np.ndarray, np.ndarray]:
    """Slices with keys, and extra seconds outside of their blocks' own time; see `GraphRule`.

    Every round of blocks searches its sequence, on average among half of them, and rounds of blocks
    without keys cost their launch.
    """
    machine = setting.machine
    b, q = slicing.columns(sizes, "bq")
    asked = np.where(b * q <= CAPTURED, float(rule.slices), 1.0)
    used, idle = _with_keys(sizes, tile, asked, setting, how)
    search = ceil_div(b, 2.0 * SEARCHED) * setting.at_clock("tile_search")
    return used, idle + _rounds(sizes, tile[0], asked, machine) * search


def _with_keys(
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    launched: np.ndarray,
    setting: Setting,
    how: Style,
) -> tuple[np.ndarray, np.ndarray]:
    """Slices with keys among those `launched`, and seconds of the rounds of blocks without keys."""
    machine, constants = setting.machine, setting.constants
    rows, bc = tile[:2]
    (x,) = slicing.columns(sizes, "x")
    tiles = ceil_div(x, bc)
    used = ceil_div(tiles, ceil_div(tiles, launched))
    idle = _rounds(sizes, rows, launched, machine) - _rounds(sizes, rows, used, machine)
    return used, idle * machine.at_clock(constants["block_price"] * how.block.price)


def _with_seen_keys(
    every: Mapping[str, Number],
    seen: Mapping[str, Number],
    tile: tuple[Number, ...],
    launched: np.ndarray,
) -> np.ndarray:
    """Slices among those `launched` that have keys the window leaves; slices are whole tiles of
    `every` key, hidden ones included."""
    (x,), (within,) = slicing.columns(every, "x"), slicing.columns(seen, "x")
    length = slicing.slice_keys(x, launched, tile[1])
    return np.asarray(np.maximum(ceil_div(np.minimum(within, x), length), 1.0))


def _rounds(
    sizes: Mapping[str, Number], rows: Number, slices: np.ndarray, machine: Machine
) -> np.ndarray:
    """Rounds of blocks, one block a unit, for so many slices of every tile of rows."""
    b, g, r, q = slicing.columns(sizes, "bgrq")
    return np.asarray(ceil_div(b * g * ceil_div(r * q, rows) * slices / machine.units, 1.0))


def _sliced_plan(
    problem: Attention,
    mask: Band | None,
    kernel: AttentionFacts,
    setting: Setting,
    how: Style,
    sizes: Mapping[str, Number],
    tile: tuple[Number, ...],
    splits: np.ndarray,
    launched: np.ndarray,
    pack: Number,
) -> Plan:
    """The plan for tiles (rows, keys, threads) and numbers of slices, which broadcast, with the
    kernel that adds the slices up.

    A tile has the rows of `pack` query heads. Of the slices `launched`, `splits` have keys. A
    combining kernel runs wherever two or more are launched, even if only one has keys.
    """
    rows, keys, threads = tile
    # The combining kernel adds rows up: it has no mask, and its blocks have the plain price.
    second = replace(how, resident=np.inf)
    how = on_tiles(how, problem, mask, kernel, setting, rows, keys, pack)

    def part(x: Number, slices: np.ndarray, *only: str) -> Part:
        schedule = tiled.split_kv(
            mask,
            rows,
            slicing.slice_keys(x, slices, keys),
            keys,
            pack=pack,
            stages=kernel.stages,
            operand_tile=operand_tile(kernel, setting.machine, rows, keys, threads),
            score_vector=problem.score_vector(),
            threads=threads,
        )
        adds = replace(second, block=Block(waits=slicing.rounds_of_slices(slices, kernel)))
        counted = {**sizes, "x": x}
        return Part(schedule, counted, problem.elements(), how, {"combine": adds}, only)

    parts: tuple[Part, ...] = (part(sizes["x"], splits),)
    if np.any((launched > 1) & (splits == 1)):
        added = np.where(launched > 1, np.maximum(splits, 2.0), 1.0)
        parts = (
            part(sizes["x"], splits, "split-kv"),
            part(added * keys, added, "combine"),
        )
    full = np.ones_like(splits)
    shown = {"rows": rows * full, "keys": keys * full, "splits": splits}
    return Plan("split-kv", parts, shown)


def _tile(problem: Attention, kernel: AttentionFacts, machine: Machine) -> tuple[Number, ...]:
    """Rows, keys and threads of a decode tile: one for all problems, or arrays where windows
    differ."""
    dim, stored = int(np.max(problem.head_dim)), problem.elements()["kv"]
    usual, other = (
        decode_tile(kernel, machine, dim, stored, windowed=hides) for hides in (False, True)
    )
    hides = problem.windowed()
    if usual == other or not np.any(hides):
        return usual
    return other if np.all(hides) else tuple(np.where(hides, other, usual).T[..., None])


def _where_cut(
    problem: Attention, kernel: AttentionFacts, machine: Machine, usual: tuple[Number, ...]
) -> tuple[tuple[Number, ...], np.ndarray | bool]:
    """The decode tile (rows, keys, threads), and for which problems the library's host cuts keys.

    In CUDA graphs the number of slices is given. Otherwise FlashAttention-3's host decides for one
    sequence and requires more tiles and a smaller grid (num_splits_heuristic); its scheduler on the
    device takes at most that many slices. Sliced decode may have its own tile.
    """
    assert kernel.even_rule is not None
    other = usual
    if kernel.sliced is not None:
        dim, stored = int(np.max(problem.head_dim)), problem.elements()["kv"]
        other = decode_tile(replace(kernel, decode=kernel.sliced), machine, dim, stored)
    cut: np.ndarray | bool = True
    if not kernel.caller.captured:
        cut = slicing.cuts(as_floats(problem.sizes()), other, kernel.even_rule, machine, None)
    if kernel.sliced is None:
        return usual, cut
    return tuple(np.where(cut, a, b) for a, b in zip(other, usual, strict=True)), cut


def decode_tile(
    kernel: AttentionFacts,
    machine: Machine,
    dim: int,
    stored: ElementType,
    *,
    windowed: bool = False,
) -> TileRow:
    """The first tile of the decode menu that fits in shared memory."""
    return kernel.first_fitting(
        kernel.menu(dim, decode=True, narrow=stored.bits <= 8, windowed=windowed),
        lambda tile: (tile[0] + 2 * kernel.stages * tile[1]) * dim * stored.bytes,
        machine.shared_per_block,
    )


def _regrouping(problem: Attention, setting: Setting) -> np.ndarray:
    """Seconds of the copies around FlashAttention-2's decode of grouped queries."""
    sizes = {axis: np.asarray(size) for axis, size in problem.sizes().items()}
    heads = rowwise.whole(product([sizes["b"], sizes["g"], sizes["r"]]))
    copied = Rowwise("pointwise", heads, sizes["d"], dtype=problem.dtype)
    copy = setting.at_clock("kernel_gap") + rowchain.beside(setting, copied, "torch-pointwise")
    return np.asarray(_copies(sizes) * copy)


def _copies(sizes: Mapping[str, Number]) -> np.ndarray:
    """Number of copy kernels around FlashAttention-2's decode of grouped queries (flash_api.cpp).

    The queries of a group become rows of one problem. With one sequence or one key-value head that
    order is a view, and only the result is copied: one. Otherwise queries, result and log-sum-exp
    are copied there and back: four.
    """
    grouped = np.asarray(sizes["r"] > 1, dtype=np.float64)
    strided = np.asarray((sizes["b"] > 1) & (sizes["g"] > 1), dtype=np.float64)
    return np.asarray(grouped * (1.0 + 3.0 * strided))


def _idle_combining(sizes: Mapping[str, Number], setting: Setting) -> np.ndarray:
    """Seconds of a combining kernel that finds nothing to combine, beyond the kernel before it.

    It is launched ahead, so only its blocks cost time. A block has 1,024 elements of the result.
    Three dependent loads tell it that there is nothing to do: the sequence's start, its length and
    its number of slices (flash_fwd_combine_kernel.h).
    """
    machine = setting.machine
    b, g, r, q, d = slicing.columns(sizes, "bgrqd")
    columns = np.where(d <= 64, 64.0, 128.0)
    blocks = b * np.ceil(g * r * q * columns / 1024) * np.ceil(d / columns)
    rounds = np.maximum(blocks / (machine.units * _IDLE_BLOCKS), 1.0)
    start = setting.at_clock("block_price")
    seconds = rounds * (start + 3.0 * machine.l2_latency)
    return np.where(b <= CAPTURED, seconds, 0.0)
