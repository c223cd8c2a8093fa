"""Tables of runs other than of one operator: collectives, training, serving.

    read_runs("collectives.csv.gz", Layout(needed=("device", "latency_us"), ...))

Every table is read and checked alike: a `Layout` says which columns there are and what their cells
hold. One message names every column that is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perfmodel.errors import TableError
from perfmodel.evidence.records import cells
from perfmodel.evidence.records.records import read_files

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Layout:
    """The columns of a kind of table. Others stay as they are."""

    needed: tuple[str, ...]
    """Columns that a table must have."""
    measured: str
    """The column of what was measured: a positive number in every row."""
    text: tuple[str, ...] = ()
    """Columns of text, empty where there is none."""
    whole: tuple[str, ...] = ()
    """Columns of whole numbers, missing where there is none."""
    numbers: tuple[str, ...] = ()
    """Columns of numbers, missing where there is none."""
    truth: tuple[str, ...] = ()
    """Columns of true and false, missing where there is none."""

    def typed(self, table: pd.DataFrame, where: str = "table") -> pd.DataFrame:
        """`table` with every column of the layout, in its type; raises `TableError`."""
        import pandas as pd

        missing = [name for name in self.needed if name not in table.columns]
        if missing:
            has = ", ".join(str(name) for name in table.columns[:40])
            raise TableError(f"{where}: no column {' or '.join(missing)}; it has: {has}")
        found: dict[str, Any] = {name: _text(table, name) for name in self.text}
        found |= {name: cells.whole(table, name, where) for name in self.whole}
        found |= {name: _numbers(table, name, where) for name in self.numbers}
        found |= {name: cells.truth(table, name, where) for name in self.truth}
        measured = cells.numbers(table, self.measured, where).astype("float64")
        good = (measured > 0) & (measured < float("inf"))
        name = f"{where}: {self.measured}"
        cells.refuse(~good, cells.text(table[self.measured]), name, "is not a positive number")
        found[self.measured] = measured
        held = {str(name): table[name] for name in table.columns}
        return pd.DataFrame({**held, **found}, index=table.index)


def read_runs(paths: str | Path | Iterable[str | Path], layout: Layout) -> pd.DataFrame:
    """The rows of one or more tables of a layout; `-` reads CSV from standard input.

    Raises `TableError`, one line, for a file or a value that is not what it should be.
    """
    return read_files(paths, layout.typed)


def _text(table: pd.DataFrame, name: str) -> Any:
    return cells.text(table[name]) if name in table.columns else ""


def _numbers(table: pd.DataFrame, name: str, where: str) -> Any:
    if name not in table.columns:
        return float("nan")
    return cells.numbers(table, name, where).astype("float64")
