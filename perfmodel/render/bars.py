"""One chart of stacked bars: times by class, memory by kind, coverage of a profile.

The longest pieces over all bars have a colour each, the rest are grey. A bar may have a range below
it and a limit across it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfmodel.quantities import shown, tick
from perfmodel.render.chart import Chart, dress
from perfmodel.render.labels import shortened, text_inches
from perfmodel.render.page import Page, Palette, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST = 1e60  # what is larger is no time or size, and too large for an axis
_COLOURED = 6  # number of pieces with a colour
_HEIGHT = 0.34  # of a bar, where the distance of two bars is 1
_ROW = 0.5  # inches of that distance


@dataclass(frozen=True)
class Bar:
    """One bar: lengths by name, in the order of their sum over all bars."""

    label: str
    """Text above the bar."""
    lengths: Mapping[str, float]
    """The length of each piece."""
    low: float | None = None
    """Lower end of the range of the sum."""
    high: float | None = None
    """Upper end of the range of the sum."""
    limit: float | None = None
    """Upper limit for the sum."""
    note: str = ""
    """Text after the sum."""

    def __post_init__(self) -> None:
        """Raise `TypeError` for a length that is no number, or too large for an axis."""
        ends = {"low": self.low, "high": self.high, "limit": self.limit}
        for name, value in (ends | dict(self.lengths)).items():
            missing = value is None and name in ends
            if not missing and not (isinstance(value, int | float) and abs(value) < _MOST):
                raise TypeError(f"{name} is {value!r}, not a number that can be drawn")

    @property
    def total(self) -> float:
        """The sum of its pieces."""
        return sum(value for value in self.lengths.values() if value > 0)


@dataclass(frozen=True)
class Bars:
    """Stacked bars on one scale. With several `views` a page offers a choice."""

    title: str
    """What is shown."""
    kind: str
    """Kind of the lengths, as in `quantities`."""
    views: Mapping[str, Sequence[Bar]]
    """Bars by the name of the view."""
    limit_name: str = "limit"
    """Name of the bars' limit."""
    ranked: bool = True
    """Whether lengths are sorted by their sum over all bars, longest first; else as given."""

    def names(self, bars: Sequence[Bar]) -> list[str]:
        """Names of the pieces in their order in a bar."""
        sums: dict[str, float] = {}
        for bar in bars:
            for name, value in bar.lengths.items():
                if value > 0:
                    sums[name] = sums.get(name, 0.0) + value
        return sorted(sums, key=lambda name: -sums[name]) if self.ranked else list(sums)


