"""Recipes of mixed precision: the types of weights, gradients, master weights and states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Literal

from perfmodel import yamltable
from perfmodel.elements import element
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.training.update import Types

VERSION = 1
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
    master: str | None
    """Type of the master weights, which the optimiser updates; None where it updates `weights`."""
    states: str
    """Type of the optimiser's moments, unless the optimiser has a format of its own."""
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


@lru_cache(maxsize=1)
def recipes() -> Mapping[str, Precision]:
    """All recipes by name, in file order."""
    return read(Path(__file__).with_name("precisions.yaml"))


def read(path: Path) -> Mapping[str, Precision]:
    """The recipes of a file. Raises `PerfmodelError` with the fault."""
    try:
        table = yamltable.read(path)
        if table["version"] != VERSION:
            raise PerfmodelError(f"{path}: recipes of another version; this code reads {VERSION}")
        return {name: _recipe(name, entry) for name, entry in table["precisions"].items()}
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{path}: no table of precisions ({line}); reinstall perfmodel"
        ) from None


def _recipe(name: str, entry: Mapping[str, Any]) -> Precision:
    copies = tuple(Copy(**copy) for copy in entry.get("copies", ()))
    return Precision(**{"master": None, **entry, "name": name, "copies": copies})


def names() -> tuple[str, ...]:
    """Names of all recipes."""
    return tuple(recipes())


def load(name: str) -> Precision:
    """The recipe of this name; raises `UnknownName` with the nearest ones."""
    if name not in recipes():
        raise UnknownName("recipe of mixed precision", name, recipes())
    return recipes()[name]
