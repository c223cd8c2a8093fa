"""Standard against tiled attention over sequence length: time, speed-up, memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.page import Page, Palette, styled
from perfmodel.render.report import Row
from perfmodel.units import binary, seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHED = (0, (4, 2))


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
        size = page.size(3.0 * columns, 5.6, columns=columns)
        figure = Figure(figsize=size, layout="constrained")
        grid = figure.add_gridspec(2, 2 * columns)
        times: list[Axes] = []
        across = 2 * columns // len(sweeps)  # a single one fills the row
        for i, sweep in enumerate(sweeps):
            axes = figure.add_subplot(
                grid[0, across * i : across * (i + 1)], sharey=times[0] if times else None
            )
            _times(axes, sweep, palette, first=not times)
            times.append(axes)
        _common_limits(times, sweeps)
        _speed_ups(figure.add_subplot(grid[1, :columns]), sweeps, palette)
        _memory(figure.add_subplot(grid[1, columns:]), sweeps, palette)
        caption = ["Lines: predicted; marks: measured.", *([note] if note else [])]
        dress(figure, page, palette, title, caption)
    return Chart(
        figure,
        title or "Standard against tiled attention over sequence length",
        " ".join([*map(_sentence, sweeps), *caption]),
        list(_rows(sweeps)),
        caption,
        page,
    )


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


def _lengths(axes: Axes, lengths: np.ndarray) -> None:
    """A log axis of sequence lengths with ticks at powers of two."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    axes.set_xscale("log", base=2)
    ticks = lengths if len(lengths) <= 5 else lengths[:: (len(lengths) + 4) // 5]
    axes.xaxis.set_major_locator(FixedLocator(ticks.tolist()))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _length(value)))
    axes.set_xlabel("Sequence length")


def _length(value: float) -> str:
    return f"{value / 1024:g}k" if value >= 1024 else f"{value:g}"


def _times(axes: Axes, sweep: Sweep, palette: Palette, *, first: bool) -> None:
    """Predicted lines of both schedules and the runs measured on the device."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    fits = sweep.fits
    axes.plot(
        sweep.lengths[fits],
        sweep.standard_seconds[fits],
        color=palette.vermilion,
        linestyle=_DASHED,
        label="standard",
        gid=f"standard-{sweep.device}",
    )
    axes.plot(
        sweep.lengths,
        sweep.tiled_seconds,
        color=palette.blue,
        label="tiled",
        gid=f"tiled-{sweep.device}",
    )
    if not fits.all() and fits.any():
        last = np.flatnonzero(fits)[-1]
        axes.annotate(
            "out of memory",
            (sweep.lengths[last], sweep.standard_seconds[last]),
            xytext=(0, 5),
            textcoords="offset points",
            ha="center",
            fontsize=palette.small,
            color=palette.vermilion,
        )
    for i, (schedule, name, lengths, times) in enumerate(sweep.measured):
        colour = palette.vermilion if schedule == "standard" else palette.blue
        dots: dict[str, Any] = {
            "linestyle": "none",
            "marker": palette.look(i)[1],
            "markersize": 4 * palette.scale,
        }
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
    """One range of times for all panels, with room for legends."""
    times = [line for s in sweeps for line in (s.standard_seconds[s.fits], s.tiled_seconds)]
    times += [seconds for sweep in sweeps for *_, seconds in sweep.measured]
    values = np.concatenate(times)
    low, high = values.min() / 1.5, values.max() * 1.5
    axes[0].set_ylim(low, high * (high / low) ** 0.15)


def _speed_ups(axes: Axes, sweeps: Sequence[Sweep], palette: Palette) -> None:
    for i, sweep in enumerate(sweeps):
        colour, marker = palette.look(i)
        fits = sweep.fits
        axes.plot(
            sweep.lengths[fits],
            sweep.speed_up[fits],
            color=colour,
            marker=marker,
            markersize=3 * palette.scale,
            label=sweep.device,
            gid=f"speedup-{sweep.device}",
        )
    axes.axhline(1, color=palette.grey, linewidth=0.6 * palette.line, zorder=0)
    rows = (len(sweeps) + 2) // 3
    axes.set_ylim(0, axes.get_ylim()[1] * (1 + 0.14 * rows))
    axes.set_ylabel("Speed-up, tiled over standard (×)")
    _lengths(axes, sweeps[0].lengths)
    axes.legend(loc="upper right", ncols=3, columnspacing=1.0, borderaxespad=0.2)


def _memory(axes: Axes, sweeps: Sequence[Sweep], palette: Palette) -> None:
    """Memory of both schedules, and the capacities of the devices."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

    sweep = sweeps[0]
    standard: dict[str, Any] = {
        "color": palette.vermilion,
        "linestyle": _DASHED,
        "gid": "memory-standard",
    }
    axes.plot(sweep.lengths, sweep.standard_bytes, label="standard, O(N²)", **standard)
    axes.plot(
        sweep.lengths,
        sweep.tiled_bytes,
        color=palette.blue,
        label="tiled, O(N)",
        gid="memory-tiled",
    )
    capacities: dict[float, list[str]] = {}
    for item in sweeps:
        capacities.setdefault(item.capacity_bytes, []).append(item.device)
    for capacity, names in capacities.items():
        axes.axhline(capacity, color=palette.grey, linewidth=0.6 * palette.line, linestyle=":")
        axes.annotate(
            f"memory of {', '.join(names)}: {binary(capacity)}",
            (sweep.lengths[0], capacity),
            xytext=(0, -2),
            textcoords="offset points",
            ha="left",
            va="top",
            fontsize=palette.small,
            color=palette.grey,
        )
    axes.set_yscale("log", base=2)
    largest = max(*capacities, sweep.standard_bytes.max())
    ends = np.log2(sweep.tiled_bytes.min()), np.log2(largest)
    ticks = 2.0 ** np.arange(int(ends[0]), ends[1] + 3, 3)
    axes.yaxis.set_major_locator(FixedLocator(ticks.tolist()))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: binary(value, 1)))
    axes.set_ylabel("Device memory per sequence")
    _lengths(axes, sweep.lengths)
    axes.legend(loc="lower right")
