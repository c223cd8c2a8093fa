"""Bounds that hold for each prediction by itself, whatever the device and the constants."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem
from perfmodel.hardware import Device
from perfmodel.prediction import Predictions
from perfmodel.timing.machine import machine
from perfmodel.timing.physical import compulsory_bytes, dense_peak

ROUNDING = 1e-9
"""Sums of floating-point numbers in another order differ in their last digits."""


def bounds(found: Predictions) -> Iterator[tuple[str, np.ndarray]]:
    """Name and excess of each bound, shape (n,): at most 1 + `ROUNDING` where it holds."""
    seconds, least = found.seconds, seconds_of_bytes(found.problem, found.device)
    yield "finite and above zero", np.where(np.isfinite(seconds) & (seconds > 0), 1.0, np.inf)
    # What the harness adds is no part of the argument.
    on_device = seconds - found.terms["launch"]
    yield "time ≥ compulsory bytes / bandwidth", least / on_device
    yield "low end ≥ compulsory bytes / bandwidth", least / found.low_seconds
    if isinstance(found.problem, Attention | Matmul):
        work = np.minimum(found.flops["matrix"], found.useful_flops)
        least = work / dense_peak(found.problem, found.device)
        yield "time ≥ operations / peak", least / on_device
        yield "low end ≥ operations / peak", least / found.low_seconds
    yield "printed rate ≤ peak of its unit", printed_rate(found) / unit_peak(found)
    yield "time ≥ each of its terms", np.max(list(found.terms.values()), axis=0) / seconds
    negative = np.min([*found.terms.values(), *found.bytes.values()], axis=0) < 0
    yield "terms and bytes ≥ 0", np.where(negative, np.inf, 1.0)
    yield "low end ≤ time", found.low_seconds / seconds
    yield "time ≤ high end", seconds / found.high_seconds


def seconds_of_bytes(problem: Problem, device: Device) -> np.ndarray:
    """Seconds of what has to cross main memory, once, at the datasheet's bandwidth.

    Less what the last cache may hold from before.
    """
    caches = (device.memory.l2, device.memory.llc)
    cached = max((cache.capacity.si for cache in caches if cache), default=0.0)
    return np.maximum(compulsory_bytes(problem) - cached, 0.0) / device.hbm_bytes_per_s


def printed_rate(found: Predictions) -> np.ndarray:
    """FLOP/s as `predict` prints them: executed matrix operations, or vector ones without any."""
    vector = found.flops["vector"] + found.flops["special"]
    return np.where(found.flops["matrix"] > 0, found.flops["matrix"], vector) / found.seconds


def unit_peak(found: Predictions) -> float:
    """FLOP/s of the units that do the operations of `printed_rate`.

    By the datasheet; what it leaves open is what the model takes in its place.
    """
    if isinstance(found.problem, Attention | Matmul):
        return dense_peak(found.problem, found.device)
    here = machine(found.device)
    return here.units * (2.0 * here.vector_ops_per_unit + here.special_per_unit)
