"""The cartesian grid of an operator as a mixed-radix number: index → problem, for any range of it.

The digits are, from the slowest to the fastest: schedule, each kind (types, direction), each size.
Only the requested range is decoded; the whole grid is never built.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.sizes import MOST_CASES
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
from perfmodel.operators import Operator
from perfmodel.operators.operator import groups
from perfmodel.operators.options import Multiple

LIMIT = MOST_CASES
"""Most points, all devices together, that a sweep may have without confirmation."""

_LARGEST = 2**62
_PAIRS = 2**20  # combinations of two sizes that are checked at a time


@dataclass(frozen=True)
class Group:
    """Rows of a range that one call predicts."""

    rows: np.ndarray
    """Indices into the range, shape (n,)."""
    schedule: str
    """The schedule to predict them with."""
    problem: Problem | None
    """The rows as a problem of arrays; None for invalid combinations."""
    reason: str = ""
    """Why the combinations are invalid; empty if they are valid."""


@dataclass(frozen=True)
class Range:
    """The decoded digits of a range of indices."""

    start: int
    """First index of the range."""
    sizes: Mapping[str, np.ndarray]
    """Values of each size, shape (n,)."""
    kinds: Mapping[str, np.ndarray]
    """Codes of each kind: indices into the grid's values, shape (n,)."""
    groups: tuple[Group, ...]
    """The rows in groups that one call predicts."""

    def __len__(self) -> int:
        return sum(group.rows.size for group in self.groups)


