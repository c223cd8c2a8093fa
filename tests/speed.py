"""Benchmarks of the tool: predictions a second and start-up time (`make bench`).

It prints a table and writes `build/bench.json`: `[{"name", "value", "unit"}]`. Each function of
`BENCHES` gives some rows. Rates are per second of processor time
on one core. Whole-process times are wall-clock times. Both are the best of several tries, so that a
busy machine matters less.
"""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.problem import pick
from perfmodel.analysis.plans import steps as predict_plans
from perfmodel.analysis.sweep import Grid, Sweep
from perfmodel.analysis.sweep import run as run_sweep
from perfmodel.compiled import variants
from perfmodel.hardware import Device, load
from perfmodel.networks import library
from perfmodel.networks.networktime import predict_network
from perfmodel.networks.setting import Setting
from perfmodel.operators import load as load_operator
from perfmodel.predict import predict, predict_arrays
from perfmodel.replacing import replacing
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import load as load_engine
from perfmodel.serving.search import Demand, plans
from perfmodel.serving.search import search as search_serving
from perfmodel.serving.steps import Steps
from perfmodel.serving.targets import Targets
from perfmodel.training.plan import Plan
from perfmodel.training.planning import search

Row = dict[str, Any]
DEVICE = "h100-sxm"
OUTPUT = Path("build/bench.json")
TRIES = 3
_SHARE_POINTS = 131_072  # points of the measurement of time outside the model
_POINTS = 20_000
_ALONE = 50
NETWORK = "gpt3-175b"
_OF_NETWORK = "a100-sxm-80gb"
_PLANS = [
    {
        "seq": 2048, "micro_batch": micro, "global_batch": 16 * stages * micro * data,
        "tensor": tensor, "pipeline": stages, "devices": tensor * stages * data,
        "recompute": recompute,
    }
    for tensor in (1, 2, 4, 8)
    for stages in (1, 2, 4, 8)
    for data in (1, 8, 64)
    for micro in (1, 2)
    for recompute in ("none", "selective", "full")
]  # fmt: skip
_COMMAND = (
    "predict", "attention", "--device", DEVICE, "--batch", "4", "--heads", "32", "--seq", "4096",
    "--head-dim", "128", "--causal", "--format", "json",
)  # fmt: skip


def problems(operator: str, n: int) -> Problem:
    """`n` problems of one kind with the sizes of real models, the same on every call."""
    draw = np.random.default_rng(20)

    def sizes(low: int, high: int) -> np.ndarray:
        return np.exp(draw.uniform(np.log(low), np.log(high), n)).astype(np.int64)

    if operator == "matmul":
        return Matmul(sizes(1, 16384), sizes(16, 16384), sizes(16, 16384))
    if operator == "rowwise":
        return Rowwise("softmax", sizes(1, 65536), sizes(16, 65536))
    groups = sizes(1, 16)
    heads = {"heads_q": groups * sizes(1, 9), "heads_kv": groups, "head_dim": 128}
    if operator == "decode":
        return Attention(batch=sizes(1, 256), seq_q=1, seq_kv=sizes(16, 131072), **heads)
    queries = sizes(16, 16384)
    return Attention(batch=sizes(1, 64), seq_q=queries, seq_kv=queries, **heads, causal=True)


OPERATORS = {
    "matmul": "matmul",
    "prefill": "tiled attention",
    "decode": "decode",
    "rowwise": "row-wise",
}


def rates() -> list[Row]:
    """Full predictions a second, menus included: as arrays, and one call at a time."""
    device = load(DEVICE)
    rows = []
    for operator, name in OPERATORS.items():
        batch = problems(operator, _POINTS)
        singles = [pick(batch, np.array([i])) for i in range(_ALONE)]
        with _computing("off"):
            numpy_seconds = best(partial(predict_arrays, batch, device))
        with _computing("wait"):
            batch_seconds = best(partial(predict_arrays, batch, device))
            single_seconds = best(partial(_predict_singles, singles, device))
        rows.append(row(f"{name}, arrays", _POINTS / batch_seconds, "predictions/s"))
        rows.append(row(f"{name}, arrays over NumPy's rate", numpy_seconds / batch_seconds, "1"))
        rows.append(row(f"{name}, one at a time", _ALONE / single_seconds, "predictions/s"))
    return rows


