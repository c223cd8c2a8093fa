"""How a class of attention kernels uses the device: shares of its units, and what overlaps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from perfmodel.algorithms.algorithm import Band
from perfmodel.algorithms.attention import Attention
from perfmodel.arithmetic import Number, as_floats, ceil_div
from perfmodel.count.executed import next_extent
from perfmodel.schedules import tiled
from perfmodel.timing.constants import Constants
from perfmodel.timing.cuts.even import CAPTURED, SEARCHED, EvenCut
from perfmodel.timing.libraries import AttentionFacts
from perfmodel.timing.machine import Machine
from perfmodel.timing.matmul import large_product
from perfmodel.timing.occupancy import ADDRESSING_REGISTERS
from perfmodel.timing.setting import Setting
from perfmodel.timing.shares import hidden_share, matrix_share
from perfmodel.timing.style import Block, Code, Style, Turns

# 16-bit matrix operations a clock and unit of A100, for which the share of the rate that
# register-fed instructions reach is stated.
_FULL_RATE_REGISTERS = 2048.0
# Axes that attention kernels do not loop over: head dimension of queries and keys, of values.
HEAD_AXES = ("d", "e")
# Share of the vector operations of a score that run on integer lanes: of 3.5, the maximum and half
# a packed conversion (CUDA C++ Programming Guide, throughput of compare, minimum and maximum).
_INTEGER = 1.5 / 3.5


def compute_type(problem: Attention, machine: Machine, kernel: AttentionFacts | None = None) -> str:
    """The type whose rate both products run at: that of the queries, or that of a narrower cache
    where the kernel narrows the queries."""
    if kernel is not None and kernel.narrow_products:
        return machine.multiplied_as(problem.elements()["kv"].name)
    return machine.multiplied_as(problem.dtype)


def style(problem: Attention, kernel: AttentionFacts, setting: Setting) -> Style:
    """The class's facts and constants as the kernel timer takes them."""
    constants = setting.constants
    base = chained(kernel, compute_type(problem, setting.machine, kernel), setting)
    ordering = _has_order(problem, kernel) * constants["ordered_price"] / constants["block_price"]
    search = _search_seconds(problem, kernel, setting)
    return replace(
        base,
        turns=replace(base.turns, chained=_is_chain(problem, kernel)),
        shared=("V",) if problem.keys_only else (),
        compiled_for=dict.fromkeys(HEAD_AXES, kernel.head_dims) if kernel.head_dims else {},
        block=replace(
            base.block,
            price=base.block.price + ordering,
            search_seconds=search,
            waits=_halvings(problem) if kernel.searches else 0.0,
        ),
    )


def chained(kernel: AttentionFacts, compute: str, setting: Setting) -> Style:
    """The style of two chained products at the rate of `compute`, for any operands."""
    machine, constants = setting.machine, setting.constants
    # Specialised warps hand work to each other; this costs more where sequences are packed.
    hands = kernel.specialises and kernel.caller.packed
    price = constants["specialised_block_price" if hands else "chained_block_price"]
    price += kernel.steps * constants["row_price"]
    return Style(
        compute=compute,
        matrix_share=_matrix_share(compute, kernel, setting),
        overlap=hidden_share(kernel, constants),
        resident=np.inf if kernel.resident is None else kernel.resident,
        persistent=kernel.instruction == "native" and machine.architecture.copies == "tensor",
        tensor_copies=kernel.specialises and machine.architecture.copies == "tensor",
        combining_seconds=None if kernel.combine.inside else constants["combine_price"],
        large_product=large_product(compute, setting),
        longest_first=kernel.schedule == "tiled-3",
        code=Code(integer_share=_INTEGER, vector_share=constants["chained_vector_share"]),
        block=Block(
            price=price / constants["block_price"],
            setup_seconds=constants["specialised_start"] if kernel.specialises else 0.0,
        ),
        turns=Turns(
            fetched_by=constants["overlap_power"] if fed_by_registers(kernel, machine) else None,
            alone=kernel.schedule == "tiled-2",
            waits=kernel.waits,
        ),
        run=setting.run,
    )


