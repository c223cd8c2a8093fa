"""The meaning of each column of a kind of table, as `compare --columns` prints it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from perfmodel import yamltable
from perfmodel.columns import Column, Result, Row
from perfmodel.plaintext import listed
from perfmodel.table.layout import Layout


def _meaning(row: Row) -> str:
    """The meaning of a column, with its unit."""
    return f"{row['about']} ({row['unit']})" if row["unit"] else str(row["about"])


@dataclass(frozen=True)
class ColumnReference(Result):
    """One column of a kind of table."""

    name: Annotated[str, Column("column")]
    """Its name."""
    needed: Annotated[str, Column("needed", wrap=10, fold=9)]
    """`yes` if every row needs it, else the operators whose rows do; may be empty."""
    holds: Annotated[str, Column("cells", rank=2)]
    """Type of its cells: text, whole (a whole number), number, yes/no."""
    unit: Annotated[str, Column()]
    """Unit of its cells; empty if they have none."""
    about: Annotated[str, Column("meaning", _meaning, key="about", wrap=38, fold=20)]
    """Its meaning."""
    empty: Annotated[str, Column("if empty", wrap=20, fold=12)]
    """The meaning of a missing cell."""
    names: Annotated[
        tuple[str, ...],
        Column("also read as", lambda row: listed(row["names"], 32), key="names", number=False,
               wrap=18, fold=14, rank=1),
    ]  # fmt: skip
    """Other headings that are read as this column."""


def columns(layout: Layout, kind: str) -> tuple[ColumnReference, ...]:
    """Every column of a kind of table, needed ones first."""
    path = Path(__file__).with_name("columns.yaml")
    entries: Mapping[str, Any] = yamltable.read(path)["columns"]
    required = [name for name in layout.needed if name != layout.measured]
    order = dict.fromkeys((*required, layout.measured, *layout.columns()))
    rows = [_column(name, entries[name], layout, kind) for name in order]
    rank = {"yes": 0, "": 2}
    return tuple(sorted(rows, key=lambda column: rank.get(column.needed, 1)))


def _column(name: str, entry: Mapping[str, Any], layout: Layout, kind: str) -> ColumnReference:
    is_required = name in layout.needed or name == layout.measured
    return ColumnReference(
        name,
        "yes" if is_required else ", ".join(layout.needed_by(name)),
        _content(name, layout),
        entry.get("unit", ""),
        _kind_text(entry["about"], kind),
        "" if is_required else _kind_text(entry.get("empty", ""), kind),
        tuple(_spellings(entry)),
    )


def _content(name: str, layout: Layout) -> str:
    if name in layout.text:
        return "text"
    if name in layout.truth:
        return "yes/no"
    return "whole" if name in layout.whole else "number"


def _kind_text(text: Any, kind: str) -> str:
    """A text, or the text for this kind of table."""
    return str(text.get(kind, "") if isinstance(text, Mapping) else text)


def _spellings(entry: Mapping[str, Any]) -> Iterator[str]:
    yield from map(str, (*entry.get("names", ()), *entry.get("shared", ())))
