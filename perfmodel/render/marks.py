"""Kernels on a roofline panel: marks, ranges, trajectories, and labels at the points.

A kernel has a mark for each level of memory, all at one height; the shape of the mark is the
level's. Kernels of one label are joined in the order of their sizes; others are joined across
levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise, product

from perfmodel.render.labels import FAINT, Box, Place, line_box, mark_box, text_box, text_inches
from perfmodel.render.rooflines import LOOKS, Panel
from perfmodel.render.roofs import Kernel

WARNING = "\u26a0"
_RINGS = (
    1.0,
    1.7,
    2.7,
    4.0,
    5.0,
    6.0,
    7.5,
    9.0,
)  # distances of a label from its mark, nearest first
_CLOSE = 6  # rings where a short text is better than a long one beyond them
_UPS = (0.3, -0.3, 0.8, -0.8)  # rises of labels at a mark's side, over their distance
_NEAR = 0.1  # inches to the nearest label, at the default size
_LED = 2.0  # from this ring on, a line leads from the label to its mark
_POINT = 1 / 72  # inches


def shown(panel: Panel, kernel: Kernel) -> dict[str, float]:
    """Intensities of a kernel at the drawn levels."""
    return {
        level: x
        for level in panel.device.levels
        if 0 < (x := kernel.intensity.get(level, 0.0)) < math.inf
    }


def keep(panel: Panel, kernels: Iterable[Kernel]) -> None:
    """Reserve the areas of all marks and warning signs before any text is placed."""
    boxes = []
    for kernel in kernels:
        levels = shown(panel, kernel)
        for level, x in levels.items():
            mark = panel.frame.inches(x, kernel.flops_per_s)
            boxes.append(mark_box(mark, _size(panel, level) * _POINT * 1.2))
        if _warned(panel, kernel):
            left, bottom = panel.frame.inches(max(levels.values()), kernel.flops_per_s)
            scale = panel.palette.scale
            boxes.append(mark_box((left, bottom + 0.15 * scale), 0.16 * scale))
    panel.places.take(*boxes)


def lines(panel: Panel, kernels: Sequence[Kernel]) -> Iterator[Box]:
    """Lines that join marks, and ranges: labels should avoid crossing them."""
    inches = panel.frame.inches
    for kernel in kernels:
        xs = list(shown(panel, kernel).values())
        if xs and not kernel.at:
            yield line_box(*(inches(x, kernel.flops_per_s) for x in (min(xs), max(xs))))
        if xs and kernel.low_flops_per_s and kernel.high_flops_per_s:
            ends = (kernel.low_flops_per_s, kernel.high_flops_per_s)
            yield line_box(*(inches(xs[0], y) for y in ends))
    for _, points in _trajectories(panel, kernels):
        for start, end in pairwise(points):
            if start != end:
                yield line_box(inches(*start), inches(*end))


def _trajectories(
    panel: Panel, kernels: Iterable[Kernel]
) -> Iterator[tuple[str, list[tuple[float, float]]]]:
    """For each level, the points of kernels of one label, in the order of their sizes."""
    series: dict[tuple[str, bool, str], list[tuple[float, float]]] = {}
    for kernel in kernels:
        for level, x in shown(panel, kernel).items() if kernel.at else ():
            points = series.setdefault((kernel.label, kernel.measured, level), [])
            points.append((x, kernel.flops_per_s))
    yield from ((level, points) for (_, _, level), points in series.items())


def draw(panel: Panel, kernels: Sequence[Kernel]) -> None:
    """Draw ranges, lines between marks, and marks."""
    palette = panel.palette
    outermost = next(iter(panel.device.levels))
    for level, points in _trajectories(panel, kernels):
        panel.axes.plot(
            *zip(*points, strict=True),
            color=panel.colour(level),
            linewidth=(0.6 if level == outermost else 0.35) * palette.line,
            alpha=0.8 if level == outermost else 0.5,
            zorder=4,
            gid=f"trajectory-{level}",
        )
    for measured in (False, True):
        _marks(panel, [kernel for kernel in kernels if kernel.measured is measured])
    for kernel in kernels:
        if _warned(panel, kernel):
            panel.axes.annotate(
                WARNING, (max(shown(panel, kernel).values()), kernel.flops_per_s),
                xytext=(0, 0.65 * palette.body), textcoords="offset points", ha="center",
                va="bottom", fontsize=1.1 * palette.body, fontweight="bold",
                color=palette.vermilion, zorder=8,
            )  # fmt: skip


def gid(what: str, level: str, device: str = "") -> str:
    """The id of the marks of a level: predicted or measured ones; of one of several devices."""
    return "-".join(filter(None, [what, level, device]))


def _marks(panel: Panel, kernels: Sequence[Kernel]) -> None:
    """Draw the marks of predicted or of measured kernels, those of inner levels below: they are
    larger. Behind them a line joins the marks of a kernel, and a bar is its range."""
    axes, line = panel.axes, panel.palette.line
    spans = [(k.flops_per_s, list(shown(panel, k).values())) for k in kernels if not k.at]
    spans = [(rate, xs) for rate, xs in spans if len(xs) > 1]
    axes.hlines([rate for rate, _ in spans], [min(xs) for _, xs in spans],
                [max(xs) for _, xs in spans], colors=panel.palette.grey, linewidth=0.5 * line,
                zorder=5)  # fmt: skip
    for level in reversed(list(panel.device.levels)):
        mine = [kernel for kernel in kernels if level in shown(panel, kernel)]
        _ranges(panel, level, [k for k in mine if level == next(iter(shown(panel, k)))])
        if not mine:
            continue
        measured = mine[0].measured
        axes.plot(
            [kernel.intensity[level] for kernel in mine],
            [kernel.flops_per_s for kernel in mine],
            linestyle="none",
            marker=LOOKS[level].marker,
            markersize=_size(panel, level) * (0.75 if measured else 1.0),
            markeredgewidth=(0.3 if measured else 0.85) * line,
            markeredgecolor=panel.colour(level),
            markerfacecolor=panel.colour(level) if measured else panel.palette.ground,
            zorder=7 if measured else 6,
            gid=gid("measured" if measured else "predicted", level, panel.suffix),
        )


def _ranges(panel: Panel, level: str, kernels: Sequence[Kernel]) -> None:
    """Draw the ranges of predictions, at this level."""
    ends = [
        (k.intensity[level], k.low_flops_per_s, k.high_flops_per_s)
        for k in kernels
        if k.low_flops_per_s and k.high_flops_per_s
    ]
    if not ends:
        return
    xs, low, high = zip(*ends, strict=True)
    colour, line = panel.colour(level), panel.palette.line
    panel.axes.vlines(
        xs, low, high, colors=colour, alpha=0.75, linewidth=0.7 * line, zorder=5,
        gid=gid("range", level, panel.suffix),
    )  # fmt: skip
    panel.axes.plot(
        [*xs, *xs], [*low, *high], color=colour, alpha=0.75, linestyle="none", marker="_",
        markersize=2.5 * line, zorder=5, gid=gid("end", level, panel.suffix),
    )  # fmt: skip


def _size(panel: Panel, level: str) -> float:
    """Width of a mark, in points."""
    return LOOKS[level].size * panel.palette.line / 1.2 * 1.15


def _warned(panel: Panel, kernel: Kernel) -> bool:
    return bool(shown(panel, kernel)) and panel.device.above(kernel)


def label(panel: Panel, kernels: Sequence[Kernel]) -> Iterator[str]:
    """Write names and shares of the roof at the points; yields the names without room.

    The ends of a trajectory come first, so that they are always named.
    """
    lasts = {(k.label, k.measured): k for k in kernels}
    ordered = sorted(kernels, key=lambda k: lasts[k.label, k.measured] is not k)
    predicted = {k.name for k in kernels if not k.measured}
    for kernel in ordered:
        levels = shown(panel, kernel)
        if not levels:
            continue
        level, x = next(iter(levels.items()))
        mark = panel.frame.inches(x, kernel.flops_per_s)
        last = lasts[kernel.label, kernel.measured] is kernel
        texts = [*_texts(panel, kernel, last=last, predicted=kernel.name in predicted)]
        reaches = (_RINGS[:_CLOSE], *([_RINGS[_CLOSE:]] if last or not kernel.at else []))
        for rings, words in product(reaches, texts):
            positions = [*_positions(panel, words, mark, rings)]
            clear = (box for box, ring in positions if _reaches(panel, mark, box, ring))
            place = panel.places.best(clear, FAINT)
            if place is not None:
                ring = next(ring for box, ring in positions if box is place)
                if ring >= _LED:
                    _lead(panel, mark, place, level)
                panel.frame.write(panel.axes, words, place, panel.palette.label, panel.palette.ink)
                break
        else:
            yield kernel.name


def _texts(panel: Panel, kernel: Kernel, *, last: bool, predicted: bool) -> Iterator[str]:
    """Candidate texts for a point, longest first; the end of a trajectory gets the full text."""
    roof, _ = panel.device.bound(kernel)
    share = f"{panel.device.share(kernel):.0%} of {roof.name}"
    if kernel.measured and predicted:  # the name is written at the prediction
        source = f"{kernel.by} measured" if kernel.by else "measured"
        yield from (f"{source}: {share}", source)
    elif kernel.at and not last:
        yield kernel.at
    else:
        measured = " measured" if kernel.measured else ""
        names = dict.fromkeys((kernel.name, kernel.label) if kernel.label else (kernel.name,))
        yield from (f"{kernel.name}{measured}: {share}", *(f"{name}{measured}" for name in names))


def _positions(
    panel: Panel, words: str, mark: Place, rings: Sequence[float]
) -> Iterator[tuple[Box, float]]:
    """Positions around a mark with their distances, nearest first."""
    palette = panel.palette
    length = text_inches(words, palette.label)
    half = 0.65 * palette.label * _POINT
    for ring in rings:
        gap = _NEAR * palette.scale * ring
        slant = 0.7 * gap
        for dx, dy in (
            (gap, 0.0),
            (slant, slant + half),
            (slant, -slant - half),
            (-length / 2, gap + half),
            (-length / 2, -gap - half),
            (-gap - length, 0.0),
            (-slant - length, slant + half),
            (-slant - length, -slant - half),
            *((-length * part, up) for part in (0.2, 0.8) for up in (gap + half, -gap - half)),
            *((across, gap * up) for across in (gap, -gap - length) for up in _UPS),
        ):
            start = (mark[0] + dx, mark[1] + dy)
            yield text_box(words, palette.label, start), ring


def _target(mark: Place, box: Box) -> Place:
    """Where a line from a mark meets its label: the nearest end, or the middle of a side."""
    ends = (box.start[0], box.start[0] + box.length / 2, box.start[0] + box.length)
    nearest = min(ends, key=lambda x: abs(x - mark[0]))
    side = box.height / 2 if box.start[1] < mark[1] else -box.height / 2
    return (nearest, box.start[1] + (side if nearest == ends[1] else 0.0))


def _reaches(panel: Panel, mark: Place, box: Box, ring: float) -> bool:
    """Whether a label needs no line to its mark, or one that crosses no other text."""
    if ring < _LED:
        return True
    end = _target(mark, box)
    length = math.dist(mark, end)
    clear = 0.6 * _NEAR * panel.palette.scale / max(length, 1e-9)  # the mark's own area
    start = tuple(a + (b - a) * min(clear, 1.0) for a, b in zip(mark, end, strict=True))
    return not panel.places.covered(line_box((start[0], start[1]), end))


def _lead(panel: Panel, mark: Place, box: Box, level: str) -> None:
    """Draw a thin line from a mark to the nearest end of its label; later labels avoid it."""
    end = _target(mark, box)
    panel.places.cross([line_box(mark, end)])
    xs, ys = zip(panel.frame.data(mark), panel.frame.data(end), strict=True)
    panel.axes.plot(
        xs,
        ys,
        color=panel.colour(level),
        linewidth=0.4 * panel.palette.line,
        zorder=4,
        gid=f"leader-{level}",
    )
