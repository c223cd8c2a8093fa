"""The JSON Schema of what commands write, from the columns that results declare.

    schema()["$defs"]["Prediction"]["properties"]["time_us"]

A member has the type of its field or property, and its docstring as the description. Numbers whose
name has a unit are never negative. A number that is not finite is null, as JSON has neither NaN nor
Infinity.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from perfmodel.analysis.sweep.answers import Answer
from perfmodel.analysis.whatif import CaseChange
from perfmodel.collectives.collectiveprediction import CollectivePrediction
from perfmodel.columns import SOME, Result, columns_of, declared
from perfmodel.entries import bare
from perfmodel.entryschema import field_docs
from perfmodel.graph.tree import Tree, form
from perfmodel.prediction import Prediction, columns
from perfmodel.quantities import kind_of
from perfmodel.tracing.trace import Trace
from perfmodel.training.result import Step


@dataclass(frozen=True)
class Document:
    """What a command writes as JSON."""

    command: str
    """The command."""
    row: Any = None
    """The result that each row is; None: a point of a sweep, whose members are joined."""
    head: Any = None
    """The result that has the members beside the rows."""
    form: str = ""
    """The form of a tree's nodes that each row is; without columns that only some tables have."""


DOCUMENTS: Mapping[str, Document] = {
    "predictions": Document("predict", Prediction),
    "graphs": Document("graph", Tree, form="root"),
    "networks": Document("network", Tree, form="root"),
    "trace": Document("trace", Tree, Trace, form="line"),
    "whatif": Document("whatif", CaseChange),
    "rows": Document("sweep", None, Answer),
    "steps": Document("train", Step),
    "collectives": Document("collective", CollectivePrediction),
    "formats": Document("compress", Tree, form="row"),
    "placements": Document("embedding", Tree, form="row"),
    **dict.fromkeys(
        ("policies", "recompute", "streaming", "layers"), Document("offload", Tree, form="row")
    ),
}
"""By the member that has the rows."""
_TEXT = {"type": "string"}
_PLAIN: Mapping[Any, Mapping[str, Any]] = {
    str: _TEXT,
    int: {"type": "integer", "minimum": 0},
    bool: {"type": "boolean"},
    Any: {"type": ["number", "string", "boolean", "null"]},
}


def schema() -> dict[str, Any]:
    """The schema of every command's documents, of which one is a sweep's."""
    parts: dict[str, Any] = {"Point": _point()}
    for name, each in DOCUMENTS.items():
        members: dict[str, Any] = {"schema_version": {"const": 1}}
        members |= _members(each.head, parts) if each.head else {}
        row = {"$ref": "#/$defs/Point"} if each.row is None else _type(each.row, parts)
        if each.form:
            row = {"$ref": f"#/$defs/{each.command.capitalize()}"}
            keys = [column.key for column in form(each.form) if column.when != SOME]
            parts[each.command.capitalize()] = _object(each.row, parts, keys)
        members[name] = {"type": "array", "items": row}
        parts[name] = {
            "description": f"`perfmodel {each.command} --format json`.",
            "type": "object",
            "required": [*members],
            "properties": {
                **members,
                "title": {"description": "What the results are of, in a line.", **_TEXT},
                "notes": {
                    "description": "Lines under the table of the results.",
                    "type": "array",
                    "items": _TEXT,
                },
                "refused": {
                    "description": "What was left out, and why.",
                    "type": "array",
                    "items": {"type": "object", "additionalProperties": _TEXT},
                },
            },
            "additionalProperties": False,
        }
    return {
        "title": "What perfmodel predicts, as JSON",
        "description": "Times are in microseconds, traffic in bytes, hardware numbers in SI "
        "units. Numbers are written with all their digits; NaN and Infinity never occur.",
        "oneOf": [{"$ref": f"#/$defs/{name}"} for name in DOCUMENTS],
        "$defs": parts,
    }


def _point() -> dict[str, Any]:
    """One point of a sweep: its sizes and kinds, and its prediction, empty where it has none."""
    numbers = {key: _nullable(_type(float, {}, key)) for key in columns()}
    texts = {name: _nullable(_TEXT) for name in ("implementation", "limiter", "reason")}
    return {
        "description": "One point of a sweep: its sizes and kinds, flat, and its prediction, empty "
        "where there is a reason.",
        "type": "object",
        "required": ["device", "case", "schedule", *texts, "time_us", "low_us", "high_us"],
        "properties": {"device": _TEXT, "case": _PLAIN[int], "schedule": _TEXT, **texts, **numbers},
        "patternProperties": {"^(tile|bytes|footprint)_": _nullable({"type": "number"})},
        "additionalProperties": _PLAIN[Any],
    }


