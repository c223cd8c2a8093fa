"""The interface of a kind of table: its columns, reader and predictor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import UnknownName
from perfmodel.table import cells
from perfmodel.table.layout import Layout
from perfmodel.validation.judging import Fields, by_knowledge, counted

if TYPE_CHECKING:
    import pandas as pd

# Each kind is a module of this package, which is imported by `load`.
KINDS = {
    "operator": "measured runs of one operator each",
    "training": "training steps and passes of whole networks",
    "collective": "measured collectives: all-reduce, all-gather, ...",
    "serving": "served networks: first tokens, times between tokens, rates",
}
"""Each kind by name, with what its rows are."""
SHOWN = 5
"""Remarks of one sort that are printed."""


@dataclass(frozen=True)
class Remarks:
    """The remarks of a report, besides its errors."""

    head: dict[str, Any] = field(default_factory=dict)
    """Values by name, for JSON."""
    notes: list[str] = field(default_factory=list)
    """Lines under the table."""


@dataclass(frozen=True)
class Kind:
    """One kind of table."""

    fields: Fields
    """Its columns of measurements and predictions."""
    group: str
    """The default column for the colours of a chart."""
    layout: Layout
    """The columns that its files are read into."""
    predict: Callable[[pd.DataFrame], pd.DataFrame]
    """Adds the predicted columns of `fields` to a table, and `reason` for rows without a
    prediction."""
    example: Mapping[str, str]
    """An example row without the measurement, for a template; empty for `operator`, whose templates
    differ."""
    knowledge: str
    """Begins the line on rows of which the same is known; `{device}` stands for its level."""
    assumed: str = "assumed"
    """The column of assumptions."""
    further: Callable[[pd.DataFrame, Sequence[str], Remarks], Remarks] | None = None
    """Adds to the remarks on a predicted table, from the table and the columns of its groups."""
    explain: Callable[[pd.DataFrame], list[str]] | None = None
    """Explains residuals in words; None if not available."""
    micros: bool = True
    """Whether all measurements are microseconds, so that a chart can show them on one axis."""

    def remarks(self, table: pd.DataFrame, by: Sequence[str]) -> Remarks:
        """The remarks on a predicted table: assumptions, and the coverage of ranges by what was
        known. `by` are the columns of its groups."""
        assumed, groups = counted(table[self.assumed]), by_knowledge(table, fields=self.fields)
        notes = [f"{count} rows assumed: {text}" for text, count in assumed.items()][:SHOWN]
        notes += [
            f"{self.knowledge.format(**line)}: {line['n']} rows, median |ln| "
            f"{line['median_abs_ln']:.2f}, {line['coverage']:.0%} in ranges of "
            f"{line['width_ln']:.2f} in ln"
            for line in groups
        ]
        remarks = Remarks({"assumed": assumed, "known": groups}, notes)
        return remarks if self.further is None else self.further(table, by, remarks)

    @property
    def template(self) -> str:
        """CSV with the example's columns, the measured column, and the example's row."""
        head, row = (*self.example, self.layout.measured), (*self.example.values(), "")
        return f"{','.join(head)}\n{','.join(row)}\n"

    def predicted(self, table: pd.DataFrame, faults: pd.Series[str]) -> pd.DataFrame:
        """The table with predictions; a bad row is kept, with its fault as the reason.

        `faults` has the fault of each row, by the table's index.
        """
        import pandas as pd

        mask = (faults.loc[table.index] == "").to_numpy()
        if mask.all():
            return self.predict(table.reset_index(drop=True))
        predicted = self.predict(table[mask].reset_index(drop=True))
        places = np.where(mask, np.cumsum(mask) - 1, -1)  # of each row among the good ones
        # Only columns that the prediction wrote are spread over all rows.
        frame = table.reset_index(drop=True)
        for name in predicted.columns.to_list():
            column = predicted.pop(name)
            if name in frame and column.equals(frame[name][mask].reset_index(drop=True)):
                continue
            values = column.reindex(places).set_axis(frame.index)
            is_number = column.dtype.kind in "iufb"
            frame[name] = values if is_number else cells.reader(column)(values)
        reasons = frame["reason"].astype(object).where(mask, faults.loc[table.index].to_numpy())
        frame["reason"] = cells.reader(frame["reason"])(pd.Series(reasons, dtype="str"))
        return frame


def load(name: str) -> Kind:
    """The kind of that name; raises `UnknownName`."""
    if name not in KINDS:
        raise UnknownName("kind of table", name, KINDS)
    kind = import_module(f"perfmodel.validation.kinds.{name}").KIND
    assert isinstance(kind, Kind)
    return kind
