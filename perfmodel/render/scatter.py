"""Predicted against measured time, log-log, one colour for each group, with a band of ±20 %."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.units import seconds

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

BAND = 0.2
_GROUPS = 8  # number of colours; the smallest groups share the last one
_NAMED = 3  # number of named outliers
_MICRO = 1e-6


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
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    if by not in table.columns:
        raise TableError(f"no column {by!r} to colour by; there is {', '.join(table.columns)}")
    table = table.rename(columns={measured: "measured_us", predicted: "predicted_us"})
    table = table[table["predicted_us"].notna()]
    if table.empty:
        raise TableError("no row has a prediction, so there is nothing to draw")
    page = page or Page()
    outliers = _outliers(table)
    caption = [f"Band: within ±{BAND:.0%} of the measured time.", *_explanation(table, outliers)]
    title = f"Predicted against measured time of {len(table):,} runs, by {by}"
    groups = _groups(table[by].astype("str"))
    with styled(page) as palette:
        figure = Figure(figsize=page.size(5.2, 5.2), layout="constrained")
        axes = figure.add_subplot()
        looks = map(palette.look, range(len(groups)))
        for (label, rows), look in zip(groups.items(), looks, strict=False):
            _points(axes, table[rows], label, look, len(table), palette)
        _frame(axes, table, palette)
        for number, i in enumerate(outliers, 1):
            _number(axes, table.iloc[i], number, palette)
        legend = axes.legend(
            loc="upper left", handletextpad=0.2, borderaxespad=0.2, markerscale=1.6
        )
        for handle in legend.legend_handles:
            if isinstance(handle, Line2D):  # the dots, not the band
                handle.set_alpha(1)
        dress(figure, page, palette, title, caption)
    text = [f"{name}: {_error(table[rows])}." for name, rows in groups.items()]
    return Chart(figure, title, " ".join([*text, *caption]), list(_rows(table, by)), caption, page)


def _outliers(table: pd.DataFrame) -> list[int]:
    """Indices of the rows with the largest errors, if these exceed a factor of 1.5."""
    misses = np.abs(np.log(table["predicted_us"] / table["measured_us"]))
    misses = np.asarray(misses, dtype=float)
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


def _number(axes: Axes, row: pd.Series[float], number: int, palette: Palette) -> None:
    """Write the number of an outlier, on the side of its mark away from the diagonal."""
    below = row["predicted_us"] < row["measured_us"]
    axes.annotate(
        str(number),
        (row["measured_us"] * _MICRO, row["predicted_us"] * _MICRO),
        xytext=(4, -3) if below else (-4, 3),
        textcoords="offset points",
        ha="left" if below else "right",
        va="top" if below else "bottom",
        fontsize=palette.small,
        color=palette.ink,
    )


def _error(rows: pd.DataFrame) -> str:
    median = float(np.median(np.abs(rows["predicted_us"] / rows["measured_us"] - 1)))
    return f"n = {len(rows)}, median error {median:.0%}"


def _rows(table: pd.DataFrame, by: str) -> Iterator[dict[str, Any]]:
    """The drawn numbers: one row for each dot."""
    for _, row in table.iterrows():
        yield {
            by: str(row[by]),
            "measured_us": float(row["measured_us"]),
            "predicted_us": float(row["predicted_us"]),
        }


def _groups(values: pd.Series[str]) -> dict[str, np.ndarray]:
    """Rows of each value, most frequent first; values without a colour of their own are merged."""
    counts = values.value_counts()
    names = list(counts.index)
    rest: list[str] = []
    if len(names) > _GROUPS:
        names, rest = names[: _GROUPS - 1], names[_GROUPS - 1 :]
    groups = {name or "(none)": (values == name).to_numpy() for name in names}
    if rest:
        groups[f"{len(rest)} others"] = values.isin(rest).to_numpy()
    return groups


def _points(
    axes: Axes,
    rows: pd.DataFrame,
    label: str,
    look: tuple[str, str],
    total: int,
    palette: Palette,
) -> None:
    measured, predicted = (
        rows[name].to_numpy() * _MICRO for name in ("measured_us", "predicted_us")
    )
    crowded = total > 400
    colour, marker = look
    axes.plot(
        measured,
        predicted,
        linestyle="none",
        marker=marker,
        markersize=(2.2 if crowded else 4) * palette.scale,
        markeredgewidth=0,
        color=colour,
        alpha=0.45 if crowded else 0.8,
        label=f"{label}  ({_error(rows)})",
        rasterized=total > 20_000,
        gid=f"points-{label}",
    )


def _frame(axes: Axes, table: pd.DataFrame, palette: Palette) -> None:
    """Equal log axes, the diagonal, the band, and durations as tick labels."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    times = table[["measured_us", "predicted_us"]].to_numpy() * _MICRO
    ends = np.array([times.min() / 1.6, times.max() * 1.6])
    band = axes.fill_between(
        ends,
        ends * (1 - BAND),
        ends * (1 + BAND),
        color=palette.grey,
        alpha=0.22,
        linewidth=0,
        zorder=0,
        label=f"within ±{BAND:.0%}",
    )
    band.set_gid("band")
    axes.plot(ends, ends, color=palette.grey, linewidth=0.8, zorder=1, gid="diagonal")
    axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends, aspect="equal")
    axes.set(xlabel="Measured time", ylabel="Predicted time")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value, 1)))
        axis.set_minor_formatter(NullFormatter())
