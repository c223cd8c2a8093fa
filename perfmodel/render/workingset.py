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
    return _chart(curves, names, levels, ("bytes_per_s", "Bandwidth"), title, caption, page)


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
    loads = {"latency": "Time per dependent load", "gather": "Time per random load"}
    names = [name for name in loads if curves.get(name)][:1]
    if not names:
        raise TableError("no dependent loads were measured, so there is no latency to draw")
    return _chart(curves, names, levels, ("seconds", loads[names[0]]), title, caption, page)


def _chart(
    curves: Mapping[str, Points],
    names: Sequence[str],
    levels: Levels,
    quantity: tuple[str, str],
    title: str,
    caption: str,
    page: Page | None,
) -> Chart:
    """`quantity` is the key and the name of the measured quantity."""
    key, name = quantity
    rows = [{"curve": curve, "working_set_bytes": float(size), key: float(value)}
            for curve in names for size, value in curves[curve]]  # fmt: skip
    sizes = [size for curve in names for size, _ in curves[curve]]
    within = [(level, size) for level, size in levels if min(sizes) < size < max(sizes)]
    dots = Dots(
        f"{title}: {name[0].lower()}{name[1:]}", ["working_set_bytes"], [key], by=["curve"],
        joined=["curve"], limits={"working_set_bytes": within},
        headers={"working_set_bytes": "Working set", key: name},
        kinds={"working_set_bytes": "binary"},
    )  # fmt: skip
    lines = [caption] if caption else []
    return dots_chart(
        rows, dots, sentence=f"{name} over the working set.", caption=lines, page=page
    )
