"""Algorithm × schedule × device → `Prediction`: the time of every resource, the limiter, the
reasons.

`predict` takes one problem. `predict_arrays` takes arrays of problems of one kind with the same
code, menus of tiles included. All times are in seconds; tables and JSON with microseconds name the
unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar, overload

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import adjoining, distinct, length, pick, repeated
from perfmodel.arithmetic import is_one
from perfmodel.compiled import variants
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.learned import active
from perfmodel.learned.groups import Learned
from perfmodel.operators import Operator, Request, Timed, operator_of, owntile
from perfmodel.operators.mesh import put, shard, time_on
from perfmodel.operators.operator import Exchanged, groups
from perfmodel.prediction import Filled, Prediction, Predictions, numbers_of, prediction
from perfmodel.timing import capacity, physical, spread
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.knowledge import Known, known
from perfmodel.timing.libraries import spelled
from perfmodel.timing.reuse import Reuses
from perfmodel.timing.reuse import at as reuse_at

SCHEMA_VERSION = 1
_R = TypeVar("_R", covariant=True)

# Dimensions of a tile that say into how many parts an axis is cut.
_CUTS = ("slices", "splits")

# At least half of the memory that timing one piece needs.
_WORKING_BYTES = 2**23


class Predictable(Protocol[_R]):
    """What can be predicted and is no `Problem`: a graph, a network, a plan, a collective ..."""

    def predicted(self, machine: Any, **options: Any) -> _R:
        """Its prediction on a device or a system."""


@overload
def predict(
    problem: Problem,
    device: Device,
    *,
    schedule: str = "auto",
    implementation: str | None = None,
    harness: str = "kernel",
    includes: Sequence[str] = (),
    place: Mapping[str, str] | None = None,
    reuse: Reuses | None = None,
    mesh: Mapping[str, tuple[int, str]] | None = None,
    stored: Mapping[str, str] | None = None,
    tile: Mapping[str, Any] | None = None,
    constants: Constants | None = None,
    learned: bool = True,
) -> Prediction: ...


@overload
def predict(problem: Predictable[_R], device: Any = None, **options: Any) -> _R: ...


def predict(problem: Any, device: Any = None, **options: Any) -> Any:
    """Predict one problem on one device, or a `Predictable` on its machine.

    - `schedule`: a schedule of its operator (`perfmodel.operators`)
    - `implementation`: a kernel's name, in any spelling that the command line accepts (flash2,
      FA2), or a framework's name for one; overrides `schedule`. A name that is not known is timed
      as a good library's kernel, which the assumptions say
    - `harness`: how a run would be timed; "kernel" is device time alone
    - `includes`: other kernels in the timed region
    - `place`: the level that an operand lies in, by role or tensor ({"kv": "host"}); by default the
      device's own memory
    - `reuse`: what earlier kernels left of the inputs in the caches (`perfmodel.timing.reuse`); by
      default what an earlier run of the same kernel leaves
    - `mesh`: the devices that axes are split over and their links ({"k": (2, "nvlink")})
    - `stored`: the axis that a tensor's shards lie along in memory ({"C": "n"}; "whole": on every
      device); by default as the kernels use them
    - `tile`: the tile of a kernel of one's own ({"m": 128, "n": 128, "k": 64, "warps": 8,
      "stages": 3} of a product, {"rows": 128, "keys": 64, ...} of attention); by default the best
      of a library's menu
    - `constants`: the constants of the time model; by default the shipped ones
    - `learned`: whether what measured runs teach corrects the model (`perfmodel.learned`): the
      bundled record, with the shipped constants and where a framework is named, and `corrected_by`

    A graph, a network, a collective, a plan and a deployment have options of their own; see their
    `predicted`. Raises `ProblemError` for input without meaning and `UnknownName` for unknown
    names, in one line.
    """
    if isinstance(problem, Problem):
        question = _question(problem, device, **options)
        return _single(question) or _predict_pieces(question).one(0)
    return problem.predicted(device, **options)


def predict_arrays(
    problem: Problem,
    device: Device,
    *,
    schedule: str = "auto",
    implementation: str | None = None,
    harness: str = "kernel",
    includes: Sequence[str] = (),
    place: Mapping[str, str] | None = None,
    reuse: Reuses | None = None,
    mesh: Mapping[str, tuple[int, str]] | None = None,
    stored: Mapping[str, str] | None = None,
    tile: Mapping[str, Any] | None = None,
    constants: Constants | None = None,
    learned: bool = True,
) -> Predictions:
    """Predict arrays of problems of one kind (sizes may be arrays of one length n, the rest not).

    Equal problems are computed once where at least half of all are repeats. Memory beyond the
    results grows with the operator's `chunk`, not with n; with repeats also with the number of
    distinct problems. A dimension of `tile` may be an array too: n tiles of one problem, or one
    tile of each problem. Arguments and errors as for `predict`.
    """
    question = _question(**locals())
    request, problem = question.request, question.problem
    plain = request.reuse is None and not request.mesh and not request.tile
    unique = distinct(problem) if plain and length(problem) > 1 else None
    if unique is None:
        return _predict_pieces(question)
    first, inverse = unique
    return _predict_pieces(replace(question, problem=pick(problem, first))).of(problem, inverse)


@dataclass(frozen=True)
class _Question:
    """What one call asks for."""

    problem: Problem
    """The problems."""
    device: Device
    """The device."""
    constants: Constants
    """Constants of the time model."""
    request: Request
    """How they are carried out and timed."""
    corrections: Sequence[Learned]
    """What measured runs may correct."""

    @property
    def operator(self) -> Operator:
        """The problems' operator."""
        return operator_of(self.problem)


