"""A problem: an algorithm's tensors at given sizes, types and mask, or arrays of such problems.

The problem of every operator is a `Problem`. One with arrays among its values is as many problems
as the arrays are long.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cache
from operator import attrgetter
from typing import Any, Self

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.arithmetic import Number
from perfmodel.elements import ElementType, element
from perfmodel.errors import ProblemError

UNSAID = {"unsaid": True}
"""Field metadata: descriptions leave the field out while it is false."""


# 2^64 over the golden ratio, for Fibonacci hashing (Knuth, TAOCP 3, 6.4).
_SPREAD = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True)
class BackwardKernel:
    """A kernel of a problem's backward pass."""

    problem: Problem
    """What it computes."""
    operands: Mapping[str, str]
    """The forward pass's name of each of its operands, a gradient's after a d: C → dA."""

    @property
    def makes(self) -> tuple[str, ...]:
        """The forward pass's operands whose gradients it makes."""
        outputs = self.problem.algorithm().outputs
        return tuple(self.operands[name].removeprefix("d") for name in outputs)


class Problem(ABC):
    """An operation at given sizes and in given types; it has no tile and no device.

    A frozen dataclass gets its arrays and its description from its fields; other kinds of problems
    override `values` and `having`.
    """

    dtype: str
    """Type of the data."""

    @property
    @abstractmethod
    def operator(self) -> str:
        """The operator's name: attention, gemm, softmax ..."""

    @abstractmethod
    def sizes(self) -> Mapping[str, Number]:
        """Extent of every axis."""

    @abstractmethod
    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""

    @abstractmethod
    def algorithm(self) -> Algorithm:
        """The algorithm whose inputs every schedule reads and whose outputs every schedule
        writes."""

    def seen(self) -> Mapping[str, Number]:
        """Extents over which inputs must be read: less than `sizes` where a mask hides some."""
        return self.sizes()

    def aliased(self) -> tuple[str, ...]:
        """Inputs that share the memory of another input."""
        return ()

    def passes(self) -> tuple[Algorithm, ...]:
        """The algorithms that run one after another: `algorithm`, or several."""
        return (self.algorithm(),)

    def spellings(self) -> Mapping[str, str]:
        """Other names of axes, as options use them, by axis."""
        return {}

    def shard(self, ranks: Mapping[str, int]) -> Problem:
        """The problem of the device with the largest shard, where axes are split over devices.

        `ranks` maps axes to numbers of devices. Raises `ProblemError` for an axis that cannot be
        split.
        """
        raise ProblemError(f"{self.operator} cannot be split over devices")

    def flops(self) -> Number:
        """Useful operations by the papers' convention; 0 without a matrix product."""
        return 0.0

    @property
    def compute_type(self) -> str:
        """The type at whose rate its operations run."""
        return element(self.dtype).compute

    def multiplied(self) -> frozenset[str]:
        """Types in which its matrix products may run; empty without products."""
        return frozenset()

    def values(self) -> dict[str, Any]:
        """All values that distinguish problems of one operator, by name."""
        names, _, read = _fields(type(self))
        return dict(zip(names, read(self), strict=True))

    def having(self, **values: Any) -> Self:
        """A copy with some values changed. Raises the errors of its constructor."""
        return replace(self, **values)  # type: ignore[type-var]

    def backward(self, *, stored: str = "kn") -> tuple[BackwardKernel, ...]:
        """The kernels that make its gradients: the operator's own backward pass. `stored` is the
        order of a product's B."""
        problem = self.having(direction="bwd")
        algorithm = problem.algorithm()
        names = (*algorithm.inputs, *algorithm.outputs)
        return (BackwardKernel(problem, {name: name for name in names}),)

    def arranged(self, **values: np.ndarray) -> Self:
        """A copy with its arrays in another order or shape, without repeated checks."""
        if type(self).having is not Problem.having:
            return self.having(**values)
        copy = object.__new__(type(self))
        vars(copy).update(self.values(), **values)
        return copy

    def said(self) -> dict[str, Any]:
        """The values worth showing: without None and empty ones, and without flags that are usually
        false."""
        _, unsaid, _ = _fields(type(self))
        return {
            name: value
            for name, value in self.values().items()
            if isinstance(value, np.ndarray)
            or (value if name in unsaid else value not in (None, ""))
        }


