"""Micro-benchmarks of a CUDA or ROCm device, with Triton loops where torch has no operator.

Importing this module loads torch and triton. Streams and products go through torch; dependent
loads, multiply-adds and exponentials are kernels here. All times are device events around captured
graphs, so that they contain no launch gaps.
"""

# Triton kernels are not typed.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial as partial_of
from pathlib import Path
from typing import Any

import torch
import triton
import triton.language as tl

from perfmodel.measured import readingparts
from perfmodel.measured.environment import Environment
from perfmodel.measured.journal import Announce, unannounced
from perfmodel.measured.microbench import (
    ARRAYS,
    STREAMS,
    Curve,
    Readings,
    Report,
    now,
    sizes,
)
from perfmodel.measured.readingparts import Load, Part
from perfmodel.measured.timer import Call, GraphReplay, Policy, collect

_LINE = 128  # bytes of a line, and of a cell of the ring
_WIDTH = 8  # independent accumulators of a multiply-add thread
_THREADS = 128


@triton.jit
def chase(NEXT, AT, steps):
    """One thread's chain of dependent loads, from where the last launch ended (`AT`).

    A chain that started again at the beginning would load the same few lines, which stay in the L2
    for any size of the ring.
    """
    at = tl.load(AT)
    for _ in range(steps):
        at = tl.load(NEXT + at)
    tl.store(AT, at)


@triton.jit
def multiply_add(OUT, steps, LANES: tl.constexpr):
    """8 independent chains of fused multiply-adds in each thread's registers."""
    lane = tl.arange(0, LANES)
    x = 0.999 + lane * 0.0
    a, b, c, d = x, x + 1, x + 2, x + 3
    e, f, g, h = x + 4, x + 5, x + 6, x + 7
    for _ in range(steps):
        a, b, c, d = a * x + 0.001, b * x + 0.001, c * x + 0.001, d * x + 0.001
        e, f, g, h = e * x + 0.001, f * x + 0.001, g * x + 0.001, h * x + 0.001
    tl.store(OUT + tl.program_id(0) * LANES + lane, a + b + c + d + e + f + g + h)


@triton.jit
def exponentials(OUT, steps, LANES: tl.constexpr):
    """4 independent chains of base-2 exponentials of small negative numbers."""
    lane = tl.arange(0, LANES)
    x = lane * -0.001
    a, b, c, d = x, x - 0.1, x - 0.2, x - 0.3
    for _ in range(steps):
        a, b, c, d = tl.exp2(-a), tl.exp2(-b), tl.exp2(-c), tl.exp2(-d)
    tl.store(OUT + tl.program_id(0) * LANES + lane, a + b + c + d)


@triton.jit
def nothing(OUT):
    """An empty kernel."""


_METHODS = {
    "clock": "highest clock seen under load",
    "matrix": "torch products of square random matrices, best of samples",
    "vector.fp32": "Triton: independent multiply-adds in registers, all units",
    "special": "Triton: independent exp2 chains, all units",
    "launch.stream": "empty kernel, back to back in a stream",
    "launch.graph": "empty kernel, back to back in a graph",
}
_CHASE = "Triton: one random cycle through all lines, one warp"


def take(
    where: Environment,
    *,
    quick: bool,
    report: Report,
    partial: Path | None = None,
    announce: Announce = unannounced,
) -> Readings:
    """Every reading of the device, one by one (`readingparts.take`)."""
    empty = Readings(
        kind="cuda",
        slug=where.device,
        name=where.name,
        units=where.units,
        memory_bytes=where.memory_bytes,
        levels=(("L2", where.cache_bytes, where.cache_bytes),) if where.cache_bytes else (),
        flags=(),
        curves={},
        rates={},
        versions=where.columns,
        timestamp_utc=now(),
    )
    return readingparts.take(
        empty, _parts(where, quick), report=report, methods=_METHODS, partial=partial,
        announce=announce, settle=_settle,
    )  # fmt: skip


def _settle() -> None:
    torch.cuda.synchronize()
    torch.cuda.empty_cache()


def _parts(env: Environment, quick: bool) -> dict[str, Callable[[], Part]]:
    """Every reading by name."""
    policy = Policy(samples=10, warmup_s=0.05, limit_s=0.3 if quick else 1.0)
    octave = 1 if quick else 2
    cache = env.cache_bytes or 2**25
    largest = min(max(16 * cache, 2**30), env.memory_bytes / 4)

    def stream(name: str) -> Part:
        points = tuple((float(s), _stream(name, s, policy)) for s in sizes(2**16, largest, octave))
        return {name: Curve("B/s", "torch, in a graph", points)}

    def latency() -> Part:
        points = tuple((float(s), _chase(s, policy)) for s in sizes(2**13, largest, octave))
        return {"latency": Curve("s", _CHASE, points)}

    def product(name: str, make: Callable[[], Call]) -> Part:
        return {name: 2.0 * n**3 / _time(make(), policy)}

    n = 4096 if quick else 8192
    return {
        **{name: partial_of(stream, name) for name in STREAMS},
        "latency": latency,
        **{
            f"matrix.{dtype}": partial_of(product, f"matrix.{dtype}", make)
            for dtype, make in _products(n).items()
        },
        "vector.fp32": lambda: {"vector.fp32": _vector(env.units, policy)},
        "special": lambda: {"special": _special_rate(env.units, policy)},
        "launch.graph": lambda: _launches(policy),
        "sustained.bf16": lambda: _sustained_part(env, 2.0 if quick else 10.0),
    }


