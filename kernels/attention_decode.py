"""Split-KV attention for decoding (Flash-Decoding): keys over the grid, then a reduction kernel.

Every slice of `split` keys leaves an fp32 partial O and its log-sum L; the second kernel weighs the
slices by exp(L − L_max). With one slice the first kernel leaves the result itself.
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
from perfmodel.errors import ProblemError
from perfmodel.evidence.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import split_kv


@dataclass(frozen=True)
class DecodeConfig:
    """`split` keys a slice in steps of `bc`; `pack` query heads share a tile of `br` rows.

    Raises `ProblemError` where the slices do not end on a step.
    """

    split: int = 1024
    br: int = 16
    bc: int = 64
    pack: int = 8
    warps: int = 4
    stages: int = 3

    def __post_init__(self) -> None:
        if self.split % self.bc:
            raise ProblemError(f"split {self.split} must be a multiple of bc {self.bc}")


CONFIGS = tuple(
    DecodeConfig(split, 16, bc, pack)
    for pack in (8, 4, 1)
    for split, bc in ((256, 64), (512, 64), (1024, 64), (2048, 128), (4096, 128))
)


@triton.jit
def split_forward(
    Q, K, V, OUT, L, scale, group, seq_q, seq_kv, split,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    ROWS: tl.constexpr, PACK: tl.constexpr, TILE: tl.constexpr, BC: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """One slice of keys for ROWS rows of PACK heads; slices fastest, then query tiles, then heads.

    TILE rows are computed, of which ROWS × PACK are real.
    """
    slices = (seq_kv + split - 1) // split
    row_tiles = (seq_q + ROWS - 1) // ROWS
    packs = (group + PACK - 1) // PACK
    block = tl.program_id(0)
    part = block % slices
    i = (block // slices) % row_tiles
    outer = block // slices // row_tiles
    kv_head = (outer // packs).to(tl.int64)
    stacked = tl.arange(0, TILE)
    head = (outer % packs) * PACK + stacked // ROWS
    row = i * ROWS + stacked % ROWS
    alive = (head < group) & (row < seq_q) & (stacked < ROWS * PACK)
    at = (kv_head * group + head) * seq_q + row
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    shift = seq_kv - seq_q
    first = part * split
    last = tl.minimum(first + split, seq_kv)
    if CAUSAL:
        last = tl.minimum(last, tl.minimum(seq_q, (i + 1) * ROWS) + shift)
    elif WINDOW > 0:
        last = tl.minimum(last, tl.minimum(seq_q, (i + 1) * ROWS) + shift + WINDOW - 1)
    if WINDOW > 0:
        first = tl.maximum(first, tl.maximum(i * ROWS + shift - WINDOW + 1, 0) // BC * BC)
    left = at * slices + part
    # A slice that no row of the tile sees leaves nothing, unless it is the only one.
    if first < last:
        q = tl.load(
            Q + at[:, None] * D + d[None, :], mask=alive[:, None] & (d < D)[None, :], other=0.0
        )
        top = tl.full([TILE], float("-inf"), tl.float32)
        total = tl.full([TILE], 0.0, tl.float32)
        out = tl.full([TILE, BE], 0.0, tl.float32)
        for x0 in range(first, last, BC):
            x = x0 + tl.arange(0, BC)
            present = x < seq_kv
            k = tl.load(
                K + (kv_head * seq_kv + x)[:, None] * D + d[None, :],
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
            v = tl.load(
                V + (kv_head * seq_kv + x)[:, None] * E + e[None, :],
                mask=present[:, None] & (e < E)[None, :],
                other=0.0,
            )
            out = tl.dot(p.to(v.dtype), v, out * rescale[:, None], input_precision="ieee")
            top = new
        blind = total == 0.0
        total = tl.where(blind, 1.0, total)
        log_sum = tl.where(blind, float("-inf"), (top + tl.log2(total)) * 0.6931471805599453)
        tl.store(L + left, log_sum, mask=alive)
        tl.store(
            OUT + left[:, None] * E + e[None, :],
            (out / total[:, None]).to(OUT.dtype.element_ty),
            mask=alive[:, None] & (e < E)[None, :],
        )
    elif slices == 1:
        tl.store(L + left, tl.full([TILE], float("-inf"), tl.float32), mask=alive)
        tl.store(
            OUT + left[:, None] * E + e[None, :],
            tl.full([TILE, BE], 0.0, OUT.dtype.element_ty),
            mask=alive[:, None] & (e < E)[None, :],
        )


@triton.jit
def combine_slices(
    PARTS, LOGS, OUT, L, seq_q, seq_kv, split,
    E: tl.constexpr, BE: tl.constexpr, ROWS: tl.constexpr,
    CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
):  # fmt: skip
    """One query row of one head: weighs the slices that its tile has seen, in one pass."""
    at = tl.program_id(0).to(tl.int64)
    i = (at % seq_q) // ROWS
    slices = (seq_kv + split - 1) // split
    shift = seq_kv - seq_q
    first = 0
    last = slices
    if CAUSAL:
        last = (tl.minimum(tl.minimum(seq_q, (i + 1) * ROWS) + shift, seq_kv) + split - 1) // split
    elif WINDOW > 0:
        end = tl.minimum(seq_q, (i + 1) * ROWS) + shift + WINDOW - 1
        last = (tl.minimum(end, seq_kv) + split - 1) // split
    if WINDOW > 0:
        first = tl.maximum(i * ROWS + shift - WINDOW + 1, 0) // split
    e = tl.arange(0, BE)
    top = tl.full([1], float("-inf"), tl.float32)
    total = tl.full([1], 0.0, tl.float32)
    out = tl.full([BE], 0.0, tl.float32)
    for part in range(first, last):
        log_sum = tl.load(LOGS + at * slices + part)
        o = tl.load(PARTS + (at * slices + part) * E + e, mask=e < E, other=0.0)
        new = tl.maximum(top, log_sum)
        safe = tl.where(new == float("-inf"), 0.0, new)
        rescale = tl.exp(top - safe)
        weight = tl.exp(log_sum - safe)
        out = out * rescale + o * weight
        total = total * rescale + weight
        top = new
    blind = total == 0.0
    total = tl.where(blind, 1.0, total)
    tl.store(L + at + tl.arange(0, 1), tl.where(blind, float("-inf"), top + tl.log(total)))
    tl.store(OUT + at * E + e, (out / total).to(OUT.dtype.element_ty), mask=e < E)


def _rows(config: DecodeConfig) -> int:
    return max(config.br // config.pack, 1)


def _slices(problem: Attention, config: DecodeConfig) -> int:
    return ceil_div(problem.seq_kv, config.split)


def _arrays(problem: Attention, config: DecodeConfig) -> tuple[Array, ...]:
    b, g, r, q, _, _, e = dims(problem)
    slices = _slices(problem, config)
    parts = (
        Array("parts", (b, g * r, q, slices, e), "fp32", "scratch", "O"),
        Array("logs", (b, g * r, q, slices), "fp32", "scratch", "L"),
    )
    return (
        *inputs(problem),
        *(parts if slices > 1 else ()),
        Array("O", (b, g * r, q, e), problem.elements()["output"].name, "output"),
        Array("L", (b, g * r, q), "fp32", "output"),
    )


def _plan(problem: Attention, config: DecodeConfig) -> tuple[Launch, ...]:
    b, g, r, q, x, d, e = dims(problem)
    rows, slices = _rows(config), _slices(problem, config)
    many = slices > 1
    wide = max(power_of_two(e), 16)
    size = {"seq_q": q, "seq_kv": x, "split": config.split}
    slice_launch = Launch(
        "split-kv",
        split_forward,
        (b * g * ceil_div(r, config.pack) * ceil_div(q, rows) * slices,),
        {
            **{name: name for name in "QKV"},
            "OUT": "parts" if many else "O",
            "L": "logs" if many else "L",
            "scale": scale_of(problem) * LOG2E,
            "group": r,
            **size,
        },
        {
            "D": d,
            "E": e,
            "BD": max(power_of_two(d), 16),
            "BE": wide,
            "ROWS": rows,
            "PACK": config.pack,
            "TILE": max(power_of_two(rows * config.pack), 16),
            "BC": config.bc,
            **mask_arguments(problem),
        },
        num_warps=config.warps,
        num_stages=config.stages,
    )
    if not many:
        return (slice_launch,)
    combine = Launch(
        "combine",
        combine_slices,
        (b * g * r * q,),
        {"PARTS": "parts", "LOGS": "logs", "OUT": "O", "L": "L", **size},
        {"E": e, "BE": wide, "ROWS": rows, **mask_arguments(problem)},
    )
    return (slice_launch, combine)


def _schedule(problem: Attention, config: DecodeConfig) -> Schedule:
    return split_kv(
        problem.mask(),
        config.br,
        config.split,
        config.bc,
        pack=config.pack,
        stages=config.stages,
        threads=32 * config.warps,
    )


def _reference(problem: Attention, tensors: Tensors) -> Tensors:
    found = forward_reference(problem, tensors)
    return {"O": found["O"], "L": found["L"]}


def _case(shape: tuple[int, ...], dtype: str, config: DecodeConfig, **more: object) -> tuple:
    return Attention(*shape, dtype=dtype, **more), config


CASES = (
    _case((2, 8, 2, 1, 1000, 64), "fp16", DecodeConfig(256, 16, 64, 4)),
    _case((1, 4, 4, 1, 333, 40), "fp32", DecodeConfig(128, 16, 32, 1)),
    _case((3, 6, 2, 1, 777, 64), "fp16", DecodeConfig(256, 16, 64, 4), causal=True),
    _case((1, 4, 1, 1, 900, 32), "fp32", DecodeConfig(128, 16, 32, 4), window=200),
    _case((2, 4, 2, 5, 300, 32), "fp16", DecodeConfig(64, 8, 32, 2), causal=True),
    _case((1, 2, 2, 1, 100, 64), "fp16", DecodeConfig(128, 16, 64, 1)),
    _case((1, 4, 2, 7, 260, 48, 32), "fp32", DecodeConfig(64, 8, 32, 2), causal=True, window=90),
)

KERNELS = (
    BundledKernel(
        name="attention-decode",
        summary="split-KV attention with its reduction kernel",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=CASES,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
    ),
)
