"""The JSON Schemas of hardware specs, generated from the classes and committed beside them.

Editors use it to complete and check spec files. After a change of the classes, write it again:

    python -c "from perfmodel.hardware import schema; schema.write()"
"""

from __future__ import annotations

from pathlib import Path

from perfmodel.entryschema import document
from perfmodel.hardware.device import Device
from perfmodel.hardware.system import System

PATHS: dict[type[Device | System], Path] = {
    Device: Path(__file__).with_name("hardware_spec.schema.json"),
    System: Path(__file__).with_name("system_spec.schema.json"),
}
"""The committed file of each kind of spec."""


def text(kind: type[Device | System] = Device) -> str:
    """The schema of a kind of spec, as the committed file has it."""
    return document(kind, title=kind.__name__)


def write() -> None:
    """Replace the committed files."""
    for kind, path in PATHS.items():
        path.write_text(text(kind), encoding="utf-8")
