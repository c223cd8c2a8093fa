"""Hierarchical rooflines: one panel for each device, a diagonal for each memory level.

A kernel has one mark for each level, all at one height. A level has a colour, a line style and a
shape of mark, so that greyscale tells them apart too; hollow marks are predicted, filled ones
measured. Marks of one kernel that stand close together show poor reuse between those levels (Yang,
Kurth & Williams 2020).

A published peak is a thin line beside the thick one of the measured value. A mark above its roof
gets a warning sign, because it means a wrong number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from perfmodel.errors import ProblemError
from perfmodel.hardware.levels import together
from perfmodel.render.chart import Chart, dress
from perfmodel.render.labels import Labels
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.render.roofs import GENERIC, Kernel, Roof, Roofs
from perfmodel.timing.roofline import ridge_point
from perfmodel.units import si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 24
"""Limit on the kernels of one chart; more would cover each other."""
WARNING = "\u26a0"
STATUS = {
    "measured": "measured",
    "spec": "from the data sheet",
    "via": "from the data sheet as others quote it",
    "config": "as the device reports it",
    "secondary": "from a third party's table",
    "derived": "computed from other facts",
    "unverified": "from memory, unchecked",
}
"""The origin of a number in words, by its status in a spec."""


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
    """Points of the mark at the default size. Inner levels are larger, so that coinciding marks are
    all visible."""


LOOKS: Mapping[str, Look] = {
    "hbm": Look("blue", "-", "o", 4.8),
    "llc": Look("purple", (0, (6, 1.5, 1.2, 1.5)), "D", 6.0),
    "l2": Look("green", (0, (4.5, 1.8)), "s", 6.9),
    "shared": Look("ochre", (0, (1.2, 1.2)), "^", 8.7),
    "peer": Look("vermilion", (0, (8, 1.5, 1.2, 1.5, 1.2, 1.5)), "v", 5.3),
    "network": Look("sky", (0, (8, 3)), "h", 5.3),
    "host": Look("grey", (0, (3, 3)), "p", 5.3),
}
_THIN = 0.5  # line width of a published peak over that of a measured value


def roofline_chart(
    devices: Sequence[Roofs],
    kernels: Sequence[Kernel] = (),
    *,
    title: str = "",
    note: str = "",
    page: Page | None = None,
    named: bool = True,
) -> Chart:
    """One panel per device, with the predicted and measured kernels on it.

    `title` names the problem, `note` ends the caption. Where the kernels are not `named`, there may
    be any number of them, and neither labels nor a legend are drawn. Raises `ProblemError` for more
    kernels than `MOST`, for a kernel without arithmetic, for no device, and for a page that is too
    small.
    """
    page = page or Page()
    _check(devices, kernels, MOST if named else math.inf)
    rows, marks = _rows(devices, kernels)
    unplaced: list[str] = []
    while True:  # the caption names what has no room, and takes some itself
        caption = list(_caption(devices, kernels if named else (), note, unplaced))
        with styled(page) as palette:
            figure, panels = _figure(devices, kernels, marks, page, palette)
            handles = _handles(devices, kernels, palette) if named and kernels else []
            dress(figure, page, palette, title, caption, handles)
            names = [name for panel in panels for name in panel.label(named=named)]
        if set(names) <= set(unplaced):
            break
        unplaced = list(dict.fromkeys([*unplaced, *names]))
    return Chart(
        figure,
        f"Roofline of {', '.join(device.device for device in devices)}"
        + (f": {title}" if title else ""),
        " ".join([*_sentences(devices, kernels if named else ()), *caption]),
        rows,
        caption,
        page,
        {gid: mine for panel in panels for gid, mine in panel.gids.items()},
    )  # fmt: skip


def _check(devices: Sequence[Roofs], kernels: Sequence[Kernel], most: float) -> None:
    names = {(kernel.name, kernel.measured) for kernel in kernels}
    if not devices:
        raise ProblemError("no device to draw; name one with --device")
    if len(names) > most:
        raise ProblemError(f"{len(names)} kernels are too many for one chart; draw at most {most}")
    for kernel in kernels:
        if not kernel.flops_per_s > 0:
            raise ProblemError(
                f"{kernel.name} does no arithmetic, so it has no place under a roof; "
                "perfmodel predict has its bytes and time"
            )


def grid(count: int) -> tuple[int, int]:
    """Rows and columns of `count` panels: four are two by two, and the last row is filled."""
    columns = count if count <= 3 else 2 if count == 4 else 4 if count in (7, 8) else 3
    return math.ceil(count / columns), columns


def _figure(
    devices: Sequence[Roofs],
    kernels: Sequence[Kernel],
    marks: Sequence[Sequence[_Mark]],
    page: Page,
    palette: Palette,
) -> tuple[Figure, list[_Panel]]:
    from matplotlib.figure import Figure

    down, across = grid(len(devices))
    size = page.size(max(6.0, 4.2 * across), 3.3 * down + (1.2 if page.caption else 0.8),
                     columns=across)  # fmt: skip
    figure = Figure(figsize=size, layout="constrained")
    last = len(devices) - across * (down - 1)
    cells = figure.add_gridspec(down, across * last)
    limits = _limits(devices, kernels)
    panels = []
    for i, device in enumerate(devices):
        row, column = divmod(i, across)
        wide = across if row == down - 1 else last
        axes = figure.add_subplot(cells[row, wide * column : wide * (column + 1)])
        _frame(axes, device.title, limits, first=not column)
        suffix = f"-{device.device}" if len(devices) > 1 else ""
        panels.append(_Panel(axes, device, kernels_of(device, kernels), marks[i], palette, suffix))
        panels[-1].draw()
    return figure, panels


def _limits(
    devices: Sequence[Roofs], kernels: Sequence[Kernel]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Axes shared by all panels: every ridge, matrix ceiling and mark, with room for labels."""
    ridges = [
        ridge_point(device.top.highest, roof.highest)
        for device in devices
        for roof in device.levels.values()
    ]
    levels = {level for device in devices for level in device.levels}
    marks = [x for k in kernels for level, x in k.intensity.items()
             if level in levels and 0 < x < math.inf]  # fmt: skip
    heights = [k.low_flops_per_s or k.flops_per_s for k in kernels]
    heights += [k.high_flops_per_s or k.flops_per_s for k in kernels]
    vector = not all(kernel.matrix for kernel in kernels) or not kernels
    ceilings = [
        roof.highest for d in devices for roof in ((d.compute if vector else d.matrix) or d.vector)
    ]
    left = min([min(ridges) / 8, *(mark / 2.5 for mark in marks)])
    right = max([max(ridges) * 8, *(mark * 4 for mark in marks)])
    low = min([min(ceilings) / 8, *(height / 3 for height in heights)])
    return (left, right), (low, max([*ceilings, *heights]) * 3.5)


