"""The roofs of one device: compute ceilings and memory diagonals, each with where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device
from perfmodel.timing.roofline import attainable
from perfmodel.units import si

LEVELS = ("hbm", "llc", "l2", "shared")
"""Levels of memory that a kernel has an intensity at, from memory inwards."""

GENERIC = {"hbm": "memory", "llc": "LLC", "l2": "L2", "shared": "shared"}
"""What to call a level of several devices that have another name for it each."""


@dataclass(frozen=True)
class Roof:
    """A line that no kernel crosses: FLOP/s of a unit, or bytes/s of a memory level.

    `value` is drawn solid; `datasheet` is the published peak where `value` was measured.
    """

    name: str
    value: float
    unit: str
    status: str
    datasheet: float | None = None

    @property
    def highest(self) -> float:
        """The peak, whichever of the two it is."""
        return max(self.value, self.datasheet or 0.0)

    @property
    def label(self) -> str:
        """Name, value and unit, as it stands on the line."""
        peak = f" (peak {si(self.datasheet, self.unit)})" if self.datasheet else ""
        return f"{self.name} {si(self.value, self.unit)}{peak}"


@dataclass(frozen=True)
class Roofs:
    """Everything that bounds a kernel on one device."""

    device: str
    title: str
    matrix: tuple[Roof, ...]
    vector: tuple[Roof, ...]
    levels: Mapping[str, Roof]

    @property
    def top(self) -> Roof:
        """The highest compute ceiling."""
        return max((*self.matrix, *self.vector[:1]), key=lambda roof: roof.value)

    def ceiling(self, *, matrix: bool) -> float:
        """FLOP/s that a kernel on the matrix unit, or on the vector unit, can reach at most."""
        roofs = self.matrix if matrix and self.matrix else self.vector[:1]
        return max(roof.highest for roof in roofs)

    def above(self, kernel: Kernel, tolerance: float = 0.01) -> bool:
        """Whether a kernel lies above its roof at some level: a sign of a wrong number."""
        top = self.ceiling(matrix=kernel.matrix)
        bounds = [
            attainable(top, self.levels[level].highest, intensity)
            for level, intensity in kernel.intensity.items()
            if level in self.levels
        ]
        return any(kernel.flops_per_s > bound * (1 + tolerance) for bound in bounds)


@dataclass(frozen=True)
class Kernel:
    """One kernel on one device: its rate, and its FLOP per byte at each memory level."""

    label: str
    device: str
    flops_per_s: float
    intensity: Mapping[str, float]
    measured: bool = False
    matrix: bool = True


def roofs(device: Device, dtypes: Sequence[str], levels: Sequence[str] = LEVELS) -> Roofs:
    """The roofs of `device` for these matrix types and those of the memory levels that it has.

    Types whose rates are equal share a ceiling. Raises `ProblemError` for a type that the device
    has no rate for, and `UnknownName` for an unknown level.
    """
    for level in levels:
        if level not in LEVELS:
            raise UnknownName("memory level", level, LEVELS)
    found = {level: roof for level in levels if (roof := _level(device, level)) is not None}
    vector = _vector(device)
    matrix = _matrix(device, dtypes)
    if not matrix and not vector:
        raise ProblemError(f"{device.slug} has no compute rate to draw")
    if not found:
        raise ProblemError(f"{device.slug} has no bandwidth for {', '.join(levels)}")
    return Roofs(device.slug, device.name, matrix, vector, found)


def _matrix(device: Device, dtypes: Sequence[str]) -> tuple[Roof, ...]:
    """One ceiling per rate; fp32 and fp64 without a matrix rate are the vector unit's business.

    A single ceiling is drawn as measured beside its peak; several keep to their peaks, since lines
    that close cannot be told apart. Types of one peak run on the same lanes: the best that was
    measured of any of them is the ceiling of all, so that fp16 and bf16 of a chip have one roof.
    """
    by_rate: dict[float, list[str]] = {}
    for dtype in dict.fromkeys(dtypes):
        if dtype in device.matrix_types or dtype not in ("fp32", "fp64"):
            by_rate.setdefault(device.matrix_flops(dtype), []).append(dtype)
    measured = device.measured.matrix if device.measured else {}
    best = {str(name): rate.si for name, rate in measured.items()}
    peaks = {str(name): fact.si for name, fact in device.compute.matrix.items()}
    found = []
    for rate, names in by_rate.items():
        fact = next(f for name, f in device.compute.matrix.items() if str(name) == names[0])
        alike = [name for name in best if name in peaks and peaks[name] == rate]
        reached = max((best[name] for name in alike), default=None)
        unit = "OP/s" if all(name.startswith("int") for name in names) else "FLOP/s"
        label = f"{'/'.join(names)} matrix"
        if reached and len(by_rate) == 1:
            found.append(Roof(label, reached, unit, "measured", rate))
        else:
            found.append(Roof(label, rate, unit, fact.status))
    return tuple(found)


def _vector(device: Device) -> tuple[Roof, ...]:
    """The fp32 vector unit, and the special-function unit (one exponential is one operation)."""
    found = []
    rates = {str(name): fact for name, fact in device.compute.vector.items()}
    if "fp32" in rates:
        found.append(Roof("fp32 vector", rates["fp32"].si, "FLOP/s", rates["fp32"].status))
    special = device.compute.special_function
    if special:
        rate = special.per_clock_per_unit
        whole = rate.si * device.units * device.boost_hz
        found.append(Roof("special functions", whole, "exp/s", rate.status))
    return tuple(found)


def _level(device: Device, name: str) -> Roof | None:
    """The bandwidth of a level: measured where it was, with the datasheet's beside it.

    Of the memory next to a unit the documented width, which loops of loads alone come near.
    """
    level = device.level(name)
    if level is None:
        return None
    label = GENERIC["shared"] if level.scope == "unit" else level.label
    if level.measured_bytes_per_s is not None and level.scope != "unit":
        return Roof(label, level.measured_bytes_per_s, "B/s", "measured", level.bytes_per_s)
    if level.bytes_per_s is None:
        return None
    return Roof(label, level.bytes_per_s, "B/s", level.status)
