"""Declared algorithms as operators: schedules come from the mapper, options are their parameters.

Where a declaration names the built-in operator that computes the same (`operator:`), a library's
kernels are timed as for that operator; `fastest` compares them with the mapper's schedule.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import Any

import numpy as np

from perfmodel.algorithms import Matmul, Problem
from perfmodel.algorithms.case import Case, Declaration
from perfmodel.algorithms.declaredproblem import DeclaredProblem
from perfmodel.algorithms.matmul import types
from perfmodel.algorithms.problem import length
from perfmodel.arithmetic import Number, wide
from perfmodel.count import rule
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device
from perfmodel.napkin.mapper import FUSIONS, Mapping_, column, search, searches
from perfmodel.napkin.nests import Nest
from perfmodel.operators import chain, sending
from perfmodel.operators.builtin import BUILT_IN
from perfmodel.operators.library import unknowns
from perfmodel.operators.operator import Launched, Operator, Request, Timed
from perfmodel.operators.options import DIRECTION, Choice, Flag, Option, Size, dtype
from perfmodel.plaintext import quoted
from perfmodel.timing import floors
from perfmodel.timing.circumstances import circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import Caller, implementations, resolve, unmet
from perfmodel.timing.machine import machine
from perfmodel.timing.placing import placed
from perfmodel.timing.plan import Estimate, Part, Plan, handed, time_plan
from perfmodel.timing.reuse import at as reuse_at
from perfmodel.timing.setting import Setting

MAPPED = "mapped"
"""Implementation name of a schedule from the mapper."""

FAMILY = "declared"
"""Family in the table of ranges: it has no row, so the range is that of a first guess."""


FLOOR = "rowwise"
"""Operator whose launch floor is taken: any framework call's."""


_NO_CALLER = Caller()


