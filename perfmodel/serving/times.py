"""Times of steps by operation: a table of operations × steps, which adds and interpolates.

Steps are predicted at some sizes, the knots, and interpolated between them. The time of a step's
products is nearly linear in its tokens between edges of their tiles. Attention's is nearly linear
in sequences × cached tokens. So steps are predicted at knots, both sides of each edge included, and
interpolated between them. A sweep of any length costs a few hundred predictions.

Between knots of up to 640 tokens, the error of Llama's layers is 0.1 % on H100 and A100 at the 90th
percentile, and 2 % on MI300X. Up to 5,000 tokens the largest error was 4.3 %.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from perfmodel.graph.tree import Tree, together

HOST, COMMUNICATION = "host", "communication"
"""Kind and family of time outside kernels (gaps, and the engine's host), and of exchanges."""

EXPERTS = "experts "
"""What names of exchanges with experts begin with."""


@dataclass(frozen=True)
class Line:
    """The label of a row of the table."""

    name: str
    """The operation."""
    kind: str
    """Its class: matmul, attention, norm, pointwise, communication, host."""
    family: str
    """Family of operators whose errors have one cause (`graph.tree`)."""
    launches: float = 0.0
    """Kernel launches in a step."""

    @property
    def joins_experts(self) -> bool:
        """Whether it exchanges rows among devices that share experts."""
        return self.kind == COMMUNICATION and self.name.startswith(EXPERTS)


@dataclass(frozen=True)
class Times:
    """Seconds of operations (rows) in steps (columns), with their 80 % ranges."""

    lines: tuple[Line, ...]
    """Labels of the rows."""
    seconds: np.ndarray
    """Predicted seconds, shape (operations, steps)."""
    low: np.ndarray
    """Low ends, same shape."""
    high: np.ndarray
    """High ends, same shape."""

    @classmethod
    def exactly(cls, line: Line, seconds: np.ndarray) -> Times:
        """One operation without a range."""
        row = np.asarray(seconds, dtype=float).reshape(1, -1)
        return cls((line,), row, row, row)

    @property
    def total(self) -> np.ndarray:
        """Seconds of each step."""
        return np.asarray(self.seconds.sum(axis=0))

    @property
    def launches(self) -> float:
        """Kernel launches of a step, without those of collectives."""
        return sum(line.launches for line in self.lines if line.kind != COMMUNICATION)

    def _map(self, change: Callable[[np.ndarray], np.ndarray]) -> Times:
        return replace(
            self, seconds=change(self.seconds), low=change(self.low), high=change(self.high)
        )

    def times(self, weights: np.ndarray | float) -> Times:
        """Each step scaled by its weight."""
        return self._map(lambda values: values * weights)

    def mean(self, weights: np.ndarray) -> Times:
        """Weighted means over groups of len(weights) consecutive steps."""
        shape = (len(self.lines), -1, len(weights))
        return self._map(lambda values: values.reshape(shape) @ weights)

    def at(self, index: np.ndarray) -> Times:
        """The steps at `index`."""
        return self._map(lambda values: values[:, index])

    def between(self, below: np.ndarray, above: np.ndarray, share: np.ndarray) -> Times:
        """Linear interpolation between steps `below` and `above`; `share` is the weight of
        `above`."""
        return self._map(lambda v: v[:, below] * (1.0 - share) + v[:, above] * share)

    def added(self, other: Times) -> Times:
        """Sums step by step; both have equal rows."""
        return Times(
            self.lines,
            self.seconds + other.seconds,
            self.low + other.low,
            self.high + other.high,
        )

    def beside(self, other: Times) -> Times:
        """Rows of both, for the same steps."""
        return Times(
            (*self.lines, *other.lines),
            np.concatenate([self.seconds, other.seconds]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )

    def plus(self, other: Times) -> Times:
        """Rows of both, for the same steps; equal labels are merged."""
        return self.beside(other).merged()

    def merged(self) -> Times:
        """Rows of equal labels summed into one."""
        names = list(dict.fromkeys((line.name, line.kind, line.family) for line in self.lines))
        if len(names) == len(self.lines):
            return self
        rows = [names.index((line.name, line.kind, line.family)) for line in self.lines]
        launches = np.zeros(len(names))
        np.add.at(launches, rows, [line.launches for line in self.lines])
        lines = tuple(
            Line(*name, launches=float(n)) for name, n in zip(names, launches, strict=True)
        )

        def summed(values: np.ndarray) -> np.ndarray:
            sums = np.zeros((len(names), values.shape[1]))
            np.add.at(sums, rows, values)
            return sums

        return replace(self._map(summed), lines=lines)

    def by_kind(self, i: int = 0) -> dict[str, float]:
        """Seconds of a step by class."""
        seconds: dict[str, float] = {}
        for line, value in zip(self.lines, self.seconds[:, i], strict=True):
            seconds[line.kind] = seconds.get(line.kind, 0.0) + float(value)
        return seconds

    def range(self, i: int = 0) -> tuple[float, float]:
        """Low and high end of a step's range, as factors of its seconds."""
        rows = [k for k, line in enumerate(self.lines) if line.family != HOST]
        total = float(self.total[i])
        device = float(self.seconds[rows, i].sum())
        if device <= 0.0:
            return 1.0, 1.0
        low, high = together(
            Tree(
                name=self.lines[k].name,
                kind=self.lines[k].kind,
                family=self.lines[k].family,
                seconds=float(self.seconds[k, i]),
                low_seconds=float(self.low[k, i]),
                high_seconds=float(self.high[k, i]),
            )
            for k in rows
        )
        share = device / total
        return 1.0 + (low - 1.0) * share, 1.0 + (high - 1.0) * share


def beside(parts: Sequence[Times]) -> Times:
    """Rows of all parts, for the same steps."""
    return reduce(Times.beside, parts)


_TILES = (*range(64, 1025, 64), *range(1280, 4097, 256))
"""Rows at the edges of whole tiles of products: one more row takes another tile."""
KNOTS = np.unique(
    [
        *(int(2**power * part) for power in range(24) for part in (1.0, 1.5)),
        *(rows + excess for rows in _TILES for excess in (0, 1)),
    ]
)
"""1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 65, 96, 128, 129 ... 12 million."""


def around(
    values: np.ndarray, knots: np.ndarray = KNOTS
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Knots below and above each value, and the weight of the one above, 0 to 1."""
    values = np.clip(np.asarray(values, dtype=float), knots[0], knots[-1])
    upper = np.searchsorted(knots, values)
    lower = np.where(knots[upper] == values, upper, upper - 1)
    low, high = knots[lower], knots[upper]
    return low, high, np.where(high > low, (values - low) / np.maximum(high - low, 1), 0.0)
