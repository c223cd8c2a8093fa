"""Measuring: stopwatches on a fake clock, the loop on fake kernels, and torch on small cases."""

from __future__ import annotations

import csv
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path

import pytest
from folders import ROOT
from measuring import CASES, FakeKernel, FakeStopwatch, fake_bench

from perfmodel import cases
from perfmodel.cases import Case, gemm, rowwise
from perfmodel.count import compulsory_bytes
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.measured import grids, references
from perfmodel.measured.environment import State
from perfmodel.measured.journal import Journal
from perfmodel.measured.measure import (
    COLUMNS,
    KEY,
    Bench,
    DeviceLost,
    describe_failure,
    flag,
    input_sets,
    measure,
    plan,
)
from perfmodel.measured.rivals import Prepared
from perfmodel.measured.timer import (
    DeviceEvents,
    GraphReplay,
    Policy,
    Samples,
    WallClock,
    calls_per_sample,
    collect,
)
from perfmodel.measured.watch import Watch


class FakeClock:
    """Time that passes only when somebody works."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def run(
    path: Path, kernels: list[FakeKernel], bench: Bench | None = None, **more: object
) -> object:
    with Journal(path, COLUMNS, KEY).open(resume=True) as journal:
        return measure(plan(CASES, kernels), bench or fake_bench(), journal, **more)  # type: ignore[arg-type]


def rows(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


# ---- Timing, on a fake clock ---------------------------------------------------------------------


def test_a_wall_clock_measures_what_a_call_takes() -> None:
    clock = FakeClock()
    policy = Policy(samples=10, warmup_s=0.05, sample_s=0.01)
    found = collect((lambda: clock.work(1e-3),), WallClock(clock), policy)
    assert found.seconds == pytest.approx([1e-3] * 10)
    assert found.calls_per_sample == 10


def test_warming_up_goes_by_time_and_leaves_the_first_call_out() -> None:
    clock = FakeClock()
    times = iter([5.0] + [0.01] * 1000)
    calls: list[float] = []

    def call() -> None:
        seconds = next(times)
        calls.append(seconds)
        clock.work(seconds)

    rough = WallClock(clock).warm((call,), Policy(warmup_s=0.1))
    assert rough == pytest.approx(0.01)
    assert len(calls) == 1 + 10


def test_slow_calls_stop_at_the_time_limit_with_enough_samples() -> None:
    clock = FakeClock()
    policy = Policy(samples=50, least_samples=5, warmup_s=0.0, limit_s=1.0)
    found = collect((lambda: clock.work(10.0),), WallClock(clock), policy)
    assert len(found.seconds) == 5
    quick = collect((lambda: clock.work(0.3),), WallClock(clock), policy)
    assert len(quick.seconds) == 5  # 0.3 s each: the limit is passed after the fourth


def test_flushing_is_outside_the_time_and_before_every_call() -> None:
    clock = FakeClock()
    order: list[str] = []

    def flush() -> None:
        order.append("flush")
        clock.work(7.0)

    def call() -> None:
        order.append("call")
        clock.work(1e-3)

    found = collect((call,), WallClock(clock, flush), Policy(samples=3, warmup_s=0, limit_s=1e9))
    assert found.seconds == pytest.approx([1e-3] * 3)
    assert order[-6:] == ["flush", "call"] * 3


def test_calls_rotate_over_the_sets_of_inputs() -> None:
    clock = FakeClock()
    order: list[int] = []

    def call(i: int) -> None:
        order.append(i)
        clock.work(1e-3)

    calls = tuple(partial(call, i) for i in range(3))
    collect(calls, WallClock(clock), Policy(samples=4, warmup_s=0, sample_s=6e-3))
    taken = order[-4 * 6 :]
    assert all(b == (a + 1) % 3 for a, b in pairwise(taken))


@pytest.mark.parametrize(
    ("rough", "sets", "expected"),
    [(1e-6, 1, 1000), (1e-3, 1, 2), (1.0, 1, 1), (1e-3, 8, 8), (0.0, 1, 1000), (1e-5, 7, 203)],
)
def test_calls_in_a_sample(rough: float, sets: int, expected: int) -> None:
    assert calls_per_sample(rough, sets, Policy(sample_s=2e-3, most_calls=1000)) == expected


def test_quantiles_are_linear_between_samples() -> None:
    found = Samples((4.0, 1.0, 3.0, 2.0, 5.0), 1, "wall")
    assert (found.median, found.quantile(0.0), found.quantile(1.0)) == (3.0, 1.0, 5.0)
    assert found.quantile(0.2) == pytest.approx(1.8)
    assert found.spread == pytest.approx((4.2 - 1.8) / 3.0)


class FakeCuda:
    """Events on a fake clock; a graph keeps the calls that are made while it is captured."""

    def __init__(self, clock: FakeClock, *, captures: bool = True) -> None:
        self.cuda = self
        self._clock = clock
        self._captures = captures
        self._capturing: list[float] | None = None

    def launch(self, seconds: float) -> None:
        if self._capturing is None:
            self._clock.work(seconds)
        elif self._captures:
            self._capturing.append(seconds)

    def synchronize(self) -> None:
        pass

    def Event(self, enable_timing: bool) -> FakeEvent:
        return FakeEvent(self._clock)

    def CUDAGraph(self) -> FakeGraph:
        return FakeGraph(self._clock)

    @contextmanager
    def graph(self, graph: FakeGraph) -> Iterator[None]:
        self._capturing = graph.work
        yield
        self._capturing = None


class FakeEvent:
    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.at = 0.0

    def record(self) -> None:
        self.at = self._clock()

    def elapsed_time(self, other: FakeEvent) -> float:
        return (other.at - self.at) * 1e3


class FakeGraph:
    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.work: list[float] = []

    def replay(self) -> None:
        for seconds in self.work:
            self._clock.work(seconds)


def test_device_events_leave_the_flush_out() -> None:
    clock = FakeClock()
    torch = FakeCuda(clock)
    stopwatch = DeviceEvents(partial(torch.launch, 9.0), torch)
    found = collect((partial(torch.launch, 5e-4),), stopwatch, Policy(samples=12, limit_s=1e9))
    assert found.seconds == pytest.approx([5e-4] * 12)
    assert found.timer == "events"


def test_device_events_share_a_pair_where_nothing_is_flushed() -> None:
    clock = FakeClock()
    torch = FakeCuda(clock)
    calls = (partial(torch.launch, 1e-4), partial(torch.launch, 3e-4))
    found = collect(calls, DeviceEvents(None, torch), Policy(samples=4, sample_s=2e-3))
    assert found.calls_per_sample == 10
    assert found.seconds == pytest.approx([2e-4] * 4)


def test_a_graph_is_captured_once_and_replayed() -> None:
    clock = FakeClock()
    torch = FakeCuda(clock)
    found = collect((partial(torch.launch, 1e-3),), GraphReplay(torch), Policy(samples=6))
    assert found.seconds == pytest.approx([1e-3] * 6)
    assert found.calls_per_sample == 2


def test_work_that_escapes_the_graph_is_refused() -> None:
    clock = FakeClock()
    torch = FakeCuda(clock, captures=False)
    with pytest.raises(RuntimeError, match="does less than the calls"):
        collect((partial(torch.launch, 1e-3),), GraphReplay(torch), Policy(samples=6))


# ---- The loop, on fake kernels -------------------------------------------------------------------


def test_a_row_holds_times_and_circumstances(tmp_path: Path) -> None:
    run(tmp_path / "runs.csv", [FakeKernel("a", error=1e-5)])
    first = rows(tmp_path / "runs.csv")[0]
    assert {name: first[name] for name in (
        "device", "op", "implementation", "harness", "dtype", "m", "measured_us", "min_us",
        "p20_us", "p80_us", "samples", "timer", "l2", "error", "clock_mhz_before", "power_w_after",
        "temperature_c", "throttle", "torch", "timestamp_utc", "flag", "reason",
    )} == {
        "device": "fake", "op": "gemm", "implementation": "a", "harness": "wall_clock",
        "dtype": "fp32", "m": "16", "measured_us": "2000", "min_us": "1000", "p20_us": "1400",
        "p80_us": "2600", "samples": "3", "timer": "wall", "l2": "warm", "error": "1e-05",
        "clock_mhz_before": "1980", "power_w_after": "700", "temperature_c": "55",
        "throttle": "power cap", "torch": "0", "timestamp_utc": "2026-01-02T03:04:05Z",
        "flag": "noisy", "reason": "",
    }  # fmt: skip


def test_failures_are_rows_and_the_rest_goes_on(tmp_path: Path) -> None:
    kernel = FakeKernel(
        "a",
        failing={
            16: RuntimeError("CUDA out of memory.\nTried to allocate 9 GiB"),
            32: ValueError("no such head dimension"),
            48: 0.5,
            64: float("nan"),
        },
    )
    tally = run(tmp_path / "runs.csv", [kernel])
    found = rows(tmp_path / "runs.csv")
    assert len(found) == len(CASES)
    assert [(row["flag"], row["measured_us"]) for row in found[:4]] == [("failed", "")] * 4
    assert [row["reason"] for row in found[:4]] == [
        "out of memory: CUDA out of memory. Tried to allocate 9 GiB",
        "ValueError: no such head dimension",
        "wrong result: error 0.5 against the reference, 0.0002 allowed",
        "wrong result: error nan against the reference, 0.0002 allowed",
    ]
    assert all(row["measured_us"] for row in found[4:])
    assert (tally.measured, tally.failed) == (len(CASES), 4)  # type: ignore[attr-defined]


def test_a_case_beyond_the_memory_is_not_even_tried(tmp_path: Path) -> None:
    kernel = FakeKernel("a")
    small = replace(fake_bench().environment, memory_bytes=20_000.0)
    run(tmp_path / "runs.csv", [kernel], fake_bench(environment=small))
    reasons = {row["reason"] for row in rows(tmp_path / "runs.csv")}
    assert any(reason.startswith("out of memory: needs") for reason in reasons)
    assert len(kernel.ran) < len(CASES)


def test_finished_cases_are_not_run_again(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    run(path, [FakeKernel("a")])
    before = path.read_bytes()
    kernel = FakeKernel("a")
    tally = run(path, [kernel])
    assert kernel.ran == []
    assert tally.kept == len(CASES)  # type: ignore[attr-defined]
    assert path.read_bytes() == before


def test_the_time_limit_leaves_cases_for_later(tmp_path: Path) -> None:
    clock = FakeClock()
    kernel = FakeKernel("a")
    report = lambda done, total, what: clock.work(1.0)  # noqa: E731
    tally = run(tmp_path / "runs.csv", [kernel], clock=clock, limit_s=5.0, report=report)
    assert (tally.measured, tally.left) == (5, len(CASES) - 5)  # type: ignore[attr-defined]


def test_an_interrupted_run_keeps_its_rows_and_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    kernel = FakeKernel("a", failing={160: KeyboardInterrupt()})  # type: ignore[dict-item]
    kernel.prepare = partial(_interrupt, kernel.prepare)  # type: ignore[method-assign]
    with pytest.raises(KeyboardInterrupt):
        run(path, [kernel])
    assert len(rows(path)) == 9
    run(path, [FakeKernel("a")])
    assert [row["m"] for row in rows(path)] == [str(case.m) for case in CASES]


def _interrupt(prepare: object, case: Case, sets: int, seed: int) -> Prepared:
    if case.m == 160:
        raise KeyboardInterrupt
    return prepare(case, sets, seed)  # type: ignore[operator]


def test_a_lost_device_stops_the_run_after_its_row(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"

    def settle() -> None:
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    with pytest.raises(DeviceLost, match="no longer answers after gemm fp32 1×16×32×64"):
        run(path, [FakeKernel("a")], fake_bench(settle=settle))
    assert len(rows(path)) == 1


def test_a_stopwatch_that_cannot_leaves_it_to_the_next(tmp_path: Path) -> None:
    class NoGraph(FakeStopwatch):
        timer = "graph"

        def samples(self, *_: object) -> list[float]:
            raise RuntimeError("operation not permitted when stream is capturing")

    class Events(FakeStopwatch):
        timer = "events"

    bench = fake_bench(stopwatches={"graph": NoGraph, "events": Events})
    run(tmp_path / "runs.csv", [FakeKernel("a")], bench)
    first = rows(tmp_path / "runs.csv")[0]
    assert (first["timer"], first["harness"], first["flag"]) == ("events", "do_bench", "noisy")


def test_flags_say_what_else_a_time_shows() -> None:
    steady = Samples((1e-5, 1.01e-5, 1.02e-5), 1, "wall")
    small, large = rowwise("softmax", 64, 64, "fp32"), rowwise("softmax", 4096, 4096, "fp32")
    assert flag(small, steady, fake_bench(floor_s=8e-6), 1) == "timer_floor"
    assert flag(small, Samples((1e-5, 2e-5, 9e-5), 1, "wall"), fake_bench(), 1) == "noisy"
    assert flag(small, steady, fake_bench(), 1) == "l2_resident"
    assert flag(large, steady, fake_bench(), 1) == ""
    assert flag(small, steady, fake_bench(cold=True), 1) == ""


@pytest.mark.parametrize(("sets", "expected"), [(4, "l2_resident"), (1000, "")])
def test_cold_is_what_the_sets_of_inputs_make_it(sets: int, expected: str) -> None:
    """Calls that take sets in turn find them in a cache that holds all of them."""
    steady = Samples((1e-5, 1.01e-5, 1.02e-5), 1, "graph")
    turning = fake_bench(cold=True, rotates=True)
    assert flag(rowwise("softmax", 64, 64, "fp32"), steady, turning, sets) == expected
    assert flag(gemm(32, 32, 32, "fp32"), steady, turning, sets) == expected


def test_cold_inputs_rotate_over_more_than_the_cache_holds() -> None:
    case = gemm(256, 256, 256, "fp32")  # 0.79 MB
    cold = fake_bench(cold=True, rotates=True)
    sets = input_sets(case, cold)
    assert sets * case.compulsory_bytes > 3 * cold.environment.cache_bytes
    assert input_sets(gemm(8192, 8192, 8192, "fp32"), cold) == 2
    assert input_sets(case, fake_bench(cold=True)) == 1
    assert input_sets(case, fake_bench()) == 1


def test_cases_run_again_are_rows_of_their_own(tmp_path: Path) -> None:
    path, kernel = tmp_path / "runs.csv", FakeKernel("a")
    with Journal(path, COLUMNS, KEY).open(resume=True) as journal:
        measure(plan(CASES, [kernel], again=0.1), fake_bench(), journal)  # type: ignore[list-item]
    found = rows(path)
    assert [row["repeat"] for row in found] == ["0"] * len(CASES) + ["1"] * 3
    assert len({row["m"] for row in found[len(CASES) :]}) == 3


def test_clocks_are_read_while_a_case_is_timed(tmp_path: Path) -> None:
    run(tmp_path / "runs.csv", [FakeKernel("a")], fake_bench(watched=True))
    first = rows(tmp_path / "runs.csv")[0]
    assert (first["clock_mhz_during"], first["power_w_during"]) == ("1980", "700")
    assert first["throttle"] == "power cap"


def test_a_watch_takes_the_middle_of_what_it_saw() -> None:
    readings = iter([State(1000.0, None, 100.0, None, "thermal"), State(2000.0), State(1500.0)])

    class Gauge:
        def read(self) -> State:
            return next(readings, State(1500.0, None, None, None, "power cap"))

    with Watch(Gauge(), every_s=0.001) as watch:
        time.sleep(0.1)
    assert watch.clock_mhz == 1500.0
    assert watch.power_w == 100.0
    assert watch.throttle == "thermal+power cap"


def test_a_gauge_that_reads_nothing_leaves_the_cells_empty() -> None:
    class Gauge:
        def read(self) -> State:
            return State()

    with Watch(Gauge()) as watch:
        pass
    assert (watch.clock_mhz, watch.power_w, watch.throttle) == (None, None, "")


def test_each_case_is_announced_before_it_runs(tmp_path: Path) -> None:
    kernel = FakeKernel("a")
    told: list[tuple[str, str, int]] = []
    bench = fake_bench(
        announce=lambda table, identity: told.append((table, identity["m"], len(kernel.ran)))
    )
    for _ in range(2):
        run(tmp_path / "runs.csv", [kernel], bench)
    assert told == [("runs", str(case.m), i) for i, case in enumerate(CASES)]


def test_a_failure_is_one_line() -> None:
    assert describe_failure(ValueError("a\n  b")) == "ValueError: a b"
    assert describe_failure(MemoryError()) == "out of memory: "
    assert describe_failure(KeyError()) == "KeyError"


# ---- Cases ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", grids.GRIDS)
def test_grids_are_cases_with_labels_and_problems(name: str) -> None:
    grid = grids.grid(name)
    assert len(set(grid)) == len(grid)
    for case in grid:
        assert cases.from_label(case.label()) == case
        if case.dtype not in ("w8a16", "w4a16"):
            assert case.problem().sizes()
        assert case.compulsory_bytes > 0


@pytest.mark.parametrize(
    ("label", "least_bytes"),
    [
        # 8-bit operands, a 16-bit result.
        ("op=gemm|dtype=w8a8_int8|m=64|n=128|k=256", 64 * 256 + 256 * 128 + 2 * 64 * 128),
        # Half a byte a weight, and a 16-bit scale for 128 of them.
        (
            "op=gemm|dtype=w4a16|m=64|n=128|k=256",
            2 * 64 * 256 + 256 * 128 * (0.5 + 2 / 128) + 2 * 64 * 128,
        ),
        # 8-bit queries, keys and values, 16-bit results.
        (
            "op=attention|dtype=fp8|kv_dtype=fp8|phase=decode|batch=2|heads_q=8|heads_kv=2|seq_q=1"
            "|seq_kv=100|head_dim=64",
            2 * 64 * (8 + 2 * 2 * 100 + 2 * 8),
        ),
        # Q, K, V, O and dO in, dQ, dK and dV out, 16 bits each; a 32-bit log-sum-exp a query.
        (
            "op=attention|dtype=bf16|direction=bwd|phase=prefill|batch=1|heads_q=1|heads_kv=1"
            "|seq_q=100|seq_kv=100|head_dim=64",
            8 * 2 * 100 * 64 + 4 * 100,
        ),
    ],
)
def test_compulsory_bytes_are_those_of_the_count(label: str, least_bytes: float) -> None:
    """What decides whether a case fits a device is what the model counts as its least."""
    case = cases.from_label(f"perfmodel|{label}")
    assert case.compulsory_bytes == least_bytes == compulsory_bytes(case.problem())


def test_the_full_grid_covers_what_it_promises() -> None:
    grid = grids.grid("full")
    prefill = [c for c in grid if c.op == "attention" and c.phase == "prefill"]
    assert {c.seq_q for c in prefill} >= {512, 1024, 2048, 4096, 8192, 16384, 32768}
    assert {c.head_dim for c in prefill} == {64, 128, 256}
    assert {(c.direction, c.causal) for c in prefill} == {
        (way, causal) for way in ("fwd", "bwd") for causal in (True, False)
    }
    assert {c.size("heads_q") // c.size("heads_kv") for c in prefill} >= {1, 4, 8}
    assert {c.dtype for c in prefill} >= {"bf16", "fp16", "fp8"}
    decode = [c for c in grid if c.phase == "decode"]
    assert {c.batch for c in decode} >= {1, 128}
    assert {c.seq_kv for c in decode} >= {1024, 131072}
    streams = [c.compulsory_bytes for c in grid if c.op == "pointwise"]
    assert min(streams) < 2e6
    assert max(streams) > 8e9


def test_a_table_of_ones_own_is_a_grid(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("op,dtype,m,n,k\ngemm,bf16,64,32,16\n")
    assert grids.grid(str(path)) == (
        cases.from_label("perfmodel|op=gemm|dtype=bf16|m=64|n=32|k=16"),
    )


def test_wrong_names_are_named() -> None:
    with pytest.raises(UnknownName, match="did you mean cpu-quick"):
        grids.grid("cpu-quik")
    with pytest.raises(UnknownName, match="did you mean attention"):
        grids.only(grids.grid("quick"), ("atention",))
    with pytest.raises(ProblemError, match="does not name a case"):
        cases.from_label("forward")
    for size in ("1.5", "²", "-1", "1" * 5000):
        with pytest.raises(ProblemError, match="not a whole number"):
            cases.from_label(f"perfmodel|op=gemm|dtype=fp32|m={size}")


# ---- The real thing, small -----------------------------------------------------------------------

SMALL = (
    cases.attention(1, 4, 2, 40, 40, 16, causal=True, dtype="fp32"),
    cases.attention(2, 4, 1, 1, 70, 32, causal=True, dtype="bf16"),
    cases.attention(1, 2, 2, 33, 33, 8, dtype="fp32"),
    gemm(33, 20, 47, "bf16"),
    gemm(5, 6, 7, "fp32", batch=3),
    rowwise("softmax", 9, 33, "fp32"),
    rowwise("layernorm", 9, 33, "bf16"),
    rowwise("rmsnorm", 300, 33, "fp32"),
    rowwise("layernorm", 300, 33, "fp32", "bwd"),
    *(cases.pointwise(name, 4096, "fp32") for name in ("copy", "scale", "add", "triad", "gelu")),
)


def _pairs() -> list[tuple[object, Case]]:
    pytest.importorskip("torch")
    from perfmodel.measured.rivals import rivals

    return [(rival, case) for case in SMALL for rival in rivals("cpu") if rival.takes(case)]


def test_rivals_agree_with_the_reference() -> None:
    pairs = _pairs()
    assert len(pairs) >= len(SMALL) + 3  # attention has two
    for rival, case in pairs:
        error = rival.prepare(case, 1, 3).error()  # type: ignore[attr-defined]
        assert error <= references.tolerance(case), (rival, case, error)


def test_a_wrong_result_is_seen() -> None:
    torch = pytest.importorskip("torch")
    for case in SMALL:
        inputs = references.draw(case, "cpu", 1)
        rival = next(r for r, c in _pairs() if c == case)
        outputs = rival.build(case, inputs)()  # type: ignore[attr-defined]
        name = next(iter(outputs))
        good = outputs[name].detach().clone()
        assert references.error(case, inputs, {**outputs, name: good}) <= references.tolerance(case)
        halved = good.clone()
        halved.reshape(-1)[: good.numel() // 2] *= 0.5
        assert references.error(case, inputs, {**outputs, name: halved}) > references.tolerance(
            case
        )
        unwritten = good.clone()
        unwritten.reshape(-1)[-1] = torch.nan
        assert references.error(case, inputs, {**outputs, name: unwritten}) == float("inf")


def test_gradients_agree_with_torch() -> None:
    torch = pytest.importorskip("torch")
    case = cases.attention(1, 4, 2, 20, 30, 8, causal=True, dtype="fp32", direction="bwd")
    inputs = references.draw(case, "cpu", 0)
    q, k, v = (inputs[name].double().requires_grad_() for name in "QKV")
    wide_k, wide_v = (t.repeat_interleave(2, 1) for t in (k, v))
    hidden = torch.ones(20, 30, dtype=torch.bool).triu(11)
    scores = (q @ wide_k.transpose(2, 3) * 8**-0.5).masked_fill(hidden, -torch.inf)
    (torch.softmax(scores, -1) @ wide_v).backward(inputs["dO"].double())
    found = {"dQ": q.grad, "dK": k.grad, "dV": v.grad}
    assert references.error(case, inputs, found) < 1e-6


def test_gradients_of_libraries_can_be_captured() -> None:
    """By the operators that autograd would call: here those of a processor."""
    torch = pytest.importorskip("torch")
    from perfmodel.measured.gradients import attention_gradients, norm_gradients

    q, k, v, dout = (torch.randn(1, 4, 33, 16, dtype=torch.float64) for _ in range(4))
    given = {"query": q, "key": k, "value": v, "grad_out": dout, "is_causal": True}
    found = attention_gradients("flash_attention_for_cpu", given)()
    leaves = [t.clone().requires_grad_() for t in (q, k, v)]
    out = torch.nn.functional.scaled_dot_product_attention(*leaves, is_causal=True)
    for mine, theirs in zip(found, torch.autograd.grad(out, leaves, dout), strict=True):
        assert torch.allclose(mine, theirs)
    x, dy = (torch.randn(9, 32, dtype=torch.float64) for _ in range(2))
    gamma, beta = (torch.randn(32, dtype=torch.float64) for _ in range(2))
    leaves = [t.clone().requires_grad_() for t in (x, gamma, beta)]
    out = torch.nn.functional.layer_norm(leaves[0], (32,), *leaves[1:], 1e-5)
    found = norm_gradients(True, x, dy, gamma, beta, 1e-5)()
    for mine, theirs in zip(found, torch.autograd.grad(out, leaves, dy), strict=True):
        assert torch.allclose(mine, theirs)


@pytest.mark.parametrize("heads_kv", [4, 2])
@pytest.mark.parametrize("backend", ["flash_attention", "cudnn_attention", "efficient_attention"])
def test_the_backward_operators_of_a_gpu_take_what_their_forwards_give(
    backend: str, heads_kv: int
) -> None:
    """On torch's meta device, which checks arguments and shapes and computes nothing."""
    torch = pytest.importorskip("torch")
    from perfmodel.measured.gradients import attention_gradients

    def tensor(heads: int) -> object:
        return torch.empty(1, heads, 64, 64, device="meta", dtype=torch.bfloat16)

    given = {"query": tensor(4), "key": tensor(heads_kv), "value": tensor(heads_kv),
             "grad_out": tensor(4), "is_causal": True}  # fmt: skip
    dq, dk, dv = attention_gradients(backend, given)()
    assert dq.shape == (1, 4, 64, 64)
    assert dk.shape == dv.shape


