"""Bandwidth and latency of each memory level from the readings, without implausible ones.

Bandwidth rises and latency falls towards the core. A level that breaks this order (its reading was
disturbed, or the system reports a wrong cache size) is left out and reported; the others are kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from perfmodel.measured.microbench import Readings
from perfmodel.units import si

_BEYOND = 8.0  # times the last cache: larger working sets show main memory
_LEVEL_LOW, _LEVEL_HIGH = (
    2.0,
    0.6,
)  # a level shows from 2 × the inner to 0.6 × its size
_FASTER = 1.01  # times the next outer level's: a level must be faster by this
_ONE_CORE = ("latency", "gather")
# First-level caches of GPUs, which the driver does not report: up to 256 KiB a unit on Hopper
# (Hopper Tuning Guide, 1.4.2.1), and no more on any other.
_UNIT_CACHE_BYTES = 256.0 * 1024
_LEAST_VECTOR = 0.5  # of the measured product's rate in the same type, which uses the same unit
_MATRIX_UNITS = ("apple",)  # vendors whose library runs fp32 products on a separate unit

MEMORY = "main memory"


def used(readings: Readings, curve: str, level: str | None) -> list[tuple[float, float]]:
    """The points (working set, value) of a curve that show a cache (its name) or memory (None).

    For bandwidth the size of a cache is all its instances together, for latency one, since one core
    runs.
    """
    if curve not in readings.curves:
        return []
    points = readings.curves[curve].points
    sizes = {name: (each if curve in _ONE_CORE else all_) for name, all_, each in readings.levels}
    names = list(sizes)
    if level is None:
        low = 0.99 * _BEYOND * max(sizes.values(), default=0.0)
        return [point for point in points if point[0] >= low] or list(points[-1:])
    place, on_unit = names.index(level), readings.kind == "cuda" and curve in _ONE_CORE
    inner = sizes[names[place - 1]] if place else _UNIT_CACHE_BYTES if on_unit else 0.0
    low, high = _LEVEL_LOW * inner, _LEVEL_HIGH * sizes[level]
    return [point for point in points if low <= point[0] <= high]


def plateau(readings: Readings, curve: str, level: str | None) -> float | None:
    """The value of a curve for a cache level (its name), or for main memory (None).

    It is the median over the level's points, and the minimum for the latency of a cache: other
    users of a shared cache can only increase it.
    """
    values = [value for _, value in used(readings, curve, level)]
    if not values:
        return None
    if curve in _ONE_CORE:
        return min(values) if level is not None else median(values)
    # Small working sets on a GPU are dominated by launch latency, so the best value is taken.
    return max(values) if readings.kind == "cuda" else median(values)


def disturbed(readings: Readings, curve: str, level: str | None) -> bool:
    """Whether other programs disturbed more than half of the points of a level."""
    points = used(readings, curve, level)
    hit = sum(size in readings.curves[curve].disturbed for size, _ in points)
    return 2 * hit > len(points)


def streams(readings: Readings) -> dict[str, float]:
    """Bandwidth of main memory by stream."""
    rates = {name: plateau(readings, name, None) for name in ("read", "copy", "triad")}
    return {name: rate for name, rate in rates.items() if rate is not None}


@dataclass(frozen=True)
class Judged:
    """The plausible readings."""

    bandwidth: dict[str, float] = field(default_factory=dict)
    """Bytes a second of each level."""
    latency: dict[str | None, float] = field(default_factory=dict)
    """Seconds of each level; None is main memory."""
    rates: dict[str, float] = field(default_factory=dict)
    """Rates by name."""
    said: tuple[str, ...] = ()
    """A line for each reading that was left out."""


def judged(readings: Readings, memory_bytes_per_s: float) -> Judged:
    """The plausible ones of `readings`; caches have to be faster than `memory_bytes_per_s`."""
    bandwidth, bandwidth_notes = _bandwidths(readings, memory_bytes_per_s)
    latency, latency_notes = _latencies(readings)
    rates, rate_notes = _rates(readings)
    return Judged(bandwidth, latency, rates, (*bandwidth_notes, *latency_notes, *rate_notes))


def _bandwidths(readings: Readings, memory: float) -> tuple[dict[str, float], list[str]]:
    """Bandwidth of the caches, from main memory inwards; a level that is no faster is left out."""
    rates: dict[str, float] = {}
    notes = []
    outer, slower = MEMORY, memory
    for level, _, _ in reversed(readings.levels):
        rate = plateau(readings, "read", level)
        if rate is None:
            continue
        if rate > _FASTER * slower:
            rates[level] = slower = rate
            outer = level
        else:
            notes.append(
                f"bandwidth of {level} left out: {si(rate, 'B/s')} is not above "
                f"{si(slower, 'B/s')} of {outer}"
            )
    return rates, notes


def _latencies(readings: Readings) -> tuple[dict[str | None, float], list[str]]:
    """Latency by level, from main memory inwards; a level that is no quicker is left out."""
    latencies: dict[str | None, float] = {}
    notes = []
    outer: str | None = None
    for level in (None, *(name for name, _, _ in reversed(readings.levels))):
        seconds = plateau(readings, "latency", level)
        if seconds is None:
            continue
        if not latencies or seconds < latencies[outer]:
            latencies[level] = seconds
            outer = level
        else:
            notes.append(
                f"latency of {level} left out: {si(seconds, 's')} is not below "
                f"{si(latencies[outer], 's')} of {outer or MEMORY}"
            )
    return latencies, notes


def _rates(readings: Readings) -> tuple[dict[str, float], list[str]]:
    """The rates, without a vector rate that the measured product contradicts."""
    rates = dict(readings.rates)
    vector, product = rates.get("vector.fp32"), own_product(readings)
    if vector is None or vector >= _LEAST_VECTOR * product:
        return rates, []
    del rates["vector.fp32"]
    return rates, [
        f"vector rate left out: {si(vector, 'FLOP/s')} is under half of the "
        f"{si(product, 'FLOP/s')} of the fp32 product, which runs on the same unit"
    ]


def own_product(readings: Readings) -> float:
    """FLOP/s of the fp32 product where a processor's vector unit does it; 0 elsewhere."""
    has_unit = any(name in readings.name.lower() for name in _MATRIX_UNITS)
    return 0.0 if readings.kind != "cpu" or has_unit else readings.rates.get("matrix.fp32", 0.0)
