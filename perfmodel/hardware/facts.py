"""A fact: one value, its source, and how far to trust it.

    bandwidth: {value: "3.35 TB/s", source: [nv-h100-wp], status: via, note: "..."}

A quantity is text with a unit. `fact.si` is the number in SI units, `fact.text` the text of the
file, so a spec is written back as it was read. The types here say what a file may state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cached_property
from typing import Annotated, Any, Literal

from perfmodel.entries import Narrowed, Rule, within
from perfmodel.frozen import dataclass
from perfmodel.plaintext import quoted
from perfmodel.units import DIMENSIONS, dimension_of, parse, parse_any

Status = Literal["spec", "via", "config", "measured", "secondary", "derived", "unverified"]
_FORMULA = ("=", "+", "-", "@", "'")


def one_line(text: str) -> None:
    """Raise `ValueError` unless a text is one line of printable characters."""
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line of printable text")


def _dense(text: str) -> None:
    """Structured sparsity doubles a peak on paper; specs hold dense figures only."""
    if "spars" in text.lower():
        raise ValueError(f"{text!r}: sparse figures are refused; give the dense one")


def _plain_name(text: str) -> None:
    """Names appear in tables that spreadsheets open, where these signs begin a formula."""
    if text.lstrip()[:1] in _FORMULA:
        raise ValueError(f"{quoted(text)}: a name does not begin with one of {' '.join(_FORMULA)}")


def _not_empty(table: Any) -> None:
    if not table:
        raise ValueError("is empty; add an entry")


Line = Annotated[str, Rule(one_line)]
"""One line of printable text."""
Label = Annotated[
    Line,
    Rule(_dense),
    Rule(_plain_name, {"pattern": rf"^\s*[^\s{''.join(map(re.escape, _FORMULA))}]"}),
]
"""A line that may stand in a table: no formula of a spreadsheet, nothing of sparsity."""
Keys = Annotated[tuple[Line, ...], Rule(_not_empty, {"minItems": 1})]
"""Names of sources, one at least."""
NotEmpty = Rule(_not_empty, {"minProperties": 1})
"""The rule of a mapping with one entry at least."""
Whole = Annotated[int, within(1, 1e9)]
"""A whole number above zero."""


@dataclass(frozen=True, kw_only=True)
class Sourced:
    """A value with its source."""

    source: Keys
    """Keys into the `sources` of the file."""
    status: Status
    """spec: the vendor's document; via: that document quoted by others; config: reported by the
    device or shipped in a tool's configuration; measured: a benchmark; secondary: a third party's
    table; derived: computed from other facts; unverified: from memory, check before use."""
    note: Line | None = None
    """Remark on this number."""


@dataclass(frozen=True, kw_only=True)
class Count(Sourced):
    """A number without a unit, such as the number of SMs."""

    value: Whole
    """A whole number."""

    @property
    def si(self) -> float:
        """The number."""
        return float(self.value)

    @property
    def text(self) -> str:
        """The number as written in the file."""
        return str(self.value)


@dataclass(frozen=True, kw_only=True)
class Quantity(Sourced):
    """A number with a unit; the types below say of what."""

    value: str
    """The number and its unit."""

    @cached_property
    def si(self) -> float:
        """The value in SI units (B/s, FLOP/s, B, Hz, W, s) or per clock."""
        return parse(self.value, dimension_of(self.value).name)

    @property
    def text(self) -> str:
        """The quantity as written in the file."""
        return self.value


def _text_of(*dimensions: str) -> Rule:
    """The rule of a number with a unit of one of `dimensions`, within the range of real devices."""
    patterns = "|".join(f"({DIMENSIONS[name].pattern()})" for name in dimensions)
    examples = [DIMENSIONS[name].example for name in dimensions]

    def check(value: Any) -> None:
        name, example = dimensions[0], examples[0]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ValueError(f'{name} {value!r} has no unit; write it like "{example}"')
        if not isinstance(value, str):
            raise ValueError(f'{name} must be text such as "{example}", not {value!r}')
        one_line(value)
        _dense(value)
        dimension, number = parse_any(value, dimensions)
        if number <= 0:
            raise ValueError(f"{dimension.name} {value!r} must be above zero")
        if not dimension.allows(number):
            raise ValueError(
                f"{dimension.name} {value!r} is beyond any device's, {dimension.least:g} to "
                f"{dimension.most:g} {dimension.symbols[0]}"
            )

    return Rule(check, {"type": "string", "pattern": patterns, "examples": examples})


def _quantity(name: str, *dimensions: str) -> Narrowed:
    return Narrowed(name, {"value": _text_of(*dimensions)})


Bandwidth = Annotated[Quantity, _quantity("Bandwidth", "bandwidth")]
"""Bytes per second, decimal."""
Rate = Annotated[Quantity, _quantity("Rate", "compute rate")]
"""Operations per second: FLOP/s, or OP/s for integers; a multiply-add counts two."""
SpecialRate = Annotated[Quantity, _quantity("SpecialRate", "special-function rate")]
"""Special functions (exponentials) per second."""
Capacity = Annotated[Quantity, _quantity("Capacity", "capacity")]
"""Bytes: binary prefixes for caches, the vendor's decimal GB for the main memory."""
Clock = Annotated[Quantity, _quantity("Clock", "frequency")]
"""Hertz."""
Power = Annotated[Quantity, _quantity("Power", "power")]
"""Watts."""
BytesPerClock = Annotated[Quantity, _quantity("BytesPerClock", "bytes per clock")]
"""Bytes per clock."""
PerClock = Annotated[Quantity, _quantity("PerClock", "rate per clock")]
"""Operations per clock."""
Duration = Annotated[Quantity, _quantity("Duration", "time")]
"""Seconds."""


