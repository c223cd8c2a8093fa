"""Predictions: of one case as plain numbers, of many as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields, replace
from functools import cache, reduce
from operator import and_
from typing import Annotated, Any, Generic, TypeVar

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import adjoining, describe
from perfmodel.columns import Column, Result, declared
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.operators.operator import Exchanged
from perfmodel.timing import capacity
from perfmodel.timing.knowledge import Known

Kind = tuple[str, str, tuple[str, ...], Known]
"""Schedule, implementation, assumptions and knowledge that all problems timed in one call share."""


_SHOWN = 20  # predictions that a notebook shows of many


def counted_work(useful_flops: float | None, flops: Mapping[str, float]) -> float:
    """Operations that rates and intensities count: those that the mask leaves, by the papers'
    convention; without one, the executed ones of the matrix unit, else of the other units."""
    rest: float = (flops.get("vector") or 0.0) + (flops.get("special") or 0.0)
    return useful_flops or flops.get("matrix") or rest


Number = TypeVar("Number")
Name = TypeVar("Name")
Truth = TypeVar("Truth")


@dataclass(frozen=True, kw_only=True)
class Numbers(Generic[Number, Name, Truth]):
    """What is predicted: plain numbers of one problem, arrays of many.

    Each field is a member of the JSON form, a column of CSV and, but for mappings, of the files of
    sweeps, in this order.
    """

    seconds: Annotated[Number, Column(key="time_us", scale=1e6)]
    """Predicted time of a call."""
    low_seconds: Annotated[Number, Column(key="low_us", scale=1e6)]
    """Lower end of the 80 % range."""
    high_seconds: Annotated[Number, Column(key="high_us", scale=1e6)]
    """Upper end of the 80 % range."""
    limiter: Annotated[Name, Column()]
    """The resource with the largest term; power only where it binds (`rank`)."""
    runner_up: Annotated[Name, Column()]
    """The resource with the next largest term."""
    terms: Annotated[Mapping[str, Number], Column(key="terms_us", scale=1e6)]
    """Seconds that each resource needs alone. They overlap, so their sum is not the total."""
    flops: Annotated[Mapping[str, Number], Column(stored=("matrix", "vector", "special"))]
    """Executed operations, by unit: matrix, vector, special. A multiply-add is two on the matrix
    unit."""
    useful_flops: Annotated[Number, Column()]
    """Operations that the mask leaves, by the papers' convention."""
    bytes: Annotated[Mapping[str, Number], Column(stored=("hbm", "llc", "l2", "shared"))]
    """Bytes that cross into each level: shared, l2, hbm, links."""
    footprint_bytes: Annotated[Number, Column()]
    """Bytes of all tensors in the device's own memory."""
    footprints: Annotated[Mapping[str, Number], Column()]
    """Bytes of all tensors in each level that has some."""
    fits: Annotated[Truth, Column()]
    """Whether the tensors fit in every level with known capacity."""
    fits_at: Annotated[Mapping[str, Truth], Column()]
    """The same for each level with known capacity."""
    levels: Annotated[Mapping[str, str], Column()]
    """Names on this device of the levels whose bytes are counted: HBM3, GDDR6X, L3."""
    tile: Annotated[Mapping[str, Number], Column()]
    """Extents of the chosen tile, by name; of many problems NaN where a schedule has no such
    dimension."""
    waves: Annotated[Number, Column()]
    """Waves of thread blocks on the whole device."""
    occupancy: Annotated[Number, Column()]
    """Resident thread blocks a unit."""
    dispatch: Mapping[str, Number]
    """Host seconds (`perfmodel.timing.floors.Dispatch`)."""


_NUMBERS = tuple(item.name for item in fields(Numbers))


@cache
def columns() -> Mapping[str, tuple[str, str, float]]:
    """The columns of a flat table: field, member of a mapping (else ""), and scale of each."""
    return {
        "_".join(filter(None, (column.key or name, member))): (name, member, column.scale)
        for name, kind, column in declared(Numbers)
        for member in (("",) if kind is Number else column.stored)
    }


