"""What stands in a section of the page: sentences, rows, and the charts and tables of the rows.

The scripts know three parts. `Bars` are lengths that add up, `Dots` a dot a row, `Rows` the table.
A new kind of result is a list of these (`perfmodel.render.html.kinds`); it needs no new script.
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
    """What stands before it."""
    lengths: Mapping[str, float]
    """The length of each piece."""
    low: float | None = None
    """Lower end of the range of the sum."""
    high: float | None = None
    """Upper end of the range of the sum."""
    limit: float | None = None
    """What the sum has to stay below."""
    note: str = ""
    """What stands behind the sum."""

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
    """Stacked bars on one scale. With several `views` the reader chooses one."""

    title: str
    """What is shown."""
    kind: str
    """What the lengths are, as in `Column.kind`."""
    views: Mapping[str, Sequence[Bar]]
    """Bars by the name of the view."""
    limit_name: str = ""
    """What the bars' limit is called."""
    ranked: bool = True
    """Whether lengths stand by their sum over all bars, the longest first; else as given."""

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
    """A dot a row. Where `x` or `y` has several keys the reader chooses one."""

    title: str
    """What is shown."""
    x: Sequence[str]
    """Keys of the x axis."""
    y: Sequence[str]
    """Keys of the y axis."""
    name: Sequence[str]
    """Keys of what a row is called."""
    log: str = "xy"
    """Axes that are logarithmic; the others begin at zero."""
    filters: Sequence[str] = ()
    """Keys that rows can be chosen by."""
    by: Sequence[str] = ()
    """Keys that rows can be coloured by."""
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Keys of the ends of a range, by the key that it is of."""
    limits: Mapping[str, float] = field(default_factory=dict)
    """What values of a key should stay below."""
    joined: Sequence[str] = ()
    """Keys of a line: it joins, from left to right, the dots that are alike in those not on x."""
    fits: str = ""
    """Key of whether a row's dot is filled."""
    compared: bool = False
    """Whether y predicts what x measured: the diagonal is drawn, and errors are told."""
    unit: str = ""
    """Key of what a row's numbers are, where it differs between rows."""

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
    """Plain values that its dots and its table show."""
    columns: Sequence[Column] = ()
    """Columns of the rows."""
    parts: Sequence[Bars | Dots | Rows] = (Rows(),)
    """What it shows, in order."""
    sentences: Sequence[str] = ()
    """What the summary says of it."""
    assumptions: Sequence[str] = ()
    """What was assumed, once a row."""
    id: str = ""
    """Name in the page's addresses; numbered where there is none."""

    def as_dict(self) -> dict[str, Any]:
        """The section in the page's data; rows as lists in the order of the columns."""
        keys = [column.key for column in self.columns]
        return {
            "id": self.id or None,
            "title": self.title,
            "columns": [column.as_dict() for column in self.columns],
            "rows": [[row.get(key) for key in keys] for row in self.rows],
            "parts": [part.as_dict() for part in self.parts],
        }


def table(title: str, rows: Sequence[Row]) -> Section:
    """A section of a table alone, its columns the plain members of the rows."""
    plain = [
        {key: value for key, value in row.items() if not isinstance(value, dict | list)}
        for row in rows
    ]
    return Section(title, plain, columns(plain))
