"""The output layer and its loss in one pass: logits over a vocabulary never reach memory.

loss = log Σ exp(z) − z[label] with z = X·W. A block has the tokens of a tile and goes through the
vocabulary; it keeps a running maximum and sum of each token (Milakov & Gimelshein 2018) and the
logit of its label. There are as many blocks as tiles of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import LOG2E, ceil_div
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_offsets, check_powers
from perfmodel_kernels.menus import every
from perfmodel_kernels.operators import OperatorProblem

from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule


@dataclass(frozen=True)
class CrossEntropy(OperatorProblem):
    """The operator `cross-entropy`."""

    tokens: int
    """Tokens."""
    hidden: int
    """Elements of a token."""
    vocabulary: int
    """Logits of a token."""
    dtype: str = "bf16"
    """Type of the data."""

    OPERATOR = "cross-entropy"


@dataclass(frozen=True)
class CrossEntropyConfig:
    """A tile of logits, and the extent of its products' steps."""

    bt: int = 128
    """Tokens of a tile."""
    bv: int = 128
    """Logits of a tile."""
    bd: int = 64
    """Extent of a step of the product."""
    warps: int = 8
    """Warps of a block."""
    stages: int = 3
    """Stages of the pipeline."""


@triton.jit
def cross_entropy(
    X, W, LABEL, LOSS, tokens, hidden, vocabulary, LOG2E: tl.constexpr,
    BT: tl.constexpr, BV: tl.constexpr, BD: tl.constexpr, EVEN: tl.constexpr,
):  # fmt: skip
    """BT tokens a block; EVEN says that BD divides the hidden size."""
    t = tl.program_id(0) * BT + tl.arange(0, BT)
    across, deep = tl.arange(0, BV), tl.arange(0, BD)
    alive = t < tokens
    label = tl.load(LABEL + t, mask=alive, other=0)
    x_start = X + t.to(tl.int64)[:, None] * hidden + deep[None, :]
    w_start = W + deep[:, None] + across[None, :] * hidden
    top = tl.full([BT], float("-inf"), tl.float32)
    total = tl.full([BT], 0.0, tl.float32)
    chosen = tl.full([BT], 0.0, tl.float32)
    for v0 in range(0, vocabulary, BV):
        v = v0 + across
        z = tl.full([BT, BV], 0.0, tl.float32)
        for d0 in range(0, hidden, BD):
            x_inside, w_inside = alive[:, None], (v < vocabulary)[None, :]
            if not EVEN:
                x_inside = x_inside & (d0 + deep < hidden)[None, :]
                w_inside = w_inside & (d0 + deep < hidden)[:, None]
            x = tl.load(x_start + d0, mask=x_inside, other=0.0)
            w = tl.load(w_start + d0, mask=w_inside, other=0.0)
            z = tl.dot(x, w, z, input_precision="ieee")
        w_start += BV * hidden
        z = tl.where((v < vocabulary)[None, :], z * LOG2E, float("-inf"))
        new = tl.maximum(top, tl.max(z, 1))
        total = total * tl.exp2(top - new) + tl.sum(tl.exp2(z - new[:, None]), 1)
        top = new
        chosen += tl.sum(tl.where(v[None, :] == label[:, None], z, 0.0), 1)
    tl.store(LOSS + t, (top + tl.log2(total) - chosen) / LOG2E, mask=alive)


# (bt, bv, bd, warps, stages) by target, best guess first.
_PLAIN = ((128, 128, 32, 8, 3), (64, 128, 32, 4, 3))
_TILES = {
    "sm_80": ((128, 128, 64, 8, 3), (64, 128, 64, 4, 4)),
    "sm_90": ((128, 256, 64, 8, 3), (128, 128, 64, 8, 4), (64, 256, 64, 4, 3)),
    "sm_100": ((128, 128, 64, 8, 4), (128, 128, 128, 8, 3)),
    "gfx942": ((128, 128, 64, 8, 2), (64, 128, 64, 4, 2)),
}


def _menu(problem: CrossEntropy, target: str, units: int) -> tuple[CrossEntropyConfig, ...]:
    return tuple(CrossEntropyConfig(*tile) for tile in _TILES.get(target, _PLAIN))


def _arrays(problem: CrossEntropy, config: CrossEntropyConfig) -> tuple[Array, ...]:
    tokens, hidden, vocabulary = problem.tokens, problem.hidden, problem.vocabulary
    return (
        Array("X", (tokens, hidden), problem.dtype),
        Array("W", (hidden, vocabulary), problem.dtype, by_columns=True),
        Array("label", (tokens,), "int32"),
        Array("loss", (tokens,), "fp32", "output"),
    )


def _plan(problem: CrossEntropy, config: CrossEntropyConfig) -> tuple[Launch, ...]:
    bt, bv, bd, tokens, hidden = config.bt, config.bv, config.bd, problem.tokens, problem.hidden
    check_powers(bt=bt, bv=bv, bd=bd)
    if min(bt, bv, bd) < 16:
        raise ProblemError("bt, bv and bd must be at least 16, the least that tl.dot multiplies")
    if hidden <= bd:
        raise ProblemError(f"a hidden size of {hidden} is one step of bd={bd}; take a shorter step")
    check_offsets(bt, bv, bv * hidden)
    loss = launch(
        "loss", cross_entropy, ceil_div(tokens, bt), _arrays(problem, config), config.warps,
        config.stages, tokens=tokens, hidden=hidden, vocabulary=problem.vocabulary,
        LOG2E=LOG2E, BT=bt, BV=bv, BD=bd, EVEN=hidden % bd == 0,
    )  # fmt: skip
    return (loss,)


def _schedule(problem: CrossEntropy, config: CrossEntropyConfig) -> Schedule:
    nest = (Loop("t", config.bt, grid=True), Loop("v", config.bv), Loop("d", config.bd))
    kernel = Kernel(
        "loss",
        ("logits", "loss"),
        nest,
        operand_tile=(64, 64),
        stages=config.stages,
        threads=32 * config.warps,
    )
    return Schedule("fused", problem.algorithm(), (kernel,))


def _reference(problem: CrossEntropy, tensors: Tensors) -> Tensors:
    x, w, label = (tensors[name].cpu() for name in ("X", "W", "label"))
    logits = x.double() @ w.double()
    return {"loss": torch.nn.functional.cross_entropy(logits, label.long(), reduction="none")}


def _derive(problem: CrossEntropy, tensors: Tensors) -> None:
    """Labels of the vocabulary, and weights that keep logits near 1."""
    tensors["label"].remainder_(problem.vocabulary)
    tensors["W"].mul_(problem.hidden**-0.5)


_FORMS = (CrossEntropy(32768, 4096, 128256),)

KERNELS = (
    BundledKernel(
        name="cross-entropy",
        summary="softmax cross-entropy with the product that makes the logits",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=tuple(
            (CrossEntropy(tokens, hidden, vocabulary, dtype), CrossEntropyConfig(*tile, warps=4))
            for tokens, hidden, vocabulary, dtype, tile in (
                (64, 128, 256, "fp32", (32, 64, 64)),
                (33, 100, 257, "fp16", (16, 64, 32)),
                (5, 17, 1, "fp32", (16, 16, 16)),
                (130, 64, 500, "fp16", (64, 128, 32)),
                (16, 200, 1000, "fp16", (16, 128, 64)),
            )
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
