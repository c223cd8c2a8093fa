"""Text on a panel where it covers neither marks nor lines nor other text.

All lengths are inches on the page, so that a chart reads well at any size. Text, marks and lines
are oriented boxes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise, product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perfmodel.render.page import Palette

Place = tuple[float, float]

_TALL = 1.3  # height of a line of text over its font size, with margin
_AIR = 0.5  # free width after a text, over its font size
_DOTTED = 0.5  # cost of a label for each dotted line that it crosses
_LATER = 0.1  # cost of a label for each position offered before it
_OPEN = 0.03  # inches of a label's margin that may be above the panel, which has no line there
_LEAST = 0.01  # assumed width of a line in inches
_LIFT = 0.095  # inches from a line to the centre of its label, at the default size
_EDGE = 0.1  # inches from the start of a line to its label, at the default size
_STEPS = 40  # positions along a line
_NEAR = 0.1  # inches from a mark to its nearest label, at the default size
_RINGS = (0.7, 1.0, 1.7, 2.7, 4.0, 5.0, 6.0, 7.5, 9.0)  # distances over that, nearest first
_CLOSE = 6.0  # up to this ring a short text is better than a long one beyond
_LED = 2.0  # from this ring on, a line leads from the label to its mark
_UPS = (0.3, -0.3, 0.8, -0.8)  # rises of labels at a mark's side, over their distance


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
    """A rectangle, given by the centre line along its length. Lengths are inches on the page."""

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
    """Which of `others` (corners, of shape (n, 4, 2)) a box overlaps: separating axis theorem."""
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


class Labels:
    """Writes text on a panel whose layout is complete, beside its marks and lines.

    The panel's own artists say what is there: a label covers neither marks nor other text, and of
    lines only dotted ones, where it must.
    """

    def __init__(self, axes: Axes, palette: Palette) -> None:
        self.axes, self._palette = axes, palette
        figure = axes.get_figure(root=True)
        assert figure is not None  # an axes that is drawn
        self._dpi = figure.dpi
        self._scale = figure.dpi_scale_trans
        texts = [item.get_window_extent() for item in axes.texts]
        self._taken = np.array([box.corners()[[0, 1, 3, 2]] / self._dpi for box in texts])
        self._taken = self._taken.reshape(-1, 4, 2)
        self._lines, self._dotted = np.empty((2, 0, 4, 2))
        for line in axes.lines:
            vertices = self._inches(line.get_transform().transform(line.get_xydata()))
            if line.get_marker() not in ("", "None", None):
                size = 1.2 * line.get_markersize() / 72
                boxes = [mark_box(middle, size).corners()[None] for middle in vertices]
                self._taken = np.concatenate([self._taken, *boxes])
            if line.get_linestyle() == ":":
                self._dotted = np.concatenate([self._dotted, *_path(vertices)])
            elif line.get_linestyle() != "None":
                self._lines = np.concatenate([self._lines, *_path(vertices)])
        for group in axes.collections:
            for path in group.get_paths() if not group.get_fill() else ():
                vertices = self._inches(group.get_transform().transform(path.vertices))
                self._lines = np.concatenate([self._lines, *_path(vertices)])

    def _inches(self, pixels: np.ndarray) -> list[Place]:
        return [(float(x), float(y)) for x, y in pixels / self._dpi]

    def place(self, x: float, y: float) -> Place:
        """The position of a data point on the page."""
        return self._inches(self.axes.transData.transform([(x, y)]))[0]

    def best(self, offered: Iterable[Box]) -> Box | None:
        """The free position of least cost, which is then taken; None if none is free.

        Earlier positions are preferred, and positions that cross fewer dotted lines.
        """
        least, choice = math.inf, None
        for i, box in enumerate(offered):
            cost = _LATER * i
            if cost >= least:  # all later positions cost more
                break
            if self._inside(box) and not overlaps(box, self._taken).any():
                cost += _DOTTED * float(overlaps(box, self._dotted).sum())
                if cost < least and not overlaps(box, self._lines).any():
                    least, choice = cost, box
        if choice is not None:
            self._taken = np.concatenate([self._taken, choice.corners()[None]])
        return choice

    def _inside(self, box: Box) -> bool:
        panel = self.axes.bbox
        low, high = box.corners().min(0) * self._dpi, box.corners().max(0) * self._dpi
        top = panel.y1 + _OPEN * self._dpi
        return bool((low >= panel.min).all() and high[0] <= panel.x1 and high[1] <= top)

    def write(self, words: str, box: Box | None, points: float, colour: str, gid: str = "") -> bool:
        """Write `words` into `box`; whether there is one."""
        if box is not None:
            self.axes.text(
                *box.start, words, transform=self._scale, fontsize=points, color=colour,
                rotation=math.degrees(box.angle), rotation_mode="anchor", ha="left",
                va="center_baseline", zorder=9, gid=gid or None,
                bbox={"boxstyle": "square,pad=0.05", "facecolor": self._palette.ground,
                      "alpha": 0.75, "linewidth": 0},
            )  # fmt: skip
        return box is not None

    def along(
        self, ends: Sequence[Place], words: str, points: float, *, last: bool = False,
        sides: Sequence[int] = (1, -1),
    ) -> Iterator[Box]:  # fmt: skip
        """Positions close to a straight line between two data points, above it and below it: from
        its start on, or with `last` from its end. None if it is shorter than the text."""
        (x0, y0), (x1, y1) = (self.place(*end) for end in ends)
        angle = math.atan2(y1 - y0, x1 - x0)
        sine, cosine = math.sin(angle), math.cos(angle)
        length = text_box(words, points, (x0, y0)).length
        first = _EDGE * self._palette.scale
        room = math.dist((x0, y0), (x1, y1)) - length - first
        lift = _LIFT * self._palette.scale
        for step in range(_STEPS + 1) if room > 0 else ():
            at = room * (1 - step / _STEPS if last else step / _STEPS) + (0 if last else first)
            for side in sides:
                start = (
                    x0 + at * cosine - side * lift * sine,
                    y0 + at * sine + side * lift * cosine,
                )
                yield Box(start, length, 1.98 * (lift - _LEAST / 2), angle)

    def name(
        self, x: float, y: float, texts: Sequence[str], points: float, colour: str, *,
        gid: str = "", line: str = "",
    ) -> bool:  # fmt: skip
        """Write the first of `texts` that has room beside a data point; whether one had.

        A far label has a thin line to its point, in the colour `line` or that of the text.
        """
        mark = self.place(x, y)
        near = _NEAR * self._palette.scale
        reaches = ([r for r in _RINGS if r <= _CLOSE], [r for r in _RINGS if r > _CLOSE])
        for reach, words in product(reaches, texts):
            offered = (box for r in reach for box in self._around(words, points, mark, near * r))
            box = self.best(box for box in offered if self._open(mark, box))
            if box is not None:
                self.write(words, box, points, colour, gid)
                end = _target(mark, box)
                if math.dist(mark, end) > _LED * near:
                    self._lead(mark, end, line or colour)
                return True
        return False

    def _around(self, words: str, points: float, mark: Place, gap: float) -> Iterator[Box]:
        """Positions around a point at a distance, the best first."""
        length, half = text_inches(words, points), 0.65 * points / 72
        slant = 0.7 * gap
        for dx, dy in (
            (gap, 0.0),
            *((slant, up) for up in (slant + half, -slant - half)),
            *((-length / 2, up) for up in (gap + half, -gap - half)),
            (-gap - length, 0.0),
            *((-slant - length, up) for up in (slant + half, -slant - half)),
            *((-length * part, up) for part in (0.2, 0.8) for up in (gap + half, -gap - half)),
            *((across, gap * up) for across in (gap, -gap - length) for up in _UPS),
        ):
            yield text_box(words, points, (mark[0] + dx, mark[1] + dy))

    def _open(self, mark: Place, box: Box) -> bool:
        """Whether a line from a mark to a far label crosses no other text or mark."""
        end = _target(mark, box)
        length, near = math.dist(mark, end), _NEAR * self._palette.scale
        clear = min(0.6 * near / max(length, 1e-9), 1.0)
        start = mark[0] + (end[0] - mark[0]) * clear, mark[1] + (end[1] - mark[1]) * clear
        return length <= _LED * near or not overlaps(line_box(start, end), self._taken).any()

    def _lead(self, mark: Place, end: Place, colour: str) -> None:
        """Draw a thin line from a mark to its label; later labels avoid it."""
        self._lines = np.concatenate([self._lines, *_path([mark, end])])
        self.axes.plot(
            *zip(mark, end, strict=True), transform=self._scale, color=colour, zorder=4,
            linewidth=0.4 * self._palette.line, gid="leader-", scalex=False, scaley=False,
        )  # fmt: skip


def _path(vertices: Sequence[Place]) -> Iterator[np.ndarray]:
    """The corners of the boxes of a line's parts, each of shape (1, 4, 2)."""
    return (line_box(a, b).corners()[None] for a, b in pairwise(vertices) if a != b)


def _target(mark: Place, box: Box) -> Place:
    """Where a line from a mark meets its level label: the point of the label that is nearest."""
    (left, middle), half = box.start, box.height / 2
    return (
        min(max(mark[0], left), left + box.length),
        min(max(mark[1], middle - half), middle + half),
    )
