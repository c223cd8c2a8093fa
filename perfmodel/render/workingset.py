"""Bandwidth and latency over the working set, with the sizes of the caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from perfmodel.errors import TableError
from perfmodel.render.figure import BLACK, BLUE, GREEN, GREY, ORANGE, STYLE, VERMILION
from perfmodel.units import binary, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Points = Sequence[tuple[float, float]]
Levels = Sequence[tuple[str, float]]
_COLOURS = {
    "read": BLUE, "copy": GREEN, "triad": ORANGE, "latency": VERMILION, "gather": VERMILION,
}  # fmt: skip
_MARKERS = {"read": "o", "copy": "s", "triad": "^", "latency": "o", "gather": "o"}


def bandwidth_chart(
    curves: Mapping[str, Points], levels: Levels, title: str, caption: str = ""
) -> Figure:
    """Bytes per second of each stream over the working set of all cores together, log-log.

    `levels` are (name, bytes) of the caches. Raises `TableError` where no stream was measured.
    """
    names = [name for name in ("read", "copy", "triad") if curves.get(name)]
    if not names:
        raise TableError("no stream was measured, so there is no bandwidth to draw")
    return _chart(
        {name: curves[name] for name in names}, levels, "B/s", "Bandwidth", title, caption
    )


def latency_chart(
    curves: Mapping[str, Points], levels: Levels, title: str, caption: str = ""
) -> Figure:
    """Seconds per dependent load over the working set of one core, log-log.

    Raises `TableError` where neither latencies nor gathers were measured.
    """
    names = [name for name in ("latency", "gather") if curves.get(name)]
    if not names:
        raise TableError("no dependent loads were measured, so there is no latency to draw")
    axis = "Time per dependent load" if "latency" in names else "Time per random load"
    return _chart({names[0]: curves[names[0]]}, levels, "s", axis, title, caption)


def _chart(
    curves: Mapping[str, Points], levels: Levels, unit: str, axis: str, title: str, caption: str
) -> Figure:
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    with rc_context(STYLE):
        figure = Figure(figsize=(5.6, 3.6), layout="constrained")
        axes = figure.add_subplot()
        for name, points in curves.items():
            axes.plot(
                *zip(*points, strict=True),
                color=_COLOURS[name],
                marker=_MARKERS[name],
                markersize=3,
                markeredgewidth=0,
                label=name,
                gid=f"curve-{name}",
            )
        axes.set(xscale="log", yscale="log", xlabel="Working set", ylabel=axis, title=title)
        _ticks(axes, unit)
        _levels(axes, levels)
        if len(curves) > 1:
            axes.legend(loc="lower left")
        if caption:
            figure.supxlabel(caption, fontsize=6.5, color=GREY)
    return figure


def _ticks(axes: Axes, unit: str) -> None:
    """Powers of two below, 1-2-5 steps at the side, with their units."""
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


def _levels(axes: Axes, levels: Levels) -> None:
    """A line at each cache's size, its name above the plot's frame."""
    low, high = axes.get_xlim()
    bottom, top = axes.get_ylim()
    axes.set_ylim(bottom, top * (top / bottom) ** 0.1)
    for name, size in levels:
        if not low < size < high:
            continue
        axes.axvline(size, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)), zorder=0)
        axes.annotate(
            f"{name}: {binary(size)}",
            (size, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-3, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
            color=BLACK,
            gid=f"level-{name}",
        )
