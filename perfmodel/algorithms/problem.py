"""A problem: an algorithm's tensors at given sizes, types and mask, or arrays of such problems.

Every operator's problem is a `Problem`; what has an array among its values stands for as many
problems as the array is long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.arithmetic import Number
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError

UNSAID = {"unsaid": True}
"""Metadata of a field that a description leaves out while it is false."""


# 2^64 over the golden ratio: multiples of it lie far from each other (Knuth, TAOCP 3, 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


class Problem(ABC):
    """What is computed, at which sizes and in which types; knows no tile and no machine.

    A frozen dataclass gets its arrays and its description from its fields; another kind of problem
    says them itself (`values`, `having`).
    """

    dtype: str
    """Type of the data."""

    @property
    @abstractmethod
    def operator(self) -> str:
        """The name that a user asks for it by: attention, gemm, softmax ..."""

    @abstractmethod
    def sizes(self) -> Mapping[str, Number]:
        """Extent of every axis."""

    @abstractmethod
    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""

    @abstractmethod
    def algorithm(self) -> Algorithm:
        """The algorithm whose inputs every schedule reads and whose outputs every one writes."""

    def seen(self) -> Mapping[str, Number]:
        """Extents over which inputs must be read: less than `sizes` where a mask hides some."""
        return self.sizes()

    def aliased(self) -> tuple[str, ...]:
        """Inputs that lie in the memory of another input."""
        return ()

    def passes(self) -> tuple[Algorithm, ...]:
        """The algorithms that run one after another: `algorithm`, unless it stands for several."""
        return (self.algorithm(),)

    def spellings(self) -> Mapping[str, str]:
        """Other names of axes: those that options have."""
        return {}

    def shard(self, ranks: Mapping[str, int]) -> Problem:
        """What the device with the largest shard computes, where axes are split over devices.

        `ranks` maps axes to devices. Raises `ProblemError` for an axis that cannot be split.
        """
        raise ProblemError(f"{self.operator} cannot be split over devices")

    def flops(self) -> Number:
        """Useful operations by the papers' convention; 0 without a matrix product."""
        return 0.0

    @property
    def compute_type(self) -> str:
        """The type whose rate its operations run at."""
        return element(self.dtype).compute

    def multiplied(self) -> frozenset[str]:
        """Types that its matrix products may run in; none without such products."""
        return frozenset()

    def values(self) -> dict[str, Any]:
        """Everything that tells this problem from another one, by name."""
        return {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]

    def having(self, **values: Any) -> Self:
        """A copy with some values changed; raises what making it raises."""
        return replace(self, **values)  # type: ignore[type-var]

    def arranged(self, **values: np.ndarray) -> Self:
        """A copy with its arrays in another order or shape: they need not be checked again."""
        if type(self).having is not Problem.having:
            return self.having(**values)
        found = object.__new__(type(self))
        vars(found).update(self.values(), **values)
        return found

    def said(self) -> dict[str, Any]:
        """The values that say something: neither None nor empty, nor false where that is usual."""
        unsaid = {item.name for item in fields(self) if item.metadata.get("unsaid")}  # type: ignore[arg-type]
        return {
            name: value
            for name, value in self.values().items()
            if isinstance(value, np.ndarray)
            or (value if name in unsaid else value not in (None, ""))
        }


def arrays(problem: Problem) -> dict[str, np.ndarray]:
    """The values of a problem that are arrays."""
    values = problem.values().items()
    return {name: value for name, value in values if isinstance(value, np.ndarray)}


def length(problem: Problem) -> int:
    """How many problems the arrays hold: 1 where there are none."""
    return max((value.size for value in arrays(problem).values()), default=1)


def repeated(problem: Problem, n: int) -> Problem:
    """n times a problem of plain sizes, as an array; arrays stay as they are."""
    if n == 1 or arrays(problem):
        return problem
    name, size = next(
        (name, value)
        for name, value in problem.values().items()
        if isinstance(value, int) and not isinstance(value, bool)
    )
    return problem.having(**{name: np.full(n, size)})


def pick(problem: Problem, index: np.ndarray) -> Problem:
    """The problems at `index`."""
    return problem.arranged(**{name: value[index] for name, value in arrays(problem).items()})


def single(problem: Problem, i: int) -> Problem:
    """The i-th of an array of problems, with plain sizes."""
    return problem.having(**{name: value[i].item() for name, value in arrays(problem).items()})


def distinct(problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
    """Places of the first of equal problems, and which of these each problem equals.

    None where no two are equal, which sums of their sizes tell in a fraction of the time.
    """
    found = list(arrays(problem).values())
    if not found or any(each.dtype.kind not in "iufb" for each in found):
        return None
    sums = np.zeros(len(found[0]), dtype=np.uint64)
    for each in found:  # in 64 bits, which wrap
        sums = sums * _SPREAD + each.astype(np.int64).view(np.uint64)
    if not np.any(np.diff(np.sort(sums)) == 0):
        return None
    order = np.lexsort(found)
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.any([each[order[1:]] != each[order[:-1]] for each in found], axis=0)
    # lexsort is stable: the first of equal problems is the first in its run.
    first = np.sort(order[new])
    which = np.empty(len(order), dtype=np.intp)
    which[order] = np.searchsorted(first, order[new])[np.cumsum(new) - 1]
    return (first, which) if len(first) < len(order) else None


def columns(problem: Problem) -> tuple[Problem, int]:
    """The problem with every array as a column of shape (n, 1), and n."""
    found = arrays(problem)
    changes = {name: value.reshape(-1, 1) for name, value in found.items()}
    return (problem.arranged(**changes) if changes else problem), length(problem)


def describe(problem: Problem, i: int = 0) -> dict[str, Any]:
    """The values of a problem that say something, as plain values; the i-th of arrays."""
    return {
        name: value[i].item() if isinstance(value, np.ndarray) else value
        for name, value in problem.said().items()
    }
