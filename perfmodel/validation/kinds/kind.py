"""What a kind of table brings along: its reader, its predictor and its columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any

from perfmodel.errors import UnknownName
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
    read: Callable[[Sequence[str]], pd.DataFrame]
    """Reads and checks files; raises `TableError`."""
    predict: Callable[[pd.DataFrame], pd.DataFrame]
    """The table with the columns of `fields`, and `reason` where a row is not predicted."""
    remarks: Callable[[pd.DataFrame, Sequence[str]], Remarks]
    """What else is to be said of a predicted table, grouped by columns."""
    explain: Callable[[pd.DataFrame], list[str]] | None = None
    """What its residuals look like, in words; None where nothing of the kind is known."""
    micros: bool = True
    """Whether all measurements are microseconds, so that a chart can show them on one axis."""


def load(name: str) -> Kind:
    """The kind of that name; raises `UnknownName`."""
    if name not in KINDS:
        raise UnknownName("kind of table", name, KINDS)
    found = import_module(f"perfmodel.validation.kinds.{name}").KIND
    assert isinstance(found, Kind)
    return found
