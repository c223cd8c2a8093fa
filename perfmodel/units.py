"""Quantities as people write them ("3.35 TB/s", "50 MiB", "655 cycles") and as SI numbers.

Numbers inside the package are plain floats in SI base units with the unit in their name; this
module is the only place where they are read from text or turned into text. Prefixes are decimal
(k = 1e3 … E = 1e18) everywhere but in capacities, which also take KiB, MiB, GiB and TiB: a cache
is binary, a bandwidth never is.

    parse("3.35 TB/s", "bandwidth")  ->  3.35e12        si(3.35e12, "B/s")      ->  "3.35 TB/s"
    parse("50 MiB", "capacity")      ->  52428800.0     binary(52428800)        ->  "50.0 MiB"
    parse("2.5 us", "time")          ->  2.5e-06        seconds(1.23e-5)        ->  "12.3 µs"
"""

from __future__ import annotations

import math
import re
from decimal import Decimal

from perfmodel.errors import PerfmodelError
from perfmodel.frozen import dataclass
from perfmodel.plaintext import quoted

DECIMAL = {"n": -9, "µ": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_MICRO = {"u": "µ", "\u03bc": "µ"}  # ASCII u and the Greek letter are read as the micro sign
_PREFIX = {exponent: prefix for prefix, exponent in DECIMAL.items()}
_NUMBER = r"\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?"
_LONGEST = 1000  # characters of a quantity
_TEXT = re.compile(rf"\s*([+-]?)({_NUMBER})\s*(\S*)\s*")


class UnitError(PerfmodelError, ValueError):
    """A quantity without a unit, in the wrong unit, or without a number."""


@dataclass(frozen=True)
class Dimension:
    """A kind of quantity.

    `least` and `most` are thousands of times below and above the values of any built device.
    """

    name: str
    """Name of the dimension."""
    symbols: tuple[str, ...]
    """Accepted unit symbols."""
    example: str
    """An example as people write it."""
    least: float
    """Smallest value that a device may have, in SI units."""
    most: float
    """Largest value that a device may have, in SI units."""
    prefixed: bool = True
    """Whether units take prefixes: k, M, G."""
    binary: bool = False
    """Whether prefixes may be binary: Ki, Mi, Gi."""

    def allows(self, value: float) -> bool:
        """Whether a device may have this value, in SI units."""
        return self.least <= value <= self.most

    def scales(self) -> dict[str, Decimal]:
        """Every accepted unit spelling with its factor to the SI base unit."""
        prefixes = {p: Decimal(10) ** e for p, e in DECIMAL.items() if self.prefixed or not p}
        prefixes |= {u: prefixes[p] for u, p in _MICRO.items() if p in prefixes}
        if self.binary:
            prefixes |= {p: Decimal(factor) for p, factor in BINARY.items()}
        return {p + symbol: scale for symbol in self.symbols for p, scale in prefixes.items()}

    def pattern(self) -> str:
        """A regular expression for the accepted text (it goes into the JSON Schema)."""
        units = "|".join(re.escape(unit).replace("/", r"\/") for unit in sorted(_SCALES[self.name]))
        return rf"^{_NUMBER} ?({units})$"


DIMENSIONS = {
    dimension.name: dimension
    for dimension in (
        Dimension("bandwidth", ("B/s",), "3.35 TB/s", 1e6, 1e21),
        Dimension("compute rate", ("FLOP/s", "OP/s"), "989.4 TFLOP/s", 1e6, 1e21),
        Dimension("special-function rate", ("exp/s",), "2.4 Texp/s", 1e6, 1e21),
        Dimension("capacity", ("B",), "50 MiB", 1.0, 1e18, binary=True),
        Dimension("frequency", ("Hz",), "1830 MHz", 1e5, 1e13),
        Dimension("power", ("W",), "700 W", 1e-2, 1e8),
        Dimension("time", ("s",), "373 ns", 1e-12, 1.0),
        Dimension("cycles", ("cycles",), "655 cycles", 1e-3, 1e9, prefixed=False),
        Dimension("bytes per clock", ("B/clk",), "128 B/clk", 1e-3, 1e9, prefixed=False),
        Dimension("rate per clock", ("/clk",), "16 /clk", 1e-3, 1e9, prefixed=False),
    )
}
_SCALES = {dimension.name: dimension.scales() for dimension in DIMENSIONS.values()}
_DIMENSIONS = {unit: DIMENSIONS[name] for name, units in _SCALES.items() for unit in units}
_UNPREFIXED = {s for d in DIMENSIONS.values() if not d.prefixed for s in d.symbols}


def parse(text: str, dimension: str) -> float:
    """The SI value of `text`, correctly rounded; `dimension` is a name in `DIMENSIONS`.

    Raises `UnitError`, with what is wrong and how to write it, for a missing or foreign unit, a
    negative value, and anything that is not a finite number.
    """
    example = DIMENSIONS[dimension].example
    if len(text) > _LONGEST:
        raise UnitError(f'{dimension} {quoted(text)} is too long a text; write "{example}"')
    match = _TEXT.fullmatch(text)
    if match is None:
        raise UnitError(f'{dimension} {text!r} is not a number with a unit; write "{example}"')
    sign, number, unit = match.groups()
    if not unit:
        raise UnitError(f'{dimension} {text!r} has no unit; write it like "{example}"')
    scale = _SCALES[dimension].get(unit)
    if scale is None:
        raise UnitError(_wrong_unit(text, unit, dimension))
    value = float(Decimal(number) * scale)
    if sign == "-" and value:
        raise UnitError(f'{dimension} {text!r} is negative; write it like "{example}"')
    if not math.isfinite(value):
        raise UnitError(f"{dimension} {text!r} is too large to be a number")
    return value


def parse_any(text: str, dimensions: tuple[str, ...]) -> tuple[Dimension, float]:
    """The first of `dimensions` that fits, and the SI value. Raises the first one's error if none
    fits."""
    match = _TEXT.fullmatch(text[:_LONGEST])
    dimension = _DIMENSIONS.get(match[3]) if match else None
    name = dimension.name if dimension and dimension.name in dimensions else dimensions[0]
    return DIMENSIONS[name], parse(text, name)


def dimension_of(text: str) -> Dimension:
    """The dimension of a quantity that was read before, by its unit."""
    match = _TEXT.fullmatch(text)
    assert match is not None, text
    return _DIMENSIONS[match[3]]


def _wrong_unit(text: str, unit: str, dimension: str) -> str:
    """Why `unit` does not fit: another quantity, a binary prefix on a rate, or a bit for a byte."""
    expected = DIMENSIONS[dimension]
    write = f'write it like "{expected.example}"'
    for quantity, scales in _SCALES.items():
        if unit in scales:
            return f"{dimension} {text!r} has the unit of a {quantity}; {write}"
    if unit[1:2] == "i" and unit[:1] + unit[2:] in _SCALES[dimension]:
        return f"{dimension} {text!r} has a binary prefix, but rates are decimal; {write}"
    match = next((u for u in _SCALES[dimension] if u.lower() == unit.lower()), None)
    hint = f"did you mean {match!r}?" if match else write
    return f"{dimension} {text!r} has an unknown unit {unit!r}; {hint}"


def si(value: float, unit: str, digits: int = 3) -> str:
    """`value` with a decimal prefix, rounded before the prefix is chosen.

    si(999.9999e9, "B/s") is "1.00 TB/s". Beyond the prefixes the number itself grows.
    """
    if not math.isfinite(value):
        return f"{value} {unit}"
    mantissa, exponent = f"{value:.{digits - 1}e}".split("e")
    power = min(max(int(exponent) // 3 * 3, -9), 18) if value else 0
    shift = int(exponent) - power
    number = Decimal(mantissa).scaleb(shift)
    return f"{number:.{max(digits - 1 - shift, 0)}f} {_PREFIX[power]}{unit}"


def binary(value: float, digits: int = 3) -> str:
    """Bytes with a binary prefix, rounded before the prefix is chosen: "50.0 MiB"."""
    prefix, scale = "", 1
    for unit, factor in BINARY.items():
        if abs(_significant(value / scale, digits)) < 1024:
            break
        prefix, scale = unit, factor
    number = value / scale
    places = len(str(int(abs(_significant(number, digits)))))
    return f"{number:.{max(digits - places, 0) if prefix else 0}f} {prefix}B"


def _significant(value: float, digits: int) -> float:
    """`value` rounded to `digits` significant digits, but never coarser than to an integer."""
    return round(value, max(digits - len(str(int(abs(value)))), 0))


def seconds(value: float, digits: int = 3) -> str:
    """A duration: "12.3 µs"."""
    return si(value, "s", digits)


def exact(value: float, unit: str) -> str:
    """`value` with all its digits (and a prefix if `unit` takes one): `parse` returns the same
    value."""
    number = Decimal(repr(value))
    takes_prefix = value and unit not in _UNPREFIXED
    power = min(max(number.adjusted() // 3 * 3, -9), 18) if takes_prefix else 0
    mantissa = number.scaleb(-power).normalize()
    return f"{mantissa:f} {_PREFIX[power]}{unit}"
