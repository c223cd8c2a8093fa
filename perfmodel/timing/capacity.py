"""Whether the tensors of a problem fit in each level of memory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from perfmodel.hardware import Device
from perfmodel.timing.placing import OWN
from perfmodel.units import binary


def rooms(device: Device, held: Iterable[str]) -> dict[str, float]:
    """Capacity in bytes of each level that holds something, where the spec has it."""
    sizes = {name: device.memory_bytes if name == OWN else _capacity(device, name) for name in held}
    return {name: room for name, room in sizes.items() if room is not None}


def _capacity(device: Device, name: str) -> float | None:
    level = device.level(name)
    return None if level is None else level.total_bytes


def too_large(device: Device, least: Mapping[str, float]) -> tuple[str, ...]:
    """A line for each level that is smaller than the `least` bytes that the problems need there."""
    return tuple(
        f"needs {binary(least[name])} or more, and {device.slug} has {binary(room)} of "
        f"{'memory' if name == OWN else f'{name} memory'}: it could not run"
        for name, room in rooms(device, least).items()
    )
