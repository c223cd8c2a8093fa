"""The JSON Schema of a file of facts, generated from the dataclasses and committed beside them.

Editors use it to complete and check such files. After a change of a fact, write it again:

    python -c "from perfmodel.timing.libraries import schema; schema.write()"

What one key cannot tell (a fallback that is not there, a menu that is empty) `soundness` checks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from perfmodel.hardware.schema import field_docs
from perfmodel.timing.libraries import facts, naming, rules
from perfmodel.timing.libraries.facts import GIVEN, KINDS, Caller
from perfmodel.timing.libraries.naming import Called, Named
from perfmodel.timing.libraries.reading import optional

PATH = Path(__file__).with_name("library.schema.json")
_MODULES = (facts, rules, naming)


@dataclass(frozen=True)
class About:
    """What is said of a field."""

    unit: str
    """Its unit; of a text what it may be, of a flag `yes or no`."""
    meaning: str
    """What it means."""


@lru_cache(maxsize=32)
def about(kind: Any) -> Mapping[str, About]:
    """Unit and meaning of each field of a dataclass of facts."""
    docs = _docs()
    hints = get_type_hints(kind, include_extras=True)
    found = {}
    for item in fields(kind):
        said = next((docs[base.__name__, item.name] for base in kind.__mro__
                     if (base.__name__, item.name) in docs), "")  # fmt: skip
        found[item.name] = About(_unit(hints[item.name]), " ".join(said.split()))
    return found


@lru_cache(maxsize=1)
def _docs() -> Mapping[tuple[str, str], str]:
    return {key: text for module in _MODULES for key, text in field_docs(module).items()}


def _unit(hint: Any) -> str:
    if get_origin(hint) is Annotated:
        return str(get_args(hint)[1])
    hint = optional(hint) or hint
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    return "yes or no" if hint is bool else ""


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
            "names": _list(_object(Named), "What tables call them, tried in order."),
            "callers": _list(_called(), "How runs that go by a name are called."),
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
    """An entry of a kernel; one that is like another states what differs, and its source."""
    found = _object(kind, without=GIVEN)
    found["properties"]["like"] = {
        "type": "string",
        "description": "The kernel whose facts it has but for those stated.",
    }
    needed = ["operator", *(name for name in found.pop("required") if name != "operator")]
    found["anyOf"] = [{"required": ["like", "source"]}, {"required": needed}]
    return found


def _called() -> dict[str, Any]:
    """How runs are called: which runs, and fields of `Caller` beside each other."""
    found, circumstances = _object(Called, without=("changes",)), _object(Caller)
    found["properties"] |= circumstances["properties"]
    return found


def _object(kind: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """A dataclass: its fields with their meaning, no others, those without a default required."""
    hints, said = get_type_hints(kind, include_extras=True), about(kind)
    properties, needed = {}, []
    for item in fields(kind):
        if item.name in without:
            continue
        here = said[item.name]
        measured = here.unit if get_origin(hints[item.name]) is Annotated else ""
        properties[item.name] = {
            **_value(hints[item.name]),
            "description": f"{here.meaning} Unit: {measured}." if measured else here.meaning,
        }
        if item.default is MISSING and item.default_factory is MISSING:
            needed.append(item.name)
    return {
        "type": "object",
        "properties": properties,
        "required": needed,
        "additionalProperties": False,
    }


def _list(item: Mapping[str, Any], description: str) -> dict[str, Any]:
    return {"type": "array", "description": description, "items": item}


def _value(hint: Any) -> dict[str, Any]:
    """What a field of this annotation may hold."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if optional(hint) is not None:
        return {"anyOf": [_value(optional(hint)), {"type": "null"}]}
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return _array(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*arguments)
    if is_dataclass(hint):
        return _object(hint)
    return dict(_PLAIN[hint])


_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    int: {"type": "integer", "minimum": 0},
    float: {"type": "number", "minimum": 0},
    bool: {"type": "boolean"},
    str: {"type": "string", "pattern": "\\S"},
}


def _array(arguments: tuple[Any, ...]) -> dict[str, Any]:
    if arguments[-1] is Ellipsis:
        return {"type": "array", "items": _value(arguments[0])}
    count = len(arguments)
    items = [_value(argument) for argument in arguments]
    return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}


def _mapping(key: Any, item: Any) -> dict[str, Any]:
    """A mapping; by size, a plain list stands for all sizes."""
    value = _value(item)
    if key is not int:
        return {"type": "object", "additionalProperties": value}
    sized = {
        "type": "object",
        "patternProperties": {"^\\d+$": value},
        "additionalProperties": False,
    }
    return {"anyOf": [sized, value]}