def _matrix_share(compute: str, kernel: AttentionFacts, setting: Setting) -> float:
    """Share of the matrix unit's rate that the class's instructions reach (`kept_share`)."""
    machine, constants = setting.machine, setting.constants
    path = matrix_share(kernel, machine)
    share = constants["chained_matrix_share"] if kernel.share is None else kernel.share
    if machine.device.kind == "cpu" or machine.on_vector(compute):
        return path * share
    full = _FULL_RATE_REGISTERS
    if not fed_by_registers(kernel, machine):
        full = machine.architecture.stated_flops_per_clock
    rate = path * machine.matrix_per_unit(compute) / machine.clock_hz
    return path * kept_share(share, rate / full)


def kept_share(share: float, rate: float) -> float:
    """Share of the matrix rate on a unit that is `rate` times as fast as the one where `share`
    holds.

        1/s(r) = 1 + (1/s − 1)·r

    s is `share`, r is `rate`. Between its matrix instructions a warp waits for the last result and
    spends cycles on addresses and barriers. These cycles are the same on a fast and a slow unit:
    1/s − 1 of the instructions' own time at r = 1, r times that share where the unit is r times as
    fast.
    """
    return 1.0 / (1.0 + (1.0 / share - 1.0) * rate)


def _is_chain(problem: Attention, kernel: AttentionFacts) -> bool:
    """Whether exponentials and the vector work around them are one dependent chain."""
    if kernel.turns_at is None:
        return False
    return next_extent(int(np.max(problem.head_dim)), kernel.head_dims) not in kernel.turns_at


def _has_order(problem: Attention, kernel: AttentionFacts) -> Number:
    """Whether FlashAttention-3's scheduler orders tiles by length and heads by L2 locality.

    It does under a causal mask or a window. The library drops the causal mask for a single query,
    except with heads of 128 and paged keys, where the causal kernel has the better tile
    (flash_api.cpp: head_swizzle, is_causal).
    """
    if not (isinstance(kernel.cut, EvenCut) and kernel.caller.packed):
        return False
    paged_decode = kernel.caller.paged and 64 < int(np.max(problem.head_dim)) <= 128
    masked = problem.causal and (problem.phase != "decode" or paged_decode)
    return True if masked else problem.windowed()


def _search_seconds(problem: Attention, kernel: AttentionFacts, setting: Setting) -> Number:
    """Seconds in which each unit finds its tiles among sequences of different lengths.

    A warp of FlashAttention-3's scheduler adds up the tiles of 31 sequences in dependent additions
    until it reaches its own. Where keys may be sliced, it first loads the numbers of slices
    (tile_scheduler.hpp).
    """
    machine, constants = setting.machine, setting.constants
    if not (isinstance(kernel.cut, EvenCut) and kernel.caller.paged):
        return 0.0
    sequences = problem.sizes()["b"]
    load = np.where(np.asarray(sequences) <= CAPTURED, machine.l2_latency, 0.0)
    step = machine.at_clock(constants["tile_search"]) + load
    return np.asarray(ceil_div(sequences, SEARCHED) * step)


def _halvings(problem: Attention) -> Number:
    """Dependent loads of the binary search in which a block finds its sequence."""
    return np.asarray(np.ceil(np.log2(as_floats(problem.sizes())["b"] + 1.0)))


def on_tiles(
    traits: Style,
    problem: Attention,
    mask: Band | None,
    kernel: AttentionFacts,
    setting: Setting,
    rows: Number,
    keys: Number,
    pack: Number,
) -> Style:
    """`traits` with the costs that depend on the tile: those of `mask`, and those of 8-bit values.

    A tile has the rows of `pack` query heads that share their keys.
    """
    machine, constants = setting.machine, setting.constants
    integer_ops = masking(problem, mask, pack, rows, keys)
    if kernel.mask_ops:
        integer_ops = kernel.mask_ops * masking_all(problem, kernel, pack, rows, keys)
    integer_ops = integer_ops + widening(problem, kernel, pack, rows, keys)
    integer_ops = integer_ops + rounding(problem, kernel, machine, pack, rows, keys)
    tile_seconds = transposing(problem, kernel, machine, constants, keys)
    return replace(
        traits,
        code=replace(traits.code, integer_ops=integer_ops),
        block=replace(traits.block, tile_seconds=tile_seconds),
    )


