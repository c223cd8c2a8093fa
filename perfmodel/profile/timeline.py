"""A profile as it was read: launches in columns (a million take forty megabytes), and ranges."""

from __future__ import annotations

import ast
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.hardware import Device

Extents = tuple[int, ...] | tuple[tuple[int, ...], ...]
"""Extents of a tensor, or of each tensor of a list."""


@dataclass(frozen=True)
class Exchange:
    """A collective as a profiler recorded it."""

    op: str
    """The framework's name of it: allreduce, _allgather_base."""
    sent_elements: int
    """Elements of this rank's input."""
    received_elements: int
    """Elements of this rank's output."""
    dtype: str = ""
    """Type of the elements, as the profiler writes it."""
    ranks: int = 0
    """Devices that take part; 0 where it was not recorded."""


@dataclass(frozen=True)
class Recorded:
    """A framework's operator as a profiler recorded it."""

    name: str
    """aten::mm."""
    dims: tuple[Extents, ...] = ()
    """Extents of each argument that is a tensor or a list of tensors; empty for others."""
    types: tuple[str, ...] = ()
    """Type of each argument, as the profiler writes it; empty where it did not record types."""
    given: tuple[str, ...] = ()
    """Each argument other than tensors, as text; empty if not recorded."""
    strides: tuple[Extents, ...] = ()
    """Strides of each tensor argument, in elements; empty if not recorded."""
    moved_bytes: float = 0.0
    """Bytes that the compiler of a kernel says it moves; 0 where it says nothing."""
    exchange: Exchange | None = None
    """The collective that it is."""

    def extents(self, place: int) -> tuple[int, ...]:
        """Extents of a tensor. Raises `IndexError` for no argument, `ValueError` for a list."""
        return _sizes(self.dims[place])

    def tensors(self, place: int) -> tuple[tuple[int, ...], ...]:
        """Extents of each tensor of a list, or of a tensor alone. Raises `IndexError`."""
        extents = self.dims[place]
        lists = tuple(each for each in extents if isinstance(each, tuple))
        return lists if len(lists) == len(extents) else (_sizes(extents),)

    def is_list(self, place: int) -> bool:
        """Whether an argument is a list of tensors."""
        extents = self.dims[place]
        return bool(extents) and isinstance(extents[0], tuple)

    def argument(self, place: int | None) -> Any:
        """An argument that is no tensor, as a value; None where it is not recorded."""
        text = self.given[place] if place is not None and place < len(self.given) else ""
        try:
            return ast.literal_eval(text) if text and len(text) < _LONGEST else None
        except (SyntaxError, ValueError):
            return None


_LONGEST = 200  # characters of an argument


def _sizes(extents: Extents) -> tuple[int, ...]:
    sizes = tuple(size for size in extents if isinstance(size, int))
    if len(sizes) != len(extents):
        raise ValueError("a list of tensors")
    return sizes


@dataclass(frozen=True)
class What:
    """The identity of a launch: launches with equal values are taken as the same."""

    kernel: str
    """The kernel's name, or the operator's if the host ran it."""
    recorded: Recorded | None = None
    """The operator that launched it, where the profile has shapes."""
    grid: tuple[int, ...] = ()
    """Blocks in each direction, where known."""
    block: tuple[int, ...] = ()
    """Threads of a block in each direction, where known."""
    ranges: tuple[str, ...] = ()
    """Ranges around it, outermost first, where the profiler names them with the launch."""
    is_copy: bool = False
    """Whether it is a copy or fill of memory, which no kernel does."""


@dataclass(frozen=True)
class Instance:
    """The runs of one range that is named after a case."""

    label: str
    """The range."""
    seconds: float
    """Time of one run."""
    kernel: str
    """Its first kernel."""
    launches: int
    """Launches of one run."""
    repeats: int = 1
    """Runs."""