def _question(
    problem: Problem,
    device: Device,
    *,
    implementation: str | None = None,
    includes: Sequence[str] = (),
    constants: Constants | None = None,
    learned: bool = True,
    tile: Mapping[str, Any] | None = None,
    **how: Any,
) -> _Question:
    """The options of `predict` in the model's own terms."""
    if implementation and (library := operator_of(problem).library):
        implementation = spelled(library, implementation)
    given = {name: value for name, value in how.items() if value is not None}
    request = Request(implementation=implementation, includes=tuple(includes), **given)
    if tile:
        request, problem = _tile_request(request, problem, tile)
    corrections = active.corrections(implementation, shipped=constants is None) if learned else ()
    return _Question(problem, device, constants or default(), request, corrections)


def _tile_request(
    request: Request, problem: Problem, tile: Mapping[str, Any]
) -> tuple[Request, Problem]:
    """The request with the caller's own tile, and the problem repeated for each tile."""
    dims = owntile.read(operator_of(problem), tile)
    n = max(value.size for value in dims.values())
    problem = repeated(problem, n)
    if n not in (1, length(problem)):
        raise ProblemError(f"{n} tiles for {length(problem)} problems; give each its tile, or one")
    return replace(request, tile=dims), problem


def _single(question: _Question) -> Prediction | None:
    """One problem by compiled code; None where there is none, or what it finds needs more words."""
    problem, device, request = question.problem, question.device, question.request
    if question.corrections:
        return None
    operator, constants = question.operator, question.constants
    fast = _compiled(operator, problem, device, constants, request, plain=True)
    if fast is None:
        return None
    facts, numbers = fast[0], numbers_of(fast[1], device)
    slices = next((numbers["tile"][name] for name in _CUTS if name in numbers["tile"]), None)
    label = facts.schedule if slices is None or slices > 1 else _uncut(facts.schedule)
    kind = (label, facts.implementation, facts.assumptions, facts.basis)
    return prediction(numbers, kind, problem, device) if numbers["fits"] else None


def _predict_pieces(question: _Question) -> Predictions:
    """Predictions of problems of one kind, piece by piece."""
    problem, device, constants = question.problem, question.device, question.constants
    request, corrections = question.request, question.corrections
    n = length(problem)
    table = Filled(n)
    if n > 1:
        _keep_working_memory()
    operator, reuse, tiles = question.operator, request.reuse, request.tile
    for index in _of_one_call(operator, shard(problem, device, request), n, device, request):
        while len(index):
            rest = pick(problem, adjoining(index))
            fast = _compiled(operator, rest, device, constants, request)
            piece = index[: operator.at_once(request) if fast is None else len(fast[1]["seconds"])]
            query = replace(request, reuse=reuse_at(reuse, piece), tile=owntile.at(tiles, piece))
            part = pick(problem, adjoining(piece))
            facts, results = fast or _timed(operator, part, device, constants, query)
            remark: tuple[str, ...] = ()
            kernel, local = facts.implementation, shard(part, device, request)
            correction = active.correction(corrections, local, device, request, kernel)
            if correction is not None:
                floor = physical.floor_seconds(local, device, results["flops.matrix"])
                results = correction.applied(local, results, floor)
                remark = (correction.group.remark,)
            for label, notes, members in _kinds(device, facts, results):
                table.put(piece[members], (label, kernel, (*notes, *remark), facts.basis))
            table.fill(piece, results)
            put(table.exchanged, facts.exchanges, piece, n)
            index = index[len(piece) :]
    return table.predictions(problem, device)


