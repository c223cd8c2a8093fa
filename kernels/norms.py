"""LayerNorm and RMSNorm, forward and backward.

Rows on the grid, a row on chip. The weights' gradients reduce over rows, so that kernel gives its
blocks columns and streams the rows past them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import power_of_two

from perfmodel.algorithms import Rowwise
from perfmodel.evidence.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.rowwise import rows
from perfmodel.schedules.schedule import Schedule

EPSILON = 1e-5
# Columns of a block and rows of a step in the weight-gradient kernel, as its schedule has them.
WEIGHT_TILE = (64, 64)


@dataclass(frozen=True)
class NormConfig:
    """Rows of a block, and its warps."""

    rows: int = 1
    warps: int = 4


CONFIGS = tuple(NormConfig(rows, warps) for rows in (1, 2, 4) for warps in (4, 8, 16))


@triton.jit
def norm_forward(
    X, GAMMA, BETA, Y, MEAN, RSTD, rows, cols, epsilon,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """LayerNorm where CENTRED (mean and bias), else RMSNorm; TC covers the row."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    column = c < cols
    inside = (n < rows)[:, None] & column[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    x = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
    if CENTRED:
        mean = tl.sum(x, 1) / cols
        x = tl.where(inside, x - mean[:, None], 0.0)
        tl.store(MEAN + n, mean, mask=n < rows)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, 1) / cols + epsilon)
    tl.store(RSTD + n, rstd, mask=n < rows)
    gamma = tl.load(GAMMA + c, mask=column, other=0.0).to(tl.float32)
    y = x * rstd[:, None] * gamma[None, :]
    if CENTRED:
        y += tl.load(BETA + c, mask=column, other=0.0).to(tl.float32)[None, :]
    tl.store(Y + at, y.to(Y.dtype.element_ty), mask=inside)