def bars_chart(
    bars: Bars, view: str = "", *, sentence: str = "", page: Page | None = None
) -> Chart:
    """The bars of one view, the first by default. Its rows are the pieces."""
    from matplotlib.figure import Figure

    page = page or Page()
    each = bars.views[view or next(iter(bars.views))]
    with styled(page) as palette:
        names = bars.names(each)
        across = max(int((page.width or 6.0) / (1.3 * palette.scale)), 1)
        rows = -(-min(len(names) + 1, _COLOURED + 2) // across) if len(names) > 1 else 0
        tall = (0.55 + 0.18 * rows + _ROW * len(each)) * palette.scale
        size = page.size(page.width or 6.0, tall)
        figure = Figure(figsize=size, layout="constrained")
        axes = figure.add_subplot()
        drawing = _Drawing(axes, bars, each, size[0], palette)
        drawing.frame()
        for place, bar in enumerate(each):
            drawing.bar(place, bar, names)
        if rows:
            drawing.legend(names, across)
        dress(figure, page, palette, bars.title)
    return Chart(
        figure, bars.title, sentence or f"{len(each)} bars.", drawing.rows, page=page,
        marks=drawing.gids,
    )  # fmt: skip


@dataclass(frozen=True)
class _Drawing:
    """A chart during drawing."""

    axes: Axes
    bars: Bars
    each: Sequence[Bar]
    width: float
    """Inches."""
    palette: Palette
    rows: list[dict[str, Any]] = field(default_factory=list)
    """The pieces."""
    gids: dict[str, Sequence[int]] = field(default_factory=dict)
    """Pieces by the id of their artist."""

    @property
    def most(self) -> float:
        """The end of the axis."""
        ends = ((bar.total, bar.high or 0.0, bar.limit or 0.0) for bar in self.each)
        return max((value for end in ends for value in end), default=0.0) or 1.0

    def colour(self, names: Sequence[str], name: str) -> str:
        """The colour of a piece."""
        i = names.index(name)
        own = i < _COLOURED or len(names) <= _COLOURED + 1
        return self.palette.cycle[i] if own else self.palette.grey

    def frame(self) -> None:
        """The axis of lengths, and no axis of bars."""
        from matplotlib.ticker import FuncFormatter, MaxNLocator

        axes = self.axes
        axes.set(xlim=(0, 1.01 * self.most), ylim=(len(self.each) - 0.35, -0.75))
        axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, self.bars.kind)))
        axes.yaxis.set_visible(False)
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x")

    def bar(self, place: int, bar: Bar, names: Sequence[str]) -> None:
        """One bar with its label, its sum, its range and its limit."""
        kind, palette, axes = self.bars.kind, self.palette, self.axes
        note = ", ".join(filter(None, [shown(bar.total, kind), bar.note]))
        note = shortened(note, palette.label, 0.6 * self.width)
        room = self.width - 0.3 - text_inches(note, palette.label)
        words = shortened(bar.label, palette.label, room)
        axes.text(0, place - 0.25, words, fontsize=palette.label, va="bottom")
        axes.text(1.0, place - 0.25, note, fontsize=palette.label, va="bottom", ha="right",
                  color=palette.grey, transform=axes.get_yaxis_transform())  # fmt: skip
        left = 0.0
        for name in names:
            value = bar.lengths.get(name, 0.0)
            if value > 0:
                self.piece(place, bar, name, left, value, self.colour(names, name))
                left += value
        if bar.low and bar.high:
            axes.errorbar(
                [(bar.low + bar.high) / 2], [place + _HEIGHT / 2 + 0.1],
                xerr=(bar.high - bar.low) / 2, color=palette.grey, capsize=2 * palette.scale,
                linewidth=0.7 * palette.line, fmt="none",
            )  # fmt: skip
        if bar.limit:
            axes.vlines(bar.limit, place - 0.22, place + 0.22, colors=palette.ink, zorder=4,
                        linewidth=1.6 * palette.line, gid=f"limit-{place}")  # fmt: skip

    def piece(
        self, place: int, bar: Bar, name: str, left: float, value: float, colour: str
    ) -> None:
        """A piece of a bar, its name inside where it fits, and its row."""
        kind, palette, axes = self.bars.kind, self.palette, self.axes
        gid = f"piece-{len(self.rows)}"
        axes.barh(place, value, left=left, height=_HEIGHT, color=colour, zorder=3, gid=gid,
                  edgecolor=palette.ground, linewidth=0.5, clip_on=False)  # fmt: skip
        inches = value / self.most * (self.width - 0.3)
        if text_inches(name, palette.small) + 0.1 < inches:
            axes.annotate(
                name, (left, place), xytext=(3, 0), textcoords="offset points", zorder=4,
                va="center_baseline", fontsize=palette.small, color=palette.ground,
            )  # fmt: skip
        self.gids[gid] = [len(self.rows)]
        self.rows.append({
            "title": f"{bar.label}: {name}", "length": shown(value, kind),
            "share": value / bar.total,
            "sum": ", ".join(filter(None, [shown(bar.total, kind), bar.note])),
            **({"range": f"{shown(bar.low, kind)} to {shown(bar.high, kind)}"}
               if bar.low and bar.high else {}),
            **({self.bars.limit_name: shown(bar.limit, kind)} if bar.limit else {}),
        })  # fmt: skip

    def legend(self, names: Sequence[str], columns: int) -> None:
        """The colours of the pieces, and the limit, above the bars."""
        from matplotlib.lines import Line2D
        from matplotlib.patches import Patch

        own = names if len(names) <= _COLOURED + 1 else names[:_COLOURED]
        room = self.width / columns - 0.45 * self.palette.scale
        handles: list[Any] = [
            Patch(color=self.colour(names, name), label=shortened(name, self.palette.body, room))
            for name in own
        ]
        if len(own) < len(names):
            label = f"{len(names) - len(own)} more"
            handles.append(Patch(color=self.palette.grey, label=label))
        limits = {bar.limit for bar in self.each if bar.limit}
        if limits:
            value = f" {shown(next(iter(limits)), self.bars.kind)}" if len(limits) == 1 else ""
            handles.append(
                Line2D([], [], color=self.palette.ink, linestyle="none", marker="|", markersize=9,
                       markeredgewidth=2, label=f"{self.bars.limit_name}{value}")
            )  # fmt: skip
        self.axes.legend(handles=handles, loc="lower left", bbox_to_anchor=(0, 1), ncols=columns,
                         borderaxespad=0.3, columnspacing=1.2)  # fmt: skip
