"""Recipes of mixed precision: the types of weights, gradients, master weights and states."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from perfmodel.catalogue import Table
from perfmodel.elements import element
from perfmodel.training.update import Types

Life = Literal["step", "forward", "layer"]


@dataclass(frozen=True)
class Copy:
    """A further copy of the weights in another type."""

    dtype: str
    """Its type."""
    lives: Life
    """How long it is kept: a whole step, a forward pass, or while its layer runs."""

    @property
    def bytes(self) -> float:
        """Bytes a parameter."""
        return element(self.dtype).bytes


@dataclass(frozen=True)
class Precision:
    """A recipe of mixed precision. Raises `UnknownName` for an unknown type."""

    name: str
    """Name in a plan."""
    about: str
    """One-line description."""
    weights: str
    """Type of the weights that forward and backward read."""
    gradients: str
    """Type in which gradients are kept and accumulated."""
    states: str
    """Type of the optimiser's moments, unless the optimiser has a format of its own."""
    master: str | None = None
    """Type of the master weights, which the optimiser updates; None where it updates `weights`."""
    copies: tuple[Copy, ...] = ()
    """Further copies of the weights."""
    source: str = ""
    """Source."""

    def __post_init__(self) -> None:
        types = (self.weights, self.gradients, self.states, *(copy.dtype for copy in self.copies))
        for dtype in (*types, *((self.master,) if self.master else ())):
            element(dtype)

    @property
    def weight_bytes(self) -> float:
        """Bytes a parameter of the weights."""
        return element(self.weights).bytes

    @property
    def gradient_bytes(self) -> float:
        """Bytes a parameter of the gradients."""
        return element(self.gradients).bytes

    @property
    def master_bytes(self) -> float:
        """Bytes a parameter of the master weights; 0 where there are none."""
        return element(self.master).bytes if self.master else 0.0

    def copy_bytes(self, *lives: Life) -> float:
        """Bytes a parameter of the copies that are kept for `lives`."""
        return sum(copy.bytes for copy in self.copies if copy.lives in lives)

    @cached_property
    def updated(self) -> Types:
        """Types that an optimiser reads and writes."""
        if self.master is None:
            return Types(self.weights, self.gradients, self.states)
        return Types(self.master, self.gradients, self.states, copy=self.weights)


RECIPES = Table(
    "recipe of mixed precision",
    Precision,
    Path(__file__).with_name("precisions.yaml"),
    "precisions",
)
"""The recipes, in file order."""
load, names = RECIPES.load, RECIPES.names
