"""Columns of the page's tables; a value's format follows from its key."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from perfmodel.columns import DIFFERS, Column
from perfmodel.quantities import header_of

_COMMON = 2  # number of rows from which equal values are shown above the table


def column(key: str, values: Iterable[Any], header: str = "") -> Column:
    """A column named and formatted by its key; text if any value is no number."""
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
        if value is not None
    )
    return Column(header or header_of(key), number=numeric, key=key)


def hidden(column: Column, rows: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the table of a page omits a column, as all rows have the same value; CSV has it."""
    return not column.header or (column.when == DIFFERS and not column.visible(rows))


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
        setting = len(rows) >= _COMMON and (field.kind == "text" or isinstance(values[0], int))
        fields.append(replace(field, when=DIFFERS if setting else ""))
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
