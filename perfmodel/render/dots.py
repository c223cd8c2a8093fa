"""One chart of rows as marks: two of their numbers against each other, a colour and shape a group.

Rooflines, runs against their predictions, plans by memory and speed, loads by pace and throughput,
fronts of sweeps are all this chart, in a file and on a page. They differ in axes, groups, and the
lines of their panels.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.quantities import header_of, kind_of, shown
from perfmodel.render.chart import Chart, dress
from perfmodel.render.labels import Labels, Place, text_inches
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.render.ticks import scaled

if TYPE_CHECKING:
    from matplotlib.axes import Axes

WARNING = "\u26a0"
"""The sign of a mark that cannot be right."""
BAND = 0.2
"""Half the width of the band about the diagonal."""
_MOST = 1e60  # what is larger is no number of a device, and too large for an axis
_CROWDED = 400  # from this number of marks on they are small and let others shine through
_APART = 0.16  # of the axis: names of limits that are closer stand above each other
_BESIDE = 0.3  # of the width: a legend of longer texts is below the panel
_LINE = {"alpha": 0.6, "linewidth": 0.8}
_DASHES: Sequence[Any] = ("-", (0, (5, 2)), (0, (1, 1.2)), (0, (8, 2, 1.5, 2)))
_RASTER = 20_000  # from this number of marks on they are pixels in a vector file


def _is_number(value: Any) -> bool:
    """Whether a value is a number that an axis can hold."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _MOST


@dataclass(frozen=True)
class Look:
    """The look of a group."""

    colour: str
    """Name of a palette colour."""
    marker: str
    """Shape of its marks."""
    size: float
    """Points of a mark at the default size."""
    dashes: Any = "-"
    """Style of lines that belong to it."""


@dataclass(frozen=True)
class Line:
    """A straight line of a panel that is no row: a roof, or a ridge point."""

    gid: str
    """Its id."""
    ends: tuple[Place, Place]
    """Where it begins and ends, in the numbers of the axes."""
    colour: str
    """Name of a palette colour."""
    width: float = 1.0
    """Its width over that of the style."""
    dashes: Any = "-"
    """Its style."""
    texts: Sequence[str] = ()
    """What may be written beside it, the best first; empty: nothing."""
    bare: str = ""
    """What is written where none of them has room."""
    label: str = ""
    """The id of that text."""
    last: bool = False
    """Whether the text stands at its end; else at its start."""
    small: bool = False
    """Whether the text is small."""


@dataclass(frozen=True)
class Panel:
    """One of several panels, or lines of the only one."""

    value: str
    """The value that its rows have under `Dots.apart`."""
    title: str = ""
    """What stands above it."""
    lines: Sequence[Line] = ()
    """Its lines."""


@dataclass(frozen=True)
class Dots:
    """A mark for each row. If `x` or `y` has several keys, a page offers a choice."""

    title: str
    """What is shown."""
    x: Sequence[str]
    """Keys of the x axis."""
    y: Sequence[str]
    """Keys of the y axis."""
    name: Sequence[str] = ()
    """Keys of a row's name."""
    log: str = "xy"
    """Axes that are logarithmic; the others begin at zero."""
    filters: Sequence[str] = ()
    """Keys that rows can be filtered by."""
    by: Sequence[str] = ()
    """Keys that rows can be coloured by; a file's chart takes the first."""
    ranges: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    """Keys of the ends of a range, by the key of its value."""
    limits: Mapping[str, str | Sequence[tuple[str, float]]] = field(default_factory=dict)
    """Names and values of limits on x, by key; or the key under which the rows have them."""
    joined: Sequence[str] = ()
    """Keys of a line. It joins, from left to right, marks that agree in those keys that are not on
    x."""
    along: str = ""
    """Key of what a line follows in place of x."""
    measured: str = ""
    """Key of a boolean: rows with a true one are marks, the others lines with dashes of their own;
    by default every row has a mark."""
    fits: str = ""
    """Key of a boolean: marks of rows with a false one are pale."""
    compared: bool = False
    """Whether y is the prediction of the measured x: the diagonal is drawn with a band."""
    unit: str = ""
    """Key of the kind of a row's numbers, where it differs between rows."""
    apart: str = ""
    """Key whose values have panels of their own in a file, and charts of their own on a page."""
    labelled: str = ""
    """Key whose value, or the first of several that has room, is written beside each mark that has
    one, or with `best` beside those that no other beats."""
    looks: Mapping[str, Look] = field(default_factory=dict)
    """Looks of groups, the uppermost first; empty: those of a series."""
    hollow: str = ""
    """Key of a boolean: marks of rows with a true one are hollow, as predictions beside runs."""
    flagged: str = ""
    """Key of a boolean: marks of rows with a true one have a warning sign."""
    best: Mapping[str, int] = field(default_factory=dict)
    """For keys of y, 1 where more is better and -1 where less is: a grey line joins the rows that
    no row with a smaller x beats."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """Names of axes that do not follow from the key."""
    kinds: Mapping[str, str] = field(default_factory=dict)
    """Kinds of numbers that do not follow from the key."""

    def header(self, key: str) -> str:
        """The name of a key's values."""
        return self.headers.get(key) or header_of(key)

    def drawable(self, row: Row, x: str, y: str) -> bool:
        """Whether a row has both numbers, above zero on a log axis."""
        values: Any = zip("xy", (row.get(x), row.get(y)), strict=True)
        return all(
            _is_number(value) and (value > 1 / _MOST or axis not in self.log)
            for axis, value in values
        )

    def kind(self, rows: Sequence[Row], key: str) -> str:
        """The kind of a key's numbers; that of the rows where they name one and agree."""
        own = self.kinds.get(key) or kind_of(key)
        kinds = {str(row[self.unit]) for row in rows} if self.unit else {own}
        return kinds.pop() if len(kinds) == 1 else "number"


