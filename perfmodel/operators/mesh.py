"""Operators over several devices: each device has a shard of the problem, and devices exchange
data.

    time_on(operator, problem, device, constants, Request(mesh={"k": (2, "nvlink")}))

Axes are split as evenly as possible. The device with the largest shard is timed like any other
problem, and the exchanges come from the counting rule (`perfmodel.count.exchanges`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.algorithms.problem import columns
from perfmodel.count.exchanges import Exchange, exchanges
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device, Level
from perfmodel.operators.operator import Exchanged, Operator, Request, Timed
from perfmodel.schedules.mesh import over
from perfmodel.schedules.schedule import Kernel, Loop, Schedule
from perfmodel.timing import exchange as timing
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Link

WHOLE = "whole"
"""Value of `Request.stored` for a tensor that every device has whole."""


@dataclass(frozen=True)
class _Split:
    """One split axis."""

    axis: str
    ranks: int
    level: Level
    link: Link


def shard(problem: Problem, device: Device, request: Request) -> Problem:
    """The problem of the device with the largest shard; errors as for `time_on`."""
    mesh = _mesh(problem, request.mesh, device)
    return problem.shard({item.axis: item.ranks for item in mesh}) if mesh else problem


def time_on(
    operator: Operator, problem: Problem, device: Device, constants: Constants, request: Request
) -> tuple[Problem, Timed]:
    """One device's problem, and its time with the exchanges; the whole problem on one device.

    Raises `UnknownName` and `ProblemError` for an unknown axis, link or tensor, and for a split
    that no kernel supports.
    """
    mesh = _mesh(problem, request.mesh, device)
    layout = _layout(problem, request.stored, mesh)
    if not mesh:
        return problem, operator.time(problem, device, constants, request)
    ranks = {item.axis: item.ranks for item in mesh}
    part = problem.shard(ranks)
    transfers = crossing(problem, ranks, layout)
    schedule = request.schedule
    if any(item.within for item in transfers):
        transfers = _unfused_exchanges(operator, problem, ranks, layout, transfers)
        schedule = _unfused_schedule(operator, schedule)
    part_request = replace(request, schedule=schedule, mesh={}, stored={})
    time = operator.time(part, device, constants, part_request)
    if time.schedule.startswith("standard"):
        transfers = _unfused_exchanges(operator, problem, ranks, layout, transfers)
    return part, _with_exchanges(time, problem, mesh, transfers)


def put(whole: list[Exchanged], piece: Sequence[Exchanged], index: np.ndarray, n: int) -> None:
    """Set the exchanges of the problems at `index` of n; all problems have the same list of
    them."""
    for place, item in enumerate(piece):
        if place == len(whole):
            zeros = [np.zeros(n) for _ in range(3)]
            empty = replace(item, tensor_bytes=zeros[0], sent_bytes=zeros[1], seconds=zeros[2])
            whole.append(empty)
        for name in ("tensor_bytes", "sent_bytes", "seconds"):
            getattr(whole[place], name)[index] = getattr(item, name)


def _mesh(problem: Problem, mesh: Mapping[str, tuple[int, str]], device: Device) -> list[_Split]:
    """The axes split over more than one device, outermost first; all entries are checked."""
    splits: dict[str, _Split] = {}
    sizes = problem.sizes() if mesh else {}
    for name, entry in mesh.items():
        axis = _axis(problem, name, sizes)
        if axis in splits:
            raise ProblemError(f"axis {axis} is split twice; split it once")
        ranks, link = _ranks(name, entry)
        least = int(np.min(np.asarray(sizes[axis])))
        if ranks > least:
            raise ProblemError(
                f"{name} has an extent of {least}, too short for {ranks} devices; "
                f"take {least} at most"
            )
        splits[axis] = _Split(axis, ranks, *timing.link_of(device, link))
    _check_links(list(splits.values()), device)
    return [item for item in splits.values() if item.ranks > 1]


def _ranks(name: str, entry: Any) -> tuple[int, str]:
    """Devices and link of a split. Raises `ProblemError` for anything but such a pair."""
    pair = entry if isinstance(entry, tuple | list) else ()
    if len(pair) != 2 or not isinstance(pair[1], str):
        raise ProblemError(f"{name} is split by its devices and their link, as (2, 'nvlink')")
    ranks = pair[0]
    if not isinstance(ranks, int | np.integer) or isinstance(ranks, bool) or ranks < 1:
        raise ProblemError(f"{name} is split over {ranks} devices; write a whole number from 1")
    return int(ranks), pair[1]


def _axis(problem: Problem, name: str, sizes: Mapping[str, Any]) -> str:
    """The axis with that name, or of the option with that name."""
    spellings = problem.spellings()
    if name in sizes:
        return name
    if name not in spellings:
        raise UnknownName(f"axis of {problem.operator}", name, [*sizes, *spellings])
    return spellings[name]


def _check_links(mesh: Sequence[_Split], device: Device) -> None:
    """Raise `ProblemError` where a link joins fewer devices than exchange over it.

    An outer link joins groups of the devices that inner links join.
    """
    for level in {item.level.name: item.level for item in mesh}.values():
        ranks = int(np.prod([item.ranks for item in mesh if item.level.name == level.name]))
        if level.devices is not None and ranks > level.devices:
            raise ProblemError(
                f"{level.label} ({level.name}) of {device.slug} joins {level.devices} devices, "
                f"not {ranks}; take fewer or another link"
            )


def _layout(
    problem: Problem, entries: Mapping[str, str], mesh: Sequence[_Split]
) -> dict[tuple[str, str], str | None]:
    """The axis that each tensor's shards lie along, for all mesh axes that do not split it."""
    layout: dict[tuple[str, str], str | None] = {}
    if not entries:
        return layout
    algorithms = problem.passes()
    tensors = {name: item for each in algorithms for name, item in each.tensors.items()}
    ends = dict.fromkeys(name for each in algorithms for name in (*each.inputs, *each.outputs))
    sizes = problem.sizes()
    for tensor, text in entries.items():
        names = [n for n in ends if tensor in (n, tensors[n].element)]
        if not names:
            raise UnknownName("tensor", tensor, [*ends, *(tensors[n].element for n in ends)])
        axis = None if text == WHOLE else _axis(problem, text, sizes)
        for name in names:
            if axis is not None and axis not in tensors[name].axes:
                axes = ", ".join(tensors[name].axes)
                raise ProblemError(f"{name} has no axis {text}; it has {axes}, or write {WHOLE}")
            layout |= {(name, item.axis): axis for item in mesh}
    return layout


