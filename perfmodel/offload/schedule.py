"""Tasks on resources: each resource does its own in the order given, one after another, and a task
waits for those that it needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Task:
    """Something that keeps a resource busy."""

    resource: str
    """link, gpu, cpu."""
    seconds: float
    """How long."""
    after: tuple[int, ...] = ()
    """Places of the tasks that have to be done before, all of them earlier in the list."""


def ends(tasks: Sequence[Task]) -> list[float]:
    """When each task is done."""
    free: dict[str, float] = {}
    found: list[float] = []
    for task in tasks:
        ready = max((found[i] for i in task.after), default=0.0)
        end = max(ready, free.get(task.resource, 0.0)) + task.seconds
        free[task.resource] = end
        found.append(end)
    return found


def makespan(tasks: Sequence[Task]) -> float:
    """When the last is done."""
    return max(ends(tasks), default=0.0)
