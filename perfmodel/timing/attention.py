"""Plans for attention: which kernels a class of implementation launches, over its menu."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from perfmodel.algorithms.algorithm import Band
from perfmodel.algorithms.attention import AXES, Attention
from perfmodel.algorithms.rowwise import Rowwise
from perfmodel.arithmetic import Number, as_floats, ceil_div, product
from perfmodel.count import count
from perfmodel.schedules import tiled
from perfmodel.timing import rowwise, slicing
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import EvenRule, KernelClass, TileRow, hidden_share, matrix_share
from perfmodel.timing.constants import Constants
from perfmodel.timing.kernel import Style
from perfmodel.timing.machine import Machine
from perfmodel.timing.plan import Part, Plan

# Blocks of a combining kernel that finds nothing, of 256 threads, that a unit holds at once.
_IDLE_COMBINING = 8.0
# Matrix operations a clock and unit for which attention's share of them is stated: in 16 bits those
# of A100 for instructions fed from registers, of H100 and B200 for those of their generations.
_FULL_RATE_REGISTERS, _FULL_RATE = 2048.0, {9: 4096.0, 10: 8192.0, 11: 8192.0}
# Share of the vector operations a score that integer lanes do: the maximum and half a packed
# conversion of 3.5; of the 4 on the way back, two halves of a conversion (CUDA C++ Programming
# Guide, throughput of compare, minimum and maximum).
_INTEGER, _INTEGER_BACKWARD = 1.5 / 3.5, 1.0 / 4.0
# Tiles of a backward block and buffers of its queries, the first that fit: 64 × 64 with one buffer
# where shared memory is short, smaller for wide heads (FlashAttention-2's launch templates).
_BACKWARD = (
    (((128, 128),), 2),
    (((64, 128), (128, 64)), 2),
    (((64, 64),), 2),
    (((64, 64),), 1),
    (((32, 64),), 1),
    (((32, 32),), 1),
    (((16, 32),), 1),
    (((16, 16),), 1),
)
# Warp tile of a backward block: 8 warps share its 64 × 128 scores (the same templates).
_BACKWARD_WARP = (32, 32)
_BACKWARD_1 = tuple((((16, keys),), 2) for keys in (256, 128, 64, 32, 16))


def compute_type(problem: Attention, machine: Machine) -> str:
    """Rate that both contractions run at: the type of the queries, unless the device lacks it."""
    if problem.dtype == "bf16" and "bf16" not in machine.device.matrix_types:
        return "fp16" if "fp16" in machine.device.matrix_types else "fp32"
    return problem.dtype


def style(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
) -> Style:
    """The class's facts and constants as the kernel timer wants them."""
    share = _matrix_share(problem, kernel, machine, constants)
    if kernel.paged:
        share *= constants["paged_share"]
    price = kernel.price if kernel.packed else "attention_block_price"
    return Style(
        compute=compute_type(problem, machine),
        matrix_share=share,
        overlap=_overlap(problem, kernel, constants),
        price=constants[price] / constants["block_price"],
        together="attention_block_overlap",
        warm=around.warm,
        activity=around.activity,
        credit_seconds=around.credit_seconds,
        vector_share=constants["softmax_vector_share"],
        resident=np.inf if kernel.resident is None else kernel.resident,
        persistent=kernel.instruction == "native" and machine.generation >= 9,
        combine="combine_price",
        ahead=kernel.combines_ahead,
        search_seconds=_search_seconds(problem, kernel, machine, constants),
        integer_share=_INTEGER,
        fills_in=kernel.schedule == "tiled-2",
        longest_first=kernel.schedule == "tiled-3",
        chained=kernel.ping_pong,
        fetched_by=constants["overlap_power"] if _fed_by_registers(kernel, machine) else None,
        start="specialised_start" if kernel.price == "specialised_block_price" else None,
    )


def _matrix_share(
    problem: Attention, kernel: KernelClass, machine: Machine, constants: Constants
) -> float:
    """Share of the matrix unit's rate by the class's instructions, as `kept_share` has it."""
    compute, path = compute_type(problem, machine), matrix_share(kernel, machine, constants)
    share = constants[kernel.share or "attention_matrix_share"]
    if machine.device.kind == "cpu" or machine.on_vector(compute):
        return path * share
    native = not _fed_by_registers(kernel, machine)
    full = _FULL_RATE.get(int(machine.generation)) if native else None
    rate = path * machine.matrix_per_unit(compute) / machine.clock_hz
    return path * kept_share(share, rate / (full or _FULL_RATE_REGISTERS))


