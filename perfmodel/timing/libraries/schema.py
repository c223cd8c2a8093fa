"""The JSON Schema of a file of facts, from the dataclasses (`perfmodel.formats`).

`soundness` checks what a schema of single keys cannot: a missing fallback, an empty menu.
"""

from __future__ import annotations

from typing import Any

from perfmodel.entryschema import array_of, object_of
from perfmodel.timing.libraries.facts import GIVEN, KINDS, Caller, ChainFacts
from perfmodel.timing.libraries.naming import Called, Named


def schema() -> dict[str, Any]:
    """The schema of a file."""
    kinds = {kind.__name__: _kernel(kind) for kind in dict.fromkeys((*KINDS.values(), ChainFacts))}
    return {
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
