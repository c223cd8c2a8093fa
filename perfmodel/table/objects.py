"""Reads JSON as a table: one object a line, a list of objects, or one list inside an object."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.plaintext import quoted
from perfmodel.table.sheet import Sheet

_LISTS = ("rows", "results", "data", "benchmarks", "runs", "predictions")
_DEEPEST = 3  # objects inside objects become columns a.b.c
_SAID = "an object a line, or a list of objects"


def read(text: str, where: str) -> Sheet:
    """The table of a JSON text; raises `TableError` if there is none."""
    import pandas as pd

    rows, lines, faults = _objects(text, where)
    if not any(rows):
        raise TableError(f"{where}: no object with values; a JSON table is {_SAID}")
    names = dict.fromkeys(name for row in rows for name in row)
    frame = pd.DataFrame(
        {name: pd.Series([_cell(row.get(name)) for row in rows], dtype="str") for name in names}
    )
    return Sheet(where, frame, np.array(lines, dtype=np.int64), faults)


def _objects(text: str, place: str) -> tuple[list[dict[str, Any]], list[int], dict[int, str]]:
    """The objects, their lines (or numbers), and faults of items that are not objects."""
    items = _document(text)
    if items is not None:
        entries = list(enumerate(items, start=1))
        faults = {
            i: f"is {quoted(str(item), 40)}, no object"
            for i, (_, item) in enumerate(entries)
            if not isinstance(item, Mapping)
        }
    else:
        entries, faults = [], {}
        for number, line in enumerate(text.split("\n"), start=1):
            if not line.strip():
                continue
            item = _json(line)
            if not isinstance(item, Mapping):
                faults[len(entries)] = "is no JSON object"
            entries.append((number, item))
    if len(faults) == len(entries):
        raise TableError(f"{place}: not sound JSON; a JSON table is {_SAID}")
    rows = [dict(_cells(item)) if isinstance(item, Mapping) else {} for _, item in entries]
    return rows, [number for number, _ in entries], faults


def _document(text: str) -> Sequence[Any] | None:
    """The list in a single JSON document; None if each line is a document."""
    document = _json(text)
    if isinstance(document, list):
        return document
    if isinstance(document, Mapping):
        lists = [document[name] for name in _LISTS if isinstance(document.get(name), list)]
        return lists[0] if lists else [document]
    return None


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _cells(item: Mapping[str, Any], prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    for name, value in item.items():
        if isinstance(value, Mapping) and depth < _DEEPEST:
            yield from _cells(value, f"{prefix}{name}.", depth + 1)
        else:
            yield f"{prefix}{name}", value


def _cell(value: Any) -> str:
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return ""
    return value if isinstance(value, str) else json.dumps(value)
