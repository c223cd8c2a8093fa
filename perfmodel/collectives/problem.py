"""A collective as a problem: its kind, bytes and ranks, independent of links."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName

if TYPE_CHECKING:
    from perfmodel.collectives.collectiveprediction import CollectivePredictions
    from perfmodel.hardware import System

OPS = (
    "all-reduce", "reduce-scatter", "all-gather", "all-to-all", "broadcast", "reduce",
    "send-receive",
)  # fmt: skip
"""Every kind of collective."""

SUMS = ("all-reduce", "reduce-scatter", "reduce")
"""Collectives that add up the ranks' elements."""

MOST_RANKS = 2**20
"""Limit on ranks, above any system's."""


@dataclass(frozen=True)
class Collective:
    """One exchange among ranks, or arrays of such exchanges, all of one length."""

    op: str
    """One of `OPS`."""
    bytes: int | np.ndarray
    """Bytes of the full tensor.

    All-gather: what every rank holds afterwards; reduce-scatter: before. All-reduce: the buffer.
    All-to-all: one rank's whole send buffer. Send, broadcast, reduce: the message.
    """
    ranks: int | np.ndarray
    """Devices that take part."""
    ranks_per_node: int | np.ndarray | None = None
    """How many of them are in one node; None: nodes are filled."""
    dtype: str = "bf16"
    """Type of the elements; a switch reduces only some types."""
    stride: int = 1
    """Devices from one rank to the next. Those between them have exchanges of their own at the same
    time, with which they share what leaves a leaf switch."""

    def __post_init__(self) -> None:
        if self.op not in OPS:
            raise UnknownName("collective", self.op, OPS)
        element(self.dtype)
        _check_least("bytes", self.bytes, 0)
        _check_least("ranks", self.ranks, 1)
        if self.ranks_per_node is not None:
            _check_least("ranks per node", self.ranks_per_node, 1)
        _check_least("stride", self.stride, 1)
        if np.any(np.asarray(self.ranks) > MOST_RANKS):
            raise ProblemError(f"{np.max(self.ranks)} ranks are more than {MOST_RANKS:,}")
        if self.op == "send-receive" and np.any(np.asarray(self.ranks) > 2):
            raise ProblemError(
                f"send-receive is between two ranks, not {np.max(self.ranks)}; write 2 ranks, or "
                "all-to-all"
            )

    def predicted(self, machine: System, **options: Any) -> CollectivePredictions:
        """Its time on a system; `options` as for `predict_collective`."""
        from perfmodel.collectives.collectivetime import predict_collective

        return predict_collective(self, machine, **options)

    def seconds_on(self, system: System, **options: Any) -> tuple[float, float, float]:
        """Seconds of one exchange on a system: predicted, and both ends of its 80 % range."""
        times = self.predicted(system, **options)
        low, high = float(times.low_seconds[0]), float(times.high_seconds[0])
        return float(times.seconds[0]), low, high

    def __len__(self) -> int:
        return max(np.size(value) for value in self._values())

    @property
    def sums(self) -> bool:
        """Whether ranks' elements are added up."""
        return self.op in SUMS

    def spread(self) -> Collective:
        """A copy with every value as an array of one length.

        Raises `ProblemError` for arrays of different lengths.
        """
        n, values = len(self), self._values()
        if any(np.size(value) not in (1, n) for value in values):
            raise ProblemError("bytes, ranks and ranks per node are arrays of one length, or plain")
        bytes_, ranks, *local = (
            np.broadcast_to(np.asarray(value).reshape(-1), (n,)) for value in values
        )
        return replace(self, bytes=bytes_, ranks=ranks, ranks_per_node=local[0] if local else None)

    def _values(self) -> list[int | np.ndarray]:
        """Bytes, ranks and, if given, ranks of a node."""
        local = () if self.ranks_per_node is None else (self.ranks_per_node,)
        return [self.bytes, self.ranks, *local]


def bus_factor(op: str, ranks: Number) -> Number:
    """Bus bandwidth over bytes per second (nccl-tests, doc/PERFORMANCE.md).

    2(P − 1)/P for an all-reduce; (P − 1)/P for gathers, scatters and all-to-alls; 1 for the rest.
    It is the traffic of each rank's link under an algorithm that sends no byte twice.
    """
    if op == "all-reduce":
        return 2 * (ranks - 1) / ranks
    return (ranks - 1) / ranks if op in ("reduce-scatter", "all-gather", "all-to-all") else 1.0


def _check_least(name: str, value: object, least: int) -> None:
    array = np.asarray(value)
    if array.size == 0 or array.dtype.kind not in "iuf" or not np.all(np.isfinite(array)):
        raise ProblemError(f"{name} must be numbers, not {value!r}")
    if np.any(array < least):
        raise ProblemError(f"{name} must be at least {least}, not {array.min()}; raise it")
    if name != "bytes" and np.any(array != np.floor(array)):
        raise ProblemError(f"{name} must be whole numbers, not {value!r}")
