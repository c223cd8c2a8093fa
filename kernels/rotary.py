"""Rotary position embedding: the two halves of a head are turned by an angle of their position.

Y₁ = X₁ cos − X₂ sin and Y₂ = X₂ cos + X₁ sin. Queries and keys are heads of one array X [tokens,
heads, 2, head_dim / 2]. A block has some heads of some tokens, and reads their angles once.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div, power_of_two
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_elements, check_powers
from perfmodel_kernels.menus import every, lanes
from perfmodel_kernels.operators import OperatorProblem

from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

# (tokens, elements of a half head a thread, warps), best guess first.
_BLOCKS = ((1, 8, 4), (2, 8, 4), (1, 16, 4), (1, 8, 8), (4, 8, 4))


@dataclass(frozen=True)
class Rotary(OperatorProblem):
    """The operator `rotary`."""

    tokens: int
    """Tokens."""
    heads: int
    """Heads of queries and keys."""
    head_dim: int = 128
    """Elements of a head."""
    dtype: str = "bf16"
    """Type of the data."""

    OPERATOR = "rotary"


@dataclass(frozen=True)
class RotaryConfig:
    """A block of heads."""

    tokens: int = 1
    """Tokens of a block."""
    heads: int = 8
    """Heads of a block."""
    warps: int = 4
    """Warps of a block."""


@triton.jit
def rotary(
    X, COS, SIN, Y, tokens, heads, half,
    TT: tl.constexpr, TH: tl.constexpr, TP: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """TT tokens by TH heads a block; TP covers half a head, and WHOLE says that it is the half."""
    head_tiles = tl.cdiv(heads, TH)
    t = tl.program_id(0) // head_tiles * TT + tl.arange(0, TT)[:, None, None]
    h = tl.program_id(0) % head_tiles * TH + tl.arange(0, TH)[None, :, None]
    p = tl.arange(0, TP)[None, None, :]
    known = (t < tokens) if WHOLE else (t < tokens) & (p < half)
    inside = known & (h < heads)
    angle = t.to(tl.int64) * half + p
    cos = tl.load(COS + angle, mask=known, other=0.0)
    sin = tl.load(SIN + angle, mask=known, other=0.0)
    at = (t.to(tl.int64) * heads + h) * (2 * half) + p
    first = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
    second = tl.load(X + at + half, mask=inside, other=0.0).to(tl.float32)
    tl.store(Y + at, (first * cos - second * sin).to(Y.dtype.element_ty), mask=inside)
    tl.store(Y + at + half, (second * cos + first * sin).to(Y.dtype.element_ty), mask=inside)


def _menu(problem: Rotary, target: str, units: int) -> tuple[RotaryConfig, ...]:
    """Blocks of 8 or 16 elements of each half a thread, as long as they have whole heads."""
    half = power_of_two(problem.head_dim // 2)
    found = [
        RotaryConfig(tokens, each * lanes(target) * warps // (half * tokens), warps)
        for tokens, each, warps in _BLOCKS
    ]
    most = power_of_two(problem.heads)
    return tuple(dict.fromkeys(config for config in found if 1 <= config.heads <= most))


def _arrays(problem: Rotary, config: RotaryConfig) -> tuple[Array, ...]:
    half = problem.head_dim // 2
    shape = (problem.tokens, problem.heads, 2, half)
    return (
        Array("X", shape, problem.dtype),
        Array("cos", (problem.tokens, half), "fp32"),
        Array("sin", (problem.tokens, half), "fp32"),
        Array("Y", shape, problem.dtype, "output"),
    )


def _plan(problem: Rotary, config: RotaryConfig) -> tuple[Launch, ...]:
    tokens, heads, half = problem.tokens, problem.heads, problem.head_dim // 2
    held = power_of_two(half)
    check_powers(tokens=config.tokens, heads=config.heads)
    check_elements(config.tokens * config.heads, held, "take fewer heads a block")
    blocks = ceil_div(tokens, config.tokens) * ceil_div(heads, config.heads)
    turn = launch(
        "rotate", rotary, blocks, _arrays(problem, config), config.warps,
        tokens=tokens, heads=heads, half=half,
        TT=config.tokens, TH=config.heads, TP=held, WHOLE=held == half,
    )  # fmt: skip
    return (turn,)


def _schedule(problem: Rotary, config: RotaryConfig) -> Schedule:
    nest = (Loop("t", config.tokens, grid=True), Loop("h", config.heads, grid=True))
    kernel = Kernel("rotate", ("rotate",), nest, threads=32 * config.warps)
    return Schedule("rotary", problem.algorithm(), (kernel,))


def _reference(problem: Rotary, tensors: Tensors) -> Tensors:
    x, cos, sin = (tensors[name].double().cpu() for name in ("X", "cos", "sin"))
    first, second, cos, sin = x[:, :, 0], x[:, :, 1], cos[:, None], sin[:, None]
    return {"Y": torch.stack((first * cos - second * sin, second * cos + first * sin), 2)}


def _derive(problem: Rotary, tensors: Tensors) -> None:
    """The angles of the positions: position · 10000^(−2 i / head_dim)."""
    half = problem.head_dim // 2
    frequency = 10000.0 ** -(torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(problem.tokens, dtype=torch.float64)[:, None] * frequency
    tensors["cos"].copy_(angle.cos())
    tensors["sin"].copy_(angle.sin())


_FORMS = (
    Rotary(16384, 40),
    Rotary(16384, 40, 64),
    Rotary(16384, 16, 256),
    Rotary(16384, 40, 128, "fp32"),
    Rotary(16384, 33, 96),
)

KERNELS = (
    BundledKernel(
        name="rotary",
        summary="rotary position embedding of queries and keys",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=(
            (Rotary(64, 8, 128, "fp32"), RotaryConfig()),
            (Rotary(33, 5, 64, "fp16"), RotaryConfig(2, 4)),
            (Rotary(5, 1, 2, "fp32"), RotaryConfig(4, 2)),
            (Rotary(19, 9, 96, "fp16"), RotaryConfig(4, 8)),
            (Rotary(7, 40, 80, "fp16"), RotaryConfig(1, 16)),
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        derive=_derive,
        menu_of=_menu,
        forms=_FORMS,
    ),
)
