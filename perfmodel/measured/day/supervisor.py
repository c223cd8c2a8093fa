"""Stages as processes: each has a time limit, is watched for hangs, and restarts after a crash.

A kernel that hangs never returns, and one that reads out of bounds destroys its process's CUDA
context. So a stage's process writes what it runs (`pulse`). If that does not change for too long,
or the process dies, the process group is killed and the running case is marked as lost. The stage
then restarts after that case. Each start writes at least one row, so the restarts end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from perfmodel.measured.pulse import Pulse

DONE, SOME_FAILED, CANNOT, DEVICE_LOST, NO_DEVICE = 0, 1, 2, 3, 4
"""Exit codes of a stage: success; rows failed; it cannot run; device lost; no device."""

_ENDS = {
    DONE: "done",
    SOME_FAILED: "done, with failures",
    CANNOT: "cannot run",
    NO_DEVICE: "no device",
}
_POLL_S = 0.1
_MOST_STARTS = 40
_KILL = 9  # SIGKILL, by number: Windows has no name for it
_PR_SET_PDEATHSIG = 1  # linux/prctl.h

Clock = Callable[[], float]


@dataclass(frozen=True)
class Outcome:
    """How a stage ended."""

    said: str
    """The outcome in a few words."""
    failed: bool
    """Whether anything failed."""
    starts: int
    """Times that it was started."""
    code: int | None = None
    """Its exit code; None where it was killed."""
    lost_at_limit: bool = False
    """Whether a case was marked as lost when the time was up; the stage has not recorded it."""


def supervise(
    command: Sequence[str],
    folder: Path,
    *,
    limit_s: float | None,
    silence_s: float,
    clock: Clock = time.monotonic,
) -> Outcome:
    """Run a stage's process to its end, for `limit_s` seconds at most.

    If its pulse does not change for `silence_s`, the process is taken to hang. At the limit half of
    that is enough: a case that takes so long would end the next run in the same way. A stage has
    failed if any of its processes did.
    """
    begin, pulse = clock(), Pulse(folder)
    pulse.rest()
    for start in range(1, _MOST_STARTS + 1):
        rest = None if limit_s is None else limit_s - (clock() - begin)
        code = run_group(command, rest, lambda: pulse.silent_s() > silence_s)
        if code == DONE and start > 1:
            code = SOME_FAILED
        if code in _ENDS:
            return Outcome(_ENDS[code], code != DONE, start, code)
        if code is None and pulse.silent_s() <= silence_s:
            return _timeout_outcome(pulse, silence_s, start)
        reason = _reason(code, silence_s)
        if not pulse.mark_lost(reason):
            return Outcome(reason, True, start)
        print(f"  {reason}; going on after it", flush=True)
    return Outcome(f"gave up after {_MOST_STARTS} starts", True, _MOST_STARTS)


def _timeout_outcome(pulse: Pulse, silence_s: float, start: int) -> Outcome:
    """The outcome of a stage whose time was up; what ran for long is marked as lost."""
    text = "stopped when its time was up"
    if pulse.silent_s() <= silence_s / 2:
        pulse.rest()
        return Outcome(text, start > 1, start)
    pulse.mark_lost(f"no answer for {silence_s / 2:g} s when the stage's time was up")
    return Outcome(f"{text}; the case that ran is lost", True, start, lost_at_limit=True)


def run_group(
    command: Sequence[str],
    limit_s: float | None,
    hangs: Callable[[], bool] = lambda: False,
    output: Path | None = None,
) -> int | None:
    """Run a command in its own process group; returns its exit code, None if it was killed.

    The whole group is killed at the limit, when `hangs()` is true, and when this process ends.
    `output` receives stdout and stderr; by default they are this process's.
    """
    begin = time.monotonic()
    target = None if output is None else output.open("ab")
    try:
        process = subprocess.Popen(
            command, start_new_session=True, preexec_fn=_die_with_parent, stdout=target,
            stderr=subprocess.STDOUT if target else None,
        )  # fmt: skip
    finally:
        if target is not None:
            target.close()
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_POLL_S)
            overdue = limit_s is not None and time.monotonic() - begin >= limit_s
            if overdue or hangs():
                return None
    finally:
        kill_group(process)


def kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a process and all processes that it started."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, _KILL)
    process.wait()


def _reason(code: int | None, silence_s: float) -> str:
    if code is None:
        return f"no answer for {silence_s:g} s; its process was killed"
    if code < 0:
        return f"its process was ended by {signal.Signals(-code).name}"
    if code == DEVICE_LOST:
        return "the device no longer answered"
    return f"its process ended with exit code {code}"


def _die_with_parent() -> None:
    """In the child: ask Linux to kill it when its parent dies, however that ends."""
    if sys.platform == "linux":
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _KILL)