def masking(
    problem: Attention, mask: Band | None, pack: Number, rows: Number, keys: Number
) -> Number:
    """Integer instructions that replace the scores hidden by the mask.

    Kernels compare columns only in tiles that an edge of the band cuts: ⌈span / Bc⌉ tiles of a
    query tile of `span` queries. Each score takes one compare an edge and one selection
    (FlashAttention-2, flash_fwd_kernel.h: masking steps; FlashAttention-3, mask.h).
    """
    if mask is None:
        return 0.0
    b, g, r, q, x = (as_floats(problem.sizes())[axis] for axis in "bgrqx")
    span = ceil_div(rows, pack)
    edges = 1.0 + problem.windowed()
    reach = x if mask.left is None else np.minimum(x, span + mask.left)
    edge_tiles = np.minimum(edges * ceil_div(span, keys), ceil_div(reach, keys))
    tiles = b * g * (r / pack) * ceil_div(pack * q, rows)
    return tiles * edge_tiles * rows * keys * (edges + 1.0)


def masking_all(
    problem: Attention, kernel: AttentionFacts, pack: Number, rows: Number, keys: Number
) -> Number:
    """As `masking`, where every visited tile is masked and hidden tiles are visited too.

    Triton's kernels compare each score with every edge and select it, in every tile. A loop that
    starts at the first key finds a tile hidden by the window only after comparing all of its scores
    and taking a maximum over the tile.
    """
    windowed = problem.windowed()
    edges = float(problem.causal) + windowed * (2.0 if kernel.walks else 1.0)
    tiles = _visits(problem, pack, rows, keys, hidden=kernel.walks)
    return tiles * rows * keys * (edges + 1.0)


def widening(
    problem: Attention, kernel: AttentionFacts, pack: Number, rows: Number, keys: Number
) -> Number:
    """Integer instructions that convert 8-bit keys and values to 16 bits.

    A block converts every tile that it streams, however few queries it has.
    """
    elements = problem.elements()
    if not kernel.widening_ops or elements["kv"].bits > 8 or elements["data"].bits <= 8:
        return 0.0
    sizes = as_floats(problem.sizes())
    if kernel.head_dims:
        sizes |= {axis: next_extent(sizes[axis], kernel.head_dims) for axis in HEAD_AXES}
    tiles = _visits(problem, pack, rows, keys, hidden=False)
    return kernel.widening_ops * tiles * keys * (sizes["d"] + sizes["e"])


def rounding(
    problem: Attention,
    kernel: AttentionFacts,
    machine: Machine,
    pack: Number,
    rows: Number,
    keys: Number,
) -> Number:
    """Integer instructions that round probabilities to bf16 for the second product, where the
    architecture has none that converts them."""
    default = machine.architecture.bf16_ops
    if not default or machine.multiplied_as(problem.dtype) != "bf16":
        return 0.0
    ops = default if kernel.rounding_ops is None else kernel.rounding_ops
    return ops * _visits(problem, pack, rows, keys, hidden=False) * rows * keys


def _visits(
    problem: Attention, pack: Number, rows: Number, keys: Number, *, hidden: bool
) -> Number:
    """Key tiles that all row blocks visit; with `hidden` including those that a window hides."""
    b, g, r, q, x = (as_floats(problem.sizes())[axis] for axis in "bgrqx")
    span = np.maximum(np.floor(rows / pack), 1.0)
    key_count = x - q + (q + np.minimum(span, q)) / 2.0 if problem.causal else x
    if not hidden and problem.window is not None:
        reach = np.where(problem.windowed(), span + np.asarray(problem.window), x)
        key_count = np.minimum(key_count, reach)
    blocks = np.ceil(r / pack) * ceil_div(q, span) if np.any(pack != 1.0) else r * ceil_div(q, span)
    return b * g * blocks * np.maximum(ceil_div(key_count, keys), 1.0)


