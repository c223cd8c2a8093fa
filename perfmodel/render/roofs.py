"""The roofs of one device: compute ceilings and memory diagonals, each with its origin."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device
from perfmodel.hardware.levels import together
from perfmodel.prediction import Prediction
from perfmodel.timing.roofline import attainable

LEVELS = ("hbm", "llc", "l2", "shared")
"""Levels of a device's own memory, from memory inwards."""
LINKS = ("peer", "network", "host")
"""Levels outside the device, drawn if a kernel crosses them."""

GENERIC = {"hbm": "memory", "llc": "LLC", "l2": "L2", "shared": "shared memory"}
"""Name of a level if several devices have different names for it."""


@dataclass(frozen=True)
class Roof:
    """An upper bound: FLOP/s of a unit, or bytes/s of a memory level."""

    name: str
    """Name on the line: fp16 matrix, HBM3."""
    value: float
    """The measured value, else the published peak."""
    unit: str
    """FLOP/s or B/s."""
    status: str
    """Origin of `value`, as in a spec."""
    datasheet: float | None = None
    """The published peak, if `value` was measured."""
    types: tuple[str, ...] = ()
    """For a matrix unit, the types that run at this rate."""

    @property
    def highest(self) -> float:
        """The higher of measured value and published peak."""
        return max(self.value, self.datasheet or 0.0)


@dataclass(frozen=True)
class Kernel:
    """One kernel on one device: a roofline point for each memory level.

    Kernels of one `label` with different `at` are joined into a trajectory.
    """

    label: str
    """Label that distinguishes it from other kernels: the schedule, the type."""
    device: str
    """Slug of the device."""
    flops_per_s: float
    """Its rate."""
    intensity: Mapping[str, float]
    """FLOP per byte at each memory level."""
    measured: bool = False
    """Whether it was measured; otherwise it is predicted."""
    matrix: bool = True
    """Whether the matrix unit does its work; otherwise the vector unit does."""
    dtype: str = ""
    """Type of the matrix unit's operands; empty: the highest drawn ceiling applies."""
    at: str = ""
    """Its size in a trajectory: "4096"."""
    of: str = ""
    """Name of that size: "seq"."""
    by: str = ""
    """For a measured kernel, its implementation."""
    low_flops_per_s: float | None = None
    """The lower end of the range of its rate."""
    high_flops_per_s: float | None = None
    """The upper end of the range of its rate."""
    flops_per_special: float | None = None
    """Operations for each special function; None: no special functions."""

    @classmethod
    def of_prediction(cls, prediction: Prediction, label: str, **fields: Any) -> Kernel:
        """The mark of a prediction, with its range."""
        special = prediction.flops["special"]
        return cls(
            label,
            prediction.device,
            prediction.flops_per_second,
            prediction.intensity,
            matrix=prediction.flops["matrix"] > 0,
            low_flops_per_s=prediction.work / prediction.high_seconds,
            high_flops_per_s=prediction.work / prediction.low_seconds,
            flops_per_special=prediction.work / special if special else None,
            **fields,
        )

    def ran(self, flops_per_s: float, by: str) -> Kernel:
        """The same kernel with the measured rate of an implementation."""
        return replace(
            self,
            flops_per_s=flops_per_s,
            measured=True,
            by=by,
            low_flops_per_s=None,
            high_flops_per_s=None,
        )

    @property
    def name(self) -> str:
        """Label and size together."""
        size = f"{self.of} = {self.at}" if self.of else self.at
        return ", ".join(part for part in (self.label, size) if part)


@dataclass(frozen=True)
class Roofs:
    """All bounds of kernels on one device."""

    device: str
    """Slug of the device."""
    title: str
    """Its full name."""
    matrix: tuple[Roof, ...]
    """Ceilings of the matrix unit."""
    vector: tuple[Roof, ...]
    """Ceilings of the vector unit."""
    levels: Mapping[str, Roof]
    """Bandwidth of each memory level."""
    special_per_s: float | None = None
    """Special functions a second, over all units."""
    missing: tuple[str, ...] = field(default=())
    """Levels of the spec without a bandwidth."""

    @property
    def compute(self) -> tuple[Roof, ...]:
        """All ceilings, the matrix unit's first."""
        return (*self.matrix, *self.vector)

    @property
    def top(self) -> Roof:
        """The highest compute ceiling."""
        return max(self.compute, key=lambda roof: roof.value)

    def ceiling(self, kernel: Kernel) -> Roof:
        """The compute ceiling of a kernel: its type's, else the highest of its unit."""
        if kernel.matrix and self.matrix:
            candidates = [roof for roof in self.matrix if kernel.dtype in roof.types]
            return max(candidates or self.matrix, key=lambda roof: roof.highest)
        return max(self.vector or self.matrix, key=lambda roof: roof.highest)

    def bound(self, kernel: Kernel) -> tuple[Roof, float]:
        """The lowest peak for a kernel at its intensities, and the FLOP/s that it allows."""
        top = self.ceiling(kernel)
        bounds = [(top, top.highest)]
        for level, roof in self.levels.items():
            intensity = kernel.intensity.get(level, 0.0)
            if 0 < intensity < math.inf:
                bounds.append((roof, float(attainable(math.inf, roof.highest, intensity))))
        return min(bounds, key=lambda item: item[1])

    def share(self, kernel: Kernel) -> float:
        """A kernel's rate over the rate that the lowest peak allows."""
        return kernel.flops_per_s / self.bound(kernel)[1]

    def above(self, kernel: Kernel, tolerance: float = 0.01) -> bool:
        """Whether a kernel is above its roof at some level, which means a wrong number."""
        return self.share(kernel) > 1 + tolerance

    def special(self, kernels: Sequence[Kernel]) -> Roof | None:
        """The special-function unit as a ceiling in FLOP/s, if one ceiling suits all `kernels`.

        A kernel of F operations and E special functions runs at most at R · F / E on a unit with R
        special functions a second. None if kernels differ in F / E by more than a tenth, or if no
        kernel comes near the ceiling.
        """
        ratios = [k.flops_per_special for k in kernels if k.flops_per_special]
        if not self.special_per_s or len(ratios) < len(kernels) or not ratios:
            return None
        value = self.special_per_s * min(ratios)
        near = value <= 3 * max(roof.highest for roof in self.compute)
        if not near or max(ratios) > 1.1 * min(ratios):
            return None
        return Roof("special functions at", value, "FLOP/s", "special")


