"""Seconds of a collective by a method: start, hops, bytes over the slowest link, the last copy.

With P ranks, n bytes, s successive messages of a rank, and links at rate B (`route`):

    ring       start + s·α + sent/B + (n/P)/C          each message waits for the one before
    tree       start + 2·(chains + log₂ N)·α + 2n/B    two trees, up and down (Sanders et al. 2009)
    nvls       start + rounds·P·λ + (1 + 1/P)·n/B      sends n, and its share of the sums
    collnet    start + α + max(2(g − 1)/g·n/B, n/(g·N))  in a node of g, and between nodes
    pairwise   start + (1 + (P − 1)/2)·α + sent/B      LL: one α more for each 4 KiB of a message
               start + max(sent/B + chunks/C, 2n/C)    Simple: the last chunks are copied out
    one-shot   start + β + (P − 1)·n/B                 reads every buffer
    two-shot   start + β + φ + sent/B + (n/P)/C
    multimem   start + β + φ + n/B_switch

`sent` and s come from `counts`. C is the rate at which the blocks of a collective copy: a ring's
last message is in a buffer and is copied out after all transfers. LL moves as many bytes of flags
as of data, and copies at that rate too. α is a hop of the protocol: its instructions, which scale
with the clock, and the latency of the level, as often as a hop crosses it (`Machine.hop`).

A switch adds up in rounds, a chunk of each channel and rank, and the blocks wait for the chunks of
one rank after another, each a crossing λ (`nccl.nvls_rounds`). An all-to-all passes every byte
through its blocks, the rank's own message too, so that it takes 2n/C at least: sent and received
bytes share them.

β is a store's hop for a kernel that pushes; for one that pulls two barriers and a load, with few
bytes in flight for each peer. φ is a barrier behind a fence: a store's hop, and the fence's way
there and back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from perfmodel.collectives import custom, nccl
from perfmodel.collectives.constants import Values
from perfmodel.collectives.counts import Counted, counted
from perfmodel.collectives.nccl import Method, Protocol
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

CROSSINGS = {"LL": 1, "LL128": 1, "Simple": 3, "push": 1, "pull": 2}
"""Successive crossings of a link in one hop. LL, LL128 and kernels that push send data and flag in
one store. Simple stores data, waits until a fence has come back, and stores a flag. A load is a
request and an answer."""

START_CROSSINGS = 3
"""Crossings in the start and end of a collective, which are a handshake with the neighbour."""

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

    def copy_bytes_per_s(self, blocks: float) -> float:
        """Bytes a second that blocks copy; device memory reads and writes each byte."""
        rate = blocks * self.values["block_bytes_per_cycle"] * self.device.boost_hz
        return min(rate, self.device.hbm_bytes_per_s / 2)

    def start(self, name: str, route: Route) -> float:
        """Seconds of a start: a time at 1.75 GHz, and what the links' latency adds to it."""
        seconds = self.values[name] * self.pace
        return seconds + START_CROSSINGS * sum(map(beyond_usual, route.crossings))

    def hop(self, protocol: Protocol, crossing: Crossing, table: str = "hop_us") -> float:
        """Seconds of one hop at a level, in a ring or by another table of NCCL's.

        The constants are hops of a ring over NVLink. Another medium adds the difference between its
        hop and NVLink's in NCCL's table, and a level of another latency than its medium's the
        difference for each crossing. No hop is shorter than the latency.
        """
        facts, medium = nccl.table(), crossing.level.medium
        row = "LL" if protocol in ("push", "pull") else protocol
        over_nvlink = facts["hop_us"]["fabric"]
        seconds = self.values["hop" if row == "LL" else "simple_hop"] * self.pace
        seconds *= over_nvlink[row] / over_nvlink["LL" if row == "LL" else "Simple"]
        seconds += (facts[table][medium][row] - over_nvlink[row]) * _MICRO
        seconds += CROSSINGS[protocol] * beyond_usual(crossing)
        return max(float(seconds), crossing.level.latency.si)

    def fence(self, crossing: Crossing) -> float:
        """Seconds of a barrier behind a fence: the fence's way there and back, and a store."""
        return self.hop("push", crossing) + 2 * crossing.level.latency.si

    def copied(self, bytes_: np.ndarray) -> np.ndarray:
        """Seconds of a kernel of all units that copies a buffer."""
        return 2 * bytes_ / self.device.hbm_bytes_per_s

    def rate(self, crossing: Crossing) -> float:
        """Achieved bytes a second of a rank's links at a level."""
        return crossing.bytes_per_s * self.values[f"{crossing.level.medium}_share"]

    def switch_bytes_per_s(self, crossing: Crossing) -> float:
        """Bytes a second of a buffer through a switch that adds up, as NCCL reckons with."""
        facts = nccl.table()
        share = facts["bandwidth_share"]["fabric"] * facts["nvls_share"][self.architecture]
        return float(crossing.bytes_per_s * share)

    def slowest(self, route: Route) -> tuple[str, float]:
        """The level that bounds a ring through all ranks, and its bytes a second for each rank."""
        rates = {item.level.name: self.rate(item) * item.doors for item in route.crossings}
        name = min(rates, key=rates.__getitem__)
        return name, rates[name]


