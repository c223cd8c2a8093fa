"""The columns of a kind of table: their names, and the types of their cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.table import cells
from perfmodel.table.headings import without_unit
from perfmodel.table.sheet import Sheet
from perfmodel.table.vocabulary import Unit

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Layout:
    """The columns of a kind of table. Other columns are kept unchanged."""

    needed: tuple[str, ...]
    """Columns that a table must have."""
    measured: str
    """The column of the measurement: a positive number in every row."""
    text: tuple[str, ...] = ()
    """Columns of text; a missing cell is empty."""
    whole: tuple[str, ...] = ()
    """Columns of whole numbers; a cell may be missing."""
    numbers: tuple[str, ...] = ()
    """Columns of numbers; a cell may be missing."""
    truth: tuple[str, ...] = ()
    """Columns of booleans; a cell may be missing."""
    template: str = ""
    """The name of its template in `compare --template`; empty if it has none."""

    adapted: Callable[[Sheet], Sheet] | None = None
    """Turns results of known tools, which lay them out otherwise, into rows of this kind."""

    @property
    def unit(self) -> Unit | None:
        """The unit of time from the name of `measured`; None if it is not a time."""
        unit = without_unit(self.measured)[1]
        return unit if unit is not None and unit.kind == "time" else None

    def example(self, frame: pd.DataFrame) -> str:
        """An example for an error message: the command for a template, or the needed columns."""
        if self.template:
            return f"perfmodel compare --template {self.template}"
        return ",".join(dict.fromkeys((*self.needed, self.measured)))

    @property
    def wanted(self) -> str:
        """The valid values of a measurement, in words."""
        return "a positive number"

    def columns(self) -> tuple[str, ...]:
        """Every column but `measured`."""
        return tuple(
            name
            for name in dict.fromkeys(
                (*self.needed, *self.text, *self.whole, *self.numbers, *self.truth)
            )
            if name != self.measured
        )

    def of(self, sheet: Sheet, stated: Mapping[str, str], mapping: Mapping[str, str]) -> Layout:
        """The layout for one table, with its own columns added to those of every table."""
        return self

    def completed(self, frame: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
        """The table with columns filled in from others, and notes about them."""
        return frame, []

    def lacking(self, frame: pd.DataFrame) -> list[str]:
        """The needed columns that a table lacks."""
        return [name for name in self.needed if name not in frame and name != self.measured]

    def needed_by(self, name: str) -> list[str]:
        """The operators whose rows need the column `name`, if not all do."""
        return []

    def sound(self, values: np.ndarray) -> np.ndarray:
        """Which values are valid measurements, as booleans."""
        return (values > 0) & (values < np.inf)

    def seconds(self, frame: pd.DataFrame, kind: str, rates: np.ndarray, flops: str) -> np.ndarray:
        """Times of runs whose rate was measured; `kind` is flops or bandwidth, per second.

        `flops` says how operations were counted. Raises `TableError` if a row's work is not known
        from its columns.
        """
        raise TableError(f"a rate of {kind} says no time of such a run; give a column of times")

    def work(self, frame: pd.DataFrame, kind: str, flops: str) -> np.ndarray | None:
        """Operations (`kind` flops) or bytes (bandwidth) of each row; None where unknown."""
        return None

    def typed(self, table: pd.DataFrame, where: str = "table") -> pd.DataFrame:
        """`table` with every column of the layout, in its type; raises `TableError`."""
        import pandas as pd

        gaps = [name for name in self.needed if name not in table.columns]
        if gaps:
            names = ", ".join(str(name) for name in table.columns[:40])
            raise TableError(f"{where}: no column {' or '.join(gaps)}; it has: {names}")
        columns: dict[str, Any] = {name: _text(table, name) for name in self.text}
        columns |= {name: cells.whole(table, name, where) for name in self.whole}
        columns |= {name: _numbers(table, name, where) for name in self.numbers}
        columns |= {name: cells.truth(table, name, where) for name in self.truth}
        measured = cells.numbers(table, self.measured, where).astype("float64")
        name = f"{where}: {self.measured}"
        valid = pd.Series(self.sound(measured.to_numpy()), index=table.index)
        cells.refuse(~valid, cells.text(table[self.measured]), name, f"is not {self.wanted}")
        columns[self.measured] = measured
        originals = {str(name): table[name] for name in table.columns}
        return pd.DataFrame({**originals, **columns}, index=table.index)


def _text(table: pd.DataFrame, name: str) -> Any:
    return cells.text(table[name]) if name in table.columns else ""


def _numbers(table: pd.DataFrame, name: str, place: str) -> Any:
    if name not in table.columns:
        return float("nan")
    return cells.numbers(table, name, place).astype("float64")
