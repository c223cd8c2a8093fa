"""Bandwidth and latency over the working set, with the sizes of the caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perfmodel.errors import TableError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.units import binary, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]
Levels = Sequence[tuple[str, float]]
_COLOURS = {
    "read": "blue",
    "copy": "green",
    "triad": "ochre",
    "latency": "vermilion",
    "gather": "vermilion",
}
_DASHED = (0, (3, 2))
_MARKERS = {"read": "o", "copy": "s", "triad": "^", "latency": "o", "gather": "o"}


def bandwidth_chart(
    curves: Mapping[str, Points],
    levels: Levels,
    title: str,
    caption: str = "",
    page: Page | None = None,
) -> Chart:
    """Bytes per second of each stream over the working set of all cores, log-log.

    `levels` are (name, bytes) of the caches. Raises `TableError` without a measured stream.
    """
    names = [name for name in ("read", "copy", "triad") if curves.get(name)]
    if not names:
        raise TableError("no stream was measured, so there is no bandwidth to draw")
    selection = {name: curves[name] for name in names}
    return _chart(selection, levels, ("B/s", "Bandwidth"), title, caption, page or Page())


def latency_chart(
    curves: Mapping[str, Points],
    levels: Levels,
    title: str,
    caption: str = "",
    page: Page | None = None,
) -> Chart:
    """Seconds per dependent load over the working set of one core, log-log.

    Raises `TableError` where neither latencies nor gathers were measured.
    """
    names = [name for name in ("latency", "gather") if curves.get(name)]
    if not names:
        raise TableError("no dependent loads were measured, so there is no latency to draw")
    axis = "Time per dependent load" if "latency" in names else "Time per random load"
    selection = {names[0]: curves[names[0]]}
    return _chart(selection, levels, ("s", axis), title, caption, page or Page())


def _chart(
    curves: Mapping[str, Points],
    levels: Levels,
    quantity: tuple[str, str],
    title: str,
    caption: str,
    page: Page,
) -> Chart:
    """`quantity` is the unit and the name of the measured quantity."""
    from matplotlib.figure import Figure

    unit, axis = quantity
    heading = f"{title}: {axis[0].lower()}{axis[1:]}"
    lines = [caption] if caption else []
    with styled(page) as palette:
        figure = Figure(figsize=page.size(5.6, 3.8), layout="constrained")
        axes = figure.add_subplot()
        for name, points in curves.items():
            axes.plot(
                *zip(*points, strict=True),
                color=getattr(palette, _COLOURS[name]),
                marker=_MARKERS[name],
                markersize=3 * palette.scale,
                markeredgewidth=0,
                label=name,
                gid=f"curve-{name}",
            )
        axes.set(xscale="log", yscale="log", xlabel="Working set", ylabel=axis)
        _ticks(axes, unit)
        _levels(axes, levels, palette)
        if len(curves) > 1:
            axes.legend(loc="lower left")
        dress(figure, page, palette, heading, lines)
    value = "bytes_per_s" if unit == "B/s" else "seconds"
    rows = [
        {"curve": name, "working_set_bytes": float(size), value: float(number)}
        for name, points in curves.items()
        for size, number in points
    ]
    return Chart(figure, heading, f"{axis} over the working set.", rows, lines, page)


def _ticks(axes: Axes, unit: str) -> None:
    """Powers of two on the x axis, 1-2-5 steps on the y axis, with their units."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

    low, high = axes.get_xlim()
    powers = [2.0**i for i in range(6, 50, 2) if low <= 2.0**i <= high]
    axes.xaxis.set_major_locator(FixedLocator(powers[:: 1 + len(powers) // 10]))
    axes.xaxis.set_minor_locator(FixedLocator([]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: binary(value, 1)))
    bottom, top = axes.get_ylim()
    subs = (1.0, 2.0, 5.0) if top / bottom < 300 else (1.0,)
    axes.yaxis.set_major_locator(LogLocator(subs=subs))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value, unit, 1)))
    axes.yaxis.set_minor_formatter(NullFormatter())


def _levels(axes: Axes, levels: Levels, palette: Palette) -> None:
    """A line at each cache's size, its name above the plot's frame."""
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * (top / bottom) ** 0.1)
    for name, size in levels:
        if not low < size < high:
            continue
        axes.axvline(
            size, color=palette.grey, linewidth=0.65 * palette.line, linestyle=_DASHED, zorder=0
        )
        axes.annotate(
            f"{name}: {binary(size)}",
            (size, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=palette.label,
            color=palette.ink,
            gid=f"level-{name}",
        )
