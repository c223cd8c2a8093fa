"""Checks of configs, problems and targets, with one-line errors: powers of two, rows too long,
other operators."""

from __future__ import annotations

from perfmodel_kernels.common import power_of_two

from perfmodel.algorithms import Rowwise
from perfmodel.errors import ProblemError

WITHOUT_FP8 = {
    "sm_80": "has no 8-bit floats",
    "gfx942": "computes with e4m3fnuz, and e4m3fn would be converted in software",
}
"""Targets without e4m3fn, and why."""
# Elements of Triton's largest tile (triton.language.core.TRITON_MAX_TENSOR_NUMEL).
LARGEST_TILE = 2**20


def check_powers(**extents: int) -> None:
    """Raise `ProblemError` for an extent of a tile, or a number of warps, that is no power of 2."""
    for name, extent in extents.items():
        if extent < 1 or extent != power_of_two(extent):
            raise ProblemError(f"{name} must be a power of two, not {extent}")


def check_positive_counts(**counts: int | None) -> None:
    """Raise `ProblemError` for a count below 1; None is no count."""
    for name, count in counts.items():
        if count is not None and count < 1:
            raise ProblemError(f"{name} must be at least 1, not {count}")


def check_elements(rows: int, cols: int, instead: str) -> None:
    """Raise `ProblemError` for a tile of more elements than Triton has; `instead` says what to do.

    Both extents are powers of two.
    """
    if rows * cols > LARGEST_TILE:
        raise ProblemError(
            f"a tile of {rows} x {cols} has {rows * cols} elements, and Triton's have at most "
            f"{LARGEST_TILE}; {instead}"
        )


def check_offsets(bm: int, bn: int, *spans: int) -> None:
    """Raise `ProblemError` for a tile of bm × bn whose operand spans 2³¹ elements or more."""
    if max(spans) >= 2**31:
        raise ProblemError(
            f"a tile of {bm} x {bn} spans {max(spans)} elements of an operand, and "
            "offsets within a tile have 32 bits; take smaller tiles"
        )


def check_fp8(target: str, instead: str) -> None:
    """Raise `ProblemError` for a target without e4m3; `instead` says what to take."""
    if target in WITHOUT_FP8:
        raise ProblemError(f"{target} {WITHOUT_FP8[target]}; take {instead}")


def check_rowwise(
    kernel: str,
    problem: Rowwise,
    op: str,
    direction: str = "fwd",
    results: tuple[str, ...] = (),
) -> None:
    """Raise `ProblemError` for another operator, direction or type of the result.

    `results` are the types that it may have; none: that of the input.
    """
    asked = f"{problem.op} {problem.direction}"
    if (problem.op, problem.direction) != (op, direction):
        raise ProblemError(f"{kernel} computes {op} {direction}, not {asked}")
    allowed = results or (problem.dtype,)
    if problem.output_dtype not in (None, *allowed):
        raise ProblemError(
            f"{kernel} of {problem.dtype} leaves {' or '.join(allowed)}, not {problem.output_dtype}"
        )
