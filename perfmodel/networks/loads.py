"""Loads of experts: how unevenly a router spreads rows over them, and which rows are dropped."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from perfmodel.algorithms.grouped import DRAWS, busiest_part, drawn_loads
from perfmodel.errors import ProblemError
from perfmodel.fieldoption import FieldOption

PANEL = "Loads of experts"
"""Heading of the options."""


@dataclass(frozen=True, kw_only=True)
class Loads:
    """Rows of each expert. Raises `ProblemError`."""

    skew: Annotated[float, FieldOption(PANEL, "NUMBER", least=0)] = 0.0
    """Exponent of the power law that loads of experts are drawn from; 0: even."""
    shares: Annotated[str, FieldOption(PANEL, "NUMBERS", single=True)] = ""
    """Measured loads of all experts in proportion to each other, with commas; in place of skew."""
    capacity: Annotated[float | None, FieldOption(PANEL, "FACTOR")] = None
    """Most rows of an expert over the mean: tokens beyond it are dropped [default: none are]."""

    def check_loads(self) -> None:
        """Raise `ProblemError` for fields that make no loads."""
        if not (math.isfinite(self.skew) and self.skew >= 0.0):
            raise ProblemError(f"skew is {self.skew:g}; give a number of 0 or more")
        if self.capacity is not None and not 1.0 <= self.capacity < math.inf:
            raise ProblemError(f"capacity is {self.capacity:g}; give 1 or more, such as 1.25")
        if self.shares and self.skew:
            raise ProblemError("shares are measured and skew is drawn; give one of them")
        if self.shares and not (min(self.measured) >= 0.0 and 0.0 < sum(self.measured) < math.inf):
            raise ProblemError(f"shares are {self.shares}; give numbers of 0 or more, not all 0")

    @property
    def even(self) -> bool:
        """Whether each expert has the mean."""
        return not (self.skew or self.shares)

    @property
    def drops(self) -> bool:
        """Whether some token may be dropped."""
        return self.capacity is not None and not self.even

    @cached_property
    def measured(self) -> tuple[float, ...]:
        """The shares as numbers."""
        try:
            return tuple(float(each) for each in self.shares.split(","))
        except ValueError:
            raise ProblemError(
                f"shares are {self.shares}; give a number for each expert, such as 3,1,1,1"
            ) from None

    def of(self, rows: int, experts: int, chosen: int) -> Iterator[np.ndarray]:
        """Rows of every expert, shape (experts,): once, or in each draw of the power law. They add
        up to `rows` where none is dropped. Raises `ProblemError` for shares of other experts, or of
        one that a token would have to choose twice."""
        most = math.inf if self.capacity is None else math.ceil(self.capacity * rows / experts)
        if not self.shares:
            for draw in range(DRAWS):
                yield np.minimum(drawn_loads(draw, rows, experts, chosen, self.skew), most)
            return
        if len(self.measured) != experts:
            raise ProblemError(
                f"shares are of {len(self.measured)} experts and the network has {experts}; give "
                "one number for each"
            )
        shares = np.array(self.measured) / sum(self.measured)
        if shares.max() * chosen > 1.0 + 1e-9:
            raise ProblemError(
                f"an expert has {shares.max():.0%} of the rows; a token chooses {chosen} different "
                f"experts, so that none has more than {1.0 / chosen:.0%}"
            )
        yield np.minimum(shares * rows, most)

    def busiest(self, rows: int, experts: int, ranks: int, chosen: int) -> tuple[int, int]:
        """Experts with rows on the busiest of `ranks` devices, which the others wait for, and rows
        of each: means over draws."""
        parts = [busiest_part(each, ranks) for each in self.of(rows, experts, chosen)]
        occupied = max(round(sum(np.count_nonzero(part) for part in parts) / len(parts)), 1)
        received = sum(float(part.sum()) for part in parts) / len(parts)
        return occupied, max(math.ceil(round(received / occupied, 6)), 1)
