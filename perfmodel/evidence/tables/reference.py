"""The meaning of each column of a kind of table, as `compare --columns` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.evidence.tables.layout import Layout


@dataclass(frozen=True)
class ColumnReference:
    """One column of a kind of table."""

    name: str
    """Its name."""
    needed: str
    """`yes` if every row needs it, else the operators whose rows do; may be empty."""
    holds: str
    """Type of its cells: text, whole (a whole number), number, yes/no."""
    unit: str
    """Unit of its cells; empty if they have none."""
    about: str
    """Its meaning."""
    empty: str
    """The meaning of a missing cell."""
    names: tuple[str, ...]
    """Other headings that are read as this column."""


def columns(layout: Layout, kind: str) -> tuple[ColumnReference, ...]:
    """Every column of a kind of table, needed ones first."""
    path = Path(__file__).with_name("columns.yaml")
    known: Mapping[str, Any] = yamltable.read(path)["columns"]
    needed = [name for name in layout.needed if name != layout.measured]
    order = dict.fromkeys((*needed, layout.measured, *layout.columns()))
    found = [_column(name, known[name], layout, kind) for name in order]
    rank = {"yes": 0, "": 2}
    return tuple(sorted(found, key=lambda column: rank.get(column.needed, 1)))


def _column(name: str, entry: Mapping[str, Any], layout: Layout, kind: str) -> ColumnReference:
    always = name in layout.needed or name == layout.measured
    return ColumnReference(
        name,
        "yes" if always else ", ".join(layout.needed_by(name)),
        _holds(name, layout),
        entry.get("unit", ""),
        _of_kind(entry["about"], kind),
        "" if always else _of_kind(entry.get("empty", ""), kind),
        tuple(_spellings(entry)),
    )


def _holds(name: str, layout: Layout) -> str:
    if name in layout.text:
        return "text"
    if name in layout.truth:
        return "yes/no"
    return "whole" if name in layout.whole else "number"


def _of_kind(said: Any, kind: str) -> str:
    """A text, or the text for this kind of table."""
    return str(said.get(kind, "") if isinstance(said, Mapping) else said)


def _spellings(entry: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, (*entry.get("names", ()), *entry.get("shared", ())))