@dataclass(frozen=True, kw_only=True)
class CycleTime(Quantity):
    """Time of one access, in cycles of a stated clock or in seconds."""

    at_clock: str | None = None
    """The clock at which cycles were counted."""

    @cached_property
    def si(self) -> float:
        """Seconds."""
        number = parse(self.value, dimension_of(self.value).name)
        return number if self.at_clock is None else number / parse(self.at_clock, "frequency")

    def __post_init__(self) -> None:
        in_cycles = self.value.endswith("cycles")
        if in_cycles and self.at_clock is None:
            raise ValueError('a latency in cycles needs its clock: at_clock: "1755 MHz"')
        if not in_cycles and self.at_clock is not None:
            raise ValueError("at_clock belongs to a latency in cycles")


Latency = Annotated[
    CycleTime,
    Narrowed(
        "Latency",
        {"value": _text_of("time", "cycles"), "at_clock": _text_of("frequency")},
    ),
]
"""Time of one access, in cycles of a stated clock or in seconds."""


def si_of(fact: Quantity | None) -> float | None:
    """The SI value of a quantity that a spec may lack."""
    return None if fact is None else fact.si


def items(block: Any) -> Iterator[tuple[str, Any]]:
    """Fields of a part of a spec that have a value; in a fact the value comes before its source."""
    names = [item.name for item in fields(block)]
    if isinstance(block, Sourced):
        names.sort(key=lambda name: name in SOURCE_FIELDS)
    for name in names:
        value = getattr(block, name)
        if value is not None and value != () and value != {}:
            yield name, value


SOURCE_FIELDS = tuple(item.name for item in fields(Sourced))
"""Fields of every fact that are not its value."""


def walk(part: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Sourced]]:
    """Every fact in a part of a spec, with its path of keys."""
    if isinstance(part, Sourced):
        yield path, part
    elif is_dataclass(part):
        for name, value in items(part):
            yield from walk(value, (*path, name))
    elif isinstance(part, dict):
        for key, value in part.items():
            yield from walk(value, (*path, key))
    elif isinstance(part, tuple):
        for i, value in enumerate(part):
            yield from walk(value, (*path, str(getattr(value, "name", i))))
