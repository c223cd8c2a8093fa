"""Seconds of a collective by a method: start, hops, bytes over the slowest link, the last copy.

With P ranks, n bytes, s successive messages of a rank, and links at rate B (`route`):

    ring       start + s·α + sent/B + (n/P)/C          each message waits for the one before
    tree       start + 2·(chains + log₂ N)·α + 2n/B    two trees, up and down (Sanders et al. 2009)
    nvls       start + n/B_switch                      each rank sends n once and receives n once
    pairwise   start + (1 + (P − 1)/2)·α + sent/B + (n/P)/C
               LL: one α more for each 4 KiB of a message; Simple: no α beside its start
    one-shot   start + 2α + (P − 1)·n/B                reads every buffer, between two barriers
    two-shot   start + 2α + α_Simple + sent/B + (n/P)/C

`sent` and s come from `counts`. C is the rate of copies within device memory: a ring's last message
is in a buffer and is copied out after all transfers. LL moves as many bytes of flags as of data,
and copies at that rate too. α is a hop of the protocol: its instructions, which scale with the
clock, and the latency of the level (`Machine.hop`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.collectives import nccl
from perfmodel.collectives.constants import Values
from perfmodel.collectives.counts import Counted, counted
from perfmodel.collectives.method import Method, Protocol
from perfmodel.collectives.route import Crossing, Route
from perfmodel.hardware import Device

CLOCK_HZ = 1.75e9
"""The clock to which times of instructions refer."""

LINE_BYTES = 8
"""Data bytes of one store of the LL protocol; it carries as many bytes of flags."""

THREADS = 512
"""Threads of a channel of the LL protocol (NCCL_LL_MAX_NTHREADS)."""

CROWDED_BYTES = 2 * THREADS * LINE_BYTES
"""A message that occupies the threads of two channels; above it NCCL adds channels."""

_MICRO = 1e-6

Terms = dict[str, np.ndarray]
"""Seconds by resource: start, hops, the name of a level, hbm. They add up to the time."""


@dataclass(frozen=True)
class Machine:
    """A device with the constants of collectives."""

    device: Device
    """Each rank's device."""
    architecture: str
    """Its row of the architecture table."""
    values: Values
    """The constants."""

    @property
    def pace(self) -> float:
        """Ratio of instruction times on this device to those at 1.75 GHz."""
        return CLOCK_HZ / self.device.boost_hz

    @property
    def copy_bytes_per_s(self) -> float:
        """Bytes a second of copies within device memory; each byte is read and written."""
        return self.values["copy_share"] * self.device.hbm_bytes_per_s / 2

    def seconds(self, name: str) -> float:
        """A constant that is a time at 1.75 GHz, on this device."""
        return self.values[name] * self.pace

    def hop(self, protocol: Protocol, crossing: Crossing, table: str = "hop_us") -> float:
        """Seconds of one hop at a level, in a ring or by another table of NCCL's.

        The constants are hops of a ring over NVLink. Another link adds the difference between its
        latency and NVLink's in NCCL's table, scaled by the ratio of its own latency to the usual
        one of its medium.
        """
        known, medium = nccl.table(), crossing.level.medium
        row = "LL" if protocol == "direct" else protocol
        over_nvlink = known["hop_us"]["fabric"]
        own = self.seconds("hop" if row == "LL" else "simple_hop")
        own *= over_nvlink[row] / over_nvlink["LL" if row == "LL" else "Simple"]
        usual = known["hop_us"][medium]["LL"] * _MICRO
        stated = known[table][medium][row] * crossing.level.latency.si / usual
        return max(float(own + (stated - over_nvlink[row]) * _MICRO), 0.0)

    def rate(self, crossing: Crossing) -> float:
        """Achieved bytes a second of a rank's links at a level."""
        return crossing.bytes_per_s * self.values[f"{crossing.level.medium}_share"]

    def slowest(self, route: Route) -> tuple[str, float]:
        """The level that bounds a ring through all ranks, and its bytes a second for each rank."""
        rates = {item.level.name: self.rate(item) * item.doors for item in route.crossings}
        name = min(rates, key=rates.__getitem__)
        return name, rates[name]


@dataclass(frozen=True)
class Exchange:
    """One collective on its links, for an array of sizes."""

    op: str
    """What is exchanged."""
    route: Route
    """The links."""
    bytes: np.ndarray
    """Bytes of the full tensor, shape (n,)."""

    @property
    def counted(self) -> Counted:
        """What each rank sends, by the counting rule."""
        return counted(self.op, self.route.ranks)

    @property
    def sent_bytes(self) -> np.ndarray:
        """Bytes that each rank sends."""
        return self.bytes * float(self.counted.sent)

    @property
    def message_bytes(self) -> np.ndarray:
        """Bytes of one message of a ring: a rank's share, or the whole in a one-to-all
        collective."""
        whole = self.op in ("broadcast", "reduce", "send-receive")
        return self.bytes / (1 if whole else self.route.ranks)


