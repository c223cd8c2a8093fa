"""A sweep as a whole: its grid, devices and options, and how it is cut into parts."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import lru_cache
from importlib.resources import files
from itertools import product
from typing import Any
from urllib.parse import quote

import numpy as np

from perfmodel.algorithms.sizes import check_cases
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import Device
from perfmodel.operators.grid import LIMIT, Grid
from perfmodel.predict import predict_arrays
from perfmodel.timing.constants import Constants, default

SCHEMA_VERSION = 1
CHUNK = 65_536
"""Points in one part: a few tens of MiB while it is predicted."""


@dataclass(frozen=True)
class Part:
    """One file: a run of points of one device's grid."""

    device: Device
    """The device."""
    number: int
    """Number of the part among the device's parts, from 0."""
    start: int
    """First index into the grid."""
    stop: int
    """Index past the last one."""

    @property
    def path(self) -> str:
        """Its path in the folder: device=h100-sxm/part-00000.parquet."""
        return self.place(self.device.slug, self.number)

    @staticmethod
    def place(slug: str, number: int) -> str:
        """The path from the device's slug and the part's number."""
        return f"device={quote(slug, safe='')}/part-{number:05d}.parquet"


@dataclass(frozen=True)
class Sweep:
    """A grid on several devices.

    Raises `ProblemError` for no device, for one named twice, and for a chunk without points.
    """

    grid: Grid
    """The grid."""
    devices: tuple[Device, ...]
    """The devices, each once."""
    implementation: str | None = None
    """As of `perfmodel.predict`."""
    harness: str = "kernel"
    """As of `perfmodel.predict`."""
    chunk: int = CHUNK
    """Points in a part."""
    constants: Constants = field(default_factory=default)
    """Constants of the time model."""
    place: Mapping[str, str] = field(default_factory=dict)
    """As of `perfmodel.predict`."""
    mesh: Mapping[str, tuple[int, str]] = field(default_factory=dict)
    """As of `perfmodel.predict`."""
    stored: Mapping[str, str] = field(default_factory=dict)
    """As of `perfmodel.predict`."""

    def __post_init__(self) -> None:
        if not self.devices:
            raise ProblemError("the grid is empty: no device is named; give one with --device")
        slugs = [device.slug for device in self.devices]
        duplicate = next((slug for slug in slugs if slugs.count(slug) > 1), None)
        if duplicate is not None:
            raise ProblemError(f"device {duplicate} is named twice; a sweep takes each device once")
        if self.chunk < 1:
            raise ProblemError(f"a chunk of {self.chunk} points is none; give 1 or more")

    @property
    def points(self) -> int:
        """Points on all devices."""
        return len(self.grid) * len(self.devices)

    @property
    def parts_per_device(self) -> int:
        """Files of each device."""
        return math.ceil(len(self.grid) / self.chunk)

    @property
    def parts(self) -> int:
        """Files in all."""
        return self.parts_per_device * len(self.devices)

    def part(self, i: int) -> Part:
        """The i-th file, in the order of devices: all parts of the first, then of the second, and
        so on."""
        device, number = divmod(i, self.parts_per_device)
        start = number * self.chunk
        return Part(self.devices[device], number, start, min(start + self.chunk, len(self.grid)))

    def check(self, *, yes: bool = False, limit: int = LIMIT) -> None:
        """Check the sweep before any work is done.

        Raises `ProblemError` for more points than `limit` unless `yes`, and if nothing can be
        predicted on any device; `UnknownName` for an unknown type or implementation.
        """
        if not yes:
            check_cases(self.points, limit, "narrow a range, or say --yes")
        errors: list[PerfmodelError] = []
        tries = [*product(self.devices, self.grid.schedules, self._kinds())]
        for device, schedule, kinds in tries:
            try:
                self._try(device, schedule, kinds)
            except UnknownName:
                raise
            except PerfmodelError as error:
                errors.append(error)
        if len(errors) == len(tries):
            raise errors[0]

    def _kinds(self) -> list[dict[str, Any]]:
        tables = self.grid.kinds
        shape = [len(values) for values in tables.values()]
        return [
            {name: values[i] for (name, values), i in zip(tables.items(), place, strict=True)}
            for place in np.ndindex(*shape)
        ]

    def _try(self, device: Device, schedule: str, kinds: Mapping[str, Any]) -> None:
        group = self.grid.first(kinds, schedule)
        problem = group.problem
        if problem is None:
            raise ProblemError(group.reason)
        predict_arrays(
            problem,
            device,
            schedule=schedule,
            implementation=self.implementation,
            harness=self.harness,
            place=self.place,
            mesh=self.mesh,
            stored=self.stored,
            constants=self.constants,
        )

    def manifest(self) -> dict[str, Any]:
        """The sweep as plain values, the same on every run; two sweeps are the same if these are
        equal."""
        return {
            "schema_version": SCHEMA_VERSION,
            "version": _version(),
            "operator": self.grid.operator.name,
            "grid": {
                "schedules": list(self.grid.schedules),
                "kinds": {name: list(values) for name, values in self.grid.kinds.items()},
                "sizes": {name: _compact(values) for name, values in self.grid.sizes.items()},
                "follows": dict(self.grid.follows),
            },
            "devices": [
                {"slug": device.slug, "hash": _hash(device.dump())} for device in self.devices
            ],
            "implementation": self.implementation,
            "harness": self.harness,
            **self._spread(),
            "model_hash": model_hash(),
            "constants_hash": _hash(_constants_text(self.constants)),
            "chunk": self.chunk,
            "points": self.points,
            "parts": self.parts,
        }

    def _spread(self) -> dict[str, Any]:
        """Placement, mesh and storage of shards, where given."""
        mesh = {axis: list(entry) for axis, entry in self.mesh.items()}
        options = {"place": dict(self.place), "mesh": mesh, "stored": dict(self.stored)}
        return {name: value for name, value in options.items() if value}


@lru_cache(maxsize=1)
def model_hash() -> str:
    """A digest of the time model's tables; constants have a separate digest."""
    tables = {
        item.name: item.read_text(encoding="utf-8")
        for item in files("perfmodel.timing").iterdir()
        if item.name.endswith(".yaml") and item.name != "constants.yaml"
    }
    return _hash(json.dumps(tables, sort_keys=True))


def _constants_text(constants: Constants) -> str:
    """Everything in the constants as text: values, terms left out, how runs are timed."""
    runs = {name: asdict(run) for name, run in constants.runs.items()}
    return json.dumps([constants, sorted(constants.off), runs], sort_keys=True)


def _compact(values: np.ndarray) -> list[int] | dict[str, int]:
    """A long range as start, stop and step; other values as a list."""
    steps = np.diff(values)
    if len(values) > 4 and np.all(steps == steps[0]) and steps[0] > 0:
        return {"start": int(values[0]), "stop": int(values[-1]), "step": int(steps[0])}
    return [int(value) for value in values]


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("perfmodel")
    except PackageNotFoundError:  # a bare checkout on the path
        return "unknown"
