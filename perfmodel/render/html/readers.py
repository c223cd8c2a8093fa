"""Reads files of the tool's results for a page.

A JSON document is recognised by the member that has its rows, a CSV by its header; both are of a
kind (`perfmodel.render.html.kinds`). Rows of no kind become a plain table.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from perfmodel.columns import Row
from perfmodel.documents import opened
from perfmodel.errors import TableError, reason
from perfmodel.plaintext import csv_text
from perfmodel.render.html import cells
from perfmodel.render.html.kind import Document, of_header, told
from perfmodel.render.html.kinds import KINDS
from perfmodel.render.html.results import Results

_LARGEST = 64 * 2**20  # limit on the bytes of a file
_SAYS = "perfmodel report reads JSON and CSV that perfmodel wrote"


def read(path: str, results: Results) -> None:
    """Add the contents of a file. Raises `TableError` if it cannot be read or has no results."""
    name = Path(path).name
    text = _text(path)
    if name.lower().removesuffix(".gz").endswith(".csv"):
        _csv(text, results, name)
        return
    try:
        document = json.loads(text)
    except ValueError as error:
        raise TableError(f"{path}: not JSON ({error}); {_SAYS}") from None
    if not isinstance(document, dict):
        raise TableError(f"{path}: a JSON document without named members; {_SAYS}")
    add(document, results, name)


def add(document: Row, results: Results, source: str) -> None:
    """Add the contents of a document. Raises `TableError` if it has no results."""
    tables = {name: rows for name, rows in document.items() if _is_table(rows)}
    matches = [name for name, rows in tables.items() if _is_kind(name, rows)]
    if not tables:
        names = ", ".join(sorted(name for name in KINDS if " " not in name))
        raise TableError(f"{source}: holds none of {names}, and no table; {_SAYS}")
    for name in matches:
        head = {key: value for key, value in document.items() if key != name}
        _add(name, Document(source, tables[name], head), results)
    for name in () if matches else tables:
        results.add_table(f"{name} ({source})", tables[name])
    results.sentences += [] if matches else told([Document(source, [], document)])


def _add(name: str, document: Document, results: Results) -> None:
    kind = KINDS[name]
    cells.check(document.rows, document.source, needed=kind.needed, own=not kind.late)
    results.add_document(name, document)


def _is_kind(name: str, rows: Iterable[Row]) -> bool:
    """Whether the rows under a member of that name have the keys of the kind."""
    return name in KINDS and all(row.keys() >= set(KINDS[name].keys) for row in rows)


def _is_table(rows: Any) -> bool:
    return isinstance(rows, list) and bool(rows) and all(isinstance(row, dict) for row in rows)


def _text(path: str) -> str:
    try:
        if Path(path).stat().st_size > _LARGEST:
            raise TableError(f"{path}: larger than 64 MiB; choose some of its rows")
        with opened(path) as file:
            return file.read().decode("utf-8")
    except (OSError, EOFError, zlib.error) as error:
        cause = reason(error) if isinstance(error, OSError) else "cut short"
        raise TableError(f"cannot read {path}: {cause}") from None
    except UnicodeDecodeError:
        raise TableError(f"{path}: not UTF-8 text; {_SAYS}") from None


def _csv(text: str, results: Results, source: str) -> None:
    """A table by its header."""
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline="")))
    except csv.Error as error:
        raise TableError(f"{source}: not CSV ({error}); {_SAYS}") from None
    if not rows:
        raise TableError(f"{source}: no row below the header, so there is nothing to report")
    values = [{name: _value(cell) for name, cell in row.items() if name} for row in rows]
    kind = of_header(rows[0])
    if kind is not None:
        _add(kind, Document(source, values), results)
    else:
        results.add_table(source, values)


def _value(cell: str | Iterable[str] | None) -> Any:
    """A cell as a number, a boolean, a text, or None if empty."""
    if cell is None or cell == "" or not isinstance(cell, str):
        return None
    if cell in ("True", "False"):
        return cell == "True"
    try:
        number = float(cell)
    except ValueError:
        return csv_text(cell)
    if not math.isfinite(number):
        return None
    return int(number) if number.is_integer() and "." not in cell and "e" not in cell else number
