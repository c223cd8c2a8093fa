"""The result of a fit: constants with their intervals, and the text of their file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.timing import spread
from perfmodel.timing.constants import Constant

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Fitted:
    """A constant after a fit."""

    constant: Constant
    """The constant with its new value."""
    low: float
    """Lower end of the 95 % interval."""
    high: float
    """Upper end of the 95 % interval."""
    identified: bool
    """Whether the data identify it (`estimation.intervals`)."""


def families(table: pd.DataFrame) -> np.ndarray:
    """The operator family of every row, as named in the ranges."""
    columns = (table[name] for name in ("op", "dtype", "direction", "phase"))
    return np.array([_family(*row) for row in zip(*columns, strict=True)], dtype=object)


def _family(op: str, dtype: str, direction: str, phase: str) -> str:
    if op == "attention":
        return f"attention-{phase if direction == 'fwd' else direction}"
    return spread.family_of_matmul(dtype) if op == "gemm" else op


HEAD = """\
# Constants of the time model. None belongs to a device, a shape or a row. Fitted ones
# come from measured runs within their physical bounds, with a 95 % interval; where the
# data do not identify one, and for the others, the source decides.
"""


def constants_text(fitted: Sequence[Fitted], head: str = HEAD) -> str:
    """The constants file, one line each; fitted values have their interval and whether
    identified."""
    import yaml

    lines = [head + "version: 1", "constants:"]
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
