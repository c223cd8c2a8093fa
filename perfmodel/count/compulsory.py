"""Compulsory bytes: the traffic of every schedule of a problem, whatever its tiles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.arithmetic import Number
from perfmodel.count import rule


def compulsory_bytes(problem: Problem) -> np.ndarray:
    """Bytes of the inputs that the mask leaves visible and of the outputs, each once.

    In float64, which no size overflows.
    """
    algorithm, elements = problem.algorithm(), problem.elements()

    def total(names: Sequence[str], extents: Mapping[str, Number]) -> np.ndarray:
        sizes = {axis: np.asarray(size, np.float64) for axis, size in extents.items()}
        tensors = [algorithm.tensors[name] for name in names]
        parts = [rule.size(sizes, item) * elements[item.element].bytes for item in tensors]
        return np.asarray(sum(parts))

    inputs = [name for name in algorithm.inputs if name not in problem.aliased()]
    return np.asarray(total(inputs, problem.seen()) + total(algorithm.outputs, problem.sizes()))
