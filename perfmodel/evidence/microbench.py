"""Micro-benchmarks of this machine, as plain readings that say how each was taken.

Bandwidth of copy, triad and read over working sets, latency of dependent loads over working sets,
matrix and vector and special-function rates, the launch floor, and the rate under load. Readings
are JSON, so that they can be taken where nothing but torch is installed and turned into a spec
elsewhere (`perfmodel calibrate --readings`).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.errors import TableError
from perfmodel.evidence import cprobes
from perfmodel.evidence.environment import (
    Environment,
    cpu,
    environment,
    needs_torch,
)
from perfmodel.evidence.timer import Policy, WallClock, collect

SCHEMA_VERSION = 1
STREAMS = ("read", "copy", "triad")
ARRAYS = {"read": 1, "copy": 2, "triad": 3}
"""Arrays of a stream: its working set and its bytes are that many times one array."""

_FOUR = 4  # bytes of a float32
Report = Callable[[str], None]


@dataclass(frozen=True)
class Curve:
    """A quantity over the working set: points are (bytes of all cores together, value)."""

    unit: str
    method: str
    points: tuple[tuple[float, float], ...]

    def within(self, low: float, high: float) -> list[float]:
        """Values whose working set is in a range."""
        return [value for size, value in self.points if low <= size <= high]


@dataclass(frozen=True)
class Readings:
    """Everything that was read from one machine.

    `levels` are its caches from the core outwards as (name, bytes of all instances together, bytes
    of one); `rates` are SI numbers by name: clock, matrix.bf16, vector.fp32, special,
    launch.stream, launch.graph, sustained.bf16 ...; `load` is (seconds, FLOP/s, MHz, W) under
    sustained load.
    """

    kind: str
    slug: str
    name: str
    units: int
    memory_bytes: float
    levels: tuple[tuple[str, float, float], ...]
    flags: tuple[str, ...]
    curves: dict[str, Curve]
    rates: dict[str, float]
    methods: dict[str, str] = field(default_factory=dict)
    load: tuple[tuple[float, float, float | None, float | None], ...] = ()
    versions: dict[str, str] = field(default_factory=dict)
    timestamp_utc: str = ""

    def dump(self) -> str:
        """The readings as JSON."""
        return json.dumps({"schema_version": SCHEMA_VERSION, **asdict(self)}, indent=1) + "\n"


def read(path: str | Path) -> Readings:
    """Readings from a file; raises `TableError` where it holds none."""
    try:
        found = json.loads(Path(path).read_text(encoding="utf-8"))
        version = found.pop("schema_version")
        if version != SCHEMA_VERSION:
            raise TableError(f"{path}: readings of version {version}, not {SCHEMA_VERSION}")
        curves = {
            name: Curve(c["unit"], c["method"], tuple((s, v) for s, v in c["points"]))
            for name, c in found.pop("curves").items()
        }
        levels = tuple((n, float(a), float(b)) for n, a, b in found.pop("levels"))
        load = tuple(tuple(point) for point in found.pop("load"))
        flags = tuple(found.pop("flags"))
        return Readings(curves=curves, levels=levels, load=load, flags=flags, **found)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise TableError(f"{path}: cannot be read: {reason}; check the path") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        said = " ".join(str(error).split())
        raise TableError(
            f"{path}: not readings of a calibration ({said}); write them with calibrate"
        ) from None


def take(device: str, *, quick: bool = False, report: Report | None = None) -> Readings:
    """Run every micro-benchmark on `cpu` or `cuda`."""
    where = environment(device)
    if where.kind == "cuda":
        from perfmodel.evidence.gpu_probes import take as take_gpu

        return take_gpu(where, quick=quick, report=report or (lambda _: None))
    return _cpu(where, quick, report or (lambda _: None))


def sizes(low: float, high: float, per_octave: int) -> list[int]:
    """Working sets in even steps of the logarithm."""
    steps = round(np.log2(high / low) * per_octave)
    return [round(low * 2 ** (i / per_octave)) for i in range(steps + 1)]


def now() -> str:
    """The time, in UTC."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# ---- The processor -------------------------------------------------------------------------------


