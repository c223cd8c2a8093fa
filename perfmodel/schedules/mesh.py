"""Schedules over several devices: a mesh axis is a grid loop whose blocks are devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from perfmodel.arithmetic import Number, ceil_div
from perfmodel.schedules.schedule import Loop, Schedule

Split = Mapping[str, tuple[Number, str]]
"""Axis to the number of devices that it is split over and their mesh axis, outermost first."""


def across(axis: str, extent: Number, ranks: Number, mesh: str) -> Loop:
    """The loop that splits an axis over the `ranks` devices of a mesh axis, as evenly as
    possible."""
    return Loop(axis, ceil_div(extent, ranks), grid=True, mesh=mesh, ranks=ranks)


def over(schedule: Schedule, sizes: Mapping[str, Number], split: Split) -> Schedule:
    """The schedule with the axes in `split` split over devices, in every kernel that has them.

    Raises `ProblemError` where a kernel is already split over a mesh axis of that name.
    """
    kernels = []
    for kernel in schedule.kernels:
        steps = [schedule.algorithm.step(name) for name in kernel.steps]
        axes = {axis for step in steps for axis in schedule.algorithm.step_axes(step)}
        loops = tuple(across(a, sizes[a], *split[a]) for a in split if a in axes)
        kernels.append(replace(kernel, nest=(*loops, *kernel.nest)))
    return replace(schedule, kernels=tuple(kernels))
