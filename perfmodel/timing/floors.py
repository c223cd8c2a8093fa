"""Launch floors, and what else a timed region holds. They belong to how a run was timed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem
from perfmodel.arithmetic import Number, product
from perfmodel.errors import ProblemError
from perfmodel.timing.classes import KernelClass
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.memory import hbm_rate

INCLUDES = ("kv_write", "rope", "quantise_activations")
HARNESSES = (
    "kernel", "cuda_graph", "cuda_events_eager", "wall_clock", "profiler", "paper", "do_bench",
)  # fmt: skip


def operator_name(problem: Problem) -> str:
    """What a problem computes: attention, gemm, or the row-wise operator's own name."""
    if isinstance(problem, Attention):
        return "attention"
    return "gemm" if isinstance(problem, Matmul) else problem.op


def floor_seconds(constants: Constants, harness: str, operator: str) -> float:
    """Floor of harness × operator; the nearest entry where the pair is not in the table.

    Raises `ProblemError` naming the harnesses there are.
    """
    if harness not in HARNESSES:
        raise ProblemError(f"harness {harness!r} is not known; it is one of {', '.join(HARNESSES)}")
    for name in (operator, "rowwise", "gemm", "attention", "any"):
        key = f"floor_{harness}_{name}"
        if key in constants:
            return constants[key]
    return constants["floor_kernel_any"]


def with_floor(
    constants: Constants,
    harness: str,
    operator: str,
    seconds: np.ndarray,
    kernel: KernelClass,
) -> np.ndarray:
    """What the harness reports for device time `seconds`.

    Eager event timing overlaps the host's work with the device's, so it shows the larger of the
    two; in a graph, and in wall-clock time, launching comes before. A class may add its library's
    own start, and may have host work that nothing of it beats, whatever the harness.
    """
    if "floor" in constants.off:
        return seconds
    floor = floor_seconds(constants, harness, operator)
    if harness != "kernel" and kernel.start is not None:
        seconds = seconds + constants[kernel.start]
    if harness != "kernel" and kernel.host_floor is not None:
        return np.maximum(constants[kernel.host_floor], floor + seconds)
    if harness == "cuda_events_eager":
        return np.maximum(floor, seconds + constants["eager_fixed"])
    return floor + seconds


def included_seconds(
    machine: Machine,
    constants: Constants,
    problem: Problem,
    kernel: KernelClass,
    includes: Sequence[str],
) -> Number:
    """Device time of the other kernels inside the timed region.

    A cache write streams the new keys and values (and rotates them, with rope) in scattered pages;
    where the cache is narrower than the queries and the kernel multiplies it as it is, one more
    kernel narrows the queries. Dynamic quantisation reads 16-bit activations and writes 8-bit
    ones, row by row.
    """
    total: Number = 0.0
    rate = hbm_rate(machine, constants)
    for name in includes:
        if name not in INCLUDES:
            raise ProblemError(f"cannot include {name!r}; it is one of {', '.join(INCLUDES)}")
        if name == "kv_write" and isinstance(problem, Attention):
            sizes = problem.sizes()
            elements = problem.elements()
            width = elements["data"].bytes + elements["kv"].bytes
            fresh = product([sizes["b"], sizes["g"], sizes["q"], sizes["d"] + sizes["e"]])
            moved = fresh * width * constants["kv_write_passes"] / 2
            total = total + constants["kv_write_price"] + moved / rate
            if kernel.instruction == "native" and elements["kv"].bits < elements["data"].bits:
                heads = sizes["g"] * sizes["r"]
                queries = product([sizes["b"], heads, sizes["q"], sizes["d"]])
                moved = queries * (elements["data"].bytes + elements["kv"].bytes)
                total = total + constants["kernel_gap"] + moved / rate
        elif name == "rope" and isinstance(problem, Attention):
            sizes = problem.sizes()
            heads = sizes["g"] * (1 + sizes["r"])
            moved = product([sizes["b"], heads, sizes["q"], sizes["d"]]) * 2
            total = total + moved * problem.elements()["data"].bytes / rate
        elif name == "quantise_activations" and isinstance(problem, Matmul):
            activations = product([problem.batch, problem.m, problem.k])
            per_row = constants["quantise_row_price"] * 132 * 1.75e9
            rows = product([problem.batch, problem.m]) * per_row
            rows = rows / (machine.units * machine.clock_hz)
            total = total + constants["quantise_price"] + rows + 3 * activations / rate
    return total
