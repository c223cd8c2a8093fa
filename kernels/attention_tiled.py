"""Tiled (Flash) attention forward in FlashAttention-2's loop order: query tiles on the grid.

Causal and windowed masks skip the key tiles that no row of the tile sees; `pack` query heads of a
group share one tile; any lengths and head dimensions. Leaves L = m + log ℓ for the backward pass.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from perfmodel_kernels.common import (
    LOG2E,
    ceil_div,
    dims,
    forward_reference,
    inputs,
    mask_arguments,
    power_of_two,
    scale_of,
)

from perfmodel.algorithms import Attention
from perfmodel.evidence.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import tiled


@dataclass(frozen=True)
class AttentionConfig:
    """Query rows `br` (of `pack` heads together) by `bc` keys.

    `descriptors` loads K and V through tensor descriptors, `specialise` gives loads and arithmetic
    warps of their own: both need a target that has them.
    """

    br: int = 128
    bc: int = 64
    pack: int = 1
    warps: int = 4
    stages: int = 2
    descriptors: bool = False
    specialise: bool = False


CONFIGS = (
    AttentionConfig(128, 64, warps=4, stages=3),
    AttentionConfig(128, 64, warps=8, stages=3),
    AttentionConfig(128, 128, warps=8, stages=2),
    AttentionConfig(128, 32, warps=4, stages=3),
    AttentionConfig(64, 64, warps=4, stages=3),
    AttentionConfig(64, 32, warps=4, stages=4),
)
DESCRIPTOR_CONFIGS = (
    AttentionConfig(128, 128, warps=8, stages=2, descriptors=True),
    AttentionConfig(128, 64, warps=8, stages=3, descriptors=True),
    AttentionConfig(128, 128, warps=8, stages=2, descriptors=True, specialise=True),
)


@triton.jit
def attention_forward(
    Q, K, V, OUT, L, scale, group, seq_q, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    ROWS: tl.constexpr, PACK: tl.constexpr, BC: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    DESCRIPTORS: tl.constexpr, SPECIALISE: tl.constexpr,
):  # fmt: skip
    """One tile of ROWS query rows of PACK heads; query tiles fastest, then heads, then batch."""
    row_tiles = (seq_q + ROWS - 1) // ROWS
    packs = (group + PACK - 1) // PACK
    block = tl.program_id(0)
    i = block % row_tiles
    outer = block // row_tiles
    kv_head = (outer // packs).to(tl.int64)
    stacked = tl.arange(0, ROWS * PACK)
    head = (outer % packs) * PACK + stacked // ROWS
    row = i * ROWS + stacked % ROWS
    alive = (head < group) & (row < seq_q)
    at = (kv_head * group + head) * seq_q + row
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    q = tl.load(Q + at[:, None] * D + d[None, :], mask=alive[:, None] & (d < D)[None, :], other=0.0)
    # The key tiles that some row of this tile sees: see perfmodel/count/band.py.
    shift = seq_kv - seq_q
    first = 0
    last = seq_kv
    if CAUSAL:
        last = tl.minimum(tl.maximum(tl.minimum(seq_q, (i + 1) * ROWS) + shift, 0), seq_kv)
    elif WINDOW > 0:
        end = tl.minimum(seq_q, (i + 1) * ROWS) + shift + WINDOW - 1
        last = tl.minimum(tl.maximum(end, 0), seq_kv)
    if WINDOW > 0:
        first = tl.maximum(i * ROWS + shift - WINDOW + 1, 0) // BC * BC
    k_base = K + kv_head * seq_kv * D
    v_base = V + kv_head * seq_kv * E
    if DESCRIPTORS:
        k_tiles = tl.make_tensor_descriptor(k_base, [seq_kv, D], [D, 1], [BC, BD])
        v_tiles = tl.make_tensor_descriptor(v_base, [seq_kv, E], [E, 1], [BC, BE])
    top = tl.full([ROWS * PACK], float("-inf"), tl.float32)
    total = tl.full([ROWS * PACK], 0.0, tl.float32)
    out = tl.full([ROWS * PACK, BE], 0.0, tl.float32)
    for x0 in tl.range(first, last, BC, warp_specialize=SPECIALISE):
        x = x0 + tl.arange(0, BC)
        present = x < seq_kv
        if DESCRIPTORS:
            k = k_tiles.load([x0, 0])
        else:
            k = tl.load(
                k_base + x.to(tl.int64)[:, None] * D + d[None, :],
                mask=present[:, None] & (d < D)[None, :],
                other=0.0,
            )
        s = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = present[None, :]
        if CAUSAL:
            seen = seen & (x[None, :] <= row[:, None] + shift)
        elif WINDOW > 0:
            seen = seen & (x[None, :] < row[:, None] + shift + WINDOW)
        if WINDOW > 0:
            seen = seen & (x[None, :] > row[:, None] + shift - WINDOW)
        s = tl.where(seen, s, float("-inf"))
        new = tl.maximum(top, tl.max(s, 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        p = tl.exp2(s - safe[:, None])
        rescale = tl.exp2(top - safe)
        total = total * rescale + tl.sum(p, 1)
        if DESCRIPTORS:
            v = v_tiles.load([x0, 0])
        else:
            v = tl.load(
                v_base + x.to(tl.int64)[:, None] * E + e[None, :],
                mask=present[:, None] & (e < E)[None, :],
                other=0.0,
            )
        out = tl.dot(p.to(v.dtype), v, out * rescale[:, None], input_precision="ieee")
        top = new
    blind = total == 0.0
    total = tl.where(blind, 1.0, total)
    log_sum = tl.where(blind, float("-inf"), (top + tl.log2(total)) * 0.6931471805599453)
    tl.store(L + at, log_sum, mask=alive)
    tl.store(
        OUT + at[:, None] * E + e[None, :],
        (out / total[:, None]).to(OUT.dtype.element_ty),
        mask=alive[:, None] & (e < E)[None, :],
    )


def rows_of(config: AttentionConfig) -> int:
    """Query rows of each head in a tile that `pack` heads share."""
    return max(config.br // config.pack, 1)


def _arrays(problem: Attention, config: AttentionConfig) -> tuple[Array, ...]:
    b, g, r, q, _, _, e = dims(problem)
    return (
        *inputs(problem),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, g * r, q), "fp32", "output"),
    )


def _plan(problem: Attention, config: AttentionConfig) -> tuple[Launch, ...]:
    b, g, r, q, x, d, e = dims(problem)
    rows = rows_of(config)
    launch = Launch(
        "tiled-forward",
        attention_forward,
        (b * g * ceil_div(r, config.pack) * ceil_div(q, rows),),
        {
            **{name: name for name in "QKVL"},
            "OUT": "O",
            "scale": scale_of(problem) * LOG2E,
            "group": r,
            "seq_q": q,
            "seq_kv": x,
        },
        {
            "D": d,
            "E": e,
            "BD": max(power_of_two(d), 16),
            "BE": max(power_of_two(e), 16),
            "ROWS": rows,
            "PACK": config.pack,
            "BC": config.bc,
            **mask_arguments(problem),
            "DESCRIPTORS": config.descriptors,
            "SPECIALISE": config.specialise,
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
)

KERNELS = (
    BundledKernel(
        name="attention-tiled",
        summary="tiled attention forward, FlashAttention-2's loop order",
        dtypes=("fp32", "fp16", "bf16", "fp8"),
        configs=CONFIGS,
        cases=CASES,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
    ),
)
