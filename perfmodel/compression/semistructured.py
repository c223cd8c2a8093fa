"""2:4 sparsity: two of every four weights are kept, each with a 2-bit index.

    bits = (b + 2)/2 + scales:  16 → 9, 9/16 of the bytes;  8 → 5;  4 → 3

Groups and scales cover the same positions as in the dense format (Frantar et al. 2408.11743). The
matrix unit multiplies half of k, at up to twice the dense rate (Mishra et al. 2104.08378).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from perfmodel.algorithms import Matmul
from perfmodel.compression.quantised import Format
from perfmodel.compression.scheme import (
    PLAIN_BITS,
    Scheme,
    beside,
    weight_only,
)
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.predict import predict
from perfmodel.prediction import Prediction
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate

_PLACE_BITS = 2
# cuSPARSELt's published products reach 1.2 to 1.8 times the dense ones where the unit limits.
_LEAST_GAIN = 1.2


@dataclass(frozen=True)
class TwoOfFour(Scheme):
    """Half of the weights, in a dequantised or plain 16-bit format. Raises `ProblemError`."""

    format: Format
    """Format of the kept weights."""

    def __post_init__(self) -> None:
        if self.format.multiplies not in ("", "fp16"):
            raise ProblemError(
                f"2:4 of {self.format.name} is not modelled; take fp16, w8a16 or w4a16"
            )

    @property
    def plain(self) -> bool:
        """Whether the kept weights are 16 bits wide."""
        return self.format.multiplies == "fp16"

    @property
    def name(self) -> str:
        """2:4, or 2:4:w4a16."""
        return "2:4" if self.plain else f"2:4:{self.format.name}"

    @property
    def about(self) -> str:
        """What is kept, in one line."""
        return f"two of every four weights kept: {self.format.about}"

    def _kept_bits(self, k: int) -> float:
        """Bits of a kept weight, its index, and the scales of two weights."""
        scales = self.format.bits_at(k) - self.format.bits
        return self.format.bits + _PLACE_BITS + 2.0 * scales

    def stored_bytes(self, n: int, k: int) -> float:
        """Half of the weights, each with its index."""
        return n * -(-k // 2) * self._kept_bits(k) / 8.0

    def check(self, device: Device) -> None:
        """Raises `ProblemError` where the matrix unit cannot skip zeros."""
        if not architecture_of(device).sparse_2_4:
            raise ProblemError(
                f"{self.name} cannot run: the matrix unit of {device.slug} skips no zeros "
                "(NVIDIA from Ampere on and AMD from CDNA 3 on do)"
            )

    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """A product over half of k. Traffic that this leaves out is added: the other half of the
        activations and, for plain weights, the indices."""
        m, n, k, batch = (int(problem.sizes()[axis]) for axis in "mnkb")
        half = -(-k // 2)
        dtype = "fp16" if self.plain else weight_only(self._kept_bits(k))
        product = predict(replace(problem, k=half, dtype=dtype), device)
        extra_bytes = m * (k - half) * PLAIN_BITS / 8.0
        if self.plain:
            extra_bytes += n * half * _PLACE_BITS / 8.0
        rate = hbm_rate(machine(device), default())
        seconds = product.terms["hbm"] + batch * extra_bytes / rate
        total = beside(product, "hbm", seconds)
        if total.limiter not in ("matrix", "power"):
            return (total,)
        return (replace(total, high_seconds=total.high_seconds * 2.0 / _LEAST_GAIN),)

    def notes(self, device: Device) -> tuple[str, ...]:
        """The matrix rate."""
        del device
        return (
            "2:4: the matrix rate is taken as twice the dense peak, which is its limit; "
            "libraries are published at 1.2 to 1.8 times",
        )
