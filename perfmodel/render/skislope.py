"""The ski-slope chart: least traffic against on-chip capacity, log-log, one panel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.units import binary, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perfmodel.napkin.skislope import Slopes

_COLOURS = {"fused": "blue", "best fusion": "green", "one kernel a step": "vermilion"}
_DOTTED = (0, (2, 2))
_STYLES: dict[str, Any] = {"best fusion": (0, (1, 1.2)), "one kernel a step": (0, (5, 2))}


def figure(slopes: Slopes, *, title: str = "", page: Page | None = None) -> Chart:
    """The chart; `title` names the problem. Raises `ProblemError` without a point."""
    from matplotlib.figure import Figure

    finite = [c.moved_bytes[np.isfinite(c.moved_bytes)] for c in slopes.curves]
    if not any(len(values) for values in finite):
        raise ProblemError(f"no schedule of {slopes.algorithm} fits in any capacity of this range")
    page = page or Page()
    suffix = f", levels of {slopes.device}" if slopes.device else ""
    heading = f"{title or slopes.algorithm}: least traffic against on-chip capacity{suffix}"
    with styled(page) as palette:
        picture = Figure(figsize=page.size(5.2, 3.7), layout="constrained")
        axes = picture.add_subplot()
        _curves(axes, slopes, palette)
        low = min(min(v.min() for v in finite if len(v)), float(slopes.bound_bytes.min()))
        high = max(v.max() for v in finite if len(v))
        # Room above the curves for the names of the levels, and below for the bound.
        axes.set_ylim(low / 1.7, high * 3.0)
        _levels(axes, slopes, palette)
        _finish(axes, slopes)
        dress(picture, page, palette, heading)
    return Chart(picture, heading, _sentence(slopes), list(_rows(slopes)), page=page)


def _sentence(slopes: Slopes) -> str:
    """How far each curve falls, in words."""
    parts = []
    for curve in slopes.curves:
        traffic = curve.moved_bytes[np.isfinite(curve.moved_bytes)]
        if len(traffic):
            parts.append(f"{curve.name}: {si(traffic[0], 'B')} falling to {si(traffic[-1], 'B')}")
    return f"Least bytes moved as capacity grows. {'; '.join(parts)}."


def _rows(slopes: Slopes) -> Iterator[Row]:
    """The drawn numbers: one row for each capacity."""
    for i, capacity in enumerate(slopes.capacity_bytes):
        row: dict[str, Any] = {"capacity_bytes": float(capacity)}
        for curve in slopes.curves:
            row[f"{curve.name.replace(' ', '_')}_bytes"] = float(curve.moved_bytes[i])
        yield {**row, "lower_bound_bytes": float(slopes.bound_bytes[i])}


def _curves(axes: Axes, slopes: Slopes, palette: Palette) -> None:
    for curve in slopes.curves:
        mask = np.isfinite(curve.moved_bytes)
        axes.plot(
            slopes.capacity_bytes[mask],
            curve.moved_bytes[mask],
            color=getattr(palette, _COLOURS[curve.name]),
            linestyle=_STYLES.get(curve.name, "solid"),
            linewidth=(1.8 if curve.name == "best fusion" else 1.2) * palette.line,
            drawstyle="steps-post",
            label=curve.name,
            zorder=4 if curve.name == "best fusion" else 3,
        )
    axes.plot(
        slopes.capacity_bytes,
        slopes.bound_bytes,
        color=palette.ink,
        linewidth=0.7 * palette.line,
        label=f"lower bound ({_short(slopes.bound_name)})",
    )


def _short(name: str) -> str:
    """The theorem's name without its formula; a bound by order of magnitude is marked as one."""
    head, _, rest = name.partition(":")
    return f"order, {head}" if "of order" in rest else head


def _levels(axes: Axes, slopes: Slopes, palette: Palette) -> None:
    """A thin line at each level of the device, named at the top; levels close together share a
    name."""
    low, high = slopes.capacity_bytes[[0, -1]]
    levels = [(v, n) for n, v in sorted(slopes.levels.items(), key=lambda item: item[1])]
    merged: list[tuple[float, str]] = []
    for value, name in levels:
        if not low <= value <= high:
            continue
        text = f"{name} {binary(value)}"
        if merged and value / merged[-1][0] < 2:
            merged[-1] = (merged[-1][0], f"{merged[-1][1]}\n{text}")
        else:
            merged.append((value, text))
        axes.axvline(
            value, color=palette.grey, linewidth=0.6 * palette.line, linestyle=_DOTTED, zorder=1
        )
    for value, text in merged:
        axes.annotate(
            text,
            (value, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-4, -2),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=palette.label,
            color=palette.grey,
            linespacing=1.25,
        )


def _finish(axes: Axes, slopes: Slopes) -> None:
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
    axes.set_xlabel("On-chip capacity")
    axes.set_ylabel("Least bytes moved")
    axes.grid(True, which="major")
    axes.figure.legend(loc="outside lower center", ncols=2)