def test_rivals_fall_back_to_autograd_where_an_operator_is_missing() -> None:
    pytest.importorskip("torch")
    from perfmodel.measured.rivals import rivals

    (norm,) = (rival for rival in rivals("cpu") if rival.implementation.endswith(":norm"))
    case = rowwise("layernorm", 30, 33, "fp32", "bwd")
    assert norm.prepare(case, 1, 3).capturable
    prepared = norm.prepare(rowwise("rmsnorm", 30, 33, "fp32", "bwd"), 1, 3)  # no such operator
    assert not prepared.capturable
    assert prepared.error() < 1e-4


def test_a_table_for_compare_comes_out_on_a_cpu(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from perfmodel.measured import session
    from perfmodel.table.records import read_table

    bench = session.bench("cpu", Policy(samples=3, least_samples=3, warmup_s=0.0, limit_s=0.01))
    found, skipped = session.contenders(bench.environment)
    with Journal(tmp_path / "runs.csv", COLUMNS, KEY).open(resume=False) as journal:
        tally = measure(plan(SMALL, found), bench, journal)
    assert (tally.failed, skipped) == (0, ())
    table = read_table(tmp_path / "runs.csv")
    assert len(table) == tally.measured
    assert set(table["op"]) == {"attention", "gemm", "softmax", "layernorm", "rmsnorm", "pointwise"}
    assert (table["device"] == bench.environment.device).all()


def test_kernels_are_contenders_too() -> None:
    """In the interpreter: the same cases, inputs drawn here, the same check."""
    pytest.importorskip("triton")
    from perfmodel.measured.contenders import Launcher, contenders

    found, _ = contenders(Launcher("cpu", "sm_90", 132))
    by_name = {each.implementation.split(":")[1]: each for each in found}
    wanted = {
        "attention-tiled": cases.attention(1, 2, 1, 40, 40, 16, causal=True, dtype="fp16"),
        "attention-decode": cases.attention(1, 4, 2, 1, 300, 16, dtype="fp32"),
        "attention-backward": cases.attention(1, 2, 2, 33, 33, 16, dtype="fp32", direction="bwd"),
        "matmul": gemm(33, 20, 47, "fp16"),
        "softmax": rowwise("softmax", 9, 33, "fp32"),
        "layernorm": rowwise("layernorm", 9, 33, "fp16"),
        "rmsnorm-backward": rowwise("rmsnorm", 33, 40, "fp32", "bwd"),
        "triad": cases.pointwise("triad", 2048, "fp32"),
        "matmul-w4a16": gemm(3, 40, 128, "w4a16"),
    }
    for name, case in wanted.items():
        assert by_name[name].takes(case), name
        prepared = by_name[name].prepare(case, 1, 0)
        assert prepared.error() <= references.tolerance(case), name
        assert prepared.config
    assert not by_name["attention-decode"].takes(wanted["attention-tiled"])
    assert not by_name["softmax"].takes(rowwise("softmax", 4, 2**18, "fp32"))


def test_measuring_loads_no_torch_until_it_measures() -> None:
    code = (
        "import sys, perfmodel.measured.measure, perfmodel.measured.contenders; "
        "import perfmodel.measured.session, perfmodel.cli.measure; "
        "assert not {'torch', 'triton', 'pandas'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--device", "tpu"], "no choice for --device named 'tpu'"),
        (["--cases", "huge", "--device", "cpu"], "no grid of cases named 'huge'"),
        (["--ops", "conv", "--device", "cpu"], "no operation named 'conv'"),
        (["--output", "runs.parquet", "--device", "cpu"], "name a .csv file"),
        (["--timer", "graph", "--device", "cpu"], "no timer on cpu named 'graph'"),
        (["--l2", "hot"], "no choice for --l2 named 'hot'"),
    ],
)
def test_bad_input_is_one_line(
    arguments: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    pytest.importorskip("torch")
    from perfmodel.cli.measure import app
    from perfmodel.errors import PerfmodelError

    monkeypatch.chdir(tmp_path)

    with pytest.raises(PerfmodelError) as caught:
        app.main(args=arguments, standalone_mode=False)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