@dataclass(frozen=True)
class _Facts:
    """What all problems of one call share."""

    schedule: str
    implementation: str
    assumptions: tuple[str, ...]
    basis: Known
    beyond: tuple[str, ...]
    """Levels behind links that hold operands."""
    exchanges: tuple[Exchanged, ...]


def _timed(
    operator: Operator, problem: Problem, device: Device, constants: Constants, request: Request
) -> tuple[_Facts, dict[str, np.ndarray]]:
    """The facts and the arrays of a prediction for the problems of one call."""
    part, time = time_on(operator, problem, device, constants, request)
    family = operator.family(part)
    basis = _knowledge(family, device, time, request)
    beyond = tuple(time.estimate.beyond_bytes)
    facts = _Facts(
        time.schedule, time.implementation, time.assumptions, basis, beyond, time.exchanges
    )
    return facts, _results(family, basis, part, device, time)


def _compiled(
    operator: Operator,
    problem: Problem,
    device: Device,
    constants: Constants,
    request: Request,
    *,
    plain: bool = False,
) -> tuple[_Facts, dict[str, Any]] | None:
    """As `_timed`, by compiled code, for the first of some problems, or with `plain` numbers for
    one; None where there is none."""
    special = request.mesh or request.stored or request.place or request.tile
    n = min(length(problem), variants.CHUNK)
    if special or request.reuse is not None or not operator.free_sizes or (plain and n > 1):
        return None
    arrays, fixed = {}, {}
    for name, value in problem.values().items():
        is_array = isinstance(value, np.ndarray)
        if name in operator.free_sizes and value is not None and not is_one(value):
            arrays[name] = value[:n] if is_array else np.array([value]).repeat(n)
        elif is_array and np.any(value != value[0]):
            return None
        else:
            fixed[name] = value[0].item() if is_array else value
    if not arrays:
        return None

    def timed(sizes: Mapping[str, Any]) -> tuple[_Facts, dict[str, np.ndarray]]:
        return _timed(operator, problem.arranged(**fixed, **sizes), device, constants, request)

    key = (
        operator.name, *fixed.items(), *arrays, id(device), id(constants), request.schedule,
        request.implementation, request.harness, request.includes,
    )  # fmt: skip
    return variants.computed(key, (device, constants), timed, arrays, operator.chunk, plain=plain)


def _keep_working_memory() -> None:
    """Keep freed memory in the process, so that the next piece reuses that of the last.

    glibc returns free memory to the system beyond twice the largest block that was ever freed
    (mallopt(3), M_MMAP_THRESHOLD). Faulting the pages in again may take as long as a third of the
    arithmetic. Allocating and freeing a large untouched block costs next to nothing and raises that
    limit. Other allocators are not affected.
    """
    np.empty(_WORKING_BYTES, dtype=np.uint8)


def _of_one_call(
    operator: Operator, problem: Problem, n: int, device: Device, request: Request
) -> list[np.ndarray]:
    """Index sets of problems that one call can time: those that one kernel of a library runs."""
    sets = groups(operator.same_call(problem.values()) if n > 1 else None, n)
    if n == 1:
        return list(sets)
    return [
        index[part]
        for index in sets
        for part in groups(
            operator.routes(pick(problem, adjoining(index)), device, request), len(index)
        )
    ]


