"""The hardware numbers that a what-if can change: names, units, and how to change each.

A number is changed together with the dependent facts (`perfmodel.hardware.scaling`). Launch
overhead is a property of how a run is timed and not of the device, so it is changed in the
constants.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from typing import Any

from perfmodel.algorithms import Problem
from perfmodel.errors import ProblemError
from perfmodel.frozen import dataclass
from perfmodel.hardware import Device
from perfmodel.hardware.levels import LINKS
from perfmodel.operators import operator_of
from perfmodel.timing.constants import Constants
from perfmodel.timing.exchange import link_of
from perfmodel.timing.floors import pace
from perfmodel.timing.machine import machine
from perfmodel.timing.runs import paced
from perfmodel.units import binary, seconds, si

LAUNCH = ("kernel_gap", "split_price", "combine_price")
"""Constants of launch overhead, besides the times of harness and host."""


@dataclass(frozen=True)
class Setting:
    """The arguments of a prediction (`perfmodel.predict`)."""

    problem: Problem
    """The problem."""
    device: Device
    """The device."""
    constants: Constants
    """Constants of the time model."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """The other arguments: harness, place, mesh, schedule ..."""

    @property
    def links(self) -> set[str]:
        """Levels behind a link that an operand is stored in or an exchange crosses."""
        mesh, place = self.options.get("mesh") or {}, self.options.get("place") or {}
        links = (link_of(self.device, link)[0].name for _, link in mesh.values())
        return {*place.values(), *links}


@dataclass(frozen=True)
class Quantity:
    """A hardware number."""

    name: str
    """Name in options."""
    label: str
    """Name in tables."""
    dimension: str
    """One of `perfmodel.units`, or "count"."""
    aliases: tuple[str, ...]
    """Other names accepted in options."""
    read: Callable[[Setting], float | None]
    """Its value in SI units; None if the spec does not state it."""
    of_level: str = ""
    """The memory level or link that it belongs to, if most devices or cases lack it; see
    `belongs`."""

    def on(self, device: Device) -> str:
        """The label with the levels' names on a device: GDDR6X bandwidth, Infinity Cache size."""
        names = {"HBM": device.level("hbm"), "LLC": device.level("llc")}
        label = self.label
        for generic, level in names.items():
            if level is not None:
                label = label.replace(generic, level.short)
        return label

    @property
    def is_launch(self) -> bool:
        """Whether it is launch overhead, which is stored in the constants and may be zero."""
        return self.name == "launch"

    @property
    def is_better_smaller(self) -> bool:
        """Whether less of it is better: latencies and launches."""
        return self.dimension == "time"

    def show(self, value: float) -> str:
        """`value` with its unit."""
        if self.dimension == "count":
            return f"{value:.0f}"
        if self.dimension == "capacity":
            return binary(value)
        if self.dimension == "time":
            return seconds(value)
        return si(value, _UNITS[self.dimension])

    def scaled(self, setting: Setting, factor: float) -> Setting:
        """`setting` with this number multiplied by `factor`; raises `ProblemError` if the spec
        lacks it."""
        if self.is_launch:
            return replace(setting, constants=launching(setting.constants, factor))
        if self.read(setting) is None:
            gap = f"the spec of {setting.device.slug} has no {self.on(setting.device)}"
            raise ProblemError(f"{gap}, so it cannot be changed; add it, or change another number")
        device = setting.device.scaled(**{self.name: factor})
        return replace(setting, device=device)

    def belongs(self, setting: Setting) -> bool:
        """Whether it is relevant: the device has its level, or something crosses the link.

        A device without the level is not reported as missing this number.
        """
        if self.of_level in LINKS:
            return self.of_level in setting.links
        return not self.of_level or setting.device.level(self.of_level) is not None


def launching(constants: Constants, factor: float) -> Constants:
    """Constants with all launch overhead multiplied by `factor`."""
    copy = constants.with_values({name: constants[name] * factor for name in LAUNCH})
    return copy.with_runs(paced(constants.runs, factor))


_UNITS = {
    "bandwidth": "B/s",
    "compute rate": "FLOP/s",
    "special-function rate": "exp/s",
    "frequency": "Hz",
    "power": "W",
}


def _matrix(setting: Setting) -> float | None:
    device, dtype = setting.device, setting.problem.compute_type
    if not device.matrix_types:
        return None
    return device.matrix_flops(dtype if dtype in device.matrix_types else device.matrix_types[0])


def _vector(setting: Setting) -> float | None:
    try:
        return setting.device.vector_flops()
    except ProblemError:
        return None