def dots_chart(
    rows: Sequence[Row],
    dots: Dots,
    *,
    x: str = "",
    y: str = "",
    title: str = "",
    sentence: str = "",
    caption: Sequence[str] = (),
    names: Mapping[str, str] | None = None,
    front: Sequence[int] = (),
    drawstyle: str = "default",
    page: Page | None = None,
    legend: bool = True,
    panels: Sequence[Panel] = (Panel(""),),
    room: tuple[Place, Place] | None = None,
    handles: Callable[[Palette], Sequence[Any]] | None = None,
) -> Chart:
    """The chart of `rows` with the first keys of `dots`, or with the keys `x` and `y`.

    `names` are a legend's texts by group, where they are not the group itself; `handles` makes the
    legend's in place of those of the groups. A grey line joins the rows `front`, and lines go from
    point to point in Matplotlib's `drawstyle`. `sentence` and `caption` are the chart's in words.
    `room` has the ends of both axes, which several panels share.
    """
    from matplotlib.figure import Figure

    page, title = page or Page(), title or dots.title
    x, y = x or dots.x[0], y or dots.y[0]
    groups = {str(row.get(dots.by[0])) for row in rows} if dots.by else set()
    outside = legend and len(groups) > 1 and not dots.compared and handles is None
    down, across = grid(len(panels))
    several = len(panels) > 1
    with styled(page) as palette:
        size = (7.0 if outside else 5.6, 3.7)
        if dots.compared:
            size = (5.2, 5.2)
        elif dots.apart:
            size = (max(6.0, 4.2 * across), 3.3 * down + (1.2 if page.caption else 0.8))
        figure = Figure(figsize=page.size(*size, columns=across), layout="constrained")
        last = len(panels) - across * (down - 1)
        cells = figure.add_gridspec(down, across * last)
        drawings = []
        for i, panel in enumerate(panels):
            row, column = divmod(i, across)
            wide = across if row == down - 1 else last
            axes = figure.add_subplot(cells[row, wide * column : wide * (column + 1)])
            drawing = Drawing(
                axes, rows, dots, palette, x, y, drawstyle, panel, f"-{panel.value}" * several, room
            )
            drawing.draw(names or {}, front)
            axes.set_title(panel.title, loc="left")
            axes.set_ylabel("" if column else axes.get_ylabel())
            drawings.append(drawing)
        axes = drawings[0].axes
        own, labels = axes.get_legend_handles_labels()
        widest = max((text_inches(label, palette.body) for label in labels), default=0.0)
        beside = widest < _BESIDE * figure.get_figwidth()
        if outside and beside:
            axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), alignment="left",
                        title=dots.header(dots.by[0]))  # fmt: skip
        elif legend and dots.compared:
            axes.legend(loc="upper left", handletextpad=0.2, borderaxespad=0.2)
        below = handles(palette) if handles else own if outside and not beside else ()
        dress(figure, page, palette, title, caption, below)
        unplaced = [name for drawing in drawings for name in drawing.labels()]
    sentence = sentence or f"{sum(len(drawing.places) for drawing in drawings)} marks."
    gids = {gid: places for drawing in drawings for gid, places in drawing.gids.items()}
    return Chart(figure, title, sentence, list(rows), caption, page, gids, unplaced)


