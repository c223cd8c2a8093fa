"""Rates of a processor through torch: matrix products, exponentials, launches, sustained load."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from perfmodel.measured.bursts import together
from perfmodel.measured.environment import Environment, needs_torch
from perfmodel.measured.timer import Policy, WallClock, collect

# Rows and columns of a product: large enough for the full rate, and small enough that a core
# finishes one before a busy system schedules another program (about 2 ms at 100 GFLOP/s).
_PRODUCT = 512


def rates(places: Sequence[int | None], limit_s: float) -> tuple[dict[str, float], dict[str, str]]:
    """Rates of matrix products, exponentials and the smallest operation; and the method of each.

    Each core works on its own for at most `limit_s` and waits for no other, so that its best time
    counts even on a busy machine. Rates are for all cores together.
    """
    torch = needs_torch()
    threads = torch.get_num_threads()
    cores = len(places)
    policy = Policy(samples=40, warmup_s=0.05, sample_s=1e-4, limit_s=limit_s)

    def fastest(make: Callable[[], Callable[[], Any]]) -> float:
        """Calls per second of all cores together, each at its best."""

        def work(_: int) -> float:
            torch.set_num_threads(1)
            return 1.0 / min(collect((make(),), WallClock(), policy).seconds)

        return sum(together(work, places))

    n, count = _PRODUCT, 2**14
    values: dict[str, float] = {}
    try:
        for name, make in _products(torch, n):
            values[f"matrix.{name}"] = 2.0 * n**3 * fastest(make)
        launches = fastest(lambda: partial(torch.zeros(1).add_, 1))
        values["launch.stream"] = cores / launches
        seconds = cores / fastest(lambda: _exponential(torch, count)) - values["launch.stream"]
        values["special"] = cores * count / max(seconds, 1e-7)
    finally:
        torch.set_num_threads(threads)
    return values, {
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


def sustained(
    where: Environment, seconds: float
) -> tuple[tuple[float, float, float | None, float | None], ...]:
    """A repeated product: rate, clock and power over time."""
    torch = needs_torch()
    a, b = (torch.randn(1024, 1024) for _ in range(2))
    out = torch.empty_like(a)
    points = []
    begin = time.perf_counter()
    while (start := time.perf_counter()) - begin < seconds:
        calls = 0
        while time.perf_counter() - start < seconds / 10:
            torch.matmul(a, b, out=out)
            calls += 1
        elapsed = time.perf_counter() - start
        state = where.gauge.read()
        rate = calls * 2.0 * 1024**3 / elapsed
        points.append((time.perf_counter() - begin, rate, state.clock_mhz, state.power_w))
    return tuple(points)
