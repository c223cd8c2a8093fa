"""Sections of the page: sentences, rows, and the charts and tables of the rows.

The scripts know three parts. `Bars` are stacked lengths, `Dots` have a dot for each row, `Rows` is
the table. A new kind of result is a list of these (`perfmodel.render.html.kinds`) and needs no new
script.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfmodel.render.html.columns import Column, columns

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """One bar: lengths by name, in the order of their sum over all bars."""

    label: str
    """Text before the bar."""
    lengths: Mapping[str, float]
    """The length of each piece."""
    low: float | None = None
    """Lower end of the range of the sum."""
    high: float | None = None
    """Upper end of the range of the sum."""
    limit: float | None = None
    """Upper limit for the sum."""
    note: str = ""
    """Text after the sum."""

    def __post_init__(self) -> None:
        """Raise `TypeError` for a length that is no number."""
        for name, value in self.lengths.items():
            if not isinstance(value, int | float):
                raise TypeError(f"{name} is {value!r}, not a number")

    def as_dict(self) -> dict[str, Any]:
        """The bar in the page's data."""
        return {
            "label": self.label,
            "lengths": [[name, value] for name, value in self.lengths.items() if value > 0],
            "low": self.low,
            "high": self.high,
            "limit": self.limit,
            "note": self.note or None,
        }


@dataclass(frozen=True)
class Bars:
    """Stacked bars on one scale. With several `views` the page offers a choice."""

    title: str
    """What is shown."""
    kind: str
    """Kind of the lengths, as in `Column.kind`."""
    views: Mapping[str, Sequence[Bar]]
    """Bars by the name of the view."""
    limit_name: str = ""
    """Name of the bars' limit."""
    ranked: bool = True
    """Whether lengths are sorted by their sum over all bars, longest first; else as given."""

    def as_dict(self) -> dict[str, Any]:
        """The part in the page's data."""
        return {
            "part": "bars",
            "title": self.title,
            "kind": self.kind,
            "views": [[name, [bar.as_dict() for bar in bars]] for name, bars in self.views.items()],
            "limit_name": self.limit_name or None,
            "ranked": self.ranked,
        }


@dataclass(frozen=True)
class Dots:
    """A dot for each row. If `x` or `y` has several keys the page offers a choice."""

    title: str
    """What is shown."""
    x: Sequence[str]
    """Keys of the x axis."""
    y: Sequence[str]
    """Keys of the y axis."""
    name: Sequence[str]
    """Keys of a row's name."""
    log: str = "xy"
    """Axes that are logarithmic; the others begin at zero."""
    filters: Sequence[str] = ()
    """Keys that rows can be filtered by."""
    by: Sequence[str] = ()
    """Keys that rows can be coloured by."""
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Keys of the ends of a range, by the key of its value."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """Upper limits of values, by key."""
    joined: Sequence[str] = ()
    """Keys of a line. It joins, from left to right, dots that agree in those keys that are not on
    x."""
    fits: str = ""
    """Key of a boolean: whether a row's dot is filled."""
    compared: bool = False
    """Whether y is the prediction of the measured x: the diagonal is drawn, and errors are
    listed."""
    unit: str = ""
    """Key of the unit of a row's numbers, where it differs between rows."""
    labelled: str = ""
    """Key whose value is written beside each dot."""

    def as_dict(self) -> dict[str, Any]:
        """The part in the page's data."""
        return {
            "part": "dots",
            "title": self.title,
            "x": list(self.x),
            "y": list(self.y),
            "name": list(self.name),
            "log": self.log,
            "filters": list(self.filters),
            "by": list(self.by),
            "ranges": {key: list(ends) for key, ends in self.ranges.items()},
            "limits": dict(self.limits),
            "joined": list(self.joined),
            "fits": self.fits or None,
            "compared": self.compared,
            "unit": self.unit or None,
            "labelled": self.labelled or None,
        }


@dataclass(frozen=True)
class Rows:
    """The table of the section's rows."""

    title: str = ""
    """What is shown."""

    def as_dict(self) -> dict[str, Any]:
        """The part in the page's data."""
        return {"part": "rows", "title": self.title}


@dataclass(frozen=True)
class Section:
    """One section of the page."""

    title: str
    """Its heading."""
    rows: Sequence[Row] = ()
    """Plain values for its dots and its table."""
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

    def as_dict(self) -> dict[str, Any]:
        """The section in the page's data; rows are lists in the order of the columns."""
        keys = [column.key for column in self.columns]
        return {
            "id": self.id or None,
            "title": self.title,
            "columns": [column.as_dict() for column in self.columns],
            "rows": [[row.get(key) for key in keys] for row in self.rows],
            "parts": [part.as_dict() for part in self.parts],
        }


def table(title: str, rows: Sequence[Row]) -> Section:
    """A section with a table only; its columns are the plain members of the rows."""
    plain = [
        {key: value for key, value in row.items() if not isinstance(value, dict | list)}
        for row in rows
    ]
    return Section(title, plain, columns(plain))
