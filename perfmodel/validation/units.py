"""Measurements a thousand times off: a unit of time that is not the one that the table says."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.validation.judging import Fields, scored

if TYPE_CHECKING:
    import pandas as pd

_STEPS = ("s", "ms", "us", "ns")
_NAMES = {"s": "seconds", "ms": "milliseconds", "us": "microseconds", "ns": "nanoseconds"}
_STEP, _MARGIN = 1000.0, 4.0
"""Factor between units of time that stand side by side, and how far off it may be."""
_FEWEST = 8
"""Rows of a group that are enough where others of it are not off."""


@dataclass(frozen=True)
class WrongUnit:
    """Rows whose times look like another unit's."""

    text: str
    """What is to be said of them."""
    factor: float
    """The median of predicted over measured."""
    rows: tuple[int, ...]
    """Their places in the table."""


def wrong_units(predicted: pd.DataFrame, fields: Fields) -> list[WrongUnit]:
    """Runs of a source on a device that are a thousand or a million times off.

    All rows of the group are, or at least `_FEWEST` of them: one kernel may be a hundred times
    slower than it could be, a whole table is not.
    """
    unit = fields.measured.rpartition("_")[2]
    if unit not in _STEPS:
        return []
    rows = scored(predicted, fields=fields)
    error = np.log(rows[fields.predicted] / rows[fields.measured])
    steps = np.rint(error / np.log(_STEP))
    near = (error - steps * np.log(_STEP)).abs() < np.log(_MARGIN)
    found = []
    by = [name for name in ("source", "device") if name in rows.columns]
    for key, group in rows.groupby(by, sort=True) if by else [((), rows)]:
        for step in sorted(set(steps[group.index]) - {0.0}):
            far = group[near[group.index] & (steps[group.index] == step)]
            other = _other(unit, step)
            if other and len(far) >= min(_FEWEST, len(group)):
                factor = float(np.exp(error[far.index].median()))
                said = _said(
                    dict(zip(by, map(str, key), strict=True)), fields.measured, other, step
                )
                found.append(WrongUnit(said, factor, tuple(int(i) for i in far.index)))
    return found


def _other(unit: str, step: float) -> str:
    """The unit that times predicted 1000^step times as long are in: a larger one for a larger."""
    place = _STEPS.index(unit) - int(step)
    return _STEPS[place] if 0 <= place < len(_STEPS) else ""


def _said(group: dict[str, str], measured: str, other: str, step: float) -> str:
    source, device = group.get("source") or "no named source", group.get("device", "")
    where = f" on {device}" if device else ""
    unit = _NAMES[measured.rpartition("_")[2]]
    return (
        f"runs of {source}{where} are a factor {_STEP ** abs(step):,.0f} too "
        f"{'short' if step > 0 else 'long'}, as {_NAMES[other]} called {unit} are; say --unit"
    )
