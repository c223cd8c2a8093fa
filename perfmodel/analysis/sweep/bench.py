"""Benchmarks of sweeps, as rows of the benchmark table: `{"name", "value", "unit"}`.

Every measurement runs in its own process, so that its peak memory is measured alone.
"""

from __future__ import annotations

import math
import multiprocessing
import sys
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from perfmodel.analysis.sweep.grid import Grid
from perfmodel.analysis.sweep.plan import Sweep
from perfmodel.analysis.sweep.runner import run
from perfmodel.hardware import load
from perfmodel.operators import load as load_operator
from perfmodel.predict import predict_arrays

Row = dict[str, Any]
DEVICE = "h100-sxm"
OPERATORS = ("attention", "gemm", "softmax")
_SHARE_POINTS = 131_072  # points of the measurement of time outside the model


def bench_sweep(points: int = 10_000_000, operator: str = "attention") -> list[Row]:
    """Write a sweep of at least `points` points: rate, peak memory, size, and the sweep's share.

    The share is the part of the time that is not spent predicting: decoding, columns and files.
    """
    with TemporaryDirectory() as folder:
        seconds, rows, peak, size = _process_result(_sweep_cost, operator, points, folder)
    share = _process_result(_share, operator, min(points, _SHARE_POINTS))
    name = f"sweep {operator}"
    return [
        _row(f"{name} points", rows, "rows"),
        _row(f"{name} rate", rows / seconds, "rows/s"),
        _row(f"{name} peak memory", peak / 2**20, "MiB"),
        _row(f"{name} size", size / rows, "B/row"),
        _row(f"{name} share of time outside the model", share, "1"),
    ]


def bench_dask(points: int = 1_000_000, operator: str = "attention") -> list[Row]:
    """The same sweep with one and with two Dask workers: rates, and their ratio."""
    from distributed import LocalCluster

    rates = []
    for workers in (1, 2):
        with (
            TemporaryDirectory() as folder,
            LocalCluster(
                n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0"
            ) as cluster,
        ):
            address = cluster.scheduler_address
            # Workers import the package and load the specs before the clock starts.
            run(sweep_of(operator, 8, chunk=1), Path(folder) / "warm", dask=address)
            plan = sweep_of(operator, points)
            start = time.perf_counter()
            run(plan, Path(folder) / "timed", dask=address)
            rates.append(plan.points / (time.perf_counter() - start))
    name = f"sweep {operator} on Dask"
    return [
        _row(f"{name}, one worker", rates[0], "rows/s"),
        _row(f"{name}, two workers", rates[1], "rows/s"),
        _row(f"{name}, gain of the second worker", rates[1] / rates[0], "1"),
    ]


def sweep_of(operator: str, points: int, **options: Any) -> Sweep:
    """A grid of at least `points` ordinary problems of `operator` on one device."""
    side = max(1, math.ceil(points ** (1 / 2)))
    if operator == "attention":
        sizes = {"batch": _range(64, points), "heads_q": np.array([32]), "heads_kv": np.array([8])}
        count = math.ceil(points / len(sizes["batch"]))
        sizes |= {"seq_q": 64 * np.arange(1, count + 1), "head_dim": np.array([128])}
        kinds: dict[str, tuple[Any, ...]] = {"causal": (True,), "dtype": ("bf16",)}
        grid = Grid(load_operator("attention"), sizes, kinds, {"seq_kv": "seq_q"})
    elif operator == "gemm":
        ks = _range(16, points) * 256
        count = math.ceil((points / len(ks)) ** (1 / 2))
        values = 16 * np.arange(1, count + 1)
        grid = Grid(
            load_operator("gemm"), {"k": ks, "m": values, "n": values}, {"dtype": ("bf16",)}
        )
    else:
        values = 8 * np.arange(1, side + 1)
        grid = Grid(load_operator("softmax"), {"rows": values, "cols": values}, {"op": (operator,)})
    return Sweep(grid, (load(DEVICE),), **options)


def _range(most: int, points: int) -> np.ndarray:
    return np.arange(1, min(most, points) + 1)


def _process_result(job: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `job`, run in a new process."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(job, *arguments).result()


def _sweep_cost(operator: str, points: int, folder: str) -> tuple[float, int, int, int]:
    """Seconds, rows, peak bytes of memory, and bytes of files."""
    plan = sweep_of(operator, points)
    start = time.perf_counter()
    run(plan, Path(folder) / "sweep")
    seconds = time.perf_counter() - start
    size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    return seconds, plan.points, _peak_bytes(), size


def _share(operator: str, points: int) -> float:
    """Share of a sweep's processor time outside the model; the smallest of three tries."""
    plan = sweep_of(operator, points)
    shares = []
    for _ in range(3):
        with TemporaryDirectory() as folder:
            total = _processor_seconds(partial(run, plan, Path(folder) / "sweep"))
        model = _processor_seconds(partial(_predict_only, plan))
        shares.append(max(0.0, 1 - model / total))
    return min(shares)


def _predict_only(plan: Sweep) -> None:
    for i in range(plan.parts):
        part = plan.part(i)
        for group in plan.grid.decode(part.start, part.stop).groups:
            if group.problem is not None:
                predict_arrays(group.problem, part.device, constants=plan.constants)


def _processor_seconds(job: Callable[[], Any]) -> float:
    start = time.process_time()
    job()
    return time.process_time() - start


def _peak_bytes() -> int:
    """Largest resident size of this process so far."""
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _row(name: str, value: float, unit: str) -> Row:
    return {"name": name, "value": float(value), "unit": unit}
