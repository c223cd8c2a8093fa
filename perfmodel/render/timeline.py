"""A pipeline as a chart: one row for each stage, its passes in colours, bubbles in grey."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.page import Page
from perfmodel.render.spans import Lane, Span, Spans, spans_chart
from perfmodel.units import seconds

if TYPE_CHECKING:
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
_LABELLED = 16  # limit on stages with a number


def timeline_chart(timeline: Timeline, page: Page | None = None) -> Chart:
    """The chart, as high as the stages need.

    Numbers are micro-batches, where they fit. Tasks that are joined share their bar, F above.
    Raises `ProblemError` for a pipeline in which nothing takes time.
    """
    if not timeline.barrier_seconds > 0:
        raise ProblemError("nothing takes any time in this pipeline, so there is nothing to draw")
    plan, start = timeline.schedule, float(timeline.first_seconds.min())
    step = -(-plan.stages // _LABELLED)
    bubble = Span(0.0, timeline.barrier_seconds, "bubble")
    lanes = [[bubble] for _ in range(plan.stages)]
    for event in timeline.events():
        lanes[event.stage] += _spans(event, start)
    names = sorted({task.name for stage in plan.tasks for task in stage}, key=list(_SHADES).index)
    colours = {f"{name} {chunk}": _shade(name, chunk, plan.chunks)
               for name in names for chunk in range(plan.chunks)}  # fmt: skip
    keys = {f"{name} 0": _NAMES[name] for name in names if not (name == "BW" and "B" in names)}
    keys["bubble"] = "bubble"
    if plan.chunks > 1:
        keys[f"F {plan.chunks - 1}"] = "darker: later chunk"
    spans = Spans(
        _title(timeline), "seconds",
        [Lane("" if stage % step else str(stage), each) for stage, each in enumerate(lanes)],
        {**colours, "bubble": "faint"}, keys, axis="Time", lanes_are="Stage",
    )  # fmt: skip
    sentence = f"{_title(timeline)}. A row a stage; grey is bubble."
    return spans_chart(spans, sentence=sentence, page=page)


def _spans(event: Event, start: float) -> Iterator[Span]:
    """A bar for each task; the bars of joined tasks are one above the other."""
    count = len(event.tasks)
    for place, task in enumerate(event.tasks):
        row = {
            "stage": event.stage,
            "start_seconds": event.start_seconds,
            "end_seconds": event.end_seconds,
            "task": f"{task.name}{task.micro_batch}",
        }
        yield Span(
            event.start_seconds - start, event.end_seconds - start, f"{task.name} {task.chunk}",
            row, str(task.micro_batch), (place / count, (place + 1) / count),
        )  # fmt: skip


def _shade(name: str, chunk: int, chunks: int) -> str:
    """From light for the first chunk to dark for the last."""
    from matplotlib.colors import to_hex, to_rgb

    light, dark = (np.array(to_rgb(colour)) for colour in _SHADES[name])
    share = chunk / (chunks - 1) if chunks > 1 else 0.0
    return to_hex(light + share * (dark - light))


def _title(timeline: Timeline) -> str:
    plan = timeline.schedule
    chunks = f" of {plan.chunks} chunks" if plan.chunks > 1 else ""
    return (
        f"{plan.kind}: {plan.stages} stages{chunks}, {plan.micro_batches} micro-batches, "
        f"{seconds(timeline.seconds)}, {timeline.bubble_share:.1%} bubble"
    )
