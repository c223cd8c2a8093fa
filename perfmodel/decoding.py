"""Entries decoded by pydantic, its errors in our words.

Numbers are 0 or more and finite, texts are not blank, and nothing is converted: "64" is no number.
Where a mapping by size is expected, a list stands for all sizes: `tiles: [[64, 64, 128]]` is `{0:
[[64, 64, 128]]}`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from dataclasses import fields, is_dataclass
from functools import lru_cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError
from pydantic.json_schema import CoreRef, GenerateJsonSchema
from pydantic_core import SchemaValidator

from perfmodel.entries import Fault, Keys, Misfit, Narrowed, Rule, bare, choices, excerpt, optional
from perfmodel.errors import PerfmodelError, nearest

_STRICT: Mapping[str, Mapping[str, Any]] = {
    "int": {"ge": 0},
    "float": {"ge": 0, "allow_inf_nan": False},
    "str": {"pattern": r"\S"},
    "bool": {},
}
"""What each plain type takes, in pydantic's words."""


def decoded(kind: Any, entry: Any, given: Mapping[str, Any]) -> Any:
    """An entry as its dataclass, with `given` values of further fields. Raises `Misfit`."""
    if not isinstance(entry, Mapping):
        raise Misfit("", f"{excerpt(entry)} is not a mapping; write key: value")
    faults = [_unknown((key,), entry_fields(kind) - given.keys()) for key in entry if key in given]
    try:
        value = _validator(kind).validate_python({**entry, **given})
    except ValidationError as error:
        problems = sorted(error.errors(include_url=False), key=lambda p: p["type"] == "missing")
        faults += [_fault(kind, entry, problem) for problem in problems]
    if faults:
        raise Misfit(*faults[0], *faults[1:])
    return value


def entry_fields(kind: Any) -> set[str]:
    """The keys of a dataclass's entries."""
    return {item.name for item in fields(kind)}


@lru_cache(maxsize=64)
def _validator(kind: Any) -> SchemaValidator:
    return SchemaValidator(_core_schema(kind))


def _core_schema(kind: Any) -> Any:
    for noun in _nouns(kind, {}):
        noun.__pydantic_config__ = {"extra": "forbid"}
    return _strict(TypeAdapter(kind).core_schema)


def json_schema(
    kind: Any, about: Callable[[Any], Mapping[str, Any]], parts: dict[str, Any]
) -> dict[str, Any]:
    """The JSON Schema of a dataclass; those of dataclasses inside it are added to `parts`.

    `about` gives unit and meaning of each field.
    """
    nouns = {noun.__name__: noun for noun in _nouns(kind, {})}
    schema = _Generator().generate(_core_schema(kind))
    parts |= schema.pop("$defs", {})
    if "$ref" in schema:  # a dataclass that may hold one of its own kind
        schema = parts.pop(schema["$ref"].rpartition("/")[2])
    for name, entry in (*parts.items(), (kind.__name__, schema)):
        _describe(entry, about(nouns[entry.pop("title", name)]))
        entry.pop("description", None)
    return schema


def _describe(entry: dict[str, Any], docs: Mapping[str, Any]) -> None:
    """Give each field its meaning and unit; defaults are those of the class."""
    for name, value in entry["properties"].items():
        for key in ("title", "default"):
            value.pop(key, None)
        unit = f" Unit: {docs[name].unit}." if docs[name].stated else ""
        value["description"] = f"{docs[name].meaning}{unit}"


class _Generator(GenerateJsonSchema):
    """Pydantic's JSON Schema of a type, with what our annotations say of it."""

    def function_before_schema(self, schema: Any) -> dict[str, Any]:
        """A mapping by size, or the fields of a dataclass with further rules."""
        inner = self.generate_inner(schema["schema"])
        check = schema["function"]["function"]
        if check is _for_all_sizes:
            value = inner.pop("additionalProperties")
            sizes = {"patternProperties": {r"^\d+$": value}, "additionalProperties": False}
            return {"anyOf": [{"type": "object", **sizes}, value]}
        narrowed = getattr(check, "__self__", None)
        if not isinstance(narrowed, Narrowed):
            return inner
        base = self.get_schema_from_definitions(inner["$ref"])
        entry = deepcopy(base or {})
        for name, rule in narrowed.rules.items():
            value = entry["properties"][name]
            value.get("anyOf", [value])[0].update(rule.schema)
        reference, key = self.get_cache_defs_ref_schema(CoreRef(f"{narrowed.name}:{narrowed.name}"))
        self.definitions[reference] = entry
        return dict(key)

    def function_after_schema(self, schema: Any) -> dict[str, Any]:
        """A value with a rule."""
        inner = self.generate_inner(schema["schema"])
        rule = getattr(schema["function"]["function"], "__self__", None)
        return {**inner, **rule.schema} if isinstance(rule, Rule) else inner

    def dict_schema(self, schema: Any) -> dict[str, Any]:
        """A mapping, whose keys have a schema too where they are texts."""
        names = self.generate_inner(schema["keys_schema"])
        values = self.generate_inner(schema["values_schema"])
        keys = {} if names.get("type") == "integer" else {"propertyNames": names}
        return {"type": "object", **keys, "additionalProperties": values}

    def tagged_union_schema(self, schema: Any) -> dict[str, Any]:
        """Any of its dataclasses; the tag is a field of each."""
        return {"anyOf": [self.generate_inner(kind) for kind in schema["choices"].values()]}

    def literal_schema(self, schema: Any) -> dict[str, Any]:
        """The values as a list, however few."""
        return {"enum": list(schema["expected"])}


