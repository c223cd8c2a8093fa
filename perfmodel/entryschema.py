"""The JSON Schema of dataclasses that `entries` reads, from their annotations and docstrings.

The string below a field is its description; `Annotated[float, "bytes"]` has its unit.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from perfmodel.entries import Narrowed, Rule, bare, choices, extras, has_default, optional

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class About:
    """Documentation of a field."""

    unit: str
    """Unit; for a text its possible values, for a flag `yes or no`."""
    meaning: str
    """Meaning, from the docstring."""


@lru_cache(maxsize=32)
def about(kind: Any) -> Mapping[str, About]:
    """Unit and meaning of each field of a dataclass, from the docstring below it in the source."""
    docs = {
        name: text
        for base in reversed(kind.__mro__)
        for (owner, name), text in _docs(base.__module__).items()
        if owner == base.__name__
    }
    hints = get_type_hints(kind, include_extras=True)
    return {
        item.name: About(_unit(hints[item.name]), " ".join(docs.get(item.name, "").split()))
        for item in fields(kind)
    }


@lru_cache(maxsize=32)
def _docs(module: str) -> Mapping[tuple[str, str], str]:
    return {} if module == "builtins" else field_docs(sys.modules[module])


def _unit(hint: Any) -> str:
    units = extras(hint, str)
    if units:
        return units[0]
    hint = bare(optional(hint) or hint)
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    return "yes or no" if hint is bool else ""


def object_of(
    kind: Any,
    without: tuple[str, ...] = (),
    *,
    parts: dict[str, Any] | None = None,
    narrowed: Narrowed | None = None,
) -> dict[str, Any]:
    """The schema of a dataclass: its fields with their meaning, no other keys, those without a
    default required.

    The schemas of dataclasses inside it are added to `parts`; None: they stand where they are used.
    """
    hints = get_type_hints(kind, include_extras=True)
    rules = narrowed.rules if narrowed else {}
    docs, items = about(kind), [item for item in fields(kind) if item.name not in without]
    properties = {}
    for item in items:
        doc = docs[item.name]
        unit = f" Unit: {doc.unit}." if extras(hints[item.name], str) else ""
        value = _value(hints[item.name], parts)
        if item.name in rules:
            stated = value["anyOf"][0] if optional(bare(hints[item.name])) is not None else value
            stated.update(rules[item.name].schema)
        properties[item.name] = {**value, "description": f"{doc.meaning}{unit}"}
    return {
        "type": "object",
        "properties": properties,
        "required": [item.name for item in items if not has_default(item)],
        "additionalProperties": False,
    }


def array_of(item: Mapping[str, Any], description: str) -> dict[str, Any]:
    """The schema of a list of such items."""
    return {"type": "array", "description": description, "items": item}


def _value(hint: Any, parts: dict[str, Any] | None) -> dict[str, Any]:
    """The schema of the values of a field with this annotation."""
    narrowed = next(iter(extras(hint, Narrowed)), None)
    schema = _plain_value(bare(hint), parts, narrowed)
    for rule in extras(hint, Rule):
        schema |= rule.schema
    return schema


def _plain_value(
    hint: Any, parts: dict[str, Any] | None, narrowed: Narrowed | None
) -> dict[str, Any]:
    """The schema of a type without its rules."""
    if optional(hint) is not None:
        return {"anyOf": [_value(optional(hint), parts), {"type": "null"}]}
    origin, arguments = get_origin(hint), get_args(hint)
    if choices(hint):
        return {"anyOf": [_value(kind, parts) for kind in arguments]}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is tuple:
        return _array(arguments, parts)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        key, item = arguments
        return _mapping(key, item, parts)
    if not is_dataclass(hint):
        return dict(_PLAIN[hint])
    if parts is None:
        return object_of(hint, narrowed=narrowed)
    name = narrowed.name if narrowed else hint.__name__  # type: ignore[union-attr]
    if name not in parts:
        parts[name] = {}
        parts[name] = object_of(hint, parts=parts, narrowed=narrowed)
    return {"$ref": f"#/$defs/{name}"}


_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    int: {"type": "integer", "minimum": 0},
    float: {"type": "number", "minimum": 0},
    bool: {"type": "boolean"},
    str: {"type": "string", "pattern": "\\S"},
    Any: {},
}


def _array(arguments: tuple[Any, ...], parts: dict[str, Any] | None) -> dict[str, Any]:
    if arguments[-1] is Ellipsis:
        return {"type": "array", "items": _value(arguments[0], parts)}
    count = len(arguments)
    items = [_value(argument, parts) for argument in arguments]
    return {"type": "array", "prefixItems": items, "minItems": count, "maxItems": count}


def _mapping(key: Any, item: Any, parts: dict[str, Any] | None) -> dict[str, Any]:
    """The schema of a mapping; in a mapping by size, a plain list stands for all sizes."""
    value = _value(item, parts)
    if key is int:
        table = {
            "type": "object",
            "patternProperties": {"^\\d+$": value},
            "additionalProperties": False,
        }
        return {"anyOf": [table, value]}
    names = {} if key is str else {"propertyNames": _value(key, parts)}
    return {"type": "object", **names, "additionalProperties": value}


def field_docs(module: ModuleType) -> dict[tuple[str, str], str]:
    """(class, field) → the docstring below the field in its module's source."""
    docs = {}
    for node in ast.parse(inspect.getsource(module)).body:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, docstring in zip(node.body, node.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(docstring, ast.Expr) and isinstance(docstring.value, ast.Constant):
                docs[node.name, field.target.id] = inspect.cleandoc(str(docstring.value.value))
    return docs
