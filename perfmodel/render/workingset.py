"""Bandwidth and latency over the working set, with the sizes of the caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from perfmodel.errors import TableError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.page import Page

Points = Sequence[tuple[float, float]]
Levels = Sequence[tuple[str, float]]

CHARTS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "bandwidth": ("bytes_per_s", dict.fromkeys(("read", "copy", "triad"), "Bandwidth")),
    "latency": (
        "seconds", {"latency": "Time per dependent load", "gather": "Time per random load"}
    ),
}  # fmt: skip
"""Of each chart the measured quantity, and its name by curve; latency has one of its curves."""


def curve_chart(
    what: str,
    curves: Mapping[str, Points],
    levels: Levels,
    title: str,
    caption: str = "",
    page: Page | None = None,
) -> Chart:
    """One of `CHARTS` over the working set, log-log: of all cores, latency of one.

    `levels` are (name, bytes) of the caches. Raises `TableError` where no such curve was measured.
    """
    key, known = CHARTS[what]
    measured = [name for name in known if curves.get(name)]
    names = measured[:1] if what == "latency" else measured
    if not names:
        raise TableError(f"no {' or '.join(known)} was measured, so there is no {what} to draw")
    name = known[names[0]]
    rows = [{"curve": curve, "working_set_bytes": float(size), key: float(value)}
            for curve in names for size, value in curves[curve]]  # fmt: skip
    sizes = [float(size) for curve in names for size, _ in curves[curve]]
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
