"""Reads text with a separator: commas, semicolons, tabs, or the bars of a Markdown table.

The separator is the one that splits the heading into most cells. Comments (#, ==), empty lines and
`sep=;` may come before the headings, and a line of Markdown's dashes or of units after them.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

import numpy as np

from perfmodel.errors import TableError
from perfmodel.plaintext import csv_text
from perfmodel.table.sheet import Sheet
from perfmodel.table.vocabulary import vocabulary

_SEPARATORS = (",", ";", "\t", "|")
_MARKER = re.compile(r"sep=.\s*", re.IGNORECASE)
_COMMENT = ("#", "==", "//", "%")
_RULE = re.compile(r"[\s|:+-]*-[\s|:+-]*")

Row = tuple[int, list[str]]
"""A line's number, and its cells."""


def read(text: str, where: str, notes: tuple[str, ...] = ()) -> Sheet:
    """The table of a text; raises `TableError` if there is none or a quote is not closed."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    start = _start(lines)
    if start is None:
        raise TableError(f"{where}: no line of column names; a table starts with one")
    heading = lines[start].lstrip("#%").strip() if lines[start][:1] in "#%" else lines[start]
    separator = _separator(heading)
    body = [heading, *lines[start + 1 :]]
    if separator == "|":
        body = [_row_text(line) for line in body]
    (_, first), *rows = _rows(body, start, separator, where)
    del lines, body  # twice the file's size
    return _sheet([csv_text(name.strip()) for name in first], rows, where, separator, notes)


def _start(lines: Sequence[str]) -> int | None:
    """The line of the headings: the first that is not a comment, or a comment that is a heading."""
    comment = None
    for place, line in enumerate(lines):
        if not line.strip() or _MARKER.fullmatch(line):
            continue
        if not line.startswith(_COMMENT):
            if comment is not None and _is_heading(lines[comment], line):
                return comment
            return place
        comment = place
    return None


def _is_heading(comment: str, line: str) -> bool:
    """Whether a comment holds the headings: it has as many cells as the next line, and several."""
    names = comment.lstrip("#% ")
    separator = _separator(names)
    cells = line.split(separator)
    return len(cells) > 1 and len(names.split(separator)) == len(cells) and _any_number(cells)


def _any_number(cells: Sequence[str]) -> bool:
    return any(cell.strip()[:1].isdigit() for cell in cells)


def _separator(heading: str) -> str:
    counts = {separator: len(_cells(heading, separator)) for separator in _SEPARATORS}
    return max(_SEPARATORS, key=lambda separator: counts[separator])


def _cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator), [])
    except csv.Error:
        return []


def _row_text(line: str) -> str:
    """A line of a Markdown table without its outer bars; a line of dashes becomes empty."""
    if _RULE.fullmatch(line):
        return ""
    return line.strip().removeprefix("|").removesuffix("|")


def _rows(body: Sequence[str], start: int, separator: str, place: str) -> list[Row]:
    """The cells of each row, equal ones once in memory; a quoted cell may span several lines."""
    reader = csv.reader((f"{line}\n" for line in body), delimiter=separator, strict=True)
    rows: list[Row] = []
    texts: dict[str, str] = {}
    try:
        last = 0
        for cells in reader:
            if cells:
                rows.append((start + last + 1, [texts.setdefault(cell, cell) for cell in cells]))
            last = reader.line_num
    except csv.Error as error:
        raise TableError(f"{place}: not sound CSV ({error}); mend or write it again") from None
    return rows


def _sheet(
    heading: list[str], rows: list[Row], place: str, separator: str, notes: tuple[str, ...]
) -> Sheet:
    import pandas as pd

    heading, repeats = _headings(heading)
    rows = [(line, _trim(cells, len(heading))) for line, cells in rows]
    units, rows = _units(heading, rows)
    faults = {
        i: f"has {len(cells)} cells where the heading has {len(heading)}"
        for i, (_, cells) in enumerate(rows)
        if len(cells) != len(heading)
    }
    if rows and len(faults) == len(rows):
        raise TableError(
            f"{place}:{rows[0][0]}: every row {faults[0]}; the file may be cut short or cells with "
            "commas lack quotes: write it again"
        )
    none = [""] * len(heading)
    table = [none if i in faults else cells for i, (_, cells) in enumerate(rows)]
    columns = zip(*table, strict=True) if table else [()] * len(heading)
    frame = pd.DataFrame(
        {
            name: pd.Series([csv_text(cell.strip()) for cell in cells], dtype="str")
            for name, cells in zip(heading, columns, strict=True)
        }
    )
    lines = np.array([line for line, _ in rows], dtype=np.int64)
    comma = separator == ";"
    return Sheet(place, frame, lines, faults, units, comma=comma, twice=repeats, notes=notes)


def _headings(heading: list[str]) -> tuple[list[str], frozenset[str]]:
    """The headings, where empty and repeated ones get "(column N)"; and the repeated names."""
    names: list[str] = []
    repeats = set()
    for place, name in enumerate(heading, start=1):
        if name in names:
            repeats.add(name)
        names.append(name if name and name not in names else f"{name} (column {place})".strip())
    return names, frozenset(repeats)


def _trim(cells: list[str], width: int) -> list[str]:
    """A row without the empty cells of trailing separators."""
    while len(cells) > width and not cells[-1].strip():
        cells = cells[:-1]
    return cells


def _units(heading: list[str], rows: list[Row]) -> tuple[dict[str, str], list[Row]]:
    """Units by column, from a first row that holds only units; and the other rows."""
    if not rows or len(rows[0][1]) != len(heading):
        return {}, rows
    names = vocabulary().units
    texts = {name: cell.strip("()[] ") for name, cell in zip(heading, rows[0][1], strict=True)}
    units = {name: cell for name, cell in texts.items() if cell not in ("", "-")}
    if not units or not all(cell.lower() in names or cell == "%" for cell in units.values()):
        return {}, rows
    return units, rows[1:]
