"""Stopwatches: how one call is timed, and how many calls make a measurement.

A stopwatch measures seconds per call. `collect` warms up for a given time, chooses the number of
calls in a sample, and takes samples until there are enough or the time is up. Calls rotate over
several sets of inputs, so that the inputs are out of any cache smaller than all sets together.

    wall     the host's clock around calls (CPU)
    events   device events around each call, all queued before the first is waited for
    graph    a captured graph of calls between two events: no launch gap

Clock and calls are passed in, so that tests need not wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

_LONG_S = 2e-4  # a longer call is dominated by its work, not by its launch
_ESCAPED = 0.3  # of the time outside a graph: a shorter replay lacks part of the work

Call = Callable[[], Any]
Clock = Callable[[], float]

HARNESS = {"wall": "wall_clock", "events": "do_bench", "graph": "cuda_graph"}
"""Timer to the `harness` of the measured-run table; queued event pairs are Triton's do_bench."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long and how often: seconds and counts."""

    samples: int = 50
    """Most samples."""
    least_samples: int = 5
    """Fewest samples."""
    warmup_s: float = 0.1
    """Seconds of warming up."""
    least_warmup_calls: int = 2
    """Fewest calls of warming up."""
    sample_s: float = 2e-3
    """Seconds that a sample should take."""
    limit_s: float = 1.0
    """Most seconds of a case."""
    most_calls: int = 1000
    """Most calls of a sample."""


@dataclass(frozen=True, slots=True)
class Samples:
    """Seconds per call of every sample, in the order taken."""

    seconds: tuple[float, ...]
    """Seconds per call."""
    calls_per_sample: int
    """Calls of a sample."""
    timer: str
    """How they were timed."""

    def quantile(self, share: float) -> float:
        """The `share` quantile, linear between neighbours."""
        times = sorted(self.seconds)
        place = share * (len(times) - 1)
        low = int(place)
        high = min(low + 1, len(times) - 1)
        return times[low] + (times[high] - times[low]) * (place - low)

    @property
    def median(self) -> float:
        """The middle sample."""
        return self.quantile(0.5)

    @property
    def spread(self) -> float:
        """(p80 - p20) / median."""
        return (self.quantile(0.8) - self.quantile(0.2)) / self.median


class Stopwatch(Protocol):
    """Times calls, one sample at a time."""

    timer: str

    def warm(self, calls: Sequence[Call], policy: Policy) -> float:
        """Run calls for a while; returns the approximate seconds of one."""

    def samples(self, calls: Sequence[Call], per_sample: int, policy: Policy) -> list[float]:
        """Seconds per call of each sample."""


def collect(calls: Sequence[Call], stopwatch: Stopwatch, policy: Policy) -> Samples:
    """Warm up, choose how many calls a sample needs, sample."""
    rough = stopwatch.warm(calls, policy)
    per_sample = calls_per_sample(rough, len(calls), policy)
    seconds = stopwatch.samples(calls, per_sample, policy)
    return Samples(tuple(seconds), per_sample, stopwatch.timer)


def calls_per_sample(rough_s: float, sets: int, policy: Policy) -> int:
    """Calls that fill `sample_s`, a whole number of rounds over the sets of inputs."""
    calls = min(max(policy.sample_s / max(rough_s, 1e-9), 1.0), float(policy.most_calls))
    return max(round(calls / sets), 1) * sets


class WallClock:
    """The host's clock around calls that return when the work is done.

    With `flush`, every call is timed alone, and caches are flushed before it, outside the measured
    time.
    """

    timer = "wall"

    def __init__(self, clock: Clock = time.perf_counter, flush: Call | None = None) -> None:
        self._clock = clock
        self._flush = flush

    def warm(self, calls: Sequence[Call], policy: Policy) -> float:
        """Call until `warmup_s` is over; seconds per call, the first one left out."""
        calls[0]()
        start = self._clock()
        count = 0
        while count < policy.least_warmup_calls or self._clock() - start < policy.warmup_s:
            calls[count % len(calls)]()
            count += 1
        return (self._clock() - start) / count

    def samples(self, calls: Sequence[Call], per_sample: int, policy: Policy) -> list[float]:
        """At least `least_samples`, at most `samples`, stopping at `limit_s`."""
        times: list[float] = []
        begin = self._clock()
        repeats = 1 if self._flush else per_sample
        place = 0
        while len(times) < policy.samples:
            if len(times) >= policy.least_samples and self._clock() - begin > policy.limit_s:
                break
            if self._flush:
                self._flush()
            start = self._clock()
            for _ in range(repeats):
                calls[place % len(calls)]()
                place += 1
            times.append((self._clock() - start) / repeats)
        return times


