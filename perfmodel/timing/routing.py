"""Which kernel of its library runs which problem: the routes of a kernel's facts (`Route`)."""

from __future__ import annotations

from typing import Any

import numpy as np

from perfmodel.algorithms.attention import Attention
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.libraries.route import Route
from perfmodel.timing.machine import Machine


def routes(problem: Attention, kernel: Any, machine: Machine) -> np.ndarray:
    """The place in `kernel.where` of the first route that holds for each problem; where none does,
    the number of routes. Shape (n,)."""
    conditions = [np.ravel(_holds(problem, route, machine)) for route in kernel.where]
    table = np.stack(np.broadcast_arrays(*conditions, True))
    return np.asarray(np.argmax(table, axis=0))


def routed(problem: Attention, kernel: Any, machine: Machine) -> Any:
    """The kernel that runs problems of one route; for problems of several the kernel itself."""
    if not kernel.where:
        return kernel
    indices = np.unique(routes(problem, kernel, machine))
    if indices.size > 1 or indices[0] == len(kernel.where):
        return kernel
    return kernel_facts(kernel.where[indices[0]].kernel)


def _holds(problem: Attention, route: Route, machine: Machine) -> np.ndarray:
    """For which problems a route is taken."""
    sizes = {axis: np.asarray(size, dtype=np.float64) for axis, size in problem.sizes().items()}
    group, dim = sizes["r"], np.asarray(problem.head_dim, dtype=np.float64)
    mask = (group >= route.group[0]) & (group <= route.group[1])
    mask = mask & (dim >= route.head_dim[0]) & (dim <= route.head_dim[1])
    if route.windowed:
        mask = mask & problem.windowed()
    if route.few_blocks:
        slices = np.maximum(np.floor((sizes["x"] - 1.0) / route.slice_keys), 1.0)
        mask = mask & (sizes["b"] * sizes["g"] * slices < route.few_blocks * machine.units)
    kv = problem.elements()["kv"].name
    serves = not route.instruction or machine.architecture.instruction in route.instruction
    serves = serves and (not route.cache or kv in route.cache)
    return np.asarray(mask & serves & (problem.padding_mask or not route.masked))