@contextmanager
def _computing(mode: str) -> Iterator[None]:
    """A block in which compiled code is used or not (`perfmodel.compiled.variants`)."""
    before = os.environ.get(variants.ENVIRONMENT)
    os.environ[variants.ENVIRONMENT] = mode
    try:
        yield
    finally:
        os.environ.pop(variants.ENVIRONMENT)
        if before is not None:
            os.environ[variants.ENVIRONMENT] = before


def start_up() -> list[Row]:
    """One prediction as a whole process, compared with importing its dependencies, in
    alternation."""
    jobs = (("-c", "import numpy, pydantic, click"), ("-m", "perfmodel", *_COMMAND))
    rounds = [[best(partial(_run, *job), time.perf_counter, 1) for job in jobs] for _ in range(5)]
    imports, process = (min(taken) for taken in zip(*rounds, strict=True))
    return [
        row("import numpy, pydantic, click", imports, "s"),
        row("perfmodel predict attention, whole process", process, "s"),
        row("perfmodel predict over those imports", process / imports, "1"),
    ]


def bench_steps() -> list[Row]:
    """A cold pass of GPT-3, and plans a minute of processor time."""
    network, device = library.load(NETWORK), load(_OF_NETWORK)
    passes = [
        _cpu_seconds(partial(predict_network, network, Setting(batch=batch, seq=2048), device))
        for batch in range(5, 10)
    ]
    grid, warm = (
        _cpu_seconds(lambda: predict_plans((network, device, None), _PLANS)) for _ in range(2)
    )
    llama, plan = library.load("llama-3-70b"), Plan(seq=4096, stack="te")
    legal: list[int] = []
    searching = _cpu_seconds(lambda: legal.append(search(llama, plan, 64, 512, device).legal))
    return [
        {"name": "GPT-3 forward and backward", "value": min(passes), "unit": "s"},
        _rate("GPT-3 plans of a new grid", grid),
        _rate("GPT-3 plans once more", warm),
        row("Llama-3-70B plans searched", 60 * legal[0] / searching, "plans/min"),
    ]


def bench_serving() -> list[Row]:
    """Served models a second of processor time: a search of deployments under targets, whose
    kernels are predicted anew, and once more with other targets."""
    network, engine = library.load("llama-3-70b"), load_engine("vllm")
    bases = [
        Deployment(network, load(device), engine, weights=weights)
        for device in ("h100-sxm", "b200") for weights in ("bf16", "fp8")
    ]  # fmt: skip
    figures = []
    for name, limits in (("new", (0.5, 0.05)), ("once more", (0.4, 0.04))):
        demand = Demand(1024, 256, Targets(*limits), vary=0.5)
        start = time.process_time()
        _, _, loads = search_serving([Steps(copy) for copy in plans(network, bases, 8)], demand, 8)
        rate = len(loads) / (time.process_time() - start)
        figures.append(row(f"Llama 3 70B deployments, {name}", rate, "served/s"))
    return figures


def _rate(name: str, seconds: float) -> Row:
    return {"name": name, "value": 60 * len(_PLANS) / seconds, "unit": "plans/min"}


def _cpu_seconds(job: Callable[[], object]) -> float:
    """Processor seconds of one run."""
    start = time.process_time()
    job()
    return time.process_time() - start


def memory() -> list[Row]:
    """Peak memory of a sweep beyond its inputs and results, for 10⁵ and for 10⁶ problems."""
    growth = {n: _process_result(_peak_growth, n) for n in (100_000, 1_000_000)}
    return [
        row(f"matmul sweep of {n:.0e}, working memory".replace("e+0", "e"), size / 2**20, "MiB")
        for n, size in growth.items()
    ]


