"""The JSON Schemas of hardware specs, generated from the models and committed beside them.

Editors use it to complete and check spec files. After a change of the models, write it again:

    python -c "from perfmodel.hardware import schema; schema.write()"
"""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from types import ModuleType
from typing import Any

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
            said = next((docs[base, field] for base in bases if (base, field) in docs), None)
            if said is not None:
                entry["description"] = said
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def field_docs(module: ModuleType) -> dict[tuple[str, str], str]:
    """(class, field) → the string that stands under the field in its module's source."""
    found = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, below in zip(node.body, node.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[node.name, field.target.id] = inspect.cleandoc(str(below.value.value))
    return found


def write() -> None:
    """Replace the committed files."""
    for kind, path in PATHS.items():
        path.write_text(text(kind), encoding="utf-8")
