"""Tasks on resources. Each resource runs its tasks in the order given, one at a time; a task waits
for the tasks that it depends on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """A task that occupies a resource."""

    resource: str
    """`link`, `gpu` or `cpu`."""
    seconds: float
    """Duration."""
    after: tuple[int, ...] = ()
    """Indices of the tasks that must end first, all earlier in the list."""


def ends(tasks: Sequence[Task]) -> list[float]:
    """End of each task, in seconds."""
    free: dict[str, float] = {}
    times: list[float] = []
    for task in tasks:
        ready = max((times[i] for i in task.after), default=0.0)
        end = max(ready, free.get(task.resource, 0.0)) + task.seconds
        free[task.resource] = end
        times.append(end)
    return times


def makespan(tasks: Sequence[Task]) -> float:
    """End of the last task, in seconds."""
    return max(ends(tasks), default=0.0)
