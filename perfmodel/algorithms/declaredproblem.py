"""The problem of a declared algorithm: its parameters and the type of its data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm, Step
from perfmodel.algorithms.attention import DIRECTIONS, Direction
from perfmodel.algorithms.case import Case, Declaration
from perfmodel.algorithms.problem import Problem
from perfmodel.arithmetic import Number, product, wide
from perfmodel.elements import ElementType
from perfmodel.errors import UnknownName
from perfmodel.frozen import dataclass


@dataclass(frozen=True)
class DeclaredProblem(Problem):
    """A declared algorithm at given parameters, or arrays of such problems.

    Raises `UnknownName` for an unknown parameter and `ProblemError` for sizes without meaning.
    """

    declaration: Declaration
    """The declared algorithm."""
    given: Mapping[str, Any]
    """Parameters that differ from their defaults; whole numbers may be arrays."""
    dtype: str = "bf16"
    """Type of the data, or a format of products: the types of the roles `data`, `weights` and
    `output`."""
    types: Mapping[str, str] = field(default_factory=dict)
    """Types of roles that differ from the declared ones: `kv`."""
    ranks: Mapping[str, int] = field(default_factory=dict)
    """Devices that axes are split over; sizes are those of the largest shard."""
    direction: Direction = "fwd"
    """`fwd`, `bwd`, or `fwdbwd` for both."""

    @cached_property
    def counted(self) -> Declaration:
        """The declaration of the pass; of both passes that of the backward one."""
        return self.declaration if self.direction == "fwd" else self.declaration.backward

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise UnknownName("direction", str(self.direction), DIRECTIONS)
        assert self.joint or self.cases  # raises for invalid ones

    @cached_property
    def joint(self) -> Case | None:
        """The algorithm at the parameters of all problems, as arrays; None with a mask, which
        differs from problem to problem."""
        if self.declaration.mask is not None:
            return None
        values = {name: wide(value) for name, value in self.given.items()}
        case = self.counted.at(self.dtype, self.types, **values)
        return case.shard(self.ranks) if self.ranks else case

    @cached_property
    def cases(self) -> tuple[Case, ...]:
        """The algorithm at the parameters of each problem."""
        n = max((v.size for v in self.given.values() if isinstance(v, np.ndarray)), default=1)
        at, types = self.counted.at, self.types
        full = (at(self.dtype, types, **self._parameters(i)) for i in range(n))
        return tuple(case.shard(self.ranks) if self.ranks else case for case in full)

    def _parameters(self, i: int) -> dict[str, Any]:
        return {
            name: value.reshape(-1)[i].item() if isinstance(value, np.ndarray) else value
            for name, value in self.given.items()
        }

    @property
    def operator(self) -> str:
        """The declaration's name."""
        return self.declaration.name

    def sizes(self) -> Mapping[str, Number]:
        """Extent of every axis; arrays where the parameters are."""
        if self.joint is not None:
            return self.joint.sizes
        axes = self.counted.algorithm.axes
        return {axis: self._per_problem(case.sizes[axis] for case in self.cases) for axis in axes}

    def _per_problem(self, values: Iterable[Any]) -> Any:
        """One value per problem: an array if any parameter is an array."""
        array = np.asarray(list(values))
        scalar = not any(isinstance(value, np.ndarray) for value in self.given.values())
        return array[0].item() if scalar else array

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        return self.counted.elements(self.dtype, self.types)

    def algorithm(self) -> Algorithm:
        """The declared algorithm, with the mask of the first problem."""
        return (self.joint or self.cases[0]).algorithm

    def seen(self) -> Mapping[str, Number]:
        """Extents of queries that see some key and of keys that some query sees; all with a
        block-sparse pattern."""
        if self.joint is not None:
            return self.joint.sizes
        extents = [_seen_extents(case) for case in self.cases]
        return {axis: self._per_problem(one[axis] for one in extents) for axis in extents[0]}

    def passes(self) -> tuple[Algorithm, ...]:
        """The algorithms of the passes."""
        if self.direction == "fwdbwd":
            return (self.having(direction="fwd").algorithm(), self.algorithm())
        return (self.algorithm(),)

    def multiplied(self) -> frozenset[str]:
        """Input types of its contractions; empty without contractions."""
        parts, elements = self.counted.algorithm.tensors, self.elements()
        steps = self.counted.algorithm.steps
        inputs = (name for step in steps if step.kind == "contraction" for name in step.inputs)
        return frozenset(elements[parts[name].element].compute for name in inputs)

    def flops(self) -> Number:
        """2 operations for each point of its contractions that the mask leaves."""
        if self.direction == "fwdbwd":
            return sum(self.having(direction=way).flops() for way in ("fwd", "bwd"))
        if self.joint is not None:
            return _flops(self.joint)
        flops: Number = self._per_problem(_flops(case) for case in self.cases)
        return flops

    def values(self) -> dict[str, Any]:
        """Every parameter with its value, an array where problems differ, and the types."""
        names = self.declaration.parameters
        if self.joint is not None:
            parameters = {name: _whole(self.joint.parameters[name]) for name in names}
        else:
            lists = {name: [case.parameters[name] for case in self.cases] for name in names}
            parameters = {name: self._value(name, values) for name, values in lists.items()}
        types = {f"{role}_dtype": name for role, name in self.types.items()}
        way = {"direction": self.direction} if self.direction != "fwd" else {}
        return {**parameters, **types, "dtype": self.dtype, **way}

    def _value(self, name: str, values: list[Any]) -> Any:
        varies = isinstance(self.given.get(name), np.ndarray)
        return np.asarray(values) if varies or values.count(values[0]) < len(values) else values[0]

    def having(self, **values: Any) -> Self:
        """A copy with some parameters, or types, changed.

        One case that stays equal stays the same object, with all that a search has counted of it.
        """
        dtype = values.pop("dtype", self.dtype)
        direction = values.pop("direction", self.direction)
        roles = {role: values.pop(f"{role}_dtype", None) for role in self.declaration.types}
        types = {**self.types, **{role: name for role, name in roles.items() if name}}
        given = {**self.given, **values}
        copy = type(self)(self.declaration, given, dtype, types, self.ranks, direction)
        if any(isinstance(value, np.ndarray) for value in copy.given.values()):
            return copy
        (mine, *rest), (theirs,) = self.cases, copy.cases
        same = (mine.elements, mine.parameters) == (theirs.elements, theirs.parameters)
        if not rest and same and direction == self.direction:
            vars(copy)["cases"] = self.cases
        return copy

    def spellings(self) -> Mapping[str, str]:
        """Parameters that are the extent of one axis."""
        extents = self.declaration.extents
        texts = [str(extent) for extent in extents.values()]
        return {str(e): axis for axis, e in extents.items() if texts.count(str(e)) == 1}

    def shard(self, ranks: Mapping[str, int]) -> DeclaredProblem:
        """The same declaration with axes split over devices."""
        return replace(self, ranks=dict(ranks))

    def said(self) -> dict[str, Any]:
        """The same as `values`."""
        return self.values()


