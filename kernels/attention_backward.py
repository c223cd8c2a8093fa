"""Tiled attention backward: a block per key tile, queries streamed, dQ added atomically in fp32.

D = rowsum(dO ∘ O) comes from a kernel of its own. dQ stays in fp32, as it is accumulated.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from perfmodel_kernels.common import (
    backward_reference,
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
from perfmodel.schedules.tiled import tiled_backward

# Query rows of a block of the D kernel, as its schedule has them.
DELTA_ROWS = 128


@dataclass(frozen=True)
class BackwardConfig:
    """`br` query rows a step by `bc` keys a block."""

    br: int = 64
    bc: int = 128
    warps: int = 8
    stages: int = 2


CONFIGS = (
    BackwardConfig(64, 128, warps=8, stages=2),
    BackwardConfig(32, 128, warps=4, stages=3),
    BackwardConfig(64, 64, warps=4, stages=3),
    BackwardConfig(128, 128, warps=8, stages=1),
    BackwardConfig(32, 64, warps=4, stages=3),
)


@triton.jit
def attention_delta(
    OUT, DO, DELTA, seq_q, E: tl.constexpr, BE: tl.constexpr, ROWS: tl.constexpr
):  # fmt: skip
    """D = rowsum(dO ∘ O), ROWS rows of one head a block."""
    row_tiles = (seq_q + ROWS - 1) // ROWS
    block = tl.program_id(0)
    row = (block % row_tiles) * ROWS + tl.arange(0, ROWS)
    at = (block // row_tiles).to(tl.int64) * seq_q + row
    e = tl.arange(0, BE)
    inside = (row < seq_q)[:, None] & (e < E)[None, :]
    o = tl.load(OUT + at[:, None] * E + e[None, :], mask=inside, other=0.0).to(tl.float32)
    do = tl.load(DO + at[:, None] * E + e[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.store(DELTA + at, tl.sum(o * do, 1), mask=row < seq_q)


@triton.jit
def attention_backward(
    Q, K, V, DO, L, DELTA, DQ, DK, DV, scale, group, seq_q, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """The gradients of BC keys, over all query heads of their group; key tiles fastest."""
    key_tiles = (seq_kv + BC - 1) // BC
    block = tl.program_id(0)
    x0 = (block % key_tiles) * BC
    kv_head = (block // key_tiles).to(tl.int64)
    x = x0 + tl.arange(0, BC)
    present = x < seq_kv
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    k_at = (kv_head * seq_kv + x)[:, None] * D + d[None, :]
    v_at = (kv_head * seq_kv + x)[:, None] * E + e[None, :]
    k = tl.load(K + k_at, mask=present[:, None] & (d < D)[None, :], other=0.0)
    v = tl.load(V + v_at, mask=present[:, None] & (e < E)[None, :], other=0.0)
    # The query tiles that see some key of this tile: the inverse of the forward pass's range.
    shift = seq_kv - seq_q
    first = 0
    last = seq_q
    if CAUSAL:
        first = tl.maximum(x0 - shift, 0) // BR * BR
    elif WINDOW > 0:
        first = tl.maximum(x0 - shift - WINDOW + 1, 0) // BR * BR
    if WINDOW > 0:
        last = tl.minimum(tl.maximum(x0 + BC - shift + WINDOW - 1, 0), seq_q)
    dk = tl.full([BC, BD], 0.0, tl.float32)
    dv = tl.full([BC, BE], 0.0, tl.float32)
    for r in range(group):
        head = kv_head * group + r
        for q0 in range(first, last, BR):
            row = q0 + tl.arange(0, BR)
            alive = row < seq_q
            at = head * seq_q + row
            q_at = at[:, None] * D + d[None, :]
            q_inside = alive[:, None] & (d < D)[None, :]
            q = tl.load(Q + q_at, mask=q_inside, other=0.0)
            do = tl.load(
                DO + at[:, None] * E + e[None, :],
                mask=alive[:, None] & (e < E)[None, :],
                other=0.0,
            )
            log_sum = tl.load(L + at, mask=alive, other=0.0) * 1.4426950408889634
            delta = tl.load(DELTA + at, mask=alive, other=0.0)
            s = tl.dot(q, tl.trans(k), input_precision="ieee") * (scale * 1.4426950408889634)
            seen = present[None, :] & alive[:, None]
            if CAUSAL:
                seen = seen & (x[None, :] <= row[:, None] + shift)
            elif WINDOW > 0:
                seen = seen & (x[None, :] < row[:, None] + shift + WINDOW)
            if WINDOW > 0:
                seen = seen & (x[None, :] > row[:, None] + shift - WINDOW)
            log_sum = tl.where(log_sum == float("-inf"), 0.0, log_sum)
            p = tl.exp2(tl.where(seen, s - log_sum[:, None], float("-inf")))
            dv += tl.dot(tl.trans(p.to(do.dtype)), do, input_precision="ieee")
            dp = tl.dot(do, tl.trans(v), input_precision="ieee")
            ds = (p * (dp - delta[:, None]) * scale).to(q.dtype)
            dk += tl.dot(tl.trans(ds), q, input_precision="ieee")
            dq = tl.dot(ds, k, input_precision="ieee")
            tl.atomic_add(DQ + q_at, dq, mask=q_inside, sem="relaxed")
    tl.store(DK + k_at, dk.to(DK.dtype.element_ty), mask=present[:, None] & (d < D)[None, :])
    tl.store(DV + v_at, dv.to(DV.dtype.element_ty), mask=present[:, None] & (e < E)[None, :])


def _arrays(problem: Attention, config: BackwardConfig) -> tuple[Array, ...]:
    b, g, r, q, x, d, e = dims(problem)
    output = problem.elements()["output"].name
    return (
        *inputs(problem),
        Array("dO", (b, g * r, q, e), output),
        Array("O", (b, g * r, q, e), output, fill="derived"),
        Array("L", (b, g * r, q), "fp32", fill="derived"),
        Array("D", (b, g * r, q), "fp32", "scratch"),
        Array("dQ", (b, g * r, q, d), "fp32", "output", fill="zero"),
        Array("dK", (b, g, x, d), output, "output"),
        Array("dV", (b, g, x, e), output, "output"),
    )


def _derive(problem: Attention, tensors: Tensors) -> None:
    found = forward_reference(problem, tensors)
    for name in ("O", "L"):
        tensors[name].copy_(found[name])


def _plan(problem: Attention, config: BackwardConfig) -> tuple[Launch, ...]:
    b, g, r, q, x, d, e = dims(problem)
    wide = max(power_of_two(e), 16)
    return (
        Launch(
            "delta",
            attention_delta,
            (b * g * r * ceil_div(q, DELTA_ROWS),),
            {"OUT": "O", "DO": "dO", "DELTA": "D", "seq_q": q},
            {"E": e, "BE": wide, "ROWS": DELTA_ROWS},
        ),
        Launch(
            "tiled-backward",
            attention_backward,
            (b * g * ceil_div(x, config.bc),),
            {
                **{name: name for name in ("Q", "K", "V", "L")},
                "DO": "dO",
                "DELTA": "D",
                "DQ": "dQ",
                "DK": "dK",
                "DV": "dV",
                "scale": scale_of(problem),
                "group": r,
                "seq_q": q,
                "seq_kv": x,
            },
            {
                "D": d,
                "E": e,
                "BD": max(power_of_two(d), 16),
                "BE": wide,
                "BR": config.br,
                "BC": config.bc,
                **mask_arguments(problem),
            },
            num_warps=config.warps,
            num_stages=config.stages,
        ),
    )


def _schedule(problem: Attention, config: BackwardConfig) -> Schedule:
    return tiled_backward(
        problem.mask(), config.br, config.bc, stages=config.stages, threads=32 * config.warps
    )


def _case(shape: tuple[int, ...], dtype: str, config: BackwardConfig, **more: object) -> tuple:
    return Attention(*shape, dtype=dtype, direction="bwd", **more), config


CASES = (
    _case((1, 2, 2, 130, 130, 64), "fp16", BackwardConfig(32, 64)),
    _case((2, 4, 2, 77, 130, 40), "fp32", BackwardConfig(32, 32), causal=True),
    _case((1, 6, 2, 100, 100, 64), "fp16", BackwardConfig(64, 32), causal=True),
    _case((1, 2, 1, 150, 150, 32), "fp32", BackwardConfig(32, 32), causal=True, window=40),
    _case((1, 2, 1, 90, 160, 32), "fp16", BackwardConfig(16, 64), window=50),
    _case((1, 2, 2, 130, 70, 16), "fp32", BackwardConfig(32, 16), causal=True),
    _case((1, 2, 1, 65, 140, 48, 32), "fp16", BackwardConfig(64, 128)),
)

KERNELS = (
    BundledKernel(
        name="attention-backward",
        summary="tiled attention backward, dQ by atomics",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=CASES,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=backward_reference,
        derive=_derive,
    ),
)
