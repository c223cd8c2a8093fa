"""Predictions: of one case as plain numbers, of many as arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

from perfmodel.algorithms import Problem
from perfmodel.algorithms.problem import describe
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


@dataclass(frozen=True)
class Prediction:
    """One case on one device. Times in seconds, traffic in bytes, intensity in FLOP per byte.

    Where the problem is split over devices, all counts are those of one device.
    """

    device: str
    """Slug of the device."""
    algorithm: str
    """The operator: attention, gemm, softmax, ..."""
    schedule: str
    """The schedule by its name in `perfmodel list schedules`."""
    implementation: str
    """The library kernel that is assumed to run."""
    problem: Mapping[str, Any]
    """Sizes and types of the problem."""
    seconds: float
    """Predicted time of a call."""
    low_seconds: float
    """Lower end of the 80 % range."""
    high_seconds: float
    """Upper end of the 80 % range."""
    limiter: str
    """The resource with the largest term; power only where it binds (`rank`)."""
    runner_up: str
    """The resource with the next largest term."""
    terms: Mapping[str, float]
    """Seconds that each resource needs alone. They overlap, so their sum is not the total."""
    flops: Mapping[str, float]
    """Executed operations, by unit: matrix, vector, special. A multiply-add is two on the matrix
    unit."""
    useful_flops: float
    """Operations that the mask leaves, by the papers' convention."""
    bytes: Mapping[str, float]
    """Bytes that cross into each level: shared, l2, hbm, links."""
    footprint_bytes: float
    """Bytes of all tensors in the device's own memory."""
    footprints: Mapping[str, float]
    """Bytes of all tensors in each level that has some."""
    fits: bool
    """Whether the tensors fit in every level with known capacity."""
    fits_at: Mapping[str, bool]
    """The same for each level with known capacity."""
    levels: Mapping[str, str]
    """Names of the levels on this device: HBM3, GDDR6X, L3."""
    tile: Mapping[str, float]
    """Extents of the chosen tile, by name."""
    waves: float
    """Waves of thread blocks on the whole device."""
    occupancy: float
    """Resident thread blocks a unit."""
    assumptions: tuple[str, ...]
    """Assumptions where nothing is stated, a sentence each."""
    dispatch: Mapping[str, float]
    """Host seconds (`perfmodel.timing.floors.Dispatch`)."""
    known: Known
    """How much is known of device, implementation and harness; the range depends on it."""
    exchanges: tuple[Exchanged, ...] = ()
    """Exchanges with other devices, where the problem is split over several."""

    @property
    def work(self) -> float:
        """Operations that the rate and the intensities count (`counted_work`)."""
        return counted_work(self.useful_flops, self.flops)

    @property
    def intensity(self) -> dict[str, float]:
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
            "known": self.known.as_dict(),
            "assumptions": list(self.assumptions),
        }


@dataclass(frozen=True)
class Predictions:
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
    seconds: np.ndarray
    """Predicted time of a call."""
    low_seconds: np.ndarray
    """Lower end of the 80 % range."""
    high_seconds: np.ndarray
    """Upper end of the 80 % range."""
    limiter: np.ndarray
    """The resource with the largest term; power only where it binds (`rank`)."""
    runner_up: np.ndarray
    """The resource with the next largest term."""
    terms: Mapping[str, np.ndarray]
    """Seconds that each resource needs alone. They overlap, so their sum is not the total."""
    flops: Mapping[str, np.ndarray]
    """Executed operations, by unit: matrix, vector, special. A multiply-add is two on the matrix
    unit."""
    useful_flops: np.ndarray
    """Operations that the mask leaves, by the papers' convention."""
    bytes: Mapping[str, np.ndarray]
    """Bytes that cross into each level: shared, l2, hbm, links."""
    footprint_bytes: np.ndarray
    """Bytes of all tensors in the device's own memory."""
    footprints: Mapping[str, np.ndarray]
    """Bytes of all tensors in each level that has some."""
    tile: Mapping[str, np.ndarray]
    """Extents of the chosen tiles; NaN where a schedule has no such dimension."""
    waves: np.ndarray
    """Waves of thread blocks on the whole device."""
    occupancy: np.ndarray
    """Resident thread blocks a unit."""
    assumptions: tuple[str, ...]
    """Assumptions on any of the problems where nothing is stated."""
    dispatch: Mapping[str, np.ndarray]
    """Host seconds (`perfmodel.timing.floors.Dispatch`)."""
    kind: np.ndarray
    """Index into `kinds` for each problem."""
    kinds: tuple[Kind, ...]
    """Schedule, implementation, assumptions and knowledge of each kind."""
    exchanges: tuple[Exchanged, ...] = ()
    """Exchanges with other devices, where the problem is split over several."""

    def __len__(self) -> int:
        return len(self.seconds)

    @cached_property
    def levels(self) -> Mapping[str, str]:
        """Names on this device of the levels whose bytes are counted."""
        names = {level.name: level.short for level in self.device.levels()}
        return {name: names.get(name, name) for name in self.bytes}

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
                return {name: each[which] for name, each in value.items()}
            return value[which] if isinstance(value, np.ndarray) else value

        values = {item.name: select(getattr(self, item.name)) for item in fields(self)}
        return replace(self, **{**values, "problem": problem})

    def one(self, i: int) -> Prediction:
        """The i-th prediction."""
        schedule, implementation, assumptions, basis = self.kinds[self.kind[i]]

        def row(table: Mapping[str, np.ndarray]) -> dict[str, float]:
            return {name: float(values[i]) for name, values in table.items()}

        footprints = row(self.footprints)
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
            terms=row(self.terms),
            flops=row(self.flops),
            useful_flops=float(self.useful_flops[i]),
            bytes=row(self.bytes),
            footprint_bytes=float(self.footprint_bytes[i]),
            footprints=footprints,
            fits=all(fits.values()),
            fits_at=fits,
            levels=self.levels,
            tile={name: size for name, size in row(self.tile).items() if not math.isnan(size)},
            waves=float(self.waves[i]),
            occupancy=float(self.occupancy[i]),
            assumptions=assumptions,
            dispatch=row(self.dispatch),
            known=basis,
            exchanges=tuple(item.at(i) for item in self.exchanges),
        )


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
        """Set the results of the problems at `index`; results that other pieces lack stay NaN
        there."""
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
        """The filled arrays as predictions of `problem`."""
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
