"""What a fit leaves: constants with their intervals, ranges from its errors, and both as files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.timing import spread
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.constants import Constant
from perfmodel.validation.compare import LEFT_OUT

if TYPE_CHECKING:
    import pandas as pd

# Predicted times, in microseconds, at which the spread of errors changes character: launch floors,
# one wave, many waves, sustained clocks.
_EDGES_US = (10.0, 40.0, 200.0, 1000.0)
_FEWEST = 40


@dataclass(frozen=True)
class Fitted:
    """A constant with the interval the data leave it, and whether they identify it at all."""

    constant: Constant
    low: float
    high: float
    identified: bool


def spread_of(predicted: pd.DataFrame) -> dict[str, Any]:
    """10th and 90th percentiles of ln(measured / predicted) by family and predicted time.

    A bin with few rows borrows from the whole family. `predicted` comes from `predict_table`.
    """
    import pandas as pd

    kept = predicted[predicted["predicted_us"].notna() & ~predicted["flag"].isin(LEFT_OUT)]
    error = pd.Series(np.log(kept["measured_us"] / kept["predicted_us"]), index=kept.index)
    found: dict[str, Any] = {}
    for name, rows in error.groupby(families(kept)):
        time = kept.loc[rows.index, "predicted_us"].to_numpy(float)
        bins = np.searchsorted(_EDGES_US, time)
        low, high = [], []
        for i in range(len(_EDGES_US) + 1):
            here = rows.to_numpy()[bins == i]
            here = here if len(here) >= _FEWEST else rows.to_numpy()
            low.append(round(float(np.quantile(here, 0.1)), 4))
            high.append(round(float(np.quantile(here, 0.9)), 4))
        found[str(name)] = {
            "n": len(rows),
            "edges_us": list(_EDGES_US),
            "low": low,
            "high": high,
        }
    return found


def families(table: pd.DataFrame) -> np.ndarray:
    """The operator family of every row, as the ranges know it."""
    columns = (table[name] for name in ("op", "dtype", "direction", "phase"))
    return np.array([_family(*row) for row in zip(*columns, strict=True)], dtype=object)


def _family(op: str, dtype: str, direction: str, phase: str) -> str:
    if op == "attention":
        return f"attention-{phase if direction == 'fwd' else direction}"
    return spread.family_of_matmul(dtype) if op == "gemm" else op


def constants_text(fitted: Sequence[Fitted]) -> str:
    """The constants file: one line each, fitted values with their interval and its verdict."""
    import yaml

    lines = [
        "# Constants of the time model. None belongs to a device, a shape or a row. Fitted ones",
        "# come from measured runs within their physical bounds, with a 95 % interval; where the",
        "# data do not identify one, and for the others, the source decides.",
        "version: 1",
        "constants:",
    ]
    for item in fitted:
        constant = item.constant
        entry: dict[str, Any] = {
            "value": float(f"{constant.value:.5g}"),
            "unit": constant.unit,
            "low": constant.low,
            "high": constant.high,
            "fitted": constant.fitted,
        }
        if constant.fitted:
            entry["prior"] = constant.prior
        if item.low != item.high:
            interval = [float(f"{item.low:.3g}"), float(f"{item.high:.3g}")]
            entry |= {"interval": interval, "identified": item.identified}
        entry |= {"meaning": constant.meaning, "source": constant.source}
        flow = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=10**6).strip()
        lines.append(f"  {constant.name}: {flow}")
    return "\n".join(lines) + "\n"


def spread_text(predicted: pd.DataFrame, widenings: Mapping[str, float]) -> str:
    """The table of ranges: quantiles by family and time, the architectures seen, the widenings.

    `widenings` are factors of the 90th percentile of errors where something is not known: the
    architecture of the device, the implementation, the harness.
    """
    import yaml

    from perfmodel.hardware import load

    devices = sorted({str(name) for name in predicted["device"]})
    seen = {architecture_of(load(name)).name for name in devices}
    entry = {
        "version": 1,
        "fitted_architectures": sorted(seen - {"other"}),
        "widening": {name: round(max(by, 1.0), 3) for name, by in widenings.items()},
        "families": spread_of(predicted),
    }
    body = yaml.safe_dump(entry, sort_keys=False, default_flow_style=None, width=100)
    said = "# 80 % ranges: quantiles of ln(measured / predicted) by family and by predicted time.\n"
    return said + "# Written by the fit; perfmodel/timing/spread.py reads it.\n" + body