def terms(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Seconds of a method by resource, each of shape (n,)."""
    found = _METHODS[method.algorithm](method, exchange, machine)
    zero = np.zeros(exchange.bytes.shape)
    return {name: zero + value for name, value in found.items()}


def total(found: Terms) -> np.ndarray:
    """The time of a method: the sum of its terms."""
    return np.asarray(sum(found.values()))


def _ring(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    passes = 2 if exchange.op == "all-reduce" else 1
    hops = [(passes * item.ring_hops, item) for item in exchange.route.crossings]
    message = exchange.message_bytes
    found = _waits(method.protocol, hops, message, machine)
    level, rate = machine.slowest(exchange.route)
    rate *= nccl.table()["protocol_share"][method.protocol]
    if method.protocol == "LL":
        return {**found, level: (exchange.sent_bytes + message) / rate}
    copied = message / machine.copy_bytes_per_s
    return {**found, level: exchange.sent_bytes / rate, "hbm": copied}


def _tree(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """A chain inside a node and a binary tree between nodes, up and down."""
    hops = [
        (2 * (item.fan - 1 if item.level.medium != "network" else math.log2(item.fan)), item)
        for item in exchange.route.crossings
    ]
    found = _waits(method.protocol, hops, exchange.message_bytes, machine, "tree_hop_us")
    level, rate = machine.slowest(exchange.route)
    rate *= nccl.table()["protocol_share"][method.protocol]
    return {**found, level: 2 * exchange.bytes / rate}


def _waits(
    protocol: Protocol,
    hops: Sequence[tuple[float, Crossing]],
    message_bytes: np.ndarray,
    machine: Machine,
    table: str = "hop_us",
) -> Terms:
    """Start and hops of a protocol, with a number of hops at each level.

    LL takes longer once every thread has data (`crowding`); LL128 serves larger messages and always
    does.
    """
    seconds = sum(count * machine.hop(protocol, item, table) for count, item in hops)
    if protocol == "Simple":
        return {"start": np.asarray(machine.seconds("simple_start")), "hops": np.asarray(seconds)}
    full = np.ones(message_bytes.shape)
    if protocol == "LL":
        full = np.minimum(message_bytes / CROWDED_BYTES, 1.0)
    crowd = 1.0 + machine.values["crowding"] * full
    return {"start": machine.seconds("start") * crowd, "hops": seconds * crowd}


def _nvls(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Through the switch; between nodes a tree, with a share of the data on each network
    adapter."""
    inner = exchange.route.inner
    known = nccl.table()
    share = known["bandwidth_share"]["fabric"] * known["nvls_share"][machine.architecture]
    share *= machine.values["switch_share"]
    level, rate = inner.level.name, inner.bytes_per_s * share
    hops = 0.0
    for item in exchange.route.outer:
        hops += 2 * math.log2(item.fan) * machine.hop("Simple", item)
        beyond = machine.rate(item) * item.doors
        if beyond < rate:
            level, rate = item.level.name, beyond
    return {
        "start": np.asarray(machine.seconds("switch_start")),
        "hops": np.asarray(hops),
        level: exchange.bytes / rate,
    }


def _pairwise(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Every rank to every other one at once; each rank's own links carry what leaves its group."""
    route, ranks = exchange.route, exchange.route.ranks
    outermost = route.crossings[-1]
    message = exchange.message_bytes
    hop = machine.hop("LL", outermost)
    if method.protocol == "LL":
        # In each hop, one channel moves a line for each of its threads.
        lines = np.maximum(message / (LINE_BYTES * THREADS) - 1.0, 0.0)
        start, hops = machine.seconds("start"), hop * (1 + (ranks - 1) / 2 + lines)
    else:
        start, hops = machine.seconds("simple_start"), np.asarray(0.0)
    times = {}
    for item in route.crossings:
        peers = item.inside * item.fan - item.inside
        times[item.level.name] = exchange.sent_bytes * peers / (ranks - 1) / machine.rate(item)
    level = max(times, key=lambda name: float(np.max(times[name])))
    if method.protocol == "LL":
        return {"start": np.asarray(start), "hops": hops, level: times[level]}
    # A rank that only receives copies a chunk out while the next one arrives.
    copied = message * (exchange.op == "all-to-all") / machine.copy_bytes_per_s
    return {"start": np.asarray(start), "hops": hops, level: times[level], "hbm": copied}


def _one_shot(_: Method, exchange: Exchange, machine: Machine) -> Terms:
    route = exchange.route
    level, rate = machine.slowest(route)
    read = (route.ranks - 1) * exchange.bytes
    return {
        "start": np.asarray(machine.seconds("direct_start")),
        "hops": np.asarray(2 * machine.hop("direct", route.crossings[-1])),
        level: read / (rate * machine.values["direct_share"]),
    }


def _two_shot(_: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Its middle barrier waits until stores are visible, like the handshake of Simple."""
    route, outermost = exchange.route, exchange.route.crossings[-1]
    level, rate = machine.slowest(route)
    barriers = 2 * machine.hop("direct", outermost) + machine.hop("Simple", outermost)
    return {
        "start": np.asarray(machine.seconds("direct_start")),
        "hops": np.asarray(barriers),
        level: exchange.sent_bytes / (rate * machine.values["direct_share"]),
        "hbm": exchange.message_bytes / machine.copy_bytes_per_s,
    }


_METHODS: dict[str, Callable[[Method, Exchange, Machine], Terms]] = {
    "ring": _ring,
    "tree": _tree,
    "nvls": _nvls,
    "nvls-tree": _nvls,
    "pairwise": _pairwise,
    "one-shot": _one_shot,
    "two-shot": _two_shot,
}
