"""What every scheme of storing weights has: the bytes of a matrix, and the kernels of a product."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace

from perfmodel.algorithms import Matmul
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.prediction import Prediction

PLAIN_BITS = 16
"""Bits of a weight that nothing was done to."""

PLAIN = "fp16"
"""What it is multiplied in."""


class Scheme(ABC):
    """A way to store the matrices of a network's layers."""

    @property
    @abstractmethod
    def name(self) -> str:
        """As the command line calls it."""

    @property
    @abstractmethod
    def about(self) -> str:
        """One line for a person."""

    @property
    def head(self) -> str:
        """Name of the format that the head's matrix is stored in by those who use the scheme."""
        return PLAIN

    @abstractmethod
    def stored_bytes(self, n: int, k: int) -> float:
        """Bytes of a matrix of k summed rows and n columns."""

    @abstractmethod
    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """The kernels that multiply by such a matrix, in launch order."""

    def check(self, device: Device) -> None:
        """Raises `ProblemError` where the device cannot multiply by it."""
        del device

    def network(self, network: Network) -> Network:
        """The network that is left of one."""
        return network

    def notes(self, device: Device) -> tuple[str, ...]:
        """What a reader of its times should know."""
        del device
        return ()

    def bits(self, n: int, k: int) -> float:
        """Stored bits for each weight of such a matrix, whether that is kept or not."""
        return 8.0 * self.stored_bytes(n, k) / (n * k)


def weight_only(bits: float) -> str:
    """The type of a product with weights of so many stored bits, to a millionth of a bit."""
    digits = f"{bits:.6f}".rstrip("0")
    return f"w{digits}{'0' if digits.endswith('.') else ''}a16"


def beside(found: Prediction, term: str, seconds: float) -> Prediction:
    """A kernel of which a further resource works `seconds` while the others do.

    What the kernel takes beyond its longest resource (start, tail, latency) stays as it was.
    """
    rest = found.seconds - found.terms[found.limiter]
    total = max(found.seconds, seconds + rest)
    terms = {**found.terms, term: seconds}
    if total == found.seconds:
        return replace(found, terms=terms)
    times = total / found.seconds
    return replace(
        found,
        seconds=total,
        low_seconds=found.low_seconds * times,
        high_seconds=found.high_seconds * times,
        limiter=term,
        runner_up=found.limiter,
        terms=terms,
    )


def passes_over_weights(found: Prediction, m: int) -> int:
    """How often a product of m rows brings each weight to a unit: once a tile of rows."""
    return -(-m // max(int(found.tile.get("m", m)), 1))
