"""Rows of tables that name an operator by other words and sizes, as rows of a declared one.

`families.yaml` says which rows these are and what the operator's parameters are in their columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel import yamltable
from perfmodel.algorithms.expressions import evaluate, names
from perfmodel.entries import made
from perfmodel.table import cells
from perfmodel.table.sheet import Sheet

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Family:
    """Rows of one kind."""

    rows: Mapping[str, str]
    """Columns, each with a regular expression that matches its whole cell: op, variant, phase."""
    operator: str
    """The operator that they time."""
    sizes: Mapping[str, Any]
    """Its parameters, as expressions of the row's columns."""
    words: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    """Numbers that words in a column stand for."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """Cells that say the same in our words, by column."""
    source: str = ""
    """Whose tables these are."""


@lru_cache(maxsize=1)
def families() -> tuple[Family, ...]:
    """All of `families.yaml`."""
    entries = yamltable.read(Path(__file__).with_name("families.yaml"))["families"]
    return tuple(made(Family, entry) for entry in entries)


def adapted(sheet: Sheet) -> Sheet:
    """The sheet with the rows of families as rows of the operators that they time.

    Rows that lack a column of theirs stay as they are.
    """
    frame = sheet.frame
    for family in families():
        if not set(family.rows) <= set(frame.columns):
            continue
        rows = np.ones(len(frame), dtype=bool)
        for name, pattern in family.rows.items():
            rows = rows & cells.text(frame[name]).str.fullmatch(pattern).to_numpy(bool)
        needed = {name for entry in family.sizes.values() for name in names(entry)}
        if rows.any() and needed <= set(frame.columns):
            frame = _as_operator(frame, family, rows, needed)
    return replace(sheet, frame=frame)


def _as_operator(
    frame: pd.DataFrame, family: Family, rows: np.ndarray, needed: set[str]
) -> pd.DataFrame:
    """The frame with the family's rows under their operator and its parameters."""
    columns = {name: _numbers(frame.loc[rows, name], family.words.get(name, {})) for name in needed}
    sizes = {name: evaluate(entry, columns) for name, entry in family.sizes.items()}
    frame = frame.astype(
        {name: object for name in ("op", *sizes, *family.columns) if name in frame}
    )
    for name, text in {"op": family.operator, **family.columns}.items():
        if name in frame:
            frame.loc[rows, name] = text
    for name, values in sizes.items():
        if name not in frame:
            frame[name] = ""
            frame[name] = frame[name].astype(object)
        texts = [f"{value:.15g}" for value in np.broadcast_to(values, (int(rows.sum()),)).tolist()]
        frame.loc[rows, name] = texts
    return frame


def _numbers(column: pd.Series[Any], words: Mapping[str, float]) -> np.ndarray:
    import pandas as pd

    texts = cells.text(column)
    numbers = pd.to_numeric(texts.replace({word: str(value) for word, value in words.items()}))
    return numbers.fillna(0.0).to_numpy(np.float64)
