"""The roofline itself: two straight lines and the point where they meet.

Work of F operations on Q bytes takes at least max(F / P, Q / B), so at intensity I = F / Q the
attainable rate is min(P, B·I), and both bounds agree at the ridge I* = P / B (Williams, Waterman &
Patterson 2009). Plain arithmetic, the same for numbers and arrays.
"""

from __future__ import annotations

from typing import overload

from perfmodel.arithmetic import Number, minimum


@overload
def ridge_point(flops_per_s: float, bytes_per_s: float) -> float: ...
@overload
def ridge_point(flops_per_s: Number, bytes_per_s: Number) -> Number: ...
def ridge_point(flops_per_s: Number, bytes_per_s: Number) -> Number:
    """Operations per byte above which the compute roof binds, and below which bandwidth does."""
    return flops_per_s / bytes_per_s


def attainable(flops_per_s: Number, bytes_per_s: Number, intensity: Number) -> Number:
    """Highest rate (operations per second) at `intensity` operations per byte."""
    return minimum(flops_per_s, bytes_per_s * intensity)
