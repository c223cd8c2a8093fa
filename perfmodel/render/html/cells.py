"""Checks the numbers in rows of results, so that a damaged one is named by row and column."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from perfmodel.errors import TableError
from perfmodel.quantities import has_unit
from perfmodel.render.html.kind import flat


def check(
    rows: Sequence[Mapping[str, Any]],
    source: str,
    *,
    needed: Collection[str] = (),
    own: bool = True,
) -> None:
    """Check that a column has numbers or texts, not both, and that its unit has numbers.

    Every row has a value under the keys `needed`, and a time among them is above zero. Tables
    whose columns are not all the tool's `own` may mix texts with numbers where no unit is named.
    Raises `TableError` with row and column.
    """
    cells = [flat(row) for row in rows]
    for i, row in enumerate(rows, start=1):
        for key in needed:
            value = row.get(key)
            if value is None or (has_unit(key) and _is_number(value) and not value > 0):
                fault = "empty" if value is None else f"{value!r}, not above zero"
                raise _fault(source, i, key, fault)
        for key, value in row.items():
            if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
                check(value, f"{source}: row {i}, {key}", own=own)
    mixed = {key for row in cells for key, value in row.items() if own and _is_number(value)}
    for i, row in enumerate(cells, start=1):
        for key, value in row.items():
            if isinstance(value, str | bool) and value != "" and (key in mixed or has_unit(key)):
                raise _fault(source, i, key, f"{value!r}, not a number")


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _fault(source: str, row: int, column: str, fault: str) -> TableError:
    return TableError(f"{source}: row {row}, column {column}: {fault}; mend that cell, or drop it")
