"""The cells of a row of a training-run table: empty ones, whole numbers, defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfmodel.errors import ProblemError

Row = Mapping[str, Any]


class Cells:
    """The cells of a row, and the defaults that replaced empty ones."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.assumed: list[str] = []

    def missing(self, name: str) -> bool:
        """Whether a cell is empty."""
        value = self.row.get(name)
        return value is None or value == "" or value != value

    def whole(self, name: str) -> int | None:
        """A whole number; None where the cell is empty."""
        return None if self.missing(name) else int(self.row[name])

    def needed(self, name: str) -> int:
        """A required whole number. Raises `ProblemError` where the cell is empty."""
        number = self.whole(name)
        if number is None:
            raise ProblemError(f"{name} is empty; fill the column")
        return number

    def usual(self, name: str, value: Any, why: str) -> Any:
        """A cell, or its default `value`, which is recorded with the reason."""
        if not self.missing(name):
            return self.row[name]
        self.assumed.append(f"{name} {value} ({why})")
        return value
