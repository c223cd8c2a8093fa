"""A spec written as YAML in the form of the shipped files: ordered blocks, one fact a line."""

from __future__ import annotations

import json
import re
from dataclasses import is_dataclass
from typing import TYPE_CHECKING, Any

from perfmodel.hardware.facts import Sourced, items

if TYPE_CHECKING:
    from perfmodel.hardware.device import Device

SCHEMA_LINE = "# yaml-language-server: $schema=../perfmodel/hardware/hardware_spec.schema.json"
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_.+-]*(?: [A-Za-z0-9(][A-Za-z0-9_.+()-]*)*")
_SPACED = {"compute", "memory", "occupancy", "links", "measured", "peak_notes", "notes", "sources"}
_WORDS = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


def dump(device: Device) -> str:
    """The YAML text of `device`."""
    lines = [f"# {device.name}. Peaks are dense; what was measured is kept apart.", SCHEMA_LINE]
    for name, value in items(device):
        if name in _SPACED:
            lines.append("")
        lines += _entry(name, value, "")
    return "\n".join(lines) + "\n"


def _entry(name: str, value: Any, indent: str) -> list[str]:
    """`name: value`, on one line for facts, lists and scalars, indented for blocks."""
    key = f"{indent}{_scalar(name)}:"
    if name == "notes":
        return [key, *(f"{indent}  - {_scalar(note)}" for note in value)]
    if isinstance(value, Sourced) or not (is_dataclass(value) or isinstance(value, dict)):
        return [f"{key} {_flow(value)}"]
    inner = value.items() if isinstance(value, dict) else items(value)
    return [key, *(line for k, v in inner for line in _entry(k, v, indent + "  "))]


def _flow(value: Any) -> str:
    if is_dataclass(value):
        return f"{{{', '.join(f'{name}: {_flow(item)}' for name, item in items(value))}}}"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_scalar(key)}: {_flow(item)}' for key, item in value.items())}}}"
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(_flow(item) for item in value)}]"
    return _scalar(value)


def _scalar(value: Any) -> str:
    """A number, true/false, or text, quoted unless it is plain words."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        is_plain = _PLAIN.fullmatch(value) and value.lower() not in _WORDS
        return value if is_plain else json.dumps(value, ensure_ascii=False)
    return str(value)
