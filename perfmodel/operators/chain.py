"""What a declared operator is launched as: problems of other operators, one after another.

A library's file says it (`ChainFacts`), or the declaration itself, where a built-in operator
computes the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.expressions import evaluate
from perfmodel.algorithms.problem import repeated
from perfmodel.arithmetic import wide
from perfmodel.count import compulsory_bytes
from perfmodel.elements import ElementType
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.operators.operator import Launched, Operator, Request
from perfmodel.operators.options import Flag, Size
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.libraries import ChainFacts, implementations, is_known
from perfmodel.timing.libraries.facts import Launch
from perfmodel.timing.plan import Estimate
from perfmodel.timing.reuse import Reuse, Reuses
from perfmodel.timing.setting import Setting


def launched(
    problem: DeclaredProblem, kernel: ChainFacts, device: Device, request: Request
) -> list[Launched]:
    """The kernels that a chain launches in the timed region, chains within it unfolded.

    Raises `PerfmodelError`, with the chain and the launch, where one has no meaning.
    """
    types = {"dtype": problem.dtype, **{k: each.name for k, each in problem.elements().items()}}
    launches: list[Launched] = []
    for i, launch in enumerate(kernel.launches):
        if launch.direction != problem.direction:
            continue
        outside = launch.part and request.includes and launch.part not in request.includes
        if outside or any(types[role] not in names for role, names in launch.when.items()):
            continue
        try:
            launches += _unfolded(problem, launch, device, request)
        except PerfmodelError as error:
            place = f"{kernel.name}, launch {i + 1}, {launch.operator}"
            raise ProblemError(f"{place}: {error}") from None
    return launches


def _unfolded(
    problem: DeclaredProblem, launch: Launch, device: Device, request: Request
) -> Iterator[Launched]:
    from perfmodel.operators.registry import load

    values = {name: wide(value) for name, value in problem.values().items()}
    operator = load(launch.operator)
    if launch.kernel is not None and not is_known(operator.library, launch.kernel):
        raise UnknownName("implementation", launch.kernel, implementations(operator.library))
    options = given(operator, launch.sizes, values, problem.dtype, problem.elements())
    part = operator.problem(**operator.fixed, **options)
    query = Request(implementation=launch.kernel, harness=request.harness)
    times = evaluate(launch.times, values)
    own = [Launched(operator, part, launch.kernel)]
    for item in operator.launches(part, device, query) or own:
        yield replace(item, times=item.times * times)


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
    assumptions: tuple[str, ...]
    """What was assumed of them."""


def time(
    launches: Sequence[Launched], n: int, device: Device, setting: Setting, request: Request
) -> Chained:
    """Time the kernels of n problems as the harness runs them, without its launch.

    A further kernel starts a gap after the one before it.
    """
    total: Estimate | None = None
    times = [np.broadcast_to(np.asarray(item.times, np.float64), (n,)) for item in launches]
    notes: list[str] = []
    tile: Mapping[str, np.ndarray] = {}
    for item, number, reuse in zip(
        launches, times, _reuses(launches, times, n, setting.run), strict=True
    ):
        query = replace(request, implementation=item.kernel, includes=(), reuse=reuse)
        timed = item.operator.time(repeated(item.problem, n), device, setting.constants, query)
        alone = replace(timed.estimate, seconds=timed.seconds - timed.launch_seconds)
        part = alone.times(number)
        total = part if total is None else total.plus(part)
        notes += timed.assumptions if item.kernel is not None else ()
        tile = timed.tile
    assert total is not None
    gaps = np.maximum(sum(times) - 1.0, 0.0) * setting.further_seconds
    total.seconds = total.seconds + gaps
    total.terms["gap"] = total.terms["gap"] + gaps
    return Chained(total, tile if len(launches) == 1 else {}, tuple(dict.fromkeys(notes)))


def _reuses(
    launches: Sequence[Launched], times: Sequence[np.ndarray], n: int, run: Circumstances
) -> list[Reuses]:
    """What earlier kernels left of the inputs of each launch in the caches.

    Weights and caches of keys and values were last read by the run before, all bytes of the chain
    ago. So was what the first kernel reads. The other inputs were written by the kernel before:
    their own bytes ago.
    """
    moved = [np.broadcast_to(compulsory_bytes(item.problem).reshape(-1), (n,)) for item in launches]
    chain_bytes = sum((each * number for each, number in zip(moved, times, strict=True)))
    reuses: list[Reuses] = []
    for i, (item, own_bytes) in enumerate(zip(launches, moved, strict=True)):
        algorithm = item.problem.algorithm()
        again = (Reuse(run.warm, chain_bytes, run.repeats),) if run.warm else ()
        handed = (Reuse(1.0, own_bytes),) if i else again
        lasting = ("weights", "kv")
        tensors = {name: algorithm.tensors[name].element for name in algorithm.inputs}
        inputs = {name: again if role in lasting else handed for name, role in tensors.items()}
        outputs = algorithm.outputs if run.repeats else ()
        reuses.append({**inputs, **dict.fromkeys(outputs, again)})
    return reuses