def crossing(
    problem: Problem,
    ranks: Mapping[str, int],
    stored: Mapping[tuple[str, str], str | None],
    *,
    fused: bool = True,
) -> list[Exchange]:
    """The exchanges of all passes, with the steps fused into one kernel or one kernel each.

    `ranks` are the devices of each split axis. `stored` is as in `perfmodel.count.exchanges`, with
    the axis in place of its mesh axis.
    """
    batch, _ = columns(problem)
    sizes = batch.sizes()
    transfers: list[Exchange] = []
    for algorithm in batch.passes():
        schedule = _schedule(algorithm, fused)
        splits = {axis: (count, axis) for axis, count in ranks.items()}
        layout = {key: lies for key, lies in stored.items() if key[0] in algorithm.tensors}
        transfers += exchanges(over(schedule, sizes, splits), sizes, batch.elements(), layout)
    return transfers


def _schedule(algorithm: Algorithm, fused: bool) -> Schedule:
    """Kernels that stream every axis that no output has, so its pieces may arrive one by one."""
    steps = [step.name for step in algorithm.steps]
    free = {axis for name in algorithm.outputs for axis in algorithm.tensors[name].axes}
    loops = tuple(Loop(axis, 1) for axis in algorithm.axes if axis not in free) if fused else ()
    parts = [tuple(steps)] if fused else [(name,) for name in steps]
    kernels = tuple(Kernel("+".join(part), part, loops) for part in parts)
    return Schedule("mesh", algorithm, kernels)


