"""Mixture of experts: tokens permuted to their experts, and combined back."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist

from perfmodel.algorithms import Rowwise
from perfmodel.networks.operations.operation import Gradients, Unary
from perfmodel.networks.recorder import Recorder
from perfmodel.networks.value import Value, gradient_of


def touched(experts: int, chosen: int, tokens: int) -> float:
    """Expected number of experts that receive a token, if each token picks `chosen` of them evenly.

        E·(1 − (1 − k/E)^T)

    E experts, k chosen, T tokens.
    """
    return experts * (1.0 - (1.0 - chosen / experts) ** tokens)


def busiest(experts: int, met: float, devices: int) -> float:
    """Expected experts that receive a token on the device with the most of them.

    Of E experts M receive tokens, and each of R devices has E / R. Their number on a device is
    hypergeometric, with mean μ = M / R and variance σ² = μ (1 − 1/R) (E − M) / (E − 1). The largest
    of R such numbers is about μ + σ z, with z the normal quantile of (R − 3/8) / (R + 1/4) (Blom
    1958).
    """
    mean = met / devices
    if devices == 1:
        return mean
    spread = math.sqrt(mean * (1.0 - 1.0 / devices) * (experts - met) / (experts - 1))
    largest = NormalDist().inv_cdf((devices - 0.375) / (devices + 0.25))
    return float(min(mean + spread * largest, met, experts / devices))


@dataclass(frozen=True)
class Choice(Unary):
    """Softmax of the router's scores, tokens × experts, and the choice of the largest (top-k)."""

    def forward(self, to: Recorder) -> None:
        """A softmax, and a pass over it."""
        x, y = self.x, self.outputs[0]
        problem = Rowwise("softmax", x.rows, x.cols, x.dtype)
        to.run(self.name, "pointwise", problem, {"X": x}, {"Y": y})
        maximum = Rowwise("pointwise", x.rows, x.cols, x.dtype, outputs=0)
        to.run(f"{self.name}.largest", "pointwise", maximum, {"X": y}, {})


@dataclass(frozen=True)
class Permute(Unary):
    """Each token's row to each of its experts: tokens × chosen rows, expert by expert."""

    rows: int
    """Rows of all experts of this device together."""

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Rows by expert."""
        return (replace(self.x, name=f"{self.name}.out", rows=self.rows),)

    def forward(self, to: Recorder) -> None:
        """A gather: reads of repeated rows hit the caches."""
        _row_copies(to, self.name, self.x, self.outputs[0])


@dataclass(frozen=True)
class Combine(Unary):
    """Rows of the experts, weighted, summed into their tokens."""

    weights_of: Value
    """The experts' weights."""
    tokens: int
    """Tokens of this device."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Rows, and weights."""
        return (self.x, self.weights_of)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Tokens × hidden."""
        return (replace(self.x, name=f"{self.name}.out", rows=self.tokens),)

    def forward(self, to: Recorder) -> None:
        """One pass."""
        _row_sums(to, self.name, self.x, self.outputs[0])

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Gathered rows of the gradient, and dot products for the gradient of the weights."""
        gradient, _ = super().backward(to, gradients)
        dots = Rowwise("pointwise", self.x.rows, self.x.cols, self.x.dtype, inputs=2, outputs=0)
        reads = {"X": (self.x, gradient)}
        scores = gradient_of(self.weights_of, self.name)
        to.run(f"{self.name}.weights gradient", "pointwise", dots, reads, {})
        fill = Rowwise("pointwise", scores.rows, scores.cols, scores.dtype, inputs=0)
        to.run(f"{self.name}.scores", "pointwise", fill, {"X": ()}, {"Y": scores})
        return (gradient, scores)


def _row_copies(tape: Recorder, name: str, x: Value, y: Value) -> None:
    """Every row of y copies a row of x: one read for each, from a cache that still holds it."""
    problem = Rowwise("pointwise", y.rows, y.cols, y.dtype)
    if x.bytes >= y.bytes:
        tape.run(name, "pointwise", problem, {"X": x}, {"Y": y}, part=("X",))
        return
    copies = Rowwise("pointwise", x.rows, x.cols, x.dtype, outputs=y.rows // x.rows)
    tape.run(name, "pointwise", copies, {"X": x}, {"Y": y}, part=("Y",))


def _row_sums(tape: Recorder, name: str, x: Value, y: Value) -> None:
    """Every row of y sums rows of x; x may have fewer, as its even shares are rounded."""
    if x.rows < y.rows:
        _row_copies(tape, name, x, y)
        return
    inputs = max(x.rows // y.rows, 1)
    problem = Rowwise("pointwise", y.rows, y.cols, y.dtype, inputs=inputs)
    tape.run(name, "pointwise", problem, {"X": x}, {"Y": y}, part=("X",))