@dataclass(frozen=True)
class Grid:
    """All combinations of schedules, kinds and sizes of one operator.

    Raises `ProblemError` for an empty grid and for a schedule that the operator does not have.
    """

    operator: Operator
    """Makes problems from sizes and kinds."""
    sizes: Mapping[str, np.ndarray]
    """Values of each size."""
    kinds: Mapping[str, tuple[Any, ...]]
    """Values of each kind: types, direction, mask."""
    follows: Mapping[str, str] = field(default_factory=dict)
    """Sizes that take the value of another size."""
    schedules: tuple[str, ...] = ("auto",)
    """Schedules of the operator; "auto" as in `perfmodel.predict`."""

    def __post_init__(self) -> None:
        tables: dict[str, Any] = {"schedule": self.schedules, **self.kinds, **self.sizes}
        for name, values in tables.items():
            if not len(values):
                raise ProblemError(f"the grid is empty: {name} has no value; give at least one")
        names = self.operator.schedules
        for schedule in self.schedules:
            if schedule not in names:
                hint = f"it is one of {', '.join(names)}"
                raise ProblemError(
                    f"schedule {schedule!r} is not known for {self.operator.name}; {hint}"
                )
        for item in self._multiples():
            if self._first_pair(item) is None:
                pair = [self.sizes[name] for name in (item.size, item.of)]
                if all(len(values) == 1 for values in pair):  # its own error says what would fit
                    first = {name: np.asarray(values)[:1] for name, values in self.sizes.items()}
                    first |= {name: first[other] for name, other in self.follows.items()}
                    kinds = {name: values[0] for name, values in self.kinds.items()}
                    self.operator.problem(**first, **kinds)
                raise ProblemError(
                    f"the grid is empty: in every case {item.said()}; change one of them"
                )
        if len(self) > _LARGEST:
            raise ProblemError("a grid of more than 2^62 points cannot be counted; narrow a range")

    @property
    def columns(self) -> tuple[str, ...]:
        """Sizes in the order of the columns; those that follow another size come last."""
        return (*self.sizes, *self.follows)

    @property
    def varying(self) -> list[str]:
        """Names of the sizes and kinds with several values."""
        tables: dict[str, Any] = {**self.kinds, **self.sizes}
        return [name for name, values in tables.items() if len(values) > 1]

    def corners(self) -> Grid:
        """Every kind with the first value of each size, and its first on the other side of 1.

        A size of 1 or less has a meaning of its own: one query is a decode, a window of 0 is none.
        """
        sizes = {}
        for name, values in self.sizes.items():
            other = int(np.argmax((values > 1) != (values[0] > 1)))
            sizes[name] = values[sorted({0, other})]
        return replace(self, sizes=sizes)

    def problems(self) -> Iterator[Problem]:
        """All cases as problems of arrays, one for each group that one call predicts.

        Raises `ProblemError` for a case without meaning.
        """
        for group in self.decode(0, len(self)).groups:
            if group.problem is None:
                raise ProblemError(group.reason)
            yield group.problem

    def __len__(self) -> int:
        return math.prod(self._shape(self.kinds)) * math.prod(self._shape(self.sizes)) * len(
            self.schedules
        )  # fmt: skip

    def decode(self, start: int, stop: int) -> Range:
        """The points with indices from `start` to `stop`, `stop` excluded."""
        inner_shape, kind_shape = self._shape(self.sizes), self._shape(self.kinds)
        outer, inner = np.divmod(np.arange(start, stop), math.prod(inner_shape))
        # A declaration may have no sizes: then there is one case without an index.
        places = np.unravel_index(inner, inner_shape) if inner_shape else ()
        sizes = {
            name: np.asarray(values)[place]
            for (name, values), place in zip(self.sizes.items(), places, strict=True)
        }
        sizes |= {name: sizes[other] for name, other in self.follows.items()}
        schedules, *codes = np.unravel_index(outer, (len(self.schedules), *kind_shape))
        kinds = dict(zip(self.kinds, codes, strict=True))
        parts: list[Group] = []
        for rows in _runs(outer):
            first = rows[0]
            kind = {name: values[kinds[name][first]] for name, values in self.kinds.items()}
            schedule = self.schedules[schedules[first]]
            parts += self._groups(schedule, kind, sizes, rows)
        return Range(start, sizes, kinds, tuple(parts))

    def first(self, device_kinds: Mapping[str, Any], schedule: str) -> Group:
        """The first valid point with these kinds."""
        point = {name: np.asarray(values)[:1] for name, values in self.sizes.items()}
        for item in self._multiples():
            pair = self._first_pair(item)
            assert pair is not None  # else there would be no grid
            point |= pair
        point |= {name: point[other] for name, other in self.follows.items()}
        return next(self._groups(schedule, device_kinds, point, np.zeros(1, dtype=np.int64)))

    def _groups(
        self,
        schedule: str,
        kinds: Mapping[str, Any],
        sizes: Mapping[str, np.ndarray],
        rows: np.ndarray,
    ) -> Iterator[Group]:
        """Rows of one kind in groups that one call predicts; invalid rows are separate groups."""
        points = {name: values[rows] for name, values in sizes.items()}
        faults = self.operator.meaningless(points)
        if faults.any():
            if rows.size == 1:
                yield from self._problem_groups(schedule, kinds, points, rows)
                return
            yield Group(rows[faults], schedule, None, self.operator.multiples[0].said())
            rows, points = rows[~faults], {name: values[~faults] for name, values in points.items()}
        for index in groups(self.operator.same_call(points), rows.size) if rows.size else ():
            part = {name: values[index] for name, values in points.items()}
            yield from self._problem_groups(schedule, kinds, part, rows[index])

    def _problem_groups(
        self,
        schedule: str,
        kinds: Mapping[str, Any],
        sizes: Mapping[str, np.ndarray],
        rows: np.ndarray,
    ) -> Iterator[Group]:
        """Rows as one group; rows that the operator refuses are separate groups."""
        try:
            problem = self.operator.problem(**sizes, **kinds)
        except ProblemError as error:
            if rows.size == 1:
                yield Group(rows, schedule, None, str(error))
                return
            for half in np.array_split(np.arange(rows.size), 2):
                part = {name: values[half] for name, values in sizes.items()}
                yield from self._problem_groups(schedule, kinds, part, rows[half])
            return
        yield Group(rows, schedule, problem)

    def _multiples(self) -> tuple[Multiple, ...]:
        """Divisibility rules between sizes that vary independently, so that some combinations are
        invalid."""
        pairs = self.operator.multiples
        return tuple(item for item in pairs if {item.size, item.of} <= self.sizes.keys())

    def _first_pair(self, item: Multiple) -> dict[str, np.ndarray] | None:
        """The first pair of values of two sizes of which one is a multiple of the other.

        Pairs are checked in blocks, since all pairs of two long ranges would not fit in memory.
        """
        values, divisors = (np.asarray(self.sizes[name]) for name in (item.size, item.of))
        step = max(_PAIRS // len(divisors), 1)
        for start in range(0, len(values), step):
            block = values[start : start + step]
            hits = np.argwhere(np.mod.outer(block, divisors) == 0)
            if hits.size:
                i, j = hits[0]
                return {item.size: block[i : i + 1], item.of: divisors[j : j + 1]}
        return None

    @staticmethod
    def _shape(tables: Mapping[str, Any]) -> tuple[int, ...]:
        return tuple(len(values) for values in tables.values())


def _runs(codes: np.ndarray) -> list[np.ndarray]:
    """Indices of each run of equal codes; the codes ascend."""
    ends = np.flatnonzero(np.diff(codes)) + 1
    return np.split(np.arange(codes.size), ends)
