"""The memory-wall chart: growth of operations, memory and interconnects, with today's devices.

Everything is relative to the first product of its series, as in the published figure. Filled marks
are the figure's points, hollow ones the shipped devices, lines the fits to the figure's points.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.analysis.trend import LABELS, PUBLISHED, Fit, Point, fits, growth, series
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Column, Report, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"flops": "vermilion", "dram": "blue", "interconnect": "green"}
_MARKERS = {"flops": "o", "dram": "s", "interconnect": "^"}
NAMED = {
    "flops": {"p100-sxm2": "P100", "v100-sxm2": "V100", "a100-sxm4-80gb": "A100",
              "h100-sxm": "H100", "b200": "B200"},
    "dram": {"v100-sxm2": "V100", "a100-sxm4-80gb": "A100", "h100-sxm": "H100", "b200": "B200"},
}  # fmt: skip
"""Devices with a name on the chart; all names would cover each other."""
_FAR = 10.0
"""A device this many times above its trend is an outlier, and is also named."""
_SPAN = 10.0
"""Minimum span of points, in years, from which growth in twenty years is extrapolated."""


def report(devices: Sequence[Point] = ()) -> Report:
    """One line for each series: fitted and published growth in two years, and in twenty."""
    rows = [_row(trend, "figure", PUBLISHED[name]) for name, trend in fits().items()]
    for name in LABELS:
        points = [point for point in devices if point.series == name]
        if len({point.year for point in points}) > 1:
            from perfmodel.analysis.trend import fit

            rows.append(_row(fit(points), "shipped devices", None))
    return Report(
        "trend",
        rows,
        [
            Column("series", lambda row: LABELS[row["series"]], number=False),
            Column("points", lambda row: row["source"], number=False, rank=1),
            Column("n", "n", rank=2),
            Column("years", lambda row: f"{row['first']:.0f}-{row['last']:.0f}", rank=1),
            Column("in 2 years", lambda row: row["per_two_years"], lambda value: f"{value:.2f}x"),
            Column("published", lambda row: row["published"], lambda value: f"{value:.1f}x"),
            Column("in 20 years", lambda row: row["per_twenty_years"], lambda v: f"{v:,.0f}x"),
        ],
        title="The memory wall: growth of peak hardware numbers",
        notes=[
            f"growth in 20 years is given for points that span {_SPAN:.0f} years or more"
            for row in rows[:1]
            if any(row["per_twenty_years"] is None for row in rows)
        ],
    )


def _row(trend: Fit, source: str, published: float | None) -> Mapping[str, object]:
    return {
        "series": trend.series,
        "source": source,
        "n": trend.points,
        "first": trend.first,
        "last": trend.last,
        "per_two_years": trend.per_two_years,
        "published": published,
        "per_twenty_years": growth(trend.per_two_years, 20)
        if trend.last - trend.first >= _SPAN
        else None,
    }


def trend_chart(devices: Sequence[Point] = (), page: Page | None = None) -> Chart:
    """The figure's 59 points, their fits, and `devices` (of `trend.device_points`) beside them."""
    from matplotlib.figure import Figure

    page = page or Page()
    title = "The memory wall: peak operations, memory and interconnects"
    caption = ["Filled: the points of Gholami et al. 2024, and their fits.", *_note(devices)]
    with styled(page) as palette:
        figure = Figure(figsize=page.size(6.2, 4.6), layout="constrained")
        axes = figure.add_subplot()
        axes.set_yscale("log")
        ends = (1996.0, max([2026.0, *(point.year for point in devices)]) + 0.6)
        for name, trend in fits().items():
            base = series(name)[0].value
            _line(axes, trend, base, ends, palette)
            _marks(axes, series(name), base, palette, filled=True)
            points = [point for point in devices if point.series == name]
            _marks(axes, points, base, palette, filled=False)
            _names(axes, points, base, palette)
        _frame(axes, ends, bool(devices), palette)
        dress(figure, page, palette, title, caption)
    return Chart(figure, title, " ".join(caption), list(_rows(devices)), caption, page)


def outliers(devices: Sequence[Point]) -> list[tuple[Point, float]]:
    """Devices whose operations are `_FAR` times above the trend, with that ratio."""
    trend = fits()["flops"]
    ratios = ((p, p.value / trend.at(p.year)) for p in devices if p.series == "flops")
    return [(point, ratio) for point, ratio in ratios if ratio > _FAR]


