"""Launch floors: they belong to how a run was timed, not to the device."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError
from perfmodel.timing.classes import KernelClass
from perfmodel.timing.constants import Constants

UNKNOWN = "unknown"
"""The harness of a run that does not say how it was timed: device time is taken."""
HARNESSES = (
    "kernel", "cuda_graph", "cuda_events_eager", "wall_clock", "profiler", "paper", "do_bench",
    UNKNOWN,
)  # fmt: skip

# Whose floor an operator has that has none of its own, where not that of row-wise ones.
_AMONG = {"bmm": "gemm", "gemm": "any", "attention": "any", "scalar": "pointwise", "rowwise": "any"}


def floor_seconds(constants: Constants, harness: str, operator: str) -> float:
    """Floor of harness × operator, of those it stands among, or of the harness.

    Raises `ProblemError` naming the harnesses there are.
    """
    if harness not in HARNESSES:
        raise ProblemError(f"harness {harness!r} is not known; it is one of {', '.join(HARNESSES)}")
    harness = "kernel" if harness == UNKNOWN else harness
    name = operator
    while name != "any" and f"floor_{harness}_{name}" not in constants:
        name = _AMONG.get(name, "rowwise")
    return constants[f"floor_{harness}_{name}"]


def host_seconds(constants: Constants, harness: str, calls: int) -> float:
    """Host time of several plain framework calls, which runs beside the device and may outlast it.

    None where kernels run from a graph or are timed by themselves.
    """
    if harness in ("kernel", "cuda_graph", "profiler", UNKNOWN) or "floor" in constants.off:
        return 0.0
    return calls * constants["eager_host"] * constants["floor_cuda_events_eager_pointwise"]


def with_floor(
    constants: Constants,
    harness: str,
    operator: str,
    seconds: np.ndarray,
    kernel: KernelClass,
    rows: Number = np.inf,
) -> np.ndarray:
    """What the harness reports for device time `seconds`, of products of `rows` rows.

    The floor is what passes before the kernel starts. In eager event timing the host's work goes on
    beside the kernel, so that the longer of the two shows. A class may add its library's own start,
    another one for its kernel of few rows, and may have host work that nothing of it beats,
    whatever the harness.
    """
    if "floor" in constants.off:
        return seconds
    floor = floor_seconds(constants, harness, operator)
    harness = "kernel" if harness == UNKNOWN else harness
    if harness != "kernel" and kernel.start is not None:
        few = constants[kernel.few_start or kernel.start]
        seconds = seconds + np.where(rows <= kernel.few_rows, few, constants[kernel.start])
    if harness != "kernel" and kernel.host_floor is not None:
        return np.maximum(constants[kernel.host_floor], floor + seconds)
    if harness == "cuda_events_eager":
        return np.maximum(constants["eager_host"] * floor, floor + seconds)
    return floor + seconds
