"""Times of steps by operation: a table of operations × steps, which adds up and interpolates."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from perfmodel.graph.spread import Spread, together

HOST = "host"
"""Kind and family of what no kernel takes: gaps, and the engine's host."""


@dataclass(frozen=True)
class Line:
    """What a row of the table is of."""

    name: str
    """The operation."""
    kind: str
    """Its class: matmul, attention, norm, pointwise, communication, host."""
    family: str
    """Operators whose errors have one cause (`graph.spread`)."""
    launches: float = 0.0
    """Kernels that a step launches."""


@dataclass(frozen=True)
class Times:
    """Seconds of operations (rows) in steps (columns), with their 80 % ranges."""

    lines: tuple[Line, ...]
    """Of the rows."""
    seconds: np.ndarray
    """Predicted."""
    low: np.ndarray
    """Low ends."""
    high: np.ndarray
    """High ends."""

    @classmethod
    def exactly(cls, line: Line, seconds: np.ndarray) -> Times:
        """One operation without a range."""
        row = np.asarray(seconds, dtype=float).reshape(1, -1)
        return cls((line,), row, row, row)

    @property
    def total(self) -> np.ndarray:
        """Seconds of each step."""
        return np.asarray(self.seconds.sum(axis=0))

    def _each(self, change: Callable[[np.ndarray], np.ndarray]) -> Times:
        return replace(
            self, seconds=change(self.seconds), low=change(self.low), high=change(self.high)
        )

    def times(self, weights: np.ndarray | float) -> Times:
        """Each step so many times."""
        return self._each(lambda values: values * weights)

    def mean(self, weights: np.ndarray) -> Times:
        """One step a group, of groups of len(weights) neighbours, each with its weight."""
        shape = (len(self.lines), -1, len(weights))
        return self._each(lambda values: values.reshape(shape) @ weights)

    def at(self, index: np.ndarray) -> Times:
        """Some of the steps."""
        return self._each(lambda values: values[:, index])

    def between(self, below: np.ndarray, above: np.ndarray, share: np.ndarray) -> Times:
        """Steps that lie between two of these, at a share of the way."""
        return self._each(lambda v: v[:, below] * (1.0 - share) + v[:, above] * share)

    def added(self, other: Times) -> Times:
        """Steps of equal operations, one after the other."""
        return Times(
            self.lines,
            self.seconds + other.seconds,
            self.low + other.low,
            self.high + other.high,
        )

    def beside(self, other: Times) -> Times:
        """Operations of both, step by step."""
        return Times(
            (*self.lines, *other.lines),
            np.concatenate([self.seconds, other.seconds]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )

    def plus(self, other: Times) -> Times:
        """Operations of both, step by step, those of one name as one."""
        return self.beside(other).merged()

    def merged(self) -> Times:
        """Rows of one name as one row."""
        names = list(dict.fromkeys((one.name, one.kind, one.family) for one in self.lines))
        if len(names) == len(self.lines):
            return self
        of = [names.index((one.name, one.kind, one.family)) for one in self.lines]
        launches = np.zeros(len(names))
        np.add.at(launches, of, [one.launches for one in self.lines])
        lines = tuple(
            Line(*name, launches=float(n)) for name, n in zip(names, launches, strict=True)
        )

        def summed(values: np.ndarray) -> np.ndarray:
            found = np.zeros((len(names), values.shape[1]))
            np.add.at(found, of, values)
            return found

        return replace(self._each(summed), lines=lines)

    def by_kind(self, i: int = 0) -> dict[str, float]:
        """Seconds of a step by class."""
        found: dict[str, float] = {}
        for line, value in zip(self.lines, self.seconds[:, i], strict=True):
            found[line.kind] = found.get(line.kind, 0.0) + float(value)
        return found

    def range(self, i: int = 0) -> tuple[float, float]:
        """Factors from a step's seconds to the ends of its operators' range."""
        kept = [k for k, line in enumerate(self.lines) if line.family != HOST]
        total = float(self.total[i])
        device = float(self.seconds[kept, i].sum())
        if device <= 0.0:
            return 1.0, 1.0
        low, high = together(
            Spread(
                self.lines[k].family,
                float(self.seconds[k, i]),
                float(self.low[k, i]),
                float(self.high[k, i]),
            )
            for k in kept
        )
        share = device / total
        return 1.0 + (low - 1.0) * share, 1.0 + (high - 1.0) * share


def beside(parts: Sequence[Times]) -> Times:
    """Operations of all of them, step by step."""
    return reduce(Times.beside, parts)
