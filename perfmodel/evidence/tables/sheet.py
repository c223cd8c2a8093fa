"""A table as its file has it: headings, cells as they are written, and where each row stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Sheet:
    """One table of a file. Cells are text where the file holds text, else of the file's types."""

    where: str
    """The file, as messages call it."""
    frame: pd.DataFrame
    """Cells by heading; rows are numbered from 0."""
    lines: np.ndarray
    """The line of the file that each row stands on; its number from 1 where there are no lines."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Rows that are none, by number, and why: too few cells, no object."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of columns that stand in a row below the headings."""
    twice: frozenset[str] = frozenset()
    """Headings that stand over more columns than one."""
    lined: bool = True
    """Whether `lines` are lines of a text."""
    comma: bool = False
    """Whether a comma may be the decimal mark by the look of the file (cells by semicolons)."""
    notes: tuple[str, ...] = ()
    """What was passed over."""

    @property
    def headings(self) -> list[str]:
        """The headings in their order."""
        return [str(name) for name in self.frame.columns]

    def place(self, row: int) -> str:
        """File and line of a row."""
        number = self.lines[row]
        return f"{self.where}:{number}" if self.lined else f"{self.where}, row {number}"
