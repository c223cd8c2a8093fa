"""What a kind of table brings along: its reader, its predictor and its columns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from perfmodel.errors import UnknownName
from perfmodel.evidence.tables.layout import Layout
from perfmodel.validation.judging import Fields

if TYPE_CHECKING:
    import pandas as pd

# A kind is a module of this package, which is imported when its kind is asked for.
KINDS = {
    "operator": "measured runs of one operator each",
    "training": "training steps and passes of whole networks",
    "collective": "measured collectives: all-reduce, all-gather, ...",
    "serving": "served networks: first tokens, times between tokens, rates",
}
"""Name of each kind, and what a row of its table is."""


@dataclass(frozen=True)
class Remarks:
    """What a report says of a table beside its errors."""

    head: dict[str, Any] = field(default_factory=dict)
    """Plain values by name, for JSON."""
    notes: list[str] = field(default_factory=list)
    """Lines under the table."""


@dataclass(frozen=True)
class Kind:
    """One kind of table."""

    fields: Fields
    """Its columns of measurements and predictions."""
    group: str
    """The column that a chart is coloured by where none is named."""
    layout: Layout
    """The columns that its files are read into."""
    predict: Callable[[pd.DataFrame], pd.DataFrame]
    """The table with the columns of `fields`, and `reason` where a row is not predicted."""
    example: Mapping[str, str]
    """A row without what was measured, for a table to fill in; empty where operators have them."""
    remarks: Callable[[pd.DataFrame, Sequence[str]], Remarks]
    """What else is to be said of a predicted table, grouped by columns."""
    explain: Callable[[pd.DataFrame], list[str]] | None = None
    """What its residuals look like, in words; None where nothing of the kind is known."""
    micros: bool = True
    """Whether all measurements are microseconds, so that a chart can show them on one axis."""

    @property
    def template(self) -> str:
        """CSV of the example's columns and what is measured, and the example's row."""
        head, row = (*self.example, self.layout.measured), (*self.example.values(), "")
        return f"{','.join(head)}\n{','.join(row)}\n"

    def predicted(self, table: pd.DataFrame, faults: pd.Series[str]) -> pd.DataFrame:
        """A table that was read, with predictions; a bad row keeps its place and its fault.

        `faults` has what is wrong with each row, by the table's index.
        """
        import pandas as pd

        said = faults.loc[table.index]
        good = said == ""
        found = self.predict(table[good].reset_index(drop=True))
        if good.all():
            return found
        found.index = table.index[good]
        bad = table[~good]
        # Columns that the prediction wrote, be it over some of the table's own.
        written = [
            name for name in found if name not in bad or not found[name].equals(table[name][good])
        ]
        empty: dict[str, Any] = {
            str(name): float("nan") if found[name].dtype.kind in "iufb" else "" for name in written
        }
        bad = bad.assign(**empty).assign(reason=said[~good])
        return pd.concat([found, bad]).loc[table.index].reset_index(drop=True)


def load(name: str) -> Kind:
    """The kind of that name; raises `UnknownName`."""
    if name not in KINDS:
        raise UnknownName("kind of table", name, KINDS)
    found = import_module(f"perfmodel.validation.kinds.{name}").KIND
    assert isinstance(found, Kind)
    return found
