"""Values passed between a network's operations: tensors of rows × columns, and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from perfmodel.elements import element
from perfmodel.graph import Tensor
from perfmodel.networks.finetuning import Gradients


@dataclass(frozen=True)
class Value:
    """A tensor of one device's rows × columns."""

    name: str
    """Unique within its segment."""
    rows: int
    """Tokens, or tokens and heads."""
    cols: int
    """Features."""
    dtype: str
    """Element type."""

    @property
    def bytes(self) -> float:
        """Size in bytes."""
        return self.rows * self.cols * element(self.dtype).bytes

    def tensor(self) -> Tensor:
        """The tensor of a graph."""
        return Tensor(self.name, (self.rows, self.cols), self.dtype)


@dataclass(frozen=True)
class Weight:
    """A parameter tensor of one device."""

    name: str
    """Unique within its segment."""
    shape: tuple[int, ...]
    """Extents on one device."""
    kind: Literal["matrix", "embedding", "vector"] = "matrix"
    """Kind that optimisers distinguish."""
    count: int = 1
    """Number of equal tensors (experts)."""
    chosen: int = 0
    """How many of them one token uses; 0: all."""
    expert: bool = False
    """Whether it belongs to an expert, and so is divided by expert parallelism."""
    shared: bool = False
    """Whether another segment owns it: a tied head."""
    gradients: Gradients = "all"
    """Gradients that the backward pass of its operation makes."""
    bits: float = 0.0
    """Bits of a stored weight; 0: the type of the products or of the recipe."""

    @property
    def trains(self) -> bool:
        """Whether it has a gradient."""
        return self.gradients in ("all", "weights")

    @property
    def elements(self) -> int:
        """Parameters of all `count`."""
        return self.count * math.prod(self.shape)

    @property
    def active(self) -> int:
        """Parameters that one token meets."""
        return (self.chosen or self.count) * math.prod(self.shape)


def gradient_of(value: Value, mark: str) -> Value:
    """The gradient tensor of a value, as made by the operation `mark`."""
    return replace(value, name=f"d({value.name}) of {mark}")
