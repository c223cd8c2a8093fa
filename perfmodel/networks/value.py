"""What the operations of a network hand to each other: tensors of rows × columns, and weights."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from perfmodel.elements import element
from perfmodel.graph import Tensor


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
        """Its bytes."""
        return self.rows * self.cols * element(self.dtype).bytes

    def tensor(self) -> Tensor:
        """As graphs have it."""
        return Tensor(self.name, (self.rows, self.cols), self.dtype)


@dataclass(frozen=True)
class Weight:
    """A parameter tensor of one device."""

    name: str
    """Unique within its segment."""
    shape: tuple[int, ...]
    """Extents on one device."""
    kind: Literal["matrix", "embedding", "vector"] = "matrix"
    """What optimisers tell apart."""
    count: int = 1
    """How many of these there are: experts."""
    chosen: int = 0
    """How many of them one token meets; 0: all."""
    expert: bool = False
    """Whether it is an expert's, which expert parallelism shares out."""
    shared: bool = False
    """Whether another segment owns it: a tied head."""

    @property
    def elements(self) -> int:
        """Parameters of all `count`."""
        return self.count * math.prod(self.shape)

    @property
    def active(self) -> int:
        """Parameters that one token meets."""
        return (self.chosen or self.count) * math.prod(self.shape)
