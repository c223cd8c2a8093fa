"""Residual sum and RMS norm in one pass: S = X + R, Y = S · rstd(S) · gamma.

A block holds whole rows, so that the sum is written for the next layer and not read again.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div, power_of_two
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_elements, check_powers
from perfmodel_kernels.menus import RowBlock, every, row_blocks
from perfmodel_kernels.norms_code import weights
from perfmodel_kernels.operators import OperatorProblem

from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

EPSILON = 1e-5


@dataclass(frozen=True)
class AddNorm(OperatorProblem):
    """The operator `add-rmsnorm`."""

    tokens: int
    """Rows."""
    hidden: int
    """Elements of a row."""
    dtype: str = "bf16"
    """Type of the data."""

    OPERATOR = "add-rmsnorm"


@triton.jit
def add_norm(
    X, R, GAMMA, S, Y, rows, cols, epsilon,
    TR: tl.constexpr, TC: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """TR whole rows a block; TC covers the row, and WHOLE says that it is the row."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    column = c < cols
    inside = (n < rows)[:, None] if WHOLE else (n < rows)[:, None] & column[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    s = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
    s += tl.load(R + at, mask=inside, other=0.0).to(tl.float32)
    tl.store(S + at, s.to(S.dtype.element_ty), mask=inside)
    rstd = 1.0 / tl.sqrt(tl.sum(s * s, 1) / cols + epsilon)
    y = s * rstd[:, None] * weights(GAMMA, c, column, WHOLE)[None, :]
    tl.store(Y + at, y.to(Y.dtype.element_ty), mask=inside)


def _menu(problem: AddNorm, target: str, units: int) -> tuple[RowBlock, ...]:
    blocks = row_blocks("add-rmsnorm", problem.hidden, target)
    return tuple(RowBlock(*block) for block in blocks)


def _arrays(problem: AddNorm, config: RowBlock) -> tuple[Array, ...]:
    shape, dtype = (problem.tokens, problem.hidden), problem.dtype
    return (
        Array("X", shape, dtype),
        Array("R", shape, dtype),
        Array("gamma", shape[1:], dtype),
        Array("S", shape, dtype, "output"),
        Array("Y", shape, dtype, "output"),
    )


def _plan(problem: AddNorm, config: RowBlock) -> tuple[Launch, ...]:
    rows, cols, held = problem.tokens, problem.hidden, power_of_two(problem.hidden)
    check_powers(rows=config.rows)
    check_elements(config.rows, held, "take fewer rows a block")
    norm = launch(
        "add+norm", add_norm, ceil_div(rows, config.rows), _arrays(problem, config), config.warps,
        rows=rows, cols=cols, epsilon=EPSILON, TR=config.rows, TC=held, WHOLE=held == cols,
    )  # fmt: skip
    return (norm,)


def _schedule(problem: AddNorm, config: RowBlock) -> Schedule:
    nest = (Loop("t", config.rows, grid=True),)
    kernel = Kernel("add+norm", ("add", "norm"), nest, threads=32 * config.warps)
    return Schedule("rows", problem.algorithm(), (kernel,))


def _reference(problem: AddNorm, tensors: Tensors) -> Tensors:
    x, r, gamma = (tensors[name].double().cpu() for name in ("X", "R", "gamma"))
    s = x + r
    rstd = torch.rsqrt((s * s).mean(1, keepdim=True) + EPSILON)
    return {"S": s, "Y": s * rstd * gamma}


_FORMS = tuple(
    AddNorm(16384, hidden, dtype)
    for hidden, dtype in (
        (2048, "bf16"), (4096, "bf16"), (8192, "bf16"), (16384, "bf16"), (7168, "bf16"),
        (4096, "fp32"),
    )
)  # fmt: skip

KERNELS = (
    BundledKernel(
        name="add-rmsnorm",
        summary="residual sum and RMS norm in one pass",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=tuple(
            (AddNorm(tokens, hidden, dtype), RowBlock(rows))
            for tokens, hidden, dtype, rows in (
                (64, 512, "fp32", 1),
                (33, 257, "fp16", 2),
                (5, 1, "fp32", 4),
                (19, 1000, "fp16", 4),
                (9, 4097, "fp16", 1),
            )
        ),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        menu_of=_menu,
        forms=_FORMS,
    ),
)
