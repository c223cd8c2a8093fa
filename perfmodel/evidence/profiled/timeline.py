"""A timeline of launches, stored in columns: a million take forty megabytes."""

from __future__ import annotations

import ast
from array import array
from dataclasses import dataclass, field
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
    ordered: bool = True
    """Whether launches are in the order of the program; sums by kernel have none."""
    clocked: bool = True
    """Whether the time between launches is the program's own."""

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
        self,
        tool: str,
        *,
        device: str = "",
        on_host: bool = False,
        notes: tuple[str, ...] = (),
        ordered: bool = True,
        clocked: bool = True,
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
            ordered,
            clocked,
        )
