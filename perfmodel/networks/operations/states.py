"""Layers with a state of fixed size: a convolution over the last tokens, and the state itself.

The gradient of each takes the forward problem again: of a convolution twice (its input's and its
taps'), of a state three times, as each of its contractions has two and the states are made anew.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.library import load
from perfmodel.networks.network import State
from perfmodel.networks.operations.operation import Gradients, Operation
from perfmodel.networks.recorder import Operands, Recorder
from perfmodel.networks.value import Value, Weight, gradient_of

KERNELS = {"causal-conv1d": "conv1d-update", "gated-delta": "delta-step"}
"""What runs one token of each sequence, by operator; prompts run a good library's kernel."""


def state_problem(
    state: State, *, batch: object, seq: object, heads: int, key_heads: int, value_size: int,
    dtype: str,
) -> DeclaredProblem:  # fmt: skip
    """The problem of a state over `seq` tokens of `batch` sequences; arrays are as many
    problems."""
    if state.selective:
        sizes = {"batch": batch, "seq": seq, "channels": heads, "state": state.key_size}
        return DeclaredProblem(load("selective-scan"), sizes, dtype)
    sizes = {
        "batch": batch, "seq": seq, "key_heads": key_heads, "heads": heads,
        "key_dim": state.key_size, "value_dim": value_size,
    }  # fmt: skip
    return DeclaredProblem(load("gated-delta"), sizes, dtype)


def taps_problem(
    state: State, *, batch: object, seq: object, channels: int, dtype: str
) -> DeclaredProblem:
    """The problem of the convolution before a state."""
    sizes = {"batch": batch, "seq": seq, "channels": channels, "taps": state.taps}
    return DeclaredProblem(load("causal-conv1d"), sizes, dtype)


@dataclass(frozen=True)
class _Mixer(Operation):
    """An operation over the tokens of each sequence, by a kernel of its own."""

    state: State
    """The state's sizes."""
    xs: tuple[Value, ...]
    """Inputs."""

    again: ClassVar[int]
    """Forward problems that its gradient takes."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Its inputs."""
        return self.xs

    @property
    @abstractmethod
    def problem(self) -> DeclaredProblem:
        """The operator's problem."""

    @abstractmethod
    def _edges(self, tape: Recorder) -> tuple[Operands, str]:
        """What it reads, by operand, and the operand that it writes."""

    def forward(self, to: Recorder) -> None:
        """One operator."""
        self._record(to, self.name, self.outputs, 1)

    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """The forward problem, several times."""
        self._record(to, f"{self.name}.gradient", self._like_outputs(), self.again)
        return tuple(gradient_of(x, self.name) for x in self.xs)

    def _like_outputs(self) -> tuple[Value, ...]:
        return tuple(replace(y, name=f"{y.name} of the gradient") for y in self.outputs)

    def _record(self, tape: Recorder, name: str, outputs: tuple[Value, ...], repeat: int) -> None:
        reads, operand = self._edges(tape)
        problem = self.problem
        single = self.setting.seq == 1 and self.setting.past > 0
        tape.run(
            name, "attention", problem, reads, {operand: outputs}, repeat=repeat,
            implementation=KERNELS.get(problem.operator) if single else None,
        )  # fmt: skip


@dataclass(frozen=True)
class Convolution(_Mixer):
    """Each channel convolved with its own taps over the tokens before it."""

    to: tuple[Value, ...] = ()
    """Outputs that the channels are divided among."""

    again = 2

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Queries, keys and values, or the channels as they are."""
        return self.to

    @property
    def channels(self) -> int:
        """Columns of the input."""
        return sum(x.cols for x in self.xs)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Taps of every channel, and a bias."""
        taps = Weight(f"{self.name}.weight", (self.channels, self.state.taps), "vector")
        bias = Weight(f"{self.name}.bias", (self.channels,), "vector")
        return (taps, bias) if self.state.taps_bias else (taps,)

    @property
    def problem(self) -> DeclaredProblem:
        """Taps over tokens."""
        setting = self.setting
        return taps_problem(
            self.state, batch=setting.batch, seq=setting.seq, channels=self.channels,
            dtype=self.xs[0].dtype,
        )  # fmt: skip

    def _edges(self, tape: Recorder) -> tuple[Operands, str]:
        taps = Value(f"{self.name}.weight", self.channels, self.state.taps, self.xs[0].dtype)
        tape.weights[taps.name] = None
        before = self.setting.batch * (self.state.taps - 1)  # the last tokens before these
        kept = Value(f"{self.name} kept", before, self.channels, self.xs[0].dtype)
        return {"X": (*self.xs, kept), "W": taps}, "Y"


@dataclass(frozen=True)
class Scan(_Mixer):
    """The state of every head, updated by each token's key and value and read by its query."""

    heads: int = 1
    """Heads of values of this device."""
    key_heads: int = 1
    """Heads of keys of this device."""
    value_size: int = 1
    """Width of a head's values."""

    again = 3

    @property
    def outputs(self) -> tuple[Value, ...]:
        """Tokens × (heads · width of the values)."""
        x = self.xs[0]
        return (Value(f"{self.name}.out", x.rows, self.heads * self.value_size, x.dtype),)

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Decays, biases and skips of heads; with selective decays, those of every channel."""
        state = self.state
        count = self.heads * state.scalars
        if state.selective:
            count += self.heads * state.key_size
        if state.rank:
            count += self.heads * state.key_size
        return (Weight(f"{self.name}.decays", (count,), "vector"),) if count else ()

    @property
    def problem(self) -> DeclaredProblem:
        """The state over tokens."""
        return state_problem(
            self.state, batch=self.setting.batch, seq=self.setting.seq, heads=self.heads,
            key_heads=self.key_heads, value_size=self.value_size, dtype=self.xs[0].dtype,
        )  # fmt: skip

    def _edges(self, tape: Recorder) -> tuple[Operands, str]:
        if not self.state.selective:
            return dict(zip("QKV", self.xs, strict=True)), "O"
        decays = Value(f"{self.name}.decays of channels", self.heads, self.state.key_size, "fp32")
        tape.weights[decays.name] = None
        return {**dict(zip("CBXD", self.xs, strict=True)), "A": decays}, "Y"
