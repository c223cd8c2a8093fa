"""The first spec of a new device: a copy of another spec, with every number marked as copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfmodel.hardware.block import Block
from perfmodel.hardware.facts import Sourced

if TYPE_CHECKING:
    from perfmodel.hardware.device import Device

SOURCE = "copied"


def like(device: Device, slug: str) -> Device:
    """The spec of `device` under another name, with every number to be replaced.

    Every fact has source `copied` and status `unverified`. Measurements keep their status, since
    times depend on it. Notes are dropped: they describe the other device.
    """
    said = f"Copied from {device.slug}, {device.name}: replace the number, its source and status"
    parts = {name: _copied(getattr(device, name)) for name in device.fields}
    own = {
        "slug": slug,
        "name": slug,
        "aliases": (),
        "notes": (f"Copied from {device.slug}: replace each number, its source and its status.",),
        "peak_notes": device.peak_notes,
        "sources": {SOURCE: said},
    }
    return device.model_copy({**parts, **own})


def _copied(part: Any) -> Any:
    """A fact, a block or a table of them, with its facts marked; other values unchanged."""
    if isinstance(part, Sourced):
        status = "measured" if part.status == "measured" else "unverified"
        return part.model_copy({"source": (SOURCE,), "status": status, "note": None})
    if isinstance(part, Block):
        return part.model_copy({name: _copied(getattr(part, name)) for name in part.fields})
    if isinstance(part, dict):
        return {key: _copied(item) for key, item in part.items()}
    return part