def transposing(
    problem: Attention, kernel: AttentionFacts, machine: Machine, constants: Constants, keys: Number
) -> Number:
    """Seconds in which the loading warps transpose a tile of values for the second product.

    The matrix unit takes 8-bit operands only with the contraction axis contiguous, and values are
    stored the other way (FlashAttention-3, section 3.3).
    """
    kv = problem.elements()["kv"]
    if not kernel.transposes or kv.bits > 8:
        return 0.0
    per_clock = constants["transposed_bytes"] * machine.clock_hz
    widest: Number = np.max(problem.head_dim)
    return keys * kv.bytes * widest / per_clock


def staged_resident(
    problem: Attention,
    kernel: AttentionFacts,
    machine: Machine,
    rows: Number,
    keys: Number,
    threads: Number,
) -> Number:
    """Most resident blocks of a unit where tiles of keys and values pass through registers.

    The tiles share a block's registers with the result, the scores and the addresses.
    """
    most = np.inf if kernel.resident is None else kernel.resident
    if not kernel.waits:
        return most
    dim, kv_bytes = problem.head_dim, problem.elements()["kv"].bytes
    tiles = 4.0 * rows * (dim + keys) + 2.0 * keys * dim * kv_bytes
    footprint = np.minimum(
        tiles + 4.0 * ADDRESSING_REGISTERS * threads, machine.thread_registers_bytes * threads
    )
    return np.clip(machine.registers_bytes // footprint, 1.0, most)


def passing(how: Style, columns: int, machine: Machine, dim: Number) -> Number:
    """Seconds in which scores pass through shared memory, per second of matrix work.

    A score of 2 bytes is written once and read by each of the d / `columns` warps that share its
    row. It has 4·d matrix operations. The two do not overlap: a barrier lies between.
    """
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    score_bytes = 2.0 * (1.0 + ceil_div(dim, columns))
    return score_bytes / machine.shared_bytes_per_unit * rate / (4.0 * dim)


def exchanging(how: Style, machine: Machine, keys: Number, warps: Number) -> Number:
    """Seconds in which FlashAttention-1's warps add up their outputs, per second of matrix work.

    The warps split the keys of a tile, so each has a partial sum of every output. The partial sums
    are written to shared memory in fp32 and read back before the next tile (FlashAttention-2, 3.3).
    For r rows and head dimension d that is 8·warps·r·d bytes against 4·r·keys·d operations, without
    overlap.
    """
    rate = machine.matrix_per_unit(how.compute) * how.matrix_share
    return 2.0 * warps / keys * rate / machine.shared_bytes_per_unit


def operand_tile(
    kernel: AttentionFacts, machine: Machine, rows: Number, keys: Number, threads: Number
) -> tuple[Number, Number]:
    """Rows and columns that share one operand fetch; see `Kernel.operand_tile`.

    Register-fed instructions share a fetch within a warp. FlashAttention-2 and Triton give each
    warp its own rows and all keys of a tile (2307.08691, section 3.3). FlashAttention-1 splits the
    keys between the warps instead.
    """
    if fed_by_registers(kernel, machine):
        warps = np.maximum(threads // machine.warp_threads, 1)
        return (rows, keys / warps) if kernel.schedule == "tiled-1" else (rows / warps, keys)
    return machine.architecture.rows, keys


def fed_by_registers(kernel: AttentionFacts, machine: Machine) -> bool:
    """Whether warps load operands into registers for the class's matrix instructions."""
    return kernel.instruction == "register" or machine.architecture.feeds_registers


def order_of(kernel: AttentionFacts) -> tiled.Order:
    """The loop order of a class's schedule, as `perfmodel.schedules.tiled` numbers them."""
    orders: dict[str, tiled.Order] = {"tiled-1": 1, "tiled-2": 2, "tiled-3": 3}
    return orders[kernel.schedule]
