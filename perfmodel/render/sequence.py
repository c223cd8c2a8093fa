"""Standard against tiled attention over sequence length: time, speed-up, memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.figure import BLUE, CYCLE, GREY, STYLE, VERMILION
from perfmodel.units import binary, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Sweep:
    """Both schedules on one device, over sequence lengths, all numbers per sequence.

    `standard_bytes` and `tiled_bytes` are the memory that each needs, against `capacity_bytes`;
    `measured` are runs to set beside them: (schedule, kernel, lengths, seconds).
    """

    device: str
    lengths: np.ndarray
    standard_seconds: np.ndarray
    tiled_seconds: np.ndarray
    standard_bytes: np.ndarray
    tiled_bytes: np.ndarray
    capacity_bytes: float
    measured: tuple[tuple[str, str, np.ndarray, np.ndarray], ...] = ()

    @property
    def fits(self) -> np.ndarray:
        """Lengths at which the score matrix fits in the device's memory."""
        return np.asarray(self.standard_bytes <= self.capacity_bytes)

    @property
    def speed_up(self) -> np.ndarray:
        """How many times faster the tiled schedule is."""
        return np.asarray(self.standard_seconds / self.tiled_seconds)


def sequence_chart(
    sweeps: Sequence[Sweep], *, size: tuple[float, float] | None = None, note: str = ""
) -> Figure:
    """Time per device, then speed-up and memory of all; lines predicted, filled marks measured.

    `size` is in inches. Raises `ProblemError` without a sweep.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    if not sweeps:
        raise ProblemError("nothing to draw: no device was swept")
    columns = max(len(sweeps), 2)
    with rc_context(STYLE):
        figure = Figure(figsize=size or (3.0 * columns, 5.4), layout="constrained")
        grid = figure.add_gridspec(2, 2 * columns)
        times: list[Axes] = []
        for i, sweep in enumerate(sweeps):
            axes = figure.add_subplot(
                grid[0, 2 * i : 2 * i + 2], sharey=times[0] if times else None
            )
            _times(axes, sweep, first=not times)
            times.append(axes)
        _common_limits(times, sweeps)
        _speed_ups(figure.add_subplot(grid[1, :columns]), sweeps)
        _memory(figure.add_subplot(grid[1, columns:]), sweeps)
        if note:
            figure.supxlabel(note, fontsize=6.5, color="#444444", x=0.01, ha="left")
    return figure


def _lengths(axes: Axes, lengths: np.ndarray) -> None:
    """A log axis of sequence lengths with ticks at powers of two."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    shown = lengths if len(lengths) <= 5 else lengths[:: (len(lengths) + 4) // 5]
    axes.xaxis.set_major_locator(FixedLocator(shown.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _length(value)))
    axes.set_xlabel("Sequence length")


def _length(value: float) -> str:
    return f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"


def _times(axes: Axes, sweep: Sweep, *, first: bool) -> None:
    """Predicted lines of both schedules and the runs measured on the device."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    fits = sweep.fits
    axes.plot(
        sweep.lengths[fits],
        sweep.standard_seconds[fits],
        color=VERMILION,
        linestyle=(0, (4, 2)),
        label="standard",
        gid=f"standard-{sweep.device}",
    )
    axes.plot(
        sweep.lengths, sweep.tiled_seconds, color=BLUE, label="tiled", gid=f"tiled-{sweep.device}"
    )
    if not fits.all() and fits.any():
        last = np.flatnonzero(fits)[-1]
        axes.annotate(
            "out of memory",
            (sweep.lengths[last], sweep.standard_seconds[last]),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=6.5,
            color=VERMILION,
        )
    for (schedule, name, lengths, times), marker in zip(sweep.measured, "os^DvP", strict=False):
        colour = VERMILION if schedule == "standard" else BLUE
        dots: dict[str, Any] = {"linestyle": "none", "marker": marker, "markersize": 4}
        axes.plot(lengths, times, color=colour, label=f"{name}, measured", **dots)
    axes.set_yscale("log")
    _lengths(axes, sweep.lengths)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value, 1)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.set_title(sweep.device, loc="left")
    axes.set_ylabel("Time per sequence" if first else "")
    axes.tick_params(labelleft=first)
    axes.legend(loc="upper left", handlelength=1.8, borderaxespad=0.2)


def _common_limits(axes: Sequence[Axes], sweeps: Sequence[Sweep]) -> None:
    """One range of times for all panels, with room for their legends."""
    times = [line for s in sweeps for line in (s.standard_seconds[s.fits], s.tiled_seconds)]
    times += [seconds for sweep in sweeps for *_, seconds in sweep.measured]
    values = np.concatenate(times)
    low, high = values.min() / 1.5, values.max() * 1.5
    axes[0].set_ylim(low, high * (high / low) ** 0.15)


def _speed_ups(axes: Axes, sweeps: Sequence[Sweep]) -> None:
    for sweep, colour in zip(sweeps, CYCLE, strict=False):
        fits = sweep.fits
        axes.plot(
            sweep.lengths[fits],
            sweep.speed_up[fits],
            color=colour,
            marker="o",
            markersize=3,
            label=sweep.device,
            gid=f"speedup-{sweep.device}",
        )
    axes.axhline(1, color=GREY, linewidth=0.7, zorder=0)
    rows = (len(sweeps) + 2) // 3
    axes.set_ylim(0, axes.get_ylim()[1] * (1 + 0.14 * rows))
    axes.set_ylabel("Speed-up, tiled over standard (×)")
    _lengths(axes, sweeps[0].lengths)
    axes.legend(loc="upper right", ncols=3, columnspacing=1.0, borderaxespad=0.2)


def _memory(axes: Axes, sweeps: Sequence[Sweep]) -> None:
    """Quadratic against linear, with what the devices hold."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    sweep = sweeps[0]
    standard: dict[str, Any] = {
        "color": VERMILION,
        "linestyle": (0, (4, 2)),
        "gid": "memory-standard",
    }
    axes.plot(sweep.lengths, sweep.standard_bytes, label="standard, O(N²)", **standard)
    axes.plot(sweep.lengths, sweep.tiled_bytes, color=BLUE, label="tiled, O(N)", gid="memory-tiled")
    held: dict[float, list[str]] = {}
    for item in sweeps:
        held.setdefault(item.capacity_bytes, []).append(item.device)
    for capacity, names in held.items():
        axes.axhline(capacity, color=GREY, linewidth=0.7, linestyle=":")
        axes.annotate(
            f"holds: {', '.join(names)}",
            (sweep.lengths[0], capacity),
            xytext=(0, -2),
            textcoords="offset points",
            ha="left",
            va="top",
            fontsize=6.5,
            color="#555555",
        )
    axes.set_yscale("log", base=2)
    largest = max(*held, sweep.standard_bytes.max())
    ends = np.log2(sweep.tiled_bytes.min()), np.log2(largest)
    ticks = 2.0 ** np.arange(int(ends[0]), ends[1] + 3, 3)
    axes.yaxis.set_major_locator(FixedLocator(ticks.tolist()))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: binary(value, 1)))
    axes.set_ylabel("Device memory per sequence")
    _lengths(axes, sweep.lengths)
    axes.legend(loc="lower right")
