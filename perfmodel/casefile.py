"""Cases that a user listed: a table in the columns of the measured-run table, one case a row."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import dataclass, fields
from pathlib import Path

from perfmodel import documents
from perfmodel.cases import Case, from_label
from perfmodel.errors import PerfmodelError, TableError
from perfmodel.plaintext import whole_number

NEEDED = ("op", "dtype")
_MOST_LAUNCHES = 1_000_000
_LONGEST = 300  # characters of a message that quotes a label
_WANTED = "a table of cases, a .csv with the columns op and dtype"


@dataclass(frozen=True)
class Listed:
    """A case of a table."""

    case: Case
    """The case."""
    implementation: str
    """Who ran it; empty where the table does not say."""
    launches: int
    """Launches that it takes."""
    kernel: str
    """The kernel that ran it, or several separated by ";". Only needed for profiles that give sums
    over launches."""
    where: str
    """File and line."""


def read(path: str | Path) -> list[Listed]:
    """Every case in the order of the file; raises `TableError`, naming the line."""
    text = documents.text(path, _WANTED)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        lines = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise TableError(f"{path}:{reader.line_num}: not sound CSV ({error})") from None
    header = [name.strip() for name in lines[0][1]] if lines else []
    if not set(NEEDED) <= set(header) or len(lines) < 2:
        raise TableError(f"{path}: not {_WANTED} and a row for each case")
    return list(_entries(header, lines[1:], str(path)))


def _entries(header: list[str], lines: list[tuple[int, list[str]]], path: str) -> Iterator[Listed]:
    for line, row in lines:
        place = f"{path}:{line}"
        if len(row) != len(header):
            raise TableError(f"{place}: {len(row)} cells where the header has {len(header)}")
        cells = {name: text.strip() for name, text in zip(header, row, strict=True)}
        yield Listed(
            _case(cells, place),
            cells.get("implementation", ""),
            _launches(cells.get("kernels", ""), place),
            cells.get("kernel", ""),
            place,
        )


def _case(cells: dict[str, str], place: str) -> Case:
    words = [
        f"{item.name}={cells[item.name].removesuffix('.0')}"
        for item in fields(Case)
        if cells.get(item.name)
    ]
    return case("|".join(("perfmodel", *words)), place)


def case(label: str, where: str) -> Case:
    """The case that a label names; raises `TableError` with file and line if it names none."""
    try:
        return from_label(label)
    except (PerfmodelError, ValueError) as error:
        text = " ".join(str(error).split())
        raise TableError(f"{where}: {text[:_LONGEST]}") from None


def _launches(text: str, place: str) -> int:
    if not text:
        return 1
    launches = whole_number(text)
    if launches is not None and 0 < launches <= _MOST_LAUNCHES:
        return launches
    raise TableError(f"{place}: kernels is {documents.shown(text)}, not a number of launches")
