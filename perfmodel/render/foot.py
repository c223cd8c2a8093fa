"""Below a roofline chart: a legend of levels, and the caption in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from perfmodel.hardware.levels import together
from perfmodel.render.labels import text_inches, wrapped
from perfmodel.render.marks import WARNING
from perfmodel.render.page import Palette
from perfmodel.render.rooflines import LOOKS
from perfmodel.render.roofs import GENERIC, Kernel, Roofs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

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


def draw(
    figure: Figure,
    devices: Sequence[Roofs],
    kernels: Sequence[Kernel],
    caption: Sequence[str],
    palette: Palette,
) -> float:
    """Draw legend and caption under the panels; returns their height in inches."""
    width, height = figure.get_size_inches()
    lines = [line for part in caption for line in wrapped(part, palette.small, width - 0.2)]
    y = 0.06
    if lines:
        figure.text(
            0.1 / width,
            0.05 / height,
            "\n".join(lines),
            fontsize=palette.small,
            color=palette.grey,
            va="bottom",
            gid="caption",
        )
        y += palette.small / 72 * 1.4 * len(lines) + 0.03
    if kernels:
        y += _legend(figure, _handles(devices, kernels, palette), y, palette)
    return y + 0.46 * palette.scale


def _legend(figure: Figure, handles: list[Line2D], y: float, palette: Palette) -> float:
    """Draw rows of legend entries, starting `y` inches above the bottom; returns their height."""
    from matplotlib import rcParams

    width, height = figure.get_size_inches()
    points = float(rcParams["legend.fontsize"])
    sizes = [
        text_inches(str(item.get_label()), points) + (2.4 + 0.4 + 1.2) * points / 72
        for item in handles
    ]
    columns = next(
        n for n in range(len(handles), 0, -1) if n == 1 or _legend_width(sizes, n) < width - 0.15
    )
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.06 / width, y / height),
        ncols=columns,
        borderaxespad=0,
        borderpad=0.1,
        columnspacing=1.2,
        handletextpad=0.4,
        handlelength=2.4,
        labelspacing=0.3,
    )
    return math.ceil(len(handles) / columns) * points / 72 * 1.45 + 0.03


def _legend_width(sizes: Sequence[float], columns: int) -> float:
    """Width of a legend with that many columns; Matplotlib fills one column after the other."""
    rows, longer = divmod(len(sizes), columns)
    ends = [rows * i + min(i, longer) for i in range(columns + 1)]
    return sum(max(sizes[start:end]) for start, end in pairwise(ends))


def _handles(devices: Sequence[Roofs], kernels: Sequence[Kernel], palette: Palette) -> list[Line2D]:
    """Legend entries: line and mark of each level; hollow for predicted, filled for measured."""
    from matplotlib.lines import Line2D

    names: dict[str, set[str]] = {}
    for device in devices:
        for level, roof in device.levels.items():
            names.setdefault(level, set()).add(roof.name)
    handles = []
    for level in sorted(names, key=list(LOOKS).index):
        look = LOOKS[level]
        colour = getattr(palette, look.colour)
        name = together(names[level], GENERIC.get(level, level))
        handles.append(
            Line2D(
                [], [], color=colour, linestyle=look.dashes, marker=look.marker,
                markersize=look.size * palette.line / 1.2, markerfacecolor=palette.ground,
                label=name,
            )
        )  # fmt: skip
    for measured, word in ((False, "predicted"), (True, "measured")):
        if any(kernel.measured is measured for kernel in kernels):
            face = palette.ink if measured else palette.ground
            handles.append(
                Line2D(
                    [], [], color=palette.ink, linestyle="none", marker="o", label=word,
                    markersize=4.6 * palette.line / 1.2, markerfacecolor=face,
                )
            )  # fmt: skip
    return handles


def caption(
    devices: Sequence[Roofs],
    kernels: Sequence[Kernel],
    note: str,
    unplaced: Sequence[str] = (),
) -> list[str]:
    """The caption: the origin of each roof, what is missing, and how to read the marks."""
    return [
        *(_sources(device) for device in devices),
        *_missing(devices),
        " ".join(_reading(devices, kernels)),
        *([f"Without a label for want of room: {'; '.join(unplaced)}."] if unplaced else []),
        *([note] if note else []),
    ]


def _sources(device: Roofs) -> str:
    """The roofs of a device, grouped by their origin."""
    by_status: dict[str, list[str]] = {}
    for roof in (*device.compute, *device.levels.values()):
        by_status.setdefault(roof.status, []).append(roof.name)
    statuses = sorted(by_status, key=lambda status: list(STATUS).index(status))
    text = "; ".join(f"{', '.join(by_status[name])} {STATUS[name]}" for name in statuses)
    return f"Roofs of {device.device}: {text}."


def _missing(devices: Sequence[Roofs]) -> Iterator[str]:
    for device in devices:
        if device.missing:
            names = ", ".join(device.missing)
            yield f"Not drawn: {names} of {device.device}, whose bandwidth its spec does not give."


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


def kernels_of(device: Roofs, kernels: Sequence[Kernel]) -> list[Kernel]:
    """The kernels that run on a device."""
    return [kernel for kernel in kernels if kernel.device == device.device]
