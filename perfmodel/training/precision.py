"""In which types a training step keeps weights, gradients, master weights and optimiser states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Life = Literal["step", "forward", "layer"]


@dataclass(frozen=True)
class Copy:
    """A further copy of the weights in another type."""

    dtype: str
    """Its type."""
    lives: Life
    """How long it is there: a whole step, a forward pass, or while its layer runs."""


@dataclass(frozen=True)
class Precision:
    """A recipe of mixed precision."""

    name: str
    """What a plan calls it."""
    about: str
    """One line for a person."""
    weights: str
    """Type of the weights that forward and backward read."""
    gradients: str
    """Type in which gradients are kept and added up."""
    master: str | None
    """Type of the weights that the optimiser updates; None where it updates `weights`."""
    states: str
    """Type of the optimiser's moments, where it keeps them in no format of its own."""
    copies: tuple[Copy, ...] = ()
    """Further copies of the weights."""
    source: str = ""
    """Who says so."""


def names() -> tuple[str, ...]:
    """Names of all recipes."""
    raise NotImplementedError


def load(name: str) -> Precision:
    """The recipe of this name; raises `UnknownName` with the nearest ones."""
    raise NotImplementedError
