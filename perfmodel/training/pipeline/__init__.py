"""Pipeline parallelism: a model's parts on several stages, and the order of their micro-batches.

    plan = schedule("1f1b", stages=8, micro_batches=64)
    found = simulate(plan, StageTimes.even(plan, forward=1e-3, backward=1e-3, weight=1e-3))
    found.seconds, found.bubble_seconds, found.peak_in_flight

A schedule (schedule.py, by name in kinds.py) is each stage's order of passes (task.py). flush.py
has GPipe, 1F1B and interleaved 1F1B, zerobubble.py ZB-H1, ZB-H2 and ZB-V, controlled.py V-Half and
V-Min, dualpipe.py DualPipe and DualPipeV. program.py has the dependences, simulate.py the times.

The simulation defines the time. The papers' closed forms are its tests, with p stages, m
micro-batches, v chunks, and F, B, W of one stage:

    1F1B          (m + p − 1)·(F + B + W)           interleaved   (m + (p − 1)/v)·(F + B + W)
    ZB-H1         m·(F + B + W) + (p − 1)(F + B − W)
    ZB-H2         m·(F + B + W) + (p − 1)(F + B − 2W)
"""

from perfmodel.training.pipeline.kinds import KINDS, Kind, schedule
from perfmodel.training.pipeline.schedule import Schedule
from perfmodel.training.pipeline.simulate import Event, StageTimes, Timeline, simulate
from perfmodel.training.pipeline.task import Task

__all__ = [
    "KINDS",
    "Event",
    "Kind",
    "Schedule",
    "StageTimes",
    "Task",
    "Timeline",
    "schedule",
    "simulate",
]
