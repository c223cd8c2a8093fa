"""What an operator is: its options, its problems, which of them one call times, and their time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from typing import Annotated, Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.columns import Column, Result
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.operators.options import Choice, Multiple, Option, Size
from perfmodel.timing.constants import Constants
from perfmodel.timing.floors import Dispatch
from perfmodel.timing.plan import Estimate
from perfmodel.timing.reuse import Reuses

CHUNK = 4096
"""Problems timed at once: few enough that arrays of problems × menu stay in the CPU's cache."""


@dataclass(frozen=True)
class Request:
    """How a problem is carried out and timed."""

    schedule: str = "auto"
    """One of the operator's `schedules`."""
    implementation: str | None = None
    """A class of kernels, or a library's name for one; None: a good library's."""
    harness: str = "kernel"
    """How the run is timed; "kernel" is device time alone."""
    includes: tuple[str, ...] = ()
    """Other kernels in the timed region."""
    place: Mapping[str, str] = field(default_factory=dict)
    """The level that an operand lies in, by role or tensor; the device's own memory if missing."""
    reuse: Reuses | None = None
    """What earlier kernels left of the inputs in the caches; None: what an earlier run leaves
    there."""
    mesh: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """Axis to the devices that it is split over and the link between them, outermost first."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """Tensor or role to the axis that its shards lie along in memory; `whole`: every device has
    all."""
    tile: Mapping[str, Any] = field(default_factory=dict)
    """The caller's own tile by dimension, numbers or arrays of n; empty: a library's menu."""


@dataclass(frozen=True)
class Exchanged(Result):
    """One exchange between devices: arrays of length n, or numbers for one problem."""

    kind: Annotated[str, Column()]
    """all-reduce, reduce-scatter, all-gather, ring, all-to-all or halo."""
    tensor: Annotated[str, Column()]
    """Name of the tensor."""
    level: Annotated[str, Column()]
    """The link that it crosses."""
    ranks: Annotated[int, Column()]
    """Devices that exchange with each other."""
    tensor_bytes: Annotated[Any, Column()]
    """Bytes of the whole tensor that these devices share."""
    sent_bytes: Annotated[Any, Column()]
    """Bytes that each device sends; it receives as many."""
    seconds: Annotated[Any, Column(key="time_us", scale=1e6)]
    """Seconds of the exchange alone."""

    def at(self, i: int) -> Exchanged:
        """The exchange of the i-th problem."""
        tensor_bytes, sent_bytes, seconds = (
            float(v[i]) for v in (self.tensor_bytes, self.sent_bytes, self.seconds)
        )
        return replace(self, tensor_bytes=tensor_bytes, sent_bytes=sent_bytes, seconds=seconds)


@dataclass(frozen=True)
class Timed:
    """The best schedule of each of n problems, with the launch floor of the harness added."""

    schedule: str
    """Name of the schedule: tiled, split-kv, unfused ..."""
    implementation: str
    """The class of kernels."""
    seconds: np.ndarray
    """Time that the harness would report, shape (n,)."""
    estimate: Estimate
    """Terms, operations, bytes and footprint of the kernels."""
    launch_seconds: np.ndarray
    """The harness's share of `seconds`."""
    included_seconds: np.ndarray
    """The share of `seconds` of other kernels in the timed region."""
    tile: Mapping[str, np.ndarray]
    """The chosen tile, by the name of its dimension."""
    assumptions: tuple[str, ...]
    """Values that were assumed where device or caller leave them open, a sentence each."""
    unknowns: Mapping[str, str]
    """The assumptions that widen the range, by what is unknown."""
    dispatch: Dispatch
    """Host work for it, in parallel with or before its kernels."""
    exchanges: tuple[Exchanged, ...] = ()
    """Exchanges between devices, where the problem is split over several."""
    exchange_seconds: np.ndarray | float = 0.0
    """The share of `seconds` that kernels wait for exchanges."""

    def then(self, other: Timed) -> Timed:
        """This run and another one after it: the backward pass after the forward pass."""
        return Timed(
            schedule=" + ".join(dict.fromkeys((self.schedule, other.schedule))),
            implementation=self.implementation,
            seconds=self.seconds + other.seconds,
            estimate=self.estimate.plus(other.estimate),
            launch_seconds=self.launch_seconds + other.launch_seconds,
            included_seconds=self.included_seconds + other.included_seconds,
            tile={},
            assumptions=tuple(dict.fromkeys((*self.assumptions, *other.assumptions))),
            unknowns={**other.unknowns, **self.unknowns},
            dispatch=Dispatch(
                *(
                    getattr(self.dispatch, item.name) + getattr(other.dispatch, item.name)
                    for item in fields(Dispatch)
                )
            ),
            exchanges=(*self.exchanges, *other.exchanges),
            exchange_seconds=self.exchange_seconds + other.exchange_seconds,
        )


