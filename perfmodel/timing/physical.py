"""The physical floor: the least time on a device, from its datasheet alone."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.arithmetic import Number
from perfmodel.count import compulsory_bytes
from perfmodel.hardware import Device
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.machine import machine


def floor_seconds(problem: Problem, device: Device, executed_flops: Number) -> np.ndarray:
    """The larger of least bytes over peak bandwidth and least operations over dense peak.

    Bytes: inputs and outputs once, less the capacity of the last cache, which may hold them from
    before. Operations: executed ones or those of the papers' convention, whichever are fewer.
    Operators without a matrix product have no compute floor.
    """
    caches = (device.memory.l2, device.memory.llc)
    cached = max((cache.capacity.si for cache in caches if cache), default=0.0)
    seconds = np.maximum(compulsory_bytes(problem) - cached, 0.0) / device.hbm_bytes_per_s
    least = np.maximum(seconds, seconds_of_operations(problem, device, executed_flops))
    return np.asarray(least, dtype=np.float64)


def seconds_of_operations(
    problem: Problem, device: Device, executed_flops: Number, *, widened: bool = False
) -> np.ndarray:
    """Least operations over the `dense_peak`; zero without a matrix product."""
    if not problem.multiplied():
        return np.zeros(())
    work = np.minimum(executed_flops, np.asarray(problem.flops(), dtype=np.float64))
    return np.asarray(work / dense_peak(problem, device, widened=widened), dtype=np.float64)


def dense_peak(problem: Problem, device: Device, *, widened: bool = False) -> float:
    """FLOP/s of the fastest unit that could multiply the types of `problem`.

    Types may be multiplied as they are or widened to fp32; where no unit takes either, the fastest
    of all units counts. 8-bit integers may also use the integer lanes, four products an
    instruction, on architectures with dot products. `widened`: of the type that the model
    multiplies 16-bit values in, where the device has no matrix rate of theirs.
    """
    kinds = set(problem.multiplied() or {problem.compute_type})
    if widened:
        kinds = {machine(device).multiplied_as(kind) for kind in kinds}
    rates = {str(name): rate.si for name, rate in device.compute.matrix.items()}
    vector = {str(name): rate.si for name, rate in device.compute.vector.items()}
    if "fp64" not in kinds:
        kinds |= {"fp32"}
    peaks = [table[kind] for kind in kinds for table in (rates, vector) if kind in table]
    architecture = architecture_of(device)
    if "int8" in kinds and architecture.dot_products and architecture.integer_lanes:
        lanes = device.units * architecture.integer_lanes
        peaks.append(8.0 * lanes * device.boost_hz)
    return device.beyond_boost * max(peaks or [*rates.values(), *vector.values()])
