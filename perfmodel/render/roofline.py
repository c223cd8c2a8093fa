"""Hierarchical rooflines: one panel for each device, a diagonal for each memory level.

A kernel has one mark for each level. A level has a colour, a line style and a shape of mark; hollow
marks are predicted, filled ones measured. A thin line joins the marks of one kernel: marks close
together show poor reuse between those levels (Yang, Kurth & Williams 2020). A mark above its roof
gets a warning sign, because it means a wrong number.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from perfmodel.errors import ProblemError
from perfmodel.render import foot, marks, rooflines
from perfmodel.render.chart import Chart
from perfmodel.render.foot import kernels_of
from perfmodel.render.frame import Frame
from perfmodel.render.labels import FAINT, Places, wrapped
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.render.rooflines import Panel
from perfmodel.render.roofs import Kernel, Roof, Roofs
from perfmodel.timing.roofline import ridge_point
from perfmodel.units import si

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 24
"""Limit on the kernels of one chart; more would cover each other."""
_BOLD = 1.12  # width of bold text over that of plain text


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
    with styled(page) as palette:
        heading = page.titled(title)
        names: list[str] = []
        for last in (False, False, True, True):  # the caption names them, which takes room
            figure, unplaced = _figure(
                devices, kernels, heading, note, page, palette, names, named=named
            )
            if set(unplaced) == set(names) or (last and set(unplaced) < set(names)):
                break
            names = list(dict.fromkeys([*(names if last else ()), *unplaced]))
    rows = list(_rows(devices, kernels))
    captioned = kernels if named else ()
    return Chart(
        figure,
        f"Roofline of {', '.join(device.device for device in devices)}"
        + (f": {title}" if title else ""),
        " ".join([*_sentences(devices, captioned), *foot.caption(devices, captioned, note)]),
        rows,
        foot.caption(devices, captioned, note, names),
        page,
        dict(_artists(devices, rows)),
    )  # fmt: skip


def _artists(devices: Sequence[Roofs], rows: Sequence[Row]) -> Iterator[tuple[str, list[int]]]:
    """The rows of each artist that stands for kernels, by its id."""
    for device in devices:
        suffix = device.device if len(devices) > 1 else ""
        order = list(device.levels)
        groups: dict[str, list[int]] = {}
        before = -1
        for i, row in enumerate(rows):
            if row["device"] != device.device or row["what"] == "roof":
                continue
            level = str(row["level"])
            groups.setdefault(marks.gid(row["what"], level, suffix), []).append(i)
            first, before = order.index(level) <= before or before < 0, order.index(level)
            if first and row["low_flops_per_s"] and row["high_flops_per_s"]:
                groups.setdefault(marks.gid("range", level, suffix), []).append(i)
        yield from groups.items()
        ranges = {gid: mine for gid, mine in groups.items() if gid.startswith("range")}
        yield from (
            (gid.replace("range", "end", 1), [*mine, *mine]) for gid, mine in ranges.items()
        )


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
    title: str,
    note: str,
    page: Page,
    palette: Palette,
    names: Sequence[str],
    *,
    named: bool,
) -> tuple[Figure, list[str]]:
    """The figure, and the labels without room; `names` are those that the caption names."""
    from matplotlib.figure import Figure

    rows, columns = grid(len(devices))
    width, height = page.size(
        max(6.0, 4.2 * columns), 3.3 * rows + (1.2 if page.caption else 0.8), columns=columns
    )
    figure = Figure(figsize=(width, height))
    lines = foot.caption(devices, kernels, note, names) if page.caption else []
    below = foot.draw(figure, devices, kernels if named else (), lines, palette)
    above = _title(figure, title, palette)
    limits = _limits(devices, kernels)
    unplaced: list[str] = []
    for i, device in enumerate(devices):
        left, bottom, across, up = _box(i, len(devices), (width, height), (below, above), palette)
        axes = figure.add_axes((left / width, bottom / height, across / width, up / height))
        runs = kernels_of(device, kernels)
        frame = Frame(*limits, across, up)
        suffix = device.device if len(devices) > 1 else ""
        panel = Panel(axes, device, frame, Places(across, up), palette, suffix)
        unplaced += _panel(panel, runs, named=named)
        if i % columns:
            axes.set_ylabel("")
    return figure, list(dict.fromkeys(unplaced))


def _title(figure: Figure, title: str, palette: Palette) -> float:
    """Draw the title above all panels; returns its height in inches."""
    from matplotlib import rcParams

    if not title:
        return 0.0
    width, height = figure.get_size_inches()
    points = float(rcParams["axes.titlesize"])
    lines = wrapped(title, _BOLD * points, width - 0.2)
    figure.text(
        0.1 / width,
        1 - 0.06 / height,
        "\n".join(lines),
        fontsize=points,
        fontweight="bold",
        va="top",
        gid="title",
    )
    return points / 72 * 1.25 * len(lines) + 0.05


def _box(
    i: int,
    count: int,
    size: tuple[float, float],
    margins: tuple[float, float],
    palette: Palette,
) -> tuple[float, float, float, float]:
    """Left, bottom, width and height of a panel, in inches; the last row is as wide as the rest."""
    below, above = margins
    rows, columns = grid(count)
    row, column = divmod(i, columns)
    left, right, gap, top, row_gap = (n * palette.scale for n in (0.66, 0.2, 0.55, 0.27, 0.75))
    panels = min(columns, count - row * columns)
    width = (size[0] - left - right - gap * (panels - 1)) / panels
    height = (size[1] - below - above - top - row_gap * (rows - 1)) / rows
    if width < 1 or height < 0.9:
        raise ProblemError(
            f"{size[0]:.3g} x {size[1]:.3g} inches are too small for this chart; give it more "
            "room, or leave the caption out"
        )
    bottom = size[1] - above - top - height - row * (height + row_gap)
    return left + column * (width + gap), bottom, width, height


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
    marks = [
        x
        for kernel in kernels
        for level, x in kernel.intensity.items()
        if level in levels and 0 < x < math.inf
    ]
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


def _panel(panel: Panel, kernels: Sequence[Kernel], *, named: bool) -> list[str]:
    """Draw roofs, marks and labels of one device; returns the labels without room."""
    _axes(panel.axes, panel.device.title, panel.frame)
    special = panel.device.special(kernels)
    low, high = panel.frame.y
    compute: tuple[Roof, ...] = (*panel.device.compute, *([special] if special else []))
    compute = tuple(roof for roof in compute if low < roof.value < high)
    marks.keep(panel, kernels)
    panel.places.cross([*rooflines.lines(panel, compute), *marks.lines(panel, kernels)])
    panel.places.cross(rooflines.ridge_lines(panel), FAINT)
    marks.draw(panel, kernels)
    return [
        *rooflines.ceilings(panel, compute),
        *rooflines.diagonals(panel),
        *(marks.label(panel, kernels) if named else ()),
        *rooflines.ridges(panel),
    ]


def _axes(axes: Axes, title: str, frame: Frame) -> None:
    from matplotlib.ticker import EngFormatter, FuncFormatter, LogLocator, NullFormatter

    axes.set(xscale="log", yscale="log", xlim=frame.x, ylim=frame.y)
    axes.set_xlabel("Arithmetic intensity (FLOP/byte)")
    axes.set_ylabel("Performance (FLOP/s)")
    axes.set_title(title, loc="left")
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_major_formatter(EngFormatter(sep=""))
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(numticks=12))
        axis.set_minor_formatter(NullFormatter())


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


def _rows(devices: Sequence[Roofs], kernels: Sequence[Kernel]) -> Iterator[Row]:
    """The drawn numbers: one row for each roof and each mark."""
    for device in devices:
        special = device.special(kernels_of(device, kernels))
        for roof in (*device.compute, *([special] if special else [])):
            yield _roof_row(device, roof, None)
        for level, roof in device.levels.items():
            yield _roof_row(device, roof, level)
        for kernel in kernels_of(device, kernels):
            bound, allowed = device.bound(kernel)
            levels = [x for x in device.levels if 0 < kernel.intensity.get(x, 0.0) < math.inf]
            for level in levels:
                yield {
                    "what": "measured" if kernel.measured else "predicted",
                    "device": device.device,
                    "name": kernel.name,
                    "level": level,
                    "intensity_flop_per_byte": kernel.intensity[level],
                    "flops_per_s": kernel.flops_per_s,
                    "low_flops_per_s": kernel.low_flops_per_s,
                    "high_flops_per_s": kernel.high_flops_per_s,
                    "bound_by": bound.name,
                    "bound_flops_per_s": allowed,
                }


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