def _members(noun: Any, parts: dict[str, Any]) -> dict[str, Any]:
    """The members of a result. Those of mappings that are joined into it are not among them."""
    members = {}
    for column in columns_of(noun):
        name, _, path = str(column.of or "").partition(".")
        if column.flat or not name:
            continue
        hint = _hint(noun, name)
        for part in path.split(".") if path else ():
            hint = _hint(hint, part)
        text = " ".join(_docstring(noun, name).split())
        if column.scale == 1e6:
            text = text.replace("Seconds", "Microseconds").replace(" seconds", " microseconds")
        kind = _type(hint, parts, column.name)
        if not column.finite:
            kind["additionalProperties"] = _nullable(kind["additionalProperties"])
        members[column.name] = {"description": text, **kind}
    return members


def _object(noun: Any, parts: dict[str, Any], keys: Sequence[str] = ()) -> dict[str, Any]:
    """The schema of a result, or of its members under some keys."""
    members = _members(noun, parts)
    members = {key: members[key] for key in keys or members if key in members}
    joined = any(column.flat for _, _, column in declared(noun))
    return {
        "description": (noun.__doc__ or "").split("\n\n")[0].replace("\n", " "),
        "type": "object",
        "required": [*members],
        "properties": members,
        **({} if joined else {"additionalProperties": False}),
    }


def _type(hint: Any, parts: dict[str, Any], key: str = "") -> dict[str, Any]:
    """The schema of a type; results in it are added to `parts`. `key` names its numbers."""
    hint = bare(hint)
    origin, kinds = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        (inner,) = (kind for kind in kinds if kind is not type(None))
        return _nullable(_type(inner, parts, key))
    if origin is Literal:
        return {"enum": list(kinds)}
    if isinstance(hint, type) and issubclass(hint, Result):
        if hint.__name__ not in parts:
            parts[hint.__name__] = {}
            parts[hint.__name__] = _object(hint, parts)
        return {"$ref": f"#/$defs/{hint.__name__}"}
    if hint is float:
        bound = {} if kind_of(key) == "number" else {"minimum": 0}
        return {"type": "number", **bound}
    if origin is not None and issubclass(origin, Mapping):
        if kinds[1] is Any and key != "problem":
            return {"type": "object"}
        return {"type": "object", "additionalProperties": _type(kinds[1], parts, key)}
    if origin is not None:
        return {"type": "array", "items": _type(kinds[0], parts, key)}
    return dict(_PLAIN[hint])


def _nullable(kind: Mapping[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "null"}]}


def _docstring(noun: Any, name: str) -> str:
    """The docstring of a field or property."""
    for base in noun.__mro__:
        if base is not object:
            member = vars(base).get(name)
            getter = getattr(member, "fget", None) or getattr(member, "func", None)
            docs = field_docs(sys.modules[base.__module__])
            text = docs.get((base.__name__, name)) or getattr(getter, "__doc__", None)
            if text:
                return str(text)
    return ""


def _hint(noun: Any, name: str) -> Any:
    """The type of a field or property; a type variable is that of the class's base."""
    bound: dict[Any, Any] = {}
    for base in noun.__mro__:
        member = vars(base).get(name)
        getter = getattr(member, "fget", None) or getattr(member, "func", None)
        notes = vars(base).get("__annotations__", {})
        text = notes.get(name) if getter is None else getter.__annotations__["return"]
        if text is not None:
            names = vars(sys.modules[base.__module__])
            hint = bare(eval(text, names)) if isinstance(text, str) else bare(text)
            return _bound(hint, bound)
        for generic in vars(base).get("__orig_bases__", ()):
            free = getattr(get_origin(generic), "__parameters__", ())
            bound |= dict(zip(free, get_args(generic), strict=False))
    raise AttributeError(f"{noun.__name__} has no {name}")


def _bound(hint: Any, bound: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return bound[hint]
    free = getattr(hint, "__parameters__", ())
    return hint[tuple(bound[each] for each in free)] if free else hint
