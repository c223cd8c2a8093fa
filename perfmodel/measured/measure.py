"""Measure cases: check the result, then time it. Every case ends as one row, also if it fails.

    with Journal(path, COLUMNS, KEY).open(resume=True) as journal:
        measure(plan(cases, contenders), bench, journal)

A case that fails (wrong result, out of memory, refused by a library) is a row with the flag
`failed`, no time, and the reason; the other cases go on. Each row is written when it is finished,
so that an interrupted run can be resumed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from perfmodel.cases import Case
from perfmodel.errors import PerfmodelError
from perfmodel.measured import hostload
from perfmodel.measured.environment import Environment, State
from perfmodel.measured.journal import Announce, Journal, unannounced
from perfmodel.measured.rivals import Contender, Prepared
from perfmodel.measured.timer import HARNESS, Clock, Policy, Samples, Stopwatch, collect
from perfmodel.measured.watch import Watch
from perfmodel.table import records

EXTRA = (
    "samples", "min_us", "p20_us", "p80_us", "timer", "l2", "sets", "repeat", "error", "config",
    "registers", "spill_bytes", "shared_bytes", "clock_mhz_before", "clock_mhz_during",
    "power_w_during", "clock_mhz_after", "power_w_after", "temperature_c", "throttle",
    "predicted_us", "low_us", "high_us", "compiled_us",
    "threads", "torch", "triton", "driver", "python", "git_revision", "timestamp_utc", "reason",
    *hostload.COLUMNS,
)  # fmt: skip
"""Columns beside those of the measured-run table. `sets` is the number of copies of the inputs over
which calls rotated, `repeat` counts runs of one case, `registers` and `spill_bytes` (of a thread)
and `shared_bytes` (of a block) are the binary's, and `compiled_us` is predicted with them."""
COLUMNS = (*records.COLUMNS, *EXTRA)
KEY = (
    "device", "op", "variant", "implementation", "includes", "dtype", "kv_dtype", "direction",
    "phase", "batch", "heads_q", "heads_kv", "seq_q", "seq_kv", "head_dim", "causal", "window",
    "m", "n", "k", "rows", "cols", "inputs", "outputs", "l2", "threads", "repeat",
)  # fmt: skip
"""The columns that identify a case when a run is resumed."""

SOURCE = "perfmodel measure"
FAILED = "failed"
_FLOORS = 2.0  # a median below this many launch floors measures the launch
_NOISY = 0.5  # (p80 - p20) / median: a row above it is not scored
_MOST_SETS = 256
_MEMORY_SHARE = 0.7  # of the memory that one case may need
_REASON = 240  # characters


class DeviceLost(PerfmodelError):
    """The device no longer answers; finished rows are kept."""


class Reporter(Protocol):
    """Receives the progress of a run."""

    def __call__(self, done: int, total: int, what: str) -> None:
        """`done` of `total` cases are finished; `what` comes next."""


def no_cells(case: Case, implementation: str, config: str) -> Mapping[str, str]:
    """No further cells for a row."""
    return {}


@dataclass(frozen=True)
class Bench:
    """The settings of a measuring session: device, timers and checks."""

    environment: Environment
    """The device and versions of all rows."""
    policy: Policy
    """How long and how often to time."""
    stopwatches: Mapping[str, Callable[[], Stopwatch]]
    """Stopwatches by the name of their timer, tried in order. If one cannot time a case (a graph
    that cannot be captured), the next is used."""
    cold: bool
    """Whether inputs must not be in the caches when a call starts."""
    rotates: bool = False
    """Whether the first stopwatch rotates over several sets of inputs to that end."""
    floor_s: float = 0.0
    """Seconds of an empty call."""
    settle: Callable[[], None] = lambda: None
    """Frees what a case held; raises where the device is lost."""
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    """Tells the time."""
    seed: int = 0
    """Seed of the random inputs."""
    watched: bool = False
    """Whether a separate thread reads clock and power while a case is timed; not on a CPU, whose
    cores are being timed."""
    load: Callable[[], hostload.HostLoad] = hostload.HostLoad
    """Watches the host meanwhile."""
    most_sets: int = _MOST_SETS
    """Most copies of a case's inputs."""
    beside: Callable[[Case, str, str], Mapping[str, str]] = no_cells
    """Further cells of a row."""
    announce: Announce = unannounced
    """Is told of each case before it runs."""


@dataclass(frozen=True)
class Job:
    """One row to measure."""

    case: Case
    """The case."""
    contender: Contender
    """Who runs it."""
    repeat: int = 0
    """0 for the first time, then 1, 2, ..."""

    def __str__(self) -> str:
        suffix = f" (run {self.repeat + 1})" if self.repeat else ""
        return f"{self.contender.implementation} {describe(self.case)}{suffix}"


