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
            points = [point for point in devices if point.series == name]
            _series(axes, name, trend, points, ends[1], palette)
        _frame(axes, ends, bool(devices), palette)
        dress(figure, page, palette, title, caption)
    return Chart(figure, title, " ".join(caption), list(_rows(devices)), caption, page)


def _series(
    axes: Axes, name: str, trend: Fit, devices: Sequence[Point], end: float, palette: Palette
) -> None:
    """The figure's points of a series, its fit, which is dashed beyond them, and devices, some of
    them named above and to the left of their marks, away from the line."""
    colour, base = getattr(palette, COLOURS[name]), series(name)[0].value
    for years, style, gid in (((trend.first, trend.last), "-", f"fit-{name}"),
                              ((trend.last, end), (0, (3, 3)), None)):  # fmt: skip
        axes.plot(years, [trend.at(year) / base for year in years], linestyle=style, color=colour,
                  alpha=0.7, gid=gid)  # fmt: skip
    for points, filled in ((series(name), True), (devices, False)):
        axes.plot(
            [point.year for point in points], [point.value / base for point in points],
            linestyle="none", marker=_MARKERS[name], markersize=3.8 * palette.scale, alpha=0.85,
            markerfacecolor=colour if filled else "none", markeredgecolor=colour,
            markeredgewidth=0.0 if filled else 0.6 * palette.line,
            gid=f"{'points' if filled else 'devices'}-{name}",
        )  # fmt: skip
    far = {point.name for point, _ in outliers(devices)}
    for point in devices:
        label = NAMED.get(name, {}).get(point.name)
        if label or point.name in far:
            axes.annotate(
                label or point.name, (point.year, point.value / base), color=colour, ha="right",
                xytext=(-4, 4) if label else (-5, 0), textcoords="offset points",
                va="bottom" if label else "center", fontsize=palette.small,
            )  # fmt: skip


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
