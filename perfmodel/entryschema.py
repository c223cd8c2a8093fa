"""The JSON Schema of dataclasses that `entries` reads, from their annotations and docstrings.

The string below a field is its description; `Annotated[float, "bytes"]` has its unit.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import lru_cache
from types import ModuleType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from perfmodel.entries import bare, extras, optional

DRAFT = "https://json-schema.org/draft/2020-12/schema"


@dataclass(frozen=True)
class About:
    """Documentation of a field."""

    unit: str
    """Unit; for a text its possible values, for a flag `yes or no`."""
    meaning: str
    """Meaning, from the docstring."""
    stated: bool = False
    """Whether the unit is annotated."""


@lru_cache(maxsize=32)
def about(kind: Any) -> Mapping[str, About]:
    """Unit and meaning of each field of a dataclass, from the docstring below it in the source."""
    docs = {
        name: text
        for base in reversed(kind.__mro__[:-1])
        for (owner, name), text in field_docs(sys.modules[base.__module__]).items()
        if owner == base.__name__
    }
    hints = get_type_hints(kind, include_extras=True)
    return {
        item.name: About(
            _unit(hints[item.name]),
            " ".join(docs.get(item.name, "").split()),
            bool(extras(hints[item.name], str)),
        )
        for item in fields(kind)
    }


def _unit(hint: Any) -> str:
    units = extras(hint, str)
    if units:
        return units[0]
    hint = bare(optional(hint) or hint)
    if get_origin(hint) is Literal:
        return ", ".join(map(str, get_args(hint)))
    return "yes or no" if hint is bool else ""


def object_of(
    kind: Any, without: tuple[str, ...] = (), *, parts: dict[str, Any] | None = None
) -> dict[str, Any]:
    """The schema of a dataclass: its fields with their meaning, no other keys, those without a
    default required.

    The schemas of dataclasses inside it are added to `parts`; None: they stand where they are used.
    """
    from perfmodel.decoding import json_schema  # loads pydantic

    inner: dict[str, Any] = {}
    schema = json_schema(kind, about, inner)
    schema["properties"] = {k: v for k, v in schema["properties"].items() if k not in without}
    schema["required"] = [name for name in schema.get("required", ()) if name not in without]
    if parts is None:
        inlined: dict[str, Any] = _inlined(schema, inner)
        return inlined
    parts |= inner
    return schema


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """A schema with its parts where they are used."""
    if isinstance(schema, list):
        return [_inlined(item, parts) for item in schema]
    if not isinstance(schema, dict):
        return schema
    inlined = {key: _inlined(value, parts) for key, value in schema.items() if key != "$ref"}
    if "$ref" in schema and schema["$ref"].rpartition("/")[2] not in parts:
        return schema  # of the class itself
    if "$ref" in schema:
        inlined = {**_inlined(parts[schema["$ref"].rpartition("/")[2]], parts), **inlined}
    return inlined


def array_of(item: Mapping[str, Any], description: str) -> dict[str, Any]:
    """The schema of a list of such items."""
    return {"type": "array", "description": description, "items": item}


@lru_cache(maxsize=64)
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
