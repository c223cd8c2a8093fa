"""Axes of numbers of a kind: linear or logarithmic, with plain ticks that carry their unit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.quantities import tick

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.ticker import Locator

_FEW = 300.0
"""A log axis whose ends are less far apart has ticks at 1, 2 and 5, else at powers of ten."""


def scaled(
    axis: Axis, values: Sequence[float], kind: str, *, log: bool, margin: float = 1.6
) -> None:
    """Fit an axis to `values`: a log one with a factor `margin` at both ends, a linear one from
    zero on, or from the first year."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullFormatter, NullLocator

    low, high = (min(values), max(values)) if values else (1.0, 10.0)
    axes = axis.axes
    across = axis is axes.xaxis
    set_limits = axes.set_xlim if across else axes.set_ylim
    if log:
        (axes.set_xscale if across else axes.set_yscale)("log")
        set_limits(low / margin, high * margin)
        axis.set_major_locator(locator(low / margin, high * margin, kind))
        axis.set_minor_locator(NullLocator())
        axis.set_minor_formatter(NullFormatter())
    elif kind == "year":
        set_limits(math.floor(low - 0.5), math.ceil(high))
        axis.set_major_locator(MaxNLocator(8, steps=[1, 2, 4, 5, 10], integer=True))
    else:
        set_limits(0, high * 1.08 or 1.0)
        if kind == "binary":
            axis.set_major_locator(locator(0.0, high * 1.08, kind))
        else:
            axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick(value, kind)))


def locator(low: float, high: float, kind: str) -> Locator:
    """Round numbers between the ends of a log axis, or of any axis of bytes of a capacity."""
    from matplotlib.ticker import FixedLocator, LogLocator

    if kind not in ("binary", "length"):
        return LogLocator(subs=(1.0, 2.0, 5.0) if high < _FEW * low else (1.0,))
    if low > 0:
        powers = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
        return FixedLocator([2.0**power for power in powers[:: 1 + len(powers) // 9]])
    unit = 1024.0 ** math.floor(math.log(max(high, 1.0), 1024))
    step = next(s for s in (0.1, 0.2, 0.5, *(m * 10**p for p in range(4) for m in (1, 2, 5)))
                if high / unit / s <= 8)  # fmt: skip
    return FixedLocator([unit * step * i for i in range(9)])
