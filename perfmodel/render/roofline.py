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
from dataclasses import replace
from typing import Any

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import WARNING, Dots, Line, Look, Panel, dots_chart
from perfmodel.render.page import Page, Palette
from perfmodel.render.report import Row
from perfmodel.render.roofs import Kernel, Roof, Roofs, level_names
from perfmodel.timing.roofline import ridge_point
from perfmodel.units import si

MOST = 24
"""Limit on the kernels of one chart; more would cover each other."""
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
LOOKS: Mapping[str, Look] = {
    "hbm": Look("blue", "o", 4.8),
    "llc": Look("purple", "D", 6.0, (0, (6, 1.5, 1.2, 1.5))),
    "l2": Look("green", "s", 6.9, (0, (4.5, 1.8))),
    "shared": Look("ochre", "^", 8.7, (0, (1.2, 1.2))),
    "peer": Look("vermilion", "v", 5.3, (0, (8, 1.5, 1.2, 1.5, 1.2, 1.5))),
    "network": Look("sky", "h", 5.3, (0, (8, 3))),
    "host": Look("grey", "p", 5.3, (0, (3, 3))),
}
"""Looks of memory levels; inner ones are larger, so that coinciding marks are all visible."""
_THIN = 0.5  # line width of a published peak over that of a measured value
_INTENSITY, _RATE = "intensity_flop_per_byte", "flops_per_s"
_LAYOUT = ("label", "predicted", "above", "order", "texts")
"""Keys of rows that say how a mark is drawn; they are no numbers of the chart."""
_DOTS = Dots(
    "", [_INTENSITY], [_RATE], by=["level"], looks=LOOKS, hollow="predicted", flagged="above",
    apart="device", labelled="texts", along="order",
    ranges={_RATE: ("low_flops_per_s", "high_flops_per_s")},
    headers={_INTENSITY: "Arithmetic intensity (FLOP/byte)", _RATE: "Performance (FLOP/s)"},
    kinds={_RATE: "number"},
)  # fmt: skip


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
    _check(devices, kernels, MOST if named else math.inf)
    rows = [row for device in devices for row in _rows(device, kernels, named=named)]
    room = _room(devices, kernels)
    sizes = any(kernel.at for kernel in kernels)
    joined = ("level", "label", "predicted") if sizes else ("name", "predicted")
    dots = replace(_DOTS, joined=joined if named else ())
    labelled = kernels if named else ()
    unplaced: list[str] = []
    while True:  # the caption names what has no room, and takes some itself
        caption = list(_caption(devices, labelled, note, unplaced))
        chart = dots_chart(
            rows, dots, title=title, caption=caption, page=page, room=room, legend=False,
            panels=[Panel(d.device, d.title, list(_lines(d, kernels, room))) for d in devices],
            handles=lambda palette: _handles(devices, kernels, palette) if labelled else (),
        )  # fmt: skip
        if set(chart.unplaced) <= set(unplaced):
            break
        unplaced = list(dict.fromkeys([*unplaced, *chart.unplaced]))
    names = f"Roofline of {', '.join(device.device for device in devices)}"
    return replace(
        chart,
        title=f"{names}: {title}" if title else names,
        description=" ".join([*_sentences(devices, labelled), *caption]),
        rows=[{key: row[key] for key in row if key not in _LAYOUT} for row in rows],
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


Room = tuple[tuple[float, float], tuple[float, float]]


def _room(devices: Sequence[Roofs], kernels: Sequence[Kernel]) -> Room:
    """Ends of axes shared by all panels: every ridge, matrix ceiling and mark, and labels."""
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


def _lines(device: Roofs, kernels: Sequence[Kernel], room: Room) -> Iterator[Line]:
    """Ceilings from the innermost diagonal to the right, diagonals up to the ceiling, and ridge
    points: of the outermost level at every matrix ceiling, of others at the highest."""
    (left, right), (low, high) = room
    innermost = max(roof.value for roof in device.levels.values())
    special = device.special(kernels_of(device, kernels))
    for roof in (*device.compute, *([special] if special else [])):
        main = roof in device.matrix or not device.matrix
        for rate in (roof.value, roof.datasheet) if low < roof.value < high else ():
            if rate:
                ends = (max(ridge_point(rate, innermost), left), rate), (right, rate)
                yield _roof(
                    "ceiling",
                    roof.name,
                    roof,
                    rate,
                    Line("", ends, "ink" if main else "grey", 1.0 if main else 0.7, last=True),
                )
    for level, roof in device.levels.items():
        for rate, ceiling in ((roof.value, device.top.value), (roof.datasheet, device.top.highest)):
            if rate:
                start, end = max(left, low / rate), ridge_point(ceiling, rate)
                ends = (start, start * rate), (end, end * rate)
                look = LOOKS[level]
                yield _roof(
                    "level", level, roof, rate, Line("", ends, look.colour, dashes=look.dashes)
                )
    for i, (level, roof) in enumerate(device.levels.items()):
        for top in device.matrix if not i and device.matrix else (device.top,):
            x = ridge_point(top.value, roof.value)
            gid = f"ridge-{level}" if top is device.top else f"ridge-{level}-{top.name}"
            words = f"{x:.3g}" if x < 999.5 else f"{x:.0f}"
            yield Line(
                gid,
                ((x, low), (x, top.value)),
                LOOKS[level].colour,
                0.5,
                ":",
                [words],
                f"foot-{level}",
                small=True,
            )


def _roof(kind: str, name: str, roof: Roof, rate: float, line: Line) -> Line:
    """The thick line of a roof, or the thin one of its published peak."""
    value = si(rate, roof.unit)
    thick = rate == roof.value
    origin = "measured" if thick else "published"
    texts = [f"{roof.name} {value} {origin}", f"{roof.name} {value}", f"{value} {origin}"]
    gid, width = (f"{kind}-{name}", line.width) if thick else (f"peak-{name}", _THIN * line.width)
    texts = texts if roof.datasheet else texts[1:2]
    bare = roof.name if thick else ""
    return replace(line, gid=gid, width=width, texts=texts, bare=bare, label=f"name-{name}")


def _texts(device: Roofs, kernel: Kernel, *, last: bool, predicted: bool) -> Iterator[str]:
    """Candidate texts for a point, longest first; the end of a trajectory gets the full one."""
    roof, _ = device.bound(kernel)
    share = f"{device.share(kernel):.0%} of {roof.name}"
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

    names = level_names(devices)
    handles = [
        Line2D(
            [], [], color=(colour := getattr(palette, look.colour)), linestyle=look.dashes,
            marker=look.marker, markersize=0.87 * look.size * palette.scale,
            markerfacecolor=palette.ground, markeredgecolor=colour,
            label=names[level],
        )
        for level, look in LOOKS.items() if level in names
    ]  # fmt: skip
    handles += [
        Line2D(
            [], [], color=palette.ink, linestyle="none", marker="o", label=word,
            markersize=4.6 * palette.scale,
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


def _rows(device: Roofs, kernels: Sequence[Kernel], *, named: bool) -> Iterator[Row]:
    """The drawn numbers, one row for each roof and each mark; the range and the texts of a kernel
    are at its outermost level. The ends of trajectories come first, so that they are named."""
    mine = kernels_of(device, kernels)
    special = device.special(mine)
    compute = (*device.compute, *([special] if special else []))
    yield from (_roof_row(device, roof, None) for roof in compute)
    yield from (_roof_row(device, roof, level) for level, roof in device.levels.items())
    lasts = {(each.label, each.measured): each for each in mine}
    predicted = {each.name for each in mine if not each.measured}
    order = {id(kernel): place for place, kernel in enumerate(mine)}
    for kernel in sorted(mine, key=lambda k: lasts[k.label, k.measured] is not k):
        last = lasts[kernel.label, kernel.measured] is kernel
        bound, allowed = device.bound(kernel)
        texts = tuple(_texts(device, kernel, last=last, predicted=kernel.name in predicted))
        for i, (level, x) in enumerate(shown(device, kernel).items()):
            yield {
                "what": "measured" if kernel.measured else "predicted",
                "device": device.device,
                "name": kernel.name,
                "label": kernel.label,
                "level": level,
                _INTENSITY: x,
                _RATE: kernel.flops_per_s,
                "low_flops_per_s": None if i else kernel.low_flops_per_s,
                "high_flops_per_s": None if i else kernel.high_flops_per_s,
                "bound_by": bound.name,
                "bound_flops_per_s": allowed,
                "predicted": not kernel.measured,
                "above": not i and device.above(kernel),
                "order": order[id(kernel)],
                "texts": texts if named and not i else (),
            }


def _roof_row(device: Roofs, roof: Roof, level: str | None) -> Row:
    rate = _RATE if level is None else "bytes_per_s"
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
