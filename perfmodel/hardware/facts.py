"""A fact: one value, where it comes from, and how far to trust it.

    bandwidth: {value: "3.35 TB/s", source: [nv-h100-wp], status: via, note: "..."}

A quantity is text with a unit, parsed once when the fact is made: `fact.si` is the number in SI
units, `fact.text` what the file says, so a spec written back is the spec that was read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Literal, Self, cast, get_args, get_origin

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StrictInt,
    StrictStr,
    WithJsonSchema,
    field_validator,
)

from perfmodel.plaintext import quoted
from perfmodel.units import DIMENSIONS, UnitError, parse

_FORMULA = ("=", "+", "-", "@", "'")

Status = Literal["spec", "via", "config", "measured", "secondary", "derived", "unverified"]


def _one_line(text: str) -> str:
    if not text.strip() or not text.isprintable():
        raise ValueError("must be one line of printable text")
    return text


def _plain(text: str) -> str:
    """Names stand in tables that spreadsheets open, where these signs begin a formula."""
    if text.lstrip()[:1] in _FORMULA:
        raise ValueError(f"{quoted(text)}: a name does not begin with one of {' '.join(_FORMULA)}")
    return text


def _dense(text: str) -> str:
    """Structured sparsity doubles a peak on paper; specs hold dense figures only."""
    if "spars" in text.lower():
        raise ValueError(f"{text!r}: sparse figures are refused; give the dense one")
    return text


Line = Annotated[StrictStr, AfterValidator(_one_line)]
Label = Annotated[
    Line,
    AfterValidator(_dense),
    AfterValidator(_plain),
    WithJsonSchema({"type": "string", "pattern": rf"^\s*[^\s{''.join(map(re.escape, _FORMULA))}]"}),
]


class Block(BaseModel):
    """Base of every part of a spec: immutable, and an unknown key is an error."""

    # Field docs reach the JSON Schema through `schema`, not here: lifting them on every import
    # would cost a prediction a tenth of its time. So would a validator for every part: built when
    # first needed, there is one for the whole spec.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    @classmethod
    def trusted(cls, data: Mapping[str, Any]) -> Self:
        """The block that `data` describes, unchecked: data of a shipped file, which tests check."""
        fields = cls.model_fields
        parts = {key: _trusted(fields[key].annotation, value) for key, value in data.items()}
        return cast(Self, cls.model_construct(set(parts), **parts))


def _trusted(kind: Any, value: Any) -> Any:
    """A value of a file as its field holds it: tuples for lists, blocks for mappings."""
    if isinstance(value, list):
        return tuple(value)
    if not isinstance(value, dict):
        return value
    parts = get_args(kind) or (kind,)  # of dict[key, part], part | None, part
    part = next((one for one in parts if isinstance(one, type) and issubclass(one, Block)), None)
    if get_origin(kind) is not dict:
        return value if part is None else part.trusted(value)
    return {key: item if part is None else part.trusted(item) for key, item in value.items()}


class Sourced(Block):
    """Where something comes from."""

    source: tuple[Line, ...] = Field(min_length=1)
    """Keys into the `sources` of the file."""
    status: Status
    """spec: the vendor's document; via: that document quoted by others; config: reported by the
    device or shipped in a tool's configuration; measured: a benchmark; secondary: a third party's
    table; derived: computed from other facts; unverified: from memory, check before use."""
    note: Line | None = None
    """What a reader should know about this number."""


class Count(Sourced):
    """A number without a unit, such as the number of SMs."""

    value: StrictInt = Field(gt=0, le=10**9)
    """A whole number."""

    @property
    def si(self) -> float:
        """The number."""
        return float(self.value)

    @property
    def text(self) -> str:
        """The number as it is written."""
        return str(self.value)


class Quantity(Sourced):
    """A number with a unit; subclasses say which."""

    dimensions: ClassVar[tuple[str, ...]]
    value: str
    """The number and its unit."""
    _si: float = PrivateAttr(default=0.0)

    @field_validator("value", mode="before")
    @classmethod
    def _is_text(cls, value: Any) -> str:
        name = cls.dimensions[0]
        example = DIMENSIONS[name].example
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            raise ValueError(f'{name} {value!r} has no unit; write it like "{example}"')
        if not isinstance(value, str):
            raise ValueError(f'{name} must be text such as "{example}", not {value!r}')
        return _dense(_one_line(value))

    @field_validator("value")
    @classmethod
    def _is_positive(cls, value: str) -> str:
        name, number = _measured_in(value, cls.dimensions)
        if number <= 0:
            raise ValueError(f"{name} {value!r} must be above zero")
        dimension = DIMENSIONS[name]
        if not dimension.least <= number <= dimension.most:
            unit = dimension.symbols[0]
            raise ValueError(
                f"{name} {value!r} is beyond any device's, {dimension.least:g} to "
                f"{dimension.most:g} {unit}"
            )
        return value

    def model_post_init(self, _context: Any) -> None:
        """Keep the SI value."""
        self._si = _measured_in(self.value, self.dimensions)[1]

    @property
    def si(self) -> float:
        """The value in SI units (B/s, FLOP/s, B, Hz, W, s) or per clock."""
        return self._si

    @property
    def text(self) -> str:
        """The quantity as it is written."""
        return self.value


def _measured_in(text: str, dimensions: tuple[str, ...]) -> tuple[str, float]:
    """The one of `dimensions` that fits, and the SI value; the first one's complaint if none."""
    for dimension in dimensions[1:]:
        try:
            return dimension, parse(text, dimension)
        except UnitError:
            continue
    return dimensions[0], parse(text, dimensions[0])


