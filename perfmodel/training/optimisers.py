"""Optimisers: states by shape, and the update as operators (`optimisers.yaml`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from perfmodel.algorithms import Problem
from perfmodel.training.parameter import Parameter
from perfmodel.training.precision import Precision

Style = Literal["multi-tensor", "fused", "foreach", "for-loop"]
Clip = Literal["none", "apart", "folded"]


@dataclass(frozen=True)
class Work:
    """A kernel of an update that runs `repeat` times a step."""

    name: str
    """Optimiser and step, as a table shows it."""
    problem: Problem
    """What one launch computes."""
    repeat: int
    """Launches of it in a step that has it."""
    share_of_steps: Fraction = Fraction(1)
    """How many of the steps have it: 1/f where it is done every f steps."""


@dataclass(frozen=True)
class Optimiser:
    """How weights are updated."""

    name: str
    """What a plan calls it."""
    about: str
    """One line for a person."""
    source: str
    """Paper or code that the update is declared from."""

    def state_bytes(self, parameters: Iterable[Parameter], precision: Precision) -> float:
        """Bytes of all states of the parameters."""
        raise NotImplementedError

    def problems(
        self,
        parameters: Iterable[Parameter],
        precision: Precision,
        *,
        style: Style = "multi-tensor",
        clip: Clip = "none",
        tokens: int | None = None,
    ) -> tuple[Work, ...]:
        """Every kernel of one update, in order.

        `tokens` a step are what K-FAC's statistics are taken over.
        """
        raise NotImplementedError


def names() -> tuple[str, ...]:
    """Names of all optimisers."""
    raise NotImplementedError


def load(name: str, **given: Any) -> Optimiser:
    """The optimiser of this name, some of its settings changed (`block=256`)."""
    raise NotImplementedError
