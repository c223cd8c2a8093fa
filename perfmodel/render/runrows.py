"""The rows of a predicted table of runs, for `compare --rows`: measured beside predicted.

Columns whose value is the same in every row stand above the table.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from perfmodel.columns import SOME
from perfmodel.render.report import Column, Report, Row, micros, text
from perfmodel.validation.judging import plain_lines

if TYPE_CHECKING:
    import pandas as pd

    from perfmodel.validation.judging import Fields

MOST = 50
"""Rows that are shown; of more, those that are furthest off."""


def report(table: pd.DataFrame, fields: Fields, case: Iterable[str], *, micro: bool) -> Report:
    """The rows in the order of the table, at most `MOST`.

    `case` are the columns that identify a run; `micro` is whether times are in microseconds.
    """
    ratios = table[fields.predicted] / table[fields.measured]
    runs = table.assign(row=range(1, len(table) + 1), ratio=ratios)
    furthest = ratios.map(lambda ratio: math.inf if ratio != ratio else abs(math.log(ratio)))
    excerpt = runs.loc[furthest.sort_values(ascending=False).index[:MOST].sort_values()]
    names = [name for name in case if name in excerpt and not _blank(excerpt[name]).all()]
    varying = [name for name in names if excerpt[name].astype("str").nunique() > 1]
    common = [f"{name} {excerpt[name].iloc[0]}" for name in names if name not in varying]
    show = micros if micro else "{:.4g}".format

    def ends(row: Row) -> str | None:
        low, high = row[fields.low], row[fields.high]
        return None if low is None else f"{show(low)} to {show(high)}"

    rest = len(table) - len(excerpt)
    return Report(
        "runs",
        plain_lines(excerpt),
        [
            Column("row", "row"),
            *(text(name, name) for name in varying),
            Column("measured", fields.measured, show),
            Column("predicted", fields.predicted, show),
            Column("ratio", "ratio", "{:.2f}"),
            Column("range", ends, number=False, rank=2),
            text("limiter", "limiter", rank=1),
            text("verdict", "verdict", rank=3),
            text("reason", "reason", wrap=60, fold=30, when=SOME),
        ],
        title=f"in all rows: {', '.join(common)}" if common else "",
        notes=[f"{rest} rows less far off are not shown (--output writes all)"] if rest else [],
    )


def _blank(column: pd.Series[Any]) -> pd.Series[bool]:
    return column.isna() | (column.astype("str") == "")
