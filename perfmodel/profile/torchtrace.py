"""torch.profiler's trace (`export_chrome_trace`, `record_shapes=True`).

Kineto writes Chrome's Trace Event Format: complete events ("ph": "X") with microseconds in `ts` and
`dur`. Categories: cpu_op (an operator on the host, with "Input Dims", "Input type", "Concrete
Inputs" and "External id"), cuda_runtime and cuda_driver (a launch, with "correlation"), kernel
(with "correlation", "External id", "grid", "block"), gpu_memcpy, gpu_memset.

A kernel belongs to the operator of its external id, or else to the innermost operator that was
running on the launching thread. In a trace without kernels the host ran the operators. The
outermost operator with a known problem (`operations.yaml`) then counts with its whole time, and any
other operator with its exclusive time.

Ranges named by `Case.label` (record_function or NVTX: user_annotation, gpu_user_annotation) are the
timeline's instances. The time of one is the sum over the kernels that ran inside it on the device,
or that were launched inside it on the host; without a device it is the range's own.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.cases import is_label
from perfmodel.documents import shown
from perfmodel.errors import TableError
from perfmodel.plaintext import whole_number
from perfmodel.profile import jsonstream, operations
from perfmodel.profile.timeline import (
    Columns,
    Exchange,
    Extents,
    Instance,
    Recorded,
    Timeline,
    What,
    innermost,
)

TOOL = "torch.profiler"
ADVICE = "torch's profiler counts no bytes; profile with ncu or rocprofv3 for them"
_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")
_ON_DEVICE, _ON_HOST = "gpu_user_annotation", "user_annotation"
_MOST = 1e18  # microseconds: no time of a trace is larger
_NANO = 1e3
_SECONDS = 1e-9


class _Trace:
    """A trace while it is read: the needed fields of each event, in columns."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.operators: dict[Recorded, int] = {}
        self.op = array("I")
        self.op_start, self.op_end = array("d"), array("d")
        self.op_thread, self.op_id = array("q"), array("q")
        self.threads: dict[Any, int] = {}
        self.launch, self.launch_start = array("q"), array("d")
        self.launch_thread = array("q")
        self.kernels = Columns()
        self.kernel_id, self.kernel_launch = array("q"), array("q")
        self.marks: dict[str, list[tuple[str, float, float]]] = {_ON_DEVICE: [], _ON_HOST: []}
        """Labels of cases with their start and duration, by category."""
        self.skipped = 0
        self.fault = ""
        self.unshaped = 0

    def event(self, each: Mapping[str, Any], place: int) -> None:
        """Add the event at a place in the list."""
        category = each.get("cat") if each.get("ph") == "X" else None
        if category not in ("cpu_op", *_KERNELS, *_CALLS, _ON_DEVICE, _ON_HOST):
            return
        name, start, duration = each.get("name"), _time(each.get("ts")), _time(each.get("dur", 0))
        arguments = each.get("args")
        arguments = arguments if isinstance(arguments, Mapping) else {}
        if not self.fault and category != "cpu_op" and (fault := _fault(each, arguments)):
            self.fault = (
                f"{self.where}: traceEvents[{place}] ({category}): {fault}; export it again"
            )
        if not isinstance(name, str) or start is None or duration is None:
            self.skipped += 1
        elif category == "cpu_op":
            self._operator(name, start, duration, self._thread(each), arguments)
        elif category in _CALLS:
            self.launch.append(_number(arguments.get("correlation")))
            self.launch_start.append(start)
            self.launch_thread.append(self._thread(each))
        elif category not in _KERNELS:
            if is_label(name):
                self.marks[category].append((name, start * _NANO, duration * _NANO))
        else:
            recorded = Recorded(name, moved_bytes=_bytes(arguments), exchange=_exchange(arguments))
            source = recorded if recorded.moved_bytes or recorded.exchange else None
            grid, block = _sizes(arguments.get("grid")), _sizes(arguments.get("block"))
            launch = What(name, source, grid, block)
            self.kernels.add(launch, start * _NANO, duration * _NANO, -1)
            self.kernel_id.append(_id(arguments))
            self.kernel_launch.append(_number(arguments.get("correlation")))

    def _thread(self, event: Mapping[str, Any]) -> int:
        key = (_key(event.get("pid")), _key(event.get("tid")))
        return self.threads.setdefault(key, len(self.threads))

    def _operator(
        self, name: str, start: float, duration: float, thread: int, arguments: Mapping[str, Any]
    ) -> None:
        recorded = Recorded(
            name,
            _dims(arguments.get("Input Dims")),
            _texts(arguments.get("Input type")),
            _texts(arguments.get("Concrete Inputs")),
            _dims(arguments.get("Input Strides")),
            _bytes(arguments),
            _exchange(arguments),
        )
        self.unshaped += "Input Dims" not in arguments
        self.op.append(self.operators.setdefault(recorded, len(self.operators)))
        self.op_start.append(start)
        self.op_end.append(start + duration)
        self.op_thread.append(thread)
        self.op_id.append(_id(arguments))


