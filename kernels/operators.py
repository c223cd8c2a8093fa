"""Problems of declared operators: a kernel's problem has the operator's parameters as fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.algorithms.case import Case
from perfmodel.algorithms.library import load
from perfmodel.elements import ElementType


@dataclass(frozen=True)
class OperatorProblem:
    """A declared operator at given parameters.

    A subclass names the operator, and has a field for each parameter and `dtype`. Raises
    `ProblemError` for sizes without meaning.
    """

    OPERATOR: ClassVar[str]
    """The operator's name."""

    def __post_init__(self) -> None:
        assert self.case  # raises for invalid sizes

    @cached_property
    def case(self) -> Case:
        """The operator at these sizes."""
        given = {item.name: getattr(self, item.name) for item in fields(self)}
        return load(self.OPERATOR).at(given.pop("dtype"), **given)

    def sizes(self) -> Mapping[str, Any]:
        """Extent of every axis."""
        return self.case.sizes

    def elements(self) -> Mapping[str, ElementType]:
        """Element type of every tensor role."""
        return self.case.elements

    def algorithm(self) -> Algorithm:
        """The declared algorithm."""
        return self.case.algorithm
