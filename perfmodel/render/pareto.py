"""A Pareto front of two quantities: marks on a staircase, dominated rows pale behind them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.render.chart import Chart
from perfmodel.render.dots import Dots, dots_chart
from perfmodel.render.page import Page
from perfmodel.render.report import Row

_NAMED = 6  # limit on named marks; more would cover each other
_NAMES = {
    "time_us": "Time",
    "bytes_hbm": "Memory traffic",
    "bytes_l2": "L2 traffic",
    "footprint_bytes": "Memory footprint",
    "useful_flops": "Operations",
}
_WIDE = 8.0  # an axis whose ends are farther apart is logarithmic


def pareto_chart(
    operator: str,
    axes: tuple[str, str],
    front: Sequence[Row],
    others: Sequence[Row] = (),
    matched: int = 0,
    identity: Sequence[str] = ("device",),
    page: Page | None = None,
) -> Chart:
    """A front in two columns of a sweep, with a colour and shape for each device.

    `others` are all `matched` rows, or an even sample of them; `identity` are columns that name a
    row. Raises `ProblemError` without rows, or if a quantity is no column of the rows.
    """
    if not front:
        raise ProblemError("the front has no row, so there is nothing to draw")
    for name in axes:
        if name not in front[0]:
            raise ProblemError(f"{name!r} is not a column of the sweep, so it cannot be drawn")
    x, y = axes
    ordered = sorted(front, key=lambda row: (float(row[x]), -float(row[y])))
    names = [name for name in identity if name != "device"]
    named = {round(i) for i in np.linspace(0, len(ordered) - 1, min(_NAMED, len(ordered)))}
    rows = [
        {
            "what": "front", **row, "best": True,
            "label": " ".join(f"{name}={row[name]}" for name in names) if i in named else "",
        }
        for i, row in enumerate(ordered)
    ]  # fmt: skip
    rows += [{"what": "sampled", **row, "best": False} for row in others]
    values = {name: [float(row[name]) for row in rows if row[name] is not None] for name in axes}
    falls = np.all(np.diff([float(row[y]) for row in ordered]) < 0)
    dots = Dots(
        f"{operator}: {_NAMES.get(x, x)} against {_NAMES.get(y, y).lower()}, least of both",
        [x],
        [y],
        log="".join(axis for axis, each in zip("xy", values.values(), strict=True)
                    if min(each) > 0 and max(each) > _WIDE * min(each)),
        by=["device"],
        fits="best",
        labelled="label",
        headers=_NAMES,
    )  # fmt: skip
    sentence = _sentence(len(front), matched, len(others))
    return dots_chart(
        rows, dots, sentence=sentence, caption=[sentence], page=page, drawstyle="steps-post",
        front=range(len(ordered)) if falls else (),  # several fronts have no staircase
    )  # fmt: skip


def _sentence(count: int, matched: int, sampled: int) -> str:
    """Number of rows that the front dominates, in words."""
    rest = max(matched - count, 0)
    beats = f"{count:,} of {max(matched, count):,} cases are beaten by none in both"
    if not rest:
        return f"{beats}."
    sample = f", an even sample of {sampled:,}" if sampled < rest else ""
    return f"{beats}; the pale marks are the others{sample}."
