"""What a harness reports for a device time: launch floors and host time (`runs.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import Caller
from perfmodel.timing.machine import Machine
from perfmodel.timing.runs import Run


@dataclass(frozen=True)
class Dispatch:
    """What the host does for the calls of an operator, in seconds."""

    start_seconds: Number = 0.0
    """What passes before the first instruction."""
    library_seconds: Number = 0.0
    """What the library does between that and its kernel, while the device waits."""
    least_seconds: Number = 0.0
    """Host time that the harness never reports less than."""
    queued_seconds: Number = 0.0
    """Host time until the call after it can be made, while its kernels wait in a queue or run."""

    def whole(self, device_seconds: np.ndarray) -> np.ndarray:
        """What the harness reports for a device time."""
        started = self.start_seconds + self.busy(device_seconds)
        return np.asarray(np.maximum(self.least_seconds, started))

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
    """The host's part in an operator; `few` where a kernel of few rows runs.

    The start is what passes before the kernel does. In eager event timing the host's work goes on
    beside the kernel, so that the longer of the two shows. A caller may add a start of its own,
    another one before a kernel of few rows, and may have host work that nothing of it beats,
    whatever the harness.

    `calls` is how many plain calls of a framework it takes, where that is not
    one for all. What is stated holds for a `machine` by its `pace`. Raises `ProblemError` that
    names the harnesses there are.
    """
    run = constants.run(harness)
    if "floor" in constants.off:
        return Dispatch()
    slower = 1.0 if machine is None else pace(run, operator, machine, constants)
    host = 1.0 if run.clocked(operator) else slower
    library: Number = 0.0
    if run.library_start and caller.start_seconds is not None:
        before = caller.few_start_seconds
        before = caller.start_seconds if before is None else before
        library = run.pace * host * np.where(few, before, caller.start_seconds)
    least = host * run.call_seconds(operator)
    own = 0.0
    if run.library_start and caller.host_seconds is not None:
        least = own = run.pace * host * caller.host_seconds
    several = host * host_seconds(constants, harness, calls)
    one = host * host_seconds(constants, harness, 1, operator)
    queued: Number = np.maximum(np.where(several > 0, several, one), own)
    if run.calls_as is None:  # nothing is called: kernels run from a graph, or by themselves
        queued = 0.0
    return Dispatch(
        slower * run.start_seconds(operator), library, np.maximum(least, several), queued
    )


# Year of the boards beside whose hosts starts and calls are stated.
_YEAR = 2020


def pace(run: Run, operator: str, machine: Machine, constants: Constants) -> float:
    """What an operator's start takes on a machine over what is stated of it.

    The device's own go with its clock. The host's where each call is awaited go with its age: a
    board stands in a server of its time, and runs a framework of later releases.
    """
    if run.clocked(operator):
        return float(machine.at_clock(1.0))
    if not run.one_at_a_time:
        return 1.0
    later = max(float(machine.device.launch_year.value) - _YEAR, 0.0)
    return float(constants["host_pace"] ** later)


def host_seconds(
    constants: Constants, harness: str, calls: Number, operator: str = "pointwise"
) -> Number:
    """Host time of several framework calls, which runs beside the device and may outlast it.

    Plain ones unless an operator is named. None where kernels run from a graph or are timed by
    themselves.
    """
    run = constants.run(harness)
    if run.calls_as is None or "floor" in constants.off:
        return 0.0
    plain = constants.run(run.calls_as)
    return calls * plain.call_seconds(operator)