def _unfused_exchanges(
    operator: Operator,
    problem: Problem,
    ranks: Mapping[str, int],
    layout: Mapping[tuple[str, str], str | None],
    fused: Sequence[Exchange],
) -> list[Exchange]:
    """The exchanges with one kernel a step. Raises `ProblemError` where one still cuts a kernel."""
    transfers = crossing(problem, ranks, layout, fused=False)
    inner = next((item for item in transfers if item.within), None)
    if inner is None and "unfused" not in operator.schedules:
        inner = next((item for item in fused if item.within), None)
    if inner is not None:
        raise ProblemError(
            f"splitting {inner.mesh} exchanges {inner.tensor} in the middle of a kernel of "
            f"{operator.name}, which has no such kernel; split another axis"
        )
    return transfers


def _unfused_schedule(operator: Operator, schedule: str) -> str:
    """The schedule whose kernels end where devices exchange."""
    if schedule not in ("auto", "unfused"):
        raise ProblemError(
            f"devices exchange partial sums between steps of {operator.name}, so that they cannot "
            "be one kernel; write --schedule unfused, or split another axis"
        )
    return "unfused"


def _with_exchanges(
    time: Timed, problem: Problem, mesh: Sequence[_Split], transfers: Sequence[Exchange]
) -> Timed:
    """A device's time with its exchanges added."""
    n = len(time.seconds)
    links = {item.axis: item.link for item in mesh}

    def array(value: Any) -> np.ndarray:
        return np.broadcast_to(np.asarray(value, dtype=np.float64).reshape(-1), (n,))

    pairs = [(item, array(timing.seconds(item, links[item.mesh]))) for item in transfers]
    records = tuple(
        Exchanged(
            item.kind,
            item.tensor,
            links[item.mesh].name,
            int(item.ranks),
            array(item.tensor_bytes),
            array(item.sent_bytes),
            seconds,
        )
        for item, seconds in pairs
    )
    waits = timing.waited(pairs, time.estimate.seconds)
    axes = {item.mesh for item in transfers}
    levels = {i.level.name: timing.sentence(i.level, i.link) for i in mesh if i.axis in axes}
    notes = (_part(problem, mesh), *levels.values())
    unknowns = dict(time.unknowns)
    if levels:
        link_notes = (unknowns["link"],) if "link" in unknowns else ()
        unknowns["link"] = "; ".join((*link_notes, *levels.values()))
    return replace(
        time,
        seconds=time.seconds + waits,
        estimate=_estimate(time, records, waits),
        assumptions=(*time.assumptions, *notes),
        unknowns=unknowns,
        exchanges=records,
        exchange_seconds=waits,
    )


def _estimate(time: Timed, records: Sequence[Exchanged], waits: np.ndarray) -> Any:
    """Terms, bytes and memory with those of the exchanges added, by the names of their levels."""
    estimate = time.estimate
    terms, bytes_ = dict(estimate.terms), dict(estimate.bytes)
    memory = estimate.memory_bytes
    for item in records:
        terms[item.level] = terms.get(item.level, 0.0) + item.seconds
        bytes_[item.level] = bytes_.get(item.level, 0.0) + item.sent_bytes
        if item.kind == "ring":  # the current piece and the arriving one
            memory = memory - item.tensor_bytes * max(1 - 2 / item.ranks, 0.0)
    return replace(
        estimate, seconds=estimate.seconds + waits, terms=terms, bytes=bytes_, memory_bytes=memory
    )


def _part(problem: Problem, mesh: Sequence[_Split]) -> str:
    """The device's part of the problem, in words."""
    devices = int(np.prod([item.ranks for item in mesh]))
    split = ", ".join(f"{item.axis} over {item.ranks}" for item in mesh)
    return (
        f"one of {devices} devices, {split}: operations, bytes and memory are those of the "
        "largest shard"
    )