class DeclaredOperator(Operator):
    """An algorithm declared in YAML or in Python."""

    schedules = FUSIONS

    def __init__(self, declaration: Declaration) -> None:
        self.declaration = declaration
        self.name, self.about = declaration.name, declaration.about
        parameters = declaration.parameters.items()
        roles = [role for role, name in declaration.types.items() if name == "data"]
        self.options = (
            *(_option(*item) for item in parameters),
            *(_role_option(role) for role in roles),
            dtype(types()),
            DIRECTION,
        )
        self.fits_by = tuple(declaration.parameters)
        built_in = BUILT_IN.get(str((declaration.operator or {}).get("name", "")))
        self.searched = (*declaration.extents, *(built_in.tile if built_in else ()))

    @property
    def chains(self) -> Mapping[str, Any]:
        """The chains that libraries' files have for it; none where a built-in operator has its
        name, whose kernels are no chains."""
        return {} if self.name in BUILT_IN else implementations(self.name)

    @property
    def library(self) -> str:  # type: ignore[override]
        """The operator itself, where libraries' files have chains for it, or the built-in one that
        it names."""
        if self.chains:
            return self.name
        return str((self.declaration.operator or {}).get("name", ""))

    def at_once(self, request: Request) -> int:
        """One problem where the fusion is searched, or each has a mask of its own; else as many as
        of other operators."""
        if request.schedule != "auto":
            return self.chunk if self.declaration.mask is None else 1
        searched = any(kernel.fusion for kernel in self.chains.values())
        return self.chunk if self.library and not searched else 1

    def problem(self, **given: Any) -> DeclaredProblem:
        """A `DeclaredProblem`."""
        dtype = given.pop("dtype", "bf16")
        direction: Any = given.pop("direction", None) or "fwd"
        roles = {role: given.pop(f"{role}_dtype", None) for role in self.declaration.types}
        roles = {role: name for role, name in roles.items() if name}
        parameters = {
            name: _share(name, value) if isinstance(value, str) else value
            for name, value in given.items()
            if value is not None
        }
        return DeclaredProblem(self.declaration, parameters, dtype, roles, direction=direction)

    @property
    def needed(self) -> tuple[str, ...]:
        """Parameters with plain numbers as defaults; expressions follow from the others."""
        return tuple(item.name for item in self.sizes if item.default is not None)

    @property
    def measured_shares(self) -> tuple[str, ...]:
        """Parameters with a column in the measured-run table that are no sizes: numbers."""
        defaults = self.declaration.parameters.items()
        return tuple(name for name, value in defaults if isinstance(value, float))

    def measured(self, row: Mapping[str, Any], sizes: Mapping[str, np.ndarray]) -> list[Problem]:
        """One problem; the table has a column for each parameter that it sets."""
        names = (*(item.name for item in self.sizes), *self.measured_shares)
        parameters: dict[str, Any] = {name: sizes[name] for name in names if name in sizes}
        kinds = (*(item.name for item in self.options if isinstance(item, Flag)), "kv_dtype")
        known = {item.name for item in self.options}
        parameters |= {name: row[name] or None for name in kinds if name in row and name in known}
        return [self.problem(**parameters, dtype=row["dtype"], direction=row.get("direction"))]

    def family(self, problem: Any) -> str:
        """Its own where libraries run it as a chain, that of the built-in operator where the
        declaration names one."""
        if self.chains:
            return self.name
        built_in = _built_in(problem, None)
        return built_in[0].operator.family(built_in[0].problem) if built_in else FAMILY

    def called_as(self, problem: Problem) -> str:
        """The launch floor of any operator."""
        return FLOOR

    def same_call(self, sizes: Mapping[str, Any]) -> np.ndarray | None:
        """Single queries apart."""
        return np.asarray(np.asarray(sizes["seq_q"]) == 1) if "seq_q" in sizes else None

    def routes(self, problem: Any, device: Device, request: Request) -> np.ndarray | None:
        """Codes of the kernels that run the launches of each problem."""
        launches = self.launches(problem, device, request)
        return chain.routes(launches, device, request, length(problem))

    def launches(self, problem: Problem, device: Device, request: Request) -> list[Launched]:
        """What the chain of a library launches, or the built-in operator that the declaration
        names; none where a schedule is searched."""
        assert isinstance(problem, DeclaredProblem)
        if request.schedule != "auto":
            return []
        if self.chains:
            kernel, _ = self._chain(problem, device, request)
            return chain.launched(problem, kernel, device, request)
        return _built_in(problem, request.implementation)

    def _sends(self, request: Request) -> bool:
        """Whether libraries' kernels for it send tokens to other ranks."""
        kernels = self.chains.values() if request.schedule == "auto" else ()
        return any(kernel.sending is not None for kernel in kernels)

    def _chain(self, problem: DeclaredProblem, device: Device, request: Request) -> Any:
        """The facts of the library's chain, and sentences on the choice."""
        queries = {**problem.declaration.parameters, **problem.given}.get("seq_q", 0)
        return resolve(
            self.name,
            request.implementation,
            problem.dtype,
            machine(device),
            decode=bool(np.all(np.asarray(queries) == 1)),
        )

    def time(
        self, problem: Problem, device: Device, constants: Constants, request: Request
    ) -> Timed:
        """Time what a library launches, or search the fastest schedule of one problem."""
        assert isinstance(problem, DeclaredProblem)
        if request.schedule not in self.schedules:
            names = ", ".join(self.schedules)
            raise ProblemError(
                f"schedule {request.schedule!r} is not known for {self.name}; it is one of {names}"
            )
        launches = self.launches(problem, device, request)
        if launches and not self.chains:
            each = (x.operator.time(x.problem, device, constants, request) for x in launches)
            return reduce(Timed.then, each)
        if problem.direction == "fwdbwd":
            passes = [problem.having(direction=way) for way in ("fwd", "bwd")]
            forward, backward = (self.time(each, device, constants, request) for each in passes)
            return forward.then(backward)
        if launches or self._sends(request):
            return self._chain_time(problem, launches, device, constants, request)
        return self._searched_time(problem, device, constants, request)

    def _searched_time(
        self,
        problem: DeclaredProblem,
        device: Device,
        constants: Constants,
        request: Request,
    ) -> Timed:
        """Time the fastest schedule of each problem, or of those that a library's kernel allows."""
        kernel = None
        if self.chains and request.schedule == "auto":
            kernel, _ = self._chain(problem, device, request)
        if kernel is None or not kernel.fusion:
            mappings = searches(problem.cases, device, constants, request.schedule)
            timed = self._mapping_time(mappings, constants, request)
            if kernel is None:
                return timed
            note = f"{kernel.name} has no launches for {problem.direction}: the fastest schedule "
            unknown = {**timed.unknowns, "implementation": f"{note}that the search finds is taken"}
            notes = (*timed.assumptions, unknown["implementation"])
            return replace(timed, unknowns=unknown, assumptions=notes)
        fusion = kernel.fusion if problem.direction == "fwd" else kernel.gradient_fusion
        if problem.direction == "bwd" and kernel.recompute is not None:
            declaration = self.declaration.recomputing(kernel.recompute)
            problem = replace(problem, declaration=declaration, direction="fwd")
        mappings = searches(problem.cases, device, constants, fusion)
        timed = self._mapping_time(mappings, constants, request, kernel.caller)
        notes = tuple(note for note in timed.assumptions if note != _ASSUMED)
        return replace(timed, implementation=kernel.name, assumptions=notes)

    def _chain_time(
        self,
        problem: DeclaredProblem,
        launches: list[Launched],
        device: Device,
        constants: Constants,
        request: Request,
    ) -> Timed:
        """The kernels of a chain, or the one kernel that sends tokens."""
        kernel, notes = self._chain(problem, device, request)
        n = length(problem)
        chip = machine(device)
        caveats = unknowns(self.name, request.implementation, request.harness, device)
        gap = unmet(request.implementation, notes)
        if gap is not None:
            caveats["implementation"] = gap
        calls, called_as = kernel.calls, FLOOR
        if kernel.sending is not None:
            width = problem.elements()["data"].bytes
            total, caveats["link"] = sending.estimate(
                kernel.sending, problem.values(), width, chip, n
            )
            chained = chain.Chained(total, {}, ())
        else:
            conditions = circumstances(request.harness, self.name, constants)
            setting = Setting(chip, constants, conditions)
            chained = chain.time(launches, n, device, setting, request)
            called_as = launches[0].operator.called_as(launches[0].problem)
            calls = calls or (len(launches) if len(launches) > 1 else 0)
        dispatch = floors.dispatch(
            constants, request.harness, called_as, kernel.caller, calls=calls, machine=chip
        )
        seconds = dispatch.whole(chained.estimate.seconds)
        assumptions = (*chip.assumptions, *notes, *chained.assumptions, *caveats.values())
        return Timed(
            schedule=" | ".join(dict.fromkeys(item.operator.name for item in launches)) or "send",
            implementation=kernel.name,
            seconds=seconds,
            estimate=chained.estimate,
            launch_seconds=seconds - chained.estimate.seconds,
            included_seconds=np.zeros(n),
            tile=chained.tile,
            assumptions=tuple(dict.fromkeys(assumptions)),
            unknowns=caveats,
            dispatch=dispatch,
        )

    def _mapping_time(
        self,
        mappings: Sequence[Mapping_],
        constants: Constants,
        request: Request,
        caller: Caller = _NO_CALLER,
    ) -> Timed:
        """The time of the schedules that were found; those with the same nests at once."""
        device, n = mappings[0].device, len(mappings)
        chip, kernels = machine(device), mappings[0].kernels
        alike: dict[tuple[Nest, ...], list[int]] = {}
        for i, mapping in enumerate(mappings):
            alike.setdefault(tuple(item.nest for item in mapping.kernels), []).append(i)
        parts, tile = [], dict[str, np.ndarray]()
        for places in alike.values():
            index = np.array(places)
            some = [mappings[i] for i in places]
            (plan,), link_notes = placed([_plan(some)], request.place, device)
            (plan,) = handed([plan], reuse_at(request.reuse, index))
            timing = time_plan(chip, constants, plan, (len(some), 1))
            parts.append((index, timing.at(np.zeros(len(some), dtype=np.intp))))
        for i, mapping in enumerate(mappings):
            longest = max(mapping.kernels, key=lambda item: item.seconds)
            for axis, size in longest.tiles.items():
                tile.setdefault(axis, np.full(n, np.nan))[i] = size
        estimate = parts[0][1] if len(parts) == 1 else Estimate.of(parts)
        calls = len(kernels) if len(kernels) > 1 else 0
        dispatch = floors.dispatch(
            constants, request.harness, FLOOR, caller, calls=calls, machine=chip
        )
        seconds = dispatch.whole(estimate.seconds)
        caveats = unknowns(FAMILY, request.implementation, request.harness, device)
        if link_notes:
            caveats["link"] = "; ".join(link_notes)
        return Timed(
            schedule=plan.schedule,
            implementation=MAPPED,
            seconds=seconds,
            estimate=estimate,
            launch_seconds=seconds - estimate.seconds,
            included_seconds=np.zeros(n),
            tile=tile,
            assumptions=(*chip.assumptions, _ASSUMED, *caveats.values()),
            unknowns=caveats,
            dispatch=dispatch,
        )


