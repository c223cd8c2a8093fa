"""Problems from the command line: the cartesian product of one operator's lists of sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sized
from dataclasses import field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.cli import ranges
from perfmodel.cli.known import named, names
from perfmodel.cli.ranges import Values
from perfmodel.frozen import dataclass
from perfmodel.operators import Choice, Flag, Operator, Size
from perfmodel.operators.operator import groups

CHUNK = 8192  # cases predicted in one call

Sizes = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Cases:
    """The product of all sizes, for each combination of the other values (types, direction)."""

    operator: Operator
    """The operator."""
    values: Mapping[str, Values]
    """Values of each size; counted without being expanded."""
    kinds: Mapping[str, tuple[Any, ...]]
    """Values that are not sizes (types, direction); each case has one of each."""
    follows: Mapping[str, str] = field(default_factory=dict)
    """Sizes that equal another size."""

    @property
    def count(self) -> int:
        """Number of cases."""
        return math.prod(self._counts().values())

    @cached_property
    def sizes(self) -> Sizes:
        """The values of every size as an array."""
        return {name: values.array for name, values in self.values.items()}

    def first(self) -> Cases:
        """The first case of each combination of kinds."""
        return replace(self, values={name: values.first() for name, values in self.values.items()})

    def singles(self) -> Iterator[tuple[str, Cases]]:
        """Every case alone, with what distinguishes it, ordered by kind and sizes."""
        varying = self.varying()
        for kind in product(*self.kinds.values()):
            for size in product(*(values.array.tolist() for values in self.values.values())):
                kinds = dict(zip(self.kinds, kind, strict=True))
                sizes = dict(zip(self.values, size, strict=True))
                fields = {**sizes, **kinds}
                case = replace(
                    self,
                    values={name: Values(([value],)) for name, value in sizes.items()},
                    kinds={name: (value,) for name, value in kinds.items()},
                )
                yield " ".join(f"{name}={fields[name]}" for name in varying), case

    def varying(self) -> list[str]:
        """Fields of the problem that differ between the cases."""
        return [name for name, count in self._counts().items() if count > 1]

    def _counts(self) -> dict[str, int]:
        """Number of values of each size and kind."""
        tables: dict[str, Sized] = {**self.values, **self.kinds}
        return {name: len(values) for name, values in tables.items()}

    def chunks(self) -> Iterator[tuple[int, list[tuple[Problem, np.ndarray]]]]:
        """For each chunk: its number of cases, and groups that one call predicts, with their
        indices."""
        shape = tuple(map(len, self.values.values()))
        for values in product(*self.kinds.values()):
            kind = dict(zip(self.kinds, values, strict=True))
            for start in range(0, math.prod(shape), CHUNK):
                count = min(CHUNK, math.prod(shape) - start)
                numbers = np.arange(start, start + count)
                # A declaration may have no sizes: then there is one case without an index.
                places = np.unravel_index(numbers, shape) if shape else ()
                columns = {
                    name: values[place]
                    for (name, values), place in zip(self.sizes.items(), places, strict=True)
                }
                columns |= {name: columns[source] for name, source in self.follows.items()}
                indices = groups(self.operator.same_call(columns), count)
                yield count, [(self._make(columns, kind, i), i) for i in indices]

    def _make(self, sizes: Sizes, kind: Mapping[str, Any], index: np.ndarray) -> Problem:
        fields = {name: values[index] for name, values in sizes.items()}
        return self.operator.problem(**fields, **kind)


def read(operator: Operator, given: Mapping[str, Any]) -> Cases:
    """The cases of an operator, from the texts `given` for its options, by name.

    Raises `ProblemError` for a text that is no size, `UnknownName` for an unknown name.
    """
    values, follows = _sizes(operator, given)
    kinds: dict[str, tuple[Any, ...]] = {name: (value,) for name, value in operator.fixed.items()}
    for item in operator.options:
        if isinstance(item, Flag) and (item.always or given[item.name]):
            kinds[item.name] = (bool(given[item.name]),)
        if isinstance(item, Choice):
            kinds[item.name] = _names(item, given[item.name])
    return Cases(operator, values, kinds, follows)


def _sizes(
    operator: Operator, arguments: Mapping[str, Any]
) -> tuple[dict[str, Values], dict[str, str]]:
    """The values of each size, and the sizes that equal another one.

    A size that is not given takes the text of its source (`--seq` for `--seq-q`). The second size
    of one source equals the first, unless one of them is given.
    """
    options = [item for item in operator.options if isinstance(item, Size)]
    texts = {item.name: item for item in options if not item.argument}
    sources = {item.source for item in options if item.source and arguments[item.name] is not None}
    values: dict[str, Values] = {}
    follows: dict[str, str] = {}
    for item in options:
        text, flag = arguments[item.name], item.flags[0]
        if not item.argument:
            continue
        source = texts.get(item.source or "")
        if text is None and item.follows and item.source not in sources:
            follows[item.name] = item.follows
            continue
        if text is None and source is not None:
            text, flag = arguments[source.name], source.flags[0]
        if text is not None:
            values[item.name] = ranges.read(text, flag, least=item.least)
    return values, follows


def _names(item: Choice, text: str | None) -> tuple[Any, ...]:
    if text is None:
        return (None,)
    entries = names(text)
    return (
        entries
        if item.known is None
        else tuple(named(item.kind, name, item.known) for name in entries)
    )
