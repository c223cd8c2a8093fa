"""Algorithm × schedule × device → `Prediction`: every resource's time, the limiter, the reasons.

`predict` answers one problem; `predict_arrays` answers arrays of problems of one kind with the same
code, menus included. Seconds inside, microseconds only where a table or JSON says so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import describe, distinct, length, pick
from perfmodel.hardware import Device
from perfmodel.operators import Operator, Request, Timed, operator_of
from perfmodel.operators.mesh import put, shard, time_on
from perfmodel.operators.operator import Exchanged, groups
from perfmodel.timing import capacity, physical, spread
from perfmodel.timing.constants import Constants, default
from perfmodel.timing.reuse import Reuses
from perfmodel.timing.reuse import at as reuse_at

SCHEMA_VERSION = 1

# Schedule, implementation and assumptions, shared by all problems timed in one call.
_Kind = tuple[str, str, tuple[str, ...]]

# What a schedule is called where it leaves its axis whole: of products k, of attention the keys.
_UNCUT = {"split-k": "tiled", "split-kv": "tiled"}

# Half of the memory, or more, that timing one piece takes.
_WORKING_BYTES = 2**23


@dataclass(frozen=True)
class Prediction:
    """One case on one device. Times in seconds, traffic in bytes, intensity in FLOP per byte.

    `terms` holds every resource's own time; their sum is not the total because resources overlap.
    The `limiter` is the largest and the `runner_up` the next, except that power counts only
    where it binds (`rank`). `flops` counts executed matrix operations, vector operations, special
    functions; `useful_flops` the operations that the mask leaves, by the papers' convention.
    `footprint_bytes` lie in the device's own memory, `footprints` in each level. `fits_at` says
    whether a level holds its own where its capacity is known, `fits` whether all of these do.
    `levels` is what the device calls its levels: HBM3, GDDR6X, L3. `dispatch` is the host's part
    (`perfmodel.timing.floors.Dispatch`), in seconds. Where the problem is split over devices, all
    counts are those of one of them, and `exchanges` what it exchanges with others.
    """

    device: str
    algorithm: str
    schedule: str
    implementation: str
    problem: Mapping[str, Any]
    seconds: float
    low_seconds: float
    high_seconds: float
    limiter: str
    runner_up: str
    terms: Mapping[str, float]
    flops: Mapping[str, float]
    useful_flops: float
    bytes: Mapping[str, float]
    footprint_bytes: float
    footprints: Mapping[str, float]
    fits: bool
    fits_at: Mapping[str, bool]
    levels: Mapping[str, str]
    tile: Mapping[str, float]
    waves: float
    occupancy: float
    assumptions: tuple[str, ...]
    dispatch: Mapping[str, float]
    exchanges: tuple[Exchanged, ...] = ()

    @property
    def intensity(self) -> dict[str, float]:
        """FLOP per byte at each level: executed operations over the bytes that cross it."""
        work = self.flops["matrix"] or self.flops["vector"] + self.flops["special"]
        return {
            level: work / moved if moved else float("inf") for level, moved in self.bytes.items()
        }

    @property
    def flops_per_second(self) -> float:
        """Executed operations per second, the height of the kernel on a roofline."""
        work = self.flops["matrix"] or self.flops["vector"] + self.flops["special"]
        return work / self.seconds

    def as_dict(self) -> dict[str, Any]:
        """The JSON form: microseconds and bytes, the unit in every name that needs one."""
        micro = 1e6
        return {
            "device": self.device,
            "algorithm": self.algorithm,
            "schedule": self.schedule,
            "implementation": self.implementation,
            "problem": dict(self.problem),
            "time_us": self.seconds * micro,
            "low_us": self.low_seconds * micro,
            "high_us": self.high_seconds * micro,
            "limiter": self.limiter,
            "runner_up": self.runner_up,
            "terms_us": {name: value * micro for name, value in self.terms.items()},
            "flops": dict(self.flops),
            "useful_flops": self.useful_flops,
            "bytes": dict(self.bytes),
            "arithmetic_intensity": self.intensity,
            "footprint_bytes": self.footprint_bytes,
            "footprints": dict(self.footprints),
            "fits": self.fits,
            "fits_at": dict(self.fits_at),
            "levels": dict(self.levels),
            "tile": dict(self.tile),
            "waves": self.waves,
            "occupancy": self.occupancy,
            "exchanges": [item.as_dict() for item in self.exchanges],
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True)
class Predictions:
    """Predictions of n problems of one kind on one device, as arrays of length n.

    `schedule` and `implementation` join the labels of all of them, where decode and prefill or
    batched and plain products stand side by side; `kinds` has each kind's schedule, implementation
    and assumptions, `kind` the kind of each problem. Tile dimensions that a schedule does not have
    are NaN.
    """

    device: Device
    algorithm: str
    schedule: str
    implementation: str
    problem: Problem
    seconds: np.ndarray
    low_seconds: np.ndarray
    high_seconds: np.ndarray
    limiter: np.ndarray
    runner_up: np.ndarray
    terms: Mapping[str, np.ndarray]
    flops: Mapping[str, np.ndarray]
    useful_flops: np.ndarray
    bytes: Mapping[str, np.ndarray]
    footprint_bytes: np.ndarray
    footprints: Mapping[str, np.ndarray]
    tile: Mapping[str, np.ndarray]
    waves: np.ndarray
    occupancy: np.ndarray
    assumptions: tuple[str, ...]
    dispatch: Mapping[str, np.ndarray]
    kind: np.ndarray
    kinds: tuple[_Kind, ...]
    exchanges: tuple[Exchanged, ...] = ()

    def __len__(self) -> int:
        return len(self.seconds)

    @cached_property
    def levels(self) -> Mapping[str, str]:
        """What the device calls the levels whose bytes are counted."""
        found = {level.name: level.short for level in self.device.levels()}
        return {name: found.get(name, name) for name in self.bytes}

    def of(self, problem: Problem, which: np.ndarray) -> Predictions:
        """Predictions of `problem`, each of which equals one of these, at `which`."""

        def taken(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: each[which] for name, each in value.items()}
            return value[which] if isinstance(value, np.ndarray) else value

        values = {item.name: taken(getattr(self, item.name)) for item in fields(self)}
        return replace(self, **{**values, "problem": problem})

    def one(self, i: int) -> Prediction:
        """The i-th prediction."""
        schedule, implementation, assumptions = self.kinds[self.kind[i]]

        def at(table: Mapping[str, np.ndarray]) -> dict[str, float]:
            return {name: float(values[i]) for name, values in table.items()}

        footprints = at(self.footprints)
        rooms = capacity.rooms(self.device, footprints)
        fits = {name: footprints[name] <= room for name, room in rooms.items()}
        return Prediction(
            device=self.device.slug,
            algorithm=self.algorithm,
            schedule=schedule,
            implementation=implementation,
            problem=describe(self.problem, i),
            seconds=float(self.seconds[i]),
            low_seconds=float(self.low_seconds[i]),
            high_seconds=float(self.high_seconds[i]),
            limiter=str(self.limiter[i]),
            runner_up=str(self.runner_up[i]),
            terms=at(self.terms),
            flops=at(self.flops),
            useful_flops=float(self.useful_flops[i]),
            bytes=at(self.bytes),
            footprint_bytes=float(self.footprint_bytes[i]),
            footprints=footprints,
            fits=all(fits.values()),
            fits_at=fits,
            levels=self.levels,
            tile={name: size for name, size in at(self.tile).items() if not math.isnan(size)},
            waves=float(self.waves[i]),
            occupancy=float(self.occupancy[i]),
            assumptions=assumptions,
            dispatch=at(self.dispatch),
            exchanges=tuple(item.at(i) for item in self.exchanges),
        )


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
    constants: Constants | None = None,
) -> Prediction:
    """Predict one problem on one device.

    `schedule` is one of its operator's (`perfmodel.operators`); `implementation` a class or the
    name of a library's kernel, which overrides it; `harness` how a run would be timed ("kernel" is
    device time alone); `includes` what else the timed region holds; `place` the level that an
    operand lies in, by role or tensor ({"kv": "host"}), where that is not the device's own memory;
    `reuse` what earlier kernels left of the inputs in the caches (`perfmodel.timing.reuse`), where
    that is not what the run leaves there;
    `mesh` the devices that axes are split over and the links between them ({"k": (2, "nvlink")});
    `stored` the axis that a tensor's shards lie along in memory, where that is not as they are used
    ({"C": "n"}; "whole": on every device).
    Raises `ProblemError` and `UnknownName` (one line each) for what has no meaning or is not there.
    """
    return predict_arrays(
        problem,
        device,
        schedule=schedule,
        implementation=implementation,
        harness=harness,
        includes=includes,
        place=place,
        reuse=reuse,
        mesh=mesh,
        stored=stored,
        constants=constants,
    ).one(0)


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
    constants: Constants | None = None,
) -> Predictions:
    """Predict arrays of problems of one kind (sizes may be arrays of one length n, the rest not).

    Equal problems are computed once. Memory beyond the results grows with the operator's `chunk`,
    not with n. Arguments and errors as for `predict`.
    """
    request = Request(
        schedule,
        implementation,
        harness,
        tuple(includes),
        place or {},
        reuse,
        mesh or {},
        stored or {},
    )
    values = constants or default()
    alike = distinct(problem) if reuse is None and not mesh else None
    if alike is None:
        return _predicted(problem, device, values, request)
    first, which = alike
    return _predicted(pick(problem, first), device, values, request).of(problem, which)


def _predicted(
    problem: Problem, device: Device, constants: Constants, request: Request
) -> Predictions:
    """Predictions of problems of one kind, piece by piece."""
    n = length(problem)
    made = _Columns(n)
    if n > 1:
        _keep_working_memory()
    operator, reuse = operator_of(problem), request.reuse
    for index in _pieces(operator, shard(problem, device, request), n):
        request = replace(request, reuse=reuse_at(reuse, index))
        part, timed = time_on(operator, pick(problem, index), device, constants, request)
        results = _results(operator, part, device, timed)
        for label, said, chosen in _kinds(part, device, timed, results):
            made.put(index[chosen], (label, timed.implementation, said))
        made.fill(index, results)
        put(made.exchanged, timed.exchanges, index, n)
    return made.predictions(problem, device)


def _keep_working_memory() -> None:
    """Let the memory that one piece has worked in serve the next one.

    glibc gives back to the system what is free beyond twice the largest block that was ever freed
    (mallopt(3), M_MMAP_THRESHOLD), and faulting the pages in again may take as long as a third of
    the arithmetic. A large block that nothing has touched costs next to nothing to take and to
    free, and raises that limit. Other allocators have nothing to gain or to lose by it.
    """
    np.empty(_WORKING_BYTES, dtype=np.uint8)


def _pieces(operator: Operator, problem: Problem, n: int) -> list[np.ndarray]:
    """Index sets of problems that one call can time, none longer than the operator's chunk."""
    alike = groups(operator.same_call(problem.values()) if n > 1 else None, n)
    size = operator.chunk
    return [part[i : i + size] for part in alike for i in range(0, len(part), size)]


