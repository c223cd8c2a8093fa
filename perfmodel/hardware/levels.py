"""The memory levels of a device as an ordered list: from the core outwards, then the links.

`shared` is the memory next to a unit, `l2` the cache in front of memory, `llc` a memory-side cache
between L2 and memory, `hbm` the device's own memory of any technology. The links lead to `host`
memory, `peer` devices in the node, the `network`, and further levels named in the spec. A level is
listed where the spec has its block; values that the spec lacks are None.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

from perfmodel.frozen import dataclass
from perfmodel.hardware.blocks import Cache, Link
from perfmodel.hardware.facts import Sourced, si_of

if TYPE_CHECKING:
    from perfmodel.hardware.device import Device

Scope = Literal["unit", "device", "link"]

LINKS = {"host": "host", "peer": "scale_up", "network": "scale_out"}
"""Levels behind a link, to their entry of `links`."""

OWN = ("shared", "l2", "llc", "hbm")
"""Levels of the device itself."""

_TECHNOLOGY = re.compile(r"[A-Z]{2,}\w*")


@dataclass(frozen=True)
class Level:
    """One level of memory."""

    name: str
    """Name in terms, bytes and options: shared, l2, llc, hbm, host, peer, network."""
    label: str
    """Common name on this device: LDS, Infinity Cache, GDDR6, PCIe 5 x16."""
    scope: Scope
    """Whether each unit has its own, the device has it, or a link leads there."""
    bytes_per_s: float | None
    """Documented peak, all instances together; of a link, one direction."""
    measured_bytes_per_s: float | None
    """Bandwidth of a benchmark; None where none is known."""
    capacity_bytes: float | None
    """Bytes of one instance."""
    latency_seconds: float | None
    """Seconds of one dependent access, unloaded."""
    instances: int
    """Number of instances: one a unit, private parts of a cache, or one."""
    shared_by: int
    """Units that share an instance."""
    devices: int | None
    """Devices that a link joins; None for other levels or where the spec has no number."""
    facts: tuple[Sourced, ...]
    """The spec's entries behind bandwidth and capacity, with their sources."""

    @property
    def short(self) -> str:
        """Name in tables: DDR5 for DDR5-4800 x12, and for a link the level behind it."""
        if self.scope == "link":
            return self.name
        match = _TECHNOLOGY.search(self.label) if self.name == "hbm" else None
        return match[0] if match is not None else self.label

    @property
    def total_bytes(self) -> float | None:
        """Capacity of all instances together."""
        return None if self.capacity_bytes is None else self.capacity_bytes * self.instances

    @property
    def status(self) -> str:
        """How far to trust the documented peak; empty where there is none."""
        return next((fact.status for fact in self.facts if self.bytes_per_s is not None), "")

    @property
    def source(self) -> tuple[str, ...]:
        """Keys into the spec's `sources`, each once."""
        return tuple(dict.fromkeys(key for fact in self.facts for key in fact.source))


def levels(device: Device) -> tuple[Level, ...]:
    """The levels that the spec of `device` has, from the core outwards."""
    return (*_device_levels(device), *_links(device))


def together(names: Iterable[tuple[str, str]], generic: Mapping[str, str]) -> dict[str, str]:
    """One name for each level of several devices, from pairs of a level and its name on one: HBM
    for HBM2e and HBM3, else the `generic` one, else the level."""
    labels: dict[str, set[str]] = {}
    for level, name in names:
        labels.setdefault(level, set()).add(name)
    return {level: _common(own) or generic.get(level, level) for level, own in labels.items()}


def _common(labels: set[str]) -> str:
    """The name, or the family that all names begin with; empty without one."""
    if len(labels) == 1:
        return next(iter(labels))
    families = {match[0] if (match := re.match(r"[A-Z]+", name)) else "" for name in labels}
    family = families.pop() if len(families) == 1 else ""
    return family if len(family) > 2 else ""


def _device_levels(device: Device) -> Iterator[Level]:
    memory, measured = device.memory, device.measured
    if memory.shared is not None:
        shared = memory.shared
        rate = device.shared_bytes_per_clock
        yield Level(
            name="shared",
            label=shared.label,
            scope="unit",
            bytes_per_s=None if rate is None else rate * device.units * device.boost_hz,
            measured_bytes_per_s=si_of(measured.shared_bandwidth if measured else None),
            capacity_bytes=shared.capacity_per_unit.si,
            latency_seconds=device.latency_seconds("shared"),
            instances=device.units,
            shared_by=1,
            devices=None,
            facts=_facts(shared.bandwidth_per_unit, shared.capacity_per_unit),
        )
    if memory.l2 is not None:
        yield _cache(device, "l2", "L2", memory.l2, device.measured_l2_bytes_per_s)
    if memory.llc is not None:
        achieved = si_of(measured.llc_bandwidth if measured else None)
        yield _cache(device, "llc", "LLC", memory.llc, achieved)
    yield Level(
        name="hbm",
        label=device.hbm_technology,
        scope="device",
        bytes_per_s=device.hbm_bytes_per_s,
        measured_bytes_per_s=device.measured_hbm_bytes_per_s,
        capacity_bytes=device.hbm_capacity_bytes,
        latency_seconds=device.latency_seconds("hbm"),
        instances=1,
        shared_by=device.units,
        devices=None,
        facts=_facts(memory.hbm.bandwidth, memory.hbm.capacity),
    )


def _cache(
    device: Device, name: Literal["l2", "llc"], label: str, cache: Cache, achieved: float | None
) -> Level:
    """A cache of the device; private partitions are instances of their own."""
    is_split = cache.shared_by_all is False and cache.partitions is not None
    parts = cache.partitions.value if is_split and cache.partitions is not None else 1
    return Level(
        name=name,
        label=cache.label or label,
        scope="device",
        bytes_per_s=si_of(cache.bandwidth),
        measured_bytes_per_s=achieved,
        capacity_bytes=cache.capacity.si / parts,
        latency_seconds=device.latency_seconds(name),
        instances=parts,
        shared_by=max(device.units // parts, 1),
        devices=None,
        facts=_facts(cache.bandwidth, cache.capacity),
    )


def _links(device: Device) -> Iterator[Level]:
    if device.links is None:
        return
    links: dict[str, Link | None] = {
        name: getattr(device.links, entry) for name, entry in LINKS.items()
    }
    for name, link in {**links, **device.links.further}.items():
        if link is not None:
            yield Level(
                name=name,
                label=link.name,
                scope="link",
                bytes_per_s=si_of(link.bandwidth_per_direction),
                measured_bytes_per_s=None,
                capacity_bytes=si_of(link.capacity),
                latency_seconds=si_of(link.latency),
                instances=1,
                shared_by=device.units,
                devices=None if link.devices is None else link.devices.value,
                facts=_facts(link.bandwidth_per_direction, link.capacity),
            )


def _facts(*facts: Sourced | None) -> tuple[Sourced, ...]:
    return tuple(fact for fact in facts if fact is not None)
