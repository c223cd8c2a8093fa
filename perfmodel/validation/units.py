"""Detects measurements in a wrong unit of time: errors of a factor of a thousand."""

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
"""Factor between neighbouring units of time, and the tolerance on it."""
_FEWEST = 8
"""Fewest wrong rows of a group in which other rows are right."""


@dataclass(frozen=True)
class WrongUnit:
    """Rows whose times seem to be in another unit."""

    text: str
    """The message about them."""
    factor: float
    """The median of predicted over measured."""
    rows: tuple[int, ...]
    """Their indices in the table."""


def wrong_units(predicted: pd.DataFrame, fields: Fields) -> list[WrongUnit]:
    """Runs of a source on a device that are wrong by a factor of a thousand or a million.

    A group is reported if all its rows are wrong, or at least `_FEWEST`: one kernel may be a
    hundred times slower than possible, but not a whole table.
    """
    unit = fields.measured.rpartition("_")[2]
    if unit not in _STEPS:
        return []
    rows = scored(predicted, fields=fields, columns=("source", "device"))
    error = np.log(rows[fields.predicted] / rows[fields.measured])
    steps = np.rint(error / np.log(_STEP))
    mask = (error - steps * np.log(_STEP)).abs() < np.log(_MARGIN)
    faults = []
    keys = [name for name in ("source", "device") if name in rows.columns]
    for key, group in rows.groupby(keys, sort=True, observed=True) if keys else [((), rows)]:
        for step in sorted(set(steps[group.index]) - {0.0}):
            part = group[mask[group.index] & (steps[group.index] == step)]
            suspect = _unit_at(unit, step)
            if suspect and len(part) >= min(_FEWEST, len(group)):
                factor = float(np.exp(error[part.index].median()))
                text = _sentence(
                    dict(zip(keys, map(str, key), strict=True)), fields.measured, suspect, step
                )
                faults.append(WrongUnit(text, factor, tuple(int(i) for i in part.index)))
    return faults


def _unit_at(unit: str, step: float) -> str:
    """The unit that is 1000^step times `unit`."""
    place = _STEPS.index(unit) - int(step)
    return _STEPS[place] if 0 <= place < len(_STEPS) else ""


def _sentence(group: dict[str, str], measured: str, suspect: str, step: float) -> str:
    source, device = group.get("source") or "no named source", group.get("device", "")
    place = f" on {device}" if device else ""
    unit = _NAMES[measured.rpartition("_")[2]]
    return (
        f"runs of {source}{place} are a factor {_STEP ** abs(step):,.0f} too "
        f"{'short' if step > 0 else 'long'}, as {_NAMES[suspect]} called {unit} are; say --unit"
    )
