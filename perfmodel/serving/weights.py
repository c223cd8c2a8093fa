"""Formats of weights: the stored bits, and the product that reads them.

Products of the layers use the format. Router, norms and biases stay at 16 bits, as in released
checkpoints; embedding and head too, unless the format says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from perfmodel.errors import UnknownName
from perfmodel.networks.network import Network
from perfmodel.networks.storage import narrowed, part
from perfmodel.networks.value import Weight

_PLAIN = Fraction(16)


@dataclass(frozen=True)
class WeightFormat:
    """How the weights of a layer's products are stored."""

    name: str
    """Name on the command line."""
    product: str
    """Format of its products (`algorithms.matmul.FORMATS`)."""
    bits: Fraction
    """Bits of a weight, with its share of scales and zeros."""
    widened: str = ""
    """Format of the products on a device without a rate for `product`; weights are dequantised
    first."""
    note: str = ""
    """What the product's timing leaves out of the format."""
    aliases: tuple[str, ...] = ()
    """Other names; `perfmodel compress` lists formats by them."""
    embedding: Fraction = _PLAIN
    """Bits of a weight of the embedding."""
    head: Fraction = _PLAIN
    """Bits of a weight of the head, and of an embedding that is also the head."""
    experts_only: bool = False
    """Whether, in a network with experts, it stores their matrices alone."""

    @property
    def wide(self) -> bool:
        """Whether nothing is quantised."""
        return self.product in ("fp16", "bf16")


def _integer(bits: int, group: int, scale: int = 16, zero: int = 0) -> Fraction:
    """b + (scale + zero) / group."""
    return Fraction(bits) + Fraction(scale + zero, group)


_Q4_K, _Q6_K = Fraction(45, 10), Fraction(6) + Fraction(144, 256)
_AS_G128 = "products are timed with 4.125 bits a weight"
FORMATS: Mapping[str, WeightFormat] = {
    entry.name: entry
    for entry in (
        WeightFormat("bf16", "bf16", Fraction(16)),
        WeightFormat("fp16", "fp16", Fraction(16)),
        WeightFormat("fp8", "fp8", Fraction(8)),
        WeightFormat("fp8-block", "fp8_block", _integer(8, 128 * 128, 32)),
        WeightFormat("int8", "w8a16", Fraction(8), aliases=("w8a16",)),
        WeightFormat("w8a8", "w8a8_int8", Fraction(8)),
        WeightFormat("int4-g128", "w4a16", _integer(4, 128), aliases=("w4a16",)),
        WeightFormat(
            "int4-g32",
            "w4a16",
            _integer(4, 32, 16, 16),
            note=_AS_G128,
            aliases=("w4a16-gptfast",),
        ),
        WeightFormat(
            "q4_k_m",
            "w4a16",
            Fraction(48, 10),
            note=_AS_G128,
            embedding=_Q4_K,
            head=_Q6_K,
        ),
        WeightFormat("nvfp4", "nvfp4", _integer(4, 16, 8), "w4a16"),
        WeightFormat("mxfp4", "mxfp4", _integer(4, 32, 8), "w4a16", experts_only=True),
    )
}
"""Every format by name. gpt-fast's int4 has a 16-bit scale and zero for each 32 weights;
llama.cpp's Q4_K_M has blocks of 4.5 bits, and of 6.56 for the head and for the value and down
projections of half of the layers (llama-quant.cpp), a seventh of a layer's weights: 4.8 on average.
The checkpoints of gpt-oss have MXFP4 in the experts alone (2508.10925, section 2.1)."""


def weight_format(name: str) -> WeightFormat:
    """The format with this name or alias. Raises `UnknownName` with the nearest names."""
    slug = name.lower().replace("_", "-")
    for entry in FORMATS.values():
        if slug in (spelling.replace("_", "-") for spelling in (entry.name, *entry.aliases)):
            return entry
    raise UnknownName("format of weights", name, FORMATS, "(perfmodel compress has more)")


def stored_bits(weight: Weight, of: WeightFormat, network: Network) -> Fraction:
    """Bits of each of a parameter's elements."""
    if narrowed(weight, network, experts_only=of.experts_only):
        return of.bits
    return {"head": of.head, "embedding": of.embedding}.get(part(weight, network), _PLAIN)
