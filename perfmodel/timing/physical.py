"""The physical floor: seconds that no kernel on a device can beat, by its datasheet alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, attention
from perfmodel.algorithms.matmul import matmul, matmul_format
from perfmodel.arithmetic import Number
from perfmodel.count import rule
from perfmodel.hardware import Device


def floor_seconds(problem: Problem, device: Device, executed_flops: Number) -> np.ndarray:
    """Larger of least bytes over peak bandwidth and least operations over dense peak.

    Bytes: inputs and outputs once, less what the last cache may hold from before. Operations:
    executed or by the papers' convention, whichever is less. Operators without a matrix product
    have no compute floor.
    """
    caches = (device.memory.l2, device.memory.llc)
    cached = max((cache.capacity.si for cache in caches if cache), default=0.0)
    seconds = np.maximum(compulsory_bytes(problem) - cached, 0.0) / device.hbm_bytes_per_s
    if isinstance(problem, Attention | Matmul):
        work = np.minimum(executed_flops, np.asarray(problem.flops(), dtype=np.float64))
        seconds = np.maximum(seconds, work / dense_peak(problem, device))
    return np.asarray(seconds, dtype=np.float64)


def compulsory_bytes(problem: Problem) -> np.ndarray:
    """Inputs and outputs, each once; in float64, which no size overflows."""
    if isinstance(problem, Attention):
        forward = problem.direction == "fwd"
        algorithm = attention.forward(statistics=()) if forward else attention.backward()
    else:
        algorithm = matmul() if isinstance(problem, Matmul) else problem.algorithm()
    sizes = {axis: np.asarray(size, np.float64) for axis, size in problem.sizes().items()}
    seen = dict(sizes)
    if isinstance(problem, Attention):
        window = np.asarray(0 if problem.window is None else problem.window, np.float64)
        reach = np.where(window > 0, window, np.inf)
        # The last query stands at the last key: nothing is to be seen beyond.
        seen["x"] = np.minimum(sizes["x"], sizes["q"] + reach)
        # Aligned to the end, queries before the first key see none; their outputs are zeros.
        ahead = 0.0 if problem.causal else reach
        seen["q"] = np.minimum(sizes["q"], sizes["x"] + ahead)
    elements = problem.elements()
    inputs = algorithm.inputs
    if isinstance(problem, Attention) and problem.keys_only:
        inputs = tuple(name for name in inputs if name != "V")

    def moved(names: Sequence[str], extents: Mapping[str, np.ndarray]) -> np.ndarray:
        tensors = [algorithm.tensors[name] for name in names]
        each = [rule.size(extents, item) * elements[item.element].bytes for item in tensors]
        return np.asarray(sum(each))

    return np.asarray(moved(inputs, seen) + moved(algorithm.outputs, sizes))


def dense_peak(problem: Problem, device: Device) -> float:
    """FLOP/s of the fastest unit that could multiply the types of `problem`.

    As they are, or widened to fp32; of all units where none takes either.
    """
    if isinstance(problem, Matmul):
        kinds = {matmul_format(problem.dtype).compute}
    else:
        elements = problem.elements()
        kinds = {elements["data"].compute, elements.get("kv", elements["data"]).compute}
    rates = {str(name): rate.si for name, rate in device.compute.matrix.items()}
    vector = {str(name): rate.si for name, rate in device.compute.vector.items()}
    if "fp64" not in kinds:
        kinds |= {"fp32"}
    found = [table[kind] for kind in kinds for table in (rates, vector) if kind in table]
    return max(found or [*rates.values(), *vector.values()])
