"""Pipeline parallelism: a model's parts on several stages, and the order of their micro-batches.

    plan = schedule("1f1b", stages=8, micro_batches=64)
    found = simulate(plan, StageTimes.even(plan, forward=1e-3, backward=1e-3, weight=1e-3))
    found.seconds, found.bubble_seconds, found.peak_in_flight

A schedule (schedule.py) is each stage's order of passes, written as phrases (orders.py), or found
with a limit of memory (controlled.py). simulate.py gives the times.

The simulation defines the time. The papers' closed forms are its tests, with p stages, m
micro-batches, v chunks, and F, B, W of one stage:

    1F1B          (m + p − 1)·(F + B + W)           interleaved   (m + (p − 1)/v)·(F + B + W)
    ZB-H1         m·(F + B + W) + (p − 1)(F + B − W)
    ZB-H2         m·(F + B + W) + (p − 1)(F + B − 2W)
"""

from perfmodel.training.pipeline.schedule import KINDS, Kind, Schedule, Task, schedule
from perfmodel.training.pipeline.simulate import Event, StageTimes, Timeline, simulate

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
