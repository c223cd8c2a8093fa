"""Reads files of the tool's results for a page.

A JSON document is recognised by the member that has its rows, a CSV by its header. A kind of
results is in one of two registries. Most are sections of their rows
(`perfmodel.render.html.kinds`). Some are cases with what-ifs, and these have a reader:

    @reader("answers")
    def answers(document, results, source): ...

Rows of no kind become a plain table.
"""

from __future__ import annotations

import csv
import io
import json
import math
import zlib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from perfmodel.documents import opened
from perfmodel.errors import TableError, reason
from perfmodel.plaintext import csv_text
from perfmodel.render.html import casereaders, cells
from perfmodel.render.html.kind import Document, of_header, told
from perfmodel.render.html.kinds import KINDS
from perfmodel.render.html.results import Results

Json = Mapping[str, Any]
Reader = Callable[[Json, Results, str], None]

READERS: dict[str, Reader] = {
    "predictions": casereaders.predictions,
    "graphs": casereaders.graphs,
    "whatif": casereaders.whatifs,
    "rows": casereaders.swept,
}
"""Readers by the member that identifies their documents."""

_LARGEST = 64 * 2**20  # limit on the bytes of a file
_NESTED = (
    *("problem", "terms_us", "flops", "bytes", "arithmetic_intensity"),
    *("footprints", "fits_at", "levels", "tile", "known"),
)
"""Members of a prediction whose own members are columns of a CSV."""
_SAYS = "perfmodel report reads JSON and CSV that perfmodel wrote"


def reader(member: str) -> Callable[[Reader], Reader]:
    """Register a reader of documents that have `member`."""

    def register(function: Reader) -> Reader:
        READERS[member] = function
        return function

    return register


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


def add(document: Json, results: Results, source: str) -> None:
    """Add the contents of a document. Raises `TableError` if it has no results."""
    kinds = [member for member in READERS if member in document
             and (member != "rows" or isinstance(document[member], list))]  # fmt: skip
    try:
        for member in kinds:
            READERS[member](document, results, source)
    except (LookupError, TypeError, AttributeError, ValueError) as error:
        text = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise TableError(f"{source}: {kinds[0]} are not as perfmodel writes them: {text}") from None
    words = [] if "predictions" in kinds else [*told([Document(source, [], document)])]
    if kinds:  # of predictions the fields tell the problem
        results.sentences += words
        return
    tables = {name: rows for name, rows in document.items() if _is_table(rows)}
    matches = [name for name, rows in tables.items() if _is_kind(name, rows)]
    if not tables:
        names = ", ".join(sorted({*READERS, *(name for name in KINDS if " " not in name)}))
        raise TableError(f"{source}: holds none of {names}, and no table; {_SAYS}")
    for name in matches:
        head = {key: value for key, value in document.items() if key != name}
        cells.check(tables[name], source, own=not KINDS[name].late)
        results.add_document(name, Document(source, tables[name], head))
    for name in () if matches else tables:
        results.add_table(f"{name} ({source})", tables[name])
    results.sentences += [] if matches else words


def _is_kind(name: str, rows: Iterable[Json]) -> bool:
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
    header = rows[0].keys()
    values = [{name: _value(cell) for name, cell in row.items() if name} for row in rows]
    kind = of_header(header)
    if kind is not None:
        cells.check(values, source, own=not KINDS[kind].late)
        results.add_document(kind, Document(source, values))
    elif {"algorithm", "time_us", "device"} <= header:
        cases = [{"problem": {}, **_prediction(row)} for row in values]
        casereaders.checked(cases, source)
        for case in cases:
            results.add_case(case, source)
    else:
        results.add_table(source, values)


def _prediction(row: Mapping[str, Any]) -> dict[str, Any]:
    """A flat row with the members of predictions nested again."""
    members: dict[str, Any] = {}
    groups: dict[str, dict[str, Any]] = {}
    for name, value in row.items():
        group = next((key for key in _NESTED if name.startswith(f"{key}_")), None)
        if group is None:
            members[name] = value
        elif value is not None:
            groups.setdefault(group, {})[name.removeprefix(f"{group}_")] = value
    text = str(members.get("assumptions") or "")
    return {**members, **groups, "assumptions": [line for line in text.split("; ") if line]}


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
