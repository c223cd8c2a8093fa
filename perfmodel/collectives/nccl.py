"""NCCL's choice: the least of its own expected times over algorithms and protocols.

    t = base + steps · hop + bytes / bandwidth

Source: NCCL 2.27, src/graph/tuning.cc; figures in `nccl.yaml`. NCCL's expectation is below the
actual time from 64 KB to 8 MB; `times` predicts the actual time.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from perfmodel import yamltable
from perfmodel.collectives.route import Crossing, Route

Protocol = Literal["LL", "LL128", "Simple", "pull", "push"]


@dataclass(frozen=True)
class Method:
    """How a collective is carried out."""

    algorithm: str
    """ring, tree, nvls, nvls-tree, collnet, pairwise, one-shot, two-shot, multimem."""
    protocol: Protocol
    """LL: a flag with every 4 bytes; LL128: a flag with every 120; Simple: whole chunks with a
    handshake; pull: loads from peers' memory between barriers; push: stores to it, values being
    their own flags."""
    in_flight_bytes: int = 0
    """Bytes that a kernel which pulls has in flight for each peer."""
    gathers: Protocol = "pull"
    """How a two-shot kernel that pulls its terms passes on the sums."""
    copies: int = 0
    """Kernels beside it that copy the whole buffer: into registered memory, and back."""


PROTOCOLS: tuple[Protocol, ...] = ("LL", "LL128", "Simple")
_MICRO, _GIGA = 1e-6, 1e9
# NCCL sends messages to peers by LL up to a number of bytes a channel (NCCL_P2P_LL_THRESHOLD, 16
# KiB), with more channels for more bytes. Here the faster protocol is chosen.
_PEER_TO_PEER = ("all-to-all", "send-receive")


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """`nccl.yaml`, parsed."""
    document: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("nccl.yaml"))
    return document


def methods(op: str, route: Route, dtype: str, architecture: str) -> list[Method]:
    """The methods that NCCL implements for a collective on these links."""
    if op in _PEER_TO_PEER:
        return [Method("pairwise", "LL"), Method("pairwise", "Simple")]
    protocols = [p for p in PROTOCOLS if p != "LL128" or route.inner.level.medium == "fabric"]
    choices = [Method("ring", p) for p in protocols]
    if op == "all-reduce" and not route.one_node:
        choices += [Method("tree", p) for p in protocols]
    if _switch_adds_up(route, dtype, architecture):
        if route.one_node and op in ("all-reduce", "all-gather", "reduce-scatter"):
            choices.append(Method("nvls", "Simple"))
        elif not route.one_node and op == "all-reduce":
            choices.append(Method("nvls-tree", "Simple"))
            if route.reduces:
                choices.append(Method("nvls", "Simple"))
    if op == "all-reduce" and route.reduces:
        choices.append(Method("collnet", "Simple"))
    return choices


def expected(
    method: Method, op: str, route: Route, bytes_: np.ndarray, architecture: str
) -> np.ndarray:
    """NCCL's expected seconds of a method for `bytes_` bytes."""
    if method.algorithm in ("nvls", "nvls-tree"):
        return _nvls(method, op, route, bytes_, architecture)
    if method.algorithm == "collnet":
        return _collnet(route, bytes_)
    ring = method.algorithm == "ring"
    rate = _bus_bytes_per_s(method, route, architecture)
    if ring:
        rate *= route.ranks / _steps(op, route.ranks)
    facts = table()
    base, each = ("base_us", "hop_us") if ring else ("tree_base_us", "tree_hop_us")
    latency = facts[base][method.protocol] + sum(
        count * facts[each][item.level.medium][method.protocol]
        for count, item in hops(method, op, route)
    )
    return np.asarray(latency * _MICRO + bytes_ / (rate if ring else rate / 2))


def channels(architecture: str) -> int:
    """Blocks that carry a ring."""
    blocks: Mapping[str, int] = table()["channels"]
    return blocks.get(architecture, blocks["usual"])


def nvls_chunks(route: Route, bytes_: np.ndarray, architecture: str) -> np.ndarray:
    """Bytes of a chunk that the switch adds up for each of `bytes_`."""
    sizes = table()["nvls_chunks"]["node" if route.one_node else "nodes"]
    streams = _nvls_streams(route, architecture)
    fits = [bytes_ >= rounds * streams * chunk for chunk, rounds in sizes]
    return np.asarray(np.select(fits, [chunk for chunk, _ in sizes]))


def nvls_rounds(route: Route, bytes_: np.ndarray, architecture: str) -> np.ndarray:
    """Rounds in which every channel and rank sends one chunk through the switch."""
    chunks = nvls_chunks(route, bytes_, architecture)
    return np.asarray(np.ceil(bytes_ / (_nvls_streams(route, architecture) * chunks)))


