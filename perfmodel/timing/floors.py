"""Launch floors: they belong to how a run was timed, not to the device."""

from __future__ import annotations

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.errors import ProblemError
from perfmodel.timing.classes import KernelClass
from perfmodel.timing.constants import Constants

HARNESSES = (
    "kernel", "cuda_graph", "cuda_events_eager", "wall_clock", "profiler", "paper", "do_bench",
)  # fmt: skip


def operator_name(problem: Problem) -> str:
    """What a problem computes: attention, gemm, or the row-wise operator's own name."""
    if isinstance(problem, Attention):
        return "attention"
    return "gemm" if isinstance(problem, Matmul) else problem.op


def called_as(problem: Problem) -> str:
    """The operator whose floor a problem has.

    Gradients of row-wise operators are called by autograd, as element-wise maps are by Python: with
    no module, no checks and no defaults around them.
    """
    if isinstance(problem, Rowwise) and problem.direction == "bwd":
        return "pointwise"
    return operator_name(problem)


def floor_seconds(constants: Constants, harness: str, operator: str) -> float:
    """Floor of harness × operator, of all row-wise operators, or of the harness.

    Raises `ProblemError` naming the harnesses there are.
    """
    if harness not in HARNESSES:
        raise ProblemError(f"harness {harness!r} is not known; it is one of {', '.join(HARNESSES)}")
    shared = () if operator in ("gemm", "attention") else ("rowwise",)
    for name in (operator, *shared):
        key = f"floor_{harness}_{name}"
        if key in constants:
            return constants[key]
    return constants[f"floor_{harness}_any"]


def host_seconds(constants: Constants, harness: str, calls: int) -> float:
    """Host time of several plain framework calls, which runs beside the device and may outlast it.

    None where kernels run from a graph or are timed by themselves.
    """
    if harness in ("kernel", "cuda_graph", "profiler") or "floor" in constants.off:
        return 0.0
    return calls * constants["floor_cuda_events_eager_pointwise"]


def with_floor(
    constants: Constants,
    harness: str,
    operator: str,
    seconds: np.ndarray,
    kernel: KernelClass,
) -> np.ndarray:
    """What the harness reports for device time `seconds`.

    Eager event timing starts a share of the host's work before the kernel, and the rest goes on
    beside it, so that the longer of the two shows; in a graph, and in wall-clock time, launching
    comes before. A class may add its library's own start, and may have host work that nothing of
    it beats, whatever the harness.
    """
    if "floor" in constants.off:
        return seconds
    floor = floor_seconds(constants, harness, operator)
    if harness != "kernel" and kernel.start is not None:
        seconds = seconds + constants[kernel.start]
    if harness != "kernel" and kernel.host_floor is not None:
        return np.maximum(constants[kernel.host_floor], floor + seconds)
    if harness == "cuda_events_eager":
        return np.maximum(floor, seconds + constants["eager_share"] * floor)
    return floor + seconds