@dataclass(frozen=True)
class Timeline:
    """Launches in the order of their start; those without times stand last."""

    tool: str
    """The profiler."""
    whats: tuple[What, ...]
    """The distinct launches."""
    what: np.ndarray
    """Place in `whats` of each launch, shape (n,)."""
    start: np.ndarray
    """Nanoseconds since some moment, shape (n,)."""
    duration: np.ndarray
    """Nanoseconds, shape (n,); NaN where no time was recorded."""
    call: np.ndarray
    """Launches with the same number (from 0) belong to one operator call; -1 to none."""
    device: str = ""
    """The device's name, where the profile says it."""
    on_host: bool = False
    """Whether the host ran the operators itself."""
    notes: tuple[str, ...] = ()
    """Lines about what was left out."""
    ordered: bool = True
    """Whether launches are in the order of the program; sums by kernel have none."""
    clocked: bool = True
    """Whether the time between launches is the program's own."""
    metrics: Sequence[Mapping[str, float]] = ()
    """Counters of each launch as the profiler calls them, in SI units; empty without counters."""
    instances: tuple[Instance, ...] = ()
    """Runs of ranges that are named after cases."""
    fault: str = ""
    """What is wrong with the first damaged launch; empty where none is."""

    def timed(self, where: str) -> Timeline:
        """The launches with times, and a line about the others; raises `TableError` for none."""
        mask = np.isfinite(self.duration)
        if not mask.any():
            if len(mask):
                raise TableError(
                    f"{where}: no launch has a time; ask ncu for gpu__time_duration.sum, and "
                    "export other profiles again"
                )
            raise TableError(f"{where}: no kernel was launched while it was profiled")
        if mask.all():
            return self
        names = ("what", "start", "duration", "call")
        columns: dict[str, Any] = {name: getattr(self, name)[mask] for name in names}
        notes = (*self.notes, f"{int((~mask).sum())} launches without times left out")
        return replace(self, notes=notes, **columns)

    @property
    def busy_ns(self) -> float:
        """Nanoseconds in which anything ran: overlapping launches count once."""
        if not len(self.start):
            return 0.0
        ends = np.maximum.accumulate(self.start + self.duration)
        gaps = np.maximum(self.start[1:] - ends[:-1], 0.0)
        return float(ends[-1] - self.start[0] - gaps.sum())

    @property
    def span_ns(self) -> float:
        """Nanoseconds from the first start to the last end."""
        if not len(self.start):
            return 0.0
        return float((self.start + self.duration).max() - self.start[0])


def check_host(where: str, device: Device) -> None:
    """Raise `TableError` where a profile of the host alone would be taken as a GPU's."""
    if device.kind != "cpu":
        raise TableError(
            f"{where}: the host ran every operator, and no kernel of a device was recorded, so "
            f"nothing is to be said of {device.slug}; profile where the GPU is with "
            "activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], or name a CPU by --device"
        )


class Columns:
    """The columns of a timeline while a file is read."""

    def __init__(self) -> None:
        self.start, self.duration = array("d"), array("d")
        """Nanoseconds."""
        self.what, self.call = array("I"), array("q")
        """Place in `whats`; the operator call, -1 for none."""
        self.whats: dict[What, int] = {}
        """The distinct launches and their indices."""
        self.fault = ""

    def add(
        self, what: What, start: float, duration: float, call: int = -1, fault: str = ""
    ) -> None:
        """Append one launch; with a `fault` it is damaged, and has no time."""
        self.what.append(self.whats.setdefault(what, len(self.whats)))
        self.start.append(math.nan if fault else start)
        self.duration.append(math.nan if fault else duration)
        self.call.append(call)
        self.fault = self.fault or fault

    def timeline(self, tool: str, **facts: Any) -> Timeline:
        """The launches in order of their start; `facts` are other fields of the timeline."""
        start = np.array(self.start, dtype=np.float64)
        order = np.argsort(start, kind="stable")
        return Timeline(
            tool,
            tuple(self.whats),
            np.array(self.what, dtype=np.int64)[order],
            start[order] - (start[order[0]] if len(order) else 0.0),
            np.array(self.duration, dtype=np.float64)[order],
            np.array(self.call, dtype=np.int64)[order],
            fault=self.fault,
            **facts,
        )


def innermost(
    starts: np.ndarray, ends: np.ndarray, threads: np.ndarray, moments: Sequence[tuple[float, int]]
) -> np.ndarray:
    """The innermost span that is open on a thread at each (time, thread); -1 for none.

    Spans of a thread are nested, or lie one after another.
    """
    spans = np.full(len(moments), -1, dtype=np.int64)
    by_thread: dict[int, list[tuple[float, int]]] = {}
    for i, (moment, thread) in enumerate(moments):
        by_thread.setdefault(thread, []).append((moment, i))
    for thread, times in by_thread.items():
        rows = np.flatnonzero(threads == thread)
        rows = rows[np.lexsort((-ends[rows], starts[rows]))]
        stack: list[int] = []
        cursor = 0
        for moment, i in sorted(times):
            while cursor < len(rows) and starts[rows[cursor]] <= moment:
                stack.append(int(rows[cursor]))
                cursor += 1
            while stack and ends[stack[-1]] < moment:
                stack.pop()
            spans[i] = next((span for span in reversed(stack) if ends[span] >= moment), -1)
    return spans
