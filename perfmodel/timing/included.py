"""What else a timed region holds: kernels that a framework runs around the operator."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.arithmetic import Number, product
from perfmodel.errors import ProblemError
from perfmodel.timing import rowwise
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.classes import KernelClass, kernel_class
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import hbm_rate
from perfmodel.timing.plan import estimate

INCLUDES = ("kv_write", "rope", "quantise_activations")


def included_seconds(
    machine: Machine,
    constants: Constants,
    problem: Problem,
    kernel: KernelClass,
    includes: Sequence[str],
) -> Number:
    """Device time of the other kernels inside the timed region, shaped as the problem's arrays.

    Raises `ProblemError` for a name that is not in `INCLUDES`; one that does not go with the
    problem costs nothing.
    """
    total: Number = 0.0
    for name in includes:
        if name not in INCLUDES:
            raise ProblemError(f"cannot include {name!r}; it is one of {', '.join(INCLUDES)}")
        if name == "kv_write" and isinstance(problem, Attention):
            total = total + _kv_write(machine, constants, problem, kernel)
        elif name == "rope" and isinstance(problem, Attention):
            total = total + _rope(machine, constants, problem)
        elif name == "quantise_activations" and isinstance(problem, Matmul):
            total = total + _quantise(machine, constants, problem)
    return total


def _kv_write(
    machine: Machine, constants: Constants, problem: Attention, kernel: KernelClass
) -> Number:
    """New keys and values stream into scattered pages of the cache.

    Where the cache is narrower than the queries and the kernel multiplies it as it is, one more
    kernel narrows the queries.
    """
    sizes, elements = problem.sizes(), problem.elements()
    rate = hbm_rate(machine, constants)
    width = elements["data"].bytes + elements["kv"].bytes
    fresh = product([sizes["b"], sizes["g"], sizes["q"], sizes["d"] + sizes["e"]])
    moved = fresh * width * constants["kv_write_passes"] / 2
    seconds = constants["kv_write_price"] + moved / rate
    if kernel.instruction == "native" and elements["kv"].bits < elements["data"].bits:
        queries = product([sizes["b"], sizes["g"], sizes["r"], sizes["q"], sizes["d"]])
        seconds = seconds + constants["kernel_gap"] + queries * width / rate
    return seconds


def _rope(machine: Machine, constants: Constants, problem: Attention) -> Number:
    """Queries and keys are read and written once more, rotated."""
    sizes = problem.sizes()
    heads = sizes["g"] * (1 + sizes["r"])
    moved = product([sizes["b"], heads, sizes["q"], sizes["d"]]) * 2
    return moved * problem.elements()["data"].bytes / hbm_rate(machine, constants)


def _quantise(machine: Machine, constants: Constants, problem: Matmul) -> Number:
    """A row-wise kernel of its own narrows 16-bit activations to 8 bits by the maximum of a row."""
    count = np.asarray(product([problem.batch, problem.m]), dtype=np.int64)
    rows = Rowwise("quantise", count, problem.k)
    kernel = kernel_class("vllm-quantise")
    plan = rowwise.plan(rows, kernel, machine, constants, Circumstances())
    shape = np.broadcast_shapes((1, 1), count.shape, np.shape(problem.k))
    return constants["quantise_price"] + estimate(machine, constants, plan, shape).seconds
