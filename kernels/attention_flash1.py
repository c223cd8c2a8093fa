"""Tiled attention in FlashAttention-1's loop order: keys outside, queries inside, one block a head.

The unfinished O and the statistics m and ℓ are written to memory on every pass and read on the
next. `accounting` chooses how O is stored in between: "paper" in the data type, without a read on
the first pass (3Tc + 1 passes of N·d: FlashAttention, Figure 2); "literal" with that read
(Algorithm 1); "impl" in fp32 until the last pass, as in the released kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import triton
import triton.language as tl
from perfmodel_kernels.common import (
    LOG2E,
    dims,
    forward_reference,
    inputs,
    mask_arguments,
    power_of_two,
    scale_of,
)

from perfmodel.algorithms import Attention
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Schedule
from perfmodel.schedules.tiled import Accounting, tiled


@dataclass(frozen=True)
class Flash1Config:
    """A tile of FlashAttention-1."""

    br: int = 64
    """Query rows."""
    bc: int = 64
    """Keys."""
    accounting: Accounting = "paper"
    """How the unfinished O is stored in memory between passes."""
    warps: int = 4
    """Warps of a block."""


CONFIGS = tuple(
    Flash1Config(64, bc, accounting)
    for accounting in ("impl", "paper")
    for bc in (64, 128, 256, 512)
)


@triton.jit
def attention_outer_keys(
    Q, K, V, OUT, PARTIAL, M, S, scale, group, seq_q, seq_kv,
    D: tl.constexpr, E: tl.constexpr, BD: tl.constexpr, BE: tl.constexpr,
    BR: tl.constexpr, BC: tl.constexpr, CAUSAL: tl.constexpr, WINDOW: tl.constexpr,
    ZEROED: tl.constexpr,
):  # fmt: skip
    """One query head; O, M (running maximum) and S (running sum) live in memory between passes."""
    head = tl.program_id(0).to(tl.int64)
    kv_head = head // group
    d = tl.arange(0, BD)
    e = tl.arange(0, BE)
    shift = seq_kv - seq_q
    for x0 in range(0, seq_kv, BC):
        x = x0 + tl.arange(0, BC)
        present = x < seq_kv
        k = tl.load(
            K + (kv_head * seq_kv + x)[:, None] * D + d[None, :],
            mask=present[:, None] & (d < D)[None, :],
            other=0.0,
        )
        v = tl.load(
            V + (kv_head * seq_kv + x)[:, None] * E + e[None, :],
            mask=present[:, None] & (e < E)[None, :],
            other=0.0,
        )
        start = 0
        stop = seq_q
        if CAUSAL:
            start = tl.maximum(x0 - shift, 0) // BR * BR
        elif WINDOW > 0:
            start = tl.maximum(x0 - shift - WINDOW + 1, 0) // BR * BR
        if WINDOW > 0:
            stop = tl.minimum(tl.maximum(x0 + BC - shift + WINDOW - 1, 0), seq_q)
        for q0 in range(start, stop, BR):
            row = q0 + tl.arange(0, BR)
            alive = row < seq_q
            at = head * seq_q + row
            # The first and the last key tile that these rows see.
            opening = 0
            end = seq_kv
            if WINDOW > 0:
                opening = tl.maximum(q0 + shift - WINDOW + 1, 0) // BC * BC
            if CAUSAL:
                end = tl.minimum(tl.minimum(seq_q, q0 + BR) + shift, seq_kv)
            elif WINDOW > 0:
                end = tl.minimum(tl.minimum(seq_q, q0 + BR) + shift + WINDOW - 1, seq_kv)
            again = alive & (x0 > opening)
            q = tl.load(
                Q + at[:, None] * D + d[None, :],
                mask=alive[:, None] & (d < D)[None, :],
                other=0.0,
            )
            top = tl.load(M + at, mask=again, other=float("-inf"))
            total = tl.load(S + at, mask=again, other=0.0)
            o_at = at[:, None] * E + e[None, :]
            o_inside = alive[:, None] & (e < E)[None, :]
            held = o_inside if ZEROED else again[:, None] & (e < E)[None, :]
            out = tl.load(PARTIAL + o_at, mask=held, other=0.0).to(tl.float32)
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
            # O is kept normalised: undo the old sum, rescale, divide by the new one.
            weight = total * tl.exp2(top - safe)
            new_total = weight + tl.sum(p, 1)
            out = tl.dot(p.to(v.dtype), v, out * weight[:, None], input_precision="ieee")
            out = out / tl.where(new_total == 0.0, 1.0, new_total)[:, None]
            tl.store(M + at, new, mask=alive)
            tl.store(S + at, new_total, mask=alive)
            if x0 + BC >= end:
                tl.store(OUT + o_at, out.to(OUT.dtype.element_ty), mask=o_inside)
            else:
                tl.store(PARTIAL + o_at, out.to(PARTIAL.dtype.element_ty), mask=o_inside)
        # What this pass wrote is read by other threads of the block on the next.
        tl.debug_barrier()
    # Rows that see no key at all were never visited.
    if CAUSAL or WINDOW > 0:
        right = 0 if CAUSAL else WINDOW - 1
        for q0 in range(0, tl.maximum(-shift - right, 0) // BR * BR, BR):
            row = q0 + tl.arange(0, BR)
            at = head * seq_q + row
            o_inside = (row < seq_q)[:, None] & (e < E)[None, :]
            blank = tl.full([BR, BE], 0.0, OUT.dtype.element_ty)
            tl.store(OUT + at[:, None] * E + e[None, :], blank, mask=o_inside)
            tl.store(M + at, tl.full([BR], float("-inf"), tl.float32), mask=row < seq_q)
            tl.store(S + at, tl.full([BR], 0.0, tl.float32), mask=row < seq_q)


def _arrays(problem: Attention, config: Flash1Config) -> tuple[Array, ...]:
    b, g, r, q, _, _, e = dims(problem)
    shape, output = (b, g * r, q, e), problem.elements()["output"].name
    fill = "zero" if config.accounting == "literal" else "normal"
    wait = (Array("partial", shape, "fp32", "scratch", "O"),)
    return (
        *inputs(problem),
        Array("O", shape, output, "output", fill=fill),
        *(wait if config.accounting == "impl" else ()),
        Array("m", shape[:3], "fp32", "output"),
        Array("l", shape[:3], "fp32", "output"),
    )


def _plan(problem: Attention, config: Flash1Config) -> tuple[Launch, ...]:
    b, g, r, q, x, d, e = dims(problem)
    launch = Launch(
        "tiled-forward-1",
        attention_outer_keys,
        (b * g * r,),
        {
            **{name: name for name in "QKV"},
            "OUT": "O",
            "PARTIAL": "partial" if config.accounting == "impl" else "O",
            "M": "m",
            "S": "l",
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
            "BR": config.br,
            "BC": config.bc,
            **mask_arguments(problem),
            "ZEROED": config.accounting == "literal",
        },
        num_warps=config.warps,
        num_stages=1,
    )
    return (launch,)


def _schedule(problem: Attention, config: Flash1Config) -> Schedule:
    return tiled(
        problem.mask(),
        config.br,
        config.bc,
        order=1,
        accounting=config.accounting,
        threads=32 * config.warps,
    )


def _reference(problem: Attention, tensors: Tensors) -> Tensors:
    """O, the row maximum m (in powers of two, as the kernel keeps it) and the sum ℓ."""
    found = forward_reference(problem, tensors)
    top = found["S"].amax(-1)
    safe = top.masked_fill(top == float("-inf"), 0.0)
    total = (found["S"] - safe[..., None]).exp().sum(-1)
    return {"O": found["O"], "m": top * LOG2E, "l": total}


def _case(shape: tuple[int, ...], dtype: str, config: Flash1Config, **more: object) -> tuple:
    return Attention(*shape, dtype=dtype, **more), config


CASES = (
    _case((1, 2, 2, 256, 256, 64), "fp16", Flash1Config(64, 64)),
    _case((1, 2, 1, 200, 200, 64), "fp16", Flash1Config(64, 64, "impl")),
    _case((1, 2, 2, 100, 150, 40), "fp32", Flash1Config(32, 64, "literal")),
    _case((2, 2, 1, 130, 130, 32), "fp32", Flash1Config(32, 32, "impl"), causal=True),
    _case((1, 4, 2, 77, 130, 32), "fp16", Flash1Config(32, 64), causal=True),
    _case((1, 2, 2, 150, 150, 32), "fp32", Flash1Config(32, 32, "impl"), causal=True, window=40),
    _case((1, 2, 2, 130, 70, 16), "fp32", Flash1Config(32, 16, "impl"), causal=True),
    _case((1, 2, 2, 90, 160, 32), "fp16", Flash1Config(16, 64), window=50),
    # The last key opens a tile.
    _case((1, 2, 1, 97, 97, 32), "fp32", Flash1Config(32, 32), causal=True),
)

KERNELS = (
    BundledKernel(
        name="attention-flash1",
        summary="tiled attention forward, FlashAttention-1's loop order",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=CASES,
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
    ),
)
