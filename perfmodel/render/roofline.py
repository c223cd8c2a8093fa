"""Hierarchical rooflines: one panel a device, a diagonal a memory level, a kernel once per level.

Colour is the level, marker the kernel; hollow is predicted, filled is measured; a thin grey line
joins the marks of one kernel, so that marks close together show poor reuse between those levels
(Yang, Kurth & Williams 2020). A mark above its roof gets a warning sign: it is a wrong number,
never a win.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from perfmodel.errors import ProblemError
from perfmodel.render import foot
from perfmodel.render.figure import GREY, STYLE, VERMILION
from perfmodel.render.foot import COLOURS, MARKERS, WARNING
from perfmodel.render.labels import Place, Places, text_inches
from perfmodel.render.roofs import Kernel, Roofs
from perfmodel.timing.roofline import ridge_point

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LABEL = 7.0  # points
_DASHED = (0, (4, 2))
_LIFT = 0.09  # inches from a line to the middle of its label
_RAISED = 0.14  # inches from a mark to its warning sign


@dataclass(frozen=True)
class _Frame:
    """Limits of a panel's log axes and its size in inches."""

    x: tuple[float, float]
    y: tuple[float, float]
    width: float
    height: float

    def inches(self, x: float, y: float) -> Place:
        """Where a data point stands, from the panel's lower left corner."""
        return (
            self.width * math.log(x / self.x[0]) / math.log(self.x[1] / self.x[0]),
            self.height * math.log(y / self.y[0]) / math.log(self.y[1] / self.y[0]),
        )

    def data(self, place: Place) -> tuple[float, float]:
        """The inverse of `inches`."""
        return (
            self.x[0] * (self.x[1] / self.x[0]) ** (place[0] / self.width),
            self.y[0] * (self.y[1] / self.y[0]) ** (place[1] / self.height),
        )

    @property
    def angle(self) -> float:
        """Screen angle of a diagonal, in radians."""
        per_decade_x = self.width / math.log10(self.x[1] / self.x[0])
        per_decade_y = self.height / math.log10(self.y[1] / self.y[0])
        return math.atan2(per_decade_y, per_decade_x)


def roofline_chart(
    devices: Sequence[Roofs],
    kernels: Sequence[Kernel] = (),
    *,
    size: tuple[float, float] | None = None,
    note: str = "",
) -> Figure:
    """One panel per device with the kernels that ran, or would run, on it.

    `size` is in inches, by default as large as the panels need; `note` ends the caption. Raises
    `ProblemError` for more kernels than there are markers, for a kernel without arithmetic, and for
    no device.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    labels = list(dict.fromkeys(kernel.label for kernel in kernels))
    if not devices:
        raise ProblemError("no device to draw; name one with --device")
    if len(labels) > len(MARKERS):
        raise ProblemError(
            f"{len(labels)} kernels are too many for one chart; draw at most {len(MARKERS)}"
        )
    for kernel in kernels:
        if not kernel.flops_per_s > 0:
            raise ProblemError(
                f"{kernel.label} does no arithmetic, so it has no place under a roof; "
                "perfmodel predict has its bytes and time"
            )
    columns = min(len(devices), 3)
    rows = math.ceil(len(devices) / columns)
    width, height = size or (max(6.0, 4.2 * columns), 3.3 * rows + 1.2)
    with rc_context(STYLE):
        figure = Figure(figsize=(width, height))
        below = foot.draw(figure, devices, kernels, labels, note)
        limits = _limits(devices, kernels)
        for i, device in enumerate(devices):
            box = _box(i, columns, rows, (width, height), below)
            axes = figure.add_axes(
                (box[0] / width, box[1] / height, box[2] / width, box[3] / height)
            )
            _panel(axes, device, kernels, labels, _Frame(*limits, box[2], box[3]))
            if i % columns:
                axes.set_ylabel("")
    return figure


def _box(
    i: int, columns: int, rows: int, size: tuple[float, float], foot: float
) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of a panel, in inches."""
    left, right, gap, top, between = 0.72, 0.22, 0.55, 0.3, 0.75
    width = (size[0] - left - right - gap * (columns - 1)) / columns
    height = (size[1] - foot - top - between * (rows - 1)) / rows
    if width < 1 or height < 1:
        raise ProblemError(
            f"{size[0]:g} x {size[1]:g} inches are too small for this chart; give it more room"
        )
    row, column = divmod(i, columns)
    bottom = size[1] - top - height - row * (height + between)
    return left + column * (width + gap), bottom, width, height


