"""Adds the numbers of `perfmodel.prediction.Numbers` to the JSON Schema of predictions:

python tests/predictionschema.py

A member that the schema has keeps its further conditions; a new one has type and description.
"""

from __future__ import annotations

import json
import sys
from typing import Any, get_args, get_origin, get_type_hints

from folders import ROOT
from jsonschema import Draft202012Validator

sys.path.insert(0, str(ROOT))

from perfmodel.columns import declared
from perfmodel.entryschema import about
from perfmodel.prediction import Name, Number, Numbers

PATH = ROOT / "perfmodel" / "render" / "prediction.schema.json"
SCHEMA = json.loads(PATH.read_text(encoding="utf-8"))
_VALUES: dict[Any, dict[str, Any]] = {
    Number: {"type": "number", "minimum": 0},
    Name: {"type": "string", "minLength": 1},
    Any: {"type": "boolean"},
    str: {"type": "string", "minLength": 1},
}


def validator(definition: str) -> Draft202012Validator:
    """Checks documents of one kind: "predictions", "changes"."""
    return Draft202012Validator({**SCHEMA, "oneOf": [{"$ref": f"#/$defs/{definition}"}]})


def members() -> dict[str, dict[str, Any]]:
    """Type and description of each number that is written."""
    hints, docs = get_type_hints(Numbers), about(Numbers)
    schema = {}
    for name, _, column in declared(Numbers):
        hint = hints[name]
        if get_origin(hint) is not None:
            kind = {"type": "object", "additionalProperties": _VALUES[get_args(hint)[1]]}
        else:
            kind = _VALUES[hint]
        schema[column.key or name] = {"description": docs[name].meaning, **kind}
    return schema


def completed(document: dict[str, Any]) -> dict[str, Any]:
    """The schema with every member, those that it has unchanged."""
    definition = document["$defs"]["prediction"]
    for name, member in members().items():
        definition["properties"].setdefault(name, member)
        if name not in definition["required"]:
            definition["required"].append(name)
    return document


if __name__ == "__main__":
    PATH.write_text(json.dumps(completed(SCHEMA), indent=2) + "\n", encoding="utf-8")