def kept_share(share: float, rate: float) -> float:
    """Share of the matrix rate at `rate` times that at which `share` holds.

    What a warp does between its matrix instructions, waiting for the one before, addresses and
    barriers, takes the same cycles whether the unit is fast or slow. That is 1/s − 1 of the time of
    the instructions where they keep a share s, and r times that where the unit is r times as fast:
    1/s(r) = 1 + (1/s − 1)·r.
    """
    return 1.0 / (1.0 + (1.0 / share - 1.0) * rate)


def _overlap(problem: Attention, kernel: KernelClass, constants: Constants) -> float:
    """Share of non-matrix work hidden under the matrix unit: none where registers are lacking.

    FlashAttention-3 gives up its overlap within a group of warps where addresses of 8-bit pages
    take the registers (tile_size.h).
    """
    narrow = kernel.paged and problem.elements()["kv"].bits <= 8
    most = kernel.narrow_pages_to
    wide = most is not None and int(np.max(problem.head_dim)) > most
    return 0.0 if narrow and wide else hidden_share(kernel, constants)


def passing(how: Style, kernel: KernelClass, machine: Machine, dim: Number) -> Number:
    """Seconds in which scores pass through shared memory for each of matrix work.

    b bytes of a score stand beside its 4·d operations, one after the other: a barrier lies between.
    """
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    return kernel.passed_bytes / machine.shared_bytes_per_unit * rate / (4.0 * dim)


def exchanging(how: Style, machine: Machine, keys: Number, warps: Number) -> Number:
    """Seconds in which FlashAttention-1's warps add up their outputs for each of matrix work.

    They cut the keys of a tile between them, so that each has a partial sum of every output: it is
    written to shared memory in fp32 and read back before the next tile (FlashAttention-2, 3.3). For
    r rows and head dimension d that is 8·warps·r·d bytes beside 4·r·keys·d operations, one after
    the other.
    """
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    return 2.0 * warps / keys * rate / machine.shared_bytes_per_unit


def operand_tile(
    kernel: KernelClass, machine: Machine, rows: Number, keys: Number, threads: Number
) -> tuple[Number, Number]:
    """Rows and columns that share one operand fetch; see `Kernel.operand_tile`.

    Instructions fed from registers share it within a warp. FlashAttention-2 and Triton give every
    warp rows of its own and all keys of a tile (2307.08691, section 3.3); FlashAttention-1 cuts the
    keys between them instead, which stay in registers while queries stream
    (fmha_fprop_kernel_1xN.h).
    """
    if _fed_by_registers(kernel, machine):
        warps = np.maximum(threads // 32, 1)
        return (np.inf, keys / warps) if kernel.schedule == "tiled-1" else (rows / warps, keys)
    return (128 if machine.generation >= 10 else 64), keys


def _fed_by_registers(kernel: KernelClass, machine: Machine) -> bool:
    return kernel.instruction == "register" or machine.generation < 9


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
    if kernel.paged and kernel.even_rule is not None and problem.phase != "decode":
        sliced = _even_plan(problem, kernel, machine, constants, how, tiles)
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
        order=_order(kernel),
        pack=as_floats(problem.sizes())["r"] if kernel.packs else 1,
        query_slice=query_slice,
        stages=kernel.stages,
        threads=threads,
        operand_tile=operand_tile(kernel, machine, br, bc, threads),
        score_vector=problem.score_vector(),
    )
    part = Part(schedule, problem.sizes(), problem.elements(), how)
    return Plan(schedule.name, (part,), {"rows": br, "keys": bc})


def _even_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    how: Style,
    tiles: tuple[TileRow, ...],
) -> Plan | None:
    """Few rows of one sequence leave units idle: keys in even shares, as for decode; else none."""
    rule, sizes = kernel.even_rule, as_floats(problem.sizes())
    assert rule is not None
    tile = tuple(np.array(tiles, dtype=np.float64).T[:, None])
    mask = problem.mask()
    cut = slicing.cuts(sizes, tile, rule, machine, mask.left if mask is not None else None)
    if "split" in constants.off or not np.any(cut):
        return None
    splits = np.where(cut, slicing.evenly(sizes, tile, rule, machine), 1.0)
    made = _sliced_plan(problem, kernel, machine, how, mask, sizes, tile, splits)
    idle = _idle_combining(sizes, rule, machine, constants)
    beside = np.where(cut & (splits == 1.0), idle, 0.0)
    return replace(made, schedule=kernel.schedule, beside=beside)


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