def _kinds(
    problem: Problem, device: Device, timed: Timed, results: Mapping[str, np.ndarray]
) -> Iterator[tuple[str, tuple[str, ...], np.ndarray]]:
    """What to call the schedule, what was assumed, and the problems of a piece that this is for.

    A schedule that could cut an axis into slices and does not is named so. What needs more
    memory than the device has says so, since it could not run.
    """
    n = len(timed.seconds)
    slices = next((timed.tile[name] for name in ("slices", "splits") if name in timed.tile), None)
    cut = np.ones(n, dtype=bool) if slices is None else np.asarray(slices > 1)
    held = {name: results[f"footprints.{name}"] for name in ("hbm", *timed.estimate.beyond_bytes)}
    rooms = capacity.rooms(device, held)
    lacking = {name: held[name] > room for name, room in rooms.items()}
    beyond = np.any(list(lacking.values()), axis=0)
    uncut = _UNCUT.get(timed.schedule, timed.schedule)
    for label, sliced in ((timed.schedule, cut), (uncut, ~cut)):
        for large in (False, True):
            chosen = np.flatnonzero(sliced & (beyond == large))
            if chosen.size:
                said = _too_large(device, held, lacking, chosen) if large else ()
                yield label, (*timed.assumptions, *said), chosen


def _too_large(
    device: Device,
    held: Mapping[str, np.ndarray],
    lacking: Mapping[str, np.ndarray],
    chosen: np.ndarray,
) -> tuple[str, ...]:
    """For each level the least that those of the chosen problems need which it does not hold."""
    least = {
        name: float(held[name][chosen][short[chosen]].min())
        for name, short in lacking.items()
        if short[chosen].any()
    }
    return capacity.too_large(device, least)


