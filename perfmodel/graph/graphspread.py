"""The range of a graph's time, from the ranges of its nodes.

The operators of one family (a row of the table of ranges) are predicted by the same few constants
and kernels, so their errors have one cause. They are taken as fully correlated within a graph:
where one product is 5 % slower than predicted, all are. The low ends of a family add up, and so do
the high ends.

Errors of different families are taken as independent: variances add. The half-width of an 80 %
range is proportional to the standard deviation, so half-widths add in squares, separately below and
above:

    T = Σ Tf    T − low = √Σ (Tf − lowf)²    high − T = √Σ (highf − Tf)²

The range is therefore at most the sum of all ranges, and at least that of the widest family. An
error that all families share (a clock, a wrong bandwidth in the spec) is in the range of each and
counts as independent here. Gaps and host time have no range of their own.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from perfmodel.prediction import Prediction


@dataclass(frozen=True)
class Spread:
    """A time with its 80 % range in seconds: of a node, all its runs together, or an exchange."""

    family: str
    """Row of the table of ranges, the cause of its errors."""
    seconds: float
    """Predicted time."""
    low_seconds: float
    """Low end of the range."""
    high_seconds: float
    """High end of the range."""

    @classmethod
    def of(cls, family: str, kernel: Prediction, runs: float) -> Spread:
        """`runs` runs of a kernel, without a benchmark harness's start-up."""
        seconds = runs * (kernel.seconds - kernel.terms["launch"])
        share = seconds / kernel.seconds
        return cls(family, seconds, kernel.low_seconds * share, kernel.high_seconds * share)

    def __add__(self, other: Spread) -> Spread:
        """One after the other, with errors of one cause."""
        sums = (
            getattr(self, x) + getattr(other, x) for x in ("seconds", "low_seconds", "high_seconds")
        )
        return Spread(self.family, *sums)

    def over(self, devices: int) -> Spread:
        """Its time and range on each of `devices` that share it."""
        return Spread(
            self.family,
            self.seconds / devices,
            self.low_seconds / devices,
            self.high_seconds / devices,
        )

    def times(self, factor: float) -> Spread:
        """Its time and range, `factor` times."""
        ends = (self.seconds, self.low_seconds, self.high_seconds)
        return Spread(self.family, *(factor * seconds for seconds in ends))


def together(parts: Iterable[Spread]) -> tuple[float, float]:
    """Factors from the predicted device time to the low and the high end of its range."""
    families: dict[str, list[float]] = {}
    for part in parts:
        sums = families.setdefault(part.family, [0.0, 0.0, 0.0])
        for i, value in enumerate((part.seconds, part.low_seconds, part.high_seconds)):
            sums[i] += value
    total = sum(mid for mid, _, _ in families.values())
    lower = math.hypot(*(mid - low for mid, low, _ in families.values()))
    upper = math.hypot(*(high - mid for mid, _, high in families.values()))
    return 1.0 - lower / total, 1.0 + upper / total