@dataclass(frozen=True, kw_only=True)
class Prediction(Result, Numbers[float, str, bool]):
    """One case on one device. Times in seconds, traffic in bytes, intensity in FLOP per byte.

    Where the problem is split over devices, all counts are those of one device.
    """

    device: Annotated[str, Column()]
    """Slug of the device."""
    algorithm: Annotated[str, Column()]
    """The operator: attention, gemm, softmax, ..."""
    schedule: Annotated[str, Column()]
    """The schedule by its name in `perfmodel list schedules`."""
    implementation: Annotated[str, Column()]
    """The library kernel that is assumed to run."""
    problem: Annotated[Mapping[str, Any], Column()]
    """Sizes and types of the problem."""
    assumptions: Annotated[tuple[str, ...], Column(place=2)]
    """Assumptions where nothing is stated, a sentence each."""
    known: Annotated[Known, Column(place=2)]
    """How much is known of device, implementation and harness; the range depends on it."""
    exchanges: Annotated[tuple[Exchanged, ...], Column(place=2)] = ()
    """Exchanges with other devices, where the problem is split over several."""

    @property
    def work(self) -> float:
        """Operations that the rate and the intensities count (`counted_work`)."""
        return counted_work(self.useful_flops, self.flops)

    @property
    def intensity(
        self,
    ) -> Annotated[dict[str, float], Column(key="arithmetic_intensity", finite=False, place=1)]:
        """FLOP per byte at each level: `work` over the bytes that cross it."""
        return {
            level: self.work / moved if moved else float("inf")
            for level, moved in self.bytes.items()
        }

    @property
    def flops_per_second(self) -> float:
        """`work` per second: the rate in tables, and the kernel's height in a roofline plot."""
        return self.work / self.seconds

    def _repr_html_(self) -> str:
        """What a notebook shows: time, range, limiter and terms."""
        from perfmodel.hypertext import table
        from perfmodel.units import seconds

        labels = self.levels
        span = f"{seconds(self.low_seconds)} to {seconds(self.high_seconds)}"
        rows = [
            ("time", seconds(self.seconds)),
            ("range", span),
            ("limiter", labels.get(self.limiter, self.limiter)),
            ("schedule", f"{self.schedule} {self.implementation}".strip()),
            *(
                (f"{labels.get(name, name)} time", seconds(value))
                for name, value in sorted(self.terms.items(), key=lambda item: -item[1])
                if value > 0
            ),
        ]
        sizes = " ".join(f"{name}={value}" for name, value in self.problem.items())
        title = f"{self.algorithm} on {self.device}: {sizes}"
        return table(title, (), rows, "; ".join(self.assumptions))


@dataclass(frozen=True, kw_only=True)
class Predictions(Numbers[np.ndarray, np.ndarray, np.ndarray]):
    """Predictions of n problems of one kind on one device, as arrays of length n.

    Problems of several `kinds` may be mixed: decode and prefill, batched and plain products.
    """

    device: Device
    """The device."""
    algorithm: str
    """The operator: attention, gemm, softmax, ..."""
    schedule: str
    """Labels of all schedules that occur, joined."""
    implementation: str
    """Labels of all kernels that occur, joined."""
    problem: Problem
    """The problems: sizes are arrays of length n or one number."""
    assumptions: tuple[str, ...]
    """Assumptions on any of the problems where nothing is stated."""
    kind: np.ndarray
    """Index into `kinds` for each problem."""
    kinds: tuple[Kind, ...]
    """Schedule, implementation, assumptions and knowledge of each kind."""
    exchanges: tuple[Exchanged, ...] = ()
    """Exchanges with other devices, where the problem is split over several."""

    def __len__(self) -> int:
        return len(self.seconds)

    def _repr_html_(self) -> str:
        """What a notebook shows: a line a problem, the first twenty."""
        from perfmodel.hypertext import table
        from perfmodel.units import seconds

        sample = [self.one(i) for i in range(min(len(self), _SHOWN))]
        columns = [
            name
            for name in (sample[0].problem if sample else {})
            if len({str(one.problem.get(name)) for one in sample}) > 1
        ]
        rows = [
            (
                one.schedule,
                *(str(one.problem.get(name)) for name in columns),
                seconds(one.seconds),
                f"{seconds(one.low_seconds)} to {seconds(one.high_seconds)}",
                one.levels.get(one.limiter, one.limiter),
            )
            for one in sample
        ]
        rest = len(self) - len(sample)
        note = f"and {rest:,} more" if rest else ""
        header = ("schedule", *columns, "time", "range", "limiter")
        return table(f"{self.algorithm} on {self.device.slug}", header, rows, note)

    def of(self, problem: Problem, which: np.ndarray) -> Predictions:
        """Predictions of `problem`, the i-th of which equals the `which[i]`-th of these."""

        def select(value: Any) -> Any:
            if isinstance(value, Mapping):
                return {name: select(each) for name, each in value.items()}
            return value[which] if isinstance(value, np.ndarray) else value

        values = {item.name: select(getattr(self, item.name)) for item in fields(self)}
        return replace(self, **{**values, "problem": problem})

    def one(self, i: int) -> Prediction:
        """The i-th prediction."""
        numbers = {name: _at(getattr(self, name), i) for name in _NUMBERS}
        numbers["tile"] = {name: n for name, n in numbers["tile"].items() if not math.isnan(n)}
        exchanges = tuple(item.at(i) for item in self.exchanges)
        kind = self.kinds[self.kind[i]]
        return prediction(numbers, kind, self.problem, self.device, i, exchanges)


