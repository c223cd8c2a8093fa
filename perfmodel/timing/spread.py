"""Ranges: how far predictions of comparable cases have missed, and the floor none may pass.

Split-conformal intervals (Vovk et al. 2005; Lei et al. 2018). Each family of operators has the 10th
and 90th percentile of ln(measured / predicted) of runs that the constants had not seen, by
predicted time. Sources, devices and implementations count alike, however many runs they have. That
is the width where everything is known.

What is not known (`perfmodel.timing.knowledge`) widens each side by a factor of its own, found in
the same way from errors with that knowledge taken away. The upper side grows more, for unknown
overheads only add time. All of it is read from `spread.yaml`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms.matmul import kernel_type
from perfmodel.timing.knowledge import Known, table

# Families without measurements of their own: the range of an honest first guess.
_UNKNOWN = 0.7


def family_of_matmul(dtype: str) -> str:
    """Matmul families by how the operands are stored and multiplied."""
    if dtype in ("fp32", "fp64", "tf32"):
        return "gemm-fp32"
    return "gemm-16" if dtype in ("fp16", "bf16") else f"gemm-{kernel_type(dtype)}"


def together(factors: Iterable[float]) -> float:
    """One factor for several: each adds a spread of its own, √(f² − 1) of the usual one."""
    return math.sqrt(1.0 + sum(factor**2 - 1.0 for factor in factors))


def widening(known: Known) -> tuple[float, float]:
    """Factors of the lower and the upper side of a family's range for what is not known."""
    factors = table()["factors"]
    each = [factors[axis][level] for axis, level in known.as_dict().items()]
    low, high = (together(max(pair[side], 1.0) for pair in each) for side in (0, 1))
    return low, high


def interval(
    family: str, known: Known, seconds: np.ndarray, floor: np.ndarray, *, linked: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of the 80 % range in seconds; `low` never below the physical floor.

    `family` is the row of the table (`Operator.family`). Where an implementation is assumed, the
    range reaches as far as the family's other kernels did: products of most libraries are alike,
    attention is not. Of devices that are no GPU none was fitted, nor of operands behind a link
    (`linked`), nor some families at all: their range is that of an honest first guess at least.
    """
    entry = table()["families"].get(family)
    low, high = _usual(entry, seconds)
    reach = (entry or {}).get("assumed") if known.implementation == "assumed" else None
    down, up = widening(known if reach is None else replace(known, implementation="fitted"))
    low, high = low * down, high * up
    if reach is not None:
        low, high = np.minimum(low, reach[0]), np.maximum(high, reach[1])
    if known.device == "none" or linked:
        low, high = np.minimum(low, -_UNKNOWN), np.maximum(high, _UNKNOWN)
    below = np.maximum(seconds * np.exp(low), np.minimum(floor, seconds))
    return below, seconds * np.exp(high)


def _usual(entry: Mapping[str, Any] | None, seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """ln(low / seconds) and ln(high / seconds) where everything is known."""
    if entry is None:
        return np.zeros(seconds.shape), np.zeros(seconds.shape)
    bins = np.searchsorted(np.asarray(entry["edges_us"], dtype=float), seconds * 1e6)
    low, high = (np.asarray(entry[side], dtype=float)[bins] for side in ("low", "high"))
    return np.minimum(low, 0.0), np.maximum(high, 0.0)