def grid(count: int) -> tuple[int, int]:
    """Rows and columns of `count` panels: four are two by two, and the last row is filled."""
    columns = count if count <= 3 else 2 if count == 4 else 4 if count in (7, 8) else 3
    return math.ceil(count / columns), columns


@dataclass(frozen=True)
class Drawing:
    """A panel of marks."""

    axes: Axes
    """Where it is drawn."""
    rows: Sequence[Row]
    """The rows of its marks."""
    dots: Dots
    """What is drawn."""
    palette: Palette
    """Its colours."""
    x: str
    """Key of the x axis."""
    y: str
    """Key of the y axis."""
    drawstyle: str = "default"
    """How lines go from point to point, as Matplotlib says it."""
    panel: Panel = Panel("")
    """Its lines, and which rows it has."""
    suffix: str = ""
    """What ends the ids of its artists, where there are several panels."""
    room: tuple[Place, Place] | None = None
    """The ends of both axes, where they do not follow from the rows."""
    gids: dict[str, Sequence[int]] = field(default_factory=dict)
    """Rows of each artist, by its id."""

    @property
    def places(self) -> list[int]:
        """The rows of this panel that can be drawn."""
        apart, value = self.dots.apart, self.panel.value
        return [
            i for i, row in enumerate(self.rows)
            if self.dots.drawable(row, self.x, self.y)
            and (not value or str(row.get(apart)) == value)
        ]  # fmt: skip

    def group(self, i: int) -> str:
        """The group of a row."""
        return str(self.rows[i].get(self.dots.by[0], "")) if self.dots.by else ""

    def look(self, group: str, number: int) -> Look:
        """The look of a group, or of the series of that number."""
        colour, marker = self.palette.look(number)
        known = self.dots.looks.get(group, Look(colour, marker, 4.2))
        return replace(known, colour=getattr(self.palette, known.colour, known.colour))

    def note(self, gid: str, places: Sequence[int]) -> str:
        """The id of an artist of rows, which is noted."""
        self.gids[gid + self.suffix] = list(places)
        return gid + self.suffix

    def draw(
        self, names: Mapping[str, str] = MappingProxyType({}), front: Sequence[int] = ()
    ) -> None:
        """Draw axes, lines, ranges and marks; as in `dots_chart`."""
        places = self.places
        series: dict[str, list[int]] = {group: [] for group in self.dots.looks}
        series |= {self.group(i): [] for i in range(len(self.rows))}
        self.scale(places)
        for line in self.panel.lines:
            self.axes.plot(
                *zip(*line.ends, strict=True), color=getattr(self.palette, line.colour),
                linewidth=line.width * self.palette.line, linestyle=line.dashes, zorder=2,
                gid=line.gid,
            )  # fmt: skip
        front = front or self.front()
        if front:
            self.axes.plot(
                self.values(front, self.x), self.values(front, self.y), color=self.palette.grey,
                linewidth=0.65 * self.palette.line, drawstyle=self.drawstyle, zorder=1, gid="front",
            )  # fmt: skip
        lined = [i for i in places if not self.is_mark(i)]
        self.lines(lined if self.dots.measured else places, list(series))
        for i in places:
            if self.is_mark(i):
                series[self.group(i)].append(i)
        order = list(enumerate(series.items()))
        for number, (group, members) in reversed(order) if self.dots.looks else order:
            self.series(number, members, group, names.get(group, group), len(places))
        for i in places if self.dots.flagged else ():
            if self.rows[i].get(self.dots.flagged):
                self.axes.annotate(
                    WARNING, (self.rows[i][self.x], self.rows[i][self.y]), ha="center", va="bottom",
                    xytext=(0, 0.65 * self.palette.body), textcoords="offset points", zorder=8,
                    fontsize=1.1 * self.palette.body, color=self.palette.vermilion,
                    fontweight="bold",
                )  # fmt: skip

    def is_mark(self, i: int) -> bool:
        """Whether a row has a mark."""
        return not self.dots.measured or bool(self.rows[i].get(self.dots.measured))

    def limited(self) -> Sequence[tuple[str, float]]:
        """Names and values of the limits of x."""
        limits = self.dots.limits.get(self.x, ())
        if not isinstance(limits, str):
            return limits
        values = {row[limits] for row in self.rows if row.get(limits)}
        return [(self.dots.header(limits), value) for value in sorted(values)]

    def front(self) -> list[int]:
        """The rows that no row with a smaller x beats, where more or less of y is better."""
        places, sign = self.places, self.dots.best.get(self.y)
        kept = [self.rows[i] for i in places]
        return [places[i] for i in best_of(kept, self.x, self.y, sign)] if sign else []

    def values(self, places: Sequence[int], key: str) -> list[float]:
        """The numbers of rows under a key."""
        return [float(self.rows[i][key]) for i in places]

    def ranged(self, places: Sequence[int]) -> list[int]:
        """The rows of `places` with a range of y."""
        ends = self.dots.ranges.get(self.y)
        if ends is None or self.dots.compared:
            return []
        return [
            i for i in places
            if all(_is_number(self.rows[i].get(end)) and self.rows[i][end] > 0 for end in ends)
        ]  # fmt: skip

    def scale(self, places: Sequence[int]) -> None:
        """Both axes, the limits of x, and the diagonal of a comparison."""
        dots, axes = self.dots, self.axes
        across, up = self.values(places, self.x), self.values(places, self.y)
        limits = self.limited()
        for end in dots.ranges.get(self.y, ()):
            up = up + self.values(self.ranged(places), end)
        if dots.compared:
            across = up = [*across, *up]
        kept = [self.rows[i] for i in places]
        values = [*across, *(value for _, value in limits)]
        margin = 1.0 if self.room else 1.6
        values, up = map(list, self.room) if self.room else (values, up)
        scaled(axes.xaxis, values, dots.kind(kept, self.x), log="x" in dots.log, margin=margin)
        scaled(axes.yaxis, up, dots.kind(kept, self.y), log="y" in dots.log, margin=margin)
        axes.set(xlabel=dots.header(self.x), ylabel=dots.header(self.y))
        axes.grid(visible=True)
        if dots.compared:
            self.diagonal()
        kind = dots.kind(kept, self.x)
        self.limits([(f"{name} {shown(value, kind)}", value) for name, value in limits])

    def limits(self, limits: Sequence[tuple[str, float]]) -> None:
        """A dashed line at each limit, named above the panel; close ones share the place."""
        axes, low = self.axes, self.axes.get_ylim()[0]
        occupied, words = -1.0, ""
        for name, value in sorted(limits, key=lambda limit: limit[1]):
            axes.axvline(value, color=self.palette.ink, linewidth=0.65 * self.palette.line,
                         linestyle="--", zorder=1, gid="limit")  # fmt: skip
            place = axes.transAxes.inverted().transform(axes.transData.transform((value, low)))[0]
            if place - occupied < _APART:
                axes.texts[-1].set_text(f"{words}\n{name}")
            else:
                occupied, words = place, name
                axes.text(place, 1.01, name, transform=axes.transAxes, ha="center", va="bottom",
                          fontsize=self.palette.label)  # fmt: skip

    def diagonal(self) -> None:
        """The line of equal values, and a band about it."""
        ends = np.array(self.axes.get_xlim())
        self.axes.set_aspect("equal")
        self.axes.fill_between(
            ends, ends * (1 - BAND), ends * (1 + BAND), color=self.palette.grey, alpha=0.22,
            linewidth=0, zorder=0, label=f"within ±{BAND:.0%}", gid="band",
        )  # fmt: skip
        self.axes.plot(ends, ends, color=self.palette.grey, linewidth=0.8, zorder=1, gid="diagonal")
        self.axes.set(xlim=ends, ylim=ends)

    def lines(self, places: Sequence[int], groups: Sequence[str]) -> None:
        """The lines of `dots.joined`, each in the colour of its first mark."""
        keys = [key for key in self.dots.joined if key != self.x]
        paths: dict[tuple[str, ...], list[int]] = {}
        for i in places if self.dots.joined else ():
            paths.setdefault(tuple(str(self.rows[i].get(key)) for key in keys), []).append(i)
        for number, members in enumerate(paths.values()):
            along = self.dots.along or self.x
            order = sorted(members, key=lambda i: float(self.rows[i][along]))
            group = self.group(order[0])
            place = groups.index(group)
            marked = any(self.is_mark(i) and self.group(i) == group for i in self.places)
            self.axes.plot(
                self.values(order, self.x), self.values(order, self.y), zorder=2,
                color=self.look(group, place).colour, drawstyle=self.drawstyle,
                gid=self.note(f"line-{number}", order[:1]),
                **(_LINE if not self.dots.measured else {"linestyle": _DASHES[place % len(_DASHES)],
                                                         "label": None if marked else group}),
            )  # fmt: skip

    def series(
        self, number: int, members: Sequence[int], group: str, label: str, total: int
    ) -> None:
        """The marks of a group and their ranges: pale those that do not fit, hollow predictions
        beside runs, which are smaller and above."""
        look, scale = self.look(group, number), self.palette.scale
        crowded = total > _CROWDED
        fits, hollow = self.dots.fits, self.dots.hollow
        for pale, empty in ((False, True), (False, False), (True, False)):
            mine = [
                i for i in members
                if pale == bool(fits and self.rows[i].get(fits) is False)
                and empty == bool(hollow and self.rows[i].get(hollow))
            ]  # fmt: skip
            if not mine:
                continue
            gid = f"{'pale' if pale else 'dots'}-{number}"
            style: dict[str, Any] = {
                "alpha": 0.25 if pale else 0.45 if crowded else 0.85, "zorder": 3 if pale else 4,
                "markeredgewidth": 0, "markersize": (2.2 if crowded else look.size) * scale,
            }  # fmt: skip
            if hollow:
                gid = f"{'predicted' if empty else 'measured'}-{group}"
                style = {
                    "zorder": 6 if empty else 7,
                    "markeredgewidth": (0.85 if empty else 0.3) * self.palette.line,
                    "markersize": look.size * scale * (1.0 if empty else 0.75),
                    "markerfacecolor": self.palette.ground if empty else look.colour,
                }
            self.axes.plot(
                self.values(mine, self.x), self.values(mine, self.y), linestyle="none",
                marker=look.marker, color=look.colour, gid=self.note(gid, mine),
                rasterized=total > _RASTER,
                label=label if not pale or len(mine) == len(members) else None, **style,
            )  # fmt: skip
        ranged = self.ranged(members)
        if ranged:
            low, high = (self.values(ranged, end) for end in self.dots.ranges[self.y])
            self.axes.vlines(
                self.values(ranged, self.x), low, high, colors=look.colour, alpha=0.5, zorder=2,
                linewidth=0.6 * self.palette.line,
                gid=self.note(f"range-{group if self.dots.looks else number}", ranged),
            )  # fmt: skip

    def labels(self) -> Iterator[str]:
        """Write beside lines and marks what has room there; yield what has none. The layout is
        complete."""
        labels, palette, key = Labels(self.axes, self.palette), self.palette, self.dots.labelled
        for line in (line for line in self.panel.lines if not line.small):
            yield from self.beside(labels, line)
        places = self.front() or self.places
        for i in places:
            row, gid = self.rows[i], f"label-{i}"
            value = row.get(key) if key else None
            if value in (None, "", ()):
                continue
            texts = value if isinstance(value, tuple) else (shown(value, kind_of(key)),)
            colour = self.look(self.group(i), 0).colour if self.dots.looks else palette.grey
            if labels.name(float(row[self.x]), float(row[self.y]), texts, palette.small,
                           palette.ink, gid=gid, line=colour):  # fmt: skip
                self.note(gid, [i])
            else:
                yield texts[-1]
        for line in (line for line in self.panel.lines if line.small):
            yield from self.beside(labels, line)

    def beside(self, labels: Labels, line: Line) -> Iterator[str]:
        """Write the first text of a line that has room along it; yield the first where none has."""
        points = self.palette.small if line.small else self.palette.label
        colour = getattr(self.palette, line.colour)
        for text in filter(None, (*line.texts, line.bare)):
            box = labels.best(labels.along(line.ends, text, points, last=line.last))
            if labels.write(text, box, points, colour, line.label):
                break
        if box is None or text not in line.texts:
            yield line.texts[0]


def best_of(rows: Sequence[Row], x: str, y: str, sign: int) -> Iterator[int]:
    """Rows, from left to right, whose y is above (1) or below (-1) that of every row before."""
    best = -np.inf
    for i in sorted(range(len(rows)), key=lambda i: (rows[i][x], -sign * rows[i][y])):
        if sign * rows[i][y] > best:
            best = sign * rows[i][y]
            yield i
