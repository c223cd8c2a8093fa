"""Operators by name: built in, declared in YAML, and those that other packages bring.

A package lists its operators under the entry point `perfmodel.operators`: an `Operator` or a
`Declaration` (perfmodel.algorithms.declaration), each under the name that a user types.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from perfmodel import plugins
from perfmodel.algorithms import Problem, library
from perfmodel.algorithms.case import Declaration
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.operators.operator import Operator

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "operators"
"""Name of the entry point, after `perfmodel.`."""


def names() -> tuple[str, ...]:
    """Every name that `load` knows: built in, of other packages, declared."""
    return tuple(dict.fromkeys((*BUILT_IN, *sorted(_entry_points()), *library.names())))


def load(name: str) -> Operator:
    """The operator called `name`, or declared in this file (a name with a slash or ending in
    .yaml).

    Raises `UnknownName` with the nearest names, `SpecError` for a file without a usable
    declaration, and `ProblemError` for an entry point without an operator.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]
    try:
        return _adapter(library.load(name))
    except UnknownName:
        point = _entry_points().get(name)
        if point is None:
            raise UnknownName("operator", name, names()) from None
    return _plugin(point)


def every() -> Iterator[Operator]:
    """All operators in the order of their names; those of packages that fail to load are left
    out."""
    for name in names():
        try:
            yield load(name)
        except ProblemError as error:
            if name not in _entry_points():
                raise
            plugins.leave_out(_entry_points()[name], error)


def find(name: str) -> Operator | None:
    """The operator of this name, or None; opens no file of the user's."""
    return load(name) if name in BUILT_IN or name in names() else None


def operator_of(problem: Problem) -> Operator:
    """The operator of a problem."""
    if isinstance(problem, DeclaredProblem):
        return _adapter(problem.declaration)
    return load(problem.operator)


def _adapter(declaration: Declaration) -> Operator:
    """The operator of a declaration; the mapper is loaded only here."""
    from perfmodel.operators.declared import DeclaredOperator

    return DeclaredOperator(declaration)


@lru_cache(maxsize=1)
def _entry_points() -> Mapping[str, EntryPoint]:
    return {item.name: item for item in plugins.points(GROUP)}


def _plugin(point: EntryPoint) -> Operator:
    """The operator under a package's entry point."""
    try:
        operator = point.load()
    except Exception as error:  # anything may go wrong in another package
        message = " ".join(f"{type(error).__name__}: {error}".split())
        raise ProblemError(
            f"operator {point.name} of {point.value} fails to load: {message}"
        ) from error
    if isinstance(operator, Declaration):
        return _adapter(operator)
    if isinstance(operator, Operator):
        return operator
    raise ProblemError(
        f"{point.value}, the entry point of operator {point.name}, is neither an Operator nor a "
        "Declaration; repair that package"
    )
