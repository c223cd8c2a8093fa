"""The interface of a scheme of storing weights: the bytes of a matrix, the kernels of a product,
and the work of a kernel to decode stored weights into numbers, besides reading them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

from perfmodel.algorithms import Matmul
from perfmodel.hardware import Device
from perfmodel.networks.network import Network
from perfmodel.predict import predict
from perfmodel.prediction import Prediction
from perfmodel.timing.constants import default
from perfmodel.timing.machine import Machine, machine

PLAIN_BITS = 16
"""Bits of an uncompressed weight."""

PLAIN = "fp16"
"""Type of products of uncompressed weights."""


class Scheme(ABC):
    """A way to store the matrices of a network's layers."""

    name: str
    """Name on the command line."""
    about: str
    """One-line description."""
    head: str = PLAIN
    """Name of the format that users of the scheme usually store the head in."""
    embedding: str = PLAIN
    """Name of the format of an embedding that is not the head."""
    experts_only: bool = False
    """Whether, in a network with experts, it stores their matrices alone."""
    multiplies: str = ""
    """Type of its products; empty: weights are dequantised to 16 bits."""

    def _is(self, name: str, about: str) -> None:
        """Set the name and description of a frozen scheme."""
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "about", about)

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

    def mean_bits(self, n: int, k: int) -> float:
        """Stored bits for each weight of the matrix, zeros included."""
        return 8.0 * self.stored_bytes(n, k) / (n * k)


class Shape(NamedTuple):
    """Sizes of a product."""

    m: int
    """Rows of activations."""
    n: int
    """Columns of the weights."""
    k: int
    """Rows of the weights."""
    batch: int
    """Products."""

    @classmethod
    def of(cls, problem: Matmul) -> Shape:
        """The sizes of a problem."""
        return cls(*(int(problem.sizes()[axis]) for axis in "mnkb"))


def weight_only(bits: float) -> str:
    """The type of a product with weights of `bits` stored bits, to a millionth of a bit."""
    digits = f"{bits:.6f}".rstrip("0")
    return f"w{digits}{'0' if digits.endswith('.') else ''}a16"


def decoded(
    problem: Matmul, bits: float, device: Device, seconds: Callable[[float], float]
) -> Prediction:
    """A product with weights of `bits` stored bits, whose decoding is a further resource.

    `seconds` is the time of decoding a number of weights. Each weight is decoded as often as it is
    brought to a unit: once a tile of rows.
    """
    m, n, k, batch = Shape.of(problem)
    product = predict(replace(problem, dtype=weight_only(bits)), device)
    passes = -(-m // max(int(product.tile.get("m", m)), 1))
    return beside(product, "decode", seconds(float(n * k * batch) * passes))


def beside(kernel: Prediction, term: str, seconds: float) -> Prediction:
    """A kernel with a further resource that works `seconds` concurrently with the rest.

    The kernel's time beyond its longest resource (start, tail, latency) is unchanged.
    """
    rest = kernel.seconds - kernel.terms[kernel.limiter]
    total = max(kernel.seconds, seconds + rest)
    terms = {**kernel.terms, term: seconds}
    if total == kernel.seconds:
        return replace(kernel, terms=terms)
    times = total / kernel.seconds
    return replace(
        kernel,
        seconds=total,
        low_seconds=kernel.low_seconds * times,
        high_seconds=kernel.high_seconds * times,
        limiter=term,
        runner_up=kernel.limiter,
        terms=terms,
    )


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


def accesses_per_s(chip: Machine) -> float:
    """Conflict-free accesses of four bytes to shared memory a second, over all units."""
    return chip.units * chip.shared_bytes_per_unit / 4.0
