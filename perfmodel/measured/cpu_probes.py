"""Micro-benchmarks of a processor: C loops on all cores, and torch for products (`products`).

Memory is measured with working sets of 16 times the last cache, so that only a small part can still
be cached from the pass before. Every value comes from a burst (see `bursts`). A pass over a large
working set is split into consecutive bursts on different parts, so that none finds its data in a
cache.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from perfmodel.measured import cprobes, hostload, products
from perfmodel.measured.bursts import Burst, Span, best, together
from perfmodel.measured.cprobes import CHUNK, Gate
from perfmodel.measured.environment import Cpu, Environment, cpu
from perfmodel.measured.microbench import (
    ARRAYS,
    STREAMS,
    Curve,
    Readings,
    Report,
    now,
    sizes,
)

BEYOND = 16  # times the last cache: the largest working set
_UNKNOWN_CACHE = 2**25  # bytes, taken if the system does not report the size of the last cache
_MOST_MEMORY = 0.25  # of what is available
_FLOAT = 4  # bytes
_GATHERS = 4096  # independent chains in one numpy gather

Points = dict[float, Burst]


class Streams(Protocol):
    """Loops over arrays of float32, repeated; threads of one gate start together."""

    method: str

    def read(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """Read one array."""

    def copy(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """Copy one array into another."""

    def triad(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """c = a + 0.75 b."""


@dataclass(frozen=True)
class Effort:
    """How long and how often to measure."""

    tries: int
    """Bursts a value."""
    burst_s: float
    """Seconds of a burst."""
    per_octave: int
    """Working sets per octave."""
    product_s: float
    """Seconds that a product is tried for."""
    load_s: float
    """Seconds that the processor is kept under load."""


QUICK = Effort(tries=4, burst_s=1e-3, per_octave=2, product_s=0.3, load_s=1.0)
FULL = Effort(tries=9, burst_s=2e-3, per_octave=4, product_s=1.5, load_s=5.0)


def take(where: Environment, *, quick: bool, report: Report, say: Report) -> Readings:
    """Every reading of the processor, on the cores that this process may use; `say` is called if it
    is busy."""
    chip, effort = cpu(), QUICK if quick else FULL
    neighbours = hostload.others(chip.cores)
    if neighbours.busy:
        say(neighbours.said)
    report("compiling the probes")
    probes = cprobes.load()
    bench = CpuBench(probes, chip.places, effort, report)
    report("clock and multiply-adds")
    rates, methods, disturbed = bench.core_rates()
    curves = bench.bandwidths(largest(chip))
    curves |= bench.latency(largest(chip))
    report("matrix products, exponentials, launches")
    extra, notes = products.rates(chip.places, effort.product_s)
    report("rate under load")
    load = products.sustained(where, effort.load_s)
    if load:
        extra["sustained.fp32"] = float(np.median([rate for _, rate, _, _ in load]))
    return Readings(
        kind="cpu",
        slug=where.device,
        name=where.name,
        units=chip.cores,
        memory_bytes=where.memory_bytes,
        levels=tuple(
            (f"L{level}", float(chip.cache_bytes(level) or 0), float(chip.caches[level][0]))
            for level in sorted(chip.caches)
        ),
        flags=tuple(sorted(chip.flags)),
        curves=curves,
        rates={**rates, **extra},
        methods={**methods, **notes},
        load=load,
        versions=where.columns,
        timestamp_utc=now(),
        busy=neighbours.what,
        disturbed=disturbed,
    )


def largest(found: Cpu) -> int:
    """Bytes of the largest working set of all cores together."""
    cache = found.cache_bytes(found.last_level or 0) or _UNKNOWN_CACHE
    return int(min(BEYOND * cache, _MOST_MEMORY * (found.available_bytes or np.inf)))


class CpuBench:
    """The loops on all cores, one thread each; without C probes numpy's loops are used where they
    can."""

    def __init__(
        self,
        probes: cprobes.CProbes | None,
        places: Sequence[int | None],
        effort: Effort,
        report: Report,
    ) -> None:
        self._probes = probes
        self._streams: Streams = probes or NumpyStreams()
        self._places = places
        self.effort = effort
        self._report = report

    @property
    def _cores(self) -> int:
        return len(self._places)

    def core_rates(self) -> tuple[dict[str, float], dict[str, str], tuple[str, ...]]:
        """Clock of one core and multiply-adds of all cores; the methods; which rates were
        disturbed."""
        probes = self._probes
        if probes is None:
            return {}, {"vector.fp32": "not measured: no C compiler"}, ()
        bursts = {
            "clock": self._best_burst(probes.cycles, self._places[:1]),
            "vector.fp32": self._best_burst(probes.multiply_add, self._places),
        }
        rates = {name: burst.rate for name, burst in bursts.items()}
        return rates, {
            "clock": "C loop: a chain of additions, one a cycle",
            "vector.fp32": f"{probes.method}: independent multiply-adds in registers, all cores",
        }, tuple(name for name, burst in bursts.items() if burst.disturbed)  # fmt: skip

    def _best_burst(
        self, loop: Callable[[Gate, int], tuple[Span, float]], places: Sequence[int | None]
    ) -> Burst:
        """The best burst of a loop, repeated so that a burst takes long enough."""

        def take(reps: int) -> Burst:
            gate = Gate(len(places))
            results = together(lambda _: loop(gate, reps), places)
            return Burst(tuple(span for span, _ in results), results[0][1])

        reps = _repeats(take, self.effort.burst_s)
        return best(partial(take, reps), 2 * self.effort.tries)

    # ---- Streams ---------------------------------------------------------------------------------

    def bandwidths(self, most: int) -> dict[str, Curve]:
        """Read, copy and triad over the working set of all cores together."""
        grid = sizes(2**14 * self._cores, most, self.effort.per_octave)
        count = most // self._cores // _FLOAT // CHUNK * CHUNK
        self._report("reserving memory")
        memory = together(lambda _: _ones(count), self._places)
        curves = {}
        for name in STREAMS:
            points: Points = {}
            for size in grid:
                self._report(f"bandwidth of {name}, {size / 2**20:.3g} MiB of {most / 2**20:.3g}")
                points[size] = self._stream(name, size, memory)
            curves[name] = curve("B/s", f"{self._streams.method}, all cores", points)
        return curves

    def _stream(self, name: str, working_set: int, memory: Sequence[np.ndarray]) -> Burst:
        """The best burst, each core on its part of the working set."""
        loop: Callable[[Gate, Sequence[np.ndarray], int], Span] = getattr(self._streams, name)
        width = ARRAYS[name]
        count = max(working_set // self._cores // width // _FLOAT // CHUNK, 1) * CHUNK
        arrays = [[part[i * count : (i + 1) * count] for i in range(width)] for part in memory]

        def take(first: int, length: int, reps: int) -> Burst:
            gate = Gate(self._cores)

            def work(i: int) -> Span:
                slices = [a[first : first + length] for a in arrays[i]]
                return loop(gate, slices, reps)

            spans = together(work, self._places)
            return Burst(tuple(spans), float(length * reps * width * _FLOAT))

        reps = _repeats(lambda reps: take(0, count, reps), self.effort.burst_s)
        if reps > 1:
            return best(partial(take, 0, count, reps), self.effort.tries)
        trial = take(0, count, 1)
        parts = max(round(max(span.seconds for span in trial.spans) / self.effort.burst_s), 1)
        length = max(count // parts // CHUNK, 1) * CHUNK
        starts = _rounds(range(0, count - length + 1, length))
        return best(lambda: take(next(starts), length, 1), self.effort.tries)

    # ---- Latency ---------------------------------------------------------------------------------

    def latency(self, most: int) -> dict[str, Curve]:
        """Seconds per dependent load on one core; without C probes numpy's gathers, named as
        such."""
        grid = sizes(2**13, most, self.effort.per_octave)
        probes = self._probes
        if probes is None:
            points = tuple((float(size), _gather(size)) for size in grid if size >= 2**15)
            method = f"numpy gather of {_GATHERS} chains: time per load, not the latency of one"
            return {"gather": Curve("s", method, points)}
        bursts: Points = {}
        for size in grid:
            self._report(f"latency, {size / 2**20:.3g} MiB of {most / 2**20:.3g}")
            bursts[size] = self._chase(probes, size)
        series = curve("s", "", bursts)
        method = "C loop: one random cycle through all lines, large pages where there are, one core"
        points = tuple((size, 1 / rate) for size, rate in series.points)
        return {"latency": Curve("s", method, points, series.disturbed)}

    def _chase(self, probes: cprobes.CProbes, size: int) -> Burst:
        cells = cprobes.ring(size)
        cell = 0

        def take(steps: int) -> Burst:
            nonlocal cell
            place = self._places[:1]
            ((span, cell),) = together(lambda _: probes.chase(Gate(1), cells, cell, steps), place)
            return Burst((span,), float(steps))

        take(min(len(cells), 2**18))  # warms the caches
        steps = _repeats(take, self.effort.burst_s, least=1000)
        return best(partial(take, steps), self.effort.tries)


def curve(unit: str, method: str, points: Points) -> Curve:
    """Rates over the working set, and the working sets at which every burst was disturbed."""
    return Curve(
        unit,
        method,
        tuple((float(size), burst.rate) for size, burst in points.items()),
        tuple(float(size) for size, burst in points.items() if burst.disturbed),
    )


def _repeats(take: Callable[[int], Burst], burst_s: float, least: int = 1) -> int:
    """Repetitions for which a burst takes `burst_s`; the trial runs also warm up."""
    reps = least
    while True:
        seconds = min(span.seconds for span in take(reps).spans)
        if seconds >= burst_s / 4:
            return max(round(reps * burst_s / seconds), least)
        reps *= 8


def _rounds(places: Sequence[int]) -> Iterator[int]:
    """All places in order, over and over."""
    while True:
        yield from places


def _ones(count: int) -> np.ndarray:
    """Ones, written by the thread that uses them, so that they are in its own NUMA node's
    memory."""
    array = cprobes.aligned(count)
    array.fill(1.0)
    return array


# ---- Without a compiler --------------------------------------------------------------------------


class NumpyStreams:
    """numpy's loops in Python threads; numpy releases the GIL while they run."""

    method = "numpy"

    def read(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """Sum one array."""
        return _span(partial(np.add.reduce, arrays[0]), reps)

    def copy(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """Copy one array into another."""
        return _span(partial(np.copyto, arrays[1], arrays[0]), reps)

    def triad(self, gate: Gate, arrays: Sequence[np.ndarray], reps: int) -> Span:
        """c = a + 0.75 b; numpy moves five arrays where a fused loop moves three."""
        a, b, c = arrays

        def once() -> None:
            np.multiply(b, np.float32(0.75), out=c)
            np.add(a, c, out=c)

        span = _span(once, reps)
        end = span.start_s + span.seconds * 3 / 5
        return Span(span.start_s, end, span.processor_s * 3 / 5)


def _span(work: Callable[[], Any], reps: int) -> Span:
    start, processor = time.perf_counter(), time.thread_time()
    for _ in range(reps):
        work()
    return Span(start, time.perf_counter(), time.thread_time() - processor)


def _gather(size: int) -> float:
    """Seconds per load for many chains at once: the throughput of random loads, not their
    latency."""
    count = size // 8
    chain = np.random.default_rng(0).permutation(count)
    places = np.arange(_GATHERS, dtype=np.int64) % count
    steps = 50
    for _ in range(3):
        places = chain[places]
    start = time.perf_counter()
    for _ in range(steps):
        places = chain[places]
    return (time.perf_counter() - start) / steps / places.size
