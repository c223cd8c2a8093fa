"""Spellings of columns, cell values and units, from `columns.yaml`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import UnknownName

_OTHER = re.compile(r"[^a-z0-9µσ]+")
_WORDS = re.compile(r"[\w .:+/-]{1,60}")


def normal(text: str) -> str:
    """A spelling in lower case with only its letters and digits."""
    return _OTHER.sub("", text.lower().replace("\u03bc", "µ"))


@dataclass(frozen=True)
class Unit:
    """A unit of measurement in tables."""

    name: str
    """Its name in messages: ms, TFLOP/s."""
    kind: str
    """time, flops, bandwidth or bytes."""
    factor: float
    """One of this unit in seconds, FLOP/s, bytes/s or bytes."""

    def over(self, other: Unit) -> float:
        """This unit in units of `other`: 1000 for ms over us, rounded to 12 digits."""
        ratio = self.factor / other.factor
        return float(f"{ratio:.12g}")


@dataclass(frozen=True)
class Meaning:
    """A column that a spelling may mean."""

    column: str
    """The column."""
    spelling: str
    """The spelling as listed."""
    rank: int
    """Position of the spelling in its list; lower is preferred."""
    shared: bool
    """Whether other columns share the spelling, so that the cells must decide."""


@dataclass(frozen=True)
class Vocabulary:
    """All of `columns.yaml`."""

    meanings: Mapping[str, tuple[Meaning, ...]]
    """Columns by normal spelling."""
    values: Mapping[str, Mapping[str, str]]
    """Cell values in our spelling, by column and normal spelling."""
    units: Mapping[str, Unit]
    """Units by their spelling in lower case."""
    words: Mapping[str, Any]
    """Words in headings of measurements."""
    in_bytes: frozenset[str]
    """Columns that hold bytes."""

    def value(self, column: str, cell: str) -> str:
        """A cell's value in our spelling; the cell itself if it is not known."""
        spellings = self.values.get(column, {})
        if cell in spellings.values() or not _WORDS.fullmatch(cell):
            return cell
        word = cell.removeprefix("torch.").removeprefix("tl.")
        for spelling in (word, word.split(":")[0]):
            if (match := spellings.get(normal(spelling))) is not None:
                return match
        return cell

    def time(self, name: str) -> Unit:
        """The unit of time of that name; raises `UnknownName`."""
        unit = self.units.get(name.strip().lower())
        if unit is None or unit.kind != "time":
            raise UnknownName("unit of time", name, self.times())
        return unit

    def times(self) -> list[str]:
        """The units of time."""
        return list(dict.fromkeys(unit.name for unit in self.units.values() if unit.kind == "time"))

    def spellings(self, column: str, most: int = 3) -> list[str]:
        """Some of what a column is called elsewhere."""
        matches = [
            meaning
            for meanings in self.meanings.values()
            for meaning in meanings
            if meaning.column == column != meaning.spelling and not meaning.shared
        ]
        return [m.spelling for m in sorted(matches, key=lambda m: m.rank)[:most]]


@lru_cache(maxsize=1)
def vocabulary() -> Vocabulary:
    """The shipped spellings."""
    document = yamltable.read(Path(__file__).with_name("columns.yaml"))
    return Vocabulary(
        _meanings(document["columns"]),
        {
            column: {
                normal(spelling): value
                for value, spellings in entries.items()
                for spelling in (value, *spellings)
            }
            for column, entries in document["values"].items()
        },
        {
            spelling.lower(): Unit(name, kind, float(entry["factor"]))
            for kind, units in document["units"].items()
            for name, entry in units.items()
            for spelling in (name, *entry["names"])
        },
        {
            name: {key: frozenset(words) for key, words in lists.items()}
            if isinstance(lists, dict)
            else frozenset(lists)
            for name, lists in document["words"].items()
        },
        frozenset(
            column
            for column, entry in document["columns"].items()
            if entry.get("quantity") == "bytes"
        ),
    )


def _meanings(columns: Mapping[str, Any]) -> Mapping[str, tuple[Meaning, ...]]:
    table: dict[str, tuple[Meaning, ...]] = {}
    for column, entry in columns.items():
        for meaning, spelling in _spelled_meanings(column, entry):
            table[spelling] = (*table.get(spelling, ()), meaning)
    return table


def _spelled_meanings(column: str, entry: Mapping[str, Any]) -> Iterator[tuple[Meaning, str]]:
    shared = entry.get("shared", ())
    spellings: set[str] = set()
    for rank, name in enumerate((column, *entry.get("names", ()), *shared)):
        spelling = normal(name)
        if spelling not in spellings:
            tells = name in shared or len(spelling) == 1
            yield Meaning(column, name, rank, tells), spelling
        spellings.add(spelling)
