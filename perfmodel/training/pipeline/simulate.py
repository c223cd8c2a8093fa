"""A schedule in seconds: a task starts when its stage is free and its inputs have arrived.

    start = max(end of the task before on the stage, end of its input + send)

A send adds time only if the receiving stage waits for it. Stages may differ, since the first has
the embedding and the last the head. Times may be arrays with one number a plan; all plans are then
simulated at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from perfmodel.arithmetic import Number, maximum
from perfmodel.errors import ProblemError
from perfmodel.training.pipeline.program import Program, program
from perfmodel.training.pipeline.schedule import Schedule
from perfmodel.training.pipeline.task import BW, PASSES, Task


@dataclass(frozen=True, eq=False)
class StageTimes:
    """Seconds of one micro-batch, shape (stages, chunks), or (stages, chunks, plans).

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
            if array.ndim not in (2, 3) or array.shape != self.forward.shape:
                raise ProblemError(
                    f"{item.name} has the shape {array.shape}, forward {self.forward.shape}; "
                    "give every time as (stages, chunks) or (stages, chunks, plans)"
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
    """The times of a simulated schedule. Arrays end in the axis of plans where the times do."""

    schedule: Schedule
    """The schedule."""
    starts: np.ndarray
    """Start of every step of the program, in seconds, shape (steps,)."""
    ends: np.ndarray
    """End of every step, likewise."""

    @cached_property
    def _program(self) -> Program:
        return program(self.schedule)

    @cached_property
    def first_seconds(self) -> np.ndarray:
        """When each stage starts its first task, shape (stages,)."""
        steps = self._program
        return np.asarray(self.starts[steps.by_stage[steps.starts]])

    @cached_property
    def last_seconds(self) -> np.ndarray:
        """When each stage ends its last task: its gradients are complete, shape (stages,)."""
        steps = self._program
        stops = np.append(steps.starts[1:], len(steps.by_stage))
        return np.asarray(self.ends[steps.by_stage[stops - 1]])

    @property
    def seconds(self) -> Number:
        """Seconds of a step if each stage starts its next step without a barrier: the longest of a
        stage.

        Stages that start p − 1 forwards later also end that much later, in every step. Zero-bubble
        schedules are measured this way (2401.10241, section 4.3: the optimiser's global norm is
        checked afterwards). Where stage 0 starts first and ends last, it is the time from first
        start to last end.
        """
        return (self.last_seconds - self.first_seconds).max(axis=0)

    @property
    def barrier_seconds(self) -> Number:
        """Seconds of a step that ends in a barrier of all stages: from first start to last end."""
        return self.last_seconds.max(axis=0) - self.first_seconds.min(axis=0)

    @cached_property
    def busy_seconds(self) -> np.ndarray:
        """Seconds in which each stage computes, shape (stages,)."""
        steps = self._program
        spans = (self.ends - self.starts)[steps.by_stage]
        return np.asarray(np.add.reduceat(spans, steps.starts, axis=0))

    @property
    def bubble_seconds(self) -> np.ndarray:
        """Seconds of a step in which each stage waits, shape (stages,)."""
        # Rounding may leave a negative 1e-16.
        return np.asarray(np.maximum(self.seconds - self.busy_seconds, 0.0))

    @property
    def bubble_share(self) -> Number:
        """Bubble as a share of all stages' time."""
        return maximum(1 - self.busy_seconds.mean(axis=0) / self.seconds, 0.0)

    @property
    def peak_in_flight(self) -> np.ndarray:
        """Peak micro-batches whose activations each stage holds, as in `Schedule.peak_held`."""
        return self.schedule.peak_held()

    def events(self) -> Iterator[Event]:
        """Every step with its times, stage by stage; for a single plan."""
        steps = self._program
        for i in steps.by_stage.tolist():
            name, chunk, micro = steps.rows[i].tolist()
            run = [Task(PASSES[name], chunk, micro)]
            if steps.joined[i] >= 0:
                run.append(self._second_tasks[i])
            yield Event(int(steps.stage[i]), tuple(run), float(self.starts[i]), float(self.ends[i]))

    @cached_property
    def _second_tasks(self) -> dict[int, Task]:
        """The second task of each step that has two."""
        tasks, place = {}, 0
        for stage in self.schedule.tasks:
            for task in stage:
                if task.joined:
                    tasks[int(self._program.by_stage[place - 1])] = task
                else:
                    place += 1
        return tasks


def simulate(schedule: Schedule, times: StageTimes, send_seconds: Number = 0.0) -> Timeline:
    """Simulate a schedule.

    `send_seconds` is the time of a boundary's tensor from one stage to the next: one number, or an
    array of shape (stages,) or (stages, plans). Entry i is between stages i and i + 1, the last one
    between the last and the first. Raises `ProblemError` for times of another shape.
    """
    expected = (schedule.stages, schedule.chunks)
    if times.forward.shape[:2] != expected:
        raise ProblemError(
            f"times are for {times.forward.shape[0]} stages of {times.forward.shape[1]} chunks, "
            f"the schedule has {expected[0]} of {expected[1]}; give times of its shape"
        )
    steps = program(schedule)
    plans = times.forward.shape[2:]
    spans = _spans(steps, times)
    lags = _sends(schedule, send_seconds, plans)[steps.boundaries]
    ends = np.zeros((len(steps.stage) + 1, *plans))
    for first, last in steps.levels:
        ready = (ends[steps.waits[:, first:last]] + lags[:, first:last]).max(axis=0)
        ends[first:last] = ready + spans[first - 1 : last - 1]
    return Timeline(schedule, ends[1:] - spans, ends[1:])


def _spans(steps: Program, times: StageTimes) -> np.ndarray:
    """Seconds of every step, shape (steps,) or (steps, plans)."""
    by_pass = np.stack([times.forward, times.backward, times.weight, times.backward + times.weight])
    name, chunk, _ = steps.rows.T
    spans = by_pass[name, steps.stage, chunk]
    pairs = steps.joined >= 0
    if pairs.any():
        stage, first = steps.stage[pairs], chunk[pairs]
        second = by_pass[BW, stage, steps.joined[pairs]]
        spans[pairs] = spans[pairs] + second if times.pair is None else times.pair[stage, first]
    return np.asarray(spans)


def _sends(schedule: Schedule, send_seconds: Number, plans: tuple[int, ...]) -> np.ndarray:
    """Seconds over each boundary, with a 0 appended for "none", shape (stages + 1,) or with
    plans."""
    seconds = np.asarray(send_seconds, dtype=np.float64)
    try:
        delays = np.broadcast_to(
            seconds[:, None] if seconds.ndim == 1 and plans else seconds, (schedule.stages, *plans)
        )
    except ValueError:
        raise ProblemError(
            f"sends have the shape {seconds.shape}; give one number, or one a boundary for "
            f"{schedule.stages} stages"
        ) from None
    if not np.all(np.isfinite(delays) & (delays >= 0)):
        raise ProblemError("a send takes a time below 0 or none; give seconds from 0")
    return np.concatenate([delays, np.zeros((1, *plans))])