@dataclass(frozen=True)
class Launched:
    """A kernel of a chain at the sizes of its problems."""

    operator: Operator
    """Its operator."""
    problem: Problem
    """Its problems."""
    kernel: str | None
    """The kernel that runs it; None: a good library's."""
    times: Any = 1
    """How often each problem launches it: an array of length n, or a number."""


class Operator(ABC):
    """What a user can predict by name. Stateless, so that a sweep can send it to other
    processes."""

    name: str
    """Name on the command line and in the measured-run table."""
    about: str
    """One line of description."""
    options: tuple[Option, ...]
    """Options of the user, in the order of a sweep's product."""
    schedules: tuple[str, ...] = ("auto",)
    """Names that `Request.schedule` takes."""
    fixed: Mapping[str, Any] = {}
    """Arguments of the problem that the operator's name implies."""
    multiples: tuple[Multiple, ...] = ()
    """Sizes that must be multiples of others."""
    library: str = ""
    """The operator whose library kernels it uses; empty where none is known."""
    fits_by: tuple[str, ...] = ()
    """Sizes that decide whether a tile fits on chip."""
    tile: tuple[str, ...] = ()
    """Dimensions of a tile that a sweep stores, one column each."""
    searched: tuple[str, ...] = ()
    """Dimensions of which a tile has only some, which differ from problem to problem."""
    own_tile: tuple[str, ...] = ()
    """Dimensions of a tile that a caller may set instead of using a library's menu."""
    chunk: int = CHUNK
    """Problems timed at once."""
    free_sizes: tuple[str, ...] = ()
    """Sizes that may differ between the problems of one call: the arrays of compiled code. Empty:
    none is compiled."""

    @abstractmethod
    def problem(self, **given: Any) -> Problem:
        """The problem with these values. Raises `ProblemError` for values without meaning."""

    @abstractmethod
    def time(
        self, problem: Problem, device: Device, constants: Constants, request: Request
    ) -> Timed:
        """Time problems with one `same_call` code.

        Raises `ProblemError` for an unknown schedule, harness or type, and where nothing fits on
        chip.
        """

    def launches(self, problem: Problem, device: Device, request: Request) -> list[Launched]:
        """The problems of other operators that a library launches for it: of an operator with
        kernels of its own, itself."""
        return [Launched(self, problem, request.implementation)]

    def at_once(self, request: Request) -> int:
        """Problems timed at once for such a request."""
        return self.chunk

    def routes(self, problem: Any, device: Device, request: Request) -> np.ndarray | None:
        """A code for each problem: problems with different ones run on different kernels of a
        library. None: all run on one."""
        return None

    def same_call(self, sizes: Mapping[str, Any]) -> np.ndarray | None:
        """A code for each problem: one call can time the problems that share it.

        None where one call can time all. Values are arrays or plain; missing ones have their
        defaults.
        """
        return None

    def meaningless(self, sizes: Mapping[str, np.ndarray]) -> np.ndarray:
        """Mask of the combinations of sizes that are not a problem; see `multiples`."""
        mask = np.zeros(max((v.size for v in sizes.values()), default=1), dtype=bool)
        for item in self.multiples:
            mask |= sizes[item.size] % np.maximum(sizes[item.of], 1) != 0
        return mask

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """The problems that a row of the measured-run table runs one after another.

        `row` has the values that are not sizes (dtype, direction, variant ...), `sizes` has arrays
        of the columns.
        """
        values = {name: sizes[name] for name in self.measured_sizes if name in sizes}
        choices = {item.name: row[item.name] or None for item in self.choices if item.name in row}
        return [self.problem(**self.fixed, **values, **choices)]

    def least(self, name: str) -> int:
        """The smallest value of a size."""
        return next((item.least for item in self.sizes if item.name == name), 1)

    @property
    def measured_shares(self) -> tuple[str, ...]:
        """Numbers with a column in the measured-run table that need not be whole."""
        return ()

    @property
    def measured_sizes(self) -> tuple[str, ...]:
        """Sizes with a column in the measured-run table."""
        return tuple(item.name for item in self.sizes)

    def family(self, problem: Problem) -> str:
        """The row of a problem in the table of ranges."""
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
        """Sizes that a measured run must state; the rest have defaults."""
        return tuple(item.name for item in self.sizes)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The options that are names."""
        return tuple(item for item in self.options if isinstance(item, Choice))


def groups(codes: np.ndarray | None, n: int) -> Sequence[np.ndarray]:
    """Indices of the n problems by code, the smallest code first."""
    if codes is None or np.all(codes == np.ravel(codes)[:1]):
        return [np.arange(n)]
    spread = np.broadcast_to(codes, (n,))
    # Not np.unique: it loads numpy.ma, which a single prediction does not need.
    return [np.flatnonzero(spread == value) for value in sorted(set(spread.tolist()))]