def bench_sweep(points: int = 10_000_000, operator: str = "attention") -> list[Row]:
    """Write a sweep of at least `points` points: rate, peak memory, size, and the sweep's share.

    The share is the part of the time that is not spent predicting: decoding, columns and files.
    """
    with TemporaryDirectory() as folder:
        seconds, rows, peak, size = _process_result(_sweep_cost, operator, points, folder)
    share = _process_result(_share, operator, min(points, _SHARE_POINTS))
    name = f"sweep {operator}"
    return [
        row(f"{name} points", rows, "rows"),
        row(f"{name} rate", rows / seconds, "rows/s"),
        row(f"{name} peak memory", peak / 2**20, "MiB"),
        row(f"{name} size", size / rows, "B/row"),
        row(f"{name} share of time outside the model", share, "1"),
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
            run_sweep(sweep_of(operator, 8, chunk=1), Path(folder) / "warm", dask=address)
            plan = sweep_of(operator, points)
            start = time.perf_counter()
            run_sweep(plan, Path(folder) / "timed", dask=address)
            rates.append(plan.points / (time.perf_counter() - start))
    name = f"sweep {operator} on Dask"
    return [
        row(f"{name}, one worker", rates[0], "rows/s"),
        row(f"{name}, two workers", rates[1], "rows/s"),
        row(f"{name}, gain of the second worker", rates[1] / rates[0], "1"),
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


BENCHES: list[Callable[[], list[Row]]] = [
    rates, bench_steps, bench_serving, start_up, memory, bench_sweep, bench_dask,
]  # fmt: skip


def row(name: str, value: float, unit: str) -> Row:
    """One figure of the table."""
    return {"name": name, "value": float(value), "unit": unit}


def best(
    job: Callable[[], object], clock: Callable[[], float] = time.process_time, tries: int = TRIES
) -> float:
    """Least seconds of several tries, after one uncounted warm-up."""
    job()
    least = float("inf")
    for _ in range(tries):
        start = clock()
        job()
        least = min(least, clock() - start)
    return least


def write(rows: Sequence[Row], path: Path) -> None:
    """Write all rows atomically: a reader sees the old file or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with replacing(path) as partial:
        partial.write_text(json.dumps(list(rows), indent=2) + "\n", encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """Rows as aligned text."""
    width = max((len(item["name"]) for item in rows), default=0)
    return "\n".join(f"{i['name']:<{width}}  {i['value']:>12,.6g}  {i['unit']}" for i in rows)


def run(benches: Sequence[Callable[[], list[Row]]]) -> list[Row]:
    """The rows of all benches, in their order."""
    return [item for bench in benches for item in bench()]


def main() -> None:
    """Measure, print, and write the file."""
    rows = run(BENCHES)
    print(table(rows))
    write(rows, OUTPUT)


def _predict_singles(singles: Sequence[Problem], device: Device) -> None:
    for problem in singles:
        predict(problem, device)


def _run(*arguments: str) -> None:
    subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


def _process_result(job: Callable[..., Any], *arguments: Any) -> Any:
    """The result of `job` in a fresh process, where no earlier memory peak hides its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(job, *arguments).result()


def _sweep_cost(operator: str, points: int, folder: str) -> tuple[float, int, int, int]:
    """Seconds, rows, peak bytes of memory, and bytes of files."""
    plan = sweep_of(operator, points)
    start = time.perf_counter()
    run_sweep(plan, Path(folder) / "sweep")
    seconds = time.perf_counter() - start
    size = sum(path.stat().st_size for path in Path(folder).rglob("*.parquet"))
    return seconds, plan.points, _peak_bytes(), size


def _share(operator: str, points: int) -> float:
    """Share of a sweep's processor time outside the model; the smallest of three tries."""
    plan = sweep_of(operator, points)
    shares = []
    for _ in range(3):
        with TemporaryDirectory() as folder:
            total = _processor_seconds(partial(run_sweep, plan, Path(folder) / "sweep"))
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


def _peak_growth(n: int) -> float:
    """Peak bytes while predicting `n` problems, beyond the bytes of the results."""
    import tracemalloc

    device, batch = load(DEVICE), problems("matmul", n)
    predict(pick(batch, np.array([0])), device)
    tracemalloc.start()
    predictions = predict_arrays(batch, device)
    base, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return float(peak - base) if len(predictions) == n else float("nan")


if __name__ == "__main__":
    main()
