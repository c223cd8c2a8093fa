"""The interface of a scheme of storing weights: the bytes of a matrix, the kernels of a product,
and the work of a kernel to decode stored weights into numbers, besides reading them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import lru_cache
from math import factorial

import numpy as np

from perfmodel.algorithms import Matmul
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import default
from perfmodel.timing.machine import Machine, machine

PLAIN_BITS = 16
"""Bits of an uncompressed weight."""

PLAIN = "fp16"
"""Type of products of uncompressed weights."""


class Scheme(ABC):
    """A way to store the matrices of a network's layers."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name on the command line."""

    @property
    @abstractmethod
    def about(self) -> str:
        """One-line description."""

    @property
    def head(self) -> str:
        """Name of the format that users of the scheme usually store the head in."""
        return PLAIN

    @property
    def embedding(self) -> str:
        """Name of the format of an embedding that is not the head."""
        return PLAIN

    @property
    def experts_only(self) -> bool:
        """Whether, in a network with experts, it stores their matrices alone."""
        return False

    @abstractmethod
    def stored_bytes(self, n: int, k: int) -> float:
        """Bytes of a matrix with k rows (the reduced dimension) and n columns."""

    @abstractmethod
    def kernels(self, problem: Matmul, device: Device) -> tuple[Prediction, ...]:
        """The kernels that multiply by such a matrix, in launch order."""

    def check(self, device: Device) -> None:
        """Raises `ProblemError` where the device cannot multiply by it."""
        del device

    def network(self, network: Network) -> Network:
        """The network after compression."""
        return network

    def notes(self, device: Device) -> tuple[str, ...]:
        """Caveats about its times."""
        del device
        return ()

    def bits(self, n: int, k: int) -> float:
        """Stored bits for each weight of the matrix, zeros included."""
        return 8.0 * self.stored_bytes(n, k) / (n * k)


def weight_only(bits: float) -> str:
    """The type of a product with weights of `bits` stored bits, to a millionth of a bit."""
    digits = f"{bits:.6f}".rstrip("0")
    return f"w{digits}{'0' if digits.endswith('.') else ''}a16"


def beside(found: Prediction, term: str, seconds: float) -> Prediction:
    """A kernel with a further resource that works `seconds` concurrently with the rest.

    The kernel's time beyond its longest resource (start, tail, latency) is unchanged.
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


BANKS = 32
"""Banks of shared memory, four bytes wide; also lanes that access it together."""


@dataclass(frozen=True)
class Decoding:
    """Work for one weight, each time that it is brought to a unit."""

    vector: float = 0.0
    """Operations of the vector unit: shifts, masks, scaling."""
    shared: float = 0.0
    """Loads of four bytes from shared memory: look-ups in a table of values."""

    def seconds(self, weights: float, device: Device) -> float:
        """Seconds for `weights` weights, over the whole chip."""
        chip = machine(device)
        lanes = chip.units * chip.vector_ops_per_unit * default()["vector_share"]
        return weights * (self.vector / lanes + self.shared / accesses_per_s(chip))


def accesses_per_s(here: Machine) -> float:
    """Conflict-free accesses of four bytes to shared memory a second, over all units."""
    return here.units * here.shared_bytes_per_unit / 4.0


@lru_cache(maxsize=8)
def scattered(banks: int = BANKS) -> float:
    """Cycles of as many random accesses as there are banks: the expected load of the fullest bank.

    P(no bank has more than j) is n!/nⁿ times the coefficient of xⁿ in (Σ_{i≤j} xⁱ/i!)ⁿ (balls in
    bins; Kolchin et al. 1978, Random Allocations, chapter 2). The mean is Σ_j P(more than j): 3.53
    for 32 banks.
    """
    mean = 0.0
    for most in range(banks):
        series = np.array([1.0 / factorial(i) if i <= most else 0.0 for i in range(banks + 1)])
        power = np.zeros(banks + 1)
        power[0] = 1.0
        for _ in range(banks):
            power = np.convolve(power, series)[: banks + 1]
        mean += 1.0 - float(power[banks]) * factorial(banks) / float(banks) ** banks
    return mean
