"""JSON Schemas that follow from the classes that files are read as; committed beside these.

After a change of a field or of its docstring, write them again:

    python -c "from perfmodel.formats import generated; generated.write()"
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from perfmodel.entryschema import DRAFT, object_of
from perfmodel.formats.catalogue import FORMATS, PACKAGE
from perfmodel.hardware import Device, System
from perfmodel.networks import schema as networks
from perfmodel.serving.engine import Engine
from perfmodel.timing.libraries import schema as libraries


def _spec(kind: type[Device | System]) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    return {"title": kind.__name__, **object_of(kind, parts=parts), "$defs": parts}


def _engine() -> dict[str, Any]:
    """The schema of an engine's file, whose name stands under `engine`."""
    schema = object_of(Engine, without=("name",))
    name = {"engine": {"type": "string", "description": "What the engine is called."}}
    return {
        "title": "What an engine does with a network",
        **schema,
        "properties": {**name, **schema["properties"]},
        "required": ["engine", *schema["required"]],
    }


SCHEMAS: Mapping[str, Callable[[], dict[str, Any]]] = {
    "hardware": lambda: _spec(Device),
    "system": lambda: _spec(System),
    "network": networks.schema,
    "engine": _engine,
    "library": libraries.schema,
}
"""The schema of each format that has a class."""


def text(name: str) -> str:
    """The schema of a format, as its committed file has it."""
    return json.dumps({"$schema": DRAFT, **SCHEMAS[name]()}, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Replace the committed files."""
    for name in SCHEMAS:
        (PACKAGE / FORMATS[name].schema).write_text(text(name), encoding="utf-8")
