"""The range of what is said of requests: the operators', and what engines add (`spread.yaml`).

    ln(high / value)² = ln(operators' high / value)² + width²

Operators err apart from engines, so half-widths add by their squares.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from perfmodel import yamltable

GROUPS = ("first", "pace fitted", "pace unfitted")
"""Metrics whose errors have one cause: first tokens, whose queues depend on clients; the pace of
decoding under engines whose host was fitted, and under others."""
_FIRST = ("ttft_ms", "input_tokens_per_s")


@dataclass(frozen=True)
class Spread:
    """Half-widths in ln by group."""

    widths: Mapping[str, float]
    """What is added to the operators' half-widths."""

    @classmethod
    def none(cls) -> Spread:
        """The operators' ranges alone."""
        return cls(dict.fromkeys(GROUPS, 0.0))

    def around(self, group: str, value: float, low: float, high: float) -> tuple[float, float]:
        """The ends of the range of a value of a group whose operators say low to high."""
        width = self.widths[group]
        return (
            value * math.exp(-math.hypot(math.log(value / low), width)),
            value * math.exp(math.hypot(math.log(high / value), width)),
        )


@lru_cache(maxsize=1)
def default() -> Spread:
    """The widths that come with the package."""
    found = yamltable.read(Path(__file__).with_name("spread.yaml"))["widths"]
    return Spread({name: float(width) for name, width in found.items()})


def group_of(metric: str, *, fitted: bool) -> str:
    """The group of a metric under an engine whose host was fitted, or was not."""
    if metric in _FIRST:
        return "first"
    return "pace fitted" if fitted else "pace unfitted"