def _quantity(*dimensions: str) -> Any:
    """Schema of the `value` field of a quantity in one of `dimensions`."""
    patterns = "|".join(f"({DIMENSIONS[name].pattern()})" for name in dimensions)
    examples = [DIMENSIONS[name].example for name in dimensions]
    return WithJsonSchema({"type": "string", "pattern": patterns, "examples": examples})


class Bandwidth(Quantity):
    """Bytes per second, decimal."""

    dimensions = ("bandwidth",)
    value: Annotated[str, _quantity("bandwidth")]


class Rate(Quantity):
    """Operations per second: FLOP/s, or OP/s for integers; a multiply-add counts two."""

    dimensions = ("compute rate",)
    value: Annotated[str, _quantity("compute rate")]


class SpecialRate(Quantity):
    """Special functions (exponentials) per second."""

    dimensions = ("special-function rate",)
    value: Annotated[str, _quantity("special-function rate")]


class Capacity(Quantity):
    """Bytes: binary prefixes for caches, the vendor's decimal GB for the main memory."""

    dimensions = ("capacity",)
    value: Annotated[str, _quantity("capacity")]


class Clock(Quantity):
    """Hertz."""

    dimensions = ("frequency",)
    value: Annotated[str, _quantity("frequency")]


class Power(Quantity):
    """Watts."""

    dimensions = ("power",)
    value: Annotated[str, _quantity("power")]


class BytesPerClock(Quantity):
    """Bytes per clock."""

    dimensions = ("bytes per clock",)
    value: Annotated[str, _quantity("bytes per clock")]


class PerClock(Quantity):
    """Operations per clock."""

    dimensions = ("rate per clock",)
    value: Annotated[str, _quantity("rate per clock")]


class Duration(Quantity):
    """Seconds."""

    dimensions = ("time",)
    value: Annotated[str, _quantity("time")]


class Latency(Quantity):
    """Time for one access to come back, in cycles of a stated clock or in seconds."""

    dimensions = ("time", "cycles")
    value: Annotated[str, _quantity("time", "cycles")]
    at_clock: Annotated[str | None, _quantity("frequency")] = None
    """The clock at which cycles were counted."""

    def model_post_init(self, context: Any) -> None:
        """Turn cycles into seconds."""
        super().model_post_init(context)
        if self.value.endswith("cycles"):
            if self.at_clock is None:
                raise ValueError('a latency in cycles needs its clock: at_clock: "1755 MHz"')
            clock = parse(self.at_clock, "frequency")
            if clock <= 0:
                raise ValueError(f"at_clock {quoted(self.at_clock)} must be above zero")
            self._si /= clock
        elif self.at_clock is not None:
            raise ValueError("at_clock belongs to a latency in cycles")


def items(block: BaseModel) -> Iterator[tuple[str, Any]]:
    """Fields of `block` that hold something; in a fact the value comes before its source."""
    names = list(type(block).model_fields)
    if isinstance(block, Sourced):
        names.sort(key=lambda name: name in Sourced.model_fields)
    for name in names:
        value = getattr(block, name)
        if value is not None and value != () and value != {}:
            yield name, value


def walk(block: BaseModel, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Sourced]]:
    """Every fact in `block`, with its path of keys."""
    for name, value in items(block):
        here = (*path, name)
        if isinstance(value, Sourced):
            yield here, value
        elif isinstance(value, BaseModel):
            yield from walk(value, here)
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, Sourced):
                    yield (*here, key), item
