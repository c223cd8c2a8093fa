"""Physical checks of a system's file.

devices    rise outwards, and each level joins whole groups of the level before it
bandwidth  of one device never rises outwards, and stays below that of its own memory
latency    never falls outwards
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from perfmodel.errors import UnknownName
from perfmodel.hardware.catalogue import load
from perfmodel.hardware.device import Device
from perfmodel.hardware.physics import Finding, unexplained
from perfmodel.hardware.system import System
from perfmodel.units import seconds, si


def check(system: System) -> list[Finding]:
    """Every fault in a system, also against its device's name and memory; each makes it
    unusable."""
    try:
        device = load(system.device)
    except UnknownName:
        fault = f"device {system.device!r} has no spec; see perfmodel hardware list"
        return [Finding("error", fault, ("device",))]
    return [
        *_pairs(system),
        *_memory(system, device),
        *_groups(system),
        *unexplained(system),
    ]


def _error(i: int, key: str, message: str) -> Finding:
    return Finding("error", message, ("levels", i, key))


def _groups(system: System) -> Iterator[Finding]:
    """Levels that join fewer than two devices, and `pairs` levels of another number."""
    for i, level in enumerate(system.levels):
        if level.devices.value < 2:
            yield _error(i, "devices", f"{level.name} joins one device; a level joins at least two")
        elif level.topology == "pairs" and level.devices.value != 2:
            yield _error(i, "devices", f"{level.name} is in pairs, which join 2 devices each")


def _memory(system: System, device: Device) -> Iterator[Finding]:
    """The innermost link, which must not be faster than the device's memory."""
    first = system.levels[0]
    if first.bytes_per_s > device.hbm_bytes_per_s:
        yield _error(
            0,
            "bandwidth_per_direction",
            f"{first.name} moves {si(first.bytes_per_s, 'B/s')}, more than the memory of "
            f"{device.slug}, {si(device.hbm_bytes_per_s, 'B/s')}",
        )


def _pairs(system: System) -> Iterator[Finding]:
    """Each level compared with the next one outwards."""
    for i, (inner, outer) in enumerate(pairwise(system.levels), start=1):
        base, total = inner.devices.value, outer.devices.value
        if total <= base or total % base:
            yield _error(
                i,
                "devices",
                f"{outer.name} joins {total} devices, no whole number of {inner.name}'s {base}",
            )
        if outer.bytes_per_s > inner.bytes_per_s:
            yield _error(
                i,
                "bandwidth_per_direction",
                f"bandwidth rises outwards: {inner.name} {si(inner.bytes_per_s, 'B/s')}, "
                f"{outer.name} {si(outer.bytes_per_s, 'B/s')}",
            )
        if outer.latency.si < inner.latency.si:
            yield _error(
                i,
                "latency",
                f"latency falls outwards: {inner.name} {seconds(inner.latency.si)}, "
                f"{outer.name} {seconds(outer.latency.si)}",
            )
