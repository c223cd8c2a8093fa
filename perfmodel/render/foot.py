"""What stands under a roofline chart: legends of levels and kernels, and the caption."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.hardware.levels import together
from perfmodel.render.figure import BLUE, GREEN, ORANGE, PURPLE
from perfmodel.render.labels import text_inches
from perfmodel.render.roofs import GENERIC, Kernel, Roof, Roofs

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

COLOURS = {"hbm": BLUE, "llc": PURPLE, "l2": GREEN, "shared": ORANGE}
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">", "p", "h")
WARNING = "\u26a0"
_CAPTION = 6.5  # points
_LINE = 0.135  # inches per line of caption or legend


def draw(
    figure: Figure,
    devices: Sequence[Roofs],
    kernels: Sequence[Kernel],
    labels: list[str],
    note: str,
) -> float:
    """Legends and caption under the panels; the height they take, in inches."""
    width, height = figure.get_size_inches()
    lines = _caption(devices, kernels, note, width)
    y = 0.06 + _LINE * 0.9 * len(lines)
    figure.text(
        0.1 / width,
        0.05 / height,
        "\n".join(lines),
        fontsize=_CAPTION,
        color="#444444",
        va="bottom",
    )
    if kernels:
        y += 0.04
        y += _legend(figure, _kernel_handles(labels), y)
        y += _legend(figure, _level_handles(devices, kernels), y)
    return y + 0.5


def _legend(figure: Figure, handles: list[Line2D], y: float) -> float:
    """A row of legend entries starting `y` inches above the bottom; its height."""
    width, height = figure.get_size_inches()
    longest = max(text_inches(str(handle.get_label()), 7.5) for handle in handles) + 0.36
    columns = max(1, min(len(handles), int((width - 0.2) / longest)))
    figure.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.06 / width, y / height),
        ncols=columns,
        borderaxespad=0,
        borderpad=0.1,
        columnspacing=1.2,
        handletextpad=0.4,
        handlelength=1.2,
        labelspacing=0.25,
    )
    return math.ceil(len(handles) / columns) * _LINE * 1.15 + 0.03


def _kernel_handles(labels: list[str]) -> list[Line2D]:
    return [_handle(MARKERS[i], "black", "white", label) for i, label in enumerate(labels)]


def _level_handles(devices: Sequence[Roofs], kernels: Sequence[Kernel]) -> list[Line2D]:
    """Colours are levels; hollow and filled are predicted and measured."""
    drawn: dict[str, set[str]] = {}
    for device in devices:
        for level, roof in device.levels.items():
            drawn.setdefault(level, set()).add(roof.name)
    handles = [
        _handle("s", COLOURS[level], COLOURS[level], together(names, GENERIC[level]))
        for level, names in drawn.items()
    ]
    if any(not kernel.measured for kernel in kernels):
        handles.append(_handle("o", "black", "white", "predicted"))
    if any(kernel.measured for kernel in kernels):
        handles.append(_handle("o", "black", "black", "measured"))
    return handles


def _handle(marker: str, edge: str, face: str, label: str) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D(
        [], [], linestyle="none", marker=marker, color=edge, markerfacecolor=face, label=label,
        markersize=5.5,
    )  # fmt: skip


def _caption(
    devices: Sequence[Roofs], kernels: Sequence[Kernel], note: str, width: float
) -> list[str]:
    """Device, types and where each roof comes from; wrapped to the width of the page."""
    said = []
    for device in devices:
        parts = [
            _sourced(roof) for roof in (*device.matrix, *device.vector, *device.levels.values())
        ]
        said.append(f"{device.device}: {', '.join(parts)}.")
    said.append("Numbers at the foot are ridge points (FLOP/byte).")
    dashed = any(
        roof.datasheet for d in devices for roof in (*d.matrix, *d.vector, *d.levels.values())
    )
    if dashed:
        said[-1] += " Solid lines: measured where it was; dashed: datasheet peak."
    if any(d.above(k) for d in devices for k in kernels if k.device == d.device):
        said.append(
            f"{WARNING} above its roof: a wrong type or FLOP count, sparsity or cached data."
        )
    said += [note] if note else []
    letters = int((width - 0.2) * 72 / (_CAPTION * 0.53))
    return [line for sentence in said for line in textwrap.wrap(sentence, letters)]


def _sourced(roof: Roof) -> str:
    return f"{roof.name} ({roof.status}{', peak dashed' if roof.datasheet else ''})"
