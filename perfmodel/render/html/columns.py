"""Columns of the page's tables; a value's format follows from its key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.render.quantities import header_of, kind_of

_COMMON = 2  # number of rows from which equal values are shown above the table


@dataclass(frozen=True)
class Column:
    """One column of a table on the page."""

    key: str
    """Key of its values in a row."""
    header: str
    """Its heading."""
    kind: str
    """text, or a kind of numbers as in `quantities`."""
    hidden: bool = False
    """Whether the page's table omits it because all rows have the same value; the CSV includes
    it."""
    aside: bool = False
    """Whether it is told of a row that is pointed at, and is not in the table."""

    def as_dict(self) -> dict[str, Any]:
        """The column in the page's data."""
        marks = {"number": self.kind != "text", "hidden": self.hidden, "aside": self.aside}
        true = {name: True for name, mark in marks.items() if mark}
        return {"key": self.key, "header": self.header, **true}


def column(key: str, values: Iterable[Any], header: str = "") -> Column:
    """A column named and formatted by its key; text if any value is no number."""
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
        if value is not None
    )
    return Column(key, header or header_of(key), kind_of(key) if numeric else "text")


def columns(
    rows: Sequence[Mapping[str, Any]],
    first: Sequence[str] = (),
    left_out: str = "",
    headers: Mapping[str, str] | None = None,
) -> list[Column]:
    """Columns for all keys of any row: the keys `first`, then the others in their order.

    Keys that match the pattern `left_out` are omitted. A column of words or of whole numbers in
    which several rows agree is hidden. `headers` are headings that do not follow from the key.
    """
    keys = dict.fromkeys(key for row in rows for key in row)
    order = [*(key for key in first if key in keys), *(key for key in keys if key not in first)]
    fields = []
    for key in order:
        values = [row.get(key) for row in rows]
        if (left_out and re.search(left_out, key)) or all(v in (None, "") for v in values):
            continue
        field = column(key, values, (headers or {}).get(key, ""))
        constant = len(rows) >= _COMMON and len(set(map(str, values))) == 1
        setting = field.kind == "text" or isinstance(values[0], int)
        fields.append(replace(field, hidden=constant and setting))
    return fields


def telling(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], most: int = 60) -> list[str]:
    """Keys that distinguish rows, without redundant ones, up to `most` values."""
    by_groups: dict[tuple[int, ...], str] = {}
    for key in keys:
        indices: dict[str, int] = {}
        groups = tuple(indices.setdefault(str(row.get(key) or ""), len(indices)) for row in rows)
        if 1 < len(indices) <= most:
            by_groups.setdefault(groups, key)
    return list(by_groups.values())