def _seen_extents(case: Case) -> dict[str, Number]:
    """Extents of the axes, without masked elements that no query or key sees.

    The last query is aligned with the last key: query i of Q sees key j of X if i + X − Q − left <
    j ≤ i + X − Q + right.
    """
    sizes: dict[str, Number] = dict(case.sizes)
    band = case.algorithm.mask
    if band is None or band.sparse:
        return sizes
    queries, keys = sizes[band.query], sizes[band.key]
    if band.left is not None:
        sizes[band.key] = min(keys, queries + band.left)
    if band.right is not None:
        sizes[band.query] = min(queries, keys + band.right)
    return sizes


def _whole(value: Any) -> Any:
    """An array of whole numbers as integers."""
    is_whole = isinstance(value, np.ndarray) and np.all(value == np.floor(value))
    return value.astype(np.int64) if is_whole else value


def _flops(case: Case) -> Number:
    steps = (step for step in case.algorithm.steps if step.kind == "contraction")
    return 1.0 * sum(2 * _points(case, step) for step in steps)


def _points(case: Case, step: Step) -> Number:
    """Points of a step's axes that the mask leaves."""
    axes, band = set(case.algorithm.step_axes(step)), case.algorithm.mask
    points: Number = 1
    if band is not None and {band.query, band.key} <= axes:
        axes -= {band.query, band.key}
        points = float(band.visible_pairs(case.sizes[band.query], case.sizes[band.key]))
    return product([points, *(case.sizes[axis] for axis in axes)])
