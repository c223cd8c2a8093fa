"""Formats of weights: the stored bits, and the product that reads them.

What a format stores is declared in compression/formats.yaml; a column's own scale, 16 bits of a
thousand weights, is left out here. Products of the layers use the format. Router, norms and biases
stay at 16 bits, as in released checkpoints; embedding and head too, unless the format says
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from perfmodel.compression import quantised
from perfmodel.errors import UnknownName
from perfmodel.networks.network import Network
from perfmodel.networks.summary import narrowed, part
from perfmodel.networks.value import Weight

_PLAIN = Fraction(16)


@dataclass(frozen=True)
class WeightFormat:
    """How the weights of a layer's products are stored, and what multiplies them."""

    name: str
    """Name on the command line."""
    stores: str
    """Name of the format in `perfmodel compress`; another name of this one too."""
    product: str
    """Format of its products (`algorithms.matmul.FORMATS`)."""
    widened: str = ""
    """Format of the products on a device without a rate for `product`; weights are dequantised
    first."""

    @cached_property
    def stored(self) -> quantised.Format:
        """What is stored."""
        return quantised.load(self.stores)

    @property
    def bits(self) -> Fraction:
        """Bits of a weight, with its share of scales and zeros."""
        return _bits(self.stored)

    @property
    def wide(self) -> bool:
        """Whether nothing is quantised."""
        return self.product in ("fp16", "bf16")


def _bits(stored: quantised.Format) -> Fraction:
    """b + (scale + zero) / group, exactly."""
    bits, scale, zero = (
        Fraction(str(each)) for each in (stored.bits, stored.scale_bits, stored.zero_bits)
    )
    return bits + (scale + zero) / (stored.group or 1)


FORMATS: Mapping[str, WeightFormat] = {
    entry.name: entry
    for entry in (
        WeightFormat("bf16", "fp16", "bf16"),
        WeightFormat("fp16", "fp16", "fp16"),
        WeightFormat("fp8", "fp8", "fp8", "w8a16"),
        WeightFormat("fp8-block", "fp8-block", "fp8_block", "w8a16"),
        WeightFormat("int8", "w8a16", "w8a16"),
        WeightFormat("w8a8", "w8a8", "w8a8_int8"),
        WeightFormat("int4-g128", "w4a16", "w4a16"),
        WeightFormat("int4-g32", "w4a16-gptfast", "w4a16"),
        WeightFormat("q4_k_m", "q4_k_m", "w4a16"),
        WeightFormat("nvfp4", "nvfp4", "nvfp4", "w4a16"),
        WeightFormat("mxfp4", "mxfp4", "mxfp4", "w4a16"),
    )
}
"""Every format by name; products of int4-g32 and q4_k_m are timed with 4.125 bits a weight. The
checkpoints of gpt-oss have MXFP4 in the experts alone (2508.10925, section 2.1). 8-bit floats are
widened where there is no fp8 rate, as vLLM does on Ampere (vLLM documents, FP8 W8A8: "weight-only
W8A16, utilizing FP8 Marlin")."""


def weight_format(name: str) -> WeightFormat:
    """The format with this name or alias. Raises `UnknownName` with the nearest names."""
    slug = name.lower().replace("_", "-")
    for spelling in ("name", "stores"):
        for entry in FORMATS.values():
            if slug == getattr(entry, spelling).replace("_", "-"):
                return entry
    raise UnknownName("format of weights", name, FORMATS, "(perfmodel compress has more)")


def stored_bits(weight: Weight, of: WeightFormat, network: Network) -> Fraction:
    """Bits of each of a parameter's elements."""
    if narrowed(weight, network, experts_only=of.stored.experts_only):
        return of.bits
    tables = {"head": of.stored.head, "embedding": of.stored.embedding}
    table = tables.get(part(weight, network))
    return _PLAIN if table is None else _bits(quantised.load(table))
