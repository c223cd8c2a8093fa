"""Predictions with one thing masked as unknown: the library, the harness, or the device.

    masked(table, "implementation")     # predict_table's columns, under the model's assumption

Errors in sample underestimate those on a new library, harness or device; masked errors are closer.
A masked device has only its datasheet values, and constants are at their priors, which do not
depend on measurements.
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
"""Columns of names, each with an unknown name to put there."""
MASKS = (*NAMES, "device", "all three")
"""What can be masked."""


def masked(table: pd.DataFrame, mask: str) -> pd.DataFrame:
    """`predict_table` with one of `MASKS` masked."""
    blank = list(NAMES) if mask == MASKS[-1] else [mask]
    rows = unnamed(table, *(name for name in blank if name in NAMES))
    predicted = _datasheet_predictions(rows) if mask not in NAMES else predict_table(rows)
    return predicted.assign(**{name: table[name].to_numpy() for name in NAMES})


def unnamed(table: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """The table with unknown names in these columns."""
    return table.assign(**{column: NAMES[column] for column in columns})


def _datasheet_predictions(table: pd.DataFrame) -> pd.DataFrame:
    devices: dict[str, Device] = {}

    def sheet(name: str) -> Device:
        return devices.setdefault(name, datasheet(load(name)))

    return predict_table(table, constants=values_of(constants.shipped(), prior=True), device=sheet)


def datasheet(device: Device) -> Device:
    """The device without measured rates; unchanged if the spec would not be complete."""
    import yaml

    data = _drop_measured(yaml.safe_load(device.dump()))
    try:
        return loads(yaml.safe_dump(data, sort_keys=False), device.slug)
    except SpecError:  # a CPU's required rate may itself be a measured one
        return device


def _drop_measured(part: Any) -> Any:
    """A part of a spec without measured facts; None where it is one."""
    if not isinstance(part, dict):
        return part
    if part.get("status") == "measured":
        return None
    rest = {key: _drop_measured(item) for key, item in part.items() if key != "measured"}
    return {key: item for key, item in rest.items() if item is not None and item != {}}
