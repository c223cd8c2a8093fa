"""What a profiler saw: launches with their metrics, or sums over the runs of a range or a kernel.

A reader (`ncu`, `nsys`, `rocprof`, `traces`) makes one of these of a file; `profileformats` finds
the reader, `counters` makes measured runs of it.
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
_MOST = 1e30  # no counter and no time is larger


@dataclass(frozen=True)
class Launch:
    """One launch: its kernel, the ranges around it, seconds (None: not measured), raw metrics."""

    kernel: str
    seconds: float | None
    ranges: tuple[str, ...] = ()
    metrics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Instance:
    """Runs of a range: seconds of one, its first kernel, the launches of one, how many runs."""

    label: str
    seconds: float
    kernel: str
    launches: int
    repeats: int = 1


@dataclass(frozen=True)
class Summed:
    """A kernel by its name: seconds of one launch, and how many launches that stands for."""

    kernel: str
    seconds: float
    launches: int


@dataclass(frozen=True)
class Profile:
    """What a file holds, as one of `launches` (in order), `instances` or `kernels`.

    `tool` is what wrote it; `counted` turns a launch's metrics into columns (bytes, percent of a
    pipe's peak); `advice` says how to have bytes counted; `said` are lines for the user.
    """

    tool: str
    advice: str
    launches: tuple[Launch, ...] = ()
    instances: tuple[Instance, ...] = ()
    kernels: tuple[Summed, ...] = ()
    counted: Callable[[Mapping[str, float]], dict[str, float]] = dict
    said: tuple[str, ...] = ()


# ---- Tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """A line of a table: its number in the file, and its cells by column."""

    line: int
    cells: Mapping[str, str]

    def __getitem__(self, column: str) -> str:
        return self.cells[column].strip()

    def get(self, column: str) -> str:
        """A cell, empty where the table has no such column."""
        return self.cells.get(column, "").strip()


@dataclass(frozen=True)
class Table:
    """A profiler's table: the file's name, the columns, the rows, how many lines were no rows."""

    where: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    skipped: int = 0

    def positive(self, row: Row, column: str) -> float:
        """A cell that has to hold a number above 0; raises `TableError`, naming the place."""
        value = number(row[column])
        if value is None or value <= 0:
            raise TableError(
                f"{self.where}:{row.line}: {column} is {shown(row[column])}, not a number above 0"
            )
        return value

    def whole(self, row: Row, column: str) -> int:
        """A cell that has to hold a whole number above 0; raises `TableError`."""
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

    Lines with another number of cells are what somebody printed in between; with `whole` the table
    ends at an empty line. Raises `TableError` for CSV that is not sound.
    """
    header = cells(lines[start])
    rows, skipped = [], 0
    reader = csv.reader(_body(lines, start + 1, whole), strict=True)
    try:
        for row in reader:
            if len(row) == len(header):
                found = dict(zip(header, row, strict=True))
                rows.append(Row(start + 1 + reader.line_num, found))
            elif row:
                skipped += 1
    except csv.Error as error:
        raise TableError(
            f"{where}:{start + 1 + reader.line_num}: not sound CSV ({error}); export it again"
        ) from None
    if not rows:
        raise TableError(f"{where}: the header stands alone; the file may be cut short")
    return Table(where, header, tuple(rows), skipped)


def _body(lines: Sequence[str], start: int, whole: bool) -> Iterator[str]:
    """The lines of a table, those of the profiler's own (==PROF== ...) as empty ones."""
    for place in range(start, len(lines)):
        line = lines[place]
        if whole and not line.strip():
            return
        yield "" if line.startswith("==") else line


def number(text: str) -> float | None:
    """A number as profilers write it: 1,234.5 and (other locales) 1.234,5 or 9,00.

    None for anything else, what is not finite included.
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
