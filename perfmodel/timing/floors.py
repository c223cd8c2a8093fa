"""What a harness reports for a device time: launch floors and host time (`runs.yaml`)."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.timing.classes import KernelClass
from perfmodel.timing.constants import Constants


def host_seconds(constants: Constants, harness: str, calls: int) -> float:
    """Host time of several plain framework calls, which runs beside the device and may outlast it.

    None where kernels run from a graph or are timed by themselves.
    """
    run = constants.run(harness)
    if run.calls_as is None or "floor" in constants.off:
        return 0.0
    plain = constants.run(run.calls_as)
    return calls * plain.call_seconds("pointwise")


def with_floor(
    constants: Constants,
    harness: str,
    operator: str,
    seconds: np.ndarray,
    kernel: KernelClass,
    rows: Number = np.inf,
) -> np.ndarray:
    """What the harness reports for device time `seconds`, of products of `rows` rows.

    The start is what passes before the kernel does. In eager event timing the host's work goes on
    beside the kernel, so that the longer of the two shows. A class may add its library's own start,
    another one for its kernel of few rows, and may have host work that nothing of it beats,
    whatever the harness. Raises `ProblemError` naming the harnesses there are.
    """
    run = constants.run(harness)
    if "floor" in constants.off:
        return seconds
    start = run.start_seconds(operator)
    if run.library_start and kernel.start_seconds is not None:
        few = kernel.few_start_seconds
        few = kernel.start_seconds if few is None else few
        seconds = seconds + run.pace * np.where(rows <= kernel.few_rows, few, kernel.start_seconds)
    if run.library_start and kernel.host_seconds is not None:
        return np.maximum(run.pace * kernel.host_seconds, start + seconds)
    return np.maximum(run.call_seconds(operator), start + seconds)
