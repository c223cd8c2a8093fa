"""Times of kernels by the time model, each distinct problem once; and transport between devices: a
link with bandwidth and latency, or the collectives of a system.

Times of transport are arrays of three: predicted, low end, high end. A link has one time, by the
α–β model of `perfmodel.timing.exchange`. A system's collectives have the ranges of
`perfmodel.collectives`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from perfmodel.algorithms import Attention, Problem, Rowwise
from perfmodel.collectives import Collective, predict_collective
from perfmodel.count.exchanges import Exchange
from perfmodel.hardware import Device, System
from perfmodel.predict import predict_arrays
from perfmodel.timing import exchange as timing
from perfmodel.timing.machine import Link


class Carrier(Protocol):
    """Times of exchanges between devices."""

    def exchange_seconds(self, exchange: Exchange) -> np.ndarray:
        """Seconds of one exchange by itself, shape (3,)."""
        ...

    def send_seconds(self, sent_bytes: float) -> np.ndarray:
        """Seconds of one message from every device of a ring to the next, shape (3,)."""
        ...


@dataclass(frozen=True)
class OverLink:
    """One kind of link between any two devices."""

    link: Link
    """Bytes per second in one direction, and latency of a message."""

    def exchange_seconds(self, exchange: Exchange) -> np.ndarray:
        """An all-reduce takes 2⌈log₂ p⌉ steps in two trees, with the bytes of a ring.

        Source: Sanders, Speck & Träff, Two-tree algorithms for full bandwidth broadcast, reduction
        and scan, 2009. With two or three devices a ring has no more steps.
        """
        seconds = timing.seconds(exchange, self.link)
        if exchange.kind == "all-reduce":
            saving = exchange.steps - min(exchange.steps, 2 * math.ceil(math.log2(exchange.ranks)))
            seconds = seconds - saving * self.link.latency_seconds
        return np.full(3, float(seconds))

    def send_seconds(self, sent_bytes: float) -> np.ndarray:
        """Latency, plus bytes over bandwidth."""
        return np.full(3, self.link.latency_seconds + sent_bytes / self.link.bytes_per_s)


@dataclass(frozen=True)
class OverSystem:
    """The collectives of a system."""

    system: System
    """Devices and the links between them."""
    ranks_per_node: int | None = None
    """Devices of a group in one node; None: nodes are full."""

    def exchange_seconds(self, exchange: Exchange) -> np.ndarray:
        """The collective of the same name; the keys of a ring as an all-gather."""
        op = "all-gather" if exchange.kind == "ring" else exchange.kind
        share = exchange.ranks if op == "all-to-all" else 1  # one rank's buffer
        return self._seconds(op, exchange.tensor_bytes / share, int(exchange.ranks))

    def send_seconds(self, sent_bytes: float) -> np.ndarray:
        """A message between two ranks, in different nodes if the group spans several."""
        node_ranks = self.ranks_per_node or self.system.node_devices
        return self._seconds("send-receive", sent_bytes, 2, per_node=min(node_ranks, 2))

    def _seconds(self, op: str, size: float, ranks: int, per_node: int | None = None) -> np.ndarray:
        per_node = self.ranks_per_node if per_node is None else per_node
        times = predict_collective(Collective(op, round(size), ranks, per_node), self.system)
        return np.array([times.seconds[0], times.low_seconds[0], times.high_seconds[0]])


@dataclass(frozen=True)
class Clock:
    """Predictions on one device, cached."""

    device: Device
    """Where the kernels run."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Further options for `perfmodel.predict`: implementation, harness …"""
    known: dict[Problem, np.ndarray] = field(default_factory=dict, compare=False)
    """Cache of times."""

    def together(self, problems: Sequence[Attention]) -> np.ndarray:
        """Attention problems one after another: predicted, low and high seconds, shape (3,)."""
        self._predict(problems)
        return sum((self.known[each] for each in problems), start=np.zeros(3))

    def merging(self, rows: int, cols: int, dtype: str) -> np.ndarray:
        """Adding a result of `rows` × `cols` in `dtype` to an fp32 accumulator; seconds, shape
        (3,)."""
        if not rows:
            return np.zeros(3)
        merge = Rowwise(
            "pointwise", rows, cols, "fp32", variant="add", also_inputs=1, also_dtype=dtype
        )
        if merge not in self.known:
            self.known[merge] = _times(predict_arrays(merge, self.device))[0]
        return self.known[merge]

    def _predict(self, problems: Iterable[Attention]) -> None:
        """Predict the problems not yet cached; problems that differ only in lengths share one
        call."""
        groups: dict[Attention, list[Attention]] = defaultdict(list)
        for problem in dict.fromkeys(problems):
            if problem not in self.known:
                groups[replace(problem, seq_q=1, seq_kv=1)].append(problem)
        for group in groups.values():
            queries, keys = (np.array([getattr(x, n) for x in group]) for n in ("seq_q", "seq_kv"))
            lengths = replace(group[0], seq_q=queries, seq_kv=keys)
            predictions = predict_arrays(lengths, self.device, **self.asked)
            self.known.update(zip(group, _times(predictions), strict=True))


def _times(times: Any) -> np.ndarray:
    """Predicted, low and high seconds, shape (n, 3)."""
    return np.stack([times.seconds, times.low_seconds, times.high_seconds], axis=-1)
