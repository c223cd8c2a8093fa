"""Values of facts as text: tiles as 128x64x128, long lists cut to fit a cell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfmodel.plaintext import listed
from perfmodel.units import seconds

_MOST = 34  # limit on the characters of a list


def shown(value: Any, unit: str) -> str:
    """A value with its unit; empty where there is none.

    Long lists, and lists by name, are cut and end in their number of items: `(12)`.
    """
    if value is None or value in ([], {}):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return value
    if unit == "s":
        return seconds(value)
    if isinstance(value, Mapping):
        return "; ".join(_pair(str(name), item) for name, item in value.items())
    if isinstance(value, list) and isinstance(value[0], Mapping):
        return "; ".join(map(_entry, value))
    text = (
        listed([_item(item) for item in value], _MOST) if isinstance(value, list) else _item(value)
    )
    unitless = isinstance(value, list) and isinstance(value[0], list | str)
    return text if unitless or unit in ("", "1") else f"{text} {unit}"


def _pair(name: str, item: Any) -> str:
    """The entry of a mapping under `name`; a menu under 0 applies to any size."""
    items = item if isinstance(item, list) else [item]
    text = listed([_item(each) for each in items], _MOST)
    return text if name == "0" else f"{name}: {text}"


def _entry(entry: Mapping[str, Any]) -> str:
    """A route: its conditions by name, ranges as 33 to 1e+06."""

    def part(value: Any) -> str:
        return " to ".join(map(_item, value)) if isinstance(value, list) else _item(value)

    return ", ".join(f"{name} {part(value)}" for name, value in entry.items())


def _item(item: Any) -> str:
    """One value; a tile by its dimensions."""
    if isinstance(item, list):
        return "x".join(map(_item, item))
    return f"{item:g}" if isinstance(item, float) else str(item)