def level_names(devices: Iterable[Roofs]) -> dict[str, str]:
    """A name for each level that is drawn of some device."""
    own = ((level, roof.name) for device in devices for level, roof in device.levels.items())
    return together(own, GENERIC)


def roofs(device: Device, dtypes: Sequence[str], levels: Sequence[str] = LEVELS) -> Roofs:
    """The roofs of `device` for these matrix types, and for those of the memory levels that it has.

    Types with equal rates share a ceiling. Raises `ProblemError` for a type without a rate on the
    device, and `UnknownName` for an unknown level.
    """
    names = (*LEVELS, *LINKS)
    for level in levels:
        if level not in names:
            raise UnknownName("memory level", level, names)
    specs = {level: spec for level in levels if (spec := device.level(level)) is not None}
    bandwidths = {level: roof for level in specs if (roof := _level(device, level)) is not None}
    vector, matrix = _vector(device), _matrix(device, dtypes)
    if not matrix and not vector:
        raise ProblemError(f"{device.slug} has no compute rate to draw")
    if not bandwidths:
        raise ProblemError(f"{device.slug} has no bandwidth for {', '.join(levels)}")
    special = device.special_per_clock
    return Roofs(
        device.slug,
        device.name,
        matrix,
        vector,
        bandwidths,
        None if special is None else special * device.units * device.boost_hz,
        tuple(specs[level].short for level in specs if level not in bandwidths),
    )


def _matrix(device: Device, dtypes: Sequence[str]) -> tuple[Roof, ...]:
    """One ceiling for each rate; fp32 and fp64 without a matrix rate belong to the vector unit.

    Types with one peak run on the same lanes. Their ceiling is the best measured value of any of
    them, so fp16 and bf16 of a chip share one roof.
    """
    by_rate: dict[float, list[str]] = {}
    for dtype in dict.fromkeys(dtypes):
        if dtype in device.matrix_types or dtype not in ("fp32", "fp64"):
            by_rate.setdefault(device.matrix_flops(dtype), []).append(dtype)
    measured = device.measured.matrix if device.measured else {}
    best = {str(name): rate.si for name, rate in measured.items()}
    peaks = {str(name): fact.si for name, fact in device.compute.matrix.items()}
    ceilings = []
    for rate, names in by_rate.items():
        fact = next(f for name, f in device.compute.matrix.items() if str(name) == names[0])
        types = [name for name in best if name in peaks and peaks[name] == rate]
        maximum = max((best[name] for name in types), default=None)
        unit = "OP/s" if all(name.startswith("int") for name in names) else "FLOP/s"
        roof = Roof(f"{'/'.join(names)} matrix", rate, unit, fact.status, types=tuple(names))
        if maximum:
            roof = replace(roof, value=maximum, status="measured", datasheet=rate)
        ceilings.append(roof)
    return tuple(ceilings)


def _vector(device: Device) -> tuple[Roof, ...]:
    """The fp32 vector unit, if the spec has it."""
    rates = {str(name): fact for name, fact in device.compute.vector.items()}
    fact = rates.get("fp32")
    return () if fact is None else (Roof("fp32 vector", fact.si, "FLOP/s", fact.status),)


def _level(device: Device, name: str) -> Roof | None:
    """The bandwidth of a level: the measured value if any, with the published one beside it.

    For the memory next to a unit it is the documented width, which only loops of pure loads come
    near.
    """
    level = device.level(name)
    if level is None:
        return None
    label = level.label if level.scope == "link" else level.short
    if level.measured_bytes_per_s is not None and level.scope != "unit":
        return Roof(label, level.measured_bytes_per_s, "B/s", "measured", level.bytes_per_s)
    if level.bytes_per_s is None:
        return None
    return Roof(label, level.bytes_per_s, "B/s", level.status)