class DeviceEvents:
    """Device events around each call; everything is queued, then waited for once.

    `flush` empties the L2 before each call, and gives the host time to queue what follows.
    """

    timer = "events"

    def __init__(self, flush: Call | None = None, torch: Any = None) -> None:
        self._flush = flush
        self._torch = torch or _torch()

    def warm(self, calls: Sequence[Call], policy: Policy) -> float:
        """Rounds of calls, twice as many each time, until `warmup_s` of device time is over."""
        cuda = self._torch.cuda
        calls[0]()
        cuda.synchronize()
        total, round_, rough = 0.0, max(policy.least_warmup_calls, 1), 0.0
        while True:
            first, last = self._event(), self._event()
            first.record()
            for i in range(round_):
                calls[i % len(calls)]()
            last.record()
            cuda.synchronize()
            seconds = float(first.elapsed_time(last)) / 1e3
            total, rough = total + seconds, seconds / round_
            if total >= policy.warmup_s or round_ >= 1 << 16:
                return rough
            round_ *= 2

    def samples(self, calls: Sequence[Call], per_sample: int, policy: Policy) -> list[float]:
        """One call a sample where the L2 is flushed, else `per_sample` calls between two events."""
        repeats = 1 if self._flush else per_sample
        times: list[float] = []
        begin = time.perf_counter()
        while len(times) < policy.samples:
            if len(times) >= policy.least_samples and time.perf_counter() - begin > policy.limit_s:
                break
            batch = min(10, policy.samples - len(times))
            times += self._batch(calls, repeats, batch, len(times))
        return times

    def _batch(self, calls: Sequence[Call], repeats: int, batch: int, place: int) -> list[float]:
        pairs = [(self._event(), self._event()) for _ in range(batch)]
        for first, last in pairs:
            if self._flush:
                self._flush()
            first.record()
            for _ in range(repeats):
                calls[place % len(calls)]()
                place += 1
            last.record()
        self._torch.cuda.synchronize()
        return [first.elapsed_time(last) / 1e3 / repeats for first, last in pairs]

    def _event(self) -> Any:
        return self._torch.cuda.Event(enable_timing=True)


class GraphReplay(DeviceEvents):
    """A captured graph of `per_sample` calls, replayed between two events.

    Work that was not captured (it ran on another stream) would not be timed. A replay that is far
    faster than the same calls outside a graph is therefore refused.
    """

    timer = "graph"

    def __init__(self, torch: Any = None) -> None:
        super().__init__(None, torch)
        self._rough_s = 0.0

    def warm(self, calls: Sequence[Call], policy: Policy) -> float:
        """As for events; the time of a call is stored for comparison with the replay."""
        self._rough_s = super().warm(calls, policy)
        return self._rough_s

    def samples(self, calls: Sequence[Call], per_sample: int, policy: Policy) -> list[float]:
        """Capture once, replay for every sample."""
        cuda = self._torch.cuda
        graph = cuda.CUDAGraph()
        with cuda.graph(graph):
            for i in range(per_sample):
                calls[i % len(calls)]()
        graph.replay()
        cuda.synchronize()
        times: list[float] = []
        begin = time.perf_counter()
        while len(times) < policy.samples:
            if len(times) >= policy.least_samples and time.perf_counter() - begin > policy.limit_s:
                break
            first, last = self._event(), self._event()
            first.record()
            graph.replay()
            last.record()
            cuda.synchronize()
            times.append(first.elapsed_time(last) / 1e3 / per_sample)
        if self._rough_s > _LONG_S and max(times) < _ESCAPED * self._rough_s:
            raise RuntimeError("the captured graph does less than the calls it was made of")
        return times


def _torch() -> Any:
    import torch

    return torch
