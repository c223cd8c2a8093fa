"""From the times of kernels to that of a graph: gaps between them, and the host that calls them.

The host makes one call after another and does not wait; the device takes them from a queue. A
kernel begins when the one before it has ended and the gap between them has passed, and not before
its own call has reached the device:

    begin = max(end before + gap, host + start)      end = begin + kernel      host += its call

So the end is the largest, over every point of the order, of the host's time up to there and the
device's from there: of the whole, the larger of device and host. Kernels of a captured graph, and
those that are timed by themselves, wait for no calls: their ends are the sum of kernels and gaps.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Call:
    """A node as the device sees it: times in seconds, of one of its runs."""

    repeat: int
    """Runs, one after another."""
    kernel_seconds: float
    """From the first instruction to the last."""
    start_seconds: float
    """From the call to the first instruction, on an idle device."""
    queued_seconds: float
    """Host time until the next call; 0 where nothing is called."""
    least_seconds: float
    """Host time that the harness never reports less than."""


def elapsed_seconds(calls: Iterable[Call], gap_seconds: float) -> float:
    """Seconds from the first call to the last instruction, or to the end of the last call.

    Of `repeat` equal runs either the first or the last waits for the host, if any does: what the
    device does in a run and what the host does in one stay the same.
    """
    end, host, least = -gap_seconds, 0.0, 0.0
    for call in calls:
        again = call.repeat - 1
        step = gap_seconds + call.kernel_seconds
        called = host + call.start_seconds + call.kernel_seconds
        end = max(end + call.repeat * step, called + again * max(call.queued_seconds, step))
        host += call.repeat * call.queued_seconds
        least += call.repeat * call.least_seconds
    return max(end, least)
