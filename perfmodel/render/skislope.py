"""The ski-slope chart: least traffic against on-chip capacity, log-log, one panel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.figure import BLACK, BLUE, GREEN, GREY, STYLE, VERMILION
from perfmodel.units import binary, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from perfmodel.napkin.skislope import Slopes

_COLOURS = {"fused": BLUE, "best fusion": GREEN, "one kernel a step": VERMILION}
_STYLES: dict[str, Any] = {"best fusion": (0, (1, 1.2)), "one kernel a step": (0, (5, 2))}


def figure(slopes: Slopes, width: float = 5.2, height: float = 3.4, title: str = "") -> Figure:
    """The chart as a figure of `width` × `height` inches; raises `ProblemError` without a point."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    finite = [c.moved_bytes[np.isfinite(c.moved_bytes)] for c in slopes.curves]
    if not any(len(values) for values in finite):
        raise ProblemError(f"no schedule of {slopes.algorithm} fits in any capacity of this range")
    with rc_context(STYLE):
        made = Figure(figsize=(width, height), layout="constrained")
        axes = made.add_subplot()
        _curves(axes, slopes)
        low = min(min(v.min() for v in finite if len(v)), float(slopes.bound_bytes.min()))
        high = max(v.max() for v in finite if len(v))
        # Room above the curves for the names of the levels, below for the bound.
        axes.set_ylim(low / 1.7, high * 3.0)
        _levels(axes, slopes)
        _finish(axes, slopes, title)
    return made


def _curves(axes: Axes, slopes: Slopes) -> None:
    for curve in slopes.curves:
        there = np.isfinite(curve.moved_bytes)
        axes.plot(
            slopes.capacity_bytes[there],
            curve.moved_bytes[there],
            color=_COLOURS[curve.name],
            linestyle=_STYLES.get(curve.name, "solid"),
            linewidth=2.2 if curve.name == "best fusion" else 1.4,
            drawstyle="steps-post",
            label=curve.name,
            zorder=4 if curve.name == "best fusion" else 3,
        )
    axes.plot(
        slopes.capacity_bytes,
        slopes.bound_bytes,
        color=BLACK,
        linewidth=0.8,
        label=f"lower bound ({_short(slopes.bound_name)})",
    )


def _short(name: str) -> str:
    """The theorem without its formula; an order of magnitude says so."""
    head, _, rest = name.partition(":")
    return f"order, {head}" if "of order" in rest else head


def _levels(axes: Axes, slopes: Slopes) -> None:
    """A thin line at each level of the device, named at the top; near ones share a name."""
    low, high = slopes.capacity_bytes[[0, -1]]
    shown = [(v, n) for n, v in sorted(slopes.levels.items(), key=lambda item: item[1])]
    merged: list[tuple[float, str]] = []
    for value, name in shown:
        if not low <= value <= high:
            continue
        said = f"{name} {binary(value)}"
        if merged and value / merged[-1][0] < 2:
            merged[-1] = (merged[-1][0], f"{merged[-1][1]}\n{said}")
        else:
            merged.append((value, said))
        axes.axvline(value, color=GREY, linewidth=0.7, linestyle=(0, (2, 2)), zorder=1)
    for value, said in merged:
        axes.annotate(
            said,
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=7,
            color="#555555",
            linespacing=1.25,
        )


def _finish(axes: Axes, slopes: Slopes, title: str) -> None:
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    low, high = slopes.capacity_bytes[[0, -1]]
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(low, high)
    powers = [2.0**k for k in range(10, 60, 3) if low <= 2.0**k <= high]
    axes.xaxis.set_major_locator(FixedLocator(powers))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: binary(value, 1)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: si(value, "B", 1)))
    axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
    axes.set_xlabel("on-chip capacity")
    axes.set_ylabel("least bytes moved")
    where = f" · levels of {slopes.device}" if slopes.device else ""
    axes.set_title(title or f"{slopes.algorithm}{where}", loc="left")
    axes.grid(True, which="major", linewidth=0.3, color="#DDDDDD")
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.17), ncols=2)
