"""Ranges: how far predictions of comparable cases have missed, and the floor none may pass.

Split-conformal intervals (Vovk et al. 2005; Lei et al. 2018): the 10th and 90th percentile of
ln(measured / predicted) over the fitting data, per family of operators and by predicted time, read
from `spread.yaml` beside this file. A device of a generation that was never fitted gets a range
wider by the factor by which leaving devices out widened the errors.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np
import yaml

from perfmodel.algorithms import Attention, Matmul, Problem
from perfmodel.hardware import Device

# Families without measurements of their own: the range of an honest first guess.
_UNKNOWN = 0.7


def family(problem: Problem) -> str:
    """Which row of the table a problem belongs to."""
    if isinstance(problem, Attention):
        phase = problem.phase if problem.direction == "fwd" else problem.direction
        return f"attention-{phase}"
    if isinstance(problem, Matmul):
        return family_of_matmul(problem.dtype)
    return problem.op


def family_of_matmul(dtype: str) -> str:
    """Matmul families by how the operands are stored and multiplied."""
    if dtype in ("fp32", "fp64", "tf32"):
        return "gemm-fp32"
    return "gemm-16" if dtype in ("fp16", "bf16") else f"gemm-{dtype}"


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table: edges in microseconds, quantiles of ln(measured / predicted) a bin."""
    text = files("perfmodel.timing").joinpath("spread.yaml").read_text(encoding="utf-8")
    loaded: Mapping[str, Any] = yaml.load(
        text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    )
    return loaded


def interval(
    problem: Problem, device: Device, seconds: np.ndarray, floor: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of the 80 % range in seconds; `low` never below the physical floor."""
    known = table()
    entry = known["families"].get(family(problem))
    if entry is None:
        low, high = np.full(seconds.shape, -_UNKNOWN), np.full(seconds.shape, _UNKNOWN)
    else:
        bins = np.searchsorted(np.asarray(entry["edges_us"], dtype=float), seconds * 1e6)
        low = np.asarray(entry["low"], dtype=float)[bins]
        high = np.asarray(entry["high"], dtype=float)[bins]
    if device.compute_capability not in known["fitted_generations"]:
        low, high = low * known["unseen_widening"], high * known["unseen_widening"]
    below = np.maximum(seconds * np.exp(np.minimum(low, 0.0)), np.minimum(floor, seconds))
    return below, seconds * np.exp(np.maximum(high, 0.0))
