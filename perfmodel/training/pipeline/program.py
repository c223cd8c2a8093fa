"""A schedule as arrays for simulation: the dependences of each step, level by level.

A step is a task, or two that are joined. It depends on the step before it on its stage, and on
another part of the model: F on F of the part before, B or BW on that of the part after. (Its own
chunk's F comes earlier on the stage.) Steps of level k depend only on steps of lower levels, and
each stage has at most one, so a level is one operation on arrays.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from perfmodel.training.pipeline.schedule import Schedule
from perfmodel.training.pipeline.task import BW, B, F, W

_KEPT = 64  # cache of as many programs as schedules


@dataclass(frozen=True, eq=False)
class Program:
    """Steps sorted by level, numbered from 1. Step 0 is the start, which takes no time."""

    levels: tuple[tuple[int, int], ...]
    """First step of each level, and the one after its last."""
    waits: np.ndarray
    """Steps that each step depends on, shape (2 or 3, steps): on its stage, then from other
    parts."""
    boundaries: np.ndarray
    """Boundary that each dependence crosses, same shape; -1 where it stays on the stage."""
    rows: np.ndarray
    """Pass, chunk and micro-batch of the step's first task, shape (steps, 3)."""
    joined: np.ndarray
    """Chunk of the step's second task, which is a BW; -1 where there is none."""
    stage: np.ndarray
    """Stage of each step."""
    by_stage: np.ndarray
    """Steps grouped by stage, in each stage's order."""
    starts: np.ndarray
    """Index in `by_stage` where each stage begins."""


@lru_cache(maxsize=_KEPT)
def program(schedule: Schedule) -> Program:
    """The program of a schedule."""
    order = np.concatenate(schedule.orders)
    stage = np.repeat(np.arange(schedule.stages), [len(each) for each in schedule.orders])
    opens = order[:, 3] == 0
    step = np.cumsum(opens)  # from 1
    waits, boundaries = _dependences(schedule, order, stage, step)
    first = np.flatnonzero(opens)
    partner = np.full(len(first), -1)
    partner[step[~opens] - 1] = order[~opens, 1]
    level = np.array(_levels(waits[1:, 1:], stage[first].tolist()))
    place = np.argsort(level, kind="stable")
    numbers = np.zeros(len(first) + 1, dtype=np.int64)
    numbers[place + 1] = np.arange(1, len(first) + 1)
    head = np.zeros((len(waits), 1), dtype=np.int64)
    ends = np.cumsum(np.bincount(level)) + 1
    return Program(
        levels=tuple(zip([1, *ends[:-1].tolist()], ends.tolist(), strict=True)),
        waits=np.hstack([head, numbers[waits[:, 1:]][:, place]]),
        boundaries=np.hstack([head - 1, boundaries[:, 1:][:, place]]),
        rows=order[first, :3][place],
        joined=partner[place],
        stage=stage[first][place],
        by_stage=numbers[1:] - 1,
        starts=np.flatnonzero(np.diff(stage[first], prepend=-1)),
    )


def _dependences(
    schedule: Schedule, order: np.ndarray, stage: np.ndarray, step: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Dependences of each step and the boundaries that they cross, with step 0 in front."""
    shape = (3, schedule.stages, schedule.chunks, schedule.micro_batches)
    index = np.zeros(shape, dtype=np.int64)  # the step of every F, B (or BW) and W
    name, chunk, micro, join = order.T
    kind = np.where(name == BW, B, name)
    index[kind, stage, chunk, micro] = step
    source, boundary = _sources(schedule)
    from_stage, from_chunk = source[kind % 2, stage, chunk].T
    producer = np.where(from_stage < 0, 0, index[kind, from_stage, from_chunk, micro])
    border = boundary[kind % 2, stage, chunk]
    external = kind != W
    producer, border = np.where(external, producer, 0), np.where(external, border, -1)
    steps = step[-1]
    waits = np.zeros((3, steps + 1), dtype=np.int64)
    boundaries = np.full((3, steps + 1), -1)
    opens = join == 0
    previous = np.arange(steps)  # the step before, of another stage where a stage begins
    previous[np.diff(stage[opens], prepend=-1) != 0] = 0
    waits[0, 1:] = previous
    for row, mask in ((1, opens), (2, ~opens)):
        waits[row, step[mask]], boundaries[row, step[mask]] = producer[mask], border[mask]
    rows = 3 if (~opens).any() else 2
    return waits[:rows], boundaries[:rows]


def _sources(schedule: Schedule) -> tuple[np.ndarray, np.ndarray]:
    """Stage and chunk that F (0) and B (1) of each stage and chunk take input from, and the
    boundary.

    Boundary i is between stages i and i + 1, the last one between the last stage and the first.
    """
    shape = (2, schedule.stages, schedule.chunks)
    source, boundary = np.full((*shape, 2), -1), np.full(shape, -1)
    for path in schedule.paths:
        for before, after in pairwise(path):
            low, high = sorted((before[0], after[0]))
            border = -1 if low == high else low if high - low == 1 else high
            source[F, *after], source[B, *before] = before, after
            boundary[F, *after] = boundary[B, *before] = border
    return source, boundary


def _levels(waits: np.ndarray, stages: list[int]) -> list[int]:
    """Level of each step, from 0: one above the highest that it depends on.

    Stages take turns; each goes on until it depends on a step whose level is not yet known.
    """
    unknown = len(stages)
    level = [-1, *[unknown] * len(stages)]  # the start, then steps from 1
    first, last = waits[0].tolist(), waits[-1].tolist()  # two where tasks are joined
    begins = [i for i in range(len(stages)) if i == 0 or stages[i] != stages[i - 1]]
    ends, cursor = [*begins[1:], len(stages)], list(begins)
    heights = [-1] * len(begins)  # level of the step before on each stage
    while cursor != ends:
        for stage, end in enumerate(ends):
            height = heights[stage]
            for i in range(cursor[stage], end + 1):
                cursor[stage] = i
                if i == end:
                    break
                a, b = level[first[i]], level[last[i]]
                if a == unknown or b == unknown:
                    break
                height = max(height, a, b) + 1
                level[i + 1] = height
            heights[stage] = height
    return level[1:]
