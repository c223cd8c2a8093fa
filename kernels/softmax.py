"""Row softmax: in one pass if the row fits on chip, else online in two passes.

The online form (Milakov & Gimelshein 2018) keeps a running maximum and sum over the first pass, so
that a streamed row is read twice and not three times.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import LOG2E, ceil_div, power_of_two
from perfmodel_kernels.limits import (
    check_elements,
    check_positive_counts,
    check_powers,
    check_rowwise,
)
from perfmodel_kernels.menus import WIDEST_HELD, every, lanes, row_blocks

from perfmodel.algorithms import Rowwise
from perfmodel.errors import ProblemError
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors
from perfmodel.schedules.rowwise import rows
from perfmodel.schedules.schedule import Schedule


@dataclass(frozen=True)
class SoftmaxConfig:
    """A block of rows, each held whole."""

    rows: int = 1
    """Rows of a block."""
    warps: int = 4
    """Warps of a block."""


@dataclass(frozen=True)
class OnlineConfig:
    """A block of rows, streamed in tiles. A row that fits in one tile is not streamed."""

    rows: int = 1
    """Rows of a block."""
    cols: int = 4096
    """Columns of a streamed tile."""
    warps: int = 8
    """Warps of a block."""
    stages: int = 3
    """Tiles that are loaded ahead, plus one."""


@triton.jit
def softmax_row(
    X, Y, rows, cols, TR: tl.constexpr, TC: tl.constexpr, LOG2E: tl.constexpr, WHOLE: tl.constexpr
):  # fmt: skip
    """TR whole rows a block; TC covers the row, and WHOLE says that it is the row."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    inside = (n < rows)[:, None] if WHOLE else (n < rows)[:, None] & (c < cols)[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    x = tl.load(X + at, mask=inside, other=float("-inf")).to(tl.float32)
    top = tl.max(x, 1)
    top = tl.where(top == float("-inf"), 0.0, top * LOG2E)
    e = tl.exp2(x * LOG2E - top[:, None])
    total = tl.sum(e, 1)
    y = e * (1.0 / tl.where(total == 0.0, 1.0, total))[:, None]
    tl.store(Y + at, y.to(Y.dtype.element_ty), mask=inside)


