"""Element types: bits in storage, and the type at whose rate they are multiplied.

A type with scales (a block-scaled or group-quantised format) counts them in `bits`: 4-bit NVFP4
with one 8-bit scale per 16 elements is 4.5 bits. `compute` names the rate that a device needs to
multiply two operands of the type: weight-only formats are widened first and run at 16-bit rate.
`bits4.25` is any other storage type of 4.25 bits.
"""

from __future__ import annotations

import re
from fractions import Fraction

from perfmodel.errors import UnknownName
from perfmodel.frozen import dataclass


@dataclass(frozen=True)
class ElementType:
    """How a number is stored."""

    name: str
    """Name of the type."""
    bits: Fraction
    """Bits of an element, scales included."""
    compute: str
    """The type at whose rate it is multiplied."""

    @property
    def bytes(self) -> float:
        """Bytes per element, scales included."""
        return self.bits.numerator / (8 * self.bits.denominator)


def _element(name: str, bits: int | Fraction, compute: str | None = None) -> ElementType:
    return ElementType(name, Fraction(bits), compute or name)


# Block formats: OCP Microscaling v1.0 (32 elements, 8-bit scale); NVFP4 (16 elements, 8-bit scale).
# fp8_block: one fp32 scale per 128 x 128 weights or 1 x 128 activations. int4 weights: group of 128
# with one 16-bit scale.
ELEMENTS = {
    element.name: element
    for element in (
        _element("fp64", 64),
        _element("fp32", 32),
        _element("tf32", 32),
        _element("fp16", 16),
        _element("bf16", 16),
        _element("fp8", 8),
        _element("fp8_block", Fraction(8) + Fraction(32, 128), "fp8"),
        _element("mxfp8", Fraction(8) + Fraction(8, 32), "fp8"),
        _element("int8", 8),
        _element("fp6", 6),
        _element("fp4", 4),
        _element("mxfp4", Fraction(4) + Fraction(8, 32), "fp4"),
        _element("nvfp4", Fraction(4) + Fraction(8, 16), "fp4"),
        _element("int4", 4),
        _element("int4_g128", Fraction(4) + Fraction(16, 128), "int4"),
    )
}

TORCH = {
    "float64": "fp64",
    "float32": "fp32",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "fp8",
    "float8_e4m3fnuz": "fp8",
    "float8_e5m2": "fp8",
    "float8_e5m2fnuz": "fp8",
    "int8": "int8",
}
"""torch's name (torch.dtype) of each type that kernels multiply."""

# Any other storage type, by its bits.
_OF_BITS = re.compile(r"bits(\d{1,3}(?:\.\d{1,9})?)")


def element(name: str) -> ElementType:
    """The element type called `name`; raises `UnknownName` with the nearest names."""
    element_type = ELEMENTS.get(name)
    if element_type is not None:
        return element_type
    bits = _OF_BITS.fullmatch(name)
    if bits is None or not Fraction(bits[1]):
        raise UnknownName("element type", name, ELEMENTS)
    return _element(name, Fraction(bits[1]))
