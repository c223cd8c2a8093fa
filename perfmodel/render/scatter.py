"""Predicted against measured time, log-log, one colour for each group, with a band of ±20 %."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import BAND, Dots, dots_chart
from perfmodel.render.page import Page

if TYPE_CHECKING:
    import pandas as pd

_GROUPS = 8  # limit on groups of their own; the smallest share the last one
_NAMED = 3  # number of named outliers


def scatter_chart(
    table: pd.DataFrame,
    by: str,
    measured: str = "measured_us",
    predicted: str = "predicted_us",
    page: Page | None = None,
) -> Chart:
    """Rows of a predicted table, coloured by the column `by`.

    `measured` and `predicted` are its columns of microseconds. The legend gives each group's number
    of rows and median error |predicted/measured - 1|. The rows with the largest errors are
    numbered, and the caption names them. Raises `TableError` if the column is missing or no row is
    predicted.
    """
    if by not in table.columns:
        raise TableError(f"no column {by!r} to colour by; there is {', '.join(table.columns)}")
    table = table.rename(columns={measured: "measured_us", predicted: "predicted_us"})
    table = table[table["predicted_us"].notna()]
    if table.empty:
        raise TableError("no row has a prediction, so there is nothing to draw")
    ratios = table["predicted_us"].to_numpy(float) / table["measured_us"].to_numpy(float)
    outliers = _outliers(ratios)
    groups = _merged(table[by].astype("str"))
    names = {}
    for name, _ in Counter(groups).most_common():
        errors = np.abs(ratios[np.array(groups) == name] - 1)
        names[name] = f"{name}  (n = {len(errors)}, median error {np.median(errors):.0%})"
    rows = [
        {
            by: name, "measured_us": float(measured_us), "predicted_us": float(predicted_us),
            **({"number": str(outliers.index(i) + 1)} if i in outliers else {}),
        }
        for i, (name, measured_us, predicted_us) in enumerate(
            zip(groups, table["measured_us"], table["predicted_us"], strict=True)
        )
    ]  # fmt: skip
    order = sorted(names, key=lambda name: name.endswith(" others"))
    rows.sort(key=lambda row: order.index(str(row[by])))
    caption = [f"Band: within ±{BAND:.0%} of the measured time.", *_explanation(table, outliers)]
    title = f"Predicted against measured time of {len(table):,} runs, by {by}"
    dots = Dots(
        title, ["measured_us"], ["predicted_us"], by=[by], compared=True, labelled="number",
        headers={"measured_us": "Measured time", "predicted_us": "Predicted time"},
    )  # fmt: skip
    sentence = " ".join([*(f"{text}." for text in names.values()), *caption])
    return dots_chart(rows, dots, sentence=sentence, caption=caption, names=names, page=page)


def _outliers(ratios: np.ndarray) -> list[int]:
    """Indices of the rows with the largest errors, if these exceed a factor of 1.5."""
    misses = np.abs(np.log(ratios))
    worst = np.argsort(-misses, kind="stable")[:_NAMED]
    return [int(i) for i in worst if misses[i] > np.log(1.5)]


def _explanation(table: pd.DataFrame, outliers: list[int]) -> list[str]:
    """Names of the numbered rows: row number in the table, kernel, and error."""
    parts = []
    for number, i in enumerate(outliers, 1):
        row = table.iloc[i]
        names = ("implementation", "op", "device")
        kernel = " ".join(str(row[name]) for name in names if row.get(name))
        ratio = row["predicted_us"] / row["measured_us"]
        parts.append(f"{number}: row {table.index[i] + 1}, {kernel}, ×{ratio:.2f}")
    return [f"Farthest off, predicted over measured: {'; '.join(parts)}."] if parts else []


def _merged(values: pd.Series[str]) -> list[str]:
    """The group of each row; values without a colour of their own share one."""
    names = list(values.value_counts().index)
    rest = set(names[_GROUPS - 1 :]) if len(names) > _GROUPS else set()
    return [f"{len(rest)} others" if name in rest else name or "(none)" for name in values]
