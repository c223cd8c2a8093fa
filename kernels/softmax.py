"""Row softmax: in one pass where the row fits on chip, online in two where it does not.

The online form (Milakov & Gimelshein 2018) keeps a running maximum and sum over the first pass, so
that a streamed row is read twice and not three times.
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


@dataclass(frozen=True)
class SoftmaxConfig:
    """Rows of a block, columns of a streamed tile (online form only), warps."""

    rows: int = 1
    cols: int = 1024
    warps: int = 4


ONE_PASS = tuple(SoftmaxConfig(rows, warps=warps) for rows in (1, 2, 4) for warps in (4, 8, 16))
ONLINE = tuple(
    SoftmaxConfig(1, cols, warps) for cols in (1024, 2048, 4096, 8192) for warps in (4, 8)
)


@triton.jit
def softmax_row(X, Y, rows, cols, TR: tl.constexpr, TC: tl.constexpr):
    """TR whole rows a block; TC covers the row."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    inside = (n < rows)[:, None] & (c < cols)[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    x = tl.load(X + at, mask=inside, other=float("-inf")).to(tl.float32)
    top = tl.max(x, 1)
    top = tl.where(top == float("-inf"), 0.0, top)
    e = tl.exp(x - top[:, None])
    total = tl.sum(e, 1)
    y = e / tl.where(total == 0.0, 1.0, total)[:, None]
    tl.store(Y + at, y.to(Y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_online(X, Y, rows, cols, TR: tl.constexpr, TC: tl.constexpr):
    """TR rows a block, streamed in tiles of TC columns: statistics first, then the result."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    alive = (n < rows)[:, None]
    start = n.to(tl.int64)[:, None] * cols
    top = tl.full([TR], float("-inf"), tl.float32)
    total = tl.full([TR], 0.0, tl.float32)
    for first in range(0, cols, TC):
        c = first + tl.arange(0, TC)
        inside = alive & (c < cols)[None, :]
        x = tl.load(X + start + c[None, :], mask=inside, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 1))
        safe = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp(top - safe) + tl.sum(tl.exp(x - safe[:, None]), 1)
        top = new
    top = tl.where(top == float("-inf"), 0.0, top)
    scale = 1.0 / tl.where(total == 0.0, 1.0, total)
    for first in range(0, cols, TC):
        c = first + tl.arange(0, TC)
        inside = alive & (c < cols)[None, :]
        x = tl.load(X + start + c[None, :], mask=inside, other=float("-inf")).to(tl.float32)
        y = tl.exp(x - top[:, None]) * scale[:, None]
        tl.store(Y + start + c[None, :], y.to(Y.dtype.element_ty), mask=inside)


def _arrays(problem: Rowwise, config: SoftmaxConfig) -> tuple[Array, ...]:
    shape = (problem.rows, problem.cols)
    return (Array("X", shape, problem.dtype), Array("Y", shape, problem.dtype, "output"))


def _plan(problem: Rowwise, config: SoftmaxConfig, online: bool) -> tuple[Launch, ...]:
    # A row that one tile holds stays on chip: nothing to stream.
    streamed = online and problem.cols > config.cols
    launch = Launch(
        "softmax",
        softmax_online if streamed else softmax_row,
        (triton.cdiv(problem.rows, config.rows),),
        {"X": "X", "Y": "Y", "rows": problem.rows, "cols": problem.cols},
        {"TR": config.rows, "TC": config.cols if streamed else power_of_two(problem.cols)},
        num_warps=config.warps,
    )
    return (launch,)


def _schedule(problem: Rowwise, config: SoftmaxConfig, online: bool) -> Schedule:
    return rows(problem, config.rows, config.cols if online else None, 32 * config.warps)


def _reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    return {"Y": torch.softmax(tensors["X"].double().cpu(), dim=-1)}


def _kernel(name: str, summary: str, online: bool) -> BundledKernel:
    shapes = (
        (64, 512, "fp32", 1, 128),
        (33, 257, "fp16", 2, 64),
        (5, 1, "fp32", 4, 128),
        (19, 1000, "fp16", 4, 256),
        (9, 4097, "fp16", 1, 1024),
        (16, 128, "fp32", 2, 128),
    )
    return BundledKernel(
        name=name,
        summary=summary,
        dtypes=("fp32", "fp16", "bf16"),
        configs=ONLINE if online else ONE_PASS,
        cases=tuple(
            (Rowwise("softmax", n, c, dtype), SoftmaxConfig(tr, tc))
            for n, c, dtype, tr, tc in shapes
        ),
        arrays=_arrays,
        plan=lambda problem, config: _plan(problem, config, online),
        schedule=lambda problem, config: _schedule(problem, config, online),
        reference_of=_reference,
    )


KERNELS = (
    _kernel("softmax", "row softmax, the row held on chip", online=False),
    _kernel("softmax-online", "row softmax of a streamed row, read twice", online=True),
)
