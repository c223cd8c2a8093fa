"""JSON Schemas that follow from the classes that files are read as, and from tables' columns.

They are not kept in the tree: `perfmodel schema NAME` prints them, and `make schemas` writes those
that shipped YAML files name, for editors.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from perfmodel.entryschema import object_of
from perfmodel.hardware import Device, System
from perfmodel.serving.engine import Engine
from perfmodel.table import reference
from perfmodel.validation.kinds import load

_CELLS: Mapping[str, Mapping[str, Any]] = {
    "text": {"type": ["string", "null"]},
    "whole": {"type": ["integer", "null"], "minimum": 0},
    "number": {"type": ["number", "null"], "minimum": 0},
    "yes/no": {"type": ["boolean", "null"]},
}
"""The cells of a column, by what it holds."""
_TIME: Mapping[str, Any] = {"type": "number", "exclusiveMinimum": 0}


def _spec(kind: type[Device | System]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    return {"title": kind.__name__, **object_of(kind, parts=parts), "$defs": parts}


def hardware() -> dict[str, Any]:
    """A device's spec."""
    return _spec(Device)


def system() -> dict[str, Any]:
    """Devices joined by links."""
    return _spec(System)


def engine() -> dict[str, Any]:
    """An engine's file, whose name stands under `engine`."""
    schema = object_of(Engine, without=("name",))
    name = {"engine": {"type": "string", "description": "What the engine is called."}}
    return {
        "title": "What an engine does with a network",
        **schema,
        "properties": {**name, **schema["properties"]},
        "required": ["engine", *schema["required"]],
    }


def runs() -> dict[str, Any]:
    """Rows of the measured-run table."""
    layout = load("operator").layout
    columns = reference.columns(layout, "operator")
    return {
        "title": "Rows of the measured-run table",
        "description": "CSV, CSV.gz and Parquet hold these columns; further columns stay as they "
        "are.",
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                each.name: {
                    **(_TIME if each.name == layout.measured else _CELLS[each.holds]),
                    "description": f"{each.about[0].upper()}{each.about[1:]}"
                    + (f" ({each.unit})." if each.unit else "."),
                }
                for each in columns
            },
            "required": [*layout.needed],
        },
    }
