"""Short runs on all cores at once, repeated until some were undisturbed by other programs.

A burst takes about a millisecond, so that even on a busy machine some are undisturbed: every thread
kept its processor throughout, and all started together. Rates come from these bursts. If there is
none, the best disturbed burst is used, timed from the first start to the last end. Its rate can
only be too low, and it is marked as disturbed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

LEAST_SHARE = 0.95  # of the wall-clock time that an undisturbed thread runs on a processor
_SKEW = 0.1  # of a burst: the most by which its threads may start apart
_PATIENCE = 4  # times the wanted number of bursts: the most that are taken

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Span:
    """One thread's part of a burst."""

    start_s: float
    """Start by the wall clock."""
    end_s: float
    """End by the wall clock."""
    processor_s: float
    """Processor time."""

    @property
    def seconds(self) -> float:
        """Wall-clock seconds."""
        return max(self.end_s - self.start_s, 1e-9)

    @property
    def share(self) -> float:
        """Processor time over wall-clock time; below 1 if another program had the processor."""
        return self.processor_s / self.seconds


@dataclass(frozen=True, slots=True)
class Burst:
    """One run of all threads at once."""

    spans: tuple[Span, ...]
    """The part of each thread."""
    amount: float
    """Work of each thread: bytes, operations or cycles."""

    @property
    def disturbed(self) -> bool:
        """Whether a thread lost its processor, or did not start with the others."""
        starts = [span.start_s for span in self.spans]
        shortest = min(span.seconds for span in self.spans)
        skew = max(starts) - min(starts)
        return skew > _SKEW * shortest or any(span.share < LEAST_SHARE for span in self.spans)

    @property
    def rate(self) -> float:
        """Work per second of all threads together."""
        if not self.disturbed:
            return sum(self.amount / span.seconds for span in self.spans)
        start = min(span.start_s for span in self.spans)
        end = max(span.end_s for span in self.spans)
        return self.amount * len(self.spans) / max(end - start, 1e-9)


def best(take: Callable[[], Burst], tries: int) -> Burst:
    """The fastest of `tries` undisturbed bursts, or of all where there is no undisturbed one."""
    bursts: list[Burst] = []
    steady: list[Burst] = []
    while len(steady) < tries and len(bursts) < _PATIENCE * tries:
        bursts.append(take())
        if not bursts[-1].disturbed:
            steady.append(bursts[-1])
    return max(steady or bursts, key=lambda burst: burst.rate)


def together(work: Callable[[int], T], places: Sequence[int | None]) -> list[T]:
    """`work(i)` in one thread for each place, all at once; returns their results.

    A place is the processor that the thread is bound to, if the system supports that, or None. The
    first error that a thread raised is raised here.
    """
    results: dict[int, T] = {}
    errors: list[BaseException] = []
    ready = threading.Barrier(len(places))

    def run(i: int, place: int | None) -> None:
        try:
            stay(place)
            ready.wait()
            results[i] = work(i)
        except threading.BrokenBarrierError:
            pass  # another thread failed before it was ready
        except BaseException as error:  # raised again where the threads were started
            errors.append(error)
            ready.abort()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return [results[i] for i in range(len(places))]


def stay(place: int | None) -> None:
    """Bind this thread to a processor; no effect where the system cannot do so."""
    if place is None or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(0, {place})
    except OSError:  # a processor that was taken away since
        return
