"""Ranges: how far predictions of comparable cases have missed, and the floor none may pass."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.hardware import Device

# ln(measured / predicted) at the 10th and 90th percentile; replaced by the table of the fit.
_LOW, _HIGH = -0.3, 0.3


def interval(
    problem: Problem, device: Device, seconds: np.ndarray, terms: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """(low, high) of an 80 % range in seconds."""
    return seconds * np.exp(_LOW), seconds * np.exp(_HIGH)