def _cpu(where: Environment, quick: bool, report: Report) -> Readings:
    found = cpu()
    probes = cprobes.load()
    largest = max(4 * (found.cache_bytes(found.last_level or 0) or 2**25), 2**27)
    largest = int(min(largest, found.memory_bytes / 8))
    bench = _CpuBench(probes, found.cores, quick)
    report("clock and multiply-adds")
    rates, methods = bench.core_rates()
    report("bandwidth over working sets")
    curves = bench.bandwidths(largest)
    report("latency over working sets")
    curves |= bench.latency(largest)
    report("matrix, special-function and launch rates")
    more, how = _torch_rates(found.cores, quick)
    report("rate under load")
    load = _load(where, 1.0 if quick else 5.0)
    if load:
        more["sustained.fp32"] = float(np.median([rate for _, rate, _, _ in load]))
    return Readings(
        kind="cpu",
        slug=where.device,
        name=where.name,
        units=found.cores,
        memory_bytes=where.memory_bytes,
        levels=tuple(
            (f"L{level}", float(found.cache_bytes(level) or 0), float(found.caches[level][0]))
            for level in sorted(found.caches)
        ),
        flags=tuple(sorted(found.flags)),
        curves=curves,
        rates={**rates, **more},
        methods={**methods, **how},
        load=load,
        versions=where.columns,
        timestamp_utc=now(),
    )


