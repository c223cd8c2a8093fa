"""Predicted against measured time, log-log, one colour a group, with a band of ±20 %."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError
from perfmodel.render.figure import CYCLE, GREY, STYLE
from perfmodel.units import seconds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BAND = 0.2
_GROUPS = len(CYCLE)  # colours there are; the smallest groups share the last one
_MICRO = 1e-6


def scatter_chart(
    table: pd.DataFrame,
    by: str,
    measured: str = "measured_us",
    predicted: str = "predicted_us",
    size: tuple[float, float] = (5.2, 5.0),
) -> Figure:
    """Rows of a predicted table, coloured by the column `by`.

    `measured` and `predicted` are its columns of microseconds.

    The legend gives each group's number of rows and median error |predicted/measured - 1|. `size`
    is in inches. Raises `TableError` where the column is missing or no row is predicted.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if by not in table.columns:
        raise TableError(f"no column {by!r} to colour by; there is {', '.join(table.columns)}")
    table = table.rename(columns={measured: "measured_us", predicted: "predicted_us"})
    table = table[table["predicted_us"].notna()]
    if table.empty:
        raise TableError("no row has a prediction, so there is nothing to draw")
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        groups = _groups(table[by].astype("str"))
        for (label, rows), colour in zip(groups.items(), CYCLE, strict=False):
            _points(axes, table[rows], label, colour, len(table))
        _frame(axes, table)
        legend = axes.legend(
            loc="upper left", handletextpad=0.2, borderaxespad=0.2, markerscale=1.6
        )
        for handle in legend.legend_handles:
            if isinstance(handle, Line2D):  # the dots, not the band
                handle.set_alpha(1)
    return figure


def _groups(values: pd.Series[str]) -> dict[str, np.ndarray]:
    """Rows of each value, the most frequent first; what has no colour left goes together."""
    counts = values.value_counts()
    kept = list(counts.index)
    rest: list[str] = []
    if len(kept) > _GROUPS:
        kept, rest = kept[: _GROUPS - 1], kept[_GROUPS - 1 :]
    found = {name or "(none)": (values == name).to_numpy() for name in kept}
    if rest:
        found[f"{len(rest)} others"] = values.isin(rest).to_numpy()
    return found


def _points(axes: Axes, rows: pd.DataFrame, label: str, colour: str, total: int) -> None:
    measured, predicted = (
        rows[name].to_numpy() * _MICRO for name in ("measured_us", "predicted_us")
    )
    error = float(np.median(np.abs(predicted / measured - 1)))
    crowded = total > 400
    axes.plot(
        measured,
        predicted,
        linestyle="none",
        marker="o",
        markersize=2.2 if crowded else 4,
        markeredgewidth=0,
        color=colour,
        alpha=0.45 if crowded else 0.8,
        label=f"{label}  (n = {len(rows)}, median error {error:.0%})",
        rasterized=total > 20_000,
        gid=f"points-{label}",
    )


def _frame(axes: Axes, table: pd.DataFrame) -> None:
    """Equal log axes, the diagonal, the band, and durations as tick labels."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    times = table[["measured_us", "predicted_us"]].to_numpy() * _MICRO
    ends = np.array([times.min() / 1.6, times.max() * 1.6])
    band = axes.fill_between(
        ends,
        ends * (1 - BAND),
        ends * (1 + BAND),
        color=GREY,
        alpha=0.22,
        linewidth=0,
        zorder=0,
        label=f"within ±{BAND:.0%}",
    )
    band.set_gid("band")
    axes.plot(ends, ends, color=GREY, linewidth=0.8, zorder=1, gid="diagonal")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.set(xlabel="Measured time", ylabel="Predicted time")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value, 1)))
        axis.set_minor_formatter(NullFormatter())
