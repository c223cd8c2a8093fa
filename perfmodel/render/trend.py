"""The memory-wall chart: growth of operations, memory and interconnects, with today's devices.

Everything is relative to the first product of its series, as in the published figure. Filled marks
are the figure's points, pale ones the shipped devices, lines the fits to the figure's points.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.analysis.trend import LABELS, PUBLISHED, Fit, Point, fit, fits, growth, series
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.page import Page
from perfmodel.render.report import Column, Report, Row, text

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
            rows.append(_row(fit(points), "shipped devices", None))
    return Report(
        "trend",
        rows,
        [
            Column("series", lambda row: LABELS[row["series"]], number=False),
            text("points", "source", rank=1),
            Column("n", "n", rank=2),
            Column("years", lambda row: f"{row['first']:.0f}-{row['last']:.0f}", rank=1),
            Column("in 2 years", "per_two_years", "{:.2f}x"),
            Column("published", "published", "{:.1f}x"),
            Column("in 20 years", "per_twenty_years", "{:,.0f}x"),
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
    """The figure's 59 points, their fits up to today, and `devices` (of `trend.device_points`)
    beside them, pale, some of them named."""
    end = max([2026.0, *(point.year for point in devices)]) + 0.6
    names = {LABELS[name]: f"{LABELS[name]}: {trend.per_two_years:.1f}× per 2 years"
             for name, trend in fits().items()}  # fmt: skip
    rows: list[Row] = [
        {"what": LABELS[name], "name": "fit", "year": year, "value": trend.at(year),
         "relative": trend.at(year) / series(name)[0].value}
        for name, trend in fits().items() for year in (trend.first, end)
    ]  # fmt: skip
    far = {point.name for point, _ in outliers(devices)}
    for point in (*(point for name in LABELS for point in series(name)), *devices):
        shipped = point in devices
        label = NAMED.get(point.series, {}).get(point.name) or point.name * (point.name in far)
        rows.append({
            "what": LABELS[point.series], "name": point.name, "year": point.year,
            "value": point.value, "relative": point.value / series(point.series)[0].value,
            "point": True, "published": not shipped, "label": label if shipped else "",
        })  # fmt: skip
    dots = Dots(
        "The memory wall: peak operations, memory and interconnects", ["year"], ["relative"],
        log="y", by=["what"], joined=["what"], measured="point", fits="published",
        labelled="label", kinds={"year": "year"},
        headers={"what": "Series", "year": "Year of announcement",
                 "relative": "Relative to the first"},
    )  # fmt: skip
    pale = " Pale: shipped devices, dense 16-bit." if devices else ""
    caption = [f"Filled: the points of Gholami et al. 2024, and their fits.{pale}", *_note(devices)]
    return dots_chart(
        rows, dots, sentence=" ".join(caption), caption=caption, names=names, page=page
    )


def outliers(devices: Sequence[Point]) -> list[tuple[Point, float]]:
    """Devices whose operations are `_FAR` times above the trend, with that ratio."""
    trend = fits()["flops"]
    ratios = ((p, p.value / trend.at(p.year)) for p in devices if p.series == "flops")
    return [(point, ratio) for point, ratio in ratios if ratio > _FAR]


def _note(devices: Sequence[Point]) -> list[str]:
    parts = [f"{point.name}, {ratio:.0f} times" for point, ratio in outliers(devices)]
    return [f"Far above the trend of operations: {'; '.join(parts)}."] if parts else []
