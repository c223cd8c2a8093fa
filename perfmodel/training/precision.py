"""In which types a training step keeps weights, gradients, master weights and optimiser states."""

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
    """How long it is there: a whole step, a forward pass, or while its layer runs."""

    @property
    def bytes(self) -> float:
        """Bytes a parameter."""
        return element(self.dtype).bytes


@dataclass(frozen=True)
class Precision:
    """A recipe of mixed precision. Raises `UnknownName` for a type that is not known."""

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

    def __post_init__(self) -> None:
        own = (self.weights, self.gradients, self.states, *(copy.dtype for copy in self.copies))
        for dtype in (*own, *((self.master,) if self.master else ())):
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
        """Bytes a parameter of the master weights; 0 without."""
        return element(self.master).bytes if self.master else 0.0

    def copy_bytes(self, *lives: Life) -> float:
        """Bytes a parameter of the further copies that live so long."""
        return sum(copy.bytes for copy in self.copies if copy.lives in lives)

    @cached_property
    def updated(self) -> Types:
        """What an optimiser reads and writes."""
        if self.master is None:
            return Types(self.weights, self.gradients, self.states)
        return Types(self.master, self.gradients, self.states, copy=self.weights)


@lru_cache(maxsize=1)
def recipes() -> Mapping[str, Precision]:
    """All recipes by name, in file order."""
    return read(Path(__file__).with_name("precisions.yaml"))


def read(path: Path) -> Mapping[str, Precision]:
    """The recipes of a file; raises `PerfmodelError` in one line saying what is wrong."""
    try:
        table = yamltable.read(path)
        if table["version"] != VERSION:
            raise PerfmodelError(f"{path}: recipes of another version; this code reads {VERSION}")
        return {name: _recipe(name, said) for name, said in table["precisions"].items()}
    except (OSError, KeyError, TypeError, AttributeError, ValueError) as error:
        line = " ".join(str(error).split())
        raise PerfmodelError(
            f"{path}: no table of precisions ({line}); reinstall perfmodel"
        ) from None


def _recipe(name: str, said: Mapping[str, Any]) -> Precision:
    copies = tuple(Copy(**copy) for copy in said.get("copies", ()))
    return Precision(**{"master": None, **said, "name": name, "copies": copies})


def names() -> tuple[str, ...]:
    """Names of all recipes."""
    return tuple(recipes())


def load(name: str) -> Precision:
    """The recipe of this name; raises `UnknownName` with the nearest ones."""
    if name not in recipes():
        raise UnknownName("recipe of mixed precision", name, recipes())
    return recipes()[name]