def _fault(event: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    """What is wrong with an event; empty for a sound one."""
    name, link = event.get("name"), arguments.get("correlation")
    if not isinstance(name, str):
        return f"name is {shown(name)}, not text"
    for key, value in (("ts", event.get("ts")), ("dur", event.get("dur", 0))):
        if _time(value) is None:
            return f"{key} is {shown(value)}, not a time"
    return (
        "" if isinstance(link, int | str | None) else f"correlation is {shown(link)}, not a number"
    )


def read(path: str | Path) -> Timeline:
    """Every kernel of a trace, or every operator where no device ran any; raises `TableError`."""
    trace = _Trace(str(path))
    notes: list[str] = []
    for i, event in enumerate(jsonstream.events(path, notes)):
        trace.event(event, i)
    is_cut = bool(notes)
    if trace.skipped:
        notes.append(f"{trace.skipped} events without a name or a time left out")
    if trace.kernels.start:
        return _device_timeline(trace, notes)
    if not trace.op and not trace.fault and not any(trace.marks.values()):
        short = ", and the trace is cut short" if is_cut else ""
        raise TableError(f"{path}: no operator and no kernel{short}; profile with torch.profiler")
    if trace.unshaped > len(trace.op) / 2:
        notes.append("operators have no shapes: profile with record_shapes=True")
    return _host_timeline(trace, notes)


# ---- Kernels and the operators that launched them ------------------------------------------------


def _device_timeline(trace: _Trace, notes: list[str]) -> Timeline:
    """Kernels, each with the operator that launched it."""
    operators = tuple(trace.operators)
    calls = _calls(trace)
    columns, launches = Columns(), tuple(trace.kernels.whats)
    for i, call in enumerate(calls.tolist()):
        launch = launches[trace.kernels.what[i]]
        launched_by = operators[trace.op[call]] if call >= 0 else None
        columns.add(
            What(launch.kernel, launch.recorded or launched_by, launch.grid, launch.block),
            trace.kernels.start[i],
            trace.kernels.duration[i],
            call,
        )
    columns.fault = trace.fault
    return columns.timeline(TOOL, notes=tuple(notes), instances=_instances(trace))


def _instances(trace: _Trace) -> tuple[Instance, ...]:
    """Every run of a labelled range with its kernels, by their time or by that of their launch."""
    marks = trace.marks[_ON_DEVICE] or trace.marks[_ON_HOST]
    times, rows = np.array(trace.kernels.start), np.arange(len(trace.kernel_launch))
    if not trace.marks[_ON_DEVICE]:
        launches = np.array(trace.launch, dtype=np.int64)
        places = _places(launches, np.array(trace.kernel_launch, dtype=np.int64))
        rows = np.flatnonzero(places >= 0)
        times = np.array(trace.launch_start)[places[rows]] * _NANO
    order = np.argsort(times, kind="stable")
    times, rows = times[order], rows[order]
    totals = np.append(0.0, np.cumsum(np.array(trace.kernels.duration)[rows]))
    starts = np.array([start for _, start, _ in marks])
    firsts = np.searchsorted(times, starts)
    lasts = np.searchsorted(times, starts + [duration for _, _, duration in marks])
    kernels = [what.kernel for what in trace.kernels.whats]
    return tuple(
        Instance(
            label,
            float(totals[last] - totals[first]) * _SECONDS,
            kernels[trace.kernels.what[rows[first]]] if first < last else "",
            last - first,
        )
        for (label, *_), first, last in zip(marks, firsts.tolist(), lasts.tolist(), strict=True)
    )


def _calls(trace: _Trace) -> np.ndarray:
    """The index of each kernel's operator; -1 if unknown."""
    calls = np.full(len(trace.kernel_id), -1, dtype=np.int64)
    if not trace.op:
        return calls
    place = _places(np.array(trace.op_id, dtype=np.int64), np.array(trace.kernel_id, np.int64))
    calls[place >= 0] = place[place >= 0]
    rest = np.flatnonzero(place < 0)
    launches = np.array(trace.launch, dtype=np.int64)
    places = _places(launches, np.array(trace.kernel_launch, dtype=np.int64)[rest])
    mask = places >= 0
    if mask.any():
        moments = [(trace.launch_start[i], trace.launch_thread[i]) for i in places[mask].tolist()]
        starts, ends = (np.array(column) for column in (trace.op_start, trace.op_end))
        threads = np.array(trace.op_thread, dtype=np.int64)
        calls[rest[mask]] = innermost(starts, ends, threads, moments)
    return calls


def _places(keys: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    """The index in `keys` of each wanted number above 0; -1 if it is not there."""
    if not len(keys):
        return np.full(len(numbers), -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], numbers), len(keys) - 1)
    hit = (numbers > 0) & (keys[order][place] == numbers)
    return np.where(hit, order[place], -1)


