"""Tiled (Flash) attention forward in FlashAttention-2's loop order: query tiles on the grid.

Causal and windowed masks skip the key tiles that no row of the tile sees; `pack` query heads of a
group share one tile; any lengths and head dimensions. Leaves L = m + log ℓ for the backward pass.
"""

from __future__ import annotations

import triton
import triton.language as tl
from perfmodel_kernels.attention_menus import FORMS, AttentionConfig, every_config, menu_of
from perfmodel_kernels.attention_tile import attend_all, key_ranges
from perfmodel_kernels.common import (
    LOG2E,
    ceil_div,
    check_forward,
    dims,
    forward_reference,
    inputs,
    mask_arguments,
    padded,
    scale_of,
)

from perfmodel.algorithms import Attention
from perfmodel.proof.kernel import (
    Argument,
    Array,
    BundledKernel,
    Descriptor,
    Launch,
    Tensors,
)
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import tiled

NAME = "attention-tiled"


@triton.jit
def attention_forward(
    Q, K, V, OUT, L, scale, group, seq_q, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    ROWS: tl.constexpr, PACK: tl.constexpr, TILE: tl.constexpr, BC: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    DESCRIPTORS: tl.constexpr, SPECIALISE: tl.constexpr, BY_BITS: tl.constexpr,
):  # fmt: skip
    """One tile of ROWS query rows of PACK heads; query tiles fastest, then heads, then batch.

    TILE rows are computed, of which ROWS × PACK are real.
    """
    row_tiles = (seq_q + ROWS - 1) // ROWS
    packs = (group + PACK - 1) // PACK
    block = tl.program_id(0)
    i = block % row_tiles
    if CAUSAL:
        i = row_tiles - 1 - i  # the last rows see most keys: the longest blocks start first
    outer = block // row_tiles
    first_head = outer % packs * PACK
    kv_head = (outer // packs).to(tl.int64)
    stacked = tl.arange(0, TILE)
    row = i * ROWS + stacked % ROWS
    alive = (stacked < ROWS * PACK) & (first_head + stacked // ROWS < group) & (row < seq_q)
    # Rows of the tile: from `base` on, by offsets of 32 bits, which cost half the registers.
    base = (kv_head * group + first_head) * seq_q + i * ROWS
    offset = stacked // ROWS * seq_q + stacked % ROWS
    if DESCRIPTORS and ROWS * PACK == TILE:
        q = Q.load([outer // packs, first_head, i * ROWS, 0]).reshape(TILE, BD)
    else:
        d = tl.arange(0, BD)
        present = alive[:, None] & (d < D)[None, :]
        q = tl.load(Q + base * D + (offset[:, None] * D + d[None, :]), mask=present, other=0.0)
    first, whole, edge, last = key_ranges(i, seq_q, seq_kv, ROWS, BC, CAUSAL, WINDOW)
    out, log_sum = attend_all(
        q, K, V, row, kv_head, first, whole, edge, last, seq_kv, seq_kv - seq_q, scale,
        D, E, BD, BE, BC, CAUSAL, WINDOW, DESCRIPTORS, SPECIALISE, BY_BITS,
    )  # fmt: skip
    tl.store(L + base + offset, log_sum, mask=alive)
    if DESCRIPTORS and ROWS * PACK == TILE:
        found = out.to(OUT.dtype).reshape(1, PACK, ROWS, BE)
        OUT.store([outer // packs, first_head, i * ROWS, 0], found)
    else:
        e = tl.arange(0, BE)
        present = alive[:, None] & (e < E)[None, :]
        at = OUT + base * E + (offset[:, None] * E + e[None, :])
        tl.store(at, out.to(OUT.dtype.element_ty), mask=present)


def _arrays(problem: Attention, config: AttentionConfig) -> tuple[Array, ...]:
    b, g, r, q, _, _, e = dims(problem)
    return (
        *inputs(problem),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, g * r, q), "fp32", "output"),
    )


def _tensors(problem: Attention, config: AttentionConfig) -> dict[str, Argument]:
    """Q, K, V and O as the kernel takes them: pointers, or descriptors of heads by rows."""
    b, g, r, q, x, d, e = dims(problem)
    wide_d, wide_e = padded(d), padded(e)
    if not config.descriptors:
        return {"Q": "Q", "K": "K", "V": "V", "OUT": "O"}
    found: dict[str, Argument] = {
        "Q": "Q",
        "K": Descriptor("K", (b * g, x, d), (1, config.bc, wide_d)),
        "V": Descriptor("V", (b * g, x, e), (1, config.bc, wide_e)),
        "OUT": "O",
    }
    if config.rows * config.pack == config.tile:
        tile = (1, config.pack, config.rows)
        found["Q"] = Descriptor("Q", (b * g, r, q, d), (*tile, wide_d))
        found["OUT"] = Descriptor("O", (b * g, r, q, e), (*tile, wide_e))
    return found


def _plan(problem: Attention, config: AttentionConfig) -> tuple[Launch, ...]:
    check_forward(NAME, problem)
    b, g, r, q, x, d, e = dims(problem)
    launch = Launch(
        "tiled-forward",
        attention_forward,
        (b * g * ceil_div(r, config.pack) * ceil_div(q, config.rows),),
        {
            **_tensors(problem, config),
            "L": "L",
            "scale": scale_of(problem) * LOG2E,
            "group": r,
            "seq_q": q,
            "seq_kv": x,
        },
        {
            "D": d,
            "E": e,
            "BD": padded(d),
            "BE": padded(e),
            "ROWS": config.rows,
            "PACK": config.pack,
            "TILE": config.tile,
            "BC": config.bc,
            **mask_arguments(problem),
            "DESCRIPTORS": config.descriptors,
            "SPECIALISE": config.specialise,
            "BY_BITS": config.by_bits,
        },
        num_warps=config.warps,
        num_stages=config.stages,
    )
    return (launch,)


def _schedule(problem: Attention, config: AttentionConfig) -> Schedule:
    return tiled(
        problem.mask(),
        config.br,
        config.bc,
        pack=config.pack,
        stages=config.stages,
        threads=32 * config.warps,
    )


def _reference(problem: Attention, tensors: Tensors) -> Tensors:
    found = forward_reference(problem, tensors)
    return {"O": found["O"], "L": found["L"]}


def _case(shape: tuple[int, ...], dtype: str, config: AttentionConfig, **more: object) -> tuple:
    return Attention(*shape, dtype=dtype, **more), config


CASES = (
    _case((1, 2, 2, 200, 200, 64), "fp16", AttentionConfig(64, 32)),
    _case((2, 4, 2, 77, 130, 40), "fp32", AttentionConfig(32, 64), causal=True),
    _case((1, 6, 2, 100, 100, 64), "fp16", AttentionConfig(64, 32, pack=2), causal=True),
    _case((1, 2, 1, 150, 150, 32), "fp16", AttentionConfig(32, 32), causal=True, window=40),
    _case((1, 2, 1, 90, 160, 32), "fp32", AttentionConfig(32, 64), window=50),
    _case((1, 2, 2, 130, 70, 16), "fp32", AttentionConfig(32, 16), causal=True),
    _case((1, 3, 1, 65, 257, 96, 64), "fp16", AttentionConfig(16, 128, pack=4)),
    _case((1, 2, 2, 128, 192, 64), "fp16", AttentionConfig(64, 64, descriptors=True), causal=True),
    # The last key opens a tile.
    _case((1, 2, 1, 97, 97, 32), "fp32", AttentionConfig(32, 32), causal=True),
)

KERNELS = (
    BundledKernel(
        name=NAME,
        summary="tiled attention forward, FlashAttention-2's loop order",
        dtypes=("fp32", "fp16", "bf16", "fp8"),
        configs=every_config(),
        cases=CASES,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        overlaps=lambda config: config.specialise,
        menu_of=menu_of,
        style_like="attention-tiled",
        forms=FORMS,
    ),
)
