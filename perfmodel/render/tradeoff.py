"""Plans by memory and speed: the trade-off of recomputation, shards and micro-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart, dress
from perfmodel.render.labels import name_points
from perfmodel.render.page import MARKERS, Page, Palette, styled
from perfmodel.training.result import Step

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GIB = 2**30


def tradeoff_chart(found: Sequence[Step], page: Page | None = None) -> Chart:
    """A point for each plan: memory of its fullest device against tokens/s a device.

    Colours show recomputation, shapes the kind and number of devices. The line joins plans that no
    other plan dominates. Raises `ProblemError` without a plan.
    """
    from matplotlib.figure import Figure

    if not found:
        raise ProblemError("no plan can be laid out, so there is nothing to draw")
    modes = list(dict.fromkeys(step.plan.recompute for step in found))
    devices = list(dict.fromkeys(step.device for step in found))
    groups = list(dict.fromkeys((step.device, step.plan.devices) for step in found))
    groups.sort(key=lambda group: (devices.index(group[0]), group[1]))
    page = page or Page()
    title = f"{found[0].network.name} on {', '.join(devices)}: memory and speed of plans"
    with styled(page) as palette:
        figure = Figure(figsize=page.size(6.0, 4.0), layout="constrained")
        axes = figure.add_subplot()
        for step in found:
            i = groups.index((step.device, step.plan.devices))
            axes.plot(
                step.memory.total_bytes / _GIB,
                step.tokens_per_second_per_device,
                MARKERS[i % len(MARKERS)],
                color=palette.cycle[modes.index(step.plan.recompute) % len(palette.cycle)],
                markersize=5 * palette.scale,
                markeredgewidth=0,
                alpha=1.0 if step.memory.fits else 0.35,
            )
        best = _front(axes, found, palette)
        _capacity(axes, found, palette)
        axes.set_xlabel("memory of the fullest device (GiB)")
        axes.set_ylabel("tokens/s a device")
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_formatter("{x:,.0f}")
        labels = [f"{count:,} devices" for _, count in groups]
        if len(devices) > 1:
            labels = [f"{count:,} x {device}" for device, count in groups]
        _legend(axes, modes, labels, palette)
        dress(figure, page, palette, title)
        name_points(axes, _points(best, found), palette.small, palette.ink)
    rows = [
        {
            "recompute": step.plan.recompute,
            "device": step.device,
            "devices": step.plan.devices,
            "memory_bytes": step.memory.total_bytes,
            "tokens_per_s_per_device": step.tokens_per_second_per_device,
            "fits": step.memory.fits,
        }
        for step in found
    ]
    sentence = f"{len(found)} plans; those that do not fit are pale."
    return Chart(figure, title, sentence, rows, page=page)


_AXES = {
    "tensor": "tp", "pipeline": "pp", "chunks": "chunks", "data": "dp", "context": "cp",
    "expert": "ep", "zero": "zero", "micro_batch": "micro-batch",
}  # fmt: skip


def _points(best: Sequence[Step], steps: Sequence[Step]) -> list[tuple[float, float, str]]:
    """The best plans with what sets them apart, besides what colour and shape show."""
    varying = [name for name in _AXES if len({getattr(step.plan, name) for step in steps}) > 1]
    return [
        (
            step.memory.total_bytes / _GIB,
            step.tokens_per_second_per_device,
            " ".join(f"{_AXES[name]} {getattr(step.plan, name)}" for name in varying)
            or f"recompute {step.plan.recompute}",
        )
        for step in best
    ]


def _front(axes: Axes, steps: Sequence[Step], palette: Palette) -> list[Step]:
    """Draw the line of plans that no other plan dominates in memory and speed, and return them."""
    ordered = sorted(steps, key=lambda step: (step.memory.total_bytes, -step.tokens_per_second))
    best: list[Step] = []
    for step in ordered:
        speed = best[-1].tokens_per_second_per_device if best else 0.0
        if step.tokens_per_second_per_device > speed:
            best.append(step)
    axes.plot(
        [step.memory.total_bytes / _GIB for step in best],
        [step.tokens_per_second_per_device for step in best],
        color=palette.grey,
        linewidth=0.65 * palette.line,
        zorder=0,
    )
    return best


def _capacity(axes: Axes, steps: Sequence[Step], palette: Palette) -> None:
    """The memory capacity of each device."""
    for room in sorted({step.memory.capacity_bytes or 0.0 for step in steps} - {0.0}):
        axes.axvline(
            room / _GIB, color=palette.ink, linewidth=0.65 * palette.line, linestyle="--", zorder=0
        )
        axes.annotate(
            f"capacity {room / _GIB:.0f} GiB",
            (room / _GIB, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(0, 3),
            textcoords="offset points",
            ha="center",
            va="bottom",
        )


def _legend(axes: Axes, modes: Sequence[str], groups: Sequence[str], palette: Palette) -> None:
    """The legend of colours and shapes, outside of the points."""
    from matplotlib.lines import Line2D

    def key(label: str, colour: str, shape: str) -> Line2D:
        return Line2D([], [], color=colour, marker=shape, linestyle="", label=label)

    cycle = palette.cycle
    keys = [key(f"recompute {m}", cycle[i % len(cycle)], "o") for i, m in enumerate(modes)]
    if len(groups) > 1:
        shapes = (MARKERS[i % len(MARKERS)] for i in range(len(groups)))
        keys += [key(name, palette.grey, s) for name, s in zip(groups, shapes, strict=True)]
    axes.legend(handles=keys, loc="center left", bbox_to_anchor=(1.0, 0.5))
