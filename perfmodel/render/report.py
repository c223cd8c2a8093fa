"""A result ready to be shown: rows of plain values, and the columns for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

from perfmodel.frozen import dataclass
from perfmodel.plaintext import printable
from perfmodel.units import binary, seconds, si

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Column:
    """One column of the human formats."""

    header: str
    """Its heading."""
    get: Callable[[Row], Any]
    """Returns the value of a row; None: there is none."""
    show: Callable[[Any], str] = str
    """Formats the value."""
    number: bool = True
    """Whether its cells are aligned to the right."""
    wrap: int = 0
    """In a pipe, longer cells are broken into lines of at most this many characters; 0: never."""
    fold: int = 0
    """On a terminal, cells may be broken into lines of at least this many characters; 0: never."""
    rank: int = 0
    """If a terminal lacks room, the highest ranks are dropped first; 0 always stays."""
    brief: Column | None = None
    """A shorter form for a narrow terminal."""
    style: Callable[[Row], str] | None = None
    """Style of a cell on a terminal, in rich's syntax ("bold", "yellow"); "" is plain."""

    def cell(self, row: Row) -> str:
        """The text of this column in `row`, on one line; a dash for no value."""
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
    """Columns of the formats for people."""
    title: str = ""
    """A line above the table."""
    head: Row = field(default_factory=dict)
    """Members beside the rows in JSON."""
    notes: Sequence[str] = ()
    """Lines under the table."""
    examples: Sequence[Row] = ()
    """Rows that together have every key, for the header of CSV; empty: each row has all keys."""


def text(header: str, key: str, *, wrap: int = 0, fold: int = 0, rank: int = 0) -> Column:
    """A column of text."""
    return Column(
        header, lambda row: row.get(key), str, number=False, wrap=wrap, fold=fold, rank=rank
    )


def listed(items: Sequence[str], most: int) -> str:
    """As many items as fit into `most` characters, at least one; then the total number."""
    line = ", ".join(items)
    if len(line) <= most or len(items) < 2:
        return line
    count = len(items) - 1
    while count > 1 and len(_head(items, count)) > most:
        count -= 1
    return _head(items, count)


def _head(items: Sequence[str], count: int) -> str:
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


def keyed(
    header: str, key: str, show: Callable[[Any], str] = str, *, rank: int = 0, number: bool = True
) -> Column:
    """A column of the values under `key`, formatted by `show`."""
    return Column(header, lambda row: row.get(key), show, number, rank=rank)


def times(value: float) -> str:
    """A factor: 1.25x."""
    return f"{value:.2f}x"


def whole(value: float) -> str:
    """A number without decimals, its thousands apart: 4,096."""
    return f"{round(value):,}"


def count(value: float) -> str:
    """A number with a decimal prefix: 8.03 G."""
    return si(value, "").rstrip()


def in_micros(seconds: float, low: float, high: float) -> Row:
    """A time and the ends of its range as members of a row."""
    return {"time_us": seconds * 1e6, "low_us": low * 1e6, "high_us": high * 1e6}


def several(header: str, rows: Sequence[Row]) -> list[Column]:
    """The column `header` of texts, where rows differ in it."""
    return [text(header, header)] if len({row[header] for row in rows}) > 1 else []


def micros(value: float) -> str:
    """Microseconds with a suitable prefix: 1234 gives "1.23 ms"."""
    return seconds(value / 1e6)


def span(row: Row) -> str:
    """A row's range, "1.2 µs to 3.4 µs"; "" without a range."""
    return "" if row["low_us"] is None else f"{micros(row['low_us'])} to {micros(row['high_us'])}"


def ranged(header: str, *, number: bool = False) -> Column:
    """The column of a row's range."""
    return Column(header, span, number=number)


def around(row: Row) -> str:
    """A row's range as the distances of its ends from the time: -14% +30%; "" without a range."""
    if row["low_us"] is None:
        return ""
    low, high = (row[end] / row["time_us"] - 1 for end in ("low_us", "high_us"))
    return f"{low:+.0%} {high:+.0%}"


def quantity(unit: str) -> Callable[[float], str]:
    """Formats SI numbers of `unit` with a decimal prefix."""
    return lambda value: si(value, unit)


def ratio(value: float) -> str:
    """A ratio such as an intensity, to three digits and without exponents: 0.25, 12.3, 4096."""
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


def assumed(assumptions: Iterable[Iterable[str]]) -> list[str]:
    """A note for each assumption, of one prediction or of several."""
    lines = dict.fromkeys(line for lines in assumptions for line in lines)
    return [f"assumed: {line}" for line in lines]