@dataclass(frozen=True)
class Tally:
    """Counts of a run's rows."""

    measured: int = 0
    """Rows measured."""
    failed: int = 0
    """Rows that failed."""
    kept: int = 0
    """Rows kept from an earlier run."""
    left: int = 0
    """Rows for which no time was left."""
    reasons: dict[str, int] = field(default_factory=dict)
    """How often each reason was given for a failure."""


def plan(cases: Sequence[Case], contenders: Sequence[Contender], again: float = 0.0) -> list[Job]:
    """Every case with every contender that computes it, then a share of these jobs `again`.

    The repeated jobs are spread evenly over the first run.
    """
    first = [Job(case, each) for case in cases for each in contenders if each.takes(case)]
    count = round(again * len(first))
    places = (int((i + 0.5) * len(first) / count) for i in range(count))
    return [*first, *(replace(first[place], repeat=1) for place in places)]


def measure(
    jobs: Sequence[Job],
    bench: Bench,
    journal: Journal,
    *,
    report: Reporter | None = None,
    limit_s: float | None = None,
    clock: Clock = time.monotonic,
) -> Tally:
    """Measure the jobs that are not yet in the journal, for `limit_s` seconds at most.

    Raises `DeviceLost` if the device no longer answers after a case; the case's row is written
    first.
    """
    begin = clock()
    kept = measured = failed = 0
    reasons: dict[str, int] = {}
    for index, job in enumerate(jobs):
        identity = _identity(job, bench)
        if journal.has(identity):
            kept += 1
            continue
        if limit_s is not None and clock() - begin >= limit_s:
            return Tally(measured, failed, kept, len(jobs) - index, reasons)
        if report is not None:
            report(index, len(jobs), str(job))
        bench.announce("runs", identity)
        row = identity | attempt(job.case, job.contender, bench)
        journal.append(row)
        measured += 1
        if row["flag"] == FAILED:
            failed += 1
            reasons[row["reason"]] = reasons.get(row["reason"], 0) + 1
        _settle(bench, job.case)
    if report is not None:
        report(len(jobs), len(jobs), "")
    return Tally(measured, failed, kept, 0, reasons)


def describe(case: Case) -> str:
    """A case in a few words, for a progress bar."""
    names = ("batch", "heads_q", "seq_q", "seq_kv", "head_dim", "m", "n", "k", "rows", "cols")
    sizes = "×".join(str(value) for name in names if (value := getattr(case, name)) is not None)
    words = (case.op, case.variant, case.direction if case.direction != "fwd" else "", case.dtype)
    return " ".join((*filter(None, words), sizes))


def attempt(case: Case, contender: Contender, bench: Bench) -> dict[str, str]:
    """Run a case; returns the cells of its times, or of the reason why there are none."""
    before = bench.environment.gauge.read()
    cells = {"clock_mhz_before": _number(before.clock_mhz), "harness": _harness(bench)}
    sets = input_sets(case, bench)
    try:
        _check_memory(case, bench)
        prepared = contender.prepare(case, sets, bench.seed)
        error = prepared.error()
        cells |= {"error": f"{error:.3g}", "config": prepared.config, "sets": str(sets)}
        cells |= bench.beside(case, contender.implementation, prepared.config)
        cells |= {name: str(value) for name, value in prepared.resources().items()}
        _check_error(case, error)
        load = bench.load()
        samples, state = _collect(prepared, bench)
        host = load.seen(samples) if samples.timer == "wall" else hostload.UNSEEN
    except PerfmodelError as failure:
        return cells | _failure(str(failure), bench)
    except Exception as failure:  # any error of a library is that case's result
        return cells | _failure(describe_failure(failure), bench)
    after = bench.environment.gauge.read()
    marks = host.flagged(flag(case, samples, bench, sets))
    labels = {"harness": HARNESS[samples.timer], "flag": marks}
    return cells | times(samples) | labels | host.cells() | _state(after) | state | _stamp(bench)


