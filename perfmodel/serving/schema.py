"""The JSON Schema of an engine file, generated from the dataclasses and committed beside them.

Editors complete and check such files with it. After a change of a field, write it again:

    python -c "from perfmodel.serving import schema; schema.write()"
"""

from __future__ import annotations

import json
from pathlib import Path

from perfmodel.entryschema import object_of
from perfmodel.serving.engine import Engine

PATH = Path(__file__).with_name("engine.schema.json")


def text() -> str:
    """The schema, as in the committed file."""
    schema = object_of(Engine, without=("name",))
    schema["properties"] = {
        "engine": {"type": "string", "description": "What the engine is called."},
        **schema["properties"],
    }
    schema["required"] = ["engine", *schema["required"]]
    head = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What an engine does with a network",
    }
    return json.dumps({**head, **schema}, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Replace the committed file."""
    PATH.write_text(text(), encoding="utf-8")