def _plan(mappings: Sequence[Mapping_]) -> Plan:
    """The kernels of schedules with the same nests, as arrays over problems."""
    first = mappings[0]
    case = replace(first.case, sizes=_columns([mapping.case.sizes for mapping in mappings]))
    parts = []
    for kernels in zip(*(mapping.kernels for mapping in mappings), strict=True):
        sizes = _columns([item.layout.sizes for item in kernels])
        layout = replace(kernels[0].layout, sizes=sizes)
        tiles = {
            axis: np.array([[item.tiles[axis]] for item in kernels]) for axis in kernels[0].tiles
        }
        style = layout.target.style(layout.fused)
        parts.append(Part(layout.schedule(tiles), sizes, layout.elements, style))
    return Plan(
        schedule=" | ".join("+".join(item.nest.steps) for item in first.kernels),
        parts=tuple(parts),
        tile={},
        memory_bytes=held_bytes(case, first),
    )


def _columns(sizes: Sequence[Mapping[str, int]]) -> dict[str, Any]:
    return {axis: column([each[axis] for each in sizes]) for axis in sizes[0]}


_ASSUMED = "no library's kernel is known: the fastest schedule that the search finds"


@dataclass(frozen=True)
class Fastest:
    """The fastest way to run a declared algorithm: what the mapper finds, or a library's kernel."""

    found: Mapping_
    """The mapper's result."""
    library: Timed | None
    """The library's time; None where no library has a kernel."""

    @property
    def library_seconds(self) -> float:
        """Device time of the library's kernel, without launch; infinite where no library has
        one."""
        if self.library is None:
            return float("inf")
        return float(self.library.seconds[0] - self.library.launch_seconds[0])

    @property
    def of_library(self) -> bool:
        """Whether a library's kernel is faster than the mapper's schedule."""
        return self.library_seconds < self.found.seconds

    @property
    def seconds(self) -> float:
        """The shorter of the two device times."""
        return min(self.library_seconds, self.found.seconds)


