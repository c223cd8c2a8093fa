"""Dense formats: fewer bits for each weight, with scales (`formats.yaml`)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.algorithms.matmul import matmul_format
from perfmodel.catalogue import Table
from perfmodel.compression.scheme import PLAIN, PLAIN_BITS, Decoding, Scheme, decoded
from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.predict import predict
from perfmodel.prediction import Prediction


@dataclass(frozen=True)
class Format(Scheme):
    """One entry of the table: every matrix in one format."""

    name: str
    """Name on the command line."""
    about: str
    """One-line description."""
    bits: float
    """Bits of a weight, without scales."""
    source: str
    """Source of the definition."""
    scale_bits: float = 0.0
    """Bits of a group's scales."""
    scales_group: int = 0
    """Scales that share an fp32 scale of their own (double quantisation); 0: they have none."""
    zero_bits: float = 0.0
    """Bits of a group's zeros."""
    group: int = 0
    """Weights of a group; 0: no groups."""
    channel_bits: float = 0.0
    """Bits once a column: a scale, or a table of values."""
    multiplies: str = ""
    """Type of the product; empty: weights are dequantised to 16 bits."""
    decode: Decoding = field(default_factory=Decoding)
    """Work of decoding a stored weight to 16 bits."""
    head: str = PLAIN
    """Format of the head's matrix if the layers have this one."""
    embedding: str = PLAIN
    """Format of the embedding then, if it is not the head too."""
    experts_only: bool = False
    """Whether, in a network with experts, only their matrices have it."""
    aliases: tuple[str, ...] = ()
    """Other spellings."""

    def bits_at(self, k: int) -> float:
        """Stored bits a weight, for a matrix with k rows (the reduced dimension): b + (scale +
        zero)/g + column/k."""
        scales = self.scale_bits + (32.0 / self.scales_group if self.scales_group else 0.0)
        overhead = (scales + self.zero_bits) / self.group if self.group else 0.0
        return self.bits + overhead + self.channel_bits / k

    def in_groups_of(self, group: int) -> Format:
        """The same format with another group size. Raises `ProblemError` if it has no groups."""
        if not self.group:
            raise ProblemError(f"{self.name} has no groups of weights; drop :g{group}")
        if group < 1:
            raise ProblemError(f"{self.name}: groups of {group} weights; give 1 or more")
        return replace(self, name=f"{self.name}:g{group}", group=group)

    def stored_bytes(self, n: int, k: int) -> float:
        """n·k weights at the format's bits."""
        return n * k * self.bits_at(k) / 8.0

    def check(self, device: Device) -> None:
        """Raises `ProblemError` where the device has no rate for the multiplied type."""
        dtype = self.multiplies
        if dtype and dtype != PLAIN:
            try:
                device.matrix_flops(matmul_format(dtype).compute)
            except ProblemError as error:
                raise ProblemError(f"{self.name} cannot run: {error}") from None

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """One product. Dequantised weights add decoding beside the other resources; narrow products
        follow a pass that quantises the activations."""
        if self.multiplies:
            return self._native(problem, device)
        bits = self.bits_at(int(problem.k))
        return (decoded(problem, bits, device, partial(self.decode.seconds, device=device)),)

    def _native(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        product = predict(replace(problem, dtype=self.multiplies), device)
        narrow = matmul_format(self.multiplies).activations
        if element(narrow).bits >= PLAIN_BITS:
            return (product,)
        rows, cols = int(problem.m) * int(problem.batch), int(problem.k)
        cast = Rowwise("pointwise", rows, cols, PLAIN, output_dtype=narrow)
        return predict(cast, device), product


FORMATS = Table("weight format", Format, Path(__file__).with_name("formats.yaml"), "formats")
"""The formats, in file order."""
load, names = FORMATS.load, FORMATS.names
