"""A table as it is in its file: headings, cells as written, and each row's line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Sheet:
    """One table of a file. Cells are text in text files, else of the file's types."""

    where: str
    """The file's name in messages."""
    frame: pd.DataFrame
    """Cells by heading; rows are numbered from 0."""
    lines: np.ndarray
    """The line of each row in the file; its number from 1 in files without lines."""
    faults: Mapping[int, str] = field(default_factory=dict)
    """Faults of malformed rows by number: too few cells, not an object."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of columns from a row of units below the headings."""
    twice: frozenset[str] = frozenset()
    """Headings of more than one column."""
    lined: bool = True
    """Whether `lines` are lines of a text."""
    comma: bool = False
    """Whether the file's format suggests decimal commas (cells separated by semicolons)."""
    notes: tuple[str, ...] = ()
    """Lines about what was left out."""

    @property
    def headings(self) -> list[str]:
        """The headings in their order."""
        return [str(name) for name in self.frame.columns]

    def place(self, row: int) -> str:
        """File and line of a row."""
        number = self.lines[row]
        return f"{self.where}:{number}" if self.lined else f"{self.where}, row {number}"
