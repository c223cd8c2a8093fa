"""Transport between devices: a link with bandwidth and latency, or the collectives of a system.

Times are arrays of three: predicted, low end, high end. A link has one time, by the α–β model of
`perfmodel.timing.exchange`. A system's collectives have the ranges of `perfmodel.collectives`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from perfmodel.collectives import Collective
from perfmodel.count.exchanges import Exchange
from perfmodel.hardware import System
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
        size, ranks = round(float(exchange.tensor_bytes / share)), int(exchange.ranks)
        return np.array(Collective(op, size, ranks, self.ranks_per_node).seconds_on(self.system))

    def send_seconds(self, sent_bytes: float) -> np.ndarray:
        """A message between two ranks, in different nodes if the group spans several."""
        per_node = min(self.ranks_per_node or self.system.node_devices, 2)
        message = Collective("send-receive", round(sent_bytes), 2, per_node)
        return np.array(message.seconds_on(self.system))
