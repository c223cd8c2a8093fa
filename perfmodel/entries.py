"""YAML entries as frozen dataclasses and back, by the annotations of their fields.

Where a mapping by size is expected, a list stands for all sizes: `tiles: [[64, 64, 128]]` is `{0:
[[64, 64, 128]]}`. A value that does not fit raises `Misfit` with the key and what to write.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass
from functools import lru_cache
from itertools import count, repeat
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from perfmodel.errors import PerfmodelError, nearest
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
    """What a field takes beside its type: `Annotated[str, Rule(check)]`."""

    check: Callable[[Any], object]
    """Raises `ValueError`, saying what is wrong and what to write, for a value that does not
    fit."""
    schema: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Keywords of a JSON Schema that say the same, as far as they can."""


@dataclass(frozen=True)
class Narrowed:
    """A dataclass with narrower types of some fields: `Annotated[Quantity, Narrowed(...)]`."""

    name: str
    """Name in a JSON Schema."""
    hints: Mapping[str, Any] = field(hash=False)
    """The annotations of these fields."""


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
            raise ValueError(f"{_excerpt(text)} does not fit; write one such as {example}")

    return Rule(check, {"pattern": pattern})


def made(
    kind: Any, entry: Any, given: Mapping[str, Any] | None = None, narrowed: Narrowed | None = None
) -> Any:
    """An entry as its dataclass; `given` has values of fields that no entry states.

    Raises `Misfit` for unknown keys, values of another type, missing fields without a default, and
    values that the dataclass itself refuses.
    """
    given = given or {}
    if not isinstance(entry, Mapping):
        raise Misfit("", f"{_excerpt(entry)} is not a mapping; write key: value")
    readers, needed = _readers(kind, narrowed)
    if given:
        readers = {name: reader for name, reader in readers.items() if name not in given}
    items = [(key, readers.get(key) or _unknown(key, readers), entry[key]) for key in entry]
    items += [(name, _missing, None) for name in needed if name in readers and name not in entry]
    values = dict(zip(entry, _read_each(items), strict=True))
    try:
        return kind(**values, **given)
    except (PerfmodelError, ValueError) as error:
        raise Misfit("", str(error)) from None


def stated(kind: Any, entry: Mapping[str, Any], without: Iterable[str] = ()) -> dict[str, Any]:
    """The fields of a dataclass that an entry states, but those in `without`. Raises `Misfit`."""
    readers = {key: value for key, value in _readers(kind, None)[0].items() if key not in without}
    items = ((key, readers.get(key) or _unknown(key, readers), entry[key]) for key in entry)
    return dict(zip(entry, _read_each(items), strict=True))


def _read_each(items: Iterable[tuple[str | int, Reader, Any]]) -> list[Any]:
    """Every value, read by the reader beside it. Raises the misfits of all as one."""
    values: list[Any] = []
    faults: list[Fault] = []
    for key, reader, value in items:
        try:
            values.append(reader(value))
        except Misfit as misfit:
            faults += misfit.under(key).faults
    if faults:
        raise Misfit(*faults[0], *faults[1:])
    return values


def _unknown(key: Any, known: Iterable[str]) -> Reader:
    """Refuses the value of a key that is not known."""

    def read(_value: Any) -> NoReturn:
        raise Misfit("", f"there is no such key; {nearest(str(key), known)}")

    return read


def _missing(_value: Any) -> NoReturn:
    raise Misfit("", "the key is missing; add it")


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


@lru_cache(maxsize=64)
def _readers(kind: Any, narrowed: Narrowed | None) -> tuple[Mapping[str, Reader], Sequence[str]]:
    """The reader of each field of a dataclass, and the fields without a default."""
    hints = {**get_type_hints(kind, include_extras=True), **(narrowed.hints if narrowed else {})}
    items = [item for item in fields(kind) if item.init]
    needed = [item.name for item in items if not has_default(item)]
    return {item.name: _reader(hints[item.name]) for item in items}, needed


def has_default(item: Field[Any]) -> bool:
    """Whether an entry need not state a field."""
    return item.default is not MISSING or item.default_factory is not MISSING


def bare(hint: Any) -> Any:
    """A type hint without its unit."""
    return get_args(hint)[0] if get_origin(hint) is Annotated else hint


def optional(hint: Any) -> Any | None:
    """The other type of a hint that allows None; None where it does not allow None."""
    if get_origin(hint) not in (Union, UnionType):
        return None
    (inner,) = (each for each in get_args(hint) if each is not NoneType)
    return inner


def extras(hint: Any, kind: type[_T]) -> list[_T]:
    """The annotations of a class that a type hint carries."""
    marks = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    return [mark for mark in marks if isinstance(mark, kind)]


def _reader(hint: Any) -> Reader:
    narrowed = next(iter(extras(hint, Narrowed)), None)
    reader = _plain_reader(bare(hint), narrowed)
    rules = extras(hint, Rule)
    if not rules:
        return reader

    def read(value: Any) -> Any:
        decoded = reader(value)
        try:
            for rule in rules:
                rule.check(decoded)
        except ValueError as error:
            raise Misfit("", str(error)) from None
        return decoded

    return read


def _plain_reader(hint: Any, narrowed: Narrowed | None) -> Reader:
    """The reader of a type without its rules."""
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
        return lambda value: made(hint, value, narrowed=narrowed)
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
            names = ", ".join(map(str, choices))
            raise Misfit("", f"{_excerpt(value)} is not known; write one of {names}")
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
        each = repeat(readers[0]) if variable else readers
        return tuple(_read_each(zip(count(), each, value)))

    return read


def _mapping(key: Any, item: Any) -> Reader:
    read_key, read_item = _reader(key), _reader(item)

    def read(value: Any) -> dict[Any, Any]:
        if isinstance(value, list) and bare(key) is int:
            return {0: read_item(value)}
        if not isinstance(value, Mapping):
            raise Misfit("", f"{_excerpt(value)} is not a mapping; write {{key: value}}")
        items = _read_each((name, read_item, entry) for name, entry in value.items())
        keys = _read_each((name, read_key, name) for name in value)
        return dict(zip(keys, items, strict=True))

    return read


def _excerpt(value: Any) -> str:
    """A value in an error message, cut to a readable length."""
    text = str(value)
    return quoted(text if len(text) <= 60 else text[:60] + "...")
