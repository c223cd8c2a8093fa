"""The norm kernels' code: rows forward and backward, sums over rows, and the sums' last step.

`norms.py` launches them. A block holds TR rows by TC columns at once. WHOLE means that TC is the
length of a row, so that no column needs a mask.
"""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def norm_forward(
    X, GAMMA, BETA, Y, MEAN, RSTD, rows, cols, epsilon,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """LayerNorm where CENTRED (mean and bias), else RMSNorm; TC covers the row."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    alive, column = n < rows, c < cols
    inside = alive[:, None] if WHOLE else alive[:, None] & column[None, :]
    row = n.to(tl.int64)[:, None] * cols
    x = tl.load(X + row + c[None, :], mask=inside, other=0.0).to(tl.float32)
    share = 1.0 / cols
    if CENTRED:
        mean = tl.sum(x, 1) * share
        x = x - mean[:, None] if WHOLE else tl.where(column[None, :], x - mean[:, None], 0.0)
        tl.store(MEAN + n, mean, mask=alive)
    rstd = 1.0 / tl.sqrt(tl.sum(x * x, 1) * share + epsilon)
    tl.store(RSTD + n, rstd, mask=alive)
    gamma = weights(GAMMA, c, column, WHOLE)
    y = x * rstd[:, None] * gamma[None, :]
    if CENTRED:
        y += weights(BETA, c, column, WHOLE)[None, :]
    tl.store(Y + row + c[None, :], y.to(Y.dtype.element_ty), mask=inside)


@triton.jit
def weights(W, c, column, WHOLE: tl.constexpr):
    """A row of weights in fp32."""
    return (tl.load(W + c) if WHOLE else tl.load(W + c, mask=column, other=0.0)).to(tl.float32)


@triton.jit
def normalised(X, MEAN, RSTD, n, row, c, alive, inside, CENTRED: tl.constexpr):
    """(x̂, rstd) of some rows as their forward pass left them. Lanes outside hold anything."""
    x = tl.load(X + row + c[None, :], mask=inside, other=0.0).to(tl.float32)
    rstd = tl.load(RSTD + n, mask=alive, other=0.0)
    if CENTRED:
        x = x - tl.load(MEAN + n, mask=alive, other=0.0)[:, None]
    return x * rstd[:, None], rstd


@triton.jit
def row_gradient(normal, dy, gamma, rstd, share, CENTRED: tl.constexpr):
    """dX = rstd·(g − x̂·mean(g∘x̂) [− mean(g)]) with g = dY∘gamma; dY is 0 outside."""
    g = dy * gamma[None, :]
    dx = g - normal * (tl.sum(g * normal, 1) * share)[:, None]
    if CENTRED:
        dx -= (tl.sum(g, 1) * share)[:, None]
    return dx * rstd[:, None]


@triton.jit
def norm_backward(
    X, DY, GAMMA, MEAN, RSTD, DX, rows, cols,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """The gradient of TR rows a block; TC covers the row."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    alive, column = n < rows, c < cols
    inside = alive[:, None] if WHOLE else alive[:, None] & column[None, :]
    row = n.to(tl.int64)[:, None] * cols
    dy = tl.load(DY + row + c[None, :], mask=inside, other=0.0).to(tl.float32)
    normal, rstd = normalised(X, MEAN, RSTD, n, row, c, alive, inside, CENTRED)
    gamma = weights(GAMMA, c, column, WHOLE)
    dx = row_gradient(normal, dy, gamma, rstd, 1.0 / cols, CENTRED)
    tl.store(DX + row + c[None, :], dx.to(DX.dtype.element_ty), mask=inside)


@triton.jit
def fused_backward(
    X, DY, GAMMA, MEAN, RSTD, DX, DGAMMA, DBETA, rows, cols, span,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr, WHOLE: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip
    """The gradients of `span` rows a block, and the sums of the weights' over them."""
    c = tl.arange(0, TC)
    column = c < cols
    gamma = weights(GAMMA, c, column, WHOLE)
    dgamma = tl.full([TR, TC], 0.0, tl.float32)
    dbeta = tl.full([TR, TC], 0.0, tl.float32)
    first = tl.program_id(0) * span
    last = tl.minimum(first + span, rows)
    for n0 in tl.range(first, last, TR, num_stages=STAGES):
        n = n0 + tl.arange(0, TR)
        alive = n < last
        inside = alive[:, None] if WHOLE else alive[:, None] & column[None, :]
        row = n.to(tl.int64)[:, None] * cols
        dy = tl.load(DY + row + c[None, :], mask=inside, other=0.0).to(tl.float32)
        normal, rstd = normalised(X, MEAN, RSTD, n, row, c, alive, inside, CENTRED)
        dgamma += dy * normal
        if CENTRED:
            dbeta += dy
        dx = row_gradient(normal, dy, gamma, rstd, 1.0 / cols, CENTRED)
        tl.store(DX + row + c[None, :], dx.to(DX.dtype.element_ty), mask=inside)
    leave(DGAMMA, DBETA, dgamma, dbeta, tl.program_id(0), cols, c, column, CENTRED)


@triton.jit
def leave(DGAMMA, DBETA, dgamma, dbeta, part, cols, c, column, CENTRED: tl.constexpr):
    """Store the sums over a block's rows as row `part`."""
    at = part.to(tl.int64) * cols + c
    tl.store(DGAMMA + at, tl.sum(dgamma, 0).to(DGAMMA.dtype.element_ty), mask=column)
    if CENTRED:
        tl.store(DBETA + at, tl.sum(dbeta, 0).to(DBETA.dtype.element_ty), mask=column)


@triton.jit
def weight_gradient(
    X, DY, MEAN, RSTD, DGAMMA, DBETA, rows, cols, span,
    TR: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """dgamma = Σ dY∘x̂ and dbeta = Σ dY over `span` rows, TC columns a block."""
    column_tiles = tl.cdiv(cols, TC)
    part = tl.program_id(0) // column_tiles
    c = (tl.program_id(0) % column_tiles) * TC + tl.arange(0, TC)
    column = c < cols
    dgamma = tl.full([TR, TC], 0.0, tl.float32)
    dbeta = tl.full([TR, TC], 0.0, tl.float32)
    first = part * span
    last = tl.minimum(first + span, rows)
    for n0 in range(first, last, TR):
        n = n0 + tl.arange(0, TR)
        alive = n < last
        inside = alive[:, None] & column[None, :]
        row = n.to(tl.int64)[:, None] * cols
        dy = tl.load(DY + row + c[None, :], mask=inside, other=0.0).to(tl.float32)
        normal, _ = normalised(X, MEAN, RSTD, n, row, c, alive, inside, CENTRED)
        dgamma += dy * normal
        if CENTRED:
            dbeta += dy
    leave(DGAMMA, DBETA, dgamma, dbeta, part, cols, c, column, CENTRED)


@triton.jit
def folded(PARTS, SUMS, cols, parts, TS: tl.constexpr, TC: tl.constexpr):
    """Add the partial sums of one weight's gradient over TC columns."""
    c = tl.program_id(0) * TC + tl.arange(0, TC)
    column = c < cols
    total = tl.full([TS, TC], 0.0, tl.float32)
    for first in range(0, parts, TS):
        part = first + tl.arange(0, TS)
        inside = (part < parts)[:, None] & column[None, :]
        at = part.to(tl.int64)[:, None] * cols + c[None, :]
        total += tl.load(PARTS + at, mask=inside, other=0.0)
    tl.store(SUMS + c, tl.sum(total, 0).to(SUMS.dtype.element_ty), mask=column)


@triton.jit
def fold(
    GAMMA_PARTS, BETA_PARTS, DGAMMA, DBETA, cols, parts,
    TS: tl.constexpr, TC: tl.constexpr, CENTRED: tl.constexpr,
):  # fmt: skip
    """The weights' gradients from the partial sums that blocks left, TC columns a block."""
    folded(GAMMA_PARTS, DGAMMA, cols, parts, TS, TC)
    if CENTRED:
        folded(BETA_PARTS, DBETA, cols, parts, TS, TC)