def prediction(
    numbers: Mapping[str, Any],
    kind: Kind,
    problem: Problem,
    device: Device,
    i: int = 0,
    exchanges: tuple[Exchanged, ...] = (),
) -> Prediction:
    """The prediction of the i-th problem from its numbers."""
    schedule, implementation, assumptions, basis = kind
    return Prediction(
        **numbers,
        device=device.slug,
        algorithm=problem.operator,
        schedule=schedule,
        implementation=implementation,
        problem=describe(problem, i),
        assumptions=assumptions,
        known=basis,
        exchanges=exchanges,
    )


def numbers_of(results: Mapping[str, Any], device: Device) -> dict[str, Any]:
    """The fields of `Numbers` from results called field.member: arrays, or plain numbers."""
    numbers: dict[str, Any] = {name: {} for name in _NUMBERS}
    for name, value in results.items():
        field, _, member = name.partition(".")
        if member:
            numbers[field][member] = value
        else:
            numbers[field] = value
    footprints = numbers["footprints"]
    fits = {
        name: footprints[name] <= room for name, room in capacity.rooms(device, footprints).items()
    }
    names = device.level_names
    levels = {name: names.get(name, name) for name in numbers["bytes"]}
    return numbers | {"fits": reduce(and_, fits.values()), "fits_at": fits, "levels": levels}


def _at(value: Any, i: int) -> Any:
    """The i-th number of an array, or of each of a mapping."""
    if isinstance(value, dict):
        return {name: _at(each, i) for name, each in value.items()}
    return value.item(i) if isinstance(value, np.ndarray) else value


class Filled:
    """The arrays of n predictions, filled piece by piece; pieces are not kept."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.arrays: dict[str, np.ndarray] = {}
        self.kind = np.zeros(n, dtype=np.intp)
        self.kinds: list[Kind] = []
        self.exchanged: list[Exchanged] = []

    def put(self, index: np.ndarray, kind: Kind) -> None:
        """Set the kind of the problems at `index`."""
        if kind not in self.kinds:
            self.kinds.append(kind)
        self.kind[index] = self.kinds.index(kind)

    def fill(self, index: np.ndarray, results: Mapping[str, np.ndarray]) -> None:
        """Set the results of the problems at `index`, in rising order; results that other pieces
        lack stay NaN there."""
        place = adjoining(index)
        for name, values in results.items():
            kind = values.dtype if values.dtype.kind == "U" else np.float64
            if len(index) == self.n and values.shape == (self.n,):  # all of them at once
                self.arrays[name] = values.astype(kind, copy=False)
                continue
            if name not in self.arrays:
                empty = np.nan if kind == np.float64 else ""
                self.arrays[name] = np.full(self.n, empty, dtype=kind)
            self.arrays[name][place] = values

    def predictions(self, problem: Problem, device: Device) -> Predictions:
        """The filled arrays as predictions of `problem`."""
        kinds = self.kinds
        return Predictions(
            **numbers_of(self.arrays, device),
            device=device,
            algorithm=problem.operator,
            schedule=" / ".join(dict.fromkeys(kind[0] for kind in kinds)),
            implementation=" / ".join(dict.fromkeys(kind[1] for kind in kinds)),
            problem=problem,
            assumptions=tuple(dict.fromkeys(line for kind in kinds for line in kind[2])),
            kind=self.kind,
            kinds=tuple(kinds),
            exchanges=tuple(self.exchanged),
        )
