"""torch.profiler's trace (`export_chrome_trace`, `record_shapes=True`).

Kineto writes Chrome's Trace Event Format: complete events ("ph": "X") with microseconds in `ts` and
`dur`. Categories: cpu_op (an operator on the host, with "Input Dims", "Input type", "Concrete
Inputs" and "External id"), cuda_runtime and cuda_driver (a launch, with "correlation"), kernel
(with "correlation", "External id", "grid", "block"), gpu_memcpy, gpu_memset.

A kernel belongs to the operator of its external id, or else to the innermost operator that was
running on the launching thread. In a trace without kernels the host ran the operators. The
outermost operator with a known problem (`operations.yaml`) then counts with its whole time, and any
other operator with its exclusive time.
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.evidence.profiled import jsonstream, operations
from perfmodel.evidence.profiled.timeline import (
    Columns,
    Exchange,
    Extents,
    Recorded,
    Timeline,
    What,
)

TOOL = "torch.profiler"
_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
_CALLS = ("cuda_runtime", "cuda_driver")
_MOST = 1e18  # microseconds: no time of a trace is larger
_NANO = 1e3


class _Trace:
    """A trace while it is read: the needed fields of each event, in columns."""

    def __init__(self) -> None:
        self.operators: dict[Recorded, int] = {}
        self.op = array("I")
        self.op_start, self.op_end = array("d"), array("d")
        self.op_thread, self.op_id = array("q"), array("q")
        self.threads: dict[Any, int] = {}
        self.launch, self.launch_start = array("q"), array("d")
        self.launch_thread = array("q")
        self.kernels = Columns()
        self.kernel_id, self.kernel_launch = array("q"), array("q")
        self.skipped = 0
        self.unshaped = 0

    def event(self, each: Mapping[str, Any]) -> None:
        """Add an event."""
        if each.get("ph") != "X":
            return
        category = each.get("cat")
        if category not in ("cpu_op", *_KERNELS, *_CALLS):
            return
        name, start, duration = each.get("name"), _time(each.get("ts")), _time(each.get("dur", 0))
        arguments = each.get("args")
        arguments = arguments if isinstance(arguments, Mapping) else {}
        if not isinstance(name, str) or start is None or duration is None:
            self.skipped += 1
        elif category == "cpu_op":
            self._operator(name, start, duration, self._thread(each), arguments)
        elif category in _CALLS:
            self.launch.append(_number(arguments.get("correlation")))
            self.launch_start.append(start)
            self.launch_thread.append(self._thread(each))
        else:
            recorded = Recorded(name, moved_bytes=_moved(arguments), exchange=_exchange(arguments))
            stated = recorded if recorded.moved_bytes or recorded.exchange else None
            grid, block = _sizes(arguments.get("grid")), _sizes(arguments.get("block"))
            what = What(name, stated, grid, block)
            self.kernels.add(what, start * _NANO, duration * _NANO, -1)
            self.kernel_id.append(_id(arguments))
            self.kernel_launch.append(_number(arguments.get("correlation")))

    def _thread(self, each: Mapping[str, Any]) -> int:
        key = (_key(each.get("pid")), _key(each.get("tid")))
        return self.threads.setdefault(key, len(self.threads))

    def _operator(
        self, name: str, start: float, duration: float, thread: int, given: Mapping[str, Any]
    ) -> None:
        recorded = Recorded(
            name,
            _dims(given.get("Input Dims")),
            _texts(given.get("Input type")),
            _texts(given.get("Concrete Inputs")),
            _dims(given.get("Input Strides")),
            _moved(given),
            _exchange(given),
        )
        self.unshaped += "Input Dims" not in given
        self.op.append(self.operators.setdefault(recorded, len(self.operators)))
        self.op_start.append(start)
        self.op_end.append(start + duration)
        self.op_thread.append(thread)
        self.op_id.append(_id(given))


def read(path: str | Path) -> Timeline:
    """Every kernel of a trace, or every operator where no device ran any; raises `TableError`."""
    trace = _Trace()
    notes: list[str] = []
    for each in jsonstream.events(path, notes):
        trace.event(each)
    if trace.kernels.start:
        return _on_device(trace, [*notes, *_skipped(trace)])
    if not trace.op:
        short = ", and the trace is cut short" if notes else ""
        raise TableError(f"{path}: no operator and no kernel{short}; profile with torch.profiler")
    notes += _skipped(trace)
    if trace.unshaped > len(trace.op) / 2:
        notes.append("operators have no shapes: profile with record_shapes=True")
    return _on_host(trace, notes)


def _skipped(trace: _Trace) -> list[str]:
    return [f"{trace.skipped} events without a name or a time left out"] if trace.skipped else []


# ---- Kernels and the operators that launched them ------------------------------------------------


def _on_device(trace: _Trace, notes: list[str]) -> Timeline:
    """Kernels, each with the operator that launched it."""
    operators = tuple(trace.operators)
    calls = _calls(trace)
    columns, whats = Columns(), tuple(trace.kernels.whats)
    for i, call in enumerate(calls.tolist()):
        what = whats[trace.kernels.what[i]]
        launched_by = operators[trace.op[call]] if call >= 0 else None
        columns.add(
            What(what.kernel, what.recorded or launched_by, what.grid, what.block),
            trace.kernels.start[i],
            trace.kernels.duration[i],
            call,
        )
    return columns.timeline(TOOL, notes=tuple(notes))


def _calls(trace: _Trace) -> np.ndarray:
    """The index of each kernel's operator; -1 if unknown."""
    found = np.full(len(trace.kernel_id), -1, dtype=np.int64)
    if not trace.op:
        return found
    place = _places(np.array(trace.op_id, dtype=np.int64), np.array(trace.kernel_id, np.int64))
    found[place >= 0] = place[place >= 0]
    left = np.flatnonzero(place < 0)
    launches = np.array(trace.launch, dtype=np.int64)
    by = _places(launches, np.array(trace.kernel_launch, dtype=np.int64)[left])
    known = by >= 0
    if known.any():
        moments = [(trace.launch_start[i], trace.launch_thread[i]) for i in by[known].tolist()]
        found[left[known]] = _innermost(trace, moments)
    return found


