"""A Pareto front of two quantities: marks on a staircase, dominated rows pale behind them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.units import seconds, si

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_NAMED = 6  # limit on named marks; more would cover each other
_NAMES = {
    "time_us": "Time",
    "bytes_hbm": "Memory traffic",
    "bytes_l2": "L2 traffic",
    "footprint_bytes": "Memory footprint",
    "useful_flops": "Operations",
}


@dataclass(frozen=True)
class Front:
    """The rows of a front in two quantities, and rows that they dominate."""

    operator: str
    """The operator of the sweep."""
    x: str
    """A column of the sweep."""
    y: str
    """Another column of the sweep."""
    rows: Sequence[Row]
    """The front."""
    others: Sequence[Row] = ()
    """All rows, or an even sample of them."""
    matched: int = 0
    """Number of rows in all."""

    def points(self, rows: Sequence[Row]) -> np.ndarray:
        """Both quantities of `rows`, of shape (n, 2)."""
        pairs = [[float(row[name]) for name in (self.x, self.y)] for row in rows]
        return np.array(pairs).reshape(-1, 2)


def pareto_chart(
    front: Front, identity: Sequence[str] = ("device",), page: Page | None = None
) -> Chart:
    """The front, with a colour and shape for each device; `identity` are columns that name a row.

    Raises `ProblemError` without rows, or if a quantity is no column of the rows.
    """
    from matplotlib.figure import Figure

    if not front.rows:
        raise ProblemError("the front has no row, so there is nothing to draw")
    for name in (front.x, front.y):
        if name not in front.rows[0]:
            raise ProblemError(f"{name!r} is not a column of the sweep, so it cannot be drawn")
    page = page or Page()
    ordered = sorted(front.rows, key=lambda row: (float(row[front.x]), -float(row[front.y])))
    points = front.points(ordered)
    title = f"{front.operator}: {_label(front.x)} against {_label(front.y).lower()}, least of both"
    caption = [_sentence(front)]
    with styled(page) as palette:
        figure = Figure(figsize=page.size(5.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        _frame(axes, front, points)
        if np.all(np.diff(points[:, 1]) < 0):  # a chart of several fronts has no staircase
            axes.step(*points.T, where="post", color=palette.grey, zorder=2, gid="front")
        _marks(axes, front, ordered, palette)
        axes.margins(0.08, 0.12)
        _ticks(axes)
        _name(axes, ordered, points, [name for name in identity if name != "device"], palette)
        axes.legend(
            loc="lower left", bbox_to_anchor=(0, 1), ncols=4, handletextpad=0.2, borderaxespad=0.2
        )
        dress(figure, page, palette, title, caption)
    return Chart(figure, title, caption[0], [*_rows(front, ordered)], caption, page)


def _marks(axes: Axes, front: Front, ordered: Sequence[Row], palette: Palette) -> None:
    """Draw the front, and dominated rows behind it."""
    points = front.points(ordered)
    names = [str(row["device"]) for row in (*ordered, *front.others)]
    looks = {device: palette.look(i) for i, device in enumerate(dict.fromkeys(names))}
    _rest(axes, front, looks, palette)
    for device in dict.fromkeys(str(row["device"]) for row in ordered):
        dots = points[[row["device"] == device for row in ordered]]
        colour, marker = looks[device]
        axes.plot(
            *dots.T, linestyle="none", marker=marker, markersize=4.5 * palette.scale,
            color=colour, label=device, zorder=4, gid=f"front-{device}",
        )  # fmt: skip


def _label(name: str) -> str:
    return _NAMES.get(name, name)


def _sentence(front: Front) -> str:
    """Number of rows that the front dominates, in words."""
    count = len(front.rows)
    rest = max(front.matched - count, 0)
    beats = f"{count:,} of {max(front.matched, count):,} cases are beaten by none in both"
    if not rest:
        return f"{beats}."
    sample = f", an even sample of {len(front.others):,}" if len(front.others) < rest else ""
    return f"{beats}; the pale marks are the others{sample}."


def _rest(axes: Axes, front: Front, looks: dict[str, tuple[str, str]], palette: Palette) -> None:
    """Draw the dominated rows, pale."""
    for device, (colour, marker) in looks.items():
        rows = [row for row in front.others if row["device"] == device and _finite(front, row)]
        devices = {str(row["device"]) for row in front.rows}
        axes.plot(
            *front.points(rows).T, linestyle="none", marker=marker, color=colour, alpha=0.25,
            markersize=3 * palette.scale, markeredgewidth=0, zorder=1, gid=f"beaten-{device}",
            label=f"{device}, beaten" if device not in devices and rows else "_hidden",
        )  # fmt: skip


def _finite(front: Front, row: Row) -> bool:
    return all(row[name] is not None for name in (front.x, front.y))


def _rows(front: Front, ordered: Sequence[Row]) -> list[Row]:
    """The drawn numbers: one row for each mark."""
    marks: list[Row] = [{"what": "front", **row} for row in ordered]
    others = [{"what": "sampled", **row} for row in front.others if _finite(front, row)]
    return [*marks, *others]


def _frame(axes: Axes, front: Front, points: np.ndarray) -> None:
    """Log axes where a quantity spans a wide range, with units on the ticks."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    beaten = front.points([row for row in front.others if _finite(front, row)])
    values = np.concatenate([points, beaten])
    for axis, name, numbers, scale in (
        (axes.xaxis, front.x, values[:, 0], axes.set_xscale),
        (axes.yaxis, front.y, values[:, 1], axes.set_yscale),
    ):
        if numbers.min() > 0 and numbers.max() > 8 * numbers.min():
            scale("log")
        show = _formatter(name)
        axis.set_major_formatter(FuncFormatter(lambda value, _, show=show: show(value)))
        axis.set_minor_formatter(NullFormatter())
        axis.set_label_text(_label(name))


def _ticks(axes: Axes) -> None:
    """Ticks at 1, 2 and 5 where a log axis spans a narrow range."""
    from matplotlib.ticker import LogLocator

    for axis, ends in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() == "log" and ends[1] / ends[0] < 300:
            axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))


def _formatter(name: str) -> Any:
    if name.endswith("_us"):
        return lambda value: seconds(value / 1e6)
    unit = "B" if "bytes" in name else "FLOP" if "flops" in name else ""
    return lambda value: si(value, unit) if unit else f"{value:g}"


def _name(
    axes: Axes,
    rows: Sequence[Row],
    points: np.ndarray,
    identity: Sequence[str],
    palette: Palette,
) -> None:
    """Write the names of some marks beside them: the ends of the front, and some between."""
    if not identity:
        return
    last = len(rows) - 1
    places = axes.transData.transform(points)
    middle = axes.transAxes.transform((0.5, 0.5))[0]
    for i in sorted({round(i) for i in np.linspace(0, last, min(_NAMED, len(rows)))}):
        text = " ".join(f"{name}={rows[i][name]}" for name in identity)
        # Away from the nearer edge, and above or below the staircase, clear of its steps.
        left = places[i, 0] <= middle
        axes.annotate(
            text,
            points[i],
            xytext=(5, 4) if left else (-5, -10),
            textcoords="offset points",
            ha="left" if left else "right",
            fontsize=palette.small,
            zorder=5,
        )
