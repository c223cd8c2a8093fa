"""The interface of an operation: inputs, outputs, weights, saved tensors, and its two passes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.networks.recorder import Recorder
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value, Weight

Gradients = Sequence[Value]
"""Gradients of the inputs, in their order."""


@dataclass(frozen=True)
class Operation(ABC):
    """One operation of a layer, which may take several kernels."""

    name: str
    """Unique within its segment; its kernels' names begin with it."""
    setting: Setting
    """Setting of the pass."""

    @property
    @abstractmethod
    def inputs(self) -> tuple[Value, ...]:
        """Tensors that it reads and that have gradients."""

    @property
    @abstractmethod
    def outputs(self) -> tuple[Value, ...]:
        """Tensors that it makes."""

    @property
    def weights(self) -> tuple[Weight, ...]:
        """Parameters that it owns or shares."""
        return ()

    @property
    def saves(self) -> tuple[Value, ...]:
        """Tensors of the forward pass that its backward pass reads."""
        return ()

    @property
    def statistics(self) -> tuple[Value, ...]:
        """Saved numbers for each row, whose size does not grow with the row's width."""
        return ()

    @abstractmethod
    def forward(self, to: Recorder) -> None:
        """Record the kernels of the forward pass."""

    @abstractmethod
    def backward(self, to: Recorder, gradients: Sequence[Value]) -> Gradients:
        """Record the kernels of the backward pass; `gradients` are of the outputs, in their
        order."""


@dataclass(frozen=True)
class Unary(Operation):
    """An operation on one tensor; unless it says otherwise its result has that tensor's shape."""

    x: Value
    """What it reads."""

    @property
    def inputs(self) -> tuple[Value, ...]:
        """X."""
        return (self.x,)

    @property
    def outputs(self) -> tuple[Value, ...]:
        """One tensor."""
        return (replace(self.x, name=f"{self.name}.out"),)


def gradient_of(value: Value, mark: str) -> Value:
    """The gradient tensor of a value, as made by the operation `mark`."""
    return replace(value, name=f"d({value.name}) of {mark}")
