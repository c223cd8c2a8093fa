"""torch profiler's Chrome trace: the device time of every named range.

A range is a `record_function` or NVTX range named by `Case.label`. Its device time is the sum over
the kernels that ran inside it on the device's timeline. In a trace without a device, it is the
range's time on the host.

The format is Chrome's Trace Event Format (complete events, "ph": "X", microseconds) with the
categories of PyTorch's Kineto: kernel, gpu_memcpy, gpu_memset, cuda_runtime, cuda_driver,
user_annotation, gpu_user_annotation; "correlation" joins a launch on the host and its kernel.
"""

from __future__ import annotations

import io
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from perfmodel.errors import TableError
from perfmodel.evidence.cases import is_label
from perfmodel.evidence.importers.profiles import Instance, Profile
from perfmodel.evidence.profiled import jsonstream
from perfmodel.evidence.records import documents

ADVICE = "torch's profiler counts no bytes; profile with ncu or rocprofv3 for them"
_MICRO = 1e-6
_MOST = 1e18  # microseconds: no time of a trace is larger
_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")
_ON_DEVICE, _ON_HOST = "gpu_user_annotation", "user_annotation"
_READ = {*_KERNELS, *_CALLS, _ON_DEVICE, _ON_HOST}


@dataclass(frozen=True, slots=True)
class Event:
    """A complete event."""

    name: str
    """Its name."""
    category: str
    """Its category."""
    start: float
    """Microseconds."""
    duration: float
    """Microseconds."""
    correlation: int | str | None
    """Number that a launch and its kernel share."""


def is_trace(text: str) -> bool:
    """Whether the text is JSON rather than a table."""
    return text.lstrip()[:1] in ("{", "[")


def read(text: str, where: str) -> Profile:
    """Every run of a labelled range; raises `TableError` for another document, or if none."""
    notes: list[str] = []
    items = jsonstream.parsed(io.StringIO(text), where, notes)
    events = [event for i, e in enumerate(items) if (event := _event(e, i, where))]
    kernels = [event for event in events if event.category in _KERNELS]
    instances = _device_ranges(events, kernels) if kernels else _host_ranges(events)
    if not instances:
        raise TableError(
            f"{where}: no range is named after a case; "
            "wrap each call in record_function(case.label()), or read the whole program by "
            "perfmodel profile"
        )
    return Profile(
        "profiler", ADVICE, instances=tuple(instances), said=tuple(notes), on_host=not kernels
    )


def _event(entry: Mapping[str, Any], place: int, origin: str) -> Event | None:
    """A complete event of a category that is read; raises `TableError` where it is damaged."""
    if entry.get("ph") != "X":
        return None
    category = entry.get("cat")
    if not isinstance(category, str) or category not in _READ:
        return None
    subject = f"{origin}: traceEvents[{place}] ({category})"
    name, start, duration = entry.get("name"), entry.get("ts"), entry.get("dur", 0)
    if not isinstance(name, str):
        raise TableError(f"{subject}: name is {documents.shown(name)}, not text; export it again")
    times = [jsonstream.real(value) for value in (start, duration)]
    for key, value, time in (("ts", start, times[0]), ("dur", duration, times[1])):
        if time is None or not abs(time) <= _MOST:
            raise TableError(
                f"{subject}: {key} is {documents.shown(value)}, not a time; export it again"
            )
    arguments = entry.get("args", {})
    link = arguments.get("correlation") if isinstance(arguments, dict) else None
    if not isinstance(link, int | str | None):
        raise TableError(
            f"{subject}: correlation is {documents.shown(link)}, not a number; export it again"
        )
    return Event(name, category, times[0] or 0.0, times[1] or 0.0, link)


def _device_ranges(events: Sequence[Event], kernels: Sequence[Event]) -> list[Instance]:
    """Ranges with the kernels inside their span on the device, or launched in their span on the
    host."""
    marks = _marks(events, _ON_DEVICE)
    if marks:
        return _kernel_ranges(marks, [(kernel.start, kernel) for kernel in kernels])
    starts = {
        event.correlation: event.start
        for event in events
        if event.category in _CALLS and event.correlation is not None
    }
    timeline = [(starts[k.correlation], k) for k in kernels if k.correlation in starts]
    return _kernel_ranges(_marks(events, _ON_HOST), timeline)


def _kernel_ranges(marks: Iterable[Event], timeline: list[tuple[float, Event]]) -> list[Instance]:
    """Each range (mark) with the kernels whose time is inside its span."""
    timeline.sort(key=lambda each: each[0])
    times = [time for time, _ in timeline]
    totals = [0.0, *accumulate(kernel.duration for _, kernel in timeline)]
    instances = []
    for mark in marks:
        first = bisect_left(times, mark.start)
        last = bisect_left(times, mark.start + mark.duration, lo=first)
        kernel = timeline[first][1].name if first < last else ""
        seconds = (totals[last] - totals[first]) * _MICRO
        instances.append(Instance(mark.name, seconds, kernel, last - first))
    return instances


def _host_ranges(events: Iterable[Event]) -> list[Instance]:
    return [
        Instance(mark.name, mark.duration * _MICRO, "host", 0) for mark in _marks(events, _ON_HOST)
    ]


def _marks(events: Iterable[Event], category: str) -> list[Event]:
    return [event for event in events if event.category == category and is_label(event.name)]
