"""The JSON Schemas of hardware specs, generated from the models and committed beside them.

Editors use it to complete and check spec files. After a change of the models, write it again:

    python -c "from perfmodel.hardware import schema; schema.write()"
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfmodel.entryschema import field_docs
from perfmodel.hardware import blocks, device, facts, system
from perfmodel.hardware.block import Block
from perfmodel.hardware.checking import json_schema
from perfmodel.hardware.device import Device
from perfmodel.hardware.system import System

PATHS: dict[type[Block], Path] = {
    Device: Path(__file__).with_name("hardware_spec.schema.json"),
    System: Path(__file__).with_name("system_spec.schema.json"),
}
"""The committed file of each kind of spec."""


def text(kind: type[Block] = Device) -> str:
    """The schema of a kind of spec, as the committed file has it."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    schema |= json_schema(kind)
    modules = (facts, blocks, device, system)
    docs = {key: text for module in modules for key, text in field_docs(module).items()}
    models = {name: value for module in modules for name, value in vars(module).items()}
    definitions: Any = schema.get("$defs", {})
    for name, model in {kind.__name__: schema, **definitions}.items():
        bases = [base.__name__ for base in getattr(models.get(name), "__mro__", ())]
        properties: Any = model.get("properties", {})
        for field, entry in properties.items():
            description = next((docs[base, field] for base in bases if (base, field) in docs), None)
            if description is not None:
                entry["description"] = description
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Replace the committed files."""
    for kind, path in PATHS.items():
        path.write_text(text(kind), encoding="utf-8")
