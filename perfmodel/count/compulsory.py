"""Compulsory bytes: what every schedule of a problem moves, whatever its tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, attention
from perfmodel.algorithms.matmul import matmul
from perfmodel.count import rule


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