class _CpuBench:
    """The processor's loops, on all its cores, the best of a few repetitions each."""

    def __init__(self, probes: cprobes.CProbes | None, cores: int, quick: bool) -> None:
        self._probes = probes
        self._cores = cores
        self._quick = quick
        self._tries = 3 if quick else 7
        self._traffic = 2**26 if quick else 2**28  # bytes that one timing moves on a core

    def core_rates(self) -> tuple[dict[str, float], dict[str, str]]:
        """Clock and multiply-adds of all cores; nothing without a compiler."""
        probes = self._probes
        if probes is None:
            return {}, {"vector.fp32": "not measured: no C compiler"}
        clock = max(probes.clock(50_000) for _ in range(40))
        reps = 2_000_000 if self._quick else 10_000_000
        rate = max(
            sum(cprobes.together(lambda _: probes.multiply_add(reps), self._cores))
            for _ in range(self._tries)
        )
        return {"clock": clock, "vector.fp32": rate}, {
            "clock": "C loop: a chain of additions, one a cycle",
            "vector.fp32": "C loop: independent multiply-adds in registers, all cores",
        }

    def bandwidths(self, largest: int) -> dict[str, Curve]:
        """Read, copy and triad over the working set of all cores together."""
        method = "C loop, all cores" if self._probes else "numpy, all cores"
        each = sizes(2**14 * self._cores, largest, 2 if self._quick else 4)
        return {
            name: Curve("B/s", method, tuple((s, self._stream(name, s)) for s in each))
            for name in STREAMS
        }

    def _stream(self, name: str, working_set: int) -> float:
        """Bytes per second of all cores, each with its part of the working set."""
        count = max(working_set // self._cores // ARRAYS[name] // _FOUR // 128, 1) * 128
        moved = count * _FOUR * ARRAYS[name]
        reps = max(self._traffic // moved, 1)
        arrays = [
            [np.full(count, 1.0, np.float32) for _ in range(ARRAYS[name])]
            for _ in range(self._cores)
        ]
        loop = getattr(self._probes, name) if self._probes else _NUMPY[name]
        for part in arrays:
            loop(part, 1)
        return max(
            sum(
                moved / spent
                for spent in cprobes.together(lambda i: loop(arrays[i], reps), self._cores)
            )
            for _ in range(self._tries)
        )

    def latency(self, largest: int) -> dict[str, Curve]:
        """Seconds per dependent load on one core; numpy's gathers are called what they are."""
        each = sizes(2**13, largest, 2 if self._quick else 4)
        if self._probes is None:
            points = tuple((size, _gather(size)) for size in each if size >= 2**15)
            method = "numpy gather of 4096 chains: time per load, not the latency of one"
            return {"gather": Curve("s", method, points)}
        points = tuple((size, self._chase(size)) for size in each)
        method = "C loop: one random cycle through all lines, 4 KiB pages, one core"
        return {"latency": Curve("s", method, points)}

    def _chase(self, size: int) -> float:
        assert self._probes is not None
        cells = cprobes.ring(size)
        steps = 100_000 if self._quick else 400_000
        self._probes.chase(cells, min(len(cells), 4 * steps))
        return min(self._probes.chase(cells, steps) for _ in range(self._tries))


def _numpy_read(arrays: list[np.ndarray], reps: int) -> float:
    return _repeated(lambda: np.add.reduce(arrays[0]), reps)


def _numpy_copy(arrays: list[np.ndarray], reps: int) -> float:
    return _repeated(lambda: np.copyto(arrays[1], arrays[0]), reps)


def _numpy_triad(arrays: list[np.ndarray], reps: int) -> float:
    a, b, c = arrays

    def once() -> None:
        np.multiply(b, np.float32(0.75), out=c)
        np.add(a, c, out=c)

    return _repeated(once, reps) * 3 / 5  # numpy moves five arrays where a fused loop moves three


_NUMPY: dict[str, Callable[[list[np.ndarray], int], float]] = {
    "read": _numpy_read,
    "copy": _numpy_copy,
    "triad": _numpy_triad,
}


def _repeated(work: Callable[[], Any], reps: int) -> float:
    reps = min(reps, 2000)
    start = time.perf_counter()
    for _ in range(reps):
        work()
    return (time.perf_counter() - start) / reps


def _gather(size: int) -> float:
    """Seconds per load of many chains in step: throughput of random loads."""
    count = size // 8
    following = np.random.default_rng(0).permutation(count)
    at = np.arange(4096, dtype=np.int64) % count
    steps = 50
    for _ in range(3):
        at = following[at]
    start = time.perf_counter()
    for _ in range(steps):
        at = following[at]
    return (time.perf_counter() - start) / steps / at.size


def _torch_rates(cores: int, quick: bool) -> tuple[dict[str, float], dict[str, str]]:
    """Matrix products, exponentials and the empty operation, through torch.

    Each core works on its own: no core waits for another, so a busy machine shows its best moments.
    """
    torch = needs_torch()
    threads = torch.get_num_threads()
    policy = Policy(samples=40, warmup_s=0.05, sample_s=1e-4, limit_s=0.3 if quick else 1.5)

    def best(make: Callable[[], Callable[[], Any]]) -> float:
        """Calls per second of all cores together, each at its best."""

        def work(_: int) -> float:
            torch.set_num_threads(1)
            return 1.0 / min(collect((make(),), WallClock(), policy).seconds)

        return sum(cprobes.together(work, cores))

    try:
        rates: dict[str, float] = {}
        n = 512 if quick else 768
        for name, make in _products(torch, n):
            rates[f"matrix.{name}"] = 2.0 * n**3 * best(make)
        launches = best(lambda: partial(torch.zeros(1).add_, 1))
        rates["launch.stream"] = cores / launches
        count = 2**14
        each = cores / best(lambda: _exponential(torch, count)) - rates["launch.stream"]
        rates["special"] = cores * count / max(each, 1e-7)
    finally:
        torch.set_num_threads(threads)
    return rates, {
        "matrix": f"torch products of {n} x {n} matrices, one a core, best of samples",
        "special": f"torch.exp of {count} numbers, one call a core, best of samples",
        "launch.stream": "torch add of one number, best of samples",
    }


def _exponential(torch: Any, count: int) -> Callable[[], Any]:
    x = torch.randn(count)
    return partial(torch.exp, x, out=torch.empty_like(x))


def _products(torch: Any, n: int) -> Iterator[tuple[str, Callable[[], Callable[[], Any]]]]:
    """(type, what makes a square product); types that torch lacks here are left out."""

    def plain(kind: Any) -> Callable[[], Any]:
        a, b = (torch.randn(n, n).to(kind) for _ in range(2))
        return partial(torch.matmul, a, b, out=torch.empty_like(a))

    def integer() -> Callable[[], Any]:
        a, b = (torch.randint(-127, 128, (n, n), dtype=torch.int8) for _ in range(2))
        return partial(torch._int_mm, a, b)

    yield "fp32", partial(plain, torch.float32)
    yield "bf16", partial(plain, torch.bfloat16)
    try:
        integer()()
    except (RuntimeError, AttributeError):
        return
    yield "int8", integer


def _load(
    where: Environment, seconds: float
) -> tuple[tuple[float, float, float | None, float | None], ...]:
    """A product over and over: rate, clock and power as time goes by."""
    torch = needs_torch()
    a, b = (torch.randn(1024, 1024) for _ in range(2))
    out = torch.empty_like(a)
    found = []
    begin = time.perf_counter()
    while (start := time.perf_counter()) - begin < seconds:
        done = 0
        while time.perf_counter() - start < seconds / 10:
            torch.matmul(a, b, out=out)
            done += 1
        spent = time.perf_counter() - start
        state = where.gauge.read()
        rate = done * 2.0 * 1024**3 / spent
        found.append((time.perf_counter() - begin, rate, state.clock_mhz, state.power_w))
    return tuple(found)
