"""Ranges: how far predictions of comparable cases have missed, and the floor none may pass.

Split-conformal intervals (Vovk et al. 2005; Lei et al. 2018): the 10th and 90th percentile of
ln(measured / predicted) over the fitting data, per family of operators and by predicted time, read
from `spread.yaml` beside this file. What is not known of a run widens its range by the factor by
which errors grew when it was taken away: devices left out, names of implementations blanked.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import yamltable
from perfmodel.hardware import Device
from perfmodel.timing.architectures import architecture_of

# Families without measurements of their own: the range of an honest first guess.
_UNKNOWN = 0.7


def family_of_matmul(dtype: str) -> str:
    """Matmul families by how the operands are stored and multiplied."""
    if dtype in ("fp32", "fp64", "tf32"):
        return "gemm-fp32"
    return "gemm-16" if dtype in ("fp16", "bf16") else f"gemm-{dtype}"


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table: edges in microseconds, quantiles of ln(measured / predicted) a bin."""
    loaded: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("spread.yaml"))
    return loaded


def _together(widenings: Iterable[float]) -> float:
    """One factor for several: each adds a spread of its own, √(w² − 1) of the usual one."""
    return math.sqrt(1.0 + sum(factor**2 - 1.0 for factor in widenings))


def interval(
    family: str,
    device: Device,
    seconds: np.ndarray,
    floor: np.ndarray,
    unknowns: Collection[str] = (),
) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of the 80 % range in seconds; `low` never below the physical floor.

    `family` is the row of the table (`Operator.family`).

    The range is wider by what errors are larger where a thing is not known: the architecture of the
    device, or what `unknowns` names ("implementation", "harness"). Of devices that are no GPU none
    was fitted, nor of operands behind a "link": their range is that of an honest first guess at
    least.
    """
    known = table()
    entry = known["families"].get(family)
    if entry is None:
        low, high = np.full(seconds.shape, -_UNKNOWN), np.full(seconds.shape, _UNKNOWN)
    else:
        bins = np.searchsorted(np.asarray(entry["edges_us"], dtype=float), seconds * 1e6)
        low = np.asarray(entry["low"], dtype=float)[bins]
        high = np.asarray(entry["high"], dtype=float)[bins]
    doubts = set(unknowns)
    if architecture_of(device).name not in known["fitted_architectures"]:
        doubts.add("device")
    widening = _together(known["widening"][name] for name in doubts & known["widening"].keys())
    low, high = low * widening, high * widening
    if device.kind != "gpu" or "link" in doubts:
        low, high = np.minimum(low, -_UNKNOWN), np.maximum(high, _UNKNOWN)
    below = np.maximum(seconds * np.exp(np.minimum(low, 0.0)), np.minimum(floor, seconds))
    return below, seconds * np.exp(np.maximum(high, 0.0))