def _frame(
    axes: Axes, title: str, limits: tuple[tuple[float, float], tuple[float, float]], *, first: bool
) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=limits[0], ylim=limits[1])
    axes.set_xlabel("Arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("Performance (FLOP/s)" if first else "")
    axes.set_title(title, loc="left")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=12))
        axis.set_minor_formatter(NullFormatter())


def shown(device: Roofs, kernel: Kernel) -> dict[str, float]:
    """Intensities of a kernel at the drawn levels."""
    return {
        level: x
        for level in device.levels
        if 0 < (x := kernel.intensity.get(level, 0.0)) < math.inf
    }


def kernels_of(device: Roofs, kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels that run on a device."""
    return [kernel for kernel in kernels if kernel.device == device.device]


@dataclass(frozen=True)
class _Line:
    """A roof as it is drawn: its thick line, and the thin one of a published peak."""

    roof: Roof
    level: str
    """Its memory level; empty for a ceiling."""
    colour: str
    width: float
    ends: Mapping[float, Sequence[tuple[float, float]]]
    """Both ends of the line of each rate."""

    @property
    def name(self) -> str:
        return self.level or self.roof.name


@dataclass(frozen=True)
class _Mark:
    """A kernel at one memory level."""

    row: int
    """Its place among the chart's rows."""
    kernel: Kernel
    level: str
    x: float
    """FLOP per byte."""
    outermost: bool
    """Whether no level farther out has a mark of the kernel."""


@dataclass(frozen=True)
class _Panel:
    """One device's roofs, marks and labels."""

    axes: Axes
    device: Roofs
    kernels: Sequence[Kernel]
    marks: Sequence[_Mark]
    """The kernels' marks, those of one kernel together, from the outermost level inwards."""
    palette: Palette
    suffix: str
    """What ends the ids of its marks, where there are several panels."""
    gids: dict[str, Sequence[int]] = field(default_factory=dict)
    """The rows of each artist that stands for kernels, by its id."""

    def colour(self, level: str) -> str:
        return str(getattr(self.palette, LOOKS[level].colour))

    def lines(self) -> Iterator[_Line]:
        """Ceilings from the innermost diagonal to the right, and diagonals up to the ceiling."""
        device, palette = self.device, self.palette
        (left, right), (low, high) = self.axes.get_xlim(), self.axes.get_ylim()
        innermost = max(roof.value for roof in device.levels.values())
        special = device.special(self.kernels)
        for roof in (*device.compute, *([special] if special else [])):
            if low < roof.value < high:
                main = roof in device.matrix or not device.matrix
                ends = {
                    rate: [(max(ridge_point(rate, innermost), left), rate), (right, rate)]
                    for rate in (roof.value, roof.datasheet) if rate
                }  # fmt: skip
                yield _Line(roof, "", palette.ink if main else palette.grey,
                            palette.line * (1.0 if main else 0.7), ends)  # fmt: skip
        for level, roof in device.levels.items():
            ends = {}
            for rate, top in ((roof.value, device.top.value), (roof.datasheet, device.top.highest)):
                if rate:
                    xs = max(left, low / rate), ridge_point(top, rate)
                    ends[rate] = [(x, x * rate) for x in xs]
            yield _Line(roof, level, self.colour(level), palette.line, ends)

    def ridges(self) -> Iterator[tuple[str, Roof, float]]:
        """Level, ceiling and intensity of each ridge point: the outermost level at every matrix
        ceiling, other levels at the highest."""
        device = self.device
        for i, (level, roof) in enumerate(device.levels.items()):
            for top in device.matrix if not i and device.matrix else (device.top,):
                yield level, top, ridge_point(top.value, roof.value)

    def draw(self) -> None:
        """Draw roofs, ridge points and marks; labels follow when the layout is complete."""
        axes, line = self.axes, self.palette.line
        for each in self.lines():
            for rate, ends in each.ends.items():
                thin = rate != each.roof.value
                kind = "peak" if thin else "level" if each.level else "ceiling"
                axes.plot(
                    *zip(*ends, strict=True), color=each.colour, zorder=3 if each.level else 2,
                    linestyle=LOOKS[each.level].dashes if each.level else "-",
                    linewidth=each.width * (_THIN if thin else 1), gid=f"{kind}-{each.name}",
                )  # fmt: skip
        for level, top, x in self.ridges():
            gid = f"ridge-{level}" if top is self.device.top else f"ridge-{level}-{top.name}"
            axes.plot([x, x], [axes.get_ylim()[0], top.value], color=self.colour(level), alpha=0.8,
                      linewidth=0.5 * line, linestyle=":", zorder=1, gid=gid)  # fmt: skip
        spans = [(kernel.flops_per_s, [*shown(self.device, kernel).values()])
                 for kernel in self.kernels if not kernel.at]  # fmt: skip
        spans = [(rate, xs) for rate, xs in spans if len(xs) > 1]
        if spans:
            axes.hlines([rate for rate, _ in spans], [min(xs) for _, xs in spans],
                        [max(xs) for _, xs in spans], colors=self.palette.grey,
                        linewidth=0.5 * line, zorder=5)  # fmt: skip
        for level in reversed(list(self.device.levels)):  # inner marks are larger, so below
            mine = [mark for mark in self.marks if mark.level == level]
            self.trajectories(level, mine)
            for measured in (False, True):
                self.level(level, [each for each in mine if each.kernel.measured is measured])
        for kernel in self.kernels:
            xs = [*shown(self.device, kernel).values()]
            if xs and self.device.above(kernel):
                axes.annotate(
                    WARNING, (max(xs), kernel.flops_per_s), xytext=(0, 0.65 * self.palette.body),
                    textcoords="offset points", ha="center", va="bottom", fontweight="bold",
                    fontsize=1.1 * self.palette.body, color=self.palette.vermilion, zorder=8,
                )  # fmt: skip

    def trajectories(self, level: str, marks: Sequence[_Mark]) -> None:
        """Join the sizes of kernels of one label, at a level."""
        series: dict[tuple[str, bool], list[_Mark]] = {}
        for mark in marks:
            if mark.kernel.at:
                series.setdefault((mark.kernel.label, mark.kernel.measured), []).append(mark)
        outermost = level == next(iter(self.device.levels))
        for joined in series.values():
            self.axes.plot(
                [mark.x for mark in joined], [mark.kernel.flops_per_s for mark in joined],
                color=self.colour(level), alpha=0.8 if outermost else 0.5, zorder=4,
                linewidth=(0.6 if outermost else 0.35) * self.palette.line,
                gid=f"trajectory-{level}",
            )  # fmt: skip

    def level(self, level: str, marks: Sequence[_Mark]) -> None:
        """The marks of predicted or of measured kernels at a level, and the predictions' ranges,
        which stand at the kernels' outermost levels."""
        axes, line, colour = self.axes, self.palette.line, self.colour(level)
        ends = [mark for mark in marks if mark.outermost
                and mark.kernel.low_flops_per_s and mark.kernel.high_flops_per_s]  # fmt: skip
        if ends:
            xs = [mark.x for mark in ends]
            low = [mark.kernel.low_flops_per_s or 0.0 for mark in ends]
            high = [mark.kernel.high_flops_per_s or 0.0 for mark in ends]
            axes.vlines(xs, low, high, colors=colour, alpha=0.75, linewidth=0.7 * line, zorder=5,
                        gid=self.gid("range", level, ends))  # fmt: skip
            axes.plot([*xs, *xs], [*low, *high], color=colour, alpha=0.75, linestyle="none",
                      marker="_", markersize=2.5 * line, zorder=5,
                      gid=self.gid("end", level, [*ends, *ends]))  # fmt: skip
        if marks:
            measured = marks[0].kernel.measured
            axes.plot(
                [mark.x for mark in marks], [mark.kernel.flops_per_s for mark in marks],
                linestyle="none", marker=LOOKS[level].marker, zorder=7 if measured else 6,
                markersize=LOOKS[level].size * line / 1.2 * (0.75 if measured else 1.0),
                markeredgewidth=(0.3 if measured else 0.85) * line, markeredgecolor=colour,
                markerfacecolor=colour if measured else self.palette.ground,
                gid=self.gid("measured" if measured else "predicted", level, marks),
            )  # fmt: skip

    def gid(self, what: str, level: str, marks: Sequence[_Mark]) -> str:
        """The id of an artist of marks, which is noted."""
        gid = f"{what}-{level}{self.suffix}"
        self.gids[gid] = [mark.row for mark in marks]
        return gid

    def label(self, *, named: bool) -> Iterator[str]:
        """Label roofs, kernels if they are `named`, and ridge points; yields what has no room."""
        labels, palette = Labels(self.axes, self.palette), self.palette
        for line in self.lines():
            yield from self.roof(labels, line)
        if named:
            yield from self.names(labels)
        for level, top, x in self.ridges():
            words = f"{x:.3g}" if x < 999.5 else f"{x:.0f}"
            ends = (x, self.axes.get_ylim()[0]), (x, top.value)
            box = labels.best(labels.along(ends, words, palette.small))
            if not labels.write(words, box, palette.small, self.colour(level), f"foot-{level}"):
                yield f"ridge point {words}"

    def roof(self, labels: Labels, line: _Line) -> Iterator[str]:
        """Label the lines of a roof; yields the name of one without room.

        Each line has its label close to it, with no other line between. Where the measured value's
        has no such room, both stand in one label above the higher line.
        """
        roof, points = line.roof, self.palette.label

        def write(words: str, rate: float, sides: Sequence[int] = (1, -1)) -> bool:
            offers = labels.along(line.ends[rate], words, points, last=not line.level, sides=sides)
            return labels.write(
                words, labels.best(offers), points, line.colour, f"name-{line.name}"
            )

        if write(roof.label, roof.value):
            if roof.datasheet:
                write(f"{si(roof.datasheet, roof.unit)} published", roof.datasheet)
        elif not (roof.datasheet and write(roof.both, roof.highest, (1,))) and not write(
            roof.brief, roof.value
        ):
            if not write(roof.peak, roof.highest):
                write(roof.name, roof.value)
            yield roof.label

    def names(self, labels: Labels) -> Iterator[str]:
        """Write names and shares of the roof beside the kernels; yields the names without room.

        The ends of a trajectory come first, so that they are always named.
        """
        lasts = {(each.label, each.measured): each for each in self.kernels}
        predicted = {each.name for each in self.kernels if not each.measured}
        for kernel in sorted(self.kernels, key=lambda k: lasts[k.label, k.measured] is not k):
            levels = shown(self.device, kernel)
            last = lasts[kernel.label, kernel.measured] is kernel
            if levels:
                level, x = next(iter(levels.items()))
                texts = [*self.texts(kernel, last=last, predicted=kernel.name in predicted)]
                if not labels.name(
                    x, kernel.flops_per_s, texts, self.palette.label, self.palette.ink,
                    line=self.colour(level), most=9.0 if last or not kernel.at else 6.0,
                ):  # fmt: skip
                    yield kernel.name

    def texts(self, kernel: Kernel, *, last: bool, predicted: bool) -> Iterator[str]:
        """Candidate texts for a point, longest first; the end of a trajectory gets the full one."""
        roof, _ = self.device.bound(kernel)
        share = f"{self.device.share(kernel):.0%} of {roof.name}"
        if kernel.measured and predicted:  # the name is written at the prediction
            source = f"{kernel.by} measured" if kernel.by else "measured"
            yield from (f"{source}: {share}", source)
        elif kernel.at and not last:
            yield kernel.at
        else:
            measured = " measured" if kernel.measured else ""
            names = dict.fromkeys(filter(None, (kernel.name, kernel.label))) or [""]
            yield from (f"{kernel.name}{measured}: {share}", *(f"{n}{measured}" for n in names))


def _handles(devices: Sequence[Roofs], kernels: Sequence[Kernel], palette: Palette) -> list[Any]:
    """Legend: line and mark of each level; hollow for predicted, filled for measured."""
    from matplotlib.lines import Line2D

    names: dict[str, set[str]] = {}
    for device in devices:
        for level, roof in device.levels.items():
            names.setdefault(level, set()).add(roof.name)
    handles = [
        Line2D(
            [], [], color=(colour := getattr(palette, look.colour)), linestyle=look.dashes,
            marker=look.marker, markersize=0.87 * look.size * palette.line / 1.2,
            markerfacecolor=palette.ground, markeredgecolor=colour,
            label=together(names[level], GENERIC.get(level, level)),
        )
        for level, look in LOOKS.items() if level in names
    ]  # fmt: skip
    handles += [
        Line2D(
            [], [], color=palette.ink, linestyle="none", marker="o", label=word,
            markersize=4.6 * palette.line / 1.2,
            markerfacecolor=palette.ink if measured else palette.ground,
        )
        for measured, word in ((False, "predicted"), (True, "measured"))
        if any(kernel.measured is measured for kernel in kernels)
    ]  # fmt: skip
    return handles


def _caption(
    devices: Sequence[Roofs], kernels: Sequence[Kernel], note: str, unplaced: Sequence[str]
) -> Iterator[str]:
    """The origin of each roof, what is missing, and how to read the marks."""
    for device in devices:
        by_status: dict[str, list[str]] = {}
        for roof in (*device.compute, *device.levels.values()):
            by_status.setdefault(roof.status, []).append(roof.name)
        origins = [f"{', '.join(by_status[status])} {STATUS[status]}"
                   for status in STATUS if status in by_status]  # fmt: skip
        yield f"Roofs of {device.device}: {'; '.join(origins)}."
    for device in devices:
        if device.missing:
            names = ", ".join(device.missing)
            yield f"Not drawn: {names} of {device.device}, whose bandwidth its spec does not give."
    yield " ".join(_reading(devices, kernels))
    if unplaced:
        yield f"Without a label for want of room: {'; '.join(unplaced)}."
    if note:
        yield note


def _reading(devices: Sequence[Roofs], kernels: Sequence[Kernel]) -> Iterator[str]:
    measured = any(roof.datasheet for d in devices for roof in (*d.compute, *d.levels.values()))
    if measured:
        yield "Thin lines are published peaks of what was measured."
    yield (
        "Numbers beside dotted lines are ridge points (FLOP/byte)"
        f"{', of the thick, measured lines' if measured else ''}."
    )
    if kernels:
        yield "Per cent are of the lowest peak above the mark."
    if any(kernel.low_flops_per_s for kernel in kernels):
        yield "Bars are the predictions' ranges."
    if any(device.special(kernels_of(device, kernels)) for device in devices):
        flops = min(k.flops_per_special for k in kernels if k.flops_per_special)
        yield f"The ceiling of the special functions is that of {flops:.0f} FLOP for each of them."
    if any(d.above(k) for d in devices for k in kernels_of(d, kernels)):
        yield f"{WARNING} above its roof: a wrong type or FLOP count, sparsity or cached data."


def _sentences(devices: Sequence[Roofs], kernels: Sequence[Kernel]) -> Iterator[str]:
    """The kernels in words."""
    for device in devices:
        for kernel in kernels_of(device, kernels):
            what = "measured" if kernel.measured else "predicted"
            roof, _ = device.bound(kernel)
            yield (
                f"{kernel.name} on {device.device}: {si(kernel.flops_per_s, 'FLOP/s')} {what}, "
                f"{device.share(kernel):.0%} of {roof.name}."
            )


def _rows(
    devices: Sequence[Roofs], kernels: Sequence[Kernel]
) -> tuple[list[Row], list[list[_Mark]]]:
    """The drawn numbers, one row for each roof and each mark; and the marks of each device."""
    rows: list[Row] = []
    marks: list[list[_Mark]] = []
    for device in devices:
        mine = kernels_of(device, kernels)
        special = device.special(mine)
        compute = (*device.compute, *([special] if special else []))
        rows += [_roof_row(device, roof, None) for roof in compute]
        rows += [_roof_row(device, roof, level) for level, roof in device.levels.items()]
        marks.append([])
        for kernel in mine:
            bound, allowed = device.bound(kernel)
            for i, (level, x) in enumerate(shown(device, kernel).items()):
                marks[-1].append(_Mark(len(rows), kernel, level, x, not i))
                rows.append({
                    "what": "measured" if kernel.measured else "predicted",
                    "device": device.device,
                    "name": kernel.name,
                    "level": level,
                    "intensity_flop_per_byte": x,
                    "flops_per_s": kernel.flops_per_s,
                    "low_flops_per_s": kernel.low_flops_per_s,
                    "high_flops_per_s": kernel.high_flops_per_s,
                    "bound_by": bound.name,
                    "bound_flops_per_s": allowed,
                })  # fmt: skip
    return rows, marks


def _roof_row(device: Roofs, roof: Roof, level: str | None) -> Row:
    rate = "flops_per_s" if level is None else "bytes_per_s"
    return {
        "what": "roof",
        "device": device.device,
        "name": roof.name,
        "level": level,
        rate: roof.value,
        f"peak_{rate}": roof.highest,
        "status": roof.status,
        "ridge_flop_per_byte": None if level is None else ridge_point(device.top.value, roof.value),
    }