class _Columns:
    """The arrays of n predictions, filled piece by piece: no piece outlives its turn."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.arrays: dict[str, np.ndarray] = {}
        self.kind = np.zeros(n, dtype=np.intp)
        self.kinds: list[_Kind] = []
        self.exchanged: list[Exchanged] = []

    def put(self, index: np.ndarray, kind: _Kind) -> None:
        """Say of which kind the problems at `index` are."""
        if kind not in self.kinds:
            self.kinds.append(kind)
        self.kind[index] = self.kinds.index(kind)

    def fill(self, index: np.ndarray, results: Mapping[str, np.ndarray]) -> None:
        """Set the problems at `index`; what other pieces do not have stays NaN."""
        for name, values in results.items():
            if len(index) == self.n and values.shape == (self.n,):  # all of them at once
                self.arrays[name] = values.astype(
                    values.dtype if values.dtype.kind == "U" else np.float64
                )
                continue
            if name not in self.arrays:
                kind = values.dtype if values.dtype.kind == "U" else np.float64
                empty = np.nan if kind == np.float64 else ""
                self.arrays[name] = np.full(self.n, empty, dtype=kind)
            self.arrays[name][index] = values

    def table(self, prefix: str) -> dict[str, np.ndarray]:
        """The arrays called prefix.name, by name."""
        return {
            name.removeprefix(prefix): values
            for name, values in self.arrays.items()
            if name.startswith(prefix)
        }

    def predictions(self, problem: Problem, device: Device) -> Predictions:
        """What has been filled, as predictions of `problem`."""
        kinds, arrays = self.kinds, self.arrays
        return Predictions(
            device=device,
            algorithm=problem.operator,
            schedule=" / ".join(dict.fromkeys(kind[0] for kind in kinds)),
            implementation=" / ".join(dict.fromkeys(kind[1] for kind in kinds)),
            problem=problem,
            seconds=arrays["seconds"],
            low_seconds=arrays["low_seconds"],
            high_seconds=arrays["high_seconds"],
            limiter=arrays["limiter"],
            runner_up=arrays["runner_up"],
            terms=self.table("terms."),
            flops=self.table("flops."),
            useful_flops=arrays["useful_flops"],
            bytes=self.table("bytes."),
            footprint_bytes=arrays["footprint_bytes"],
            footprints=self.table("footprints."),
            tile=self.table("tile."),
            waves=arrays["waves"],
            occupancy=arrays["occupancy"],
            assumptions=tuple(dict.fromkeys(said for kind in kinds for said in kind[2])),
            dispatch=self.table("dispatch."),
            kind=self.kind,
            kinds=tuple(kinds),
            exchanges=tuple(self.exchanged),
        )


def _results(
    operator: Operator, problem: Problem, device: Device, timed: Timed
) -> dict[str, np.ndarray]:
    """Everything that a prediction holds of the problems of one piece."""
    estimate = timed.estimate
    terms = {
        **estimate.terms, "launch": timed.launch_seconds, "included": timed.included_seconds,
    }  # fmt: skip
    floor = physical.floor_seconds(problem, device, estimate.matrix_flops)
    family = operator.family(problem)
    low, high = spread.interval(family, device, timed.seconds, floor, timed.unknowns)
    limiter, runner_up = rank(terms, timed.seconds - timed.exchange_seconds)
    footprints = {"hbm": estimate.memory_bytes, **estimate.beyond_bytes}
    tables = {
        "terms": terms, "bytes": estimate.bytes, "tile": timed.tile, "footprints": footprints,
        "dispatch": vars(timed.dispatch),
    }  # fmt: skip
    return {
        "seconds": timed.seconds,
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

    Power counts only where it binds, that is where the clocks are lowered until the power suffices:
    its term is then as long as all that runs beside each other together. Below that it costs
    nothing, however near it comes.
    """
    serial = sum((terms[name] for name in ("blocks", "gap", "launch", "included")), start=0.0)
    binds = terms["power"] >= 0.999 * (seconds - serial)
    ruling = {**terms, "power": np.where(binds, terms["power"], 0.0)}
    names = np.array(list(ruling))
    times = np.stack([np.broadcast_to(each, seconds.shape) for each in ruling.values()])
    first = np.argmax(times, axis=0)
    np.put_along_axis(times, first[None], -1.0, axis=0)
    return np.asarray(names[first]), np.asarray(names[np.argmax(times, axis=0)])
