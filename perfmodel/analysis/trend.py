"""The memory wall: how fast peak operations, memory and interconnects have grown since 1997.

The points are those of the figure in Gholami et al., "AI and Memory Wall" (IEEE Micro 2024, arXiv
2403.14123), read from the authors' vector drawing; `identity` states how certain a point's name is.
The precision of operations changes over time (fp64 and fp32; dense fp16 on matrix units from 2017).
Memory is the bandwidth of a whole board, and an interconnect is the signalling rate of one lane.
The shipped devices are added by their year of announcement.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files

import numpy as np

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device

LABELS: Mapping[str, str] = {
    "flops": "peak operations",
    "dram": "memory bandwidth",
    "interconnect": "interconnect bandwidth",
}
PUBLISHED: Mapping[str, float] = {"flops": 3.0, "dram": 1.6, "interconnect": 1.4}
"""Growth in two years that the paper states."""

_SI = {"GFLOP/s": 1e9, "GB/s": 1e9, "GT/s": 1e9}


@dataclass(frozen=True)
class Point:
    """One product."""

    series: str
    """Its series: flops, dram or interconnect."""
    name: str
    """Its label; empty: none."""
    year: float
    """Year of its launch."""
    value: float
    """FLOP/s, B/s or transfers/s."""
    identity: str
    """How certain its name is."""


@dataclass(frozen=True)
class Fit:
    """value = at_2000 · per_two_years^((year − 2000) / 2), by least squares of the logarithm."""

    series: str
    """What was fitted."""
    points: int
    """Points."""
    first: float
    """Year of the first."""
    last: float
    """Year of the last."""
    at_2000: float
    """The fitted value in 2000."""
    per_two_years: float
    """Growth factor in two years."""

    def at(self, year: float) -> float:
        """The fitted value in `year`, in the unit of the points."""
        return self.at_2000 * growth(self.per_two_years, year - 2000)


@lru_cache(maxsize=1)
def points() -> tuple[Point, ...]:
    """The points of the published figure, by series and year."""
    text = files("perfmodel.analysis").joinpath("trend_points.csv").read_text(encoding="utf-8")
    return tuple(
        Point(
            row["series"],
            row["name"],
            float(row["year"]),
            float(row["value"]) * _SI[row["unit"]],
            row["identity"],
        )
        for row in csv.DictReader(text.splitlines())
    )


def series(name: str) -> tuple[Point, ...]:
    """The points of one series: flops, dram or interconnect. Raises `UnknownName`."""
    if name not in LABELS:
        raise UnknownName("series", name, LABELS)
    return tuple(point for point in points() if point.series == name)


def fit(found: Sequence[Point]) -> Fit:
    """The exponential growth of points; raises `ProblemError` for fewer than two years."""
    years = np.array([point.year for point in found])
    if np.unique(years).size < 2:
        raise ProblemError("growth needs points of two years or more")
    slope, start = np.polyfit(years - 2000, np.log([point.value for point in found]), 1)
    return Fit(
        found[0].series,
        len(found),
        float(years.min()),
        float(years.max()),
        float(np.exp(start)),
        float(np.exp(2 * slope)),
    )


def fits() -> dict[str, Fit]:
    """The growth of each series of the figure."""
    return {name: fit(series(name)) for name in LABELS}


def growth(per_two_years: float, years: float) -> float:
    """The growth factor after `years`, from the factor of two years."""
    return float(per_two_years ** (years / 2))


def device_points(devices: Sequence[Device]) -> list[Point]:
    """Peak dense 16-bit rate (operations) and memory bandwidth (memory) of devices, by year.

    A device without a matrix unit counts with its vector rate. CPUs are left out. So is the memory
    of machines whose main memory is on-chip SRAM.
    """
    rows = []
    for device in devices:
        if device.kind == "cpu":
            continue
        year = float(device.launch_year.value)
        peak = _peak(device)
        if peak is not None:
            rows.append(Point("flops", device.slug, year, peak, "spec"))
        if "SRAM" not in device.hbm_technology.upper():
            rows.append(Point("dram", device.slug, year, device.hbm_bytes_per_s, "spec"))
    return rows


def _peak(device: Device) -> float | None:
    """Dense 16-bit FLOP/s: the matrix unit's where there is one."""
    for dtype in ("fp16", "bf16"):
        if dtype in device.matrix_types:
            return device.matrix_flops(dtype)
    try:  # some early chips have a very low fp16 rate, below fp32
        return max(device.vector_flops("fp16"), device.vector_flops("fp32"))
    except ProblemError:
        return None
