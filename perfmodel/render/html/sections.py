"""Sections of the page: sentences, rows, and the charts and tables of the rows.

There are three parts. `Bars` are stacked lengths, `Dots` have a mark for each row, `Rows` is the
table. A new kind of result is a list of these (`perfmodel.render.html.kinds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.columns import ASIDE, Column
from perfmodel.render.bars import Bar, Bars
from perfmodel.render.dots import Dots
from perfmodel.render.html.columns import columns, hidden

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """The table of the section's rows."""

    title: str = ""
    """What is shown."""


@dataclass(frozen=True)
class Section:
    """One section of the page."""

    title: str
    """Its heading."""
    rows: Sequence[Row] = ()
    """Plain values for its marks and its table."""
    columns: Sequence[Column] = ()
    """Columns of the rows."""
    parts: Sequence[Bars | Dots | Rows] = (Rows(),)
    """Its parts, in order."""
    sentences: Sequence[str] = ()
    """Its sentences in the summary."""
    assumptions: Sequence[str] = ()
    """Assumptions, each once a row."""
    id: str = ""
    """Anchor in the page's addresses; numbered if empty."""

    def table(self) -> dict[str, Any]:
        """The rows in the page's data, as lists in the order of the columns; `unit` names the
        column that has the kind of each row's numbers, if one has."""
        units = [part.unit for part in self.parts if isinstance(part, Dots) and part.unit]
        return {
            "title": self.title,
            "columns": [
                {"key": column.name, "header": column.header, "kind": column.kind,
                 "hidden": hidden(column, self.rows) or None, "aside": column.when == ASIDE or None}
                for column in self.columns
            ],
            "rows": [[row.get(column.name) for column in self.columns] for row in self.rows],
            "unit": units[0] if units else None,
        }  # fmt: skip


def table(title: str, rows: Sequence[Row]) -> Section:
    """A section with a table only; its columns are the plain members of the rows."""
    plain = [
        {key: value for key, value in row.items() if not isinstance(value, dict | list)}
        for row in rows
    ]
    return Section(title, plain, columns(plain))


__all__ = ["Bar", "Bars", "Dots", "Rows", "Section", "table"]
