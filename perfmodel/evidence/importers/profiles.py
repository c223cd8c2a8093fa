"""A profile as it was read: launches with their metrics, or sums over a range's or kernel's runs.

A reader (`ncu`, `nsys`, `rocprof`, `traces`) makes a `Profile` from a file. `profileformats` finds
the reader, and `counters` turns the profile into measured runs.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from perfmodel.errors import TableError
from perfmodel.evidence.records.documents import shown

BYTES = ("hbm_bytes_measured", "l2_bytes_measured", "shared_bytes_measured")
PIPES = ("tensor_pipe_pct", "xu_pipe_pct", "fma_pipe_pct")

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_GROUPS = re.compile(r"[+-]?\d{1,3}([,'\u00a0\u202f ]\d{3})+(\.\d+)?", re.ASCII)
_MOST = 1e30  # no counter or time is larger


@dataclass(frozen=True)
class Launch:
    """One launch."""

    kernel: str
    """Name of the kernel."""
    seconds: float | None
    """Its time; None: not measured."""
    ranges: tuple[str, ...] = ()
    """Ranges around it, outermost first."""
    metrics: Mapping[str, float] = field(default_factory=dict)
    """Raw metrics."""


@dataclass(frozen=True)
class Instance:
    """The runs of one range."""

    label: str
    """The range."""
    seconds: float
    """Time of one run."""
    kernel: str
    """Its first kernel."""
    launches: int
    """Launches of one run."""
    repeats: int = 1
    """Runs."""


@dataclass(frozen=True)
class Summed:
    """A kernel, summed over its launches."""

    kernel: str
    """Name of the kernel."""
    seconds: float
    """Time of one launch."""
    launches: int
    """Launches."""


@dataclass(frozen=True)
class Profile:
    """The contents of a file in one of three forms: `launches`, `instances` or `kernels`."""

    tool: str
    """The profiler that wrote it."""
    advice: str
    """What to tell a user whose profile has no bytes."""
    launches: tuple[Launch, ...] = ()
    """Launches, in order."""
    instances: tuple[Instance, ...] = ()
    """Runs of ranges."""
    kernels: tuple[Summed, ...] = ()
    """Sums by kernel."""
    counted: Callable[[Mapping[str, float]], dict[str, float]] = dict
    """Turns a launch's metrics into columns: bytes, percent of a pipe's peak."""
    said: tuple[str, ...] = ()
    """Lines for the user."""
    on_host: bool = False
    """Whether times are the host's, because no device was recorded."""


# ---- Tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    line: int
    """Its number in the file."""
    cells: Mapping[str, str]
    """Its cells by column."""

    def __getitem__(self, column: str) -> str:
        return self.cells[column].strip()

    def get(self, column: str) -> str:
        """A cell, empty where the table has no such column."""
        return self.cells.get(column, "").strip()


@dataclass(frozen=True)
class Table:
    """A profiler's table."""

    where: str
    """Name of the file."""
    columns: tuple[str, ...]
    """Its columns."""
    rows: tuple[Row, ...]
    """Its rows."""
    skipped: int = 0
    """Lines that were not rows and were left out."""

    def positive(self, row: Row, column: str) -> float:
        """The cell as a number above 0; raises `TableError` with file and line for any other."""
        value = number(row[column])
        if value is None or value <= 0:
            raise TableError(
                f"{self.where}:{row.line}: {column} is {shown(row[column])}, not a number above 0"
            )
        return value

    def whole(self, row: Row, column: str) -> int:
        """The cell as a whole number above 0; raises `TableError` with file and line for any
        other."""
        value = self.positive(row, column)
        if value != int(value):
            raise TableError(
                f"{self.where}:{row.line}: {column} is {shown(row[column])}, not whole"
            )
        return int(value)


def cells(line: str) -> tuple[str, ...]:
    """The cells of one line of CSV; none where it is not CSV."""
    try:
        return tuple(cell.strip() for cell in next(csv.reader([line]), []))
    except csv.Error:
        return ()


def table(lines: Sequence[str], start: int, where: str, *, whole: bool) -> Table:
    """The table whose header is line `start` (from 0).

    Lines with another number of cells are taken as printed output and skipped. With `whole` the
    table ends at an empty line. Raises `TableError` for malformed CSV.
    """
    header = cells(lines[start])
    rows, count = [], 0
    reader = csv.reader(_body(lines, start + 1, whole), strict=True)
    try:
        for row in reader:
            if len(row) == len(header):
                values = dict(zip(header, row, strict=True))
                rows.append(Row(start + 1 + reader.line_num, values))
            elif row:
                count += 1
    except csv.Error as error:
        raise TableError(
            f"{where}:{start + 1 + reader.line_num}: not sound CSV ({error}); export it again"
        ) from None
    if not rows:
        raise TableError(f"{where}: the header stands alone; the file may be cut short")
    return Table(where, header, tuple(rows), count)


def _body(lines: Sequence[str], start: int, until_blank: bool) -> Iterator[str]:
    """The lines of a table; the profiler's own lines (==PROF== ...) become empty lines."""
    for place in range(start, len(lines)):
        line = lines[place]
        if until_blank and not line.strip():
            return
        yield "" if line.startswith("==") else line


def number(text: str) -> float | None:
    """A number as profilers write it: 1,234.5 and (other locales) 1.234,5 or 9,00.

    None for any other text, including infinities and NaN.
    """
    text = text.strip().strip('"')
    if _GROUPS.fullmatch(text):
        text = re.sub(r"(?<=\d)[,'\u00a0\u202f ](?=\d{3})", "", text)
    elif "," in text:
        text = text.replace(".", "").replace(",", ".")
    if not _NUMBER.fullmatch(text):
        return None
    value = float(text)
    return value if abs(value) < _MOST else None
