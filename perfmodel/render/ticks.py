"""Labels of log axes as plain numbers: Matplotlib's own are TeX, which our text is not."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure


def plain_ticks(figure: Figure) -> None:
    """Replace every formatter of TeX on the figure's log axes.

    Between the powers a narrow axis has labels at 2 and 5, and a very narrow one at every digit,
    as its chart writes the powers.
    """
    from matplotlib.ticker import FuncFormatter, LogFormatter

    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() != "log":
                continue
            if isinstance(axis.get_major_formatter(), LogFormatter):
                axis.set_major_formatter(FuncFormatter(lambda value, _: _number(value)))
            if isinstance(axis.get_minor_formatter(), LogFormatter):
                axis.set_minor_formatter(
                    FuncFormatter(lambda value, place, axis=axis: _minor_label(axis, value, place))
                )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:g}"


def _minor_label(axis: Axis, value: float, place: int | None) -> str:
    """The label of a tick between two powers; empty where the axis has enough of others."""
    low, high = axis.get_view_interval()
    digit = round(value / 10 ** math.floor(math.log10(value) + 1e-9))
    digits = range(1, 10) if high < 4 * low else (2, 5) if high < 100 * low else ()
    return str(axis.get_major_formatter()(value, place)) if digit in digits else ""