def _sustained_part(env: Environment, seconds: float) -> Part:
    load = sustained(env, seconds)
    tail = sorted(rate for _, rate, _, _ in load[len(load) // 2 :])
    part: Part = {"load": load, "sustained.bf16": tail[len(tail) // 2]}
    clocks = [clock for _, _, clock, _ in load if clock]
    return part | ({"clock": max(clocks) * 1e6} if clocks else {})


def _time(call: Callable[[], Any], policy: Policy) -> float:
    return min(collect((call,), GraphReplay(), policy).seconds)


def _stream(name: str, working_set: float, policy: Policy) -> float:
    """Bytes per second of a stream over arrays that together are the working set."""
    count = max(int(working_set) // ARRAYS[name] // 4, 1024)
    arrays = [torch.randn(count, device="cuda") for _ in range(ARRAYS[name])]
    calls: dict[str, Callable[[], Any]] = {
        "read": partial_of(torch.sum, arrays[0]),
        "copy": lambda: arrays[-1].copy_(arrays[0]),
        "triad": lambda: torch.add(arrays[0], arrays[1 % len(arrays)], alpha=0.75, out=arrays[-1]),
    }
    return count * 4 * ARRAYS[name] / _time(calls[name], policy)


def ring(size_bytes: float, device: str) -> Any:
    """Indices, one a line, that form one random cycle through all lines."""
    count = max(int(size_bytes) // _LINE, 2)
    order = torch.randperm(count)
    cells = torch.zeros(count, _LINE // 8, dtype=torch.int64)
    cells[order, 0] = torch.roll(order, -1) * (_LINE // 8)
    return cells.reshape(-1).to(device)


def _chase(size: float, policy: Policy) -> float:
    """Seconds per load, from the difference of a long and a short chain, which cancels the
    launch."""
    cells, start = ring(size, "cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    short, long = 500, 4500

    def run(steps: int) -> Callable[[], Any]:
        return lambda: chase[(1,)](cells, start, steps, num_warps=1)

    seconds = _time(run(long), policy) - _time(run(short), policy)
    return max(seconds, 1e-12) / (long - short)


def _products(n: int) -> dict[str, Callable[[], Call]]:
    """Functions that make a product of two n × n matrices, by type."""

    def plain(kind: Any, tf32: bool = False) -> Call:
        a, b = (torch.randn(n, n, device="cuda").to(kind) for _ in range(2))
        out = torch.empty_like(a)

        def call() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            torch.matmul(a, b, out=out)
            torch.backends.cuda.matmul.allow_tf32 = False

        return call

    def eight_bit() -> Call:
        a, b = (torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
        scale = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=scale, scale_b=scale, out_dtype=torch.bfloat16
        )

    def integer() -> Call:
        a, b = (torch.randint(-127, 128, (n, n), dtype=torch.int8, device="cuda") for _ in range(2))
        return lambda: torch._int_mm(a, b.t())

    return {
        "bf16": lambda: plain(torch.bfloat16),
        "fp16": lambda: plain(torch.float16),
        "tf32": lambda: plain(torch.float32, True),
        "fp64": lambda: plain(torch.float64),
        "fp8": eight_bit,
        "int8": integer,
    }


def _vector(units: int, policy: Policy) -> float:
    blocks, steps = units * 16, 4096
    out = torch.empty(blocks * _THREADS, device="cuda")
    seconds = _time(lambda: multiply_add[(blocks,)](out, steps, _THREADS, num_warps=4), policy)
    return 2.0 * _WIDTH * steps * blocks * _THREADS / seconds


def _special_rate(units: int, policy: Policy) -> float:
    blocks, steps = units * 16, 2048
    out = torch.empty(blocks * _THREADS, device="cuda")
    seconds = _time(lambda: exponentials[(blocks,)](out, steps, _THREADS, num_warps=4), policy)
    return 4.0 * steps * blocks * _THREADS / seconds


def _launches(policy: Policy) -> Part:
    """Seconds per empty kernel: in a graph, and queued in a stream."""
    out = torch.empty(1, device="cuda")
    empty = partial_of(nothing[(1,)], out)
    empty()
    torch.cuda.synchronize()
    count = 1000
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(count):
        empty()
    last.record()
    torch.cuda.synchronize()
    stream = first.elapsed_time(last) / 1e3 / count
    return {"launch.graph": _time(empty, policy), "launch.stream": stream}


def sustained(where: Environment, seconds: float, n: int = 8192) -> Load:
    """A bf16 product over and over: (time, FLOP/s, MHz, W) ten times or more."""
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    points = []
    begin = time.perf_counter()
    while time.perf_counter() - begin < seconds:
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        first.record()
        calls = 0
        start = time.perf_counter()
        while time.perf_counter() - start < seconds / 20 and calls < 2000:
            torch.matmul(a, b, out=out)
            calls += 1
            if calls % 50 == 0:
                torch.cuda.current_stream().synchronize()
        last.record()
        state = where.gauge.read()  # while queued work is still running
        torch.cuda.synchronize()
        rate = calls * 2.0 * n**3 / (first.elapsed_time(last) / 1e3)
        points.append((time.perf_counter() - begin, rate, state.clock_mhz, state.power_w))
    return tuple(points)
