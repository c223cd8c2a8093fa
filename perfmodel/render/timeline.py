"""A pipeline as a chart: one row for each stage, its passes in colours, bubbles in grey."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.labels import text_inches
from perfmodel.render.page import Page, Palette, styled
from perfmodel.units import seconds

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from perfmodel.training.pipeline import Event, Timeline

# For each pass, a light shade for the first chunk and a dark one for the last; bars in light shades
# have black numbers. Hues are those of the default style's palette.
_SHADES: dict[str, tuple[str, str]] = {
    "F": ("#BFDDF0", "#0072B2"),
    "B": ("#BFE6D9", "#00805B"),
    "BW": ("#BFE6D9", "#00805B"),
    "W": ("#FBE3B0", "#C47F00"),
}
_NAMES: dict[str, str] = {
    "F": "forward",
    "B": "backward: input",
    "W": "backward: weights",
    "BW": "backward",
}
_ROW = 0.8  # height of a bar, where a row is 1
_NUMBER = 0.75  # font size of a micro-batch's number over the style's font size


class _Bar(NamedTuple):
    """A task where it ran."""

    start: float
    length: float
    low: float
    """Its lower edge; a stage is 1 high."""
    height: float
    colour: str
    number: int
    """Its micro-batch."""


def timeline_chart(found: Timeline, page: Page | None = None) -> Chart:
    """The chart; 7.2 inches wide in the default style, as high as the stages need.

    Numbers are micro-batches, where they fit. Tasks that are joined share their bar, F above.
    Raises `ProblemError` for a pipeline in which nothing takes time.
    """
    from matplotlib.figure import Figure

    if not found.barrier_seconds > 0:
        raise ProblemError("nothing takes any time in this pipeline, so there is nothing to draw")
    plan = found.schedule
    page = page or Page()
    tall = 0.95 + min(0.26, 6.0 / plan.stages) * plan.stages
    with styled(page) as palette:
        figure = Figure(figsize=page.size(7.2, tall), layout="constrained")
        axes = figure.add_subplot()
        bars = [bar for event in found.events() for bar in _bars(event, plan.chunks)]
        _draw(axes, found, bars, palette)
        axes.set_title(page.titled(_title(found)), loc="left", pad=2 * palette.body)
        _key(axes, found, palette)
        figure.draw_without_rendering()
        _numbers(axes, bars, _NUMBER * palette.body)
    rows = [
        {
            "stage": event.stage,
            "start_seconds": event.start_seconds,
            "end_seconds": event.end_seconds,
            "tasks": " ".join(f"{task.name}{task.micro_batch}" for task in event.tasks),
        }
        for event in found.events()
    ]
    sentence = f"{_title(found)}. A row a stage; grey is bubble."
    return Chart(figure, _title(found), sentence, rows, page=page)


def _bars(event: Event, chunks: int) -> list[_Bar]:
    """A bar for each task; the bars of joined tasks are one above the other."""
    bars: list[_Bar] = []
    height = _ROW / len(event.tasks)
    for place, task in enumerate(event.tasks):
        low = event.stage - _ROW / 2 + place * height
        length = event.end_seconds - event.start_seconds
        colour = _shade(task.name, task.chunk, chunks)
        bars.append(_Bar(event.start_seconds, length, low, height, colour, task.micro_batch))
    return bars


def _shade(name: str, chunk: int, chunks: int) -> str:
    """From light for the first chunk to dark for the last."""
    from matplotlib.colors import to_hex, to_rgb

    light, dark = (np.array(to_rgb(colour)) for colour in _SHADES[name])
    share = chunk / (chunks - 1) if chunks > 1 else 0.0
    return to_hex(light + share * (dark - light))


def _draw(axes: Axes, timeline: Timeline, bars: Sequence[_Bar], palette: Palette) -> None:
    """The bars, one collection for each colour, height and row, before a grey strip for each stage,
    whose visible parts are bubbles."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    start, length = float(timeline.first_seconds.min()), timeline.barrier_seconds
    stages = timeline.schedule.stages
    for stage in range(stages):
        axes.broken_barh([(start, length)], (stage - _ROW / 2, _ROW), facecolors=palette.faint,
                         linewidth=0, gid=f"bubble-{stage}")  # fmt: skip
    groups: dict[tuple[float, float, str], list[tuple[float, float]]] = defaultdict(list)
    for bar in bars:
        groups[bar.low, bar.height, bar.colour].append((bar.start, bar.length))
    edge = 0.4 if len(bars) < 1500 else 0.0
    for (low, height, colour), spans in groups.items():
        axes.broken_barh(spans, (low, height), facecolors=colour, edgecolor="white",
                         linewidth=edge, zorder=2)  # fmt: skip
    axes.set(xlabel="Time", ylabel="Stage", xlim=(start, start + length), ylim=(stages - 0.5, -0.5))
    axes.yaxis.set_major_locator(MaxNLocator(min(stages, 16), integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: seconds(value) if value else "0"))
    axes.spines["left"].set_visible(False)
    axes.tick_params(axis="y", length=0)


def _title(timeline: Timeline) -> str:
    plan = timeline.schedule
    chunks = f" of {plan.chunks} chunks" if plan.chunks > 1 else ""
    return (
        f"{plan.kind}: {plan.stages} stages{chunks}, {plan.micro_batches} micro-batches, "
        f"{seconds(timeline.seconds)}, {timeline.bubble_share:.1%} bubble"
    )


def _key(axes: Axes, timeline: Timeline, palette: Palette) -> None:
    """The legend of colours, between title and rows."""
    from matplotlib.patches import Patch

    passes = {task.name for stage in timeline.schedule.tasks for task in stage}
    split = "B" in passes
    names = [name for name in _SHADES if name in passes and not (name == "BW" and split)]
    chunks = timeline.schedule.chunks
    patches = [Patch(facecolor=_shade(name, 0, chunks), label=_NAMES[name]) for name in names]
    patches.append(Patch(facecolor=palette.faint, label="bubble"))
    if chunks > 1:
        patches.append(
            Patch(facecolor=_shade("F", chunks - 1, chunks), label="darker: later chunk")
        )
    axes.legend(
        handles=patches, loc="lower left", bbox_to_anchor=(0, 1.0), ncols=len(patches),
        borderaxespad=0.1, handlelength=1.0, handleheight=0.8, columnspacing=1.2, borderpad=0.1,
    )  # fmt: skip


def _numbers(axes: Axes, bars: Sequence[_Bar], points: float) -> None:
    """Write micro-batch numbers on bars that are large enough."""
    box = axes.get_window_extent()
    dpi = axes.figure.dpi
    low, high = axes.get_xlim()
    x_scale = box.width / dpi / (high - low)
    y_scale = box.height / dpi / abs(np.subtract(*axes.get_ylim()))
    widths = {number: text_inches(str(number), points) for number in {bar.number for bar in bars}}
    for bar in bars:
        wide = bar.length * x_scale >= widths[bar.number] + 0.03
        if wide and bar.height * y_scale >= points / 72:
            axes.text(
                bar.start + bar.length / 2, bar.low + bar.height / 2, str(bar.number), ha="center",
                va="center_baseline", fontsize=points, zorder=3,
                color="black" if _is_light(bar.colour) else "white",
            )  # fmt: skip


def _is_light(colour: str) -> bool:
    """Whether black text is more readable on it than white (approximate relative luminance)."""
    from matplotlib.colors import to_rgb

    red, green, blue = to_rgb(colour)
    return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
