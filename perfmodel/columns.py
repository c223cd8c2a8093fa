"""Columns of results: each is declared once, at the field or property that has its values.

    @property
    def seconds(self) -> Annotated[float, Column("time", key="time_us", scale=1e6)]: ...

From that come the member of JSON, the column of CSV, and with a heading the column of tables for
people. A list of columns may stand beside a class that is not ours to annotate (`Column.of`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cache, cached_property
from operator import attrgetter
from typing import Any, get_args

from perfmodel.frozen import dataclass
from perfmodel.plaintext import printable
from perfmodel.quantities import KINDS, kind_of, shown

Row = Mapping[str, Any]

DIFFERS, SOME, ASIDE = "differs", "some", "aside"
"""When a column is shown: where rows differ in it, where some row has a value, or on a page alone,
beside a row that is pointed at."""


@dataclass(frozen=True)
class Column:
    """One column of a result."""

    header: str = ""
    """Its heading in tables for people; empty: it is data alone."""
    get: str | Callable[[Row], Any] = ""
    """What a table shows of a row of data: the value under a key ("problem.ranks" is in a
    member), or what a function returns; empty: the value under `key`."""
    show: str | Callable[[Any], str] = ""
    """Formats the value: a function, a text with {}, or a kind of `perfmodel.quantities`; empty:
    the kind of the key."""
    number: bool = True
    """Whether its cells are aligned to the right."""
    wrap: int = 0
    """In a pipe, longer cells are broken into lines of at most this many characters; 0: never."""
    fold: int = 0
    """On a terminal, cells may be broken into lines of at least this many characters; 0: never."""
    rank: int = 0
    """If a terminal lacks room, the highest ranks are dropped first; 0 always stays."""
    style: Callable[[Row], str] | None = None
    """Style of a cell on a terminal, in rich's syntax ("bold", "yellow"); "" is plain."""
    when: str | Callable[[Sequence[Row]], bool] = ""
    """When people see it: `DIFFERS`, `SOME`, or what a function says of the rows; empty: always."""
    key: str = ""
    """Its name in JSON and CSV, with the unit; empty: that of the field, or what `get` names."""
    of: str | Callable[[Any], Any] | None = ""
    """Where a result has the value: a path of attributes, or a function of the result; empty: its
    name. At a field or property: the path from there. None: it shows what other columns have."""
    scale: float = 1.0
    """What numbers are multiplied by in data: 1e6 of seconds gives microseconds."""
    flat: bool = False
    """Whether the value's columns, or the members of a mapping, are columns of the result."""
    finite: bool = True
    """Whether its numbers are finite; the others are null in JSON."""
    stored: tuple[str, ...] = ()
    """Members of a mapping that a sweep has columns of."""
    place: int = 0
    """Columns are in the order of their places, and within one as they are declared."""

    @property
    def name(self) -> str:
        """The key of its values in data."""
        return self.key or (self.get if isinstance(self.get, str) else "")

    def value(self, row: Row) -> Any:
        """What a table shows of a row."""
        if callable(self.get):
            return self.get(row)
        value: Any = row
        for part in (self.get or self.key).split("."):
            value = value.get(part)
        return value

    def cell(self, row: Row) -> str:
        """The text of this column in `row`, on one line; a dash for no value."""
        value = self.value(row)
        if value is None or value == "" or value != value:
            return "-"
        if callable(self.show):
            return printable(self.show(value))
        if "{" in self.show:
            return self.show.format(value)
        return f"{value:.1%}" if self.kind == "percent" else printable(shown(value, self.kind))

    @cached_property
    def kind(self) -> str:
        """What its values are: text, or a kind of `perfmodel.quantities`."""
        if not self.number:
            return "text"
        return self.show if self.show and self.show in KINDS else kind_of(self.name)

    def visible(self, rows: Sequence[Row]) -> bool:
        """Whether people see it in a table of these rows."""
        if not self.header or self.when == ASIDE:
            return False
        if callable(self.when):
            return self.when(rows)
        if self.when == DIFFERS:
            return len({str(self.value(row)) for row in rows}) > 1
        return self.when != SOME or any(self.value(row) not in (None, "") for row in rows)

    def data(self, result: Any) -> Any:
        """Its value of a result as plain data."""
        path = self.of or self.name
        return plain(path(result) if callable(path) else attrgetter(path)(result), self.scale)


def text(header: str, key: str, **layout: Any) -> Column:
    """A column of words."""
    return Column(header, key, number=False, **layout)


def span(row: Row) -> str:
    """A row's range, "1.2 µs to 3.4 µs"; "" without one."""
    low, high = row["low_us"], row["high_us"]
    return "" if low in (None, high) else f"{shown(low, 'time')} to {shown(high, 'time')}"


RANGE = Column("range", span, number=False, key="low_us", scale=1e6)
"""The low end of a time in seconds; tables show the range."""
HIGH = Column(key="high_us", scale=1e6)
"""The high end of a time in seconds."""


class Result:
    """A result whose columns are declared at its fields and properties; all its fields if none
    is."""

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: the unit in every name that needs one."""
        return row_of(self, columns_of(type(self)))  # type: ignore[arg-type]


def row_of(result: Any, columns: Iterable[Column]) -> dict[str, Any]:
    """A result as a row of data."""
    row: dict[str, Any] = {}
    for column in columns:
        if column.flat:
            row |= column.data(result)
        elif column.name and column.of is not None:
            row[column.name] = column.data(result)
    return row


def plain(value: Any, scale: float = 1.0) -> Any:
    """A value as JSON has it, numbers times `scale`."""
    if isinstance(value, Result):
        return value.as_dict()
    if isinstance(value, Mapping):
        return {name: plain(each, scale) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [plain(each, scale) for each in value]
    return value if scale == 1.0 or value is None else value * scale


@cache
def columns_of(noun: type) -> tuple[Column, ...]:
    """The columns of a class: those of its own fields and properties, then those of its bases."""
    columns: list[Column] = []
    for name, kind, column in declared(noun):
        if column.flat and isinstance(kind, type):
            columns += (replace(each, of=f"{name}.{each.of}") for each in columns_of(kind))
            continue
        column = replace(column, number=column.number and kind is not str)
        if column.get and not column.key:
            columns.append(replace(column, of=None))
            continue
        key, path = column.key or name, f"{name}.{column.of}" if column.of else name
        columns.append(replace(column, key=key, get=column.get or key, of=path))
    if not columns and is_dataclass(noun):
        columns = [Column(key=item.name, of=item.name) for item in fields(noun)]
    return tuple(sorted(columns, key=lambda column: column.place))


def declared(noun: Any) -> Iterator[tuple[str, Any, Column]]:
    """Name, type and column of each field and property of a class that has a column."""
    for base in noun.__mro__:
        names = vars(sys.modules[base.__module__])
        hints = dict(vars(base).get("__annotations__", {}))
        for name, member in vars(base).items():
            getter = getattr(member, "fget", None) or getattr(member, "func", None)
            hints |= {} if getter is None else {name: getter.__annotations__.get("return")}
        for name, hint in hints.items():
            if str(hint).startswith("Annotated["):
                kind, *marks = get_args(eval(hint, names))
                yield from ((name, kind, mark) for mark in marks if isinstance(mark, Column))
