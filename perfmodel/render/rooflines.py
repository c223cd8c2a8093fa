"""The roofs of a panel: ceilings, diagonals and ridge points, each labelled on its line.

Each memory level has its own colour and line style, so that greyscale distinguishes them too. A
published peak is a thin line beside the thick one of the measured value.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from perfmodel.render.frame import Frame
from perfmodel.render.labels import FAINT, Box, Place, Places, line_box, text_box, text_inches
from perfmodel.render.page import Palette
from perfmodel.render.roofs import Roof, Roofs
from perfmodel.timing.roofline import ridge_point
from perfmodel.units import si

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Look:
    """The look of a memory level."""

    colour: str
    """Name of a palette colour."""
    dashes: Any
    """Line style of its diagonal."""
    marker: str
    """Shape of a kernel's mark at this level."""
    size: float
    """Size of the mark, relative to the palette's line. Inner levels are larger, so that coinciding
    marks are all visible."""


LOOKS: Mapping[str, Look] = {
    "hbm": Look("blue", "-", "o", 4.2),
    "llc": Look("purple", (0, (6, 1.5, 1.2, 1.5)), "D", 5.2),
    "l2": Look("green", (0, (4.5, 1.8)), "s", 6.0),
    "shared": Look("ochre", (0, (1.2, 1.2)), "^", 7.6),
    "peer": Look("vermilion", (0, (8, 1.5, 1.2, 1.5, 1.2, 1.5)), "v", 4.6),
    "network": Look("sky", (0, (8, 3)), "h", 4.6),
    "host": Look("grey", (0, (3, 3)), "p", 4.6),
}
Offers = Sequence[tuple[Place, Place]]
"""Positions for a label along a line: above it and below it."""
_THIN = 0.5  # line width of a published peak over that of a measured value
_LIFT = 0.095  # inches from a line to the centre of its label, at the default size


@dataclass(frozen=True)
class Panel:
    """One device's panel during drawing."""

    axes: Axes
    """Its axes."""
    device: Roofs
    """The roofs of its device."""
    frame: Frame
    """Limits and size."""
    places: Places
    """Occupied areas."""
    palette: Palette
    """Its colours."""
    suffix: str = ""
    """What ends the ids of its marks, where there are several panels."""

    def colour(self, level: str) -> str:
        """The colour of a level."""
        return str(getattr(self.palette, LOOKS[level].colour))

    @property
    def lift(self) -> float:
        """Inches from a line to the centre of its label."""
        return _LIFT * self.palette.scale


def lines(panel: Panel, compute: tuple[Roof, ...]) -> Iterator[Box]:
    """The boxes of the roofs, which labels avoid."""
    device, frame = panel.device, panel.frame
    innermost = max(roof.value for roof in device.levels.values())
    for roof in compute:
        for value in filter(None, (roof.value, roof.datasheet)):
            start = max(ridge_point(value, innermost), frame.x[0])
            yield line_box(frame.inches(start, value), frame.inches(frame.x[1], value))
    tops = device.top.value, device.top.highest
    for roof in device.levels.values():
        for rate, top in zip((roof.value, roof.datasheet), tops, strict=True):
            if rate:
                start = max(frame.x[0], frame.y[0] / rate)
                end = ridge_point(top, rate)
                box = line_box(frame.inches(start, start * rate), frame.inches(end, end * rate))
                yield replace(box, length=max(box.length - box.height, 0.0))  # short of the ceiling


def ridge_lines(panel: Panel) -> Iterator[Box]:
    """The boxes of the dotted lines, which labels cross only where they must."""
    frame = panel.frame
    for _, _, x, top in _ridges(panel.device):
        yield line_box(frame.inches(x, frame.y[0]), frame.inches(x, top))


def _ridges(device: Roofs) -> Iterator[tuple[str, str, float, float]]:
    """Level, name of the line, and point of each ridge."""
    outermost = next(iter(device.levels))
    for level, roof in device.levels.items():
        tops = device.matrix if level == outermost and device.matrix else (device.top,)
        for top in sorted(tops, key=lambda item: -item.value):
            gid = f"ridge-{level}" if top is device.top else f"ridge-{level}-{top.name}"
            yield level, gid, ridge_point(top.value, roof.value), top.value


def ridges(panel: Panel) -> Iterator[str]:
    """Draw dotted lines and numbers at ridge points; yields the numbers without room.

    The outermost level is shown at every matrix ceiling, other levels at the highest.
    """
    frame, palette = panel.frame, panel.palette
    for level, gid, x, top in _ridges(panel.device):
        panel.axes.plot(
            [x, x],
            [frame.y[0], top],
            color=panel.colour(level),
            linewidth=0.5 * palette.line,
            linestyle=":",
            alpha=0.8,
            zorder=1,
            gid=gid,
        )
        words = f"{x:.3g}" if x < 999.5 else f"{x:.0f}"
        foot, height = frame.inches(x, frame.y[0]), frame.inches(x, top)[1]
        offset = 0.075 * palette.scale
        boxes = [
            text_box(words, palette.small, (foot[0] + side, foot[1] + up), math.pi / 2)
            for up in (0.05, *(step * palette.scale for step in (0.4, 0.7, 1.0, 1.3)))
            if up == 0.05 or up + text_inches(words, palette.small) <= height
            for side in (-offset, offset)
        ]
        place = panel.places.best(boxes, FAINT)
        if place is None:
            yield f"ridge point {words}"
        else:
            colour = panel.colour(level)
            frame.write(panel.axes, words, place, palette.small, colour, f"foot-{level}")


