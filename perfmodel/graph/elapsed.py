"""From the times of kernels to that of a graph: gaps between kernels, and the host's calls.

The host makes one call after another without waiting; the device takes them from a queue. A kernel
begins after the end of the kernel before it plus the gap, and not before its own call has reached
the device:

    begin = max(end before + gap, host + start)      end = begin + kernel      host += its call

Hence the end is the maximum, over every point of the order, of the host's time up to there plus the
device's time from there. Kernels of a captured graph, and those that are timed alone, wait for no
calls: their time is the sum of kernels and gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """A node from the device's side: times of one of its runs, in seconds."""

    repeat: int
    """Number of runs, one after another."""
    kernel_seconds: float
    """Seconds from the first instruction to the last."""
    start_seconds: float
    """Seconds from the call to the first instruction, on an idle device."""
    queued_seconds: float
    """Host seconds until the next call; 0 where there are no host calls."""
    least_seconds: float
    """Host seconds that are the least time the harness reports."""


def elapsed_seconds(calls: Iterable[Call], gap_seconds: float) -> float:
    """Seconds from the first call to the last instruction, or to the end of the last call.

    Among `repeat` equal runs only the first or the last can wait for the host, since device time
    and host time per run are constant.
    """
    end, host, least = -gap_seconds, 0.0, 0.0
    for call in calls:
        repeats = call.repeat - 1
        step = gap_seconds + call.kernel_seconds
        begin = host + call.start_seconds + call.kernel_seconds
        end = max(end + call.repeat * step, begin + repeats * max(call.queued_seconds, step))
        host += call.repeat * call.queued_seconds
        least += call.repeat * call.least_seconds
    return max(end, least)