def _per_chip(per_clock: float | None, setting: Setting) -> float | None:
    """A rate per clock and unit, converted to a rate of the whole chip."""
    device = setting.device
    return None if per_clock is None else per_clock * device.boost_hz * device.units


def _rate(device: Device, name: str) -> float | None:
    """Bandwidth of a level as the model uses it: measured if known, else the datasheet's."""
    level = device.level(name)
    return None if level is None else level.measured_bytes_per_s or level.bytes_per_s


def _capacity(device: Device, name: str) -> float | None:
    """Capacity of a level, all instances together."""
    level = device.level(name)
    return None if level is None else level.total_bytes


def _launch(setting: Setting) -> float:
    operator = operator_of(setting.problem).called_as(setting.problem)
    run = setting.constants.run(setting.options.get("harness", "kernel"))
    start = run.start_seconds(operator)
    return start * pace(run, operator, machine(setting.device), setting.constants)


_ALL = (
    Quantity(
        "hbm_bandwidth",
        "HBM bandwidth",
        "bandwidth",
        ("hbm", "dram", "gddr", "ddr", "lpddr", "dram bandwidth", "memory", "memory bandwidth"),
        lambda s: s.device.hbm_bytes_per_s,
    ),
    Quantity(
        "l2_bandwidth",
        "L2 bandwidth",
        "bandwidth",
        ("l2",),
        lambda s: s.device.measured_l2_bytes_per_s or s.device.l2_bytes_per_s,
    ),
    Quantity(
        "l2_capacity",
        "L2 capacity",
        "capacity",
        ("l2 size",),
        lambda s: s.device.l2_capacity_bytes,
    ),
    Quantity(
        "llc_bandwidth",
        "LLC bandwidth",
        "bandwidth",
        ("llc", "infinity cache", "infinity cache bandwidth"),
        lambda s: _rate(s.device, "llc"),
        of_level="llc",
    ),
    Quantity(
        "llc_capacity",
        "LLC capacity",
        "capacity",
        ("llc size", "infinity cache size"),
        lambda s: _capacity(s.device, "llc"),
        of_level="llc",
    ),
    *(
        Quantity(
            f"{name}_bandwidth",
            f"{name} link",
            "bandwidth",
            aliases,
            lambda s, name=name: _rate(s.device, name),  # type: ignore[misc]
            of_level=name,
        )
        for name, aliases in (
            ("host", ("host", "pcie", "c2c")),
            ("peer", ("peer", "nvlink", "xgmi", "scale-up")),
            ("network", ("network", "nic", "scale-out")),
        )
    ),
    Quantity(
        "shared_bandwidth",
        "shared bandwidth",
        "bandwidth",
        ("shared", "shared-memory bandwidth", "smem"),
        lambda s: _per_chip(s.device.shared_bytes_per_clock, s),
    ),
    Quantity(
        "shared_capacity",
        "SRAM size",
        "capacity",
        ("sram", "shared capacity", "shared memory", "smem size"),
        lambda s: s.device.shared_capacity_bytes,
    ),
    Quantity(
        "matrix",
        "matrix rate",
        "compute rate",
        ("matrix", "tensor", "tensor rate", "tensor cores", "mma"),
        _matrix,
    ),
    Quantity(
        "vector", "vector rate", "compute rate", ("vector", "fma", "cuda cores"), _vector
    ),
    Quantity(
        "special",
        "exp rate",
        "special-function rate",
        ("exp", "special", "special-function rate", "mufu", "sfu"),
        lambda s: _per_chip(s.device.special_per_clock, s),
    ),
    Quantity(
        "units",
        "SM count",
        "count",
        ("sm", "sms", "cu", "cus", "units", "cores"),
        lambda s: s.device.units,
    ),
    Quantity("clock", "clock", "frequency", ("clocks", "frequency"), lambda s: s.device.boost_hz),
    Quantity(
        "latency",
        "memory latency",
        "time",
        ("latency", "hbm latency"),
        lambda s: s.device.latency_seconds("hbm"),
    ),
    Quantity("power", "board power", "power", ("power", "tdp"), lambda s: s.device.tdp_watts),
    Quantity(
        "launch", "launch floor", "time", ("launch", "launch overhead", "overhead"), _launch
    ),
)  # fmt: skip

QUANTITIES: Mapping[str, Quantity] = {quantity.name: quantity for quantity in _ALL}
"""Every hardware number by its name in `Device.scaled`."""

SPELLINGS: Mapping[str, Quantity] = {
    spelling.lower().replace("_", " "): quantity
    for quantity in _ALL
    for spelling in (quantity.name, quantity.label, *quantity.aliases)
}
"""Every accepted spelling of a hardware number."""
