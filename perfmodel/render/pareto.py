"""A Pareto front of two quantities: marks on a staircase, a few of them named."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.analysis.sweep.answers import full_name
from perfmodel.errors import ProblemError
from perfmodel.render.figure import CYCLE, STYLE
from perfmodel.render.report import Row
from perfmodel.units import seconds, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NAMED = 6  # marks with their name on the chart; more would cover each other
_NAMES = {
    "time_us": "Time",
    "bytes_hbm": "Memory traffic",
    "bytes_l2": "L2 traffic",
    "footprint_bytes": "Memory footprint",
    "useful_flops": "Operations",
}


def pareto_chart(
    rows: Sequence[Row],
    x: str,
    y: str,
    identity: Sequence[str] = ("device",),
    size: tuple[float, float] = (5.4, 3.8),
) -> Figure:
    """`rows` of a front in the quantities `x` and `y` (columns of a sweep), a colour a device.

    `identity` are the columns that name a row. Raises `ProblemError` where there is no row, or a
    quantity is no column of the rows.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    names = full_name(x.strip()), full_name(y.strip())
    if not rows:
        raise ProblemError("the front has no row, so there is nothing to draw")
    for name in names:
        if name not in rows[0]:
            raise ProblemError(f"{name!r} is not a column of the sweep, so it cannot be drawn")
    with rc_context(STYLE):
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        points = np.array([[float(row[name]) for name in names] for row in rows])
        points = points[np.argsort(points[:, 0], kind="stable")]
        ordered = sorted(rows, key=lambda row: float(row[names[0]]))
        if np.all(np.diff(points[:, 1]) < 0):  # several fronts in one chart have no staircase
            axes.step(*points.T, where="post", color="#BBBBBB", linewidth=1, zorder=1, gid="front")
        devices = list(dict.fromkeys(str(row["device"]) for row in ordered))
        for device, colour in zip(devices, _colours(len(devices)), strict=True):
            mine = points[[row["device"] == device for row in ordered]]
            axes.plot(*mine.T, "o", markersize=4, color=colour, label=device, gid=f"front-{device}")
        axes.margins(0.06, 0.12)
        _frame(axes, names, points)
        _name(axes, ordered, points, [name for name in identity if name != "device"])
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=4, handletextpad=0.2, borderaxespad=0.2
        )
    return figure


def _colours(count: int) -> list[str]:
    return [CYCLE[i % len(CYCLE)] for i in range(count)]


def _frame(axes: Axes, names: Sequence[str], points: np.ndarray) -> None:
    """Log axes where a quantity spans much, with units on the ticks."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    for axis, name, values, scale in (
        (axes.xaxis, names[0], points[:, 0], axes.set_xscale),
        (axes.yaxis, names[1], points[:, 1], axes.set_yscale),
    ):
        if values.min() > 0 and values.max() > 8 * values.min():
            scale("log")
        show = _shown(name)
        axis.set_major_formatter(FuncFormatter(lambda value, _, show=show: show(value)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_label_text(_NAMES.get(name, name))


def _shown(name: str) -> Any:
    if name.endswith("_us"):
        return lambda value: seconds(value / 1e6)
    unit = "B" if "bytes" in name else "FLOP" if "flops" in name else ""
    return lambda value: si(value, unit) if unit else f"{value:g}"


def _name(axes: Axes, rows: Sequence[Row], points: np.ndarray, identity: Sequence[str]) -> None:
    """Write what some marks are beside them: the ends of the front, and some between."""
    if not identity:
        return
    last = len(rows) - 1
    for i in sorted({round(i) for i in np.linspace(0, last, min(_NAMED, len(rows)))}):
        said = " ".join(f"{name}={rows[i][name]}" for name in identity)
        # Above the staircase on the left, below it on the right: both keep clear of its steps.
        left = 2 * i <= last
        axes.annotate(
            said,
            points[i],
            xytext=(5, 4) if left else (-5, -10),
            textcoords="offset points",
            ha="left" if left else "right",
            fontsize=6.5,
        )
