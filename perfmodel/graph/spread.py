"""The range of a graph's time, from those of its nodes.

A family of operators (the rows of the table of ranges) is predicted by the same few constants and
kernels, so its errors have one cause: they are taken as fully correlated within a graph. Where one
product is 5 % slower than predicted, all are. The low ends of a family then add up, and so do the
high ends.

Two families share little, and their errors are taken as independent: variances add, and the
half-width of an 80 % range goes with the standard deviation, so that half-widths add by their
squares, downwards and upwards apart:

    T = Σ Tf    T − low = √Σ (Tf − lowf)²    high − T = √Σ (highf − Tf)²

The range is therefore no wider than the sum of all ranges, and no narrower than that of its widest
family. What all families share (a clock, a bandwidth that the spec has wrong) is in the
range of each, and counts as independent here. Gaps and host time have no range of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Spread:
    """Device time of a node, all its runs together, and its 80 % range in seconds."""

    family: str
    """The row of the table of ranges."""
    seconds: float
    """Predicted."""
    low_seconds: float
    """The low end."""
    high_seconds: float
    """The high end."""


def together(parts: Iterable[Spread]) -> tuple[float, float]:
    """Factors from the predicted device time to the low and the high end of its range."""
    families: dict[str, list[float]] = {}
    for part in parts:
        sums = families.setdefault(part.family, [0.0, 0.0, 0.0])
        for i, value in enumerate((part.seconds, part.low_seconds, part.high_seconds)):
            sums[i] += value
    total = sum(mid for mid, _, _ in families.values())
    down = math.hypot(*(mid - low for mid, low, _ in families.values()))
    up = math.hypot(*(high - mid for mid, _, high in families.values()))
    return 1.0 - down / total, 1.0 + up / total
