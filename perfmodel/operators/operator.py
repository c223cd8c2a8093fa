"""What an operator is: options, problems, which of them one call can time, how long they take."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.hardware import Device
from perfmodel.operators.options import Choice, Multiple, Option, Size
from perfmodel.timing.constants import Constants
from perfmodel.timing.floors import Dispatch
from perfmodel.timing.plan import Estimate
from perfmodel.timing.reuse import Reuses

CHUNK = 4096
"""Problems timed at once: few enough that arrays of problems × menu stay in cache."""


@dataclass(frozen=True)
class Request:
    """How a problem is to be carried out, and how it would be timed."""

    schedule: str = "auto"
    """One of the operator's `schedules`."""
    implementation: str | None = None
    """A class of kernels, or a library's name for one; None: a good library's."""
    harness: str = "kernel"
    """How the run would be timed; "kernel" is device time alone."""
    includes: tuple[str, ...] = ()
    """What else the timed region holds."""
    place: Mapping[str, str] = field(default_factory=dict)
    """The level that an operand lies in, by role or tensor, where that is not the own memory."""
    reuse: Reuses | None = None
    """What earlier kernels left of the inputs in the caches; None: what the run leaves there."""
    mesh: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Axis to the devices that it is split over and the link between them, outermost first."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Tensor or role to the axis that its shards lie along in memory; `whole`: on each device."""
    tile: Mapping[str, Any] = field(default_factory=dict)
    """The caller's own tile by dimension, numbers or arrays of n; empty: a library's menu."""


@dataclass(frozen=True)
class Exchanged:
    """One exchange between devices of n problems, as arrays of length n; or of one, as numbers."""

    kind: str
    """all-reduce, reduce-scatter, all-gather, ring, all-to-all or halo."""
    tensor: str
    """What is exchanged."""
    level: str
    """The link that it crosses."""
    ranks: int
    """Devices that exchange with each other."""
    tensor_bytes: Any
    """Bytes of the whole tensor, as these devices share it."""
    sent_bytes: Any
    """Bytes that each device sends, and receives."""
    seconds: Any
    """What it takes by itself."""

    def at(self, i: int) -> Exchanged:
        """That of the i-th problem."""
        whole, sent, taken = (
            float(v[i]) for v in (self.tensor_bytes, self.sent_bytes, self.seconds)
        )
        return replace(self, tensor_bytes=whole, sent_bytes=sent, seconds=taken)

    def as_dict(self) -> dict[str, Any]:
        """The JSON form, of one problem: the unit in every name that needs one."""
        return {
            "kind": self.kind,
            "tensor": self.tensor,
            "level": self.level,
            "ranks": self.ranks,
            "tensor_bytes": self.tensor_bytes,
            "sent_bytes": self.sent_bytes,
            "time_us": self.seconds * 1e6,
        }


@dataclass(frozen=True)
class Timed:
    """The best schedule of each of n problems, with the floor of the harness added."""

    schedule: str
    """What to call it: tiled, split-kv, unfused ..."""
    implementation: str
    """The class of kernels that ran."""
    seconds: np.ndarray
    """What the harness would report, shape (n,)."""
    estimate: Estimate
    """Terms, operations, bytes and footprint of the kernels."""
    launch_seconds: np.ndarray
    """The harness's share of `seconds`."""
    included_seconds: np.ndarray
    """The share of other kernels in the timed region."""
    tile: Mapping[str, np.ndarray]
    """The tile chosen, by the name of its dimension."""
    assumptions: tuple[str, ...]
    """What was taken for what the device or the caller leaves open."""
    unknowns: Mapping[str, str]
    """Those of the assumptions that widen the range, by what is not known."""
    dispatch: Dispatch
    """What the host does for it, beside or before its kernels."""
    exchanges: tuple[Exchanged, ...] = ()
    """What devices exchange, where the problem is split over several."""
    exchange_seconds: np.ndarray | float = 0.0
    """The share of `seconds` that the kernels wait for it."""


