"""The JSON Schema of dataclasses that `entries` reads, from their annotations and docstrings.

The string below a field is its description; `Annotated[float, "bytes"]` has its unit.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from types import ModuleType
from typing import Annotated, Any, Literal, get_args, get_origin, get_type_hints

from perfmodel.entries import optional


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
    if get_origin(hint) is Annotated:
        return str(get_args(hint)[1])
    hint = optional(hint) or hint
    if get_origin(hint) is Literal:
        return ", ".join(get_args(hint))
    return "yes or no" if hint is bool else ""


def object_of(kind: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """The schema of a dataclass: its fields with their meaning, no other keys, those without a
    default required."""
    hints, docs = get_type_hints(kind, include_extras=True), about(kind)
    properties, required = {}, []
    for item in fields(kind):
        if item.name in without:
            continue
        doc = docs[item.name]
        measured = doc.unit if get_origin(hints[item.name]) is Annotated else ""
        properties[item.name] = {
            **_value(hints[item.name]),
            "description": f"{doc.meaning} Unit: {measured}." if measured else doc.meaning,
        }
        if item.default is MISSING and item.default_factory is MISSING:
            required.append(item.name)
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def array_of(item: Mapping[str, Any], description: str) -> dict[str, Any]:
    """The schema of a list of such items."""
    return {"type": "array", "description": description, "items": item}


def _value(hint: Any) -> dict[str, Any]:
    """The schema of the values of a field with this annotation."""
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
        return object_of(hint)
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
    """The schema of a mapping; in a mapping by size, a plain list stands for all sizes."""
    value = _value(item)
    if key is not int:
        return {"type": "object", "additionalProperties": value}
    table = {
        "type": "object",
        "patternProperties": {"^\\d+$": value},
        "additionalProperties": False,
    }
    return {"anyOf": [table, value]}


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
