"""Quantisation of rows to 8 bits, a scale a row: Y = X / scale, scale = max |X| / largest value.

A row is a token, or a group of 128 elements of one: X [tokens, hidden] has tokens · hidden / 128
groups, which lie one after the other as rows do.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from perfmodel_kernels.common import ceil_div, power_of_two
from perfmodel_kernels.interpreted import round_to_8_bits
from perfmodel_kernels.launching import launch
from perfmodel_kernels.limits import check_elements, check_fp8, check_powers, check_rowwise
from perfmodel_kernels.menus import RowBlock, every, lanes, row_blocks

from perfmodel.algorithms import Rowwise
from perfmodel.algorithms.rowwise import QUANTISED
from perfmodel.proof.kernel import Array, BundledKernel, Launch, Tensors, torch_type
from perfmodel.schedules.rowwise import rows
from perfmodel.schedules.schedule import Schedule

round_to_8_bits()

# Largest value of each type (OCP 8-bit Floating Point 1.0, table 2: E4M3), and the smallest maximum
# of a row, so that a row of zeros has a scale.
LARGEST = {"fp8": 448.0, "int8": 127.0}
SMALLEST = 1e-10
# Columns up to which a row is a group; blocks then have this many elements a thread.
_GROUP = 128
_HELD = (16, 32, 8)


@triton.jit
def quantise(
    X, Y, SCALE, rows, cols, LARGEST: tl.constexpr, SMALLEST: tl.constexpr,
    TR: tl.constexpr, TC: tl.constexpr, WHOLE: tl.constexpr,
):  # fmt: skip
    """TR whole rows a block; TC covers the row, and WHOLE says that it is the row.

    No result needs a clamp: a quotient exceeds LARGEST by one rounding at most, and then rounds to
    it. An integer is the low bits of 1.5 · 2²³ + y, which rounds to even.
    """
    n = tl.program_id(0) * TR + tl.arange(0, TR)
    c = tl.arange(0, TC)
    alive = n < rows
    inside = alive[:, None] if WHOLE else alive[:, None] & (c < cols)[None, :]
    at = n.to(tl.int64)[:, None] * cols + c[None, :]
    x = tl.load(X + at, mask=inside, other=0.0).to(tl.float32)
    top = tl.maximum(tl.max(tl.abs(x), 1), SMALLEST)
    tl.store(SCALE + n, top * (1.0 / LARGEST), mask=alive)
    y = x * (LARGEST / top)[:, None]
    if Y.dtype.element_ty == tl.int8:
        y = (y + 12582912.0).to(tl.int32, bitcast=True) - 0x4B400000
    tl.store(Y + at, y.to(Y.dtype.element_ty), mask=inside)


def _result(problem: Rowwise) -> str:
    """Type of the result."""
    return problem.output_dtype or QUANTISED


def _menu(problem: Rowwise, target: str, units: int) -> tuple[RowBlock, ...]:
    """Blocks of whole rows; of groups, blocks of 4 or 8 warps with many."""
    if _result(problem) == "fp8":
        check_fp8(target, "int8")
    if problem.cols > _GROUP:
        blocks = row_blocks("quantise", problem.cols, target)
        return tuple(RowBlock(*block) for block in blocks)
    held = power_of_two(problem.cols)
    return tuple(
        RowBlock(each * lanes(target) * warps // held, warps) for warps in (4, 8) for each in _HELD
    )


def _arrays(problem: Rowwise, config: RowBlock) -> tuple[Array, ...]:
    shape = (problem.rows, problem.cols)
    return (
        Array("X", shape, problem.dtype),
        Array("Y", shape, _result(problem), "output"),
        Array("scale", shape[:1], "fp32", "output"),
    )


def _plan(problem: Rowwise, config: RowBlock) -> tuple[Launch, ...]:
    rows, cols, held = problem.rows, problem.cols, power_of_two(problem.cols)
    check_rowwise("quantise", problem, "quantise", results=tuple(LARGEST))
    check_powers(rows=config.rows)
    check_elements(config.rows, held, "take fewer rows a block")
    rounding = launch(
        "quantise", quantise, ceil_div(rows, config.rows), _arrays(problem, config), config.warps,
        rows=rows, cols=cols, LARGEST=LARGEST[_result(problem)], SMALLEST=SMALLEST,
        TR=config.rows, TC=held, WHOLE=held == cols,
    )  # fmt: skip
    return (rounding,)


def _schedule(problem: Rowwise, config: RowBlock) -> Schedule:
    return rows(problem, config.rows, None, 32 * config.warps)


def _reference(problem: Rowwise, tensors: Tensors) -> Tensors:
    """Results are rounded to their type, so that a right one is equal and not merely near."""
    x, largest = tensors["X"].float().cpu(), LARGEST[_result(problem)]
    top = x.abs().amax(1, keepdim=True).clamp_min(SMALLEST)
    y = x * torch.full_like(top, largest).div(top)  # a scalar / top would round twice
    kind = torch_type(_result(problem))
    y = (y if kind.is_floating_point else torch.round(y)).to(kind)
    return {"Y": y.double(), "scale": top[:, 0].double() / largest}


_FORMS = tuple(
    Rowwise("quantise", rows, cols, dtype, output_dtype=kind)
    for rows, cols, dtype, kind in (
        (16384, 4096, "bf16", "fp8"),
        (16384, 7168, "bf16", "fp8"),
        (16384, 16384, "bf16", "fp8"),
        (2**19, _GROUP, "bf16", "fp8"),
        (16384, 4096, "bf16", "int8"),
        (2**19, _GROUP, "bf16", "int8"),
        (16384, 4096, "fp32", "fp8"),
    )
)

KERNELS = (
    BundledKernel(
        name="quantise",
        summary="rows (tokens, or groups of 128) to fp8 or int8 with a scale each",
        dtypes=("fp32", "fp16", "bf16"),
        configs=every(_menu, _FORMS),
        cases=tuple(
            (Rowwise("quantise", rows, cols, dtype, output_dtype=kind), RowBlock(held))
            for rows, cols, dtype, kind, held in (
                (64, 512, "fp32", "fp8", 1),
                (33, 257, "fp16", "int8", 2),
                (5, 1, "fp32", "int8", 4),
                (77, 128, "fp16", "fp8", 16),
                (19, 1000, "fp16", "fp8", 4),
                (9, 4097, "fp32", "int8", 1),
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
