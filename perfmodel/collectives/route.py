"""The links that ranks cross: the levels of a system that join them, and the groups at each level.

Ranks fill the innermost groups first. With fan-outs f₁, f₂, ... over the levels, a ring through all
ranks has f₂·f₃··· − f₃··· of its hops at the second level, and so on: it enters and leaves each
group once.

Bytes may enter a group through all of its devices, so the rate of a ring is the least of B₁, f₁·B₂,
f₁·f₂·B₃ ... (NCCL's bus bandwidth is min(B₁, ΣB₂)). Bridges of a host are shared: bytes enter a
group there at the rate of one device.

Leaf switches and a spine are two levels of one network. Of r ranks on a leaf switch one has its
next neighbour beyond it, so that a ring has r shares of the links to the spine; an all-to-all sends
(P − r)/(P − 1) of its bytes over them, and each rank has one share.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from perfmodel.errors import ProblemError, SizeError
from perfmodel.hardware import System, SystemLevel


@dataclass(frozen=True)
class Crossing:
    """A level of the system that ranks cross."""

    level: SystemLevel
    """The level."""
    fan: int
    """Number of groups that it joins; each is a group of the level before."""
    inside: int
    """Ranks of one group."""
    ring_hops: int
    """Hops of a ring through all ranks that cross this level."""

    @property
    def doors(self) -> int:
        """Ranks through which bytes enter a group concurrently: all, or one behind a shared
        bridge."""
        return 1 if self.level.topology == "host-bridge" else self.inside

    @property
    def bytes_per_s(self) -> float:
        """Documented bandwidth of one device in one direction, over the links in use.

        In a mesh these are the links to the other ranks. In a ring they are both directions, or one
        where the ranks are only a part of it, a chain. Bytes through host memory are written and
        then read.
        """
        rate, devices = self.level.bytes_per_s, self.level.devices.value
        if self.level.topology == "mesh":
            rate *= min((self.fan - 1) / (devices - 1), 1.0)
        if self.level.topology == "ring" and self.fan < devices:
            rate /= 2
        return rate / 2 if self.level.staged else rate


@dataclass(frozen=True)
class Route:
    """The links among some ranks of a system, from the innermost level outwards."""

    ranks: int
    """Devices that take part."""
    crossings: tuple[Crossing, ...]
    """The levels that they cross; empty for one rank."""

    @property
    def inner(self) -> Crossing:
        """The innermost level."""
        return self.crossings[0]

    @property
    def outer(self) -> tuple[Crossing, ...]:
        """The levels outside the innermost one."""
        return self.crossings[1:]

    @property
    def network(self) -> tuple[Crossing, ...]:
        """The levels between nodes: leaf switches and what joins them."""
        return tuple(item for item in self.crossings if item.level.medium == "network")

    @property
    def node_ranks(self) -> int:
        """Ranks of one node."""
        return self.network[0].inside if self.network else self.ranks

    @property
    def reduces(self) -> bool:
        """Whether every switch between nodes adds up what they send."""
        return bool(self.network) and all(item.level.reduces for item in self.network)

    @cached_property
    def medium(self) -> str:
        """The slowest kind of link: fabric, pcie or network."""
        return self.crossings[-1].level.medium

    @property
    def on_fabric(self) -> bool:
        """Whether one fabric joins all ranks."""
        return len(self.crossings) == 1 and self.inner.level.medium == "fabric"

    @property
    def one_node(self) -> bool:
        """Whether all ranks are in one node."""
        return all(item.level.medium != "network" for item in self.crossings)


def route(system: System, ranks: int, ranks_per_node: int | None = None, stride: int = 1) -> Route:
    """The links among `ranks` devices of a system, with `ranks_per_node` in each node, or full
    nodes, and `stride` devices from one to the next.

    Raises `SizeError` for more ranks than devices, and for ranks that do not fill groups of equal
    size.
    """
    try:
        return _route(system, ranks, ranks_per_node, stride)
    except SizeError as error:
        sizes: dict[str, Any] = {
            "ranks": ranks, "ranks_per_node": ranks_per_node, "stride": stride,
        }  # fmt: skip
        raise error.those(lambda name, size: _route(system, **{**sizes, name: size})) from None


def _route(system: System, ranks: int, ranks_per_node: int | None, stride: int) -> Route:
    if ranks > system.devices:
        span = ranks_per_node or 1
        raise SizeError(
            f"{system.slug} joins {system.devices:,} devices, not {ranks:,}",
            {"ranks": [system.devices // span * span]},
        )
    groups = _groups(system, ranks, ranks_per_node, stride)
    crossings: list[Crossing] = []
    span = 1
    for level, size in zip(system.levels, groups, strict=True):
        if size > span:
            hops = ranks // span - ranks // size
            crossings.append(Crossing(level, size // span, span, hops))
            span = size
    return Route(ranks, tuple(crossings))


def _groups(system: System, ranks: int, ranks_per_node: int | None, stride: int) -> list[int]:
    """Number of ranks within one group of each level; of a leaf switch, ranks that are as dense as
    in its nodes."""
    node = system.node_devices
    if ranks_per_node is not None and not 1 <= ranks_per_node <= min(node, ranks):
        raise SizeError(
            f"{ranks_per_node} ranks per node: a node of {system.slug} has {node} devices and "
            f"there are {ranks} ranks",
            {"ranks_per_node": [n for n in range(1, min(node, ranks) + 1) if ranks % n == 0]},
        )
    sizes: list[int] = []
    for level in system.levels:
        size = min(level.devices.value, ranks)
        if level.medium != "network":
            size = min(size, ranks_per_node or size)
        elif level is not system.levels[-1]:
            sparse = max(node // (ranks_per_node or node), stride)
            inner = sizes[-1] if sizes else 1
            size = max(min(level.devices.value // sparse, ranks) // inner, 1) * inner
            while size > inner and ranks % size:  # leaves of equal size
                size -= inner
        sizes.append(size)
    if sizes[-1] < ranks:
        raise ProblemError(
            f"{system.slug} has no network, so that its {ranks} ranks are in one node and not "
            f"{sizes[-1]} a node; drop ranks per node"
        )
    for smaller, larger in zip(sizes, [*sizes[1:], ranks], strict=True):
        if larger % smaller:
            floor = larger - larger % smaller
            raise SizeError(
                f"{larger} ranks do not fill groups of {smaller} of {system.slug}",
                {
                    "ranks": (floor, floor + smaller),
                    "ranks_per_node": [n for n in range(1, smaller) if larger % n == 0],
                },
            )
    return sizes
