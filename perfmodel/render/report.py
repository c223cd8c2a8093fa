"""A result ready to be shown: rows of plain values, and the columns for people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

from perfmodel.columns import Column, Row, columns_of, row_of, span, text
from perfmodel.frozen import dataclass
from perfmodel.units import binary, seconds, si


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

    @classmethod
    def of(
        cls, name: str, results: Iterable[Any], columns: Sequence[Column] = (), **more: Any
    ) -> Report:
        """The report of results: of their own columns, or of a list for results of another
        class."""
        nouns = list(results)
        noun = type(nouns[0]) if nouns else cls
        columns = columns or columns_of(noun)  # type: ignore[arg-type]
        rows = [row_of(noun, columns) for noun in nouns]
        return cls(name, rows, columns, examples=rows, **more)

    @cached_property
    def visible(self) -> list[Column]:
        """The columns that people see."""
        rows = self.examples or (self.rows if isinstance(self.rows, list) else ())
        return [column for column in self.columns if column.visible(rows)]


def micros(value: float) -> str:
    """Microseconds with a suitable prefix: 1234 gives "1.23 ms"."""
    return seconds(value / 1e6)


def quantity(unit: str) -> Callable[[float], str]:
    """Formats SI numbers of `unit` with a decimal prefix."""
    return lambda value: si(value, unit)


def ratio(value: float) -> str:
    """A ratio such as an intensity, to three digits and without exponents: 0.25, 12.3, 4096."""
    return f"{value:.3g}" if abs(value) < 999.5 else f"{value:.0f}"


def assumed(assumptions: Iterable[Iterable[str]]) -> list[str]:
    """A note for each assumption, of one prediction or of several."""
    lines = dict.fromkeys(line for lines in assumptions for line in lines)
    return [f"assumed: {line}" for line in lines]


def on_device(names: Iterable[str]) -> str:
    """The end of a title, " on a100", where all results are of one device."""
    devices = set(names)
    return f" on {devices.pop()}" if len(devices) == 1 else ""


__all__ = ["Column", "Report", "Row", "assumed", "binary", "micros",
           "on_device", "quantity", "ratio", "span", "text"]  # fmt: skip