def tree_passes(route: Route) -> int:
    """How often a buffer leaves a node in a tree over nodes: once to the other of two, else up and
    down (NCCL 2.27, tuning.cc: bwInter over 2 beyond two nodes)."""
    return 1 if route.ranks == 2 * route.node_ranks else 2


def _nvls_streams(route: Route, architecture: str) -> int:
    return int(table()["nvls_channels"][architecture]) * route.inner.fan


def _switch_adds_up(route: Route, dtype: str, architecture: str) -> bool:
    """Whether NVLS is available: more than two ranks on a switch that reduces this type."""
    facts = table()
    return (
        route.inner.level.reduces
        and route.inner.fan > 2
        and dtype in facts["nvls_types"]
        and architecture in facts["nvls_share"]
    )


def _steps(op: str, ranks: int) -> int:
    """Steps of a ring, as NCCL counts them."""
    if op == "all-reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if op in ("reduce-scatter", "all-gather") else ranks


def _assumed_rate(route: Route) -> float:
    """NCCL's assumed bytes a second of a rank: the least over the levels."""
    share = table()["bandwidth_share"]
    return min(
        item.bytes_per_s * float(share[item.level.medium]) * item.doors for item in route.crossings
    )


def _bus_bytes_per_s(method: Method, route: Route, architecture: str) -> float:
    facts = table()
    shares = facts["protocol_share" if method.algorithm == "ring" else "tree_share"]
    rate = _assumed_rate(route) * float(shares[method.protocol])
    if method.protocol != "LL":
        return rate
    if route.one_node:
        limit = float(facts["ll_most"].get(architecture, math.inf))
    else:
        nodes = route.ranks // route.crossings[-1].inside
        limit = float(facts["ll_most_network"]["two" if nodes == 2 else "more"])
    return min(rate, limit * _GIGA)


def hops(method: Method, op: str, route: Route) -> list[tuple[float, Crossing]]:
    """Successive hops at each level: around a ring, or along a tree, up and down, that is a chain
    inside a node and binary between nodes."""
    if method.algorithm == "ring":
        passes = 2 if op == "all-reduce" else 1
        return [(passes * item.ring_hops, item) for item in route.crossings]
    return [
        (2 * (item.fan - 1 if item.level.medium != "network" else math.log2(item.fan)), item)
        for item in route.crossings
    ]


def collnet_seconds(route: Route) -> float:
    """Seconds of hops of CollNet: to the rank with the adapter and back, in a node with a switch
    at once, else along a chain; and once through the switches between nodes."""
    facts, ranks = table()["collnet"], route.node_ranks
    seconds = facts["network_us"]
    if ranks > 1 and route.inner.level.topology == "switch":
        seconds += 2 * (facts["direct_us"] + (ranks - 1) * facts["peer_us"])
    else:
        seconds += 2 * (ranks - 1) * facts["chain_us"]
    return float(seconds * _MICRO)


def _collnet(route: Route, bytes_: np.ndarray) -> np.ndarray:
    share = table()["bandwidth_share"]
    rates = [item.bytes_per_s * share["network"] for item in route.network]
    inverse = 1 / network_bytes_per_s(route, rates)
    if route.node_ranks > 1:
        inner = route.inner
        inverse = max(inverse, 2 / (inner.bytes_per_s * share[inner.level.medium]))
    return np.asarray(collnet_seconds(route) + bytes_ * inverse)


def network_bytes_per_s(route: Route, rates: Sequence[float]) -> float:
    """Bytes a second of a buffer that switches between nodes add up: each adapter sends its share
    once. `rates` are those of an adapter at each level.

    A leaf switch with room for a number of reductions has so many of a node's adapters at work,
    unless each adapter has a switch of its own (rails).
    """
    leaf = route.network[0]
    adapters = min(leaf.doors, route.node_ranks)
    if leaf.level.reductions is not None and leaf.level.topology != "rails":
        adapters = min(adapters, leaf.level.reductions.value)
    doors = [adapters, *(item.doors for item in route.network[1:])]
    return min(rate * count for rate, count in zip(rates, doors, strict=True))


def _nvls(
    method: Method, op: str, route: Route, bytes_: np.ndarray, architecture: str
) -> np.ndarray:
    facts = table()
    inner = route.inner
    rate = inner.bytes_per_s * facts["bandwidth_share"]["fabric"]
    rate *= facts["nvls_share"][architecture]
    latency = facts["nvls_us"]
    if op != "all-reduce":
        rate *= (inner.fan - 1) / inner.fan
    shares = [item.bytes_per_s * facts["bandwidth_share"]["network"] for item in route.network]
    if shares and method.algorithm == "nvls":
        latency += facts["nvls_sharp_us"]
        rate = min(rate, network_bytes_per_s(route, shares))
    elif shares:
        for item, share in zip(route.network, shares, strict=True):
            latency += 2 * math.log2(item.fan) * facts["nvls_network_us"]
            rate = min(rate, share * item.doors / tree_passes(route))
    return np.asarray(latency * _MICRO + bytes_ / rate)