def beyond_usual(crossing: Crossing) -> float:
    """Seconds of a level's latency beyond the usual one of its medium, which the constants hold."""
    base = nccl.table()["hop_us"][crossing.level.medium]["LL"] * _MICRO
    return float(crossing.level.latency.si - base)


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
        is_whole = self.op in ("broadcast", "reduce", "send-receive")
        return self.bytes / (1 if is_whole else self.route.ranks)


def terms(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Seconds of a method by resource, each of shape (n,)."""
    parts = _METHODS[method.algorithm](method, exchange, machine)
    zero = np.zeros(exchange.bytes.shape)
    return {name: zero + value for name, value in parts.items()}


def total(found: Terms) -> np.ndarray:
    """The time of a method: the sum of its terms."""
    return np.asarray(sum(found.values()))


def _ring(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    waits = _waits(method, exchange, machine, "hop_us")
    level, rate = machine.slowest(exchange.route)
    rate *= nccl.table()["protocol_share"][method.protocol]
    message = exchange.message_bytes
    if method.protocol == "LL":
        return {**waits, level: (exchange.sent_bytes + message) / rate}
    copy = message / machine.copy_bytes_per_s(nccl.channels(machine.architecture))
    return {**waits, level: exchange.sent_bytes / rate, "hbm": copy}


def _tree(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    level, rate = machine.slowest(exchange.route)
    rate *= nccl.table()["protocol_share"][method.protocol]
    return {**_waits(method, exchange, machine, "tree_hop_us"), level: 2 * exchange.bytes / rate}


def _waits(method: Method, exchange: Exchange, machine: Machine, table: str) -> Terms:
    """Start and hops of a ring or a tree; `table` has NCCL's hops.

    LL takes longer once every thread has data (`crowding`); LL128 serves larger messages and always
    does.
    """
    route, protocol = exchange.route, method.protocol
    hops = nccl.hops(method, exchange.op, route)
    seconds = sum(count * machine.hop(protocol, item, table) for count, item in hops)
    if protocol == "Simple":
        start = machine.start("simple_start", route)
        return {"start": np.asarray(start), "hops": np.asarray(seconds)}
    full = np.ones(exchange.bytes.shape)
    if protocol == "LL":
        full = np.minimum(exchange.message_bytes / CROWDED_BYTES, 1.0)
    crowd = 1.0 + machine.values["crowding"] * full
    return {"start": machine.start("start", route) * crowd, "hops": seconds * crowd}


def _nvls(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Through the switch, to which a rank sends everything and its share of the sums; between nodes
    a tree, or switches that add up, with a share of the data on each network adapter."""
    inner = exchange.route.inner
    level, rate = inner.level.name, machine.rate(inner) / (1 + 1 / inner.fan)
    rounds = nccl.nvls_rounds(exchange.route, exchange.bytes, machine.architecture)
    hops = rounds * inner.fan * inner.level.latency.si
    network, rates = exchange.route.network, [machine.rate(x) for x in exchange.route.network]
    if network and method.algorithm == "nvls":
        hops += nccl.table()["nvls_sharp_us"] * _MICRO
        beyond = nccl.network_bytes_per_s(exchange.route, rates)
        if beyond < rate:
            level, rate = network[0].level.name, beyond
    elif network:
        for item, share in zip(network, rates, strict=True):
            hops += 2 * math.log2(item.fan) * machine.hop("Simple", item)
            beyond = share * item.doors / nccl.tree_passes(exchange.route)
            if beyond < rate:
                level, rate = item.level.name, beyond
    return {
        "start": np.asarray(machine.start("switch_start", exchange.route)),
        "hops": hops,
        level: exchange.bytes / rate,
    }


def _collnet(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Sums of a node's ranks, each on the rank with its adapter; the sum over nodes by their
    switches; and back. Chunks pass all three at once."""
    route, inner = exchange.route, exchange.route.inner
    hops = nccl.collnet_seconds(route)
    rates = [machine.rate(item) for item in route.network]
    times = {route.network[0].level.name: exchange.bytes / nccl.network_bytes_per_s(route, rates)}
    if route.node_ranks > 1:
        sent = exchange.bytes * float(counted("all-reduce", route.node_ranks).sent)
        times[inner.level.name] = sent / machine.rate(inner)
    level = max(times, key=lambda name: float(np.max(times[name])))
    start = machine.start("simple_start", route)
    return {"start": np.asarray(start), "hops": np.asarray(hops), level: times[level]}


def _pairwise(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Every rank to every other one at once; each rank's own links carry what leaves its group."""
    route, ranks = exchange.route, exchange.route.ranks
    outermost = route.crossings[-1]
    message = exchange.message_bytes
    hop = machine.hop("LL", outermost)
    on_rails = exchange.op == "all-to-all" and any(
        item.level.topology == "rails" for item in route.network
    )
    if method.protocol == "LL":
        # In each hop, one channel moves a line for each of its threads.
        lines = np.maximum(message / (LINE_BYTES * THREADS) - 1.0, 0.0)
        start, hops = machine.start("start", route), hop * (1 + (ranks - 1) / 2 + lines)
    else:
        start, hops = machine.start("simple_start", route), np.asarray(0.0)
    times = {}
    for item in route.crossings:
        # Adapters and the host's lanes carry all that leaves their group, links of a node its own.
        reach = item.inside * item.fan if item.level.medium == "fabric" else ranks
        volume = exchange.sent_bytes * (reach - item.inside) / (ranks - 1)
        if on_rails and item.level.medium != "network":  # bytes for other nodes pass here, too
            volume = exchange.bytes * (item.fan - 1) / item.fan
        times[item.level.name] = volume / machine.rate(item)
    level = max(times, key=lambda name: float(np.max(times[name])))
    if method.protocol == "LL":
        return {"start": np.asarray(start), "hops": hops, level: times[level]}
    # A rank that only receives copies a chunk out while the next one arrives.
    if exchange.op != "all-to-all":
        return {"start": np.asarray(start), "hops": hops, level: times[level]}
    facts = nccl.table()
    copy_bytes_per_s = machine.copy_bytes_per_s(facts["peer_channels"])
    chunks = np.minimum(exchange.bytes, facts["peer_channels"] * facts["peer_chunk_bytes"])
    blocks = 2 * exchange.bytes / copy_bytes_per_s - times[level]
    return {
        "start": np.asarray(start),
        "hops": hops,
        level: times[level],
        "hbm": np.maximum(chunks / copy_bytes_per_s, blocks),
    }


def _one_shot(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    level, rate = machine.slowest(exchange.route)
    peers = exchange.route.ranks - 1
    rate *= machine.values["direct_share"]
    hops = machine.hop("push", exchange.route.crossings[-1])
    if method.protocol == "pull":
        load = machine.hop("pull", exchange.route.crossings[-1])
        rate, hops = min(rate, peers * method.in_flight_bytes / load), 2 * hops + load
    return _direct(method, exchange, machine, hops, {level: peers * exchange.bytes / rate})


def _two_shot(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Sums, a barrier behind a fence, and the sums to everyone.

    A kernel that pulls loads from all peers at once to sum. It gathers from one after another,
    because each load's value is stored before the next load: a load's latency for each peer.
    """
    route, message = exchange.route, exchange.message_bytes
    level, link = machine.slowest(route)
    link *= machine.values["direct_share"]
    peers, barrier = route.ranks - 1, machine.hop("push", route.crossings[-1])
    hops = barrier + machine.fence(route.crossings[-1])
    seconds = exchange.sent_bytes / link
    if method.protocol == "pull":
        load = machine.hop("pull", route.crossings[-1])
        loads = np.maximum(message / method.in_flight_bytes, 1.0) * load
        half = exchange.sent_bytes / 2 / link
        gather = half
        if method.gathers == "pull":
            gather = np.maximum(half, peers * loads)
            hops += peers * load
        hops += barrier + load
        seconds = np.maximum(half, loads) - load + gather
        seconds -= peers * load if method.gathers == "pull" else 0.0
    copy = message / machine.copy_bytes_per_s(custom.table()["blocks"])
    return _direct(method, exchange, machine, hops, {level: np.maximum(seconds, 0.0), "hbm": copy})


def _multimem(method: Method, exchange: Exchange, machine: Machine) -> Terms:
    """Loads that the switch adds up, and stores that it sends to all."""
    inner = exchange.route.inner
    rate = machine.switch_bytes_per_s(inner) * machine.values["direct_share"]
    hops = 2 * machine.hop("push", inner) + machine.hop("pull", inner) + machine.fence(inner)
    return _direct(method, exchange, machine, hops, {inner.level.name: exchange.bytes / rate})


def _direct(
    method: Method, exchange: Exchange, machine: Machine, hops: float, parts: Terms
) -> Terms:
    """A framework's kernel, whose start does not depend on the clock, and those that copy."""
    each = machine.values["direct_start"]
    start = each * (1 + method.copies)
    start += START_CROSSINGS * beyond_usual(exchange.route.crossings[-1])
    copies = method.copies * machine.copied(exchange.bytes)
    hbm = parts.get("hbm", 0.0) + copies
    return {"start": np.asarray(start), "hops": np.asarray(hops), **parts, "hbm": hbm}


_METHODS: dict[str, Callable[[Method, Exchange, Machine], Terms]] = {
    "ring": _ring,
    "tree": _tree,
    "nvls": _nvls,
    "nvls-tree": _nvls,
    "collnet": _collnet,
    "pairwise": _pairwise,
    "one-shot": _one_shot,
    "two-shot": _two_shot,
    "multimem": _multimem,
}
