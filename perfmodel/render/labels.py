"""Positions for text on a panel where it covers neither marks nor other text.

All lengths are in inches from the panel's lower left corner, so that a chart reads well at any
size. Text, marks and lines are oriented boxes. Two boxes are apart if their projections on some
direction are separate (separating axis theorem; the directions of both boxes' sides suffice).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Place = tuple[float, float]

_TALL = 1.3  # height of a line of text over its font size, with margin
_AIR = 0.5  # free width after a text, over its font size
_CROSSED = 3.0  # cost of a label for each line that it crosses
FAINT = 0.5
"""Cost of a label for each faint line that it crosses."""
_LATER = 0.1  # cost of a label for each position offered before it
_OPEN = 0.03  # inches of a label's margin that may be above the panel, which has no line there
_LEAST = 0.01  # assumed width of a line in inches


def text_inches(text: str, points: float) -> float:
    """Length of `text` at a font size of `points`: its letters' advances, without kerning."""
    return sum(map(_advance, text)) * points / 72 if text.strip() else 0.0


@lru_cache(maxsize=4096)
def _advance(letter: str) -> float:
    """Advance of a letter over the font's size."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.ft2font import LoadFlags

    font = get_font(findfont("DejaVu Sans"))
    font.set_size(100, 72)
    glyph = font.load_char(ord(letter), flags=LoadFlags.NO_HINTING)
    return float(glyph.linearHoriAdvance) / 65536 / 100


def wrapped(text: str, points: float, inches: float) -> list[str]:
    """`text` in lines of at most `inches`, broken between words."""
    lines: list[str] = []
    for word in text.split():
        longer = f"{lines[-1]} {word}" if lines else word
        if lines and text_inches(longer, points) <= inches:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def shortened(text: str, points: float, inches: float) -> str:
    """As much of `text` as `inches` hold, with an ellipsis if that is not all."""
    if text_inches(text, points) <= inches:
        return text
    while len(text) > 1 and text_inches(f"{text}…", points) > inches:
        text = text[:-1]
    return f"{text}…"


@dataclass(frozen=True)
class Box:
    """A rectangle, given by the centre line along its length."""

    start: Place
    """Start of the centre line."""
    length: float
    """Length of the centre line."""
    height: float
    """Extent across it."""
    angle: float = 0.0
    """Angle of the centre line, in radians."""

    def corners(self) -> np.ndarray:
        """The four corners, of shape (4, 2)."""
        along = np.array([math.cos(self.angle), math.sin(self.angle)])
        across = np.array([-along[1], along[0]]) * self.height / 2
        start = np.asarray(self.start)
        end = start + along * self.length
        return np.array([start - across, start + across, end + across, end - across])


def text_box(text: str, points: float, start: Place, angle: float = 0.0) -> Box:
    """The box of a line of `text` with its margin; its centre line starts at `start`."""
    length = text_inches(text, points) + _AIR * points / 72
    return Box(start, length, _TALL * points / 72, angle)


def line_box(start: Place, end: Place) -> Box:
    """The box of a straight line."""
    angle = math.atan2(end[1] - start[1], end[0] - start[0])
    return Box(start, math.dist(start, end), _LEAST, angle)


def mark_box(middle: Place, size: float) -> Box:
    """The box of a mark of `size` inches."""
    return Box((middle[0] - size / 2, middle[1]), size, size)


def overlaps(box: Box, others: np.ndarray) -> np.ndarray:
    """Which of `others` (corners, of shape (n, 4, 2)) a box overlaps."""
    quad = box.corners()
    if not len(others):
        return np.ones(0, dtype=bool)
    sides = np.concatenate(
        [
            np.broadcast_to(np.stack([quad[1] - quad[0], quad[2] - quad[1]]), (len(others), 2, 2)),
            np.stack([others[:, 1] - others[:, 0], others[:, 2] - others[:, 1]], axis=1),
        ],
        axis=1,
    )
    extent = sides @ quad.T  # (n, 4 directions, 4 corners)
    extents = sides @ others.transpose(0, 2, 1)
    disjoint = (extent.max(2) <= extents.min(2)) | (extents.max(2) <= extent.min(2))
    return np.asarray(~disjoint.any(axis=1))


class Places:
    """Occupied areas of one panel of `width` × `height` inches, and positions for the next text."""

    def __init__(self, width: float, height: float) -> None:
        self._size = width, height
        self._taken = np.empty((0, 4, 2))
        self._lines = np.empty((0, 4, 2))
        self._costs = np.empty(0)

    def take(self, *boxes: Box) -> None:
        """Reserve areas: no text will cover them."""
        corners = [box.corners()[None] for box in boxes]
        self._taken = np.concatenate([self._taken, *corners])

    def covered(self, box: Box) -> bool:
        """Whether a box overlaps a reserved area."""
        return bool(overlaps(box, self._taken).any())

    def cross(self, lines: Iterable[Box], cost: float = _CROSSED) -> None:
        """Add lines that text should avoid crossing, at this cost each."""
        corners = [box.corners()[None] for box in lines]
        self._lines = np.concatenate([self._lines, *corners])
        self._costs = np.concatenate([self._costs, np.full(len(corners), cost)])

    def best(self, offered: Iterable[Box], most: float = math.inf) -> Box | None:
        """The free position of least cost, which is then reserved; None if none is free.

        Earlier positions are preferred, and positions that cross fewer lines, none that costs more
        than `most`.
        """
        least, choice = math.inf, None
        for i, box in enumerate(offered):
            cost = _LATER * i
            if cost >= least:  # all later positions cost more
                break
            if self._free(box):
                costs = self._costs[overlaps(box, self._lines)]
                cost += float(costs.sum())
                if costs.max(initial=0.0) <= most and cost < least:
                    least, choice = cost, box
        if choice is not None:
            self.take(choice)
        return choice

    def _free(self, box: Box) -> bool:
        low, high = box.corners().min(0), box.corners().max(0)
        width, height = self._size
        inside = (low >= 0).all() and (high <= (width, height + _OPEN)).all()
        return bool(inside) and not self.covered(box)


def name_points(
    axes: Axes, named: Sequence[tuple[float, float, str]], points: float, colour: str
) -> list[tuple[str, int]]:
    """Write a text beside each point (x, y, text) that has room for it, in the order given.

    Texts cover no point and no other text, and cross the lines of `axes` only where they must. The
    figure's layout has to be complete. Returns the id of each text and the index of its point.
    """
    if not named:
        return []
    figure = axes.figure
    figure.draw_without_rendering()  # type: ignore[union-attr]
    panel, dpi = axes.get_window_extent(), figure.dpi
    inches = [(axes.transData.transform((x, y)) - panel.min) / dpi for x, y, _ in named]
    places = Places(panel.width / dpi, panel.height / dpi)
    for line in axes.lines:
        ends = (line.get_transform().transform(line.get_xydata()) - panel.min) / dpi
        vertices = [(float(x), float(y)) for x, y in ends]
        if line.get_marker() not in ("", "None", None):
            for middle in vertices:
                places.take(mark_box(middle, 0.07))
        if line.get_linestyle() != "None":
            places.cross(line_box(a, b) for a, b in itertools.pairwise(vertices) if a != b)
    written = []
    for i, ((x, y), (_, _, text)) in enumerate(zip(inches, named, strict=True)):
        length = text_inches(text, points)
        boxes = [
            text_box(text, points, (x + dx * gap - (length if dx < 0 else 0), y + dy * gap))
            for gap in (0.07, 0.11, 0.18)
            for dx, dy in ((0.7, 1.2), (0.7, -1.2), (-0.7, 1.2), (-0.7, -1.2), (1, 0), (-1, 0))
        ]
        box = places.best(boxes)
        if box is not None:
            left, middle = axes.transData.inverted().transform(
                np.asarray(box.start) * dpi + panel.min
            )
            axes.text(
                left, middle, text, fontsize=points, color=colour, va="center_baseline", zorder=9,
                gid=f"label-{i}",
            )  # fmt: skip
            written.append((f"label-{i}", i))
    return written
