"""SQLite files of profilers, opened read-only; every error is one line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from perfmodel.documents import shown
from perfmodel.errors import TableError

MAGIC = b"SQLite format 3\x00"


class Database:
    """A profiler's SQLite file: its tables and their rows."""

    def __init__(self, connection: sqlite3.Connection, place: str) -> None:
        self.connection, self.where = connection, place
        names = connection.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")
        self.tables = tuple(str(name) for (name,) in names)

    def rows(
        self, table: str, columns: tuple[str, ...], order: str = ""
    ) -> Iterator[tuple[Any, ...]]:
        """Rows with the given columns, which differ by version: one that the table lacks is None.

        None where there is no such table.
        """
        if table not in self.tables:
            return
        existing = [
            row[1] for row in self.connection.execute(f"PRAGMA table_info({_quote(table)})")
        ]
        selection = ", ".join(_quote(name) if name in existing else "NULL" for name in columns)
        ordering = f" ORDER BY {_quote(order)}" if order else ""
        yield from self.connection.execute(f"SELECT {selection} FROM {_quote(table)}{ordering}")

    def span(self, start: object, end: object) -> tuple[float, float, str]:
        """Start and duration of a launch in nanoseconds, or what is wrong with its times."""
        first, last = whole(start), whole(end)
        if first is None or last is None or last < first:
            return 0.0, 0.0, f"{self.where}: a launch from {shown(start)} to {shown(end)} ns"
        return float(first), float(last - first), ""


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@contextmanager
def opened(path: str | Path) -> Iterator[Database]:
    """A database opened read-only; raises `TableError` for a file that is not one, or a damaged
    one."""
    place = str(path)
    try:
        url = f"file:{quote(str(Path(path).absolute()))}?mode=ro"
        with closing(sqlite3.connect(url, uri=True)) as connection:
            yield Database(connection, place)
    except (sqlite3.Error, UnicodeDecodeError, OverflowError, ValueError) as error:
        text = " ".join(str(error).split())[:160]
        raise TableError(f"{place}: not a sound SQLite file ({text}); export it again") from None


def whole(value: object, least: int = -(2**62)) -> int | None:
    """A cell as a whole number; None for any other cell."""
    if isinstance(value, int) and not isinstance(value, bool) and least <= value < 2**62:
        return value
    return None
