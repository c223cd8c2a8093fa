"""A result ready to be shown: rows of plain values, and which of them people want to see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from perfmodel.plaintext import printable
from perfmodel.units import binary, seconds, si

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of the human formats."""

    header: str
    """Its heading."""
    get: Callable[[Row], Any]
    """Finds the value in a row; None: there is none."""
    show: Callable[[Any], str] = str
    """Writes the value."""
    number: bool = True
    """Whether its cells stand to the right."""
    wrap: int = 0
    """A table in a pipe breaks cells of more characters into lines of whole words; 0 never does."""
    fold: int = 0
    """A terminal may break its cells into lines of so many characters or more; 0 never does."""
    rank: int = 0
    """Where a terminal has no room for all columns, the highest ranks go first; 0 always stays."""
    brief: Column | None = None
    """The same in fewer characters, for a narrow terminal."""
    style: Callable[[Row], str] | None = None
    """How a terminal shows the cell, as rich writes styles ("bold", "yellow"); "" is plain."""

    def cell(self, row: Row) -> str:
        """The text of this column in `row`, on one line; a dash where there is no value."""
        value = self.get(row)
        missing = value is None or value == "" or value != value
        return "-" if missing else printable(self.show(value))


@dataclass(frozen=True)
class Report:
    """A result ready to be shown."""

    name: str
    """The key of its rows in JSON."""
    rows: Iterable[Row]
    """The rows; they may be a stream."""
    columns: Sequence[Column]
    """What people see of them."""
    title: str = ""
    """A line above the table."""
    head: Row = field(default_factory=dict)
    """What stands beside the rows in JSON."""
    notes: Sequence[str] = ()
    """Lines under the table."""
    examples: Sequence[Row] = ()
    """Rows that together have every key: the header of CSV; empty: all rows have."""


def text(header: str, key: str, *, wrap: int = 0, fold: int = 0, rank: int = 0) -> Column:
    """A column of text."""
    return Column(
        header, lambda row: row.get(key), str, number=False, wrap=wrap, fold=fold, rank=rank
    )


def listed(items: Sequence[str], most: int) -> str:
    """Items of a list that `most` characters hold, at least one; then how many there are."""
    whole = ", ".join(items)
    if len(whole) <= most or len(items) < 2:
        return whole
    count = len(items) - 1
    while count > 1 and len(_begun(items, count)) > most:
        count -= 1
    return _begun(items, count)


def _begun(items: Sequence[str], count: int) -> str:
    return ", ".join([*items[:count], f"... ({len(items)})"])


def integer(header: str, key: str, *, rank: int = 0) -> Column:
    """A column of whole numbers."""
    return Column(header, lambda row: row.get(key), lambda value: f"{value:d}", rank=rank)


def percent(header: str, key: str, *, rank: int = 0) -> Column:
    """A column of fractions, shown in percent."""
    return Column(header, lambda row: row.get(key), lambda value: f"{value:.1%}", rank=rank)


def fixed(header: str, key: str, digits: int = 3, *, rank: int = 0) -> Column:
    """A column of plain numbers."""
    return Column(header, lambda row: row.get(key), lambda value: f"{value:.{digits}f}", rank=rank)


def micros(value: float) -> str:
    """Microseconds with the prefix that suits them: 1234 is "1.23 ms"."""
    return seconds(value / 1e6)


def around(row: Row) -> str:
    """A row's range as what its ends are below and above the time: -14% +30%; "" without one."""
    if row["low_us"] is None:
        return ""
    low, high = (row[end] / row["time_us"] - 1 for end in ("low_us", "high_us"))
    return f"{low:+.0%} {high:+.0%}"


def quantity(unit: str) -> Callable[[float], str]:
    """Writes SI numbers of `unit` with a decimal prefix."""
    return lambda value: si(value, unit)


def ratio(value: float) -> str:
    """A ratio such as an intensity, in three digits and never in exponents: 0.25, 12.3, 4096."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


__all__ = [
    "Column",
    "Report",
    "Row",
    "around",
    "binary",
    "fixed",
    "integer",
    "listed",
    "micros",
    "percent",
    "quantity",
    "ratio",
    "text",
]
