"""A timeline of launches, stored in columns: a million take forty megabytes."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

import numpy as np


@dataclass(frozen=True)
class Recorded:
    """A framework's operator as a profiler recorded it."""

    name: str
    """aten::mm."""
    dims: tuple[tuple[int, ...], ...]
    """Extents of each tensor argument; empty for other arguments."""
    types: tuple[str, ...] = ()
    """Type of each argument, as the profiler writes it; empty where it did not record types."""
    given: tuple[str, ...] = ()
    """Each argument other than tensors, as text; empty if not recorded."""


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


@dataclass(frozen=True)
class Timeline:
    """Launches in the order of their start."""

    tool: str
    """The profiler."""
    whats: tuple[What, ...]
    """The distinct launches."""
    what: np.ndarray
    """Place in `whats` of each launch, shape (n,)."""
    start: np.ndarray
    """Nanoseconds since some moment, shape (n,)."""
    duration: np.ndarray
    """Nanoseconds, shape (n,)."""
    call: np.ndarray
    """Launches with the same number (from 0) belong to one operator call; -1 to none."""
    device: str = ""
    """The device's name, where the profile says it."""
    on_host: bool = False
    """Whether the host ran the operators itself."""
    notes: tuple[str, ...] = ()
    """Lines about what was left out."""

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


@dataclass
class Columns:
    """The columns of a timeline while a file is read."""

    start: array[float] = field(default_factory=lambda: array("d"))
    """Nanoseconds."""
    duration: array[float] = field(default_factory=lambda: array("d"))
    """Nanoseconds."""
    what: array[int] = field(default_factory=lambda: array("I"))
    """Place in `whats`."""
    call: array[int] = field(default_factory=lambda: array("q"))
    """Operator call; -1: none."""
    whats: dict[What, int] = field(default_factory=dict)
    """The distinct launches and their indices."""

    def add(self, what: What, start: float, duration: float, call: int = -1) -> None:
        """Append one launch."""
        self.what.append(self.whats.setdefault(what, len(self.whats)))
        self.start.append(start)
        self.duration.append(duration)
        self.call.append(call)

    def timeline(
        self, tool: str, *, device: str = "", on_host: bool = False, notes: tuple[str, ...] = ()
    ) -> Timeline:
        """The launches in order of their start."""
        start = np.frombuffer(self.start, dtype=np.float64) if self.start else np.zeros(0)
        order = np.argsort(start, kind="stable")
        return Timeline(
            tool,
            tuple(self.whats),
            np.array(self.what, dtype=np.int64)[order],
            start[order] - (start[order[0]] if len(order) else 0.0),
            np.array(self.duration, dtype=np.float64)[order],
            np.array(self.call, dtype=np.int64)[order],
            device,
            on_host,
            notes,
        )
