"""The first spec of a new device: a copy of another spec, with every number marked as copied."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from perfmodel.hardware.blocks import Measured
from perfmodel.hardware.facts import Sourced, Status
from perfmodel.hardware.physics import check

if TYPE_CHECKING:
    from perfmodel.hardware.device import Device

SOURCE = "copied"


def like(device: Device, slug: str) -> Device:
    """The spec of `device` under another name, with every number to be replaced.

    Every fact has source `copied` and status `unverified`. Measurements keep their status, since
    times depend on it. Notes are dropped: they describe the other device.
    """
    note = f"Copied from {device.slug}, {device.name}: replace the number, its source and status"
    copy: Device = _copy(device)
    return replace(
        copy,
        slug=slug,
        name=slug,
        aliases=(),
        notes=(f"Copied from {device.slug}: replace each number, its source and its status.",),
        peak_notes=device.peak_notes,
        sources={SOURCE: note},
    )


def _copy(part: Any) -> Any:
    """A part of a spec with its facts marked."""
    if isinstance(part, Sourced):
        status: Status = "measured" if part.status == "measured" else "unverified"
        return replace(part, source=(SOURCE,), status=status, note=None)
    if is_dataclass(part) and not isinstance(part, type):
        copies = {item.name: _copy(getattr(part, item.name)) for item in fields(part)}
        return replace(part, **copies)
    if isinstance(part, dict):
        return {key: _copy(item) for key, item in part.items()}
    return part


def without_misfits(device: Device) -> tuple[Device, list[str]]:
    """`device` without measured numbers that break physics beside its other facts, and a line for
    each of them.

    After "HBM 12 TB/s" the measured bandwidth of the other device's L2 is below the memory's.
    """
    lines: list[str] = []
    for name in [item.name for item in fields(Measured)]:
        faults = _errors(device)
        if not faults or device.measured is None or not getattr(device.measured, name):
            continue
        empty: Any = {} if isinstance(getattr(device.measured, name), dict) else None
        trial = replace(device, measured=replace(device.measured, **{name: empty}))
        cures = [fault for fault in faults if fault not in _errors(trial)]
        if cures:
            lines.append(f"measured {name} of the other device is dropped: {cures[0]}")
            device = trial
    return device, lines


def _errors(device: Device) -> list[str]:
    return [finding.message for finding in check(device) if finding.level == "error"]
