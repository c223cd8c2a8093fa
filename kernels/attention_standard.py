"""Standard attention as separate kernels: scores, softmax, values; and its backward pass.

One tiled contraction computes all six products; it takes strides, so that transposed operands need
no copy. The causal mask is applied inside the softmax (`mask_pass` "none"), which saves no work, or
in a separate pass over the scores.
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
from perfmodel.algorithms.attention import MaskPass
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.standard import standard, standard_backward


@dataclass(frozen=True)
class StandardConfig:
    """Tile of the contractions, and how the mask is applied."""

    bm: int = 128
    """Rows of the tile."""
    bn: int = 128
    """Columns of the tile."""
    bk: int = 32
    """Step of the summed axis."""
    mask_pass: MaskPass = "none"
    """Whether masking is a separate pass."""
    warps: int = 4
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""


CONFIGS = (
    StandardConfig(),
    StandardConfig(128, 64, 32),
    StandardConfig(64, 64, 64),
    StandardConfig(128, 128, 64, warps=8),
)
# Keys, head columns and queries of a tile where the sum runs over queries, as the schedule has it.
KEY_TILE = (128, 64, 32)


@triton.jit
def contract(
    A, B, C, alpha, m, n, k, group, a_m, a_k, b_k, b_n, a_head, b_head,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    SHARED_B: tl.constexpr, OVER_GROUP: tl.constexpr,
):  # fmt: skip
    """C[h] = α·A[h]·B[h]: columns of tiles fastest, then rows of tiles, then heads.

    SHARED_B: B belongs to the key-value head of h. OVER_GROUP: h is a key-value head, and the sum
    runs over its query heads as well as k.
    """
    row_tiles = (m + BM - 1) // BM
    column_tiles = (n + BN - 1) // BN
    block = tl.program_id(0)
    head = (block // (row_tiles * column_tiles)).to(tl.int64)
    inner = block % (row_tiles * column_tiles)
    rows = (inner // column_tiles) * BM + tl.arange(0, BM)
    columns = (inner % column_tiles) * BN + tl.arange(0, BN)
    total = tl.full([BM, BN], 0.0, tl.float32)
    turns = group if OVER_GROUP else 1
    for r in range(turns):
        a_of = head * turns + r
        b_of = head // group if SHARED_B else a_of
        a_rows = A + a_of * a_head + rows.to(tl.int64)[:, None] * a_m
        b_columns = B + b_of * b_head + columns.to(tl.int64)[None, :] * b_n
        for k0 in range(0, k, BK):
            depth = (k0 + tl.arange(0, BK)).to(tl.int64)
            a = tl.load(
                a_rows + depth[None, :] * a_k,
                mask=(rows < m)[:, None] & (depth < k)[None, :],
                other=0.0,
            )
            b = tl.load(
                b_columns + depth[:, None] * b_k,
                mask=(depth < k)[:, None] & (columns < n)[None, :],
                other=0.0,
            )
            total = tl.dot(a, b, total, input_precision="ieee")
    at = head * m * n + rows.to(tl.int64)[:, None] * n + columns[None, :]
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    tl.store(C + at, (alpha * total).to(C.dtype.element_ty), mask=inside)


@triton.jit
def softmax_scores(
    S, P, seq_q, seq_kv, BX: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    MASK_ONLY: tl.constexpr,
):  # fmt: skip
    """One row of scores → probabilities, or its masked copy; hidden keys are read too."""
    at = tl.program_id(0).to(tl.int64)
    row = at % seq_q + seq_kv - seq_q
    x = tl.arange(0, BX)
    s = tl.load(S + at * seq_kv + x, mask=x < seq_kv, other=float("-inf")).to(tl.float32)
    if CAUSAL:
        s = tl.where(x <= row, s, float("-inf"))
    elif WINDOW > 0:
        s = tl.where(x < row + WINDOW, s, float("-inf"))
    if WINDOW > 0:
        s = tl.where(x > row - WINDOW, s, float("-inf"))
    if not MASK_ONLY:
        top = tl.max(s, 0)
        top = tl.where(top == float("-inf"), 0.0, top)
        s = tl.exp(s - top)
        total = tl.sum(s, 0)
        s = s / tl.where(total == 0.0, 1.0, total)
    tl.store(P + at * seq_kv + x, s.to(P.dtype.element_ty), mask=x < seq_kv)


@triton.jit
def softmax_gradient(P, DP, DS, scale, seq_kv, BX: tl.constexpr):
    """dS = scale · P ∘ (dP − rowsum(P ∘ dP)), one row a block."""
    at = tl.program_id(0).to(tl.int64) * seq_kv
    x = tl.arange(0, BX)
    p = tl.load(P + at + x, mask=x < seq_kv, other=0.0).to(tl.float32)
    dp = tl.load(DP + at + x, mask=x < seq_kv, other=0.0).to(tl.float32)
    ds = scale * p * (dp - tl.sum(p * dp, 0))
    tl.store(DS + at + x, ds.to(DS.dtype.element_ty), mask=x < seq_kv)


def _product(
    problem: Attention,
    step: str,
    names: tuple[str, str, str],
    shape: tuple[int, int, int],
    a: tuple[int, int],
    b: tuple[int, int],
    config: StandardConfig,
    *,
    alpha: float = 1.0,
    shared: bool = True,
    over_keys: bool = False,
) -> Launch:
    """A launch of `contract` for C[m, n] = Σ_k A·B with strides a = (m, k) and b = (k, n)."""
    batch, g, r, *_ = dims(problem)
    m, n, k = shape
    tile = KEY_TILE if over_keys else (config.bm, config.bn, config.bk)
    heads = batch * g * (1 if over_keys else r)
    return Launch(
        step,
        contract,
        (heads * ceil_div(m, tile[0]) * ceil_div(n, tile[1]),),
        {
            **dict(zip(("A", "B", "C"), names, strict=True)),
            **dict(zip(("m", "n", "k"), shape, strict=True)),
            "alpha": alpha,
            "group": r,
            "a_m": a[0],
            "a_k": a[1],
            "b_k": b[0],
            "b_n": b[1],
            "a_head": m * k,
            "b_head": k * n,
        },
        {
            "BM": tile[0],
            "BN": tile[1],
            "BK": tile[2],
            "SHARED_B": shared,
            "OVER_GROUP": over_keys,
        },
        num_warps=config.warps,
        num_stages=config.stages,
    )


def _scores(problem: Attention, name: str, role: str, **more: str) -> Array:
    b, g, r, q, x, _, _ = dims(problem)
    return Array(name, (b, g * r, q, x), problem.dtype, role, **more)  # type: ignore[arg-type]


def _masked_apart(problem: Attention, config: StandardConfig) -> bool:
    return config.mask_pass != "none" and problem.mask() is not None


def _arrays(problem: Attention, config: StandardConfig) -> tuple[Array, ...]:
    b, g, r, q, _, _, e = dims(problem)
    masked = (_scores(problem, "Sm", "scratch"),) if _masked_apart(problem, config) else ()
    return (
        *inputs(problem),
        _scores(problem, "S", "scratch"),
        *masked,
        _scores(problem, "P", "scratch"),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
    )


def _plan(problem: Attention, config: StandardConfig) -> tuple[Launch, ...]:
    b, g, r, q, x, d, e = dims(problem)
    apart = _masked_apart(problem, config)
    size = {"seq_q": q, "seq_kv": x}
    whole = {"BX": power_of_two(x)}
    unmasked = {"CAUSAL": False, "WINDOW": 0}
    rows = (b * g * r * q,)
    scores = _product(
        problem, "scores", ("Q", "K", "S"), (q, x, d), (d, 1), (1, d), config,
        alpha=scale_of(problem),
    )  # fmt: skip
    masking = Launch(
        "mask",
        softmax_scores,
        rows,
        {"S": "S", "P": "Sm", **size},
        {**whole, **mask_arguments(problem), "MASK_ONLY": True},
    )
    softmax = Launch(
        "softmax",
        softmax_scores,
        rows,
        {"S": "Sm" if apart else "S", "P": "P", **size},
        {**whole, **(unmasked if apart else mask_arguments(problem)), "MASK_ONLY": False},
    )
    values = _product(problem, "values", ("P", "V", "O"), (q, e, x), (x, 1), (e, 1), config)
    return (scores, *((masking,) if apart else ()), softmax, values)


def _schedule(problem: Attention, config: StandardConfig) -> Schedule:
    return standard(
        problem.mask(),
        tile=(config.bm, config.bn, config.bk),
        mask_pass=config.mask_pass if _masked_apart(problem, config) else "none",
    )


def _reference(problem: Attention, tensors: Tensors) -> Tensors:
    return {"O": forward_reference(problem, tensors)["O"]}


def _backward_arrays(problem: Attention, config: StandardConfig) -> tuple[Array, ...]:
    b, g, r, q, x, d, e = dims(problem)
    output = problem.elements()["output"].name
    return (
        *inputs(problem),
        Array("dO", (b, g * r, q, e), output),
        _scores(problem, "P", "input", fill="derived"),
        _scores(problem, "dP", "scratch"),
        _scores(problem, "dS", "scratch"),
        Array("dQ", (b, g * r, q, d), output, "output"),
        Array("dK", (b, g, x, d), output, "output"),
        Array("dV", (b, g, x, e), output, "output"),
    )


def _derive(problem: Attention, tensors: Tensors) -> None:
    inner = {name: tensors[name] for name in "QKV"}
    tensors["P"].copy_(forward_reference(problem, inner)["P"])


def _backward_plan(problem: Attention, config: StandardConfig) -> tuple[Launch, ...]:
    b, g, r, q, x, d, e = dims(problem)
    softmax = Launch(
        "dS of softmax",
        softmax_gradient,
        (b * g * r * q,),
        {"P": "P", "DP": "dP", "DS": "dS", "scale": scale_of(problem), "seq_kv": x},
        {"BX": power_of_two(x)},
    )
    return (
        _product(
            problem, "dV of values", ("P", "dO", "dV"), (x, e, q), (1, x), (e, 1), config,
            shared=False, over_keys=True,
        ),
        _product(problem, "dP of values", ("dO", "V", "dP"), (q, x, e), (e, 1), (1, e), config),
        softmax,
        _product(problem, "dQ of scores", ("dS", "K", "dQ"), (q, d, x), (x, 1), (d, 1), config),
        _product(
            problem, "dK of scores", ("dS", "Q", "dK"), (x, d, q), (1, x), (d, 1), config,
            shared=False, over_keys=True,
        ),
    )  # fmt: skip


def _backward_schedule(problem: Attention, config: StandardConfig) -> Schedule:
    return standard_backward(problem.mask(), tile=(config.bm, config.bn, config.bk))


def _cases(direction: str) -> tuple[tuple[Attention, StandardConfig], ...]:
    rows = (
        ((1, 2, 2, 70, 130, 64), "fp16", StandardConfig(64, 64, 32), {}),
        ((2, 4, 2, 37, 70, 40), "fp32", StandardConfig(32, 64, 32), {"causal": True}),
        ((1, 6, 2, 60, 100, 64, 48), "fp16", StandardConfig(64, 32, 32), {}),
        ((1, 2, 1, 90, 90, 32), "fp32", StandardConfig(32, 32, 16, "additive"), {"window": 40}),
        ((1, 3, 1, 33, 150, 80), "fp16", StandardConfig(16, 128, 64, "masked_fill"),
         {"causal": True}),
        # The last key opens a tile.
        ((1, 2, 1, 65, 97, 32), "fp32", StandardConfig(32, 32, 32), {"causal": True}),
    )  # fmt: skip
    return tuple(
        (Attention(*shape, dtype=dtype, direction=direction, **more), config)  # type: ignore
        for shape, dtype, config, more in rows
    )


KERNELS = (
    BundledKernel(
        name="attention-standard",
        summary="standard attention forward: scores, softmax and values apart",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=_cases("fwd"),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
    ),
    BundledKernel(
        name="attention-standard-backward",
        summary="standard attention backward from saved probabilities",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=_cases("bwd"),
        arrays=_backward_arrays,
        plan=_backward_plan,
        schedule=_backward_schedule,
        reference_of=backward_reference,
        derive=_derive,
    ),
)
