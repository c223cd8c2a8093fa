"""A schedule in seconds, by the one list scheduler (`perfmodel.graph.jobs`).

A send adds time only if the receiving stage waits for it. Stages may differ, since the first has
the embedding and the last the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.training.pipeline.orders import BW
from perfmodel.training.pipeline.schedule import Schedule, Task


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Seconds of one micro-batch, shape (stages, chunks).

    Raises `ProblemError` where shapes differ, or a time is negative or not a number.
    """

    forward: np.ndarray
    """F."""
    backward: np.ndarray
    """B: the gradient of the input."""
    weight: np.ndarray
    """W: the gradient of the weights; BW takes B and W."""
    pair: np.ndarray | None = None
    """F of the chunk joined with BW of the stage's other chunk; None: the sum of both."""

    def __post_init__(self) -> None:
        for item in fields(self):
            seconds = getattr(self, item.name)
            if seconds is None:
                continue
            array = np.asarray(seconds, dtype=np.float64)
            object.__setattr__(self, item.name, array)
            if array.ndim != 2 or array.shape != self.forward.shape:
                raise ProblemError(
                    f"{item.name} has the shape {array.shape}, forward {self.forward.shape}; "
                    "give every time as (stages, chunks)"
                )
            if not np.all(np.isfinite(array) & (array >= 0)):
                raise ProblemError(f"{item.name} has a time below 0 or none; give seconds from 0")

    @classmethod
    def even(
        cls,
        schedule: Schedule,
        forward: float,
        backward: float,
        weight: float,
        pair: float | None = None,
    ) -> StageTimes:
        """The same seconds for every part of the model."""
        ones = np.ones((schedule.stages, schedule.chunks))
        pair_times = None if pair is None else pair * ones
        return cls(forward * ones, backward * ones, weight * ones, pair_times)

    def of_steps(self, schedule: Schedule) -> np.ndarray:
        """Seconds of every step of a schedule, shape (steps,)."""
        by_pass = np.stack([self.forward, self.backward, self.weight, self.backward + self.weight])
        rows = np.concatenate(schedule.orders)
        stage = np.repeat(np.arange(schedule.stages), [len(order) for order in schedule.orders])
        opens = np.flatnonzero(schedule.opens)
        spans = by_pass[rows[opens, 0], stage[opens], rows[opens, 1]]
        joined = np.flatnonzero(~schedule.opens)
        if joined.size:
            steps = np.cumsum(schedule.opens)[joined] - 1
            if self.pair is None:
                spans[steps] += by_pass[BW, stage[joined], rows[joined, 1]]
            else:
                spans[steps] = self.pair[stage[joined], rows[joined - 1, 1]]
        return np.asarray(spans)


@dataclass(frozen=True)
class Event:
    """One task, or two joined ones, with their times."""

    stage: int
    """The stage."""
    tasks: tuple[Task, ...]
    """One task, or two that are joined."""
    start_seconds: float
    """From the start of the step."""
    end_seconds: float
    """From the start of the step."""


@dataclass(frozen=True, eq=False)
class Timeline:
    """The times of a simulated schedule."""

    schedule: Schedule
    """The schedule."""
    starts: np.ndarray
    """Start of every step in seconds, stage by stage in each stage's order, shape (steps,)."""
    ends: np.ndarray
    """End of every step, likewise."""

    @cached_property
    def _firsts(self) -> np.ndarray:
        """The first step of each stage."""
        counts = self.schedule.jobs.queues
        return np.cumsum([0, *counts[:-1]])

    @property
    def first_seconds(self) -> np.ndarray:
        """When each stage starts its first task, shape (stages,)."""
        return np.asarray(self.starts[self._firsts])

    @property
    def last_seconds(self) -> np.ndarray:
        """When each stage ends its last task: its gradients are complete, shape (stages,)."""
        return np.asarray(self.ends[[*(self._firsts[1:] - 1), -1]])

    @property
    def seconds(self) -> float:
        """Seconds of a step if each stage starts its next step without a barrier: the longest of a
        stage.

        Stages that start p − 1 forwards later also end that much later, in every step. Zero-bubble
        schedules are measured this way (2401.10241, section 4.3: the optimiser's global norm is
        checked afterwards). Where stage 0 starts first and ends last, it is the time from first
        start to last end.
        """
        return float((self.last_seconds - self.first_seconds).max())

    @property
    def barrier_seconds(self) -> float:
        """Seconds of a step that ends in a barrier of all stages: from first start to last end."""
        return float(self.last_seconds.max() - self.first_seconds.min())

    @cached_property
    def busy_seconds(self) -> np.ndarray:
        """Seconds in which each stage computes, shape (stages,)."""
        return np.asarray(np.add.reduceat(self.ends - self.starts, self._firsts))

    @property
    def bubble_seconds(self) -> np.ndarray:
        """Seconds of a step in which each stage waits, shape (stages,)."""
        # Rounding may leave a negative 1e-16.
        return np.asarray(np.maximum(self.seconds - self.busy_seconds, 0.0))

    @property
    def bubble_share(self) -> float:
        """Bubble as a share of all stages' time."""
        return max(1 - float(self.busy_seconds.mean()) / self.seconds, 0.0)

    @property
    def peak_in_flight(self) -> np.ndarray:
        """Peak micro-batches whose activations each stage holds, as in `Schedule.peak_held`."""
        return self.schedule.peak_held()

    def events(self) -> Iterator[Event]:
        """Every step with its times, stage by stage."""
        times = zip(self.starts.tolist(), self.ends.tolist(), strict=True)
        for stage, tasks in enumerate(self.schedule.tasks):
            for task, following in zip(tasks, (*tasks[1:], None), strict=True):
                if not task.joined:
                    pair = (task, following) if following and following.joined else (task,)
                    yield Event(stage, pair, *next(times))


def simulate(
    schedule: Schedule, times: StageTimes, send_seconds: float | np.ndarray = 0.0
) -> Timeline:
    """Simulate a schedule.

    `send_seconds` is the time of a boundary's tensor from one stage to the next: one number, or an
    array of shape (stages,). Entry i is between stages i and i + 1, the last one between the last
    and the first. Raises `ProblemError` for times of another shape.
    """
    expected = (schedule.stages, schedule.chunks)
    if times.forward.shape != expected:
        raise ProblemError(
            f"times are for {times.forward.shape[0]} stages of {times.forward.shape[1]} chunks, "
            f"the schedule has {expected[0]} of {expected[1]}; give times of its shape"
        )
    sends = np.asarray(send_seconds, dtype=np.float64)
    if sends.shape not in ((), (schedule.stages,)):
        raise ProblemError(
            f"sends have the shape {sends.shape}; give one number, or one a boundary for "
            f"{schedule.stages} stages"
        )
    if not np.all(np.isfinite(sends) & (sends >= 0)):
        raise ProblemError("a send takes a time below 0 or none; give seconds from 0")
    spans = times.of_steps(schedule)
    delays = np.broadcast_to(sends, (schedule.stages,)).tolist()
    ends = np.array(schedule.jobs.ends(spans.tolist(), delays))
    return Timeline(schedule, ends - spans, ends)
