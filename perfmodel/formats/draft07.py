"""Converts a JSON Schema of draft 2020-12 into draft-07, which editors' catalogues still require.

The keywords that changed (JSON Schema, "Migrating from older drafts"): `$defs` were `definitions`;
`prefixItems` was an array of `items` with `additionalItems` for the rest; `dependentRequired` was
`dependencies`. Draft-07 ignores keywords beside a `$ref`, so such a reference moves into an
`allOf`.
"""

from __future__ import annotations

from typing import Any

DRAFT = "http://json-schema.org/draft-07/schema#"
# Old names of keywords.
_RENAMED = {"$defs": "definitions", "dependentRequired": "dependencies"}
# Keywords whose values map names to schemas, and keywords whose values are no schemas.
_NAMED: frozenset[str] = frozenset({"properties", "patternProperties", "$defs"})
_PLAIN = frozenset({"enum", "const", "default", "examples", "required", "type"})


def as_draft07(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema in draft-07; it accepts the same documents."""
    return {**_schema({**schema, "$schema": DRAFT})}


def _schema(schema: Any) -> Any:
    """One schema; a boolean, or anything that is no schema, is unchanged."""
    if isinstance(schema, list):
        return [_schema(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    converted: dict[str, Any] = {}
    for key, value in schema.items():
        name: str = _RENAMED.get(str(key), str(key))
        if key in _NAMED:
            converted[name] = {inner: _schema(item) for inner, item in value.items()}
        elif key not in _PLAIN:
            converted[name] = _schema(value)
        else:
            converted[name] = value
    if "prefixItems" in schema:
        converted["items"] = converted.pop("prefixItems")
        if "items" in schema:
            converted["additionalItems"] = _schema(schema["items"])
    reference = converted.get("$ref")
    if reference is not None:
        converted["$ref"] = reference.replace("#/$defs/", "#/definitions/")
        if len(converted) > 1:
            converted["allOf"] = [{"$ref": converted.pop("$ref")}, *converted.get("allOf", [])]
    return converted