def _nouns(hint: Any, nouns: dict[Any, None]) -> dict[Any, None]:
    """The dataclasses that a type is made of."""
    if not (is_dataclass(hint) and isinstance(hint, type)):
        for part in get_args(hint):
            _nouns(part, nouns)
    elif hint not in nouns:
        nouns[hint] = None
        for part in get_type_hints(hint).values():
            _nouns(part, nouns)
    return nouns


def _strict(schema: Any) -> Any:
    """Pydantic's schema of a type with our rules of plain types."""
    if isinstance(schema, list):
        return [_strict(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    schema = {key: part if key == "metadata" else _strict(part) for key, part in schema.items()}
    kind = schema.get("type")
    if kind in _STRICT:
        return {**_STRICT[str(kind)], "strict": True, **schema}
    if kind == "dataclass":
        return _around(schema, "wrap", _converted)
    if kind == "dict" and schema["keys_schema"]["type"] == "int":
        return _around(schema, "before", _for_all_sizes)
    return schema


def _around(schema: dict[str, Any], mode: str, function: Callable[..., Any]) -> dict[str, Any]:
    reference = {"ref": schema.pop("ref")} if "ref" in schema else {}
    step = {"type": "no-info", "function": function}
    return {"type": f"function-{mode}", "function": step, "schema": schema, **reference}


def _converted(value: Any, handler: Callable[[Any], Any]) -> Any:
    """A dataclass; what it refuses itself is a `ValueError`."""
    try:
        return handler(value)
    except PerfmodelError as error:
        raise ValueError(str(error)) from None


def _for_all_sizes(value: Any) -> Any:
    return {0: value} if isinstance(value, list) else value


def _fault(kind: Any, entry: Any, problem: Any) -> Fault:
    """One of pydantic's errors as a path and what to do."""
    path, hint, owner = _place(kind, entry, problem["loc"])
    value = problem["input"]
    if problem["type"].startswith("union_tag"):
        key = problem["ctx"]["discriminator"].strip("'")
        words = f"write one of {', '.join(choices(hint))}"
        value = value.get(key) if isinstance(value, Mapping) else None
        fault = "the key is missing" if value is None else f"{excerpt(value)} is not known"
        return (*path, key), f"{fault}; {words}"
    if problem["type"] == "unexpected_keyword_argument":
        return _unknown(path, entry_fields(owner))
    if problem["type"] == "missing" and is_dataclass(owner):
        return path, "the key is missing; add it"
    if problem["type"] in ("missing", "too_long"):  # of a list with one item for each type
        tuple_hint = owner if problem["type"] == "missing" else hint
        length = len(get_args(tuple_hint))
        place = path[:-1] if problem["type"] == "missing" else path
        return place, f"{excerpt(value)} is not a list of {length}; write as many"
    if problem["type"] == "value_error":
        return path, str(problem["ctx"]["error"])
    return path, f"{excerpt(value)} {_expected(hint)}"


def _unknown(path: Keys, known: set[str]) -> Fault:
    return path, f"there is no such key; {nearest(str(path[-1]), known)}"


def _place(kind: Any, entry: Any, location: Keys) -> tuple[Keys, Any, Any]:
    """The path of a fault in a document, the type that is expected there, and that of what encloses
    it."""
    path: Keys = ()
    hint = owner = kind
    for key in location:
        if key == "[key]":
            return path, _plain(get_args(owner)[0]), owner
        owner = _plain(hint)
        origin, parts = get_origin(owner), get_args(owner)
        if key in choices(owner):
            hint = owner = choices(owner)[key]
            continue
        if is_dataclass(owner):
            hint = get_type_hints(owner, include_extras=True).get(str(key), Any)
        elif origin is tuple:
            hint = parts[0] if parts[-1] is Ellipsis else (*parts, *[Any] * int(key))[int(key)]
        else:
            hint = parts[1] if len(parts) == 2 else Any
        by_size = origin is not tuple and isinstance(entry, list)
        entry = entry if by_size else _item(entry, key)
        path = path if by_size else (*path, key)
    return path, _plain(hint), owner


def _plain(hint: Any) -> Any:
    """A type without None and without what is annotated."""
    return bare(optional(bare(hint)) or bare(hint))


def _item(entry: Any, key: Any) -> Any:
    try:
        return entry[key]
    except (LookupError, TypeError):
        return None


def _expected(hint: Any) -> str:
    """What to write for a type."""
    origin = get_origin(hint)
    if origin is Literal:
        return f"is not known; write one of {', '.join(map(str, get_args(hint)))}"
    if origin is tuple:
        return "is not a list; write [...]"
    if is_dataclass(hint):
        return "is not a mapping; write key: value"
    return _WORDS.get(hint, "is not a mapping; write {key: value}")


_WORDS: Mapping[Any, str] = {
    int: "is not a whole number; write one such as 128",
    float: "is not a number of 0 or more; write one such as 0.5",
    bool: "is neither true nor false; write one of them",
    str: "is not a text; write one in quotes",
}
