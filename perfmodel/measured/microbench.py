"""Micro-benchmarks of this machine, as readings with the method of each.

Bandwidth of copy, triad and read over working sets, latency of dependent loads over working sets,
matrix and vector and special-function rates, the launch floor, and the rate under load. Readings
are JSON, so that they can be taken where nothing but torch is installed and turned into a spec
elsewhere (`perfmodel calibrate --readings`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from perfmodel import documents
from perfmodel.errors import TableError
from perfmodel.measured.environment import environment

SCHEMA_VERSION = 1
STREAMS = ("read", "copy", "triad")
ARRAYS = {"read": 1, "copy": 2, "triad": 3}
"""Arrays of each stream; its working set and its bytes moved are this many times one array."""

Report = Callable[[str], None]


@dataclass(frozen=True)
class Curve:
    """A quantity (bandwidth or latency) as a function of the working set."""

    unit: str
    """Unit of the values."""
    method: str
    """How it was measured."""
    points: tuple[tuple[float, float], ...]
    """Bytes of all cores together, and the value."""
    disturbed: tuple[float, ...] = ()
    """Working sets at which other programs disturbed every run; their values are the best measured.
    """

    def within(self, low: float, high: float) -> list[float]:
        """Values whose working set is in a range."""
        return [value for size, value in self.points if low <= size <= high]


@dataclass(frozen=True)
class Readings:
    """All readings of one machine.

    `levels` are its caches from the core outwards as (name, bytes of all instances together, bytes
    of one); `rates` are SI numbers by name: clock, matrix.bf16, vector.fp32, special,
    launch.stream, launch.graph, sustained.bf16 ...; `load` is (seconds, FLOP/s, MHz, W) under
    sustained load. `busy` describes the load by other programs at the start, if any; `disturbed`
    are the rates for which they disturbed every run.
    """

    kind: str
    """cuda, rocm or cpu."""
    slug: str
    """Slug for the spec."""
    name: str
    """Full name of the machine."""
    units: int
    """Its compute units."""
    memory_bytes: float
    """Bytes of memory."""
    levels: tuple[tuple[str, float, float], ...]
    """Its caches from the core outwards: name, bytes of all instances together, bytes of one."""
    flags: tuple[str, ...]
    """Its instruction sets."""
    curves: dict[str, Curve]
    """Quantities over the working set."""
    rates: dict[str, float]
    """SI numbers by name: clock, matrix.bf16, vector.fp32, special, launch.stream, launch.graph,
    sustained.bf16 ..."""
    methods: dict[str, str] = field(default_factory=dict)
    """How each was read."""
    load: tuple[tuple[float, float, float | None, float | None], ...] = ()
    """Seconds, FLOP/s, MHz and W under sustained load."""
    versions: dict[str, str] = field(default_factory=dict)
    """Versions of what was used."""
    timestamp_utc: str = ""
    """When."""
    busy: str = ""
    """Load by other programs at the start; empty: none."""
    disturbed: tuple[str, ...] = ()
    """Rates for which other programs disturbed every run."""

    def dump(self) -> str:
        """The readings as JSON."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1) + "\n"


def read(path: str | Path) -> Readings:
    """Readings from a file; raises `TableError`, naming the place, where it holds none."""
    from pydantic import TypeAdapter, ValidationError

    kind = "readings of a calibration, a .json that calibrate saved"
    document = documents.parsed(documents.text(path, kind), str(path), kind)
    version = document.pop("schema_version", None) if isinstance(document, dict) else None
    if version not in (None, SCHEMA_VERSION):
        raise TableError(f"{path}: readings of version {version}, not {SCHEMA_VERSION}")
    try:
        return TypeAdapter(Readings).validate_python(document)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        raise TableError(f"{path}: not {kind} ({place}: {first['msg'].lower()})") from None


def take(
    device: str, *, quick: bool = False, report: Report | None = None, say: Report | None = None
) -> Readings:
    """Run every micro-benchmark on `cpu` or `cuda`.

    `report` is called with what is measured next, `say` with warnings.
    """
    env = environment(device)
    if env.kind == "cuda":
        from perfmodel.measured.gpu_probes import take as take_gpu

        return take_gpu(env, quick=quick, report=report or _ignore)
    from perfmodel.measured.cpu_probes import take as take_cpu

    return take_cpu(env, quick=quick, report=report or _ignore, say=say or _ignore)


def _ignore(message: str) -> None:
    """Discard a message."""


def sizes(low: float, high: float, per_octave: int) -> list[int]:
    """Working sets in even steps of the logarithm."""
    steps = round(math.log2(high / low) * per_octave)
    return [round(low * 2 ** (i / per_octave)) for i in range(steps + 1)]


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