def _order(kernel: KernelClass) -> tiled.Order:
    orders: dict[str, tiled.Order] = {"tiled-1": 1, "tiled-2": 2, "tiled-3": 3}
    return orders[kernel.schedule]


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
    splits = np.ones((1, 1))
    if "split" not in constants.off:
        if kernel.even_rule is not None:
            splits = slicing.evenly(sizes, chosen, kernel.even_rule, machine)
        elif kernel.split_rule is not None:
            splits = slicing.by_rule(sizes, chosen, kernel.split_rule, machine)
        else:
            splits = slicing.promising(sizes, chosen, kernel, machine, constants, how, width, keep)
    made = _sliced_plan(problem, kernel, machine, how, mask, sizes, chosen, splits)
    beside = _regrouping(problem, machine, constants, around) if kernel.regroups else 0.0
    if kernel.paged and kernel.even_rule is not None:
        idle = _idle_combining(sizes, kernel.even_rule, machine, constants)
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
    sizes: Mapping[str, Number], rule: EvenRule, machine: Machine, constants: Constants
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
    return np.where(b <= rule.captured, seconds, 0.0)


def _search_seconds(
    problem: Attention, kernel: KernelClass, machine: Machine, constants: Constants
) -> Number:
    """Seconds in which each unit finds its tiles among sequences of any length.

    A warp of FlashAttention-3's scheduler adds up the tiles of 31 sequences, each addition waiting
    for the one before, until it comes to its own; where keys may be sliced it loads the numbers of
    slices first (tile_scheduler.hpp).
    """
    rule = kernel.even_rule
    if not kernel.paged or rule is None:
        return 0.0
    sequences = problem.sizes()["b"]
    load = np.where(np.asarray(sequences) <= rule.captured, machine.l2_latency, 0.0)
    step = machine.at_clock(constants["tile_search"]) + load
    return np.asarray(ceil_div(sequences, rule.searched) * step)


def backward_plan(
    problem: Attention,
    kernel: KernelClass,
    machine: Machine,
    constants: Constants,
    around: Circumstances,
) -> Plan:
    """Backward attention: recomputed in tiles, or unfused from saved probabilities."""
    how = style(problem, kernel, machine, constants, around)
    share = how.matrix_share * constants[kernel.backward]
    # The first keys are seen by the most queries.
    how = replace(how, matrix_share=share, longest_first=True, integer_share=_INTEGER_BACKWARD)
    order, fed, warp = _order(kernel), _fed_by_registers(kernel, machine), _BACKWARD_WARP
    br, bc, stages = _backward_tiles(problem, machine, order)
    key_slice = None
    if order == 1:
        held = problem.seq_kv
        if kernel.head_rule is not None and "split" not in constants.off:
            sizes, causal = as_floats(problem.sizes()), problem.mask() is not None
            rule = kernel.head_rule
            slices = slicing.keys_of_heads(sizes, bc, rule, machine, causal=causal)
            held = key_slice = ceil_div(ceil_div(problem.seq_kv, slices), bc) * bc
        exchange = exchanging(how, machine, bc, 8)
        how = replace(how, exchange=exchange, fills=ceil_div(held, bc))
    schedule = tiled.tiled_backward(
        problem.mask(),
        br,
        bc,
        order=order,
        key_slice=key_slice,
        stages=stages,
        operand_tile=warp if fed else operand_tile(kernel, machine, br, bc, 256),
        score_vector=problem.score_vector(),
    )
    part = Part(schedule, problem.sizes(), problem.elements(), how)
    return Plan(schedule.name, (part,), {"rows": br, "keys": bc})


def _backward_tiles(
    problem: Attention, machine: Machine, order: tiled.Order
) -> tuple[np.ndarray, np.ndarray, int]:
    """Rows, keys and buffers of the first entry of the menu of which a tile fits; else the last."""
    wide = {axis: int(np.max(problem.sizes()[axis])) for axis in "de"}
    alone = dict.fromkeys(AXES, 1) | wide
    for tiles, stages in _BACKWARD_1 if order == 1 else _BACKWARD:
        br, bc = np.array(tiles).T[:, None]
        schedule = tiled.tiled_backward(None, br, bc, order=order, stages=stages)
        held = count(schedule, alone, problem.elements()).kernels[-1]
        fits = held.shared_footprint_bytes <= machine.shared_per_block
        if np.any(fits & (held.register_footprint_bytes <= machine.registers_bytes)):
            break
    return br, bc, stages
