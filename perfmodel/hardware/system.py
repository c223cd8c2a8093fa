"""A system: devices joined by links, which are levels of the hierarchy outside a device's memory.

    load("dgx-h100").levels[0]           # 8 devices, 450 GB/s a direction through a switch

Levels are listed from the device outwards. The number of devices that a level joins includes those
of the levels before it. Bandwidth is one device's, in one direction.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Annotated, Literal

from perfmodel.entries import like, within
from perfmodel.frozen import dataclass
from perfmodel.hardware.blocks import Link
from perfmodel.hardware.facts import Bandwidth, Count, Duration, Label, Line, Sourced

_GENERATION = re.compile(r"[^\d,]*\d*")
Topology = Literal["switch", "rails", "mesh", "ring", "pairs", "host-bridge"]
Medium = Literal["fabric", "pcie", "network"]


@dataclass(frozen=True, kw_only=True)
class Flag(Sourced):
    """A yes-or-no fact."""

    value: bool
    """True or false."""


@dataclass(frozen=True, kw_only=True)
class Ratio(Sourced):
    """A number from 1 without a unit."""

    value: Annotated[float, within(1, 1000)]
    """The number."""


@dataclass(frozen=True, kw_only=True)
class SystemLevel:
    """One kind of link and the devices that it joins."""

    name: Annotated[str, like(r"^[a-z][a-z0-9-]{0,29}$", "nvlink")]
    """Name in terms and options: nvlink, pcie, infiniband."""
    label: Label
    """Common name: NVLink 4 through NVSwitch."""
    medium: Medium
    """fabric: a link between devices (NVLink, Infinity Fabric, ICI); pcie: the host's lanes;
    network: adapters."""
    devices: Count
    """Devices that it joins, those of inner levels included."""
    topology: Topology
    """switch: any two at the full rate; rails: a switch for each adapter of a node, which bytes for
    other adapters reach through the node's own links; mesh: a separate link to each other device,
    the only one for that pair; ring: neighbours only; pairs: links within pairs only; host-bridge:
    through the host's bridges, which all devices share."""
    bandwidth_per_direction: Bandwidth
    """One device's bandwidth in one direction, over all its links at this level."""
    latency: Duration
    """Latency of one message of eight bytes with its flag, from one device's registers to
    another's."""
    reduces_in_switch: Flag | None = None
    """Whether the switch sums data from devices and multicasts data to them (NVLink SHARP; between
    nodes SHARP)."""
    reductions: Count | None = None
    """Reductions that one switch carries at once; absent: one on each port."""
    peer_access: Flag | None = None
    """False where devices cannot read each other's memory, so that bytes pass through host memory;
    absent: they can."""
    oversubscription: Ratio | None = None
    """Bandwidth of the groups that this level joins over that of its links between them; absent:
    1."""

    @property
    def bytes_per_s(self) -> float:
        """One device's bandwidth in one direction, divided by the oversubscription."""
        shared = 1.0 if self.oversubscription is None else self.oversubscription.value
        return self.bandwidth_per_direction.si / shared

    @property
    def generation(self) -> str:
        """The kind of link with its number: NVLink 4 of "NVLink 4 through NVSwitch"."""
        return _GENERATION.match(self.label).group()  # type: ignore[union-attr]

    @property
    def reduces(self) -> bool:
        """Whether the switch sums data from devices."""
        return self.reduces_in_switch is not None and self.reduces_in_switch.value

    @property
    def staged(self) -> bool:
        """Whether bytes between devices pass through host memory."""
        return self.peer_access is not None and not self.peer_access.value


@dataclass(frozen=True, kw_only=True)
class SystemHost:
    """The host of a node."""

    link: Link
    """From the host to a device."""
    memory_bandwidth: Bandwidth | None = None
    """Bandwidth of the host's memory, of all its sockets."""


@dataclass(frozen=True, kw_only=True)
class System:
    """One system as its file describes it."""

    schema_version: Literal[1]
    """Version of this format."""
    slug: Label
    """Short name, which is also the file's name."""
    name: Label
    """Full name."""
    aliases: tuple[Label, ...] = ()
    """Other spellings; case, spaces and underscores do not matter."""
    device: Label
    """Slug of its devices."""
    levels: tuple[SystemLevel, ...]
    """Links from the device outwards."""
    host: SystemHost | None = None
    """The host of a node."""
    notes: tuple[Line, ...] = ()
    """Further remarks."""
    sources: dict[Line, Line] = field(default_factory=dict)
    """Source keys used above, with title and address; keys of `sources.yaml` need no entry here."""

    def __post_init__(self) -> None:
        if not self.levels:
            raise ValueError("needs at least one level: levels: [{name: nvlink, ...}]")
        names = [level.name for level in self.levels]
        duplicate = next((name for name in names if names.count(name) > 1), None)
        if duplicate is not None:
            raise ValueError(f"level {duplicate!r} appears twice; give each level its own name")

    @property
    def devices(self) -> int:
        """Number of devices in the whole system."""
        return self.levels[-1].devices.value

    @property
    def node_devices(self) -> int:
        """Devices of one node: those joined without a network."""
        node_levels = [level for level in self.levels if level.medium != "network"]
        return node_levels[-1].devices.value if node_levels else 1

    @property
    def leaves(self) -> bool:
        """Whether its network has leaf switches, which other levels join."""
        return sum(level.medium == "network" for level in self.levels) > 1

    def level(self, name: str) -> SystemLevel | None:
        """The level with that name; None where there is none."""
        return next((level for level in self.levels if level.name == name), None)
