"""Predictions as if something were not known: the library, how it was timed, or the device.

    masked(table, "implementation")     # predict_table's columns, of what is assumed instead

Errors in sample say little about runs of a library, a harness or a device that nobody has seen;
these say more. A masked device is its data sheet, and constants are at their priors, which no
device has been measured for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfmodel.errors import SpecError
from perfmodel.fitting.estimation import values_of
from perfmodel.hardware import Device, load, loads
from perfmodel.timing import constants
from perfmodel.validation.compare import predict_table

if TYPE_CHECKING:
    import pandas as pd

NAMES = {"implementation": "?", "harness": "?"}
"""Columns of names, each with a name that means nothing."""
MASKS = (*NAMES, "device", "all three")
"""What may be unknown."""


def masked(table: pd.DataFrame, mask: str) -> pd.DataFrame:
    """`predict_table` of a table of which one of `MASKS` is not known."""
    blank = list(NAMES) if mask == MASKS[-1] else [mask]
    rows = unnamed(table, *(name for name in blank if name in NAMES))
    predicted = _of_datasheets(rows) if mask not in NAMES else predict_table(rows)
    return predicted.assign(**{name: table[name].to_numpy() for name in NAMES})


def unnamed(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table as if names of these columns meant nothing."""
    return table.assign(**{column: NAMES[column] for column in columns})


def _of_datasheets(table: pd.DataFrame) -> pd.DataFrame:
    known: dict[str, Device] = {}

    def sheet(name: str) -> Device:
        return known.setdefault(name, datasheet(load(name)))

    return predict_table(table, constants=values_of(constants.shipped(), prior=True), device=sheet)


def datasheet(device: Device) -> Device:
    """The device without what was measured on it; as it is where no spec would be left."""
    import yaml

    data = _without_measured(yaml.safe_load(device.dump()))
    try:
        return loads(yaml.safe_dump(data, sort_keys=False), device.slug)
    except SpecError:  # of a CPU the very rate may be measured
        return device


def _without_measured(part: Any) -> Any:
    """A part of a spec without measured facts; None where it is one."""
    if not isinstance(part, dict):
        return part
    if part.get("status") == "measured":
        return None
    kept = {key: _without_measured(item) for key, item in part.items() if key != "measured"}
    return {key: item for key, item in kept.items() if item is not None and item != {}}