def ceilings(panel: Panel, compute: tuple[Roof, ...]) -> Iterator[str]:
    """Draw ceilings from the innermost diagonal to the right; yields labels without room."""
    device, frame, palette = panel.device, panel.frame, panel.palette
    innermost = max(roof.value for roof in device.levels.values())
    for roof in compute:
        main = roof in device.matrix or not device.matrix
        colour = palette.ink if main else palette.grey
        width = palette.line * (1.0 if main else 0.7)
        start = max(ridge_point(roof.value, innermost), frame.x[0])
        panel.axes.plot(
            [start, frame.x[1]],
            [roof.value] * 2,
            color=colour,
            linewidth=width,
            zorder=2,
            gid=f"ceiling-{roof.name}",
        )
        if roof.datasheet:
            ends = [ridge_point(roof.datasheet, innermost), frame.x[1]]
            panel.axes.plot(
                ends,
                [roof.datasheet] * 2,
                color=colour,
                linewidth=width * _THIN,
                zorder=2,
                gid=f"peak-{roof.name}",
            )
        offers = partial(_ceiling_offers, panel, start)
        yield from _label(panel, roof, 0.0, colour, offers, f"name-{roof.name}")


def _ceiling_offers(panel: Panel, start: float, rate: float, words: str) -> Offers:
    """Positions along a ceiling for a label, from the right."""
    frame = panel.frame
    left, line = frame.inches(start, rate)
    right = frame.width - text_box(words, panel.palette.label, (0.0, 0.0)).length - 0.01
    steps = [right - step * max(right - left, 0) / 40 for step in range(41)]
    return [((x, line + panel.lift), (x, line - panel.lift)) for x in steps]


def diagonals(panel: Panel) -> Iterator[str]:
    """Draw bandwidths up to the highest ceiling; yields labels without room."""
    device, frame, palette = panel.device, panel.frame, panel.palette
    for level, roof in device.levels.items():
        _diagonal(panel, roof.value, device.top.value, level, palette.line, f"level-{level}")
        if roof.datasheet:
            thin = palette.line * _THIN
            _diagonal(panel, roof.datasheet, device.top.highest, level, thin, f"peak-{level}")
        offers = partial(_diagonal_offers, panel)
        colour = panel.colour(level)
        yield from _label(panel, roof, frame.angle, colour, offers, f"name-{level}")


def _diagonal(
    panel: Panel, bandwidth: float, top: float, level: str, width: float, gid: str
) -> None:
    frame = panel.frame
    start = max(frame.x[0], frame.y[0] / bandwidth)
    ends = [start, ridge_point(top, bandwidth)]
    panel.axes.plot(
        ends,
        [x * bandwidth for x in ends],
        color=panel.colour(level),
        linestyle=LOOKS[level].dashes,
        linewidth=width,
        zorder=3,
        gid=gid,
    )


def _diagonal_offers(panel: Panel, bandwidth: float, words: str) -> Offers:
    """Positions along a diagonal for a label, from the left; none for a line that is shorter."""
    frame, top = panel.frame, panel.device.top.value
    sine, cosine = math.sin(frame.angle), math.cos(frame.angle)
    first = max(frame.x[0], frame.y[0] / bandwidth)
    start = frame.inches(first, first * bandwidth)
    end = frame.inches(ridge_point(top, bandwidth), top)
    run = end[0] - start[0] - text_inches(words, panel.palette.label) * cosine - 0.1
    if run < 0:
        return []
    steps = [0.1 + run * step / 24 for step in range(25)]
    points = [(start[0] + x, start[1] + x * sine / cosine) for x in steps]
    normal = (panel.lift * sine, panel.lift * cosine)
    return [((x - normal[0], y + normal[1]), (x + normal[0], y - normal[1])) for x, y in points]


def _label(
    panel: Panel,
    roof: Roof,
    angle: float,
    colour: str,
    offers: Callable[[float, str], Offers],
    gid: str,
) -> Iterator[str]:
    """Label the lines of a roof; yields the name of one without room.

    Each line has its label close to it, with no other line between. Where the measured value's has
    no such room, both stand in one label above the higher line. `offers` gives positions at a rate
    for a text.
    """
    points = panel.palette.label
    reach = 2 * 0.99 * (panel.lift - line_box((0.0, 0.0), (1.0, 0.0)).height / 2)  # short of it

    def write(words: str, rate: float, sides: int = 2) -> bool:
        places = [place for pair in offers(rate, words) for place in pair[:sides]]
        boxes = [replace(text_box(words, points, p, angle), height=reach) for p in places]
        place = panel.places.best(boxes, FAINT)
        if place is not None:
            panel.frame.write(panel.axes, words, place, points, colour, gid)
        return place is not None

    if write(roof.label, roof.value):
        if roof.datasheet:
            write(f"{si(roof.datasheet, roof.unit)} published", roof.datasheet)
    elif not (roof.datasheet and write(roof.both, roof.highest, sides=1)) and not write(
        roof.brief, roof.value
    ):
        if not write(roof.peak, roof.highest):
            write(roof.name, roof.value)
        yield roof.label
