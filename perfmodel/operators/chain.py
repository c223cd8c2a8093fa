"""What a declared operator is launched as: problems of other operators, one after another.

A library's file says it (`ChainFacts`), or the declaration itself, where a built-in operator
computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.expressions import evaluate
from perfmodel.algorithms.problem import repeated
from perfmodel.arithmetic import Number, wide
from perfmodel.elements import ElementType
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import Device
from perfmodel.operators.operator import Operator, Request
from perfmodel.operators.options import Flag, Size
from perfmodel.timing.libraries import ChainFacts, implementations, is_known
from perfmodel.timing.libraries.facts import Launch
from perfmodel.timing.plan import Estimate
from perfmodel.timing.setting import Setting


@dataclass(frozen=True)
class Launched:
    """A kernel of a chain at the sizes of its problems."""

    operator: Operator
    """Its operator."""
    problem: Problem
    """Its problems."""
    kernel: str | None
    """The kernel that runs it; None: a good library's."""
    times: Number
    """How often each problem launches it, shape (n,) or a number."""


def launched(problem: DeclaredProblem, kernel: ChainFacts, request: Request) -> list[Launched]:
    """The kernels that a chain launches in the timed region. Raises `PerfmodelError`, with the
    chain and the launch, where one has no meaning."""
    types = {"dtype": problem.dtype, **{k: each.name for k, each in problem.elements().items()}}
    return [
        _launched(problem, kernel.name, i, launch)
        for i, launch in enumerate(kernel.launches)
        if (not launch.part or not request.includes or launch.part in request.includes)
        and all(types[role] in names for role, names in launch.when.items())
    ]


def _launched(problem: DeclaredProblem, chain: str, i: int, launch: Launch) -> Launched:
    from perfmodel.operators.registry import load

    values = {name: wide(value) for name, value in problem.values().items()}
    try:
        operator = load(launch.operator)
        if launch.kernel is not None and not is_known(operator.library, launch.kernel):
            raise UnknownName("implementation", launch.kernel, implementations(operator.library))
        options = given(operator, launch.sizes, values, problem.dtype, problem.elements())
        times = evaluate(launch.times, values)
        return Launched(
            operator, operator.problem(**operator.fixed, **options), launch.kernel, times
        )
    except PerfmodelError as error:
        raise ProblemError(f"{chain}, launch {i + 1}, {launch.operator}: {error}") from None


def given(
    operator: Operator,
    entries: Mapping[str, Any],
    values: Mapping[str, Any],
    dtype: str,
    elements: Mapping[str, ElementType],
) -> dict[str, Any]:
    """Options of an operator from their expressions.

    A type is `dtype`, or that of one of the roles in `elements`, or one by name.
    """
    known = {item.name: item for item in operator.options}
    options: dict[str, Any] = {}
    for name, entry in entries.items():
        item = known.get(name)
        if item is None:
            raise UnknownName(f"option of {operator.name}", name, known)
        if isinstance(item, Size):
            options[name] = _whole(entry, evaluate(entry, values))
        elif isinstance(item, Flag):
            options[name] = bool(np.all(evaluate(entry, values)))
        else:
            types = {"dtype": dtype, **{role: each.name for role, each in elements.items()}}
            options[name] = {**values, **types}.get(entry, entry)
    return options


def _whole(entry: Any, value: Any) -> Any:
    """A size as whole numbers."""
    if np.any(np.asarray(value) != np.floor(value)):
        raise ProblemError(f"{entry} is no whole number everywhere; write ceil(...)")
    return value.astype(np.int64) if isinstance(value, np.ndarray) else int(value)


def routes(
    launches: Sequence[Launched], device: Device, request: Request, n: int
) -> np.ndarray | None:
    """A code for each of n problems: those with one code run on the same kernels."""
    codes: list[np.ndarray] = []
    for item in launches:
        query = Request(implementation=item.kernel, harness=request.harness)
        alike = item.operator.same_call(item.problem.values())
        routed = item.operator.routes(item.problem, device, query)
        answers = (np.asarray(code).reshape(-1) for code in (alike, routed) if code is not None)
        codes += [np.broadcast_to(code, (n,)) for code in answers if code.size > 1]
    if not codes:
        return None
    _, inverse = np.unique(np.stack(codes, axis=1), axis=0, return_inverse=True)
    return np.asarray(inverse).reshape(-1)


@dataclass(frozen=True)
class Chained:
    """The kernels of a chain, timed one after another."""

    estimate: Estimate
    """Their sums, gaps included."""
    tile: Mapping[str, np.ndarray]
    """The tile of the only kernel; empty where there are several."""
    names: tuple[str, ...]
    """Names of their kernels, in launch order."""
    assumptions: tuple[str, ...]
    """What was assumed of them."""


def time(
    launches: Sequence[Launched], n: int, device: Device, setting: Setting, request: Request
) -> Chained:
    """Time the kernels of n problems as the harness runs them, without its launch.

    A further kernel starts a gap after the one before it.
    """
    total: Estimate | None = None
    count: Number = 0
    names, notes, tile = [], [], {}
    for item in launches:
        query = Request(implementation=item.kernel, harness=request.harness, place=request.place)
        problem = repeated(item.problem, n)
        timed = item.operator.time(problem, device, setting.constants, query)
        part = timed.estimate
        part.seconds = timed.seconds - timed.launch_seconds
        part = part.times(np.broadcast_to(np.asarray(item.times, np.float64), (n,)))
        total = part if total is None else total.plus(part)
        count = count + item.times
        names.append(timed.implementation)
        notes += timed.assumptions if item.kernel is not None else ()
        tile = dict(timed.tile)
    assert total is not None
    gaps = np.maximum(count - 1.0, 0.0) * setting.further_seconds
    total.seconds = total.seconds + gaps
    total.terms["gap"] = total.terms["gap"] + gaps
    return Chained(
        total, tile if len(names) == 1 else {}, tuple(names), tuple(dict.fromkeys(notes))
    )
