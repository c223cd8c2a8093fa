"""From device time to what a harness reports: launch floors and host time (`runs.yaml`)."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.frozen import dataclass
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import Caller
from perfmodel.timing.machine import Machine
from perfmodel.timing.runs import Run


@dataclass(frozen=True)
class Dispatch:
    """Host seconds for the calls of an operator."""

    start_seconds: Number = 0.0
    """Seconds before the first instruction."""
    library_seconds: Number = 0.0
    """Host seconds of the library between the first instruction and its kernel; the device
    idles."""
    least_seconds: Number = 0.0
    """Host seconds that are the least time the harness reports."""
    queued_seconds: Number = 0.0
    """Host seconds until the next call can be made, while kernels of this one are queued or run."""

    def whole(self, device_seconds: np.ndarray) -> np.ndarray:
        """The time that the harness reports for a device time, in seconds."""
        seconds = self.start_seconds + self.busy(device_seconds)
        return np.asarray(np.maximum(self.least_seconds, seconds))

    def busy(self, device_seconds: np.ndarray) -> np.ndarray:
        """Seconds from the first instruction to the last."""
        return np.asarray(device_seconds + self.library_seconds)


def dispatch(
    constants: Constants,
    harness: str,
    operator: str,
    caller: Caller,
    few: Number = False,
    *,
    calls: Number = 0,
    machine: Machine | None = None,
) -> Dispatch:
    """The host's part in the time of an operator; `few` where a kernel of few rows runs.

    The start is added before the kernel. In eager event timing the host works in parallel with the
    kernel, so the longer of the two shows. A caller may add its own start, another one before a
    kernel of few rows, and its own host time as a lower bound.

    `calls` is the number of plain framework calls where it is not one for all. Stated host times
    are scaled to a `machine` by `pace`. Raises `ProblemError`, naming the harnesses, for an unknown
    one.
    """
    run = constants.run(harness)
    if "floor" in constants.off:
        return Dispatch()
    factor = 1.0 if machine is None else pace(run, operator, machine, constants)
    host = 1.0 if run.clocked(operator) else factor
    library: Number = 0.0
    if run.library_start and caller.start_seconds is not None:
        few_start = caller.few_start_seconds
        few_start = caller.start_seconds if few_start is None else few_start
        library = run.pace * host * np.where(few, few_start, caller.start_seconds)
    least = host * run.call_seconds(operator)
    caller_seconds = 0.0
    if run.library_start and caller.host_seconds is not None:
        least = caller_seconds = run.pace * host * caller.host_seconds
    host_calls = host * host_seconds(constants, harness, calls)
    host_call = host * host_seconds(constants, harness, 1, operator)
    queue: Number = np.maximum(np.where(host_calls > 0, host_calls, host_call), caller_seconds)
    if run.calls_as is None:  # no host calls: kernels run from a graph, or alone
        queue = 0.0
    return Dispatch(
        factor * run.start_seconds(operator), library, np.maximum(least, host_calls), queue
    )


# Year of the boards whose hosts the stated starts and calls were measured on.
_YEAR = 2020


def pace(run: Run, operator: str, machine: Machine, constants: Constants) -> float:
    """Factor from the stated start of an operator to the start on a machine.

    Starts that are device cycles scale with the device's clock. Host starts scale with the host's
    age where each call is awaited: a board is assumed to run in a server and with framework
    releases of its time.
    """
    if run.clocked(operator):
        return float(machine.at_clock(1.0))
    if not run.one_at_a_time:
        return 1.0
    years = max(float(machine.device.launch_year.value) - _YEAR, 0.0)
    return float(constants["host_pace"] ** years)


def host_seconds(
    constants: Constants, harness: str, calls: Number, operator: str = "pointwise"
) -> Number:
    """Host seconds of several framework calls, which run in parallel with the device.

    Plain calls unless an operator is named; 0 where kernels run from a graph or are timed alone.
    """
    run = constants.run(harness)
    if run.calls_as is None or "floor" in constants.off:
        return 0.0
    framework = constants.run(run.calls_as)
    return calls * framework.call_seconds(operator)