def _kinds(
    device: Device, facts: _Facts, results: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, tuple[str, ...], np.ndarray]]:
    """Schedule name, assumptions and problems of each kind in a piece.

    A schedule that could cut an axis into slices but does not is named so. Problems that need more
    memory than the device has get an assumption that says so.
    """
    n = len(results["seconds"])
    counts = (results.get(f"tile.{name}") for name in _CUTS)
    slices = next((each for each in counts if each is not None), None)
    cut = np.ones(n, dtype=bool) if slices is None else np.asarray(slices > 1)
    needs = {name: results[f"footprints.{name}"] for name in ("hbm", *facts.beyond)}
    rooms = capacity.rooms(device, needs)
    shortages = {name: needs[name] > room for name, room in rooms.items()}
    oversize = np.any(list(shortages.values()), axis=0)
    for label, mask in ((facts.schedule, cut), (_uncut(facts.schedule), ~cut)):
        for large in (False, True):
            members = np.flatnonzero(mask & (oversize == large))
            if members.size:
                notes = _too_large(device, needs, shortages, members) if large else ()
                yield label, (*facts.assumptions, *notes), members


def _uncut(schedule: str) -> str:
    """A schedule's name where it does not cut its axis: for products k, for attention the keys."""
    return "tiled" if schedule in ("split-k", "split-kv") else schedule


def _too_large(
    device: Device,
    needs: Mapping[str, np.ndarray],
    shortages: Mapping[str, np.ndarray],
    members: np.ndarray,
) -> tuple[str, ...]:
    """A line for each level that is too small for some of the chosen problems, with their least
    need."""
    least = {
        name: float(needs[name][members][short[members]].min())
        for name, short in shortages.items()
        if short[members].any()
    }
    return capacity.too_large(device, least)


def _knowledge(family: str, device: Device, time: Timed, request: Request) -> Known:
    """What is known of the device, the implementation and the harness."""
    kernel = "" if "implementation" in time.unknowns else time.implementation
    return known(family, device, request.implementation, kernel, request.harness)


def _results(
    family: str, basis: Known, problem: Problem, device: Device, time: Timed
) -> dict[str, np.ndarray]:
    """All arrays of a prediction for the problems of one piece."""
    estimate = time.estimate
    terms = {
        **estimate.terms, "launch": time.launch_seconds, "included": time.included_seconds,
    }  # fmt: skip
    floor = physical.floor_seconds(problem, device, estimate.matrix_flops)
    low, high = spread.interval(family, basis, time.seconds, floor, linked="link" in time.unknowns)
    dummy = {"l2": np.zeros(len(time.seconds))} if device.level("l2") is None else {}
    limiter, runner_up = rank({**terms, **dummy}, time.seconds - time.exchange_seconds)
    footprints = {"hbm": estimate.memory_bytes, **estimate.beyond_bytes}
    tables = {
        "terms": terms, "bytes": estimate.bytes, "tile": time.tile, "footprints": footprints,
        "dispatch": vars(time.dispatch),
    }  # fmt: skip
    return {
        "seconds": time.seconds,
        "low_seconds": low,
        "high_seconds": high,
        "limiter": limiter,
        "runner_up": runner_up,
        "flops.matrix": estimate.matrix_flops,
        "flops.vector": estimate.vector_ops,
        "flops.special": estimate.special_ops,
        "useful_flops": np.asarray(problem.flops(), dtype=np.float64),
        "footprint_bytes": estimate.memory_bytes,
        "waves": estimate.waves,
        "occupancy": estimate.occupancy,
        **{f"{k}.{name}": np.asarray(v) for k, t in tables.items() for name, v in t.items()},
    }


def rank(terms: Mapping[str, np.ndarray], seconds: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The names of the largest and the second largest term of each time: limiter and runner-up.

    Power counts only where it binds, that is where the clock is lowered: its term then equals the
    time of all overlapping resources together. Below that it costs nothing.
    """
    serial = sum((terms[name] for name in ("blocks", "gap", "launch", "included")), start=0.0)
    binds = terms["power"] >= 0.999 * (seconds - serial)
    limits = {**terms, "power": np.where(binds, terms["power"], 0.0)}
    first = second = np.zeros_like(seconds)
    longest = next_longest = np.full_like(seconds, -1.0)
    for place, term in enumerate(limits.values()):
        leads, follows = term > longest, term > next_longest
        second = np.where(leads, first, np.where(follows, float(place), second))
        next_longest = np.where(leads, longest, np.where(follows, term, next_longest))
        first, longest = np.where(leads, float(place), first), np.where(leads, term, longest)
    names = np.array(list(limits))
    limiter, runner_up = (np.take(names, each.astype(np.intp)) for each in (first, second))
    return limiter, runner_up