# ---- Operators that the host ran -----------------------------------------------------------------


def _host_timeline(trace: _Trace, notes: list[str]) -> Timeline:
    """Operators with a problem count with their whole time, which includes all nested operators.

    Other operators count with their exclusive time.
    """
    operators = tuple(trace.operators)
    solid = np.array([operations.problem(each) is not None for each in operators])
    thread, op = (np.array(c, dtype=np.int64) for c in (trace.op_thread, trace.op))
    start, end = (np.array(column) for column in (trace.op_start, trace.op_end))
    columns = Columns()
    # End, start, operator, time of nested operators, whether inside one with a problem.
    stack: list[list[Any]] = []

    def close() -> None:
        stop, first, index, inner_time, is_nested = stack.pop()
        duration = stop - first
        if stack:
            stack[-1][3] += duration
        if is_nested:
            return
        rest = duration if solid[index] else max(duration - inner_time, 0.0)
        if rest > 0:
            columns.add(What(operators[index].name, operators[index]), first * _NANO, rest * _NANO)

    for key in sorted({int(t) for t in thread}):
        rows = np.flatnonzero(thread == key)
        for i in rows[np.lexsort((-end[rows], start[rows]))].tolist():
            while stack and stack[-1][0] <= start[i]:
                close()
            is_nested = bool(stack) and (stack[-1][4] or bool(solid[stack[-1][2]]))
            stack.append([end[i], start[i], int(op[i]), 0.0, is_nested])
        while stack:
            close()
    instances = tuple(
        Instance(label, duration * _SECONDS, "host", 0)
        for label, _, duration in trace.marks[_ON_HOST]
    )
    columns.fault = trace.fault
    return columns.timeline(TOOL, on_host=True, notes=tuple(notes), instances=instances)


# ---- What events hold ----------------------------------------------------------------------------


def _time(value: Any) -> float | None:
    """Microseconds; None for what is no number."""
    number = jsonstream.real(value)
    return number if number is not None and -_MOST < number < _MOST else None


def _key(value: Any) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _number(value: Any) -> int:
    """The number that links events; 0 for none."""
    value = whole_number(value) if isinstance(value, str) else value
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return value if is_integer and 0 < value < 2**62 else 0


def _id(arguments: Mapping[str, Any]) -> int:
    return _number(arguments.get("External id", arguments.get("external id")))


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(size for size in value if isinstance(size, int))[:3]


def _bytes(arguments: Mapping[str, Any]) -> float:
    """Bytes that Inductor counts for a kernel of its own; 0 where it counts none."""
    gigabytes = jsonstream.real(arguments.get("kernel_num_gb"))
    return gigabytes * 1e9 if gigabytes is not None and 0 < gigabytes < _MOST else 0.0


def _exchange(arguments: Mapping[str, Any]) -> Exchange | None:
    op = arguments.get("Collective name")
    sent, received = (_number(arguments.get(f"{way} msg nelems")) for way in ("In", "Out"))
    if not isinstance(op, str) or not (sent or received):
        return None
    ranks, dtype = _number(arguments.get("Group size")), arguments.get("dtype")
    return Exchange(op, sent, received, dtype if isinstance(dtype, str) else "", ranks)


def _dims(value: Any) -> tuple[Extents, ...]:
    """Numbers of each argument: extents or strides; those of each tensor of a list of tensors."""
    if not isinstance(value, list):
        return ()
    return tuple(_extents(each) for each in value)


def _extents(value: Any) -> Extents:
    if not isinstance(value, list):
        return ()
    if value and all(isinstance(item, list) for item in value):
        return tuple(_integers(item) for item in value)
    return _integers(value)


def _integers(values: list[Any]) -> tuple[int, ...]:
    return tuple(size for size in values if isinstance(size, int))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(str(each) if isinstance(each, str | int | float) else "" for each in value)
