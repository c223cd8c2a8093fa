"""Jobs on units: the one list scheduler, for pipelines, rings and copies beside computing.

A unit (a stage, a device, a link) works through its queue in order. A job starts once the job
before it in its queue and all jobs that it waits for have ended, each plus a delay:

    start = max(end of every job waited for + its delay)        end = start + seconds
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from perfmodel.errors import ProblemError

Wait = tuple[int, int]
"""A job, and the index of the delay after its end."""


@dataclass(frozen=True, eq=False)
class Jobs:
    """Jobs without their times, numbered from 0 in the order of the queues.

    Raises `ProblemError` where jobs wait for each other.
    """

    queues: Sequence[int]
    """Number of jobs of each unit."""
    waits: Mapping[int, Sequence[Wait]] = field(default_factory=dict)
    """Jobs of other units that a job waits for; a delay of index -1 is none."""

    @cached_property
    def _order(self) -> tuple[tuple[int, tuple[Wait, ...]], ...]:
        """Every job after all that it waits for, with these. Units take turns; each goes on until
        it waits for a job that has not had its turn."""
        order: list[tuple[int, tuple[Wait, ...]]] = []
        total = sum(self.queues)
        done = [False] * total
        stops = [sum(self.queues[: i + 1]) for i in range(len(self.queues))]
        heads = [stop - count for stop, count in zip(stops, self.queues, strict=True)]
        firsts = frozenset(heads)
        while len(order) < total:
            before = len(order)
            for unit, stop in enumerate(stops):
                for job in range(heads[unit], stop):
                    waits = tuple(self.waits.get(job, ()))
                    if not all(done[other] for other, _ in waits):
                        break
                    done[job], heads[unit] = True, job + 1
                    order.append((job, waits if job in firsts else ((job - 1, -1), *waits)))
            if len(order) == before:
                stuck = next(head for head, stop in zip(heads, stops, strict=True) if head < stop)
                raise ProblemError(f"job {stuck} waits for a job that waits for it; drop a wait")
        return tuple(order)

    def ends(self, seconds: Sequence[float], delays: Sequence[float] = ()) -> list[float]:
        """Seconds from the start to the end of each job."""
        lags = [*delays, 0.0]
        ends = [0.0] * len(seconds)
        for job, waits in self._order:
            start = 0.0
            for other, lag in waits:
                ready = ends[other] + lags[lag]
                if ready > start:
                    start = ready
            ends[job] = start + seconds[job]
        return ends
