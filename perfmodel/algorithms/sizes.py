"""Limits on the sizes and the number of problems."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from perfmodel.arithmetic import Number, is_symbolic
from perfmodel.errors import ProblemError

LARGEST = 2**40
"""Largest size of one dimension: 2^40 = 1,099,511,627,776."""

MOST_POINTS = 2**120
"""Most points of all dimensions of a problem together.

2^120, three dimensions of the largest size, is more than any machine will ever compute. Beyond it,
powers of counts and times would overflow floating-point numbers.
"""

MOST_CASES = 50_000_000
"""Most cases of one command, over all devices and schedules."""


def check_cases(count: int, most: int = MOST_CASES, instead: str = "narrow a range") -> None:
    """Raise `ProblemError` for more than `most` cases; `instead` is the advice in the message."""
    if count > most:
        raise ProblemError(f"{count:,} cases are more than {most:,}; {instead}")


def check_positive(name: str, value: Number) -> None:
    """Raise `ProblemError` where a size is not a whole number from 1 to `LARGEST`."""
    if type(value) is int and 1 <= value <= LARGEST:  # one problem: no array is made
        return
    if is_symbolic(value):
        return
    array = np.asarray(value)
    if array.dtype.kind not in "iu" and not (array.dtype == object and array.size):
        raise ProblemError(f"{name} must be a whole number, not {value!r}")
    if array.size and np.any(array < 1):
        worst = int(array.min())
        raise ProblemError(f"{name} must be at least 1, not {worst}; give a positive size")
    if array.size and np.any(array > LARGEST):
        worst = int(array.max())
        raise ProblemError(f"{name} must be at most 2^40, not {worst}; give a smaller size")


def check_points(sizes: Mapping[str, Number]) -> None:
    """Raise `ProblemError` where the axes `sizes` span more than `MOST_POINTS` together."""
    if is_symbolic(*sizes.values()):
        return
    extents = (v.astype(np.float64) if isinstance(v, np.ndarray) else v for v in sizes.values())
    points = math.prod(extents)
    if points > MOST_POINTS if isinstance(points, int) else np.any(points > MOST_POINTS):
        raise ProblemError(
            f"a problem of {float(np.max(points)):.2g} points ({' x '.join(sizes)}) is beyond "
            "2^120, the most that has a time; give smaller sizes"
        )
