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

_FIRST = ("ttft_ms", "input_tokens_per_s")
_ANY = "any"


@dataclass(frozen=True)
class Spread:
    """Half-widths in ln by group, down and up."""

    widths: Mapping[str, tuple[float, float]]
    """By group; `any` stands for groups that have none."""

    @classmethod
    def none(cls) -> Spread:
        """The operators' ranges alone."""
        return cls({_ANY: (0.0, 0.0)})

    def around(self, value: float, low: float, high: float, group: str) -> tuple[float, float]:
        """The ends of the range of a value whose operators say low to high."""
        down, up = self.widths.get(group, self.widths[_ANY])
        return (
            value * math.exp(-math.hypot(math.log(value / low), down)),
            value * math.exp(math.hypot(math.log(high / value), up)),
        )


@lru_cache(maxsize=1)
def default() -> Spread:
    """The widths that come with the package."""
    found = yamltable.read(Path(__file__).with_name("spread.yaml"))["groups"]
    return Spread({name: (float(down), float(up)) for name, (down, up) in found.items()})


def group_of(metric: str, engine: str, devices: str) -> str:
    """The group of a metric: `engine` is fitted or unfitted, `devices` one or several."""
    return f"{'first' if metric in _FIRST else 'pace'} {engine} {devices}"
