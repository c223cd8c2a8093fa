"""The range of a serving metric: the operators' range, widened by the engine's (`spread.yaml`).

    ln(high / value)² = ln(operators' high / value)² + width²

Errors of operators and engines are independent, so their half-widths add in quadrature.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfmodel import yamltable

GROUPS = ("first", "pace fitted", "pace unfitted")
"""Groups of metrics whose errors have one cause. `first`: first tokens, whose queues depend on
the clients; `pace fitted` and `pace unfitted`: decoding under engines with and without a fitted
host."""
_FIRST = ("ttft_ms", "input_tokens_per_s")


@dataclass(frozen=True)
class Spread:
    """Half-widths by group, as natural logarithms."""

    widths: Mapping[str, float]
    """Half-widths that are added to the operators'."""

    @classmethod
    def none(cls) -> Spread:
        """The operators' ranges alone."""
        return cls(dict.fromkeys(GROUPS, 0.0))

    def around(self, group: str, value: float, low: float, high: float) -> tuple[float, float]:
        """The ends of the range of a value in a group; `low` and `high` are the operators'."""
        width = self.widths[group]
        return (
            value * math.exp(-math.hypot(math.log(value / low), width)),
            value * math.exp(math.hypot(math.log(high / value), width)),
        )


@lru_cache(maxsize=1)
def default() -> Spread:
    """The shipped widths."""
    widths = yamltable.read(Path(__file__).with_name("spread.yaml"))["widths"]
    return Spread({name: float(width) for name, width in widths.items()})


def group_of(metric: str, *, fitted: bool) -> str:
    """The group of a metric under an engine whose host is `fitted` or not."""
    if metric in _FIRST:
        return "first"
    return "pace fitted" if fitted else "pace unfitted"
