"""One chart of lanes above each other, each with pieces from one number to another.

Times by class, memory by kind, what a change of the hardware does, errors by kind of run, and the
tasks of a pipeline's stages are all this chart, in a file and on a page.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.quantities import shown, tick
from perfmodel.render.chart import Chart, dress
from perfmodel.render.labels import shortened, text_inches
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.render.ticks import locator

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TALLEST = 6.5  # inches of all lanes
_MARKED = 2000  # limit on pieces with an id and numbers of their own in a picture
_OUTSIDE = 1.015  # of the panel's width: where notes beside it begin


@dataclass(frozen=True)
class Span:
    """A piece of a lane."""

    start: float
    """Where it begins."""
    end: float
    """Where it ends."""
    group: str
    """Its group, which has a colour."""
    row: Row | None = None
    """Its numbers, which are told of it; None: it is none of the chart's data."""
    text: str = ""
    """Text inside where that fits; of a piece without length, beside its place."""
    part: tuple[float, float] = (0.0, 1.0)
    """The part of the lane's height that it takes, from above."""
    pale: bool = False
    """Whether it is pale."""


@dataclass(frozen=True)
class Lane:
    """A row of pieces."""

    label: str = ""
    """Its name."""
    spans: Sequence[Span] = ()
    """Its pieces; later ones cover earlier ones."""
    note: str = ""
    """What stands at its right end."""
    ends: tuple[float, float] | None = None
    """The range of its end, drawn below it."""
    limit: float | None = None
    """A limit, drawn across it."""


