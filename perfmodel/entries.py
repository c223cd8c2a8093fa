"""YAML entries as frozen dataclasses and back, by the annotations of their fields.

Where a mapping by size is expected, a list stands for all sizes: `tiles: [[64, 64, 128]]` is `{0:
[[64, 64, 128]]}`. A value that does not fit raises `Misfit` with the key and what to write.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from perfmodel.errors import ProblemError, UnknownName, nearest
from perfmodel.plaintext import quoted

Reader = Callable[[Any], Any]


class Misfit(Exception):
    """A value that does not fit its field: `key` is where, `said` what is wrong and what to do."""

    def __init__(self, key: str, said: str) -> None:
        super().__init__(key, said)
        self.key, self.said = key, said

    def under(self, key: str) -> Misfit:
        """The same with `key` prefixed by the key of the enclosing mapping."""
        return Misfit(f"{key}.{self.key}" if self.key else key, self.said)

    def __str__(self) -> str:
        return f"{self.key}: {self.said}" if self.key else self.said


def made(kind: Any, entry: Any, given: Mapping[str, Any] | None = None) -> Any:
    """An entry as its dataclass; `given` has values of fields that no entry states.

    Raises `Misfit` for an unknown key, a value of another type, a missing field without a default,
    and values that the dataclass itself refuses.
    """
    given = given or {}
    if not isinstance(entry, Mapping):
        raise Misfit("", f"{_excerpt(entry)} is not a mapping; write key: value")
    readers = {name: reader for name, reader in _readers(kind).items() if name not in given}
    values = dict(given)
    for key, value in entry.items():
        if key not in readers:
            raise Misfit(str(key), f"there is no such key; {nearest(str(key), readers)}")
        try:
            values[key] = readers[key](value)
        except Misfit as misfit:
            raise misfit.under(key) from None
    for item in fields(kind):
        required = item.default is MISSING and item.default_factory is MISSING
        if required and item.name not in values:
            raise Misfit(item.name, "the key is missing; add it")
    try:
        return kind(**values)
    except (ProblemError, UnknownName) as error:
        raise Misfit("", str(error)) from None


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


@lru_cache(maxsize=32)
def _readers(kind: Any) -> Mapping[str, Reader]:
    """The reader of each field of a dataclass."""
    hints = get_type_hints(kind, include_extras=True)
    return {item.name: _reader(hints[item.name]) for item in fields(kind)}


def bare(hint: Any) -> Any:
    """A type hint without its unit."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def optional(hint: Any) -> Any | None:
    """The other type of a hint that allows None; None where it does not allow None."""
    if get_origin(hint) not in (Union, UnionType):
        return None
    (inner,) = (each for each in get_args(hint) if each is not NoneType)
    return inner


def _reader(hint: Any) -> Reader:
    hint = bare(hint)
    if optional(hint) is not None:
        inner = _reader(optional(hint))
        return lambda value: None if value is None else inner(value)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Literal:
        return _choice(arguments)
    if origin is tuple:
        return _sequence(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _mapping(*arguments)
    if is_dataclass(hint) and isinstance(hint, type):
        return lambda value: made(hint, value)
    return _PLAIN[hint]


def _integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise Misfit("", f"{_excerpt(value)} is not a whole number; write one such as 128")
    return value


def _number(value: Any) -> float:
    plain_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain_number or not math.isfinite(value) or value < 0:
        raise Misfit("", f"{_excerpt(value)} is not a number of 0 or more; write one such as 0.5")
    return float(value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise Misfit("", f"{_excerpt(value)} is neither true nor false; write one of them")
    return value


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise Misfit("", f"{_excerpt(value)} is not a text; write one in quotes")
    return value


_PLAIN: Mapping[Any, Reader] = {
    int: _integer,
    float: _number,
    bool: _flag,
    str: _text,
    Any: lambda value: value,
}


def _choice(choices: tuple[Any, ...]) -> Reader:
    def read(value: Any) -> Any:
        if value not in choices:
            raise Misfit("", f"{_excerpt(value)} is not known; write one of {', '.join(choices)}")
        return value

    return read


def _sequence(arguments: tuple[Any, ...]) -> Reader:
    """A list as a tuple: `tuple[X, ...]` of any length, `tuple[X, Y, Z]` of its length."""
    variable = arguments[-1] is Ellipsis
    readers = [_reader(argument) for argument in arguments if argument is not Ellipsis]

    def read(value: Any) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise Misfit("", f"{_excerpt(value)} is not a list; write [...]")
        if not variable and len(value) != len(readers):
            raise Misfit("", f"{_excerpt(value)} is not a list of {len(readers)}; write as many")
        return tuple(
            _item(readers[0] if variable else readers[i], i, item) for i, item in enumerate(value)
        )

    return read


def _item(reader: Reader, place: int, item: Any) -> Any:
    """An item of a list; in a `Misfit` its key is its index."""
    try:
        return reader(item)
    except Misfit as misfit:
        raise misfit.under(str(place)) from None


def _mapping(key: Any, item: Any) -> Reader:
    read_key, read_item = _reader(key), _reader(item)

    def read(value: Any) -> dict[Any, Any]:
        if isinstance(value, list) and bare(key) is int:
            value = {0: value}
        if not isinstance(value, Mapping):
            raise Misfit("", f"{_excerpt(value)} is not a mapping; write {{key: value}}")
        return {read_key(name): read_item(entry) for name, entry in value.items()}

    return read


def _excerpt(value: Any) -> str:
    """A value in an error message, cut to a readable length."""
    text = str(value)
    return quoted(text if len(text) <= 60 else text[:60] + "...")
