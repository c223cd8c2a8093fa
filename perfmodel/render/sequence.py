"""Standard against tiled attention over sequence length: time, speed-up, memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.dots import Dots, Drawing
from perfmodel.render.page import Page, styled
from perfmodel.render.report import Row
from perfmodel.units import binary

_SEQ: Mapping[str, Any] = {"headers": {
    "seq": "Sequence length", "seconds": "Time per sequence", "bytes": "Device memory per sequence",
    "speed_up": "Speed-up, tiled over standard (×)",
}, "kinds": {"seq": "length", "bytes": "binary"}}  # fmt: skip
_TIMES = Dots("", ["seq"], ["seconds"], by=["what"], joined=["what"], measured="measured",
              labelled="label", **_SEQ)  # fmt: skip
_SPEED_UPS = Dots("", ["seq"], ["speed_up"], log="x", by=["device"], joined=["device"], **_SEQ)
_MEMORY = Dots("", ["seq"], ["bytes"], by=["what"], joined=["what"], measured="measured", **_SEQ)


@dataclass(frozen=True)
class Sweep:
    """Both schedules on one device over sequence lengths, for one sequence."""

    device: str
    """Slug of the device."""
    lengths: np.ndarray
    """The lengths."""
    standard_seconds: np.ndarray
    """Time of the standard schedule."""
    tiled_seconds: np.ndarray
    """Time of the tiled schedule."""
    standard_bytes: np.ndarray
    """Memory that the standard schedule needs."""
    tiled_bytes: np.ndarray
    """Memory that the tiled schedule needs."""
    capacity_bytes: float
    """Memory of the device."""
    measured: tuple[tuple[str, str, np.ndarray, np.ndarray], ...] = ()
    """Measured runs to compare: schedule, kernel, lengths, seconds."""

    @property
    def fits(self) -> np.ndarray:
        """Lengths at which the score matrix fits in the device's memory."""
        return np.asarray(self.standard_bytes <= self.capacity_bytes)

    @property
    def speed_up(self) -> np.ndarray:
        """How many times faster the tiled schedule is."""
        return np.asarray(self.standard_seconds / self.tiled_seconds)


def sequence_chart(
    sweeps: Sequence[Sweep], *, page: Page | None = None, title: str = "", note: str = ""
) -> Chart:
    """Time per device, then speed-up and memory of all; lines predicted, filled marks measured.

    Raises `ProblemError` without a sweep.
    """
    from matplotlib.figure import Figure

    if not sweeps:
        raise ProblemError("nothing to draw: no device was swept")
    page = page or Page()
    columns = max(len(sweeps), 2)
    with styled(page) as palette:
        size = page.size(3.2 * columns, 5.8, columns=columns)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(2, 2 * columns)
        across = 2 * columns // len(sweeps)  # a single one fills the row
        panels: list[tuple[Any, list[Row], Dots]] = [
            (grid[0, across * i : across * (i + 1)], list(_times(sweep)), _TIMES)
            for i, sweep in enumerate(sweeps)
        ]
        panels.append((grid[1, :columns], list(_speed_ups(sweeps)), _SPEED_UPS))
        panels.append((grid[1, columns:], list(_memory(sweeps)), _MEMORY))
        drawings = []
        for cell, rows, dots in panels:
            axes = figure.add_subplot(cell)
            drawings.append(Drawing(axes, rows, dots, palette, dots.x[0], dots.y[0]))
            drawings[-1].draw()
            axes.legend(loc="best", handlelength=1.8, borderaxespad=0.2, frameon=True,
                        facecolor=palette.ground, edgecolor="none")  # fmt: skip
        times = [drawing.axes for drawing in drawings[: len(sweeps)]]
        limits = [limit for axes in times for limit in axes.get_ylim()]
        for axes, sweep in zip(times, sweeps, strict=True):
            axes.set_title(sweep.device, loc="left")
            axes.set_ylim(min(limits), max(limits))
        caption = ["Lines: predicted; marks: measured.", *([note] if note else [])]
        dress(figure, page, palette, title, caption)
        for drawing in drawings:
            drawing.labels()
    return Chart(
        figure,
        title or "Standard against tiled attention over sequence length",
        " ".join([*map(_sentence, sweeps), *caption]),
        list(_rows(sweeps)),
        caption,
        page,
    )


def _times(sweep: Sweep) -> Iterator[Row]:
    """Predicted times of both schedules, and the runs measured on the device."""
    last = np.flatnonzero(sweep.fits)[-1:] if not sweep.fits.all() else ()
    for i, length in enumerate(sweep.lengths):
        if sweep.fits[i]:
            yield {"what": "standard", "seq": float(length),
                   "seconds": float(sweep.standard_seconds[i]),
                   "label": "out of memory" if i in last else ""}  # fmt: skip
    for length, time in zip(sweep.lengths, sweep.tiled_seconds, strict=True):
        yield {"what": "tiled", "seq": float(length), "seconds": float(time)}
    for _, name, lengths, times in sweep.measured:
        for length, time in zip(lengths, times, strict=True):
            yield {"what": f"{name}, measured", "seq": float(length), "seconds": float(time),
                   "measured": True}  # fmt: skip


def _speed_ups(sweeps: Sequence[Sweep]) -> Iterator[Row]:
    for sweep in sweeps:
        for length, gain, fits in zip(sweep.lengths, sweep.speed_up, sweep.fits, strict=True):
            if fits:
                yield {"device": sweep.device, "seq": float(length), "speed_up": float(gain)}


def _memory(sweeps: Sequence[Sweep]) -> Iterator[Row]:
    """Memory of both schedules, and the capacities of the devices."""
    curves = {"standard, O(N²)": sweeps[0].standard_bytes, "tiled, O(N)": sweeps[0].tiled_bytes}
    capacities: dict[float, list[str]] = {}
    for sweep in sweeps:
        capacities.setdefault(sweep.capacity_bytes, []).append(sweep.device)
    for capacity, names in capacities.items():
        name = f"{', '.join(names)}: {binary(capacity)}"
        curves[name] = np.full(len(sweeps[0].lengths), capacity)
    for what, sizes in curves.items():
        for length, size in zip(sweeps[0].lengths, sizes, strict=True):
            yield {"what": what, "seq": float(length), "bytes": float(size)}


def _sentence(sweep: Sweep) -> str:
    gains = sweep.speed_up[sweep.fits]
    if not gains.size:
        return f"{sweep.device}: the scores fit in memory at no length."
    return f"{sweep.device}: tiled {gains.min():.1f} to {gains.max():.1f} times faster."


def _rows(sweeps: Sequence[Sweep]) -> Iterator[Row]:
    """The drawn numbers: one row for each device and length, and for each measured run."""
    for sweep in sweeps:
        for i, length in enumerate(sweep.lengths):
            yield {
                "what": "predicted",
                "device": sweep.device,
                "seq": int(length),
                "standard_seconds": float(sweep.standard_seconds[i]),
                "tiled_seconds": float(sweep.tiled_seconds[i]),
                "standard_bytes": float(sweep.standard_bytes[i]),
                "tiled_bytes": float(sweep.tiled_bytes[i]),
                "capacity_bytes": sweep.capacity_bytes,
            }
        for schedule, name, lengths, times in sweep.measured:
            for length, time in zip(lengths, times, strict=True):
                yield {
                    "what": f"{name} measured",
                    "device": sweep.device,
                    "seq": int(length),
                    f"{schedule}_seconds": float(time),
                }
