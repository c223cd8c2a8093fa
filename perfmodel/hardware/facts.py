"""A fact: one value, its source, and how far to trust it.

    bandwidth: {value: "3.35 TB/s", source: [nv-h100-wp], status: via, note: "..."}

A quantity is text with a unit. `fact.si` is the number in SI units, `fact.text` the text of the
file, so a spec is written back as it was read. `checking` defines the allowed texts and numbers for
the type names here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, ClassVar, Literal

from perfmodel.hardware.block import Block
from perfmodel.plaintext import quoted
from perfmodel.units import UnitError, parse

Status = Literal["spec", "via", "config", "measured", "secondary", "derived", "unverified"]

Line = str
"""One line of printable text."""
Label = str
"""A line that may stand in a table: no formula of a spreadsheet, nothing of sparsity."""
Keys = tuple[Line, ...]
"""Names of sources, one at least."""
Whole = int
"""A whole number above zero."""
Quantified = str
"""A number with a unit that fits the fact."""
ClockText = str | None
"""A frequency with its unit, or nothing."""


class Sourced(Block):
    """A value with its source."""

    source: Keys
    """Keys into the `sources` of the file."""
    status: Status
    """spec: the vendor's document; via: that document quoted by others; config: reported by the
    device or shipped in a tool's configuration; measured: a benchmark; secondary: a third party's
    table; derived: computed from other facts; unverified: from memory, check before use."""
    note: Line | None = None
    """Remark on this number."""


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


class Quantity(Sourced):
    """A number with a unit; subclasses name the dimension."""

    dimensions: ClassVar[tuple[str, ...]]
    value: Quantified
    """The number and its unit."""

    @cached_property
    def si(self) -> float:
        """The value in SI units (B/s, FLOP/s, B, Hz, W, s) or per clock."""
        return measured_in(self.value, self.dimensions)[1]

    @property
    def text(self) -> str:
        """The quantity as written in the file."""
        return self.value


def measured_in(text: str, dimensions: tuple[str, ...]) -> tuple[str, float]:
    """The first of `dimensions` that fits, and the SI value. Raises the first one's error if none
    fits."""
    for dimension in dimensions[1:]:
        try:
            return dimension, parse(text, dimension)
        except UnitError:
            continue
    return dimensions[0], parse(text, dimensions[0])


class Bandwidth(Quantity):
    """Bytes per second, decimal."""

    dimensions = ("bandwidth",)


class Rate(Quantity):
    """Operations per second: FLOP/s, or OP/s for integers; a multiply-add counts two."""

    dimensions = ("compute rate",)


class SpecialRate(Quantity):
    """Special functions (exponentials) per second."""

    dimensions = ("special-function rate",)


class Capacity(Quantity):
    """Bytes: binary prefixes for caches, the vendor's decimal GB for the main memory."""

    dimensions = ("capacity",)


class Clock(Quantity):
    """Hertz."""

    dimensions = ("frequency",)


class Power(Quantity):
    """Watts."""

    dimensions = ("power",)


class BytesPerClock(Quantity):
    """Bytes per clock."""

    dimensions = ("bytes per clock",)


class PerClock(Quantity):
    """Operations per clock."""

    dimensions = ("rate per clock",)


class Duration(Quantity):
    """Seconds."""

    dimensions = ("time",)


class Latency(Quantity):
    """Time of one access, in cycles of a stated clock or in seconds."""

    dimensions = ("time", "cycles")
    at_clock: ClockText = None
    """The clock at which cycles were counted."""

    @cached_property
    def si(self) -> float:
        """Seconds."""
        number = measured_in(self.value, self.dimensions)[1]
        if not self.value.endswith("cycles"):
            return number
        if self.at_clock is None:
            raise ValueError('a latency in cycles needs its clock: at_clock: "1755 MHz"')
        clock = parse(self.at_clock, "frequency")
        if clock <= 0:
            raise ValueError(f"at_clock {quoted(self.at_clock)} must be above zero")
        return number / clock

    def agree(self) -> None:
        """A latency in cycles needs a clock; one in seconds must not have one."""
        if self.at_clock is not None and not self.value.endswith("cycles"):
            raise ValueError("at_clock belongs to a latency in cycles")
        _ = self.si


def items(block: Block) -> Iterator[tuple[str, Any]]:
    """Fields of `block` that have a value; in a fact the value comes before its source."""
    names = list(block.fields)
    if isinstance(block, Sourced):
        names.sort(key=lambda name: name in Sourced.fields)
    for name in names:
        value = getattr(block, name)
        if value is not None and value != () and value != {}:
            yield name, value


def walk(block: Block, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Sourced]]:
    """Every fact in `block`, with its path of keys."""
    for name, value in items(block):
        place = (*path, name)
        if isinstance(value, Sourced):
            yield place, value
        elif isinstance(value, Block):
            yield from walk(value, place)
        elif isinstance(value, dict):
            for key, item in value.items():
                if isinstance(item, Sourced):
                    yield (*place, key), item
        elif isinstance(value, tuple):
            for i, item in enumerate(value):
                if isinstance(item, Block):
                    yield from walk(item, (*place, str(getattr(item, "name", i))))
