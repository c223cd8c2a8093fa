"""A profiler's CSV: its header somewhere in the text, rows that are read one after another.

Profilers and the program print lines of their own around and between the rows; they are left out.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from perfmodel.documents import shown
from perfmodel.errors import TableError

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?", re.ASCII)
_GROUPS = re.compile(r"[+-]?\d{1,3}([,'\u00a0\u202f ]\d{3})+(\.\d+)?", re.ASCII)
_MOST = 1e30  # no counter or time is larger


@dataclass(frozen=True)
class Row:
    """A line of a table."""

    place: str
    """File and line."""
    cells: Mapping[str, str]
    """Its cells by column."""

    def __getitem__(self, column: str) -> str:
        return self.cells[column].strip()

    def get(self, column: str) -> str:
        """A cell, empty where the table has no such column."""
        return self.cells.get(column, "").strip()

    def positive(self, column: str) -> float:
        """The cell as a number above 0; raises `TableError` with file and line for any other."""
        value = number(self[column])
        if value is None or value <= 0:
            raise TableError(
                f"{self.place}: {column} is {shown(self[column])}, not a number above 0"
            )
        return value

    def integer(self, column: str) -> int:
        """The cell as a whole number above 0; raises `TableError` likewise."""
        value = self.positive(column)
        if value != int(value):
            raise TableError(f"{self.place}: {column} is {shown(self[column])}, not whole")
        return int(value)


class Table:
    """The table whose header is a line of a text.

    With `until_blank` it ends at an empty line. Raises `TableError` where no row follows.
    """

    def __init__(
        self, lines: Sequence[str], start: int, where: str, *, until_blank: bool = False
    ) -> None:
        self.where, self.columns = where, cells(lines[start])
        self.skipped = 0
        """Lines that were not rows and were left out, once all rows are read."""
        self._lines, self._start, self._until_blank = lines, start + 1, until_blank
        if next(self.rows(), None) is None:
            raise TableError(f"{where}: the header stands alone; the file may be cut short")

    def rows(self) -> Iterator[Row]:
        """Every row; a line with another number of cells is taken as printed output.

        Raises `TableError` for malformed CSV.
        """
        self.skipped = 0
        reader = csv.reader(self._body(), strict=True)
        try:
            for row in reader:
                if len(row) == len(self.columns):
                    place = f"{self.where}:{self._start + reader.line_num}"
                    yield Row(place, dict(zip(self.columns, row, strict=True)))
                elif row:
                    self.skipped += 1
        except csv.Error as error:
            raise TableError(
                f"{self.where}:{self._start + reader.line_num}: not sound CSV ({error}); export it "
                "again"
            ) from None

    def _body(self) -> Iterator[str]:
        """The lines below the header; the profiler's own (==PROF== ...) become empty lines."""
        for i in range(self._start, len(self._lines)):
            line = self._lines[i]
            if self._until_blank and not line.strip():
                return
            yield "" if line.startswith("==") else line


def cells(line: str) -> tuple[str, ...]:
    """The cells of one line of CSV; none where it is not CSV."""
    try:
        return tuple(cell.strip() for cell in next(csv.reader([line]), []))
    except csv.Error:
        return ()


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