@triton.jit
def norm_backward(
    X, DY, GAMMA, MEAN, RSTD, DX, rows, cols,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """The gradient of the rows: dX = rstd·(g − x̂·mean(g∘x̂) [− mean(g)]) with g = dY∘gamma."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    column = c < cols
    inside = (n < rows)[:, None] & column[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    x = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(DY + at, mask=inside, other=0.0).to(tl.float32)
    gamma = tl.load(GAMMA + c, mask=column, other=0.0).to(tl.float32)
    rstd = tl.load(RSTD + n, mask=n < rows, other=0.0)
    if CENTRED:
        mean = tl.load(MEAN + n, mask=n < rows, other=0.0)
        x = tl.where(inside, x - mean[:, None], 0.0)
    normal = x * rstd[:, None]
    g = dy * gamma[None, :]
    dx = g - normal * (tl.sum(g * normal, 1) / cols)[:, None]
    if CENTRED:
        dx -= (tl.sum(g, 1) / cols)[:, None]
    dx = dx * rstd[:, None]
    tl.store(DX + at, dx.to(DX.dtype.element_ty), mask=inside)


@triton.jit
def weight_gradient(
    X, DY, MEAN, RSTD, DGAMMA, DBETA, rows, cols,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """The gradients of the weights: dgamma = Σ_rows dY∘x̂, dbeta = Σ_rows dY, TC columns a block."""
    c = tl.program_id(0) * TC + tl.arange(0, TC)
    column = c < cols
    dgamma = tl.full([TC], 0.0, tl.float32)
    dbeta = tl.full([TC], 0.0, tl.float32)
    for first in range(0, rows, TR):
        n = first + tl.arange(0, TR)
        inside = (n < rows)[:, None] & column[None, :]
        at = n.to(tl.int64)[:, None] * cols + c[None, :]
        x = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
        dy = tl.load(DY + at, mask=inside, other=0.0).to(tl.float32)
        rstd = tl.load(RSTD + n, mask=n < rows, other=0.0)
        if CENTRED:
            mean = tl.load(MEAN + n, mask=n < rows, other=0.0)
            x = x - mean[:, None]
            dbeta += tl.sum(dy, 0)
        dgamma += tl.sum(dy * x * rstd[:, None], 0)
    tl.store(DGAMMA + c, dgamma.to(DGAMMA.dtype.element_ty), mask=column)
    if CENTRED:
        tl.store(DBETA + c, dbeta.to(DBETA.dtype.element_ty), mask=column)


def _schedule(problem: Rowwise, config: NormConfig) -> Schedule:
    return rows(problem, config.rows, None, 32 * config.warps)


def _forward_arrays(problem: Rowwise, config: NormConfig) -> tuple[Array, ...]:
    shape, dtype = (problem.rows, problem.cols), problem.dtype
    centred = problem.op == "layernorm"
    return (
        Array("X", shape, dtype),
        Array("gamma", shape[1:], dtype),
        *((Array("beta", shape[1:], dtype),) if centred else ()),
        Array("Y", shape, dtype, "output"),
        *((Array("mean", shape[:1], "fp32", "output"),) if centred else ()),
        Array("rstd", shape[:1], "fp32", "output"),
    )


def _forward_plan(problem: Rowwise, config: NormConfig) -> tuple[Launch, ...]:
    centred = problem.op == "layernorm"
    arguments = {
        "X": "X",
        "GAMMA": "gamma",
        "BETA": "beta" if centred else "gamma",
        "Y": "Y",
        "MEAN": "mean" if centred else "rstd",
        "RSTD": "rstd",
        "rows": problem.rows,
        "cols": problem.cols,
        "epsilon": EPSILON,
    }
    tile = {"TR": config.rows, "TC": power_of_two(problem.cols), "CENTRED": centred}
    grid = (triton.cdiv(problem.rows, config.rows),)
    return (Launch(problem.op, norm_forward, grid, arguments, tile, num_warps=config.warps),)


def _statistics(problem: Rowwise, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Mean (0 for RMSNorm) and reciprocal deviation of the rows of a float64 matrix."""
    mean = x.mean(1) if problem.op == "layernorm" else torch.zeros(len(x), dtype=x.dtype)
    return mean, 1 / torch.sqrt(((x - mean[:, None]) ** 2).mean(1) + EPSILON)


def _forward_reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    x, gamma = tensors["X"].double().cpu(), tensors["gamma"].double().cpu()
    mean, rstd = _statistics(problem, x)
    y = (x - mean[:, None]) * rstd[:, None] * gamma
    if problem.op == "rmsnorm":
        return {"Y": y, "rstd": rstd}
    return {"Y": y + tensors["beta"].double().cpu(), "mean": mean, "rstd": rstd}


def _backward_arrays(problem: Rowwise, config: NormConfig) -> tuple[Array, ...]:
    shape, dtype = (problem.rows, problem.cols), problem.dtype
    centred = problem.op == "layernorm"
    return (
        Array("X", shape, dtype),
        Array("dY", shape, dtype),
        Array("gamma", shape[1:], dtype),
        *((Array("mean", shape[:1], "fp32", fill="derived"),) if centred else ()),
        Array("rstd", shape[:1], "fp32", fill="derived"),
        Array("dX", shape, dtype, "output"),
        Array("dgamma", shape[1:], dtype, "output"),
        *((Array("dbeta", shape[1:], dtype, "output"),) if centred else ()),
    )


def _derive(problem: Rowwise, tensors: Tensors) -> None:
    mean, rstd = _statistics(problem, tensors["X"].double().cpu())
    tensors["rstd"].copy_(rstd)
    if "mean" in tensors:
        tensors["mean"].copy_(mean)


def _backward_plan(problem: Rowwise, config: NormConfig) -> tuple[Launch, ...]:
    centred = problem.op == "layernorm"
    names = {"X": "X", "DY": "dY", "MEAN": "mean" if centred else "rstd", "RSTD": "rstd"}
    size = {"rows": problem.rows, "cols": problem.cols}
    columns, step = WEIGHT_TILE
    return (
        Launch(
            f"{problem.op}-gradient",
            norm_backward,
            (triton.cdiv(problem.rows, config.rows),),
            {**names, "GAMMA": "gamma", "DX": "dX", **size},
            {"TR": config.rows, "TC": power_of_two(problem.cols), "CENTRED": centred},
            num_warps=config.warps,
        ),
        Launch(
            "weight-gradient",
            weight_gradient,
            (triton.cdiv(problem.cols, columns),),
            {**names, "DGAMMA": "dgamma", "DBETA": "dbeta" if centred else "dgamma", **size},
            {"TR": step, "TC": columns, "CENTRED": centred},
            num_warps=config.warps,
        ),
    )


def _backward_reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    x, dy, gamma = (tensors[name].double().cpu() for name in ("X", "dY", "gamma"))
    mean, rstd = _statistics(problem, x)
    normal = (x - mean[:, None]) * rstd[:, None]
    g = dy * gamma
    dx = g - normal * (g * normal).mean(1, keepdim=True)
    if problem.op == "rmsnorm":
        return {"dX": dx * rstd[:, None], "dgamma": (dy * normal).sum(0)}
    dx = (dx - g.mean(1, keepdim=True)) * rstd[:, None]
    return {"dX": dx, "dgamma": (dy * normal).sum(0), "dbeta": dy.sum(0)}


_SHAPES = (
    (64, 512, "fp32", 1),
    (33, 257, "fp16", 2),
    (130, 96, "fp16", 4),
    (1, 1000, "fp32", 1),
    (71, 130, "fp32", 1),
)


def _kernel(op: str, backward: bool) -> BundledKernel:
    direction = "bwd" if backward else "fwd"
    return BundledKernel(
        name=f"{op}-backward" if backward else op,
        summary=f"{op} {'backward, with the weights gradients' if backward else 'forward'}",
        dtypes=("fp32", "fp16", "bf16"),
        configs=CONFIGS,
        cases=tuple(
            (Rowwise(op, n, c, dtype, direction=direction), NormConfig(tile))
            for n, c, dtype, tile in _SHAPES
        ),
        arrays=_backward_arrays if backward else _forward_arrays,
        plan=_backward_plan if backward else _forward_plan,
        schedule=_schedule,
        reference_of=_backward_reference if backward else _forward_reference,
        derive=_derive if backward else None,
    )


KERNELS = tuple(_kernel(op, back) for op in ("layernorm", "rmsnorm") for back in (False, True))