def _note(devices: Sequence[Point]) -> list[str]:
    parts = [f"{point.name}, {ratio:.0f} times" for point, ratio in outliers(devices)]
    return [f"Far above the trend of operations: {'; '.join(parts)}."] if parts else []


def _rows(devices: Sequence[Point]) -> Iterator[Row]:
    """The drawn numbers: one row for each point."""
    for source, points in (("figure", [p for name in LABELS for p in series(name)]),
                           ("device", devices)):  # fmt: skip
        for point in points:
            yield {
                "what": source,
                "series": point.series,
                "name": point.name,
                "year": point.year,
                "value": point.value,
                "relative": point.value / series(point.series)[0].value,
            }


def _line(axes: Axes, trend: Fit, base: float, ends: tuple[float, float], palette: Palette) -> None:
    """The fit, solid over its points and dashed beyond them."""
    colour = getattr(palette, COLOURS[trend.series])
    for first, last, style in (
        (trend.first, trend.last, "-"),
        (trend.last, ends[1], (0, (3, 3))),
    ):
        years = np.array([first, last])
        values = [trend.at(float(year)) / base for year in years]
        gid = f"fit-{trend.series}" if style == "-" else None
        axes.plot(years, values, linestyle=style, color=colour, alpha=0.7, gid=gid)


def _marks(
    axes: Axes, points: Sequence[Point], base: float, palette: Palette, *, filled: bool
) -> None:
    if not points:
        return
    name = points[0].series
    colour = getattr(palette, COLOURS[name])
    axes.plot(
        [point.year for point in points],
        [point.value / base for point in points],
        linestyle="none",
        marker=_MARKERS[name],
        markersize=3.8 * palette.scale,
        markerfacecolor=colour if filled else "none",
        markeredgecolor=colour,
        markeredgewidth=0.0 if filled else 0.6 * palette.line,
        alpha=0.85,
        gid=f"{'points' if filled else 'devices'}-{name}",
    )


def _names(axes: Axes, points: Sequence[Point], base: float, palette: Palette) -> None:
    """Names above and to the left of the marks, away from the lines; names of outliers beside
    them."""
    outlier_names = {point.name for point, _ in outliers(points)}
    for point in points:
        label = NAMED.get(point.series, {}).get(point.name)
        if label is None and point.name not in outlier_names:
            continue
        axes.annotate(
            label or point.name,
            (point.year, point.value / base),
            xytext=(-4, 4) if label else (-5, 0),
            textcoords="offset points",
            ha="right",
            va="bottom" if label else "center",
            fontsize=palette.small,
            color=getattr(palette, COLOURS[point.series]),
        )


def _frame(axes: Axes, ends: tuple[float, float], with_devices: bool, palette: Palette) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.ticker import FuncFormatter, LogLocator, MultipleLocator, NullLocator

    handles = [
        Line2D(
            [], [], color=getattr(palette, COLOURS[name]), marker=_MARKERS[name],
            markersize=4 * palette.scale,
            label=f"{LABELS[name]}: {trend.per_two_years:.1f}× per 2 years",
        )
        for name, trend in fits().items()
    ]  # fmt: skip
    if with_devices:
        handles.append(
            Line2D(
                [], [], color=palette.grey, marker="o", markersize=4 * palette.scale,
                markerfacecolor="none",
                linestyle="none", label="shipped devices, dense 16-bit",
            )
        )  # fmt: skip
    axes.legend(handles=handles, loc="upper left")
    axes.set_xlim(*ends)
    axes.xaxis.set_major_locator(MultipleLocator(4))
    axes.yaxis.set_major_locator(LogLocator(10, numticks=20))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: _power_of_ten(value)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_xlabel("Year of announcement")
    axes.set_ylabel("Relative to the first product of the series")
    axes.grid(axis="y")


def _power_of_ten(value: float) -> str:
    """A tick in plain text: 1, 10, 100, then 10³ and up."""
    power = round(np.log10(value))
    return f"{value:.0f}" if 0 <= power < 3 else "10" + str(power).translate(_RAISED)


_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