def _limits(
    devices: Sequence[Roofs], kernels: Sequence[Kernel]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Axes shared by all panels: every ridge, ceiling and mark, with room for labels."""
    ridges = [
        ridge_point(device.top.highest, roof.highest)
        for device in devices
        for roof in device.levels.values()
    ]
    marks = [x for kernel in kernels for x in kernel.intensity.values() if 0 < x < math.inf]
    heights = [kernel.flops_per_s for kernel in kernels]
    ceilings = [roof.highest for d in devices for roof in (*d.matrix, *d.vector)]
    slowest = min(roof.value for device in devices for roof in device.levels.values())
    left = min([min(ridges) / 30, *(mark / 3 for mark in marks)])
    right = max([max(ridges) * 8, *(mark * 3 for mark in marks)])
    low = min([min(ceilings) / 3, slowest * left * 2, *(height / 3 for height in heights)])
    return (left, right), (low, max([*ceilings, *heights]) * 3)


def _panel(
    axes: Axes, device: Roofs, kernels: Sequence[Kernel], labels: list[str], frame: _Frame
) -> None:
    """Roofs, marks and labels of one device."""
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=frame.x, ylim=frame.y)
    axes.set_xlabel("Arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("Performance (FLOP/s)")
    axes.set_title(device.title, loc="left")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=12))
        axis.set_minor_formatter(NullFormatter())
    mine = [kernel for kernel in kernels if kernel.device == device.device]
    marks = [frame.inches(x, kernel.flops_per_s) for kernel in mine for x in _shown(kernel, device)]
    marks += [(x, y + _RAISED) for kernel in mine for x, y in _warned(device, kernel, frame)]
    places = Places(marks, _lines(device, frame))
    _ridges(axes, device, frame, places)
    _ceilings(axes, device, frame, places)
    _diagonals(axes, device, frame, places)
    for kernel in mine:
        _mark(axes, device, kernel, MARKERS[labels.index(kernel.label)])


def _warned(device: Roofs, kernel: Kernel, frame: _Frame) -> list[Place]:
    """Where a kernel above its roof gets its sign, or nothing."""
    xs = _shown(kernel, device)
    return [frame.inches(max(xs), kernel.flops_per_s)] if xs and device.above(kernel) else []


def _lines(device: Roofs, frame: _Frame) -> list[tuple[Place, Place]]:
    """Roofs as straight lines in inches, which labels had better not cross."""
    innermost = max(roof.value for roof in device.levels.values())
    found = []
    for roof in (*device.matrix, *device.vector):
        for value in filter(None, (roof.value, roof.datasheet)):
            start = max(ridge_point(value, innermost), frame.x[0])
            found.append((frame.inches(start, value), frame.inches(frame.x[1], value)))
    for roof in device.levels.values():
        for value in filter(None, (roof.value, roof.datasheet)):
            start = max(frame.x[0], frame.y[0] / value)
            end = ridge_point(device.top.highest, value)
            found.append((frame.inches(start, start * value), frame.inches(end, end * value)))
    return found


def _shown(kernel: Kernel, device: Roofs) -> list[float]:
    """Intensities of a kernel at the levels drawn."""
    return [kernel.intensity[level] for level in device.levels if _finite(kernel, level)]


def _finite(kernel: Kernel, level: str) -> bool:
    return 0 < kernel.intensity.get(level, 0.0) < math.inf


def _ridges(axes: Axes, device: Roofs, frame: _Frame, places: Places) -> None:
    """A tick and a number where each diagonal meets the highest ceiling."""
    top = device.top.value
    for level, roof in device.levels.items():
        x = ridge_point(top, roof.value)
        axes.plot(
            [x, x],
            [frame.y[0], top],
            color=COLOURS[level],
            linewidth=0.6,
            linestyle=":",
            alpha=0.8,
            zorder=1,
            gid=f"ridge-{level}",
        )
        words = f"{x:.3g}" if x < 1000 else f"{x:.0f}"
        at = frame.inches(x, frame.y[0])
        places.take((at[0] - 0.06, at[1] + 0.05), text_inches(words, _LABEL), math.pi / 2)
        axes.annotate(
            words,
            (x, frame.y[0]),
            xytext=(-1.5, 3),
            textcoords="offset points",
            rotation=90,
            ha="right",
            va="bottom",
            fontsize=_LABEL - 0.5,
            color=COLOURS[level],
        )


def _ceilings(axes: Axes, device: Roofs, frame: _Frame, places: Places) -> None:
    """Horizontal lines from the innermost diagonal to the right, labelled above the line."""
    innermost = max(roof.value for roof in device.levels.values())
    for roof in (*device.matrix, *device.vector):
        main = roof in device.matrix or not device.matrix
        colour = "black" if main else GREY
        style: dict[str, Any] = {"color": colour, "zorder": 2, "linewidth": 1.2 if main else 0.8}
        start = max(ridge_point(roof.value, innermost), frame.x[0])
        axes.plot([start, frame.x[1]], [roof.value] * 2, gid=f"ceiling-{roof.name}", **style)
        if roof.datasheet:
            ends = [ridge_point(roof.datasheet, innermost), frame.x[1]]
            dashed = {**style, "linewidth": 0.8, "linestyle": _DASHED}
            axes.plot(ends, [roof.datasheet] * 2, **dashed)
        length = text_inches(roof.label, _LABEL)
        right, left = frame.width - length - 0.03, frame.inches(start, roof.value)[0]
        above = frame.inches(start, roof.highest)[1] + _LIFT
        below = frame.inches(start, roof.value)[1] - _LIFT
        steps = [right - step * max(right - left, 0) / 40 for step in range(41)]
        offered = [(x, y) for y in (above, below) for x in steps]
        _write(axes, roof.label, places.best(offered, length, 0.0), 0.0, frame, colour)


def _diagonals(axes: Axes, device: Roofs, frame: _Frame, places: Places) -> None:
    """Bandwidths, each ending at the highest ceiling, labelled along the line."""
    for level, roof in device.levels.items():
        colour = COLOURS[level]
        _diagonal(axes, roof.value, device.top.value, frame, colour, f"level-{level}")
        if roof.datasheet:
            _diagonal(axes, roof.datasheet, device.top.highest, frame, colour, None)
        length = text_inches(roof.label, _LABEL)
        offered = [
            *_beside(roof.highest, device.top.value, frame, length, _LIFT),
            *_beside(roof.value, device.top.value, frame, length, -_LIFT),
        ]
        place = places.best(offered, length, frame.angle)
        _write(axes, roof.label, place, frame.angle, frame, colour)


def _beside(bandwidth: float, top: float, frame: _Frame, length: float, lift: float) -> list[Place]:
    """Places for a label along a diagonal, from the left, `lift` inches above it."""
    first = max(frame.x[0], frame.y[0] / bandwidth)
    start = frame.inches(first, first * bandwidth)
    end = frame.inches(ridge_point(top, bandwidth), top)
    run = max(end[0] - start[0] - length * math.cos(frame.angle) - 0.1, 0.0)
    aside = (-lift * math.sin(frame.angle), lift * math.cos(frame.angle))
    steps = [0.1 + run * step / 24 for step in range(25)]
    return [
        (start[0] + x + aside[0], start[1] + x * math.tan(frame.angle) + aside[1]) for x in steps
    ]


def _diagonal(
    axes: Axes, bandwidth: float, top: float, frame: _Frame, colour: str, gid: str | None
) -> None:
    start = max(frame.x[0], frame.y[0] / bandwidth)
    ends = [start, ridge_point(top, bandwidth)]
    dashed: dict[str, Any] = {} if gid else {"linestyle": _DASHED, "linewidth": 0.8}
    axes.plot(ends, [x * bandwidth for x in ends], color=colour, zorder=2, gid=gid, **dashed)


def _write(axes: Axes, words: str, place: Place, angle: float, frame: _Frame, colour: str) -> None:
    """Text whose middle line starts at `place` (inches)."""
    axes.text(
        *frame.data(place),
        words,
        fontsize=_LABEL,
        color=colour,
        rotation=math.degrees(angle),
        rotation_mode="anchor",
        ha="left",
        va="center_baseline",
        zorder=4,
        bbox={"boxstyle": "square,pad=0.05", "facecolor": "white", "alpha": 0.75, "linewidth": 0},
    )


def _mark(axes: Axes, device: Roofs, kernel: Kernel, marker: str) -> None:
    """A kernel's marks, one a level, and the line that joins them."""
    levels = [level for level in device.levels if _finite(kernel, level)]
    xs = [kernel.intensity[level] for level in levels]
    name = f"{'measured' if kernel.measured else 'predicted'}-{kernel.label}"
    axes.plot(xs, [kernel.flops_per_s] * len(xs), color=GREY, linewidth=0.6, zorder=5)
    for level, x in zip(levels, xs, strict=True):
        axes.plot(
            [x],
            [kernel.flops_per_s],
            linestyle="none",
            marker=marker,
            # Smaller when measured, so that the ring of a prediction that agrees can be seen.
            markersize=(4.0 if kernel.measured else 6.2) * (1.35 if marker == "*" else 1.0),
            markeredgewidth=0.4 if kernel.measured else 1.1,
            markeredgecolor=COLOURS[level],
            markerfacecolor=COLOURS[level] if kernel.measured else "white",
            zorder=7 if kernel.measured else 6,
            gid=f"{name}-{level}",
        )
    if device.above(kernel) and xs:
        axes.annotate(
            WARNING,
            (max(xs), kernel.flops_per_s),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            fontweight="bold",
            color=VERMILION,
            zorder=8,
        )