class Operator(ABC):
    """What a user can ask for by name; without state, so that a sweep can send it to others."""

    name: str
    """As the command line and the measured-run table call it."""
    about: str
    """One line."""
    options: tuple[Option, ...]
    """What a user may set, in the order of a sweep's product."""
    schedules: tuple[str, ...] = ("auto",)
    """Names that `Request.schedule` takes."""
    fixed: Mapping[str, Any] = {}
    """Arguments of the problem that the operator's name stands for."""
    multiples: tuple[Multiple, ...] = ()
    """Sizes that must be multiples of others."""
    library: str = ""
    """The operator whose kernels of libraries it has; empty where none is known."""
    fits_by: tuple[str, ...] = ()
    """Sizes that decide whether a tile fits on chip."""
    tile: tuple[str, ...] = ()
    """Dimensions of a tile that a sweep stores a column of."""
    searched: tuple[str, ...] = ()
    """Dimensions of which a tile has some, one problem's others than the next one's."""
    own_tile: tuple[str, ...] = ()
    """Dimensions of a tile that a caller may set in place of a library's menu."""
    chunk: int = CHUNK
    """Problems timed at once."""

    @abstractmethod
    def problem(self, **given: Any) -> Problem:
        """The problem with these values; raises `ProblemError` for what has no meaning."""

    @abstractmethod
    def time(
        self, problem: Problem, device: Device, constants: Constants, request: Request
    ) -> Timed:
        """Time problems that are alike (`same_call`).

        Raises `ProblemError` for a schedule, harness or type that is not there, and where nothing
        fits on chip.
        """

    def same_call(self, sizes: Mapping[str, Any]) -> np.ndarray | None:
        """A code for each of the problems with these values: those that share one can be one call.

        None where all can. Values are arrays or plain; what is missing has its default.
        """
        return None

    def meaningless(self, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Which combinations of sizes are no problem, as a mask; see `multiples`."""
        found = np.zeros(max((v.size for v in sizes.values()), default=1), dtype=bool)
        for item in self.multiples:
            found |= sizes[item.size] % np.maximum(sizes[item.of], 1) != 0
        return found

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """The problems that a row of the measured-run table runs one after another.

        `row` has what no size is (dtype, direction, variant ...), `sizes` arrays of the columns.
        """
        given = {name: sizes[name] for name in self.measured_sizes if name in sizes}
        chosen = {item.name: row[item.name] or None for item in self.choices if item.name in row}
        return [self.problem(**self.fixed, **given, **chosen)]

    def least(self, name: str) -> int:
        """The smallest value of a size."""
        return next((item.least for item in self.sizes if item.name == name), 1)

    @property
    def measured_sizes(self) -> tuple[str, ...]:
        """Sizes that the measured-run table has a column of."""
        return tuple(item.name for item in self.sizes)

    def family(self, problem: Problem) -> str:
        """The row of the table of ranges that a problem belongs to."""
        return self.name

    def called_as(self, problem: Problem) -> str:
        """The operator whose launch floor a problem has."""
        return self.name

    @property
    def sizes(self) -> tuple[Size, ...]:
        """The options that are sizes of the problem."""
        return tuple(item for item in self.options if isinstance(item, Size) and item.argument)

    @property
    def needed(self) -> tuple[str, ...]:
        """Sizes that a measured run must state; the others have defaults."""
        return tuple(item.name for item in self.sizes)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The options that are names."""
        return tuple(item for item in self.options if isinstance(item, Choice))


def groups(codes: np.ndarray | None, n: int) -> Sequence[np.ndarray]:
    """Places of the n problems that share a code, the smallest code first."""
    if codes is None:
        return [np.arange(n)]
    spread = np.broadcast_to(codes, (n,))
    # Not np.unique: it loads numpy.ma, which a single prediction can do without.
    return [np.flatnonzero(spread == value) for value in sorted(set(spread.tolist()))]
