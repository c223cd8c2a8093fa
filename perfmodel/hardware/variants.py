"""A system's network as it may be built: what stands behind a name, as in dgx-h100+rails=32+sharp.

    rails=N            leaf switches join the same adapter of N nodes, a spine the leaves
    leaves=N           a leaf switch joins all adapters of N nodes, a spine the leaves
    oversubscribed=R   leaves have R times the bandwidth of their links to the spine
    sharp              switches add up what nodes send (InfiniBand SHARP)
    no-gpudirect       adapters do not reach the devices' memory: bytes pass through the host's
    one-adapter        a node is entered by one adapter at a time

They are facts of levels, so a system's file may state each of them as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware.facts import Bandwidth, Count, Duration
from perfmodel.hardware.system import Flag, Ratio, System, SystemLevel, Topology

SPINE = "spine"
"""The level above the leaf switches of a network."""
STREAMING_BYTES_PER_S = 25e9
"""Adapters from which switches add up messages of any length: 200 Gb/s, SHARPv2 of Quantum
(NVIDIA SHARP 3.13, general information; NCCL's plugin asks for HDR)."""
PORTS_BYTES_PER_S = 50e9
"""Adapters whose switches have a reduction on each port: 400 Gb/s, SHARPv3 of Quantum-2. Those of
200 Gb/s have one on a switch (the same page)."""
_MOST = 1000
_ASSUMED: dict[str, Any] = {"source": ("assumed",), "status": "derived"}


@dataclass(frozen=True)
class Variant:
    """A change of a system's network."""

    apply: Callable[[System, float], System]
    """(system, number) → system."""
    number: float | None = None
    """Its number where none is written; None: it has no number."""


def varied(system: System, words: Iterable[str]) -> System:
    """A system with variants, each written NAME or NAME=NUMBER; its slug names them.

    Raises `UnknownName` for another variant, and `ProblemError` for a number that does not fit and
    for a system that has no network.
    """
    for word in words:
        name, _, text = word.partition("=")
        if name not in VARIANTS:
            raise UnknownName("variant of a system", name, VARIANTS)
        variant = VARIANTS[name]
        if text and variant.number is None:
            raise ProblemError(f"variant {name} of a system has no number; write +{name}")
        if _network(system) is None:
            raise ProblemError(f"{system.slug} has no network, so no variant {name}; drop +{name}")
        number = _number(name, text) if text else variant.number or 1.0
        system = replace(variant.apply(system, number), slug=f"{system.slug}+{word}")
    return system


def _number(name: str, text: str) -> float:
    """The number of a variant. Raises `ProblemError` for one that is not from 1 to 1000."""
    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= _MOST:
        raise ProblemError(f"{name}={text}: write a number from 1 to {_MOST}, as +{name}=4")
    return number


def by_one_adapter(system: System) -> System:
    """The system whose nodes are entered by one adapter at a time."""
    door = _network(system)
    return _change_network(
        system, lambda level: replace(level, topology="host-bridge") if level is door else level
    )


def without_gpudirect(system: System) -> System:
    """The system with adapters that do not reach the devices' memory: what leaves a node is written
    to the host's memory and read from there.

    A message crosses the lanes twice more. Each byte is written to the host's memory and read from
    it on either side, so that all adapters of a node send at a quarter of that memory's bandwidth.
    """
    host = system.host
    lane = host.link.bandwidth_per_direction if host else None
    memory = host.memory_bandwidth if host else None

    def staged(level: SystemLevel) -> SystemLevel:
        adapters = 1 if level.topology == "host-bridge" else system.node_devices
        rate = level.bandwidth_per_direction.si
        if lane is not None:
            rate = min(rate, lane.si)
        if memory is not None:  # a staged level has half its rate
            rate = min(rate, 2 * memory.si / 4 / adapters)
        return replace(
            level,
            peer_access=Flag(value=False, **_ASSUMED),
            bandwidth_per_direction=Bandwidth(value=f"{rate!r} B/s", **_ASSUMED),
            latency=Duration(value=f"{level.latency.si + 2 * LANES_SECONDS!r} s", **_ASSUMED),
        )

    return _change_network(system, staged)


LANES_SECONDS = 1e-6
"""A message over the host's lanes (NCCL 2.2x, tuning.cc: hop of LL over PCIe)."""


def through_one_host_link(system: System) -> System:
    """A node of a cloud without GPUDirect: one adapter, and one link to the host's memory."""
    return without_gpudirect(by_one_adapter(system))


def _leaves(topology: Topology) -> Callable[[System, float], System]:
    """The network as leaf switches of so many nodes, and a spine."""

    def split(system: System, nodes: float) -> System:
        level = _network(system)
        size = int(nodes) * system.node_devices
        if level is None or any(each.name == SPINE for each in system.levels):
            raise ProblemError(f"{system.slug} has leaf switches already; name them once")
        if nodes != int(nodes) or size >= system.devices:
            raise ProblemError(
                f"leaf switches join a whole number of nodes, and fewer than the "
                f"{system.devices // system.node_devices:,} of {system.slug}, not {nodes:g}"
            )
        leaf = replace(
            level,
            topology=topology,
            devices=Count(value=size, **_ASSUMED),
            oversubscription=None,
        )
        spine = replace(
            level,
            name=SPINE,
            devices=Count(value=level.devices.value // size * size, **_ASSUMED),
        )
        levels = [*system.levels[:-1], leaf, spine]
        return replace(system, levels=tuple(levels))

    return split


def _oversubscribed(system: System, ratio: float) -> System:
    last = replace(system.levels[-1], oversubscription=Ratio(value=ratio, **_ASSUMED))
    return replace(system, levels=(*system.levels[:-1], last))


def _sharp(system: System, _number: float) -> System:
    def adds_up(level: SystemLevel) -> SystemLevel:
        rate = level.bandwidth_per_direction.si
        if rate < STREAMING_BYTES_PER_S:
            raise ProblemError(
                f"switches of {system.slug} do not add up long messages: SHARP's do from "
                "adapters of 200 Gb/s on; drop +sharp"
            )
        trees = None if rate >= PORTS_BYTES_PER_S else Count(value=1, **_ASSUMED)
        return replace(level, reduces_in_switch=Flag(value=True, **_ASSUMED), reductions=trees)

    return _change_network(system, adds_up)


def _network(system: System) -> SystemLevel | None:
    """The innermost network; None where there is none."""
    return next((level for level in system.levels if level.medium == "network"), None)


def _change_network(system: System, change: Callable[[SystemLevel], SystemLevel]) -> System:
    """The system with a change to each level of its network."""
    levels = (change(x) if x.medium == "network" else x for x in system.levels)
    return replace(system, levels=tuple(levels))


VARIANTS = {
    "rails": Variant(_leaves("rails"), 32.0),
    "leaves": Variant(_leaves("switch"), 32.0),
    "oversubscribed": Variant(_oversubscribed, 2.0),
    "sharp": Variant(_sharp),
    "no-gpudirect": Variant(lambda system, _: without_gpudirect(system)),
    "one-adapter": Variant(lambda system, _: by_one_adapter(system)),
}
"""Every variant by name. A scalable unit of DGX H100 has 32 nodes on its leaf switches (NVIDIA, DGX
SuperPOD reference architecture, recalled)."""
