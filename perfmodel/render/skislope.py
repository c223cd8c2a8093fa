"""The ski-slope chart: least traffic against on-chip capacity, log-log, one panel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.page import Page
from perfmodel.units import si

if TYPE_CHECKING:
    from perfmodel.napkin.skislope import Slopes


def figure(slopes: Slopes, *, title: str = "", page: Page | None = None) -> Chart:
    """The chart; `title` names the problem. Raises `ProblemError` without a point."""
    bound = f"lower bound ({_short(slopes.bound_name)})"
    curves = {**{curve.name: curve.moved_bytes for curve in slopes.curves},
              bound: slopes.bound_bytes}  # fmt: skip
    if not any(np.isfinite(curve.moved_bytes).any() for curve in slopes.curves):
        raise ProblemError(f"no schedule of {slopes.algorithm} fits in any capacity of this range")
    rows = [
        {"curve": name, "capacity_bytes": float(capacity), "moved_bytes": float(moved)}
        for name, values in curves.items()
        for capacity, moved in zip(slopes.capacity_bytes, values, strict=True)
        if np.isfinite(moved)
    ]
    low, high = slopes.capacity_bytes[[0, -1]]
    levels = [(name, value) for name, value in slopes.levels.items() if low <= value <= high]
    suffix = f", levels of {slopes.device}" if slopes.device else ""
    dots = Dots(
        f"{title or slopes.algorithm}: least traffic against on-chip capacity{suffix}",
        ["capacity_bytes"],
        ["moved_bytes"],
        by=["curve"],
        joined=["curve"],
        measured="measured",
        limits={"capacity_bytes": levels},
        headers={"capacity_bytes": "On-chip capacity", "moved_bytes": "Least bytes moved"},
    )
    return dots_chart(rows, dots, sentence=_sentence(slopes), page=page, drawstyle="steps-post")


def _sentence(slopes: Slopes) -> str:
    """How far each curve falls, in words."""
    parts = []
    for curve in slopes.curves:
        traffic = curve.moved_bytes[np.isfinite(curve.moved_bytes)]
        if len(traffic):
            parts.append(f"{curve.name}: {si(traffic[0], 'B')} falling to {si(traffic[-1], 'B')}")
    return f"Least bytes moved as capacity grows. {'; '.join(parts)}."


def _short(name: str) -> str:
    """The theorem's name without its formula; a bound by order of magnitude is marked as one."""
    head, _, rest = name.partition(":")
    return f"order, {head}" if "of order" in rest else head
