"""Consistency of a table: FLOP/s beside times show how operations were counted, and wrong units."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from perfmodel.table.measurements import positive_rates

if TYPE_CHECKING:
    from perfmodel.table.draft import Draft

_NEAR = 0.15  # in ln: a factor within this of a known one is taken as it
_READINGS = (
    (2.0, "counts twice the operations: a causal mask in full"),
    (0.5, "counts half the operations: multiply-adds, or a causal mask where there is none"),
)
_THOUSAND = 1000.0


def rate_beside_time(draft: Draft) -> list[str]:
    """Notes from (FLOP/s × time) over the rows' own operations, where both are in the table."""
    check, layout = draft.matched.check, draft.layout
    if check is None or check.measure.unit is None or layout.unit is None or draft.measured is None:
        return []
    work = layout.work(draft.frame, "flops", "causal")
    if work is None:
        return []
    rates = positive_rates(draft.frame[check.heading], draft.comma, check.measure.unit.factor)
    seconds = draft.frame[layout.measured].to_numpy(np.float64) * layout.unit.factor
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.log(rates * seconds / work)
    ratios = ratios[np.isfinite(ratios)]
    if not len(ratios):
        return []
    factor = float(np.exp(np.median(ratios)))
    for power in (2, 1, -1, -2):
        if _is_near(factor / _THOUSAND**power, (0.5, 1.0, 2.0)):
            return [_thousands(check.heading, draft.measured.heading, power)]
    return [f"{check.heading} {text}" for times, text in _READINGS if _is_near(factor, (times,))]


def _is_near(factor: float, values: tuple[float, ...]) -> bool:
    return any(abs(np.log(factor / value)) < _NEAR for value in values)


def _thousands(rate: str, time: str, power: int) -> str:
    way = "long" if power > 0 else "short"
    return (
        f"{time} is {_THOUSAND ** abs(power):,.0f} times too {way} for the table's own {rate}: "
        "one of their units is wrong; say --unit"
    )
