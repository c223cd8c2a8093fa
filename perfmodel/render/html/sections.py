"""Sections of the page: sentences, rows, and the charts and tables of the rows.

A chart is `Dots` with a mark for each row, or stacked lengths with one view or more. A new kind of
result is a list of these (`perfmodel.render.html.kinds`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perfmodel.columns import ASIDE, Column
from perfmodel.quantities import ends_of, shown
from perfmodel.render.dots import Dots
from perfmodel.render.html.columns import columns, hidden
from perfmodel.render.spans import Spans

Row = Mapping[str, Any]
Views = Mapping[str, Spans]
"""Stacked bars by what their pieces are; of several views a page offers a choice."""


@dataclass(frozen=True)
class Section:
    """One section of the page."""

    title: str
    """Its heading."""
    rows: Sequence[Row] = ()
    """Plain values for its marks and its table."""
    columns: Sequence[Column] = ()
    """Columns of the rows."""
    charts: Sequence[Views | Dots] = ()
    """Its charts, in order; the table follows."""
    sentences: Sequence[str] = ()
    """Its sentences in the summary."""
    assumptions: Sequence[str] = ()
    """Assumptions, each once a row."""
    id: str = ""
    """Anchor in the page's addresses; numbered if empty."""

    def table(self) -> dict[str, Any]:
        """The rows in the page's data, as lists in the order of the columns, and for each row the
        texts of its numbers with a bar between them, empty where they are as in JSON. A hidden
        column has its value and text once.

        The rows may have a column with the kind of their numbers.
        """
        units = [part.unit for part in self.charts if isinstance(part, Dots) and part.unit]

        def written(row: Row, column: Column) -> str:
            compared = bool(units) and column.name in ("measured", "predicted", "low", "high")
            value = row.get(column.name)
            if value is None or isinstance(value, str):
                return ""
            text = shown(value, row[units[0]] if compared else column.kind)
            return "" if text == str(value) else text

        alike = {each.name: [self.rows[0].get(each.name), written(self.rows[0], each)]
                 for each in self.columns
                 if hidden(each, self.rows) and len({row.get(each.name) for row in self.rows}) == 1
                 and self.rows[0].get(each.name) is not None}  # fmt: skip
        own = [column for column in self.columns if column.name not in alike]
        headings = [self._heading(column) for column in self.columns]
        return {
            "title": self.title,
            "columns": [{**each, "all": alike.get(each["key"])} for each in headings],
            "rows": [[row.get(column.name) for column in own] for row in self.rows],
            "texts": ["|".join(written(row, each) for each in own) for row in self.rows],
        }

    def _heading(self, column: Column) -> dict[str, Any]:
        marks = {"number": column.number, "hidden": hidden(column, self.rows),
                 "aside": column.when == ASIDE}  # fmt: skip
        true = {name: True for name, mark in marks.items() if mark}
        return {"key": column.name, "header": column.header or column.name, **true}

    def told(self, name: Sequence[str], axes: Sequence[str] = ()) -> dict[str, Any]:
        """What is told of a row that is pointed at, by places of columns: those of its name; those
        of its numbers, the axes' first, each with those of the ends of its range."""
        known = {column.name: column for column in self.columns}
        place = {key: i for i, key in enumerate(known)}
        ends = {key: ends_of(key) for key in known if set(ends_of(key)) <= known.keys()}
        skipped = {*name, *(end for pair in ends.values() for end in pair)}
        skipped |= {
            key for key, each in known.items() if hidden(each, self.rows) and key != "limiter"
        }
        order = [key for key in dict.fromkeys([*axes, *known]) if key in known]
        return {
            "name": [place[key] for key in name if key in known],
            "tells": [[place[each] for each in (key, *ends.get(key, ()))]
                      for key in order if key not in skipped],
        }  # fmt: skip


def table(title: str, rows: Sequence[Row]) -> Section:
    """A section with a table only; its columns are the plain members of the rows."""
    plain = [
        {key: value for key, value in row.items() if not isinstance(value, dict | list)}
        for row in rows
    ]
    return Section(title, plain, columns(plain))
