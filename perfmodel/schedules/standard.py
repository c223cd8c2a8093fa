"""Standard attention: every step is a kernel, with the score matrix in memory between them.

The matrix kernels are tiled like any matmul, so their traffic at the L2 boundary depends on the
tile. The least traffic is 4N² + 4Nd elements a head forward and 7N² + 8Nd backward.
"""

from __future__ import annotations

from perfmodel.algorithms import attention
from perfmodel.algorithms.algorithm import Algorithm, Band
from perfmodel.algorithms.attention import MaskPass
from perfmodel.algorithms.gradient import gradient
from perfmodel.arithmetic import Number
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

_HEADS = (Loop("b", 1, grid=True), Loop("g", 1, grid=True), Loop("r", 1, grid=True))


def _matmul(step: str, m: str, n: str, k: str, tile: tuple[Number, Number, Number]) -> Kernel:
    bm, bn, bk = tile
    return Kernel(
        step,
        (step,),
        (*_HEADS, Loop(m, bm, grid=True), Loop(n, bn, grid=True), Loop(k, bk)),
        operand_tile=(64, 64),
        masked=False,
        stages=3,
    )


def _key_kernel(step: str, columns: str) -> Kernel:
    """One output tile of keys; the sum runs over the query rows of every head of the group."""
    return Kernel(
        step,
        (step,),
        (
            *_HEADS[:2],
            Loop("x", 128, grid=True),
            Loop(columns, 64, grid=True),
            Loop("r", 1),
            Loop("q", 32),
        ),
        operand_tile=(64, 64),
        masked=False,
        stages=3,
    )


def _rowwise(step: str, row_tile: Number | None) -> Kernel:
    """One row a block, held on chip or streamed in tiles; a streamed row is read three times."""
    stream = () if row_tile is None else (Loop("x", row_tile),)
    nest = (*_HEADS, Loop("q", 1, grid=True), *stream)
    return Kernel(step, (step,), nest, masked=False, row_passes=3)


def standard(
    mask: Band | None = None,
    *,
    tile: tuple[Number, Number, Number] = (128, 128, 32),
    mask_pass: MaskPass = "none",
    dropout: bool = False,
    scaled_copy: bool = False,
    statistics: tuple[str, ...] = (),
    row_tile: Number | None = None,
) -> Schedule:
    """Standard attention forward, tile (BM, BN, BK) in its two matmuls.

    The mask never saves work. With `mask_pass` a causal problem has a kernel that applies the mask.
    Rows of scores longer than `row_tile` are streamed through the softmax.
    """
    algorithm = attention.forward(
        mask,
        statistics=statistics,
        mask_pass=mask_pass,
        dropout=dropout,
        scaled_copy=scaled_copy,
    )
    return Schedule("standard", algorithm, _kernels(algorithm, tile, row_tile))


def standard_backward(
    mask: Band | None = None,
    *,
    tile: tuple[Number, Number, Number] = (128, 128, 32),
    mask_pass: MaskPass = "none",
    dropout: bool = False,
    scaled_copy: bool = False,
    row_tile: Number | None = None,
) -> Schedule:
    """Standard attention backward from saved probabilities: 4 contractions."""
    forward = attention.forward(
        mask, statistics=(), mask_pass=mask_pass, dropout=dropout, scaled_copy=scaled_copy
    )
    algorithm = gradient(forward)
    return Schedule("standard-backward", algorithm, _kernels(algorithm, tile, row_tile))


def _kernels(
    algorithm: Algorithm, tile: tuple[Number, Number, Number], row_tile: Number | None
) -> tuple[Kernel, ...]:
    kernels = []
    for step in algorithm.steps:
        columns = algorithm.tensors[step.outputs[0]].axes
        if step.kind == "contraction" and "q" in columns:
            (inner,) = step.reduces
            kernels.append(_matmul(step.name, "q", columns[-1], inner, tile))
        elif step.kind == "contraction":
            kernels.append(_key_kernel(step.name, columns[-1]))
        else:
            long = step.kind == "normalisation"
            kernels.append(_rowwise(step.name, row_tile if long else None))
    return tuple(kernels)
