"""How large problems may be, and how many: whole sizes from 1 on, no larger than can be timed."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from perfmodel.arithmetic import Number, is_symbolic
from perfmodel.errors import ProblemError

LARGEST = 2**40
"""The largest size in any one dimension, 1,099,511,627,776."""

MOST_POINTS = 2**120
"""The most points that all dimensions of a problem may span together.

Three dimensions of the largest size: more than any machine will ever compute. Beyond that, counts
and times taken to powers would leave the range of floating-point numbers.
"""

MOST_CASES = 50_000_000
"""The most cases that one command takes, all devices and schedules together."""


def check_cases(count: int, most: int = MOST_CASES, instead: str = "narrow a range") -> None:
    """Raise `ProblemError` for more cases than `most`; `instead` says what to do."""
    if count > most:
        raise ProblemError(f"{count:,} cases are more than {most:,}; {instead}")


def check_positive(name: str, value: Number) -> None:
    """Raise `ProblemError` where a size is no whole number from 1 to `LARGEST`."""
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
    if np.any(points > MOST_POINTS):
        raise ProblemError(
            f"a problem of {float(np.max(points)):.2g} points ({' x '.join(sizes)}) is beyond "
            "2^120, the most that has a time; give smaller sizes"
        )
