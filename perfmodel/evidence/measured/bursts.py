"""Short runs on all cores at once, repeated until some were left alone by the rest of the machine.

A burst takes about a millisecond, so that even a busy machine leaves some undisturbed: every thread
was on its processor throughout, and all started together. Rates come from those. Where there is
none, the best of the disturbed ones counts from the first start to the last end, so that it can
only be too low, and says that it was disturbed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

LEAST_SHARE = 0.95  # of the wall clock that an undisturbed thread spends on a processor
_SKEW = 0.1  # of a burst by which its threads may start apart
_PATIENCE = 4  # times as many bursts are taken, at most, until enough were undisturbed

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
        """The wall clock's time."""
        return max(self.end_s - self.start_s, 1e-9)

    @property
    def share(self) -> float:
        """Processor time over wall time; below 1 where something else had the processor."""
        return self.processor_s / self.seconds


@dataclass(frozen=True, slots=True)
class Burst:
    """What all threads did at once."""

    spans: tuple[Span, ...]
    """The part of each thread."""
    amount: float
    """What each did: bytes, operations, cycles."""

    @property
    def disturbed(self) -> bool:
        """Whether a thread lost its processor, or did not start with the others."""
        starts = [span.start_s for span in self.spans]
        shortest = min(span.seconds for span in self.spans)
        apart = max(starts) - min(starts)
        return apart > _SKEW * shortest or any(span.share < LEAST_SHARE for span in self.spans)

    @property
    def rate(self) -> float:
        """Amounts per second of all threads together."""
        if not self.disturbed:
            return sum(self.amount / span.seconds for span in self.spans)
        start = min(span.start_s for span in self.spans)
        end = max(span.end_s for span in self.spans)
        return self.amount * len(self.spans) / max(end - start, 1e-9)


def best(take: Callable[[], Burst], tries: int) -> Burst:
    """The fastest of `tries` undisturbed bursts, or of all where there is no undisturbed one."""
    taken: list[Burst] = []
    steady: list[Burst] = []
    while len(steady) < tries and len(taken) < _PATIENCE * tries:
        taken.append(take())
        if not taken[-1].disturbed:
            steady.append(taken[-1])
    return max(steady or taken, key=lambda burst: burst.rate)


def together(work: Callable[[int], T], places: Sequence[int | None]) -> list[T]:
    """`work(i)` in a thread a place, all at once; what each returned.

    A place is the processor that the thread is to stay on, where the system can do that, or None.
    The first error that a thread raised is raised here.
    """
    found: dict[int, T] = {}
    failed: list[BaseException] = []
    ready = threading.Barrier(len(places))

    def run(i: int, place: int | None) -> None:
        try:
            stay(place)
            ready.wait()
            found[i] = work(i)
        except threading.BrokenBarrierError:
            pass  # another thread failed before it was ready
        except BaseException as error:  # raised again where the threads were started
            failed.append(error)
            ready.abort()

    threads = [threading.Thread(target=run, args=each) for each in enumerate(places)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return [found[i] for i in range(len(places))]


def stay(place: int | None) -> None:
    """Keep this thread on a processor; without effect where the system cannot."""
    if place is None or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(0, {place})
    except OSError:  # a processor that was taken away since
        return
