"""A device on the page: its roofs, and its numbers with their origin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load
from perfmodel.hardware.facts import walk
from perfmodel.render.foot import STATUS
from perfmodel.render.roofs import LEVELS, LINKS, Roof, roofs

_FACTS = {
    "memory.hbm.bandwidth": "memory bandwidth",
    "measured.hbm_bandwidth": "memory bandwidth, measured",
    "memory.hbm.capacity": "memory",
    "memory.llc.bandwidth": "last-level cache bandwidth",
    "memory.l2.bandwidth": "L2 bandwidth",
    "measured.l2_bandwidth": "L2 bandwidth, measured",
    "memory.l2.capacity": "L2",
    "memory.shared.capacity_per_unit": "shared memory a unit",
    "compute.units": "units",
    "compute.clocks.boost": "boost clock",
    "tdp": "board power",
}
"""Facts of a spec that the page shows, besides the rates of the types in use."""


def described(slug: str, types: Sequence[str]) -> dict[str, Any] | None:
    """A device as plain data; None without a spec."""
    try:
        device = load(slug)
    except PerfmodelError:
        return None
    names = [name for name in types if name in device.matrix_types]
    return {
        "name": device.name,
        "facts": list(_facts(device, names)),
        **_roofs(device, names),
    }


def _roofs(device: Device, types: Sequence[str]) -> dict[str, Any]:
    levels = [level for level in (*LEVELS, *LINKS) if device.level(level) is not None]
    try:
        bounds = roofs(device, types or device.matrix_types[:1], levels)
    except PerfmodelError:
        return {"levels": {}, "matrix": [], "vector": [], "missing": []}
    return {
        "levels": {level: _roof(roof) for level, roof in bounds.levels.items()},
        "matrix": [_roof(roof) for roof in bounds.matrix],
        "vector": [_roof(roof) for roof in bounds.vector],
        "missing": list(bounds.missing),
    }


def _roof(roof: Roof) -> dict[str, Any]:
    return {
        "name": roof.name,
        "measured": roof.value if roof.status == "measured" else None,
        "peak": roof.datasheet or roof.value,
        "types": list(roof.types),
        "status": STATUS[roof.status],
    }


def _facts(device: Device, types: Sequence[str]) -> Iterator[dict[str, Any]]:
    labels = {
        **_FACTS,
        **{f"compute.matrix.{name}": f"{name} matrix" for name in types},
        **{f"measured.matrix.{name}": f"{name} matrix, measured" for name in types},
        "compute.vector.fp32": "fp32 vector",
    }
    facts = {".".join(path): fact for path, fact in walk(device)}
    for path, label in labels.items():
        fact = facts.get(path)
        if fact is not None:
            yield {
                "label": label,
                "value": str(getattr(fact, "text", "") or getattr(fact, "value", "")),
                "status": STATUS[fact.status],
                "sources": [device.sources.get(key, key) for key in fact.source],
                "note": fact.note or "",
            }
