"""Bandwidth and latency over the working set, with the sizes of the caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.errors import TableError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.page import Page

Points = Sequence[tuple[float, float]]
Levels = Sequence[tuple[str, float]]


def bandwidth_chart(
    curves: Mapping[str, Points],
    levels: Levels,
    title: str,
    caption: str = "",
    page: Page | None = None,
) -> Chart:
    """Bytes per second of each stream over the working set of all cores, log-log.

    `levels` are (name, bytes) of the caches. Raises `TableError` without a measured stream.
    """
    names = [name for name in ("read", "copy", "triad") if curves.get(name)]
    if not names:
        raise TableError("no stream was measured, so there is no bandwidth to draw")
    selection = {name: curves[name] for name in names}
    return _chart(selection, levels, ("bytes_per_s", "Bandwidth"), title, caption, page)


def latency_chart(
    curves: Mapping[str, Points],
    levels: Levels,
    title: str,
    caption: str = "",
    page: Page | None = None,
) -> Chart:
    """Seconds per dependent load over the working set of one core, log-log.

    Raises `TableError` where neither latencies nor gathers were measured.
    """
    names = [name for name in ("latency", "gather") if curves.get(name)]
    if not names:
        raise TableError("no dependent loads were measured, so there is no latency to draw")
    name = "Time per dependent load" if "latency" in names else "Time per random load"
    return _chart({names[0]: curves[names[0]]}, levels, ("seconds", name), title, caption, page)


def _chart(
    curves: Mapping[str, Points],
    levels: Levels,
    quantity: tuple[str, str],
    title: str,
    caption: str,
    page: Page | None,
) -> Chart:
    """`quantity` is the key and the name of the measured quantity."""
    key, name = quantity
    rows = [
        {"curve": curve, "working_set_bytes": float(size), key: float(value)}
        for curve, points in curves.items()
        for size, value in points
    ]
    sizes = [float(size) for points in curves.values() for size, _ in points]
    within = [(level, size) for level, size in levels if min(sizes) < size < max(sizes)]
    dots = Dots(
        f"{title}: {name[0].lower()}{name[1:]}",
        ["working_set_bytes"],
        [key],
        by=["curve"],
        joined=["curve"],
        limits={"working_set_bytes": within},
        headers={"working_set_bytes": "Working set", key: name},
        kinds={"working_set_bytes": "binary"},
    )
    sentence = f"{name} over the working set."
    lines = [caption] if caption else []
    return dots_chart(rows, dots, sentence=sentence, caption=lines, page=page)
