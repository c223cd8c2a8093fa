"""Split-KV plans: the keys are cut into slices, whose results a second step adds up."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms.algorithm import Band
from perfmodel.algorithms.attention import Attention
from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number, as_floats, ceil_div, product
from perfmodel.elements import ElementType
from perfmodel.schedules import tiled
from perfmodel.timing import rowchain, rowwise
from perfmodel.timing.attention_style import on_tiles, operand_tile
from perfmodel.timing.cuts.even import CAPTURED, EvenCut
from perfmodel.timing.cuts.grid import Sizes, Tile, columns, slice_keys
from perfmodel.timing.cuts.heads import HeadsCut
from perfmodel.timing.cuts.segments import SegmentsCut
from perfmodel.timing.libraries.facts import AttentionFacts, TileRow
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Block, Style

# Slices that a split-KV launch may choose from (FlashAttention-2 tries all up to 128).
SPLITS = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128])
# Resident blocks of a unit of about 256 threads that exit early, for lack of work.
_IDLE_BLOCKS = 8.0


def split_plan(
    problem: Attention,
    mask: Band | None,
    kernel: AttentionFacts,
    setting: Setting,
    how: Style,
) -> Plan:
    """Split-KV over the numbers of slices; query heads are packed into tiles."""
    machine = setting.machine
    all_sizes = as_floats(problem.sizes())
    tile = _tile(problem, kernel, machine)
    cuttable: np.ndarray | bool = True
    if isinstance(kernel.cut, EvenCut):
        tile, cuttable = _cut_tiles(problem, kernel, kernel.cut, machine, tile)
    sizes = all_sizes
    if problem.phase == "decode" and mask is not None and mask.left is not None:
        sizes = {**all_sizes, "x": np.minimum(np.asarray(all_sizes["x"]), mask.left)}
        mask = None
    splits, launches = _slices(all_sizes, sizes, tile, cuttable, kernel, setting)
    extra: Number = 0.0
    pack = np.minimum(sizes["r"], tile[0])
    if kernel.regroups:
        windowed = _is_windowed(problem)
        extra = extra + np.where(windowed, 0.0, _regrouping(problem, setting))
        if np.any(windowed):
            splits, launches, pack = (np.where(windowed, 1.0, n) for n in (splits, launches, pack))
    if kernel.combine.in_graphs and kernel.caller.captured:
        launches = np.maximum(launches, 2.0)
    if kernel.combine.slices:
        launches = np.full_like(splits, float(kernel.combine.slices))
    plan = _sliced_plan(problem, mask, kernel, setting, how, sizes, tile, splits, launches, pack)
    if kernel.caller.paged and isinstance(kernel.cut, EvenCut):
        idle = _idle_seconds(sizes, setting)
        extra = extra + np.where((launches > 1) | ~np.asarray(cuttable), 0.0, idle)
    if kernel.prepares_decode:
        extra = extra + preparing(kernel, setting)
    return replace(plan, beside=extra)


def _slices(
    all_sizes: Sizes,
    sizes: Sizes,
    tile: Tile,
    cuttable: np.ndarray | bool,
    kernel: AttentionFacts,
    setting: Setting,
) -> tuple[np.ndarray, np.ndarray]:
    """Slices with keys, and slices launched, by the class's own rule.

    `all_sizes` has the sizes with all keys, `sizes` those with the keys that the window leaves. A
    rule that counts all keys launches slices that a window leaves without any.
    """
    machine, constants = setting.machine, setting.constants
    cut = kernel.cut
    if "split" in constants.off:
        return np.ones((1, 1)), np.ones((1, 1))
    if isinstance(cut, EvenCut):
        launches = np.where(cuttable, cut.number(all_sizes, tile, machine), 1.0)
        tiles = ceil_div(columns(sizes, "x")[0], tile[1])
        filled: Any = ceil_div(tiles, ceil_div(tiles, launches))
        return filled, launches
    if isinstance(cut, SegmentsCut):
        launches = cut.number(sizes, tile, machine)
        # Slices are whole tiles of all keys; those that the window hides are empty.
        (x,), (keys,) = columns(all_sizes, "x"), columns(sizes, "x")
        length = slice_keys(x, launches, tile[1])
        return np.maximum(ceil_div(np.minimum(keys, x), length), 1.0), launches
    if cut is None or isinstance(cut, HeadsCut):
        splits = SPLITS[None].astype(np.float64)
    else:
        splits = cut.number(sizes, tile, machine)
    return splits, splits


def preparing(kernel: AttentionFacts, setting: Setting) -> float:
    """Seconds of the kernels that read sequence lengths and store where each sequence begins."""
    return kernel.prepares * setting.small_kernel_seconds(steps=3)


def _is_windowed(problem: Attention) -> np.ndarray:
    """Whether a call states a window, even one that hides no key: FlashAttention-2's own test
    (flash_api.cpp, seqlenq_ngroups_swapped)."""
    window = np.asarray(0 if problem.window is None else problem.window)
    return np.atleast_2d(window > 0)


def _sliced_plan(
    problem: Attention,
    mask: Band | None,
    kernel: AttentionFacts,
    setting: Setting,
    style: Style,
    sizes: Sizes,
    tile: Tile,
    splits: np.ndarray,
    launches: np.ndarray,
    pack: Number,
) -> Plan:
    """The plan for tiles (rows, keys, threads) and numbers of slices, which broadcast, with the
    kernel that adds the slices up.

    A tile has the rows of `pack` query heads. Of the slices `launches`, `splits` have keys. A
    combining kernel runs wherever two or more are launched, even if only one has keys.
    """
    rows, keys, threads = tile
    # The combining kernel adds rows up: it has no mask, and its blocks have the plain price.
    second = replace(style, resident=np.inf, block=Block())
    style = on_tiles(style, problem, mask, kernel, setting, rows, keys, pack)

    def part(x: Number, slices: np.ndarray, *only: str) -> Part:
        schedule = tiled.split_kv(
            mask,
            rows,
            slice_keys(x, slices, keys),
            keys,
            pack=pack,
            stages=kernel.stages,
            operand_tile=operand_tile(kernel, setting.machine, rows, keys, threads),
            score_vector=problem.score_vector(),
            threads=threads,
            within=frozenset(problem.aliased()),
        )
        part_sizes = {**sizes, "x": x}
        return Part(schedule, part_sizes, problem.elements(), style, {"combine": second}, only)

    parts: tuple[Part, ...] = (part(sizes["x"], splits),)
    if np.any((launches > 1) & (splits == 1)):
        pieces = np.where(launches > 1, np.maximum(splits, 2.0), 1.0)
        parts = (
            part(sizes["x"], splits, "split-kv"),
            part(pieces * keys, pieces, "combine"),
        )
    full = np.ones_like(splits)
    sides = {"rows": rows * full, "keys": keys * full, "splits": splits}
    return Plan("split-kv", parts, sides)


def _tile(problem: Attention, kernel: AttentionFacts, machine: Machine) -> Tile:
    """Rows, keys and threads of a decode tile: one for all problems, or arrays where windows
    differ."""
    dim, kv = int(np.max(problem.head_dim)), problem.elements()["kv"]
    tile, local = (
        decode_tile(kernel, machine, dim, kv, windowed=windows, streams=2 - problem.keys_only)
        for windows in (False, True)
    )
    windows = problem.windowed()
    if tile == local or not np.any(windows):
        return tile
    return local if np.all(windows) else tuple(np.where(windows, local, tile).T[..., None])


def _cut_tiles(
    problem: Attention, kernel: AttentionFacts, cut: EvenCut, machine: Machine, tile: Tile
) -> tuple[Tile, np.ndarray | bool]:
    """The decode tile (rows, keys, threads), and for which problems the library's host cuts keys.

    In CUDA graphs the number of slices is given. Otherwise FlashAttention-3's host decides for one
    sequence and requires more tiles and a smaller grid (num_splits_heuristic); its scheduler on the
    device takes at most that many slices. Sliced decode may have its own tile.
    """
    cut_tile = tile
    if kernel.sliced is not None:
        dim, kv = int(np.max(problem.head_dim)), problem.elements()["kv"]
        cut_tile = decode_tile(replace(kernel, decode=kernel.sliced), machine, dim, kv)
    cuts: np.ndarray | bool = True
    if not kernel.caller.captured:
        cuts = cut.may_cut(as_floats(problem.sizes()), cut_tile, machine)
    if kernel.sliced is None:
        return tile, cuts
    return tuple(np.where(cuts, a, b) for a, b in zip(cut_tile, tile, strict=True)), cuts


def decode_tile(
    kernel: AttentionFacts,
    machine: Machine,
    dim: int,
    stored: ElementType,
    *,
    windowed: bool = False,
    streams: int = 2,
) -> TileRow:
    """The first tile of the decode menu that fits in shared memory, with `streams` tensors of
    keys and values."""
    return kernel.first_fitting(
        kernel.menu(dim, decode=True, narrow=stored.bits <= 8, windowed=windowed),
        lambda tile: (tile[0] + streams * kernel.stages * tile[1]) * dim * stored.bytes,
        machine.shared_per_block,
    )


def _regrouping(problem: Attention, setting: Setting) -> np.ndarray:
    """Seconds of the copies around FlashAttention-2's decode of grouped queries."""
    sizes = {axis: np.asarray(size) for axis, size in problem.sizes().items()}
    heads = rowwise.whole(product([sizes["b"], sizes["g"], sizes["r"]]))
    moves = Rowwise("pointwise", heads, sizes["d"], dtype=problem.dtype)
    copy = setting.at_clock("kernel_gap") + rowchain.beside(setting, moves, "torch-pointwise")
    return np.asarray(_copies(sizes) * copy)


