"""What a harness reports for a device time: launch floors and host time (`runs.yaml`)."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import Caller


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
    caller: Caller,
    few: Number = False,
) -> np.ndarray:
    """What the harness reports for device time `seconds`; `few` where a kernel of few rows ran.

    The start is what passes before the kernel does. In eager event timing the host's work goes on
    beside the kernel, so that the longer of the two shows. A caller may add a start of its
    own, another one before a kernel of few rows, and may have host work that nothing of it beats,
    whatever the harness. Raises `ProblemError` naming the harnesses there are.
    """
    run = constants.run(harness)
    if "floor" in constants.off:
        return seconds
    start = run.start_seconds(operator)
    if run.library_start and caller.start_seconds is not None:
        before = caller.few_start_seconds
        before = caller.start_seconds if before is None else before
        seconds = seconds + run.pace * np.where(few, before, caller.start_seconds)
    if run.library_start and caller.host_seconds is not None:
        return np.maximum(run.pace * caller.host_seconds, start + seconds)
    return np.maximum(run.call_seconds(operator), start + seconds)
