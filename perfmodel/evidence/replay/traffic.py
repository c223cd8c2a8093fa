"""Compares predicted with counted bytes at each memory level."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

PREDICTED = {
    "hbm": ("predicted_hbm_bytes", "hbm_bytes_measured"),
    "l2": ("predicted_l2_bytes", "l2_bytes_measured"),
    "shared": ("predicted_shared_bytes", "shared_bytes_measured"),
}
"""Level → the column of predicted bytes and the column of counted ones."""


def traffic_report(table: pd.DataFrame, by: Sequence[str] = ()) -> pd.DataFrame:
    """Errors of predicted bytes at each level that was counted: a line per level and group.

    `table` has the columns of `PREDICTED`. The report has n, MAPE, median |ln|, and bias (geometric
    mean of predicted over counted). It is empty if no level was both counted and predicted.
    """
    import numpy as np
    import pandas as pd

    lines: list[dict[str, Any]] = []
    for level, (predicted, counted) in PREDICTED.items():
        if predicted not in table.columns or counted not in table.columns:
            continue
        values = table.assign(
            _p=pd.to_numeric(table[predicted], errors="coerce"),
            _c=pd.to_numeric(table[counted], errors="coerce"),
        )
        values = values[(values["_p"] > 0) & (values["_c"] > 0) & (values["_c"] < np.inf)]
        for key, group in _groups(values, by):
            logs = np.log(group["_p"]) - np.log(group["_c"])  # the ratio itself could underflow
            lines.append(
                {
                    "level": level,
                    **key,
                    "n": len(group),
                    "mape": float((group["_p"] / group["_c"] - 1).abs().mean()),
                    "median_abs_ln": float(logs.abs().median()),
                    "p90_abs_ln": float(logs.abs().quantile(0.9)),
                    "bias": float(np.exp(logs.mean())),
                }
            )
    names = ["level", *by, "n", "mape", "median_abs_ln", "p90_abs_ln", "bias"]
    return pd.DataFrame(lines, columns=names)


def _groups(table: pd.DataFrame, columns: Sequence[str]) -> Iterable[tuple[dict[str, Any], Any]]:
    if table.empty:
        return
    if columns:
        for key, group in table.groupby(list(columns), sort=True, dropna=False, observed=True):
            yield dict(zip(columns, key, strict=True)), group
    yield dict.fromkeys(columns, "all"), table
