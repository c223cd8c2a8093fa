"""The range of a prediction: how far comparable predictions have missed, and the physical floor.

Split-conformal intervals (Vovk et al. 2005; Lei et al. 2018). For each family of operators, the
table has the 10th and 90th percentile of ln(measured / predicted) on runs that were not in the fit,
by predicted time. Each source, device and implementation has the same weight, however many runs it
has. That is the range where device, implementation and harness are all known.

Each axis that is not fully known (`perfmodel.timing.knowledge`) widens each side by a factor. The
factors come from errors of predictions made without that knowledge. The upper side grows more,
since unknown overheads only add time. All numbers are in `spread.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms.matmul import kernel_type
from perfmodel.timing.knowledge import Known, table

FIRST_GUESS = 0.7
"""Half-width in ln(time) of the range where nothing was measured."""


def family_of_matmul(dtype: str) -> str:
    """The matmul family of a type: how operands are stored and multiplied."""
    if dtype in ("fp32", "fp64", "tf32"):
        return "gemm-fp32"
    return "gemm-16" if dtype in ("fp16", "bf16") else f"gemm-{kernel_type(dtype)}"


def together(factors: Iterable[float]) -> float:
    """One factor for several independent ones. A factor f adds a spread of √(f² − 1) of the usual
    one, and spreads add in squares."""
    return math.sqrt(1.0 + sum(factor**2 - 1.0 for factor in factors))


def widening(known: Known) -> tuple[float, float]:
    """Factors on the lower and the upper side of a family's range for what is not known."""
    factors = table()["factors"]
    pairs = [factors[axis][level] for axis, level in known.as_dict().items()]
    low, high = (together(max(pair[side], 1.0) for pair in pairs) for side in (0, 1))
    return low, high


def interval(
    family: str, known: Known, seconds: np.ndarray, floor: np.ndarray, *, linked: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of the 80 % range in seconds; `low` is never below the physical floor.

    `family` is the row of the table (`Operator.family`). Where the implementation is assumed, the
    range covers the other kernels of the family: products of most libraries are alike, attention
    kernels are not. For devices other than GPUs, operands behind a link (`linked`) and families
    without a fit, the range is at least that of a first guess.
    """
    entry = table()["families"].get(family)
    low, high = _spread(entry, seconds)
    reach = (entry or {}).get("assumed") if known.implementation == "assumed" else None
    lower, upper = widening(known if reach is None else replace(known, implementation="fitted"))
    low, high = low * lower, high * upper
    if reach is not None:
        low, high = np.minimum(low, reach[0]), np.maximum(high, reach[1])
    if known.device == "none" or linked:
        low, high = np.minimum(low, -FIRST_GUESS), np.maximum(high, FIRST_GUESS)
    low_seconds = np.maximum(seconds * np.exp(low), np.minimum(floor, seconds))
    return low_seconds, seconds * np.exp(high)


def _spread(entry: Mapping[str, Any] | None, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln(low / seconds) and ln(high / seconds) where everything is known; zeros without an
    entry."""
    if entry is None:
        return np.zeros(seconds.shape), np.zeros(seconds.shape)
    bins = np.searchsorted(np.asarray(entry["edges_us"], dtype=float), seconds * 1e6)
    low, high = (np.take(np.asarray(entry[side], dtype=float), bins) for side in ("low", "high"))
    return np.minimum(low, 0.0), np.maximum(high, 0.0)