def fastest(case: Case, device: Device, constants: Constants) -> Fastest:
    """The faster of the mapper's schedule and, where the declaration names one, a library's kernel.

    Raises `ProblemError` where no schedule fits on chip.
    """
    mapping = search(case, device, constants=constants)
    built_in = as_built_in(case)
    if built_in is None:
        return Fastest(mapping, None)
    operator, problem = built_in
    try:
        return Fastest(mapping, operator.time(problem, device, constants, Request()))
    except ProblemError:  # the library has no tile that fits
        return Fastest(mapping, None)


def as_built_in(case: Case) -> tuple[Operator, Problem] | None:
    """The built-in operator that a declaration names, and its problem at these sizes."""
    entry = case.operator
    if entry is None:
        return None
    name = str(entry["name"])
    if name not in BUILT_IN:
        raise UnknownName(f"operator that {case.algorithm.name} is", name, BUILT_IN)
    operator = BUILT_IN[name]
    entries = {field: text for field, text in entry.items() if field != "name"}
    roles = {"kv_dtype": "kv"} if "kv" in case.elements else {}
    known = [item.name for item in operator.options]
    for field in entries:
        if field not in known:
            raise UnknownName(f"size of {name} that {case.algorithm.name} gives", field, known)
    entries |= {option: role for option, role in roles.items() if option in known}
    values = chain.given(operator, entries, case.parameters, case.dtype, case.elements)
    problem = operator.problem(**operator.fixed, **values, dtype=case.dtype)
    if not case.ranks:
        return operator, problem
    ranks = _axis_ranks(case, entry, problem)
    return None if ranks is None else (operator, problem.shard(ranks))