def _copies(sizes: Sizes) -> np.ndarray:
    """Number of copy kernels around FlashAttention-2's decode of grouped queries (flash_api.cpp).

    The queries of a group become rows of one problem. With one sequence or one key-value head that
    order is a view, and only the result is copied: one. Otherwise queries, result and log-sum-exp
    are copied there and back: four.
    """
    grouped = np.asarray(sizes["r"] > 1, dtype=np.float64)
    strided = np.asarray((sizes["b"] > 1) & (sizes["g"] > 1), dtype=np.float64)
    return np.asarray(grouped * (1.0 + 3.0 * strided))


def _idle_seconds(sizes: Sizes, setting: Setting) -> np.ndarray:
    """Seconds of a combining kernel that finds nothing to combine, beyond the kernel before it.

    It is launched ahead, so only its blocks cost time. A block has 1,024 elements of the result.
    Three dependent loads tell it that there is nothing to do: the sequence's start, its length and
    its number of slices (flash_fwd_combine_kernel.h).
    """
    machine = setting.machine
    b, g, r, q, d = columns(sizes, "bgrqd")
    width = np.where(d <= 64, 64.0, 128.0)
    blocks = b * np.ceil(g * r * q * width / 1024) * np.ceil(d / width)
    rounds = np.maximum(blocks / (machine.units * _IDLE_BLOCKS), 1.0)
    start = setting.at_clock("block_price")
    seconds = rounds * (start + 3.0 * machine.l2_latency)
    return np.where(b <= CAPTURED, seconds, 0.0)