@cache
def _fields(kind: Any) -> tuple[tuple[str, ...], frozenset[str], Any]:
    """The names of a dataclass's fields, those that are `UNSAID`, and what reads all of them."""
    names = tuple(item.name for item in fields(kind))
    unsaid = frozenset(item.name for item in fields(kind) if item.metadata.get("unsaid"))
    return names, unsaid, attrgetter(*names)


def arrays(problem: Problem) -> dict[str, np.ndarray]:
    """The values of a problem that are arrays."""
    values = problem.values().items()
    return {name: value for name, value in values if isinstance(value, np.ndarray)}


def length(problem: Problem) -> int:
    """Number of problems in the arrays: 1 without arrays."""
    return max((value.size for value in arrays(problem).values()), default=1)


def repeated(problem: Problem, n: int) -> Problem:
    """n copies of a problem with plain sizes, as an array; arrays are unchanged."""
    if n == 1 or arrays(problem):
        return problem
    name, size = next(
        (name, value)
        for name, value in problem.values().items()
        if isinstance(value, int) and not isinstance(value, bool)
    )
    return problem.having(**{name: np.full(n, size)})


def adjoining(index: np.ndarray) -> slice | np.ndarray:
    """Indices in rising order, as a slice where they adjoin: part of an array is then no copy."""
    adjoin = len(index) > 0 and index[-1] - index[0] + 1 == len(index)
    return slice(index[0], index[-1] + 1) if adjoin else index


def pick(problem: Problem, index: slice | np.ndarray) -> Problem:
    """The problems at `index`; of all of them the same object, with what a search counted of it."""
    n = length(problem)
    if isinstance(index, slice) and index.indices(n) == (0, n, 1):
        return problem
    return problem.arranged(**{name: value[index] for name, value in arrays(problem).items()})


def single(problem: Problem, i: int) -> Problem:
    """The i-th of an array of problems, with plain sizes."""
    return problem.having(**{name: value[i].item() for name, value in arrays(problem).items()})


def distinct(problem: Problem) -> tuple[np.ndarray, np.ndarray] | None:
    """Indices of the first of equal problems, and for each problem the one of these that it equals.

    None where fewer than half are repeats; hashes of their sizes show that in a fraction of the
    time.
    """
    table = list(arrays(problem).values())
    if not table or any(array.dtype.kind not in "iufb" for array in table):
        return None
    sums = np.zeros(len(table[0]), dtype=np.uint64)
    for array in table:  # in 64 bits, which wrap
        sums = sums * _SPREAD + array.astype(np.int64).view(np.uint64)
    # Equal problems have equal sums, so no more sums than problems are distinct.
    if 2 * (1 + np.count_nonzero(np.diff(np.sort(sums)))) > len(sums):
        return None
    order = np.lexsort(table)
    is_first = np.ones(len(order), dtype=bool)
    is_first[1:] = np.any([array[order[1:]] != array[order[:-1]] for array in table], axis=0)
    # lexsort is stable: the first of equal problems is the first in its run.
    first = np.sort(order[is_first])
    inverse = np.empty(len(order), dtype=np.intp)
    inverse[order] = np.searchsorted(first, order[is_first])[np.cumsum(is_first) - 1]
    return (first, inverse) if 2 * len(first) <= len(order) else None


def columns(problem: Problem) -> tuple[Problem, int]:
    """The problem with every array as a column of shape (n, 1), and n."""
    values = arrays(problem)
    changes = {name: value.reshape(-1, 1) for name, value in values.items()}
    return (problem.arranged(**changes) if changes else problem), length(problem)


def describe(problem: Problem, i: int = 0) -> dict[str, Any]:
    """The values of a problem worth showing, as plain values; those of the i-th of arrays."""
    return {
        name: value[i].item() if isinstance(value, np.ndarray) else value
        for name, value in problem.said().items()
    }