@dataclass(frozen=True)
class Spans:
    """Lanes on one axis."""

    title: str
    """What is shown."""
    kind: str
    """Kind of the numbers of the axis, as in `quantities`."""
    lanes: Sequence[Lane]
    """The lanes, from above."""
    colours: Mapping[str, str]
    """Colour of each group, of the palette or in Matplotlib's words."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """Texts of the legend by group; empty: the groups."""
    beside: bool = True
    """Whether labels stand left of the panel, and notes right of it; else both above their lane."""
    axis: str = ""
    """What the axis has."""
    lanes_are: str = ""
    """What the lanes are."""
    noted: str = ""
    """What the notes are, where they stand right of the panel."""
    limit_name: str = "limit"
    """What the limits are."""
    inches: float = 0.26
    """Height of a lane at the default size; many lanes have less."""


def spans_chart(
    spans: Spans, *, sentence: str = "", caption: Sequence[str] = (), page: Page | None = None
) -> Chart:
    """The chart; its rows are those of the pieces, and its height is that of its lanes."""
    from matplotlib.figure import Figure

    page = page or Page()
    with styled(page) as palette:
        lanes = min(spans.inches * len(spans.lanes), _TALLEST)
        tall = (1.1 + 0.4 * bool(caption and page.caption) + lanes) * palette.scale
        wide, _ = page.size(page.width or 6.4, tall)
        figure = Figure(figsize=(wide, page.height or tall), layout="constrained")
        drawing = _Drawing(figure.add_subplot(), spans, palette, wide)
        drawing.draw()
        dress(figure, page, palette, spans.title, caption, drawing.handles())
        drawing.texts()
    return Chart(
        figure, spans.title, sentence or f"{len(spans.lanes)} bars.", drawing.rows, caption, page,
        drawing.gids,
    )  # fmt: skip


@dataclass(frozen=True)
class _Drawing:
    """A chart during drawing."""

    axes: Axes
    spans: Spans
    palette: Palette
    inches: float
    """Width of the picture."""
    rows: list[Row] = field(default_factory=list)
    gids: dict[str, Sequence[int]] = field(default_factory=dict)

    @property
    def height(self) -> float:
        """Height of the pieces, where the distance of two lanes is 1."""
        return 0.8 if self.spans.beside else 0.34

    def colour(self, group: str) -> str:
        """The colour of a group."""
        colour = self.spans.colours[group]
        return str(getattr(self.palette, colour, colour))

    def each(self) -> Iterator[tuple[int, Span]]:
        """Every piece with the place of its lane."""
        for place, lane in enumerate(self.spans.lanes):
            yield from ((place, span) for span in lane.spans)

    def draw(self) -> None:
        """Draw axis, lanes, their ranges and limits; texts inside follow with the layout."""
        self.frame()
        joined: dict[tuple[Any, ...], list[Span]] = {}
        drawn = [(place, span) for place, span in self.each() if span.end != span.start]
        many = len(drawn) > _MARKED
        for place, span in drawn:
            bare = span.row is None
            number = 0 if bare or many else len(self.rows)
            key = (place, *span.part, span.group, span.pale, bare, number)
            joined.setdefault(key, []).append(span)
            self.rows.extend([] if span.row is None else [span.row])
        for (place, high, low, group, pale, bare, number), spans in joined.items():
            style: dict[str, Any] = {
                "facecolor": self.colour(group), "alpha": 0.4 if pale else None,
                "zorder": 1 if bare else 3, "edgecolor": self.palette.ground,
                "linewidth": 0.0 if many or bare else 0.5,
            }  # fmt: skip
            top, tall = place + (high - 0.5) * self.height, (low - high) * self.height
            if bare or many:
                bars = [(span.start, span.end - span.start) for span in spans]
                self.axes.broken_barh(bars, (top, tall), gid="bare" if bare else None, **style)
                continue
            (span,) = spans
            self.axes.barh(top + tall / 2, span.end - span.start, left=span.start, height=tall,
                           clip_on=False, gid=f"piece-{number}", **style)  # fmt: skip
            self.gids[f"piece-{number}"] = [number]
        for place, lane in enumerate(self.spans.lanes):
            self.lane(place, lane)

    def frame(self) -> None:
        """The axis of the numbers, and the names of lanes beside the panel."""
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes, lanes, kind = self.axes, self.spans.lanes, self.spans.kind
        ends = [0.0, *(end for _, span in self.each() for end in (span.start, span.end))]
        ends += [end for lane in lanes for end in (*(lane.ends or ()), lane.limit or 0.0)]
        low, high = min(ends), max(ends) or 1.0
        if low < 0:
            axes.axvline(0, color=self.palette.grey, linewidth=0.7)
            low, high = low - 0.04 * (high - low), high + 0.02 * (high - low)
        room = 0.1 if self.spans.beside else 0.35
        axes.set(xlim=(low, 1.01 * high), ylim=(len(lanes) - 0.5 + room / 2, -0.5 - room))
        axes.set(xlabel=self.spans.axis, ylabel=self.spans.lanes_are)
        round_numbers = MaxNLocator(7, steps=[1, 2, 2.5, 5, 10])
        axes.xaxis.set_major_locator(
            locator(0.0, high, kind) if kind == "binary" else round_numbers
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, kind)))
        axes.spines["left"].set_visible(False)
        axes.grid(visible=True, axis="x", color=self.palette.faint)
        axes.set_axisbelow(True)
        named = [i for i, lane in enumerate(lanes) if lane.label]
        axes.set_yticks(named, [lanes[i].label for i in named])
        axes.tick_params(axis="y", length=0)
        if not self.spans.beside:
            axes.tick_params(axis="y", labelleft=False)
        if self.spans.noted:
            axes.text(_OUTSIDE, 1.01, self.spans.noted, transform=axes.transAxes, va="bottom",
                      fontsize=self.palette.label)  # fmt: skip

    def lane(self, place: int, lane: Lane) -> None:
        """What stands at a lane: its texts, its range and its limit."""
        axes, palette = self.axes, self.palette
        across = axes.get_yaxis_transform()
        if self.spans.beside and lane.note:
            axes.text(_OUTSIDE, place, lane.note, transform=across, va="center",
                      fontsize=palette.label)  # fmt: skip
        elif not self.spans.beside:
            note = shortened(lane.note, palette.label, 0.6 * self.inches)
            room = self.inches - 0.3 - text_inches(note, palette.label)
            axes.text(0, place - 0.25, shortened(lane.label, palette.label, room), va="bottom",
                      fontsize=palette.label)  # fmt: skip
            axes.text(1.0, place - 0.25, note, transform=across, va="bottom", ha="right",
                      color=palette.grey, fontsize=palette.label)  # fmt: skip
        if lane.ends:
            low, high = lane.ends
            axes.errorbar(
                [(low + high) / 2], [place + self.height / 2 + 0.1], xerr=(high - low) / 2,
                color=palette.grey, capsize=2 * palette.scale, linewidth=0.7 * palette.line,
                fmt="none",
            )  # fmt: skip
        if lane.limit:
            axes.vlines(lane.limit, place - 0.22, place + 0.22, colors=palette.ink, zorder=4,
                        linewidth=1.6 * palette.line, gid=f"limit-{place}")  # fmt: skip

    def texts(self) -> None:
        """Write the texts of pieces that have room for them; the layout is complete."""
        axes, points = self.axes, 0.75 * self.palette.body
        box, dpi = axes.get_window_extent(), axes.figure.dpi
        wide = box.width / dpi / abs(np.subtract(*axes.get_xlim()))
        tall = box.height / dpi / abs(np.subtract(*axes.get_ylim())) * self.height
        for place, span in self.each():
            high, low = span.part
            colour = self.colour(span.group)
            if span.text and span.end == span.start:
                axes.annotate(span.text, (span.start, place), xytext=(4, 0), color=colour,
                              textcoords="offset points", va="center", fontsize=points)  # fmt: skip
            elif (
                span.text
                and abs(span.end - span.start) * wide >= text_inches(span.text, points) + 0.03
                and (low - high) * tall >= points / 72
            ):
                axes.text(
                    (span.start + span.end) / 2,
                    place + ((high + low) / 2 - 0.5) * self.height, span.text, ha="center",
                    va="center_baseline", fontsize=points, zorder=4,
                    color="black" if _is_light(colour) else "white",
                )  # fmt: skip

    def handles(self) -> list[Any]:
        """The legend: a patch for each group, and the limit."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        keys = self.spans.keys or {group: group for group in self.spans.colours}
        most = self.inches - 0.6 * self.palette.scale
        handles: list[Any] = [
            Patch(color=self.colour(group), label=shortened(text, self.palette.body, most))
            for group, text in keys.items()
        ]
        limits = {lane.limit for lane in self.spans.lanes if lane.limit}
        if limits:
            value = f" {shown(limits.pop(), self.spans.kind)}" if len(limits) == 1 else ""
            handles.append(
                Line2D([], [], color=self.palette.ink, linestyle="none", marker="|", markersize=9,
                       markeredgewidth=2, label=f"{self.spans.limit_name}{value}")
            )  # fmt: skip
        return handles if len(handles) > 1 else []


def _is_light(colour: str) -> bool:
    """Whether black text is more readable on it than white (approximate relative luminance)."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
