"""The systems by name: the user's own files, shipped ones, those of other packages, devices.

Files are in systems/ of each folder of PERFMODEL_PATH, and in systems/ of each folder of device
specs. Packages bring folders under the entry point `perfmodel.systems` too. The name of a device is
also a system: the one made of the links in its own spec (`of_device`). Behind a name stand the
network's variants: dgx-h100+rails=32+oversubscribed=4 (`variants`).
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from perfmodel import plugins, yamlfile
from perfmodel.catalogue import Catalogue, is_path
from perfmodel.entries import made
from perfmodel.errors import ProblemError, SpecError, UnknownName
from perfmodel.hardware import catalogue, specfile
from perfmodel.hardware.device import Device
from perfmodel.hardware.levels import Level
from perfmodel.hardware.system import Medium, System, SystemLevel, Topology
from perfmodel.hardware.variants import varied

FOLDER = "systems"
"""Subfolder for systems in a folder of device specs or of PERFMODEL_PATH."""

LATENCY = {"fabric": "0.6 us", "NVLink 5": "1.1 us", "pcie": "1 us", "network": "2.7 us"}
"""Latency of one message where a device's spec has none, by link or medium (LL protocol, NCCL 2.2x,
src/graph/tuning.cc; NVLink 5: `nvlink5-latency` in sources.yaml)."""

# Assumptions on a link of a device's spec, by level: medium, topology, devices joined.
_LINKS: dict[str, tuple[Medium, Topology, int]] = {
    "peer": ("fabric", "switch", 8),
    "host": ("pcie", "host-bridge", 8),
    "network": ("network", "switch", 65536),
}
_OWN_LINKS = "links of the device's own spec; topology, devices and latency are assumed"


def folders() -> list[Path]:
    """Folders of systems that are searched before those of other packages."""
    return [*plugins.folders(FOLDER), *(folder / FOLDER for folder in catalogue.folders())]


def _package_folders() -> list[Path]:
    extra = (folder / FOLDER for folder in catalogue.of_packages())
    return [*plugins.packages(FOLDER), *extra]


SYSTEMS = Catalogue(
    "system",
    lambda path: specfile.read(System, path),
    folders,
    _package_folders,
    catalogue.SPELLINGS,
)
"""The systems that have a file."""
names = SYSTEMS.names


def load(name_or_path: str | Path) -> System:
    """The system with this slug, alias or file; else the system of a device with that name.

    Raises `UnknownName`, with the nearest names, `SpecError` for a file that cannot be used, or
    `ProblemError` for a variant that the system does not have.
    """
    name, *variants = str(name_or_path).split("+")
    if not variants or Path(name_or_path).exists():
        return _load(name_or_path)
    return varied(_load(name), variants)


def _load(name_or_path: str | Path) -> System:
    try:
        return SYSTEMS.load(name_or_path)
    except UnknownName as error:
        device = _device(str(name_or_path))
        if device is None:
            raise error from None
        return of_device(device)


def every() -> list[System]:
    """Every system whose file can be used, sorted by slug."""
    return list(SYSTEMS.every())


def validate_file(path: str | Path) -> list[str]:
    """Every problem of a system's file, one line each; empty means valid."""
    return specfile.problems_of(System, Path(path))


def is_system(path: str | Path) -> bool:
    """Whether a spec file describes a system: it has levels, and a device has none."""
    try:
        return "levels" in yamlfile.parse(yamlfile.read(Path(path)), str(path)).data
    except SpecError:
        return False


def is_named(name: str) -> bool:
    """Whether a name is a system file, by path, slug or alias, variants apart."""
    name = name if Path(name).exists() else name.split("+")[0]
    if is_path(name):
        return is_system(name)
    try:
        SYSTEMS.located(name)
    except UnknownName:
        return False
    return True


def made_of(device: str) -> list[System]:
    """The systems with a file that consist of a device, by slug."""
    return list(_made_of(device, SYSTEMS.stamp()))


@lru_cache(maxsize=64)
def _made_of(device: str, _stamp: object) -> tuple[System, ...]:
    """As `made_of`; kept until a folder of systems changes."""
    return tuple(system for system in every() if system.device == device)


def usual(device: Device) -> System:
    """The usual system of a device: of those with a file the one with the largest nodes, else the
    one made of the links in its own spec."""
    files = made_of(device.slug)
    return min(files, key=lambda f: (-f.node_devices, f.slug)) if files else of_device(device)


def of_device(device: Device, topology: Topology | None = None) -> System:
    """The system made of the links in a device's spec; 8 devices a node where the spec has no
    number.

    `topology` is that of the innermost link, where known. With `pairs`, the host's lanes join the
    pairs; with `host-bridge` there are only the host's lanes. Raises `ProblemError` where the spec
    has no link between devices.
    """
    links = {level.name: level for level in device.levels() if level.scope == "link"}
    if topology == "host-bridge" or "peer" not in links:
        scopes = ["host"]
    else:
        scopes = ["peer", "host"] if topology == "pairs" else ["peer"]
    levels = []
    for name in (*scopes, "network"):
        level = links.get(name)
        if level is not None and level.bytes_per_s is not None:
            first = topology if name == scopes[0] else None
            levels.append(_level(level, name, first))
    if not levels:
        raise ProblemError(
            f"the spec of {device.slug} has no link with a bandwidth; name a system: "
            f"{', '.join(names())}"
        )
    system: System = made(
        System,
        {
            "schema_version": 1,
            "slug": device.slug,
            "name": f"{device.name}, joined by the links of its spec",
            "device": device.slug,
            "levels": levels,
            "notes": [_OWN_LINKS],
            "sources": {"spec": f"the spec of {device.slug}", "assumed": _OWN_LINKS},
        },
    )
    return system


def _level(level: Level, name: str, topology: Topology | None) -> dict[str, object]:
    """A link of a device's spec as a level of a system's file."""
    medium, shape, count = _LINKS[name]
    devices = 2 if topology == "pairs" else level.devices or count
    assumed = {"source": ["assumed"], "status": "unverified"}
    latency = LATENCY.get(level.label, LATENCY[medium])
    if level.latency_seconds is not None:
        latency = f"{level.latency_seconds!r} s"
    return {
        "name": name,
        "label": level.label,
        "medium": medium,
        "devices": {"value": devices, **assumed},
        "topology": topology or shape,
        "bandwidth_per_direction": {
            "value": f"{level.bytes_per_s!r} B/s", "source": ["spec"], "status": "derived",
        },
        "latency": {"value": latency, **assumed},
    }  # fmt: skip


def _device(name: str) -> Device | None:
    try:
        return catalogue.load(name)
    except UnknownName:
        return None


__all__ = [
    "System",
    "SystemLevel",
    "is_named",
    "is_system",
    "load",
    "made_of",
    "names",
    "of_device",
    "validate_file",
]
