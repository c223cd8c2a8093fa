"""The table of errors of predictions: one line for each group of measured runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.columns import Column, text
from perfmodel.render.report import Report
from perfmodel.validation.judging import plain_lines

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    Column("n", "n"),
    Column("unpredicted", "unpredicted", rank=4),
    Column("flagged", "flagged", rank=5),
    Column("MAPE", "mape", "{:.1%}"),
    Column("median |ln|", "median_abs_ln", "{:.3f}", rank=1),
    Column("p90 |ln|", "p90_abs_ln", "{:.3f}", rank=2),
    Column("bias", "bias", "{:.3f}"),
    Column("Spearman", "spearman", "{:.3f}", rank=3),
    Column("in range", "coverage", "{:.1%}"),
)
_NOISE = (Column("noise", "noise_ln", "{:.1%}"), Column("in noise", "within_noise", "{:.1%}"))


def report(summary: pd.DataFrame, by: Sequence[str], title: str, **more: Any) -> Report:
    """The lines of `perfmodel.validation.judging.report`, grouped by some columns."""
    columns = [*(text(name, name) for name in by), *_COLUMNS]
    columns += _NOISE if "within_noise" in summary else ()
    return Report("report", plain_lines(summary), columns, title, **more)