def _built_in(problem: DeclaredProblem, implementation: str | None) -> list[Launched]:
    """What the built-in operator launches that the declaration names: itself, with the direction
    where it has one, else the products of each pass; none where it names none."""
    built_in = as_built_in(_whole_case(problem))
    if built_in is None:
        return []
    operator, part = built_in
    way = problem.direction
    if way == "fwd":
        return [Launched(operator, part, implementation)]
    if isinstance(part, Matmul):
        parts = [part] * (way == "fwdbwd") + [kernel.problem for kernel in part.backward()]
        return [Launched(operator, each, implementation) for each in parts]
    return [Launched(operator, part.having(direction=way), implementation)]


def _whole_case(problem: DeclaredProblem) -> Case:
    """A case with the parameters of all problems, as float64 arrays where they differ."""
    values = {name: wide(value) for name, value in problem.values().items()}
    return replace(problem.joint or problem.cases[0], parameters=values)


def _axis_ranks(case: Case, entry: Mapping[str, Any], problem: Problem) -> dict[str, int] | None:
    """The ranks of the built-in problem's axes, from those of the declaration's axes.

    Axes correspond where their sizes are declared by the same expression; None where one has no
    counterpart.
    """
    split: dict[str, int] = {}
    for axis, ranks in case.ranks.items():
        fields = [name for name, text in entry.items() if str(text) == str(case.extents[axis])]
        if len(fields) != 1:
            return None
        target = problem.spellings().get(fields[0], fields[0])
        if target not in problem.sizes():
            return None
        split[target] = ranks
    return split


def held_bytes(case: Case, found: Mapping_) -> Number:
    """Bytes of inputs, outputs, and intermediates that pass between kernels through memory."""
    algorithm = case.algorithm
    home = {name: i for i, item in enumerate(found.kernels) for name in item.nest.steps}
    makers = {name: home[step.name] for step in algorithm.steps for name in step.outputs}
    crossing = {
        name
        for step in algorithm.steps
        for name in step.inputs
        if name in makers and makers[name] != home[step.name]
    }
    names = dict.fromkeys((*algorithm.inputs, *algorithm.outputs, *crossing))
    parts = [algorithm.tensors[name] for name in names]
    return sum(rule.size(case.sizes, item) * case.elements[item.element].bytes for item in parts)


def _share(name: str, text: str) -> float:
    """A share from the command line."""
    try:
        share = float(text)
    except ValueError:
        share = math.nan
    if not math.isfinite(share):
        raise ProblemError(f"{name} {quoted(text)} is no number; write 0.25")
    return share


def _role_option(role: str) -> Choice:
    """The option of a role's type."""
    flag = f"--{role.replace('_', '-')}-dtype"
    return Choice(f"{role}_dtype", (flag,), None, f"Type of {role} [default: as --dtype].")


def _label(name: str) -> str:
    """A parameter's name at the start of a sentence: Kv heads."""
    return name.replace("_", " ").capitalize()


def _option(name: str, default: Any) -> Option:
    """The option of a parameter, by its declared default."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(default, bool):
        return Flag(name, (flag,), f"{_label(name)}, yes or no.")
    if isinstance(default, int):
        return Size(name, (flag,), str(default), f"{_label(name)}: a size, list or range.", least=0)
    if isinstance(default, float):
        return Choice(
            name, (flag,), str(default), f"{_label(name)}: a share, such as 0.25.", metavar="NUMBER"
        )
    return Size(name, (flag,), None, f"{_label(name)} [default: {default}].", least=0)
