"""Probes: vectors that fit the instruction set, loops that time what they say, bursts."""

from __future__ import annotations

import platform
import shutil
import subprocess
from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pytest
from assembly import functions, loops, stack_traffic

from perfmodel.measured import bursts, cprobes, cpu_probes
from perfmodel.measured.bursts import Burst, Span
from perfmodel.measured.cprobes import CProbes, Gate
from perfmodel.measured.cpu_probes import CpuBench, Effort
from perfmodel.measured.microbench import sizes

X86 = platform.machine() in ("x86_64", "AMD64")
COMPILER = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler here")
needs_x86 = pytest.mark.skipif(not X86, reason="instruction sets of x86")
PROCESSORS = (("skylake-avx512", 64), ("haswell", 32), ("sandybridge", 32), ("x86-64", 16))
NARROWER = ((), ("-mno-avx512f",), ("-mno-avx512f", "-mno-avx2", "-mno-fma"), ("-mno-avx",))
STREAMS = {"stream_read": 1, "stream_copy": 2, "stream_triad": 3}


# ---- What is compiled ----------------------------------------------------------------------------


def compiled(*flags: str) -> dict[str, list[str]]:
    """The functions of the probes as this machine's compiler translates them."""
    assert COMPILER is not None
    command = [COMPILER, *cprobes.BASE, *flags, "-S", "-o", "-", str(cprobes.source())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return functions(done.stdout)


def vectors(loop: list[str], width: int) -> int:
    """Instructions on vector registers, all of them of the width in bytes."""
    names = {64: "%zmm", 32: "%ymm", 16: "%xmm"}
    for other in set(names) - {width}:
        assert not any(names[other] in line for line in loop)
    return sum(names[width] in line for line in loop)


@needs_compiler
@needs_x86
@pytest.mark.parametrize(("processor", "width"), PROCESSORS)
def test_hot_loops_use_whole_registers_and_never_the_stack(processor: str, width: int) -> None:
    """A vector wider than the instruction set's is split and spilled: 18 times too slow."""
    found = compiled(f"-march={processor}", "-mprefer-vector-width=512")
    for name, arrays in STREAMS.items():
        (loop,) = (each for each in loops(found[name]) if vectors(each, width))
        assert stack_traffic(loop) == [], name
        assert vectors(loop, width) >= 8 * arrays, name
        assert not any("call" in line for line in loop), name
    (adds,) = (each for each in loops(found["multiply_add"]) if vectors(each, width))
    assert stack_traffic(adds) == []
    fused = [line for line in adds if line.startswith("vfmadd")]
    if processor in ("skylake-avx512", "haswell"):  # 4 cycles, 2 a cycle: 8 chains at least
        assert len(fused) >= (20 if width == 64 else 12)
    else:
        assert sum("mulps" in line for line in adds) == sum("addps" in line for line in adds) >= 12
    for name in ("chase", "cycles"):
        assert all(stack_traffic(each) == [] for each in loops(found[name])), name


@needs_compiler
def test_this_machines_loops_never_use_the_stack() -> None:
    """The flags that are taken here, whatever the processor."""
    flags = ("-march=native",) if X86 else ("-mcpu=native",)
    found = compiled(*flags)
    for name in (*STREAMS, "multiply_add", "chase"):
        assert loops(found[name]), name
        assert all(stack_traffic(each) == [] for each in loops(found[name])), name


def test_stack_traffic_is_seen() -> None:
    """What the check looks for: a split vector's loop, on x86 and on Arm."""
    x86 = "multiply_add:\n.L3:\n\tmovaps\t16(%rsp), %xmm0\n\tmulps\t%xmm1, %xmm0\n\tjne\t.L3\n"
    arm = "multiply_add:\n.L3:\n\tldr\tq0, [sp, 16]\n\tfmla\tv1.4s, v0.4s, v2.4s\n\tb.ne\t.L3\n"
    for text in (x86, arm):
        (loop,) = loops(functions(text)["multiply_add"])
        assert len(loop) == 3
        assert len(stack_traffic(loop)) == 1


# ---- What the loops do ---------------------------------------------------------------------------


@pytest.fixture(scope="module", params=NARROWER if X86 else ((),), ids=" ".join)
def probes(request: pytest.FixtureRequest) -> CProbes:
    """The loops, for this processor's vectors and for narrower ones."""
    found = cprobes.load(request.param)
    if found is None:
        pytest.skip("no C compiler here")
    return found


def filled(values: np.ndarray) -> np.ndarray:
    array = cprobes.aligned(values.size)
    array[:] = values
    return array


def test_loops_do_what_they_time(probes: CProbes) -> None:
    count = 3 * cprobes.CHUNK
    a, b, c = (filled(np.arange(1, count + 1, dtype=np.float32) * i) for i in (1, 2, 0))
    spans = [probes.triad(Gate(), [a, b, c], 2)]
    np.testing.assert_allclose(c, a + 0.75 * b)
    spans.append(probes.copy(Gate(), [b, c], 1))
    np.testing.assert_array_equal(b, c)
    spans.append(probes.read(Gate(), [a], 3))
    span, end = probes.chase(Gate(), cprobes.ring(4096), 0, 4096 // cprobes.LINE)
    assert end == 0  # once around
    spans.append(span)
    added, operations = probes.multiply_add(Gate(), 1000)
    ticked, cycles = probes.cycles(Gate(), 100)
    assert operations % (2 * probes.vector_bytes // 4 * 1000) == 0
    assert operations >= 2 * 12 * probes.vector_bytes // 4 * 1000
    assert cycles == 6000
    for each in (*spans, added, ticked):
        assert each.end_s >= each.start_s > 0
        assert each.processor_s >= 0


@needs_x86
def test_vectors_are_as_wide_as_the_instruction_set(probes: CProbes) -> None:
    assert probes.vector_bytes in (16, 32, 64)
    assert f"{probes.vector_bytes}-byte vectors" in probes.method


@needs_compiler
@needs_x86
def test_flags_can_be_given_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERFMODEL_CFLAGS", "-mno-avx")
    found = cprobes.load()
    assert found is not None
    assert found.vector_bytes == 16
    monkeypatch.setenv("PERFMODEL_CFLAGS", "--no-such-flag")
    assert cprobes.load() is None


def test_without_a_compiler_there_are_no_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "/nonexistent/cc")
    assert cprobes.load() is None


@pytest.mark.parametrize("size", [64, 128, 4096, 100_000])
def test_a_ring_visits_every_line_once(size: int) -> None:
    cells = cprobes.ring(size, seed=5)
    seen, at = set(), 0
    for _ in range(len(cells)):
        seen.add(at)
        at = int(cells.reshape(-1)[at // 8])
    assert at == 0
    assert seen == {64 * i for i in range(len(cells))}


@pytest.mark.parametrize("count", [1, 100, 1000, 2**20 + 3])
def test_arrays_start_at_a_cache_line(count: int) -> None:
    array = cprobes.aligned(count)
    assert (array.size, array.dtype, array.ctypes.data % cprobes.LINE) == (count, np.float32, 0)


# ---- Bursts --------------------------------------------------------------------------------------


def span(seconds: float, share: float = 1.0, start: float = 0.0) -> Span:
    return Span(start, start + seconds, share * seconds)


def test_an_undisturbed_burst_adds_up_what_each_thread_did() -> None:
    burst = Burst((span(1.0), span(2.0)), 10.0)
    assert not burst.disturbed
    assert burst.rate == 10.0 + 5.0


@pytest.mark.parametrize(
    "burst",
    [Burst((span(1.0), span(1.0, 0.9)), 10.0), Burst((span(1.0), span(1.0, 1.0, 0.5)), 10.0)],
)
def test_a_disturbed_burst_is_never_too_fast(burst: Burst) -> None:
    """Threads that did not run together: from the first start to the last end."""
    assert burst.disturbed
    assert burst.rate <= 20.0 / max(each.end_s for each in burst.spans)


def test_the_best_is_of_the_undisturbed() -> None:
    taken = iter([span(0.1, 0.5), span(1.0), span(0.9), span(0.2, 0.5), span(0.95)])
    found = bursts.best(lambda: Burst((next(taken),), 1.0), 3)
    assert found.spans == (span(0.9),)
    assert list(taken) == []


def test_a_machine_that_is_never_at_rest_is_tried_a_few_times() -> None:
    tries: list[int] = []

    def take() -> Burst:
        tries.append(1)
        return Burst((span(1.0 / len(tries), 0.5),), 1.0)

    found = bursts.best(take, 3)
    assert found.disturbed
    assert found.rate == pytest.approx(12.0)
    assert len(tries) == 12


def test_work_on_all_cores_together() -> None:
    assert bursts.together(lambda i: float(i * i), (None,) * 4) == [0.0, 1.0, 4.0, 9.0]
    with pytest.raises(ZeroDivisionError):
        bursts.together(lambda i: 1 / (i - 2), (None,) * 4)


def test_threads_stay_where_they_are_told() -> None:
    import os

    if not hasattr(os, "sched_getaffinity"):
        pytest.skip("this system does not place threads")
    before = os.sched_getaffinity(0)
    place = max(before)
    assert bursts.together(lambda _: os.sched_getaffinity(0), (place,)) == [{place}]
    assert os.sched_getaffinity(0) == before
    bursts.stay(10_000)  # a processor that is not there is no error


# ---- The bench, on loops that only say what they were asked --------------------------------------


class FakeLoops:
    """Streams at a rate that depends on what lies between two visits; notes every call."""

    method = "fake"
    vector_bytes = 64

    def __init__(self, bytes_per_s: float) -> None:
        self.rate = bytes_per_s
        self.visits: list[tuple[int, int, int]] = []

    def _run(self, arrays: list[np.ndarray], reps: int) -> Span:
        first = arrays[0]
        offset = first.ctypes.data - (first.base.ctypes.data if first.base is not None else 0)
        self.visits.append((offset // 4, first.size, reps))
        return span(first.nbytes * len(arrays) * reps / self.rate)

    def read(self, gate: Gate, arrays: list[np.ndarray], reps: int) -> Span:
        return self._run(arrays, reps)

    copy = triad = read

    def cycles(self, gate: Gate, reps: int) -> tuple[Span, int]:
        return span(reps / 4e9), reps

    multiply_add = cycles


def bench(loops: FakeLoops, cores: int = 1) -> CpuBench:
    effort = Effort(tries=3, burst_s=1e-3, per_octave=1, product_s=0.0, load_s=0.0)
    return CpuBench(loops, (None,) * cores, effort, lambda what: None)  # type: ignore[arg-type]


@pytest.mark.parametrize("cores", [1, 3])
def test_curves_hold_the_rate_of_all_cores(cores: int) -> None:
    found = bench(FakeLoops(1e9), cores).bandwidths(2**20 * cores)
    assert set(found) == {"read", "copy", "triad"}
    for curve in found.values():
        assert [size for size, _ in curve.points] == sizes(2**14 * cores, 2**20 * cores, 1)
        assert [rate for _, rate in curve.points] == pytest.approx([cores * 1e9] * 7)
        assert curve.disturbed == ()
    rates, _, disturbed = bench(FakeLoops(1e9), cores).core_rates()
    assert rates == {"clock": pytest.approx(4e9), "vector.fp32": pytest.approx(cores * 4e9)}
    assert disturbed == ()


def test_a_large_working_set_is_read_in_slices_one_after_another() -> None:
    """What a burst reads was last read a whole pass ago, so that no cache holds it."""
    loops = FakeLoops(1e9)
    count = 2**22  # 16 MiB at 1 GB/s: 16 ms, bursts of 1 ms
    bench(loops)._stream("read", 4 * count, [cprobes.aligned(count)])
    slices = [(start, size) for start, size, _ in loops.visits if size < count]
    assert len(slices) == 3
    assert all(a + size == b for (a, size), (b, _) in pairwise(slices))
    assert all(reps == 1 for *_, reps in loops.visits)
    small = FakeLoops(1e9)
    bench(small)._stream("read", 2**14, [cprobes.aligned(count)])
    assert {size for _, size, _ in small.visits} == {2**12}
    assert small.visits[-1][2] == pytest.approx(1e-3 * 1e9 / 2**14, rel=0.02)


def test_latency_goes_on_around_the_ring(monkeypatch: pytest.MonkeyPatch) -> None:
    """Walking the same cells again would find them in a cache."""
    starts: Iterator[int] = iter(range(10**6))
    seen: list[int] = []

    class Chase(FakeLoops):
        def chase(self, gate: Gate, cells: np.ndarray, start: int, steps: int) -> tuple[Span, int]:
            seen.append(start)
            return span(steps * 1e-7), next(starts) + 1

    found = bench(Chase(1e9)).latency(2**15)["latency"]
    assert [value for _, value in found.points] == pytest.approx([1e-7] * 3)
    assert len(set(seen)) >= len(seen) - 2  # each ring starts anew, and only there
    monkeypatch.setattr(cpu_probes, "_gather", lambda size: 1e-9)
    gathers = CpuBench(None, (None,), bench(FakeLoops(1)).effort, lambda what: None).latency(2**16)
    assert list(gathers) == ["gather"]
    assert "not the latency" in gathers["gather"].method


def test_numpy_stands_in_for_streams() -> None:
    loops = cpu_probes.NumpyStreams()
    a, b, c = (np.full(1000, value, np.float32) for value in (1, 2, 0))
    assert loops.triad(Gate(), [a, b, c], 2).seconds > 0
    np.testing.assert_allclose(c, 2.5)
    loops.copy(Gate(), [a, c], 1)
    np.testing.assert_array_equal(a, c)
    assert loops.read(Gate(), [a], 3).processor_s >= 0


def test_sizes_are_even_in_the_logarithm() -> None:
    assert sizes(2**10, 2**12, 2) == [1024, 1448, 2048, 2896, 4096]


def test_the_largest_working_set_is_far_beyond_the_last_cache() -> None:
    from perfmodel.measured.environment import Cpu

    caches = {1: (2**15, 1), 3: (2**25, 8)}
    one = Cpu("x", 8, 8, caches, 2**40, frozenset(), None, None, (None,) * 8, 2**40)
    assert cpu_probes.largest(one) == 16 * 2**25
    small = Cpu("x", 8, 8, caches, 2**40, frozenset(), None, None, (None,) * 8, 2**26)
    assert cpu_probes.largest(small) == 2**24  # a quarter of what is free