@triton.jit
def softmax_online(
    X, Y, rows, cols, TR: tl.constexpr, TC: tl.constexpr, LOG2E: tl.constexpr,
    WHOLE: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip
    """TR rows a block, streamed in tiles of TC columns: statistics first, then the result."""
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    alive = (n < rows)[:, None]
    start = n.to(tl.int64)[:, None] * cols
    top = tl.full([TR], float("-inf"), tl.float32)
    total = tl.full([TR], 0.0, tl.float32)
    for first in tl.range(0, cols, TC, num_stages=STAGES):
        c = first + tl.arange(0, TC)
        inside = alive if WHOLE else alive & (c < cols)[None, :]
        x = tl.load(X + start + c[None, :], mask=inside, other=float("-inf")).to(tl.float32)
        new = tl.maximum(top, tl.max(x, 1) * LOG2E)
        safe = tl.where(new == float("-inf"), 0.0, new)
        total = total * tl.exp2(top - safe) + tl.sum(tl.exp2(x * LOG2E - safe[:, None]), 1)
        top = new
    top = tl.where(top == float("-inf"), 0.0, top)
    scale = 1.0 / tl.where(total == 0.0, 1.0, total)
    for first in tl.range(0, cols, TC, num_stages=STAGES):
        c = first + tl.arange(0, TC)
        inside = alive if WHOLE else alive & (c < cols)[None, :]
        x = tl.load(X + start + c[None, :], mask=inside, other=float("-inf")).to(tl.float32)
        y = tl.exp2(x * LOG2E - top[:, None]) * scale[:, None]
        tl.store(Y + start + c[None, :], y.to(Y.dtype.element_ty), mask=inside)


def _menu(problem: Rowwise, target: str, units: int) -> tuple[SoftmaxConfig, ...]:
    """One row a block, and four rows a block for short rows. Raises `ProblemError` for rows that
    would spill."""
    if problem.cols > WIDEST_HELD:
        raise ProblemError(f"a row of {problem.cols} columns spills; take softmax-online")
    return tuple(SoftmaxConfig(*block) for block in row_blocks("softmax", problem.cols, target))


def _online_menu(problem: Rowwise, target: str, units: int) -> tuple[OnlineConfig, ...]:
    """Tiles of 16 elements a thread, and of 32."""
    return tuple(
        OnlineConfig(1, held * lanes(target) * warps, warps, stages)
        for held, warps, stages in ((16, 8, 3), (16, 4, 3), (32, 8, 2), (32, 4, 2))
    )


def _arrays(problem: Rowwise, config: SoftmaxConfig | OnlineConfig) -> tuple[Array, ...]:
    shape = (problem.rows, problem.cols)
    return (Array("X", shape, problem.dtype), Array("Y", shape, problem.dtype, "output"))


def _plan(problem: Rowwise, config: SoftmaxConfig | OnlineConfig) -> tuple[Launch, ...]:
    # A row that one tile holds stays on chip: nothing to stream.
    streamed = isinstance(config, OnlineConfig) and problem.cols > config.cols
    held = config.cols if streamed else power_of_two(problem.cols)
    check_rowwise("softmax-online" if streamed else "softmax", problem, "softmax")
    check_powers(rows=config.rows, cols=held, warps=config.warps)
    check_elements(config.rows, held, "take fewer rows a block, or softmax-online with short tiles")
    if streamed:
        check_positive_counts(stages=config.stages)
    tile = {"TR": config.rows, "TC": held, "LOG2E": LOG2E, "WHOLE": problem.cols % held == 0}
    launch = Launch(
        "softmax",
        softmax_online if streamed else softmax_row,
        (ceil_div(problem.rows, config.rows),),
        {"X": "X", "Y": "Y", "rows": problem.rows, "cols": problem.cols},
        {**tile, **({"STAGES": config.stages} if streamed else {})},
        num_warps=config.warps,
    )
    return (launch,)


def _schedule(problem: Rowwise, config: SoftmaxConfig | OnlineConfig) -> Schedule:
    if isinstance(config, SoftmaxConfig):
        return rows(problem, config.rows, None, 32 * config.warps)
    return rows(problem, config.rows, config.cols, 32 * config.warps, stages=config.stages)


def _reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    return {"Y": torch.softmax(tensors["X"].double().cpu(), dim=-1)}


def _forms(*shapes: tuple[int, int, str]) -> tuple[Rowwise, ...]:
    return tuple(Rowwise("softmax", n, c, dtype) for n, c, dtype in shapes)


_HELD_FORMS = _forms(
    (16384, 1024, "bf16"),
    (16384, 4096, "bf16"),
    (16384, 8192, "bf16"),
    (16384, 16384, "bf16"),
    (16384, 5120, "bf16"),
    (16384, 4096, "fp32"),
)
_STREAMED_FORMS = _forms(
    (4096, 16384, "bf16"), (4096, 65536, "bf16"), (4096, 50257, "bf16"), (4096, 32768, "fp32")
)
_SHAPES = (
    (64, 512, "fp32", 1, 128),
    (33, 257, "fp16", 2, 64),
    (5, 1, "fp32", 4, 128),
    (19, 1000, "fp16", 4, 256),
    (9, 4097, "fp16", 1, 1024),
    (16, 128, "fp32", 2, 128),
)
_PROBLEMS = _forms(*(shape[:3] for shape in _SHAPES))


def _kernel(name: str, summary: str, menu_of, forms: tuple, configs: tuple) -> BundledKernel:
    return BundledKernel(
        name=name,
        summary=summary,
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(menu_of, forms),
        cases=tuple(zip(_PROBLEMS, configs, strict=True)),
        arrays=_arrays,
        plan=_plan,
        schedule=_schedule,
        reference_of=_reference,
        menu_of=menu_of,
        forms=forms,
    )


KERNELS = (
    _kernel(
        "softmax",
        "row softmax, the row held on chip",
        _menu,
        _HELD_FORMS,
        tuple(SoftmaxConfig(n) for *_, n, _ in _SHAPES),
    ),
    _kernel(
        "softmax-online",
        "row softmax of a streamed row, read twice",
        _online_menu,
        _STREAMED_FORMS,
        tuple(OnlineConfig(n, tile, warps=4) for *_, n, tile in _SHAPES),
    ),
)
