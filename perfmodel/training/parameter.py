"""A weight tensor of a network as an optimiser sees it: its shape and kind."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal, get_args

from perfmodel.algorithms.case import MOST_ELEMENTS
from perfmodel.algorithms.sizes import check_positive
from perfmodel.errors import ProblemError, UnknownName

Kind = Literal["matrix", "embedding", "vector"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""Kinds of parameters: weights of a product; tables whose rows are looked up, or a head; biases and
the weights of norms."""


@dataclass(frozen=True)
class Parameter:
    """`count` weight tensors of one shape.

    Raises `ProblemError` for an invalid shape, `UnknownName` for another kind.
    """

    name: str
    """Name in messages."""
    shape: tuple[int, ...]
    """Extents: of a matrix rows first (outputs of the product), then columns (its inputs)."""
    kind: Kind = "matrix"
    """Its kind, since optimisers treat kinds differently."""
    count: int = 1
    """Number of tensors of this shape and kind."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName(f"kind of parameter {self.name}", self.kind, KINDS)
        if not self.shape:
            raise ProblemError(f"parameter {self.name} has no shape; give at least one extent")
        for extent in self.shape:
            check_positive(f"an extent of parameter {self.name}", extent)
        check_positive(f"count of parameter {self.name}", self.count)
        if self.elements * self.count > MOST_ELEMENTS:
            raise ProblemError(f"parameter {self.name} has more than 2^56 elements; give fewer")

    @property
    def elements(self) -> int:
        """Elements of one tensor."""
        return math.prod(self.shape)

    @property
    def rows(self) -> int:
        """Rows m of the m × n matrix that an optimiser sees; 1 for a vector."""
        return self.shape[0] if len(self.shape) > 1 else 1

    @property
    def columns(self) -> int:
        """Columns n: the product of all extents after the first, as optimisers flatten a
        convolution."""
        return self.elements // self.rows

    def blocks(self, longest: int) -> tuple[Parameter, ...]:
        """The blocks of at most `longest` rows and columns that it is cut into; equal blocks as one
        entry."""
        if max(self.rows, self.columns) <= longest:
            return (self,)
        parts = [
            [
                (size, number)
                for size, number in ((longest, n // longest), (n % longest, 1))
                if size and number
            ]
            for n in (self.rows, self.columns)
        ]
        return tuple(
            replace(
                self,
                shape=(rows, columns) if len(self.shape) > 1 else (columns,),
                count=self.count * across * down,
            )
            for rows, across in parts[0]
            for columns, down in parts[1]
        )
