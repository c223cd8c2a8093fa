"""Micro-benchmarks of a CUDA or ROCm device: Triton loops for what torch cannot isolate.

Importing this module loads torch and triton. Streams and products go through torch; dependent
loads, multiply-adds and exponentials are kernels here. All times are device events around captured
graphs, so that no launch gap is inside.
"""

# Triton kernels are not typed.
# mypy: disable-error-code="no-untyped-def,untyped-decorator"

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import triton
import triton.language as tl

from perfmodel.evidence.environment import Environment
from perfmodel.evidence.microbench import ARRAYS, STREAMS, Curve, Readings, now, sizes
from perfmodel.evidence.timer import GraphReplay, Policy, collect

_LINE = 128  # bytes of a line, and of a cell of the ring
_WIDTH = 8  # independent accumulators of a multiply-add thread
_THREADS = 128
Report = Callable[[str], None]


@triton.jit
def chase(NEXT, AT, steps):
    """One thread's chain of dependent loads, from where the last launch ended (`AT`).

    A chain that began anew would walk the same few lines, which the L2 holds whatever the ring's
    size is.
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


def take(where: Environment, *, quick: bool, report: Report) -> Readings:
    """Every reading of the device."""
    properties = torch.cuda.get_device_properties(0)
    units = int(properties.multi_processor_count)
    policy = Policy(samples=10, warmup_s=0.05, limit_s=0.3 if quick else 1.0)
    report("bandwidth over working sets")
    cache = where.cache_bytes or 2**25
    largest = min(max(16 * cache, 2**30), where.memory_bytes / 4)
    curves = {
        name: Curve(
            "B/s",
            "torch, in a graph",
            tuple(
                (float(size), _stream(name, size, policy))
                for size in sizes(2**16, largest, 1 if quick else 2)
            ),
        )
        for name in STREAMS
    }
    report("latency over working sets")
    points = tuple(
        (float(size), _chase(size, policy)) for size in sizes(2**13, largest, 1 if quick else 2)
    )
    curves["latency"] = Curve("s", "Triton: one random cycle through all lines, one warp", points)
    report("matrix, vector, special-function and launch rates")
    rates = {
        **_products(policy, 4096 if quick else 8192),
        "vector.fp32": _vector(units, policy),
        "special": _special(units, policy),
        **_launches(policy),
    }
    report("rate under load")
    load = sustained(where, 2.0 if quick else 10.0)
    if load:
        tail = sorted(rate for _, rate, _, _ in load[len(load) // 2 :])
        rates["sustained.bf16"] = tail[len(tail) // 2]
        clocks = sorted(clock for _, _, clock, _ in load if clock)
        if clocks:
            rates["clock"] = clocks[-1] * 1e6
    return Readings(
        kind="cuda",
        slug=where.device,
        name=where.name,
        units=units,
        memory_bytes=where.memory_bytes,
        levels=(("L2", where.cache_bytes, where.cache_bytes),) if where.cache_bytes else (),
        flags=(),
        curves=curves,
        rates=rates,
        methods={
            "clock": "highest clock seen under load",
            "matrix": "torch products of square random matrices, best of samples",
            "vector.fp32": "Triton: independent multiply-adds in registers, all units",
            "special": "Triton: independent exp2 chains, all units",
            "launch.stream": "empty kernel, back to back in a stream",
            "launch.graph": "empty kernel, back to back in a graph",
        },
        load=load,
        versions=where.columns,
        timestamp_utc=now(),
    )


def _best(call: Callable[[], Any], policy: Policy) -> float:
    return min(collect((call,), GraphReplay(), policy).seconds)


def _stream(name: str, working_set: float, policy: Policy) -> float:
    """Bytes per second of a stream over arrays that together are the working set."""
    count = max(int(working_set) // ARRAYS[name] // 4, 1024)
    arrays = [torch.randn(count, device="cuda") for _ in range(ARRAYS[name])]
    calls: dict[str, Callable[[], Any]] = {
        "read": partial(torch.sum, arrays[0]),
        "copy": lambda: arrays[-1].copy_(arrays[0]),
        "triad": lambda: torch.add(arrays[0], arrays[1 % len(arrays)], alpha=0.75, out=arrays[-1]),
    }
    return count * 4 * ARRAYS[name] / _best(calls[name], policy)


def ring(size_bytes: float, device: str) -> Any:
    """Indices, one a line, that form one random cycle through all lines."""
    count = max(int(size_bytes) // _LINE, 2)
    order = torch.randperm(count)
    cells = torch.zeros(count, _LINE // 8, dtype=torch.int64)
    cells[order, 0] = torch.roll(order, -1) * (_LINE // 8)
    return cells.reshape(-1).to(device)


def _chase(size: float, policy: Policy) -> float:
    """Seconds per load: the difference of a long and a short chain, without the launch."""
    cells, at = ring(size, "cuda"), torch.zeros(1, dtype=torch.int64, device="cuda")
    short, long = 500, 4500

    def run(steps: int) -> Callable[[], Any]:
        return lambda: chase[(1,)](cells, at, steps, num_warps=1)

    spent = _best(run(long), policy) - _best(run(short), policy)
    return max(spent, 1e-12) / (long - short)


def _products(policy: Policy, n: int) -> dict[str, float]:
    """FLOP/s by type; what the device or the library lacks is left out."""
    found: dict[str, float] = {}
    flops = 2.0 * n**3

    def attempt(name: str, make: Callable[[], Callable[[], Any]]) -> None:
        try:
            found[f"matrix.{name}"] = flops / _best(make(), policy)
        except (RuntimeError, AttributeError, TypeError):
            torch.cuda.synchronize()

    def plain(kind: Any, tf32: bool) -> Callable[[], Any]:
        a, b = (torch.randn(n, n, device="cuda").to(kind) for _ in range(2))
        out = torch.empty_like(a)

        def call() -> Any:
            torch.backends.cuda.matmul.allow_tf32 = tf32
            return torch.matmul(a, b, out=out)

        return call

    def eight_bit() -> Callable[[], Any]:
        a, b = (torch.randn(n, n, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
        one = torch.ones((), device="cuda")
        return lambda: torch._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16
        )

    def integer() -> Callable[[], Any]:
        shape = (n, n)
        a, b = (torch.randint(-127, 128, shape, dtype=torch.int8, device="cuda") for _ in range(2))
        return lambda: torch._int_mm(a, b.t())

    attempt("bf16", lambda: plain(torch.bfloat16, False))
    attempt("fp16", lambda: plain(torch.float16, False))
    attempt("tf32", lambda: plain(torch.float32, True))
    attempt("fp64", lambda: plain(torch.float64, False))
    attempt("fp8", eight_bit)
    attempt("int8", integer)
    torch.backends.cuda.matmul.allow_tf32 = False
    return found


def _vector(units: int, policy: Policy) -> float:
    blocks, steps = units * 16, 4096
    out = torch.empty(blocks * _THREADS, device="cuda")
    spent = _best(lambda: multiply_add[(blocks,)](out, steps, _THREADS, num_warps=4), policy)
    return 2.0 * _WIDTH * steps * blocks * _THREADS / spent


def _special(units: int, policy: Policy) -> float:
    blocks, steps = units * 16, 2048
    out = torch.empty(blocks * _THREADS, device="cuda")
    spent = _best(lambda: exponentials[(blocks,)](out, steps, _THREADS, num_warps=4), policy)
    return 4.0 * steps * blocks * _THREADS / spent


def _launches(policy: Policy) -> dict[str, float]:
    """Seconds per empty kernel: in a graph, and queued in a stream."""
    out = torch.empty(1, device="cuda")
    empty = partial(nothing[(1,)], out)
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
    return {"launch.graph": _best(empty, policy), "launch.stream": stream}


def sustained(
    where: Environment, seconds: float, n: int = 8192
) -> tuple[tuple[float, float, float | None, float | None], ...]:
    """A bf16 product over and over: (time, FLOP/s, MHz, W) ten times or more."""
    a, b = (torch.randn(n, n, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out = torch.empty_like(a)
    found = []
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
        state = where.gauge.read()  # while the queue is still being worked on
        torch.cuda.synchronize()
        rate = calls * 2.0 * n**3 / (first.elapsed_time(last) / 1e3)
        found.append((time.perf_counter() - begin, rate, state.clock_mhz, state.power_w))
    return tuple(found)
