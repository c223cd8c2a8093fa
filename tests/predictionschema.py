"""The derived JSON Schema of what commands write, for the tests that hold documents to it."""

from __future__ import annotations

from functools import cache

from jsonschema import Draft202012Validator

from perfmodel.formats import schema

SCHEMA = schema("prediction")


@cache
def validator(name: str) -> Draft202012Validator:
    """Checks documents whose rows are under a member: "predictions", "whatif"."""
    return Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{name}"}]})
