"""YAML entries as frozen dataclasses and back, by the annotations of their fields.

Pydantic decodes them (`decoding`); it is loaded when there is something to decode. A value that
does not fit raises `Misfit` with the key and what to write.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from perfmodel.frozen import dataclass
from perfmodel.plaintext import quoted

_T = TypeVar("_T")
Reader = Callable[[Any], Any]
Keys = tuple[str | int, ...]
"""The path of a value in a document."""
Fault = tuple[Keys, str]
"""What is wrong and what to do, and its place."""


class Misfit(Exception):
    """A value that does not fit its field: the path of its keys, and what is wrong and what to do.

    `faults` has every fault of an entry in its order; the first one is the message.
    """

    def __init__(self, path: str | Keys, message: str, *further: Fault) -> None:
        super().__init__(path, message, *further)
        keys = path if isinstance(path, tuple) else (path,) if path else ()
        self.faults: tuple[Fault, ...] = ((keys, message), *further)

    def under(self, key: str | int) -> Misfit:
        """The same with every path prefixed by the key of the enclosing mapping or list."""
        (path, message), *further = (((key, *path), message) for path, message in self.faults)
        return Misfit(path, message, *further)

    def __str__(self) -> str:
        path, message = self.faults[0]
        return f"{'.'.join(map(str, path))}: {message}" if path else message


@dataclass(frozen=True)
class Rule:
    """What a field takes beside its type: `Annotated[str, Rule(check)]`, with pydantic's hook."""

    check: Callable[[Any], object]
    """Raises `ValueError`, saying what is wrong and what to write, for a value that does not
    fit."""
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Keywords of a JSON Schema that say the same, as far as they can."""

    def checked(self, value: Any) -> Any:
        """The value, if it fits. Raises `ValueError`."""
        self.check(value)
        return value

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_after_validator_function(self.checked, handler(source))


@dataclass(frozen=True)
class Tagged:
    """Which of several dataclasses an entry is: `Annotated[A | B, Tagged("rule")]`.

    The key is the first field of each, a `Literal` of one value.
    """

    key: str
    """The key that says which."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic import Field

        return handler(Annotated[source, Field(discriminator=self.key)])


@dataclass(frozen=True)
class Narrowed:
    """A dataclass with rules for some fields: `Annotated[Quantity, Narrowed("Power", ...)]`."""

    name: str
    """Name in a JSON Schema."""
    rules: Mapping[str, Rule] = field(hash=False)
    """The rules of these fields; they are asked before their types are."""

    def checked(self, entry: Any) -> Any:
        """The entry, if its fields fit. Raises `ValueError`."""
        if isinstance(entry, Mapping):
            for name, rule in self.rules.items():
                if entry.get(name) is not None:
                    rule.check(entry[name])
        return entry

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        from pydantic_core import core_schema

        return core_schema.no_info_before_validator_function(self.checked, handler(source))


def within(least: float, most: float) -> Rule:
    """The rule of a number from `least` to `most`."""

    def check(value: float) -> None:
        if not least <= value <= most:
            raise ValueError(f"{value:g} is not from {least:g} to {most:g}; write one that is")

    return Rule(check, {"minimum": least, "maximum": most})


def _above_zero(value: float) -> None:
    if not value > 0:
        raise ValueError(f"{value:g} is not above zero; write a number that is")


ABOVE_ZERO = Rule(_above_zero, {"exclusiveMinimum": 0})
"""The rule of a number above zero."""
Positive = Annotated[float, ABOVE_ZERO]
"""A number above zero."""


def like(pattern: str, example: str) -> Rule:
    """The rule of a text that a regular expression matches."""
    matches = re.compile(pattern).search

    def check(text: str) -> None:
        if not matches(text):
            raise ValueError(f"{excerpt(text)} does not fit; write one such as {example}")

    return Rule(check, {"pattern": pattern})


def made(kind: Any, entry: Any, given: Mapping[str, Any] | None = None) -> Any:
    """An entry as its dataclass; `given` has values of fields that no entry states.

    Raises `Misfit` for unknown keys, values of another type, missing fields without a default, and
    values that the dataclass itself refuses.
    """
    from perfmodel.decoding import decoded  # loads pydantic

    return decoded(kind, entry, given or {})


def written(value: Any, without: tuple[str, ...] = ()) -> dict[str, Any]:
    """A dataclass as an entry that `made` reads: plain values, defaults and `without` left out."""
    entry = {}
    for item in fields(value):
        default = item.default_factory() if item.default_factory is not MISSING else item.default
        state = getattr(value, item.name)
        if item.name not in without and state != default:
            entry[item.name] = plain(state)
    return entry


def plain(value: Any) -> Any:
    """A value as plain YAML or JSON data."""
    if is_dataclass(value) and not isinstance(value, type):
        return written(value)
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def bare(hint: Any) -> Any:
    """A type hint without its unit."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def optional(hint: Any) -> Any | None:
    """The other type of a hint that allows None; None where it does not allow None."""
    if get_origin(hint) not in (Union, UnionType):
        return None
    others = [each for each in get_args(hint) if each is not NoneType]
    return others[0] if len(others) == 1 else None


def choices(hint: Any) -> dict[str, Any]:
    """The dataclasses of a hint that is several of them (`Tagged`), by what tells them apart."""
    if get_origin(hint) not in (Union, UnionType) or NoneType in get_args(hint):
        return {}
    tags = {kind: get_type_hints(kind)[next(iter(fields(kind))).name] for kind in get_args(hint)}
    return {str(get_args(tag)[0]): kind for kind, tag in tags.items()}


def extras(hint: Any, kind: type[_T]) -> list[_T]:
    """The annotations of a class that a type hint carries."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [mark for mark in marks if isinstance(mark, kind)]


def excerpt(value: Any) -> str:
    """A value in an error message, cut to a readable length."""
    text = str(value)
    return quoted(text if len(text) <= 60 else text[:60] + "...")