def _places(keys: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The index in `keys` of each wanted number above 0; -1 if it is not there."""
    if not len(keys):
        return np.full(len(wanted), -1, dtype=np.int64)
    order = np.argsort(keys, kind="stable")
    place = np.minimum(np.searchsorted(keys[order], wanted), len(keys) - 1)
    hit = (wanted > 0) & (keys[order][place] == wanted)
    return np.where(hit, order[place], -1)


def _innermost(trace: _Trace, moments: list[tuple[float, int]]) -> np.ndarray:
    """The innermost operator that runs on a thread at each moment."""
    threads = np.array(trace.op_thread, dtype=np.int64)
    start, end = (np.array(column) for column in (trace.op_start, trace.op_end))
    found = np.full(len(moments), -1, dtype=np.int64)
    by: dict[int, list[tuple[float, int]]] = {}
    for i, (moment, thread) in enumerate(moments):
        by.setdefault(thread, []).append((moment, i))
    for thread, asked in by.items():
        mine = np.flatnonzero(threads == thread)
        mine = mine[np.lexsort((-end[mine], start[mine]))]
        stack: list[int] = []
        place = 0
        for moment, i in sorted(asked):
            while place < len(mine) and start[mine[place]] <= moment:
                stack.append(int(mine[place]))
                place += 1
            while stack and end[stack[-1]] < moment:
                stack.pop()
            alive = [op for op in stack if end[op] >= moment]
            found[i] = alive[-1] if alive else -1
    return found


# ---- Operators that the host ran -----------------------------------------------------------------


def _on_host(trace: _Trace, notes: list[str]) -> Timeline:
    """Operators with a problem count with their whole time, which includes all nested operators.

    Other operators count with their exclusive time.
    """
    operators = tuple(trace.operators)
    solid = np.array([operations.problem(each) is not None for each in operators])
    thread, op = (np.array(c, dtype=np.int64) for c in (trace.op_thread, trace.op))
    start, end = (np.array(column) for column in (trace.op_start, trace.op_end))
    columns = Columns()
    stack: list[
        list[Any]
    ] = []  # end, start, operator, time of nested operators, inside one with a problem

    def close() -> None:
        ended, begun, which, inside, within = stack.pop()
        spent = ended - begun
        if stack:
            stack[-1][3] += spent
        if within:
            return
        own = spent if solid[which] else max(spent - inside, 0.0)
        if own > 0:
            columns.add(What(operators[which].name, operators[which]), begun * _NANO, own * _NANO)

    for which in sorted({int(t) for t in thread}):
        mine = np.flatnonzero(thread == which)
        for i in mine[np.lexsort((-end[mine], start[mine]))].tolist():
            while stack and stack[-1][0] <= start[i]:
                close()
            within = bool(stack) and (stack[-1][4] or bool(solid[stack[-1][2]]))
            stack.append([end[i], start[i], int(op[i]), 0.0, within])
        while stack:
            close()
    return columns.timeline(TOOL, on_host=True, notes=tuple(notes))


# ---- What events hold ----------------------------------------------------------------------------


def _time(value: Any) -> float | None:
    """Microseconds; None for what is no number."""
    found = jsonstream.real(value)
    return found if found is not None and -_MOST < found < _MOST else None


def _key(value: Any) -> int | str | None:
    return value if isinstance(value, int | str) else None


def _number(value: Any) -> int:
    """The number that links events; 0 for none."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        value = int(value)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and 0 < value < 2**62 else 0


def _id(arguments: Mapping[str, Any]) -> int:
    return _number(arguments.get("External id", arguments.get("external id")))


def _sizes(value: Any) -> tuple[int, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(size for size in value if isinstance(size, int))[:3]


def _moved(arguments: Mapping[str, Any]) -> float:
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
        return tuple(_whole(item) for item in value)
    return _whole(value)


def _whole(values: list[Any]) -> tuple[int, ...]:
    return tuple(size for size in values if isinstance(size, int))


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(str(each) if isinstance(each, str | int | float) else "" for each in value)
