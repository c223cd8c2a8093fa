"""The cartesian grid of a sweep as a mixed-radix number: index → problem, for any range of them.

The digits are, from the slowest to the fastest: schedule, each kind (types, direction), each size.
Only the range that is asked for is ever decoded; the grid itself is never built.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Problem
from perfmodel.algorithms.sizes import MOST_CASES
from perfmodel.errors import ProblemError
from perfmodel.timing.operator import SCHEDULES

LIMIT = MOST_CASES
"""Points of all devices together that a sweep may have without being asked twice."""

_LARGEST = 2**62
_PAIRS = 2**20  # pairs of query and key-value heads compared at once
HEADS = "query heads are not a multiple of key-value heads"


@dataclass(frozen=True)
class Group:
    """Rows of a range that one call predicts: `problem` holds them as arrays.

    `rows` are places in the range. Where the rows have no meaning, `problem` is None and `reason`
    says why.
    """

    rows: np.ndarray
    schedule: str
    problem: Problem | None
    reason: str = ""


@dataclass(frozen=True)
class Range:
    """The decoded digits of a range of indices: a column per size, a code per kind."""

    start: int
    sizes: Mapping[str, np.ndarray]
    kinds: Mapping[str, np.ndarray]
    groups: tuple[Group, ...]

    def __len__(self) -> int:
        return sum(group.rows.size for group in self.groups)


@dataclass(frozen=True)
class Grid:
    """All combinations of schedules, kinds and sizes of one operator.

    `make` builds a problem (`Attention`, `Matmul`, `Rowwise`) from sizes and kinds; `follows` names
    sizes that take the value of another one. Raises `ProblemError` where the grid is empty, and for
    a schedule that the operator does not have.
    """

    make: Callable[..., Problem]
    sizes: Mapping[str, np.ndarray]
    kinds: Mapping[str, tuple[Any, ...]]
    follows: Mapping[str, str] = field(default_factory=dict)
    schedules: tuple[str, ...] = ("auto",)

    def __post_init__(self) -> None:
        tables: dict[str, Any] = {"schedule": self.schedules, **self.kinds, **self.sizes}
        for name, values in tables.items():
            if not len(values):
                raise ProblemError(f"the grid is empty: {name} has no value; give at least one")
        known = SCHEDULES[self.operator if self.operator in SCHEDULES else "rowwise"]
        for schedule in self.schedules:
            if schedule not in known:
                said = f"it is one of {', '.join(known)}"
                raise ProblemError(
                    f"schedule {schedule!r} is not known for {self.operator}; {said}"
                )
        if self._heads() and self._heads_that_agree() is None:
            raise ProblemError(f"the grid is empty: in every case {HEADS}; change one of them")
        if len(self) > _LARGEST:
            raise ProblemError("a grid of more than 2^62 points cannot be counted; narrow a range")

    @property
    def operator(self) -> str:
        """The operator's name: attention, gemm, softmax ..."""
        if self.make is Attention:
            return "attention"
        return str(self.kinds["op"][0]) if "op" in self.kinds else "gemm"

    @property
    def columns(self) -> tuple[str, ...]:
        """Sizes in the order they are stored, those that follow another one at the end."""
        return (*self.sizes, *self.follows)

    @property
    def varying(self) -> list[str]:
        """What differs between the points."""
        tables: dict[str, Any] = {**self.kinds, **self.sizes}
        return [name for name, values in tables.items() if len(values) > 1]

    def __len__(self) -> int:
        return math.prod(self._shape(self.kinds)) * math.prod(self._shape(self.sizes)) * len(
            self.schedules
        )  # fmt: skip

    def decode(self, start: int, stop: int) -> Range:
        """The points with indices from `start` up to `stop`, which is not one of them."""
        inner_shape, kind_shape = self._shape(self.sizes), self._shape(self.kinds)
        outer, inner = np.divmod(np.arange(start, stop), math.prod(inner_shape))
        places = np.unravel_index(inner, inner_shape)
        sizes = {
            name: np.asarray(values)[place]
            for (name, values), place in zip(self.sizes.items(), places, strict=True)
        }
        sizes |= {name: sizes[other] for name, other in self.follows.items()}
        schedules, *codes = np.unravel_index(outer, (len(self.schedules), *kind_shape))
        kinds = dict(zip(self.kinds, codes, strict=True))
        groups = []
        for rows in _runs(outer):
            first = rows[0]
            chosen = {name: values[kinds[name][first]] for name, values in self.kinds.items()}
            schedule = self.schedules[schedules[first]]
            groups += [*self._groups(schedule, chosen, sizes, rows)]
        return Range(start, sizes, kinds, tuple(groups))

    def first(self, device_kinds: Mapping[str, Any], schedule: str) -> Group:
        """The first point with these kinds that has a meaning."""
        one = {name: np.asarray(values)[:1] for name, values in self.sizes.items()}
        if self._heads():
            agreeing = self._heads_that_agree()
            assert agreeing is not None  # else there would be no grid
            heads_q, heads_kv = (np.array([heads]) for heads in agreeing)
            one |= {"heads_q": heads_q, "heads_kv": heads_kv}
        one |= {name: one[other] for name, other in self.follows.items()}
        return next(self._groups(schedule, device_kinds, one, np.zeros(1, dtype=np.int64)))

    def _groups(
        self,
        schedule: str,
        kinds: Mapping[str, Any],
        sizes: Mapping[str, np.ndarray],
        rows: np.ndarray,
    ) -> Iterator[Group]:
        """Rows of one kind in groups that one call predicts: decode apart, windowed apart."""
        here = {name: values[rows] for name, values in sizes.items()}
        key = np.zeros(rows.size, dtype=np.int8)
        if "seq_q" in here:
            key += 2 * (here["seq_q"] == 1)
        if "window" in here:
            key += here["window"] > 0
        if self._heads():
            key[here["heads_q"] % here["heads_kv"] != 0] = 4
        for value in range(5):
            index = _where(key, value)
            if not index.size:
                continue
            if value == 4:
                yield Group(rows[index], schedule, None, HEADS)
                continue
            picked = {name: values[index] for name, values in here.items()}
            if not value % 2:
                picked.pop("window", None)
            yield Group(rows[index], schedule, self.make(**picked, **kinds))

    def _heads(self) -> bool:
        """Whether query and key-value heads vary apart, so that some pairs have no meaning."""
        return "heads_q" in self.sizes and "heads_kv" in self.sizes

    def _heads_that_agree(self) -> tuple[int, int] | None:
        """The first query heads, and the first key-value heads that they are a multiple of.

        A block of rows at a time: all pairs of two long ranges would not fit in memory.
        """
        queries, keys = (np.asarray(self.sizes[name]) for name in ("heads_q", "heads_kv"))
        step = max(_PAIRS // len(keys), 1)
        for start in range(0, len(queries), step):
            block = queries[start : start + step]
            good = np.argwhere(np.mod.outer(block, keys) == 0)
            if good.size:
                i, j = good[0]
                return int(block[i]), int(keys[j])
        return None

    @staticmethod
    def _shape(tables: Mapping[str, Any]) -> tuple[int, ...]:
        return tuple(len(values) for values in tables.values())


def _runs(codes: np.ndarray) -> list[np.ndarray]:
    """Places of each run of equal codes; the codes ascend."""
    ends = np.flatnonzero(np.diff(codes)) + 1
    return np.split(np.arange(codes.size), ends)


def _where(key: np.ndarray, value: int) -> np.ndarray:
    """Places where `key` is `value`."""
    return np.flatnonzero(key == value)
