"""Lists of options combined: every value with every other, or with `--zip` in pairs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle, islice, product
from math import prod
from typing import Any

from perfmodel.errors import ProblemError


@dataclass(frozen=True)
class Grid:
    """Lists of values by name, combined."""

    lists: Mapping[str, Sequence[Any]]
    """The values of each name."""
    pairs: bool = False
    """Whether the lists are paired element by element; otherwise each value with every other."""

    def __len__(self) -> int:
        """Number of combinations. Raises `ProblemError` for lists that do not pair."""
        sizes = {name: len(values) for name, values in self.lists.items() if len(values) != 1}
        if not self.pairs:
            return prod(sizes.values())
        if len(set(sizes.values())) > 1:
            text = ", ".join(f"{size} of {name}" for name, size in sizes.items())
            raise ProblemError(
                f"--zip pairs lists of one length, not {text}; give each as many values, or one"
            )
        return max(sizes.values(), default=1)

    def check(self, most: int, noun: str) -> None:
        """Raise `ProblemError` for more than `most` combinations."""
        if len(self) > most:
            raise ProblemError(f"{len(self):,} {noun} are more than {most:,}; narrow a range")

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """A value of each list by name, for each combination."""
        if not self.pairs:
            rows: Iterable[tuple[Any, ...]] = product(*self.lists.values())
        else:
            number = len(self)
            columns = (islice(cycle(values), number) for values in self.lists.values())
            rows = zip(*columns, strict=True)
        return (dict(zip(self.lists, row, strict=True)) for row in rows)

    def label(self, values: Mapping[str, Any]) -> str:
        """What sets a combination apart: a slug or name, else the value after its name."""
        varying = [name for name in self.lists if len(self.lists[name]) > 1]
        return ", ".join(
            getattr(values[name], "slug", None)
            or getattr(values[name], "name", None)
            or f"{name} {values[name]}"
            for name in varying
        )