def input_sets(case: Case, bench: Bench) -> int:
    """Number of input sets to rotate over, so that each has left the cache before it is used
    again."""
    if not (bench.cold and bench.rotates):
        return 1
    cache = 3 * bench.environment.cache_bytes
    demand = int(cache // case.compulsory_bytes) + 2 if cache else 1
    room = int(_MEMORY_SHARE * bench.environment.memory_bytes // (2 * case.compulsory_bytes))
    return max(min(demand, bench.most_sets, room), 1)


class _Unfit(PerfmodelError):
    """A case that cannot be run or whose result is wrong."""


def _check_memory(case: Case, bench: Bench) -> None:
    room = bench.environment.memory_bytes * _MEMORY_SHARE
    if room and case.compulsory_bytes > room:
        demand = case.compulsory_bytes / 1e9
        raise _Unfit(f"out of memory: needs {demand:.1f} GB, {room / 1e9:.1f} GB may be used")


def _check_error(case: Case, error: float) -> None:
    from perfmodel.measured.references import tolerance

    limit = tolerance(case)
    if not error <= limit:
        raise _Unfit(f"wrong result: error {error:.3g} against the reference, {limit:.1g} allowed")


def _collect(prepared: Prepared, bench: Bench) -> tuple[Samples, dict[str, str]]:
    """Times by the first stopwatch that can time the case, and the device's state meanwhile."""
    watches = [
        watch for name, watch in bench.stopwatches.items() if name != "graph" or prepared.capturable
    ]
    if not watches:
        raise _Unfit("cannot be captured in a graph; time it with --timer events")
    *rest, last = watches
    for stopwatch in rest:
        try:
            return _sample(prepared, stopwatch(), bench)
        except Exception as error:  # this timer does not work for the library
            if "out of memory" in str(error).lower():
                raise
            bench.settle()
    return _sample(prepared, last(), bench)


def _sample(
    prepared: Prepared, stopwatch: Stopwatch, bench: Bench
) -> tuple[Samples, dict[str, str]]:
    if not bench.watched:
        return collect(prepared.calls, stopwatch, bench.policy), {}
    with Watch(bench.environment.gauge) as watch:
        samples = collect(prepared.calls, stopwatch, bench.policy)
    return samples, {
        "clock_mhz_during": _number(watch.clock_mhz),
        "power_w_during": _number(watch.power_w),
        "throttle": watch.throttle,
    }


def _settle(bench: Bench, case: Case) -> None:
    try:
        bench.settle()
    except Exception as error:
        raise DeviceLost(
            f"the device no longer answers after {describe(case)} ({describe_failure(error)}); "
            "rows so far are kept: run again with --resume"
        ) from None


def _identity(job: Job, bench: Bench) -> dict[str, str]:
    return {
        **job.case.columns(),
        **bench.environment.columns,
        "source": SOURCE,
        "device": bench.environment.device,
        "implementation": job.contender.implementation,
        "l2": "cold" if bench.cold else "warm",
        "repeat": str(job.repeat),
    }


def _harness(bench: Bench) -> str:
    return HARNESS[next(iter(bench.stopwatches))]


def times(samples: Samples) -> dict[str, str]:
    """The cells of a row for the median time and the spread."""
    micro = 1e6
    return {
        "measured_us": f"{samples.median * micro:.6g}",
        "min_us": f"{min(samples.seconds) * micro:.6g}",
        "p20_us": f"{samples.quantile(0.2) * micro:.6g}",
        "p80_us": f"{samples.quantile(0.8) * micro:.6g}",
        "samples": str(len(samples.seconds)),
        "timer": samples.timer,
    }


def flag(case: Case, samples: Samples, bench: Bench, sets: int) -> str:
    """The row's flag if its time is not that of the kernel with cold caches; else empty.

    Data stays in the last cache if all `sets` of a case fit in it together, unless caches are
    flushed before each call.
    """
    if samples.median < _FLOORS * bench.floor_s:
        return "timer_floor"
    if samples.spread > _NOISY:
        return "noisy"
    flushed = bench.cold and not bench.rotates
    if not flushed and sets * case.compulsory_bytes < bench.environment.cache_bytes:
        return "l2_resident"
    return ""


def _failure(reason: str, bench: Bench) -> dict[str, str]:
    return {"flag": FAILED, "measured_us": "", "reason": reason[:_REASON], **_stamp(bench)}


def describe_failure(failed: BaseException) -> str:
    """An error as one line: its class and message, or "out of memory" first."""
    text = " ".join(str(failed).split())
    kind = type(failed).__name__
    if "out of memory" in text.lower() or kind in ("OutOfMemoryError", "MemoryError"):
        return f"out of memory: {text}"
    return f"{kind}: {text}" if text else kind


def _state(state: State) -> dict[str, str]:
    return {
        "clock_mhz_after": _number(state.clock_mhz),
        "power_w_after": _number(state.power_w),
        "temperature_c": _number(state.temperature_c),
        "throttle": state.throttle,
    }


def _stamp(bench: Bench) -> dict[str, str]:
    return {"timestamp_utc": bench.now().strftime("%Y-%m-%dT%H:%M:%SZ")}


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.5g}"
