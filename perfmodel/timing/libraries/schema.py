"""The JSON Schema of a file of facts, generated from the dataclasses and committed beside them.

Editors use it to complete and check such files. After a change of a fact, write it again:

    python -c "from perfmodel.timing.libraries import schema; schema.write()"

`soundness` checks what a schema of single keys cannot: a missing fallback, an empty menu.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from perfmodel.entryschema import array_of, object_of
from perfmodel.timing.libraries.facts import GIVEN, KINDS, Caller
from perfmodel.timing.libraries.naming import Called, Named

PATH = Path(__file__).with_name("library.schema.json")


def text() -> str:
    """The schema, as the committed file has it."""
    kinds = {kind.__name__: _kernel(kind) for kind in dict.fromkeys(KINDS.values())}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "What a library's kernels do",
        "type": "object",
        "properties": {
            "library": {"type": "string", "description": "What the library is called."},
            "kernels": {
                "type": "object",
                "description": "Its kernels, by the name that --implementation takes.",
                "minProperties": 1,
                "additionalProperties": {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in kinds]},
            },
            "names": array_of(object_of(Named), "What tables call them, tried in order."),
            "callers": array_of(_caller(), "How runs that go by a name are called."),
        },
        "required": ["kernels"],
        "additionalProperties": False,
        "$defs": kinds,
    }
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def write() -> None:
    """Replace the committed file."""
    PATH.write_text(text(), encoding="utf-8")


def _kernel(kind: Any) -> dict[str, Any]:
    """The schema of a kernel's entry; an entry with `like` needs only what differs, and its
    source."""
    schema = object_of(kind, without=GIVEN)
    schema["properties"]["like"] = {
        "type": "string",
        "description": "The kernel whose facts it has but for those stated.",
    }
    keys = ["operator", *(name for name in schema.pop("required") if name != "operator")]
    schema["anyOf"] = [{"required": ["like", "source"]}, {"required": keys}]
    return schema


def _caller() -> dict[str, Any]:
    """The schema of an entry on callers: the runs it holds for, with fields of `Caller` in one
    mapping."""
    schema, circumstances = object_of(Called, without=("changes",)), object_of(Caller)
    schema["properties"] |= circumstances["properties"]
    return schema
