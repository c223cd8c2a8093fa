"""Benchmarks of the tool: predictions a second and start-up time (`python -m perfmodel.bench`).

It prints a table and writes `build/bench.json`: `[{"name", "value", "unit"}]`. Each function of
`BENCHES` gives some rows; another module adds its own there. Rates are per second of processor time
on one core. Whole-process times are wall-clock times. Both are the best of several tries, so that a
busy machine matters less.
"""

from __future__ import annotations

import json
import multiprocessing
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Problem, Rowwise
from perfmodel.algorithms.problem import pick
from perfmodel.analysis.sweep.bench import bench_dask, bench_sweep
from perfmodel.evidence.records.replacing import replacing
from perfmodel.hardware import Device, load
from perfmodel.predict import predict, predict_arrays
from perfmodel.training.bench import bench_steps

Row = dict[str, Any]
DEVICE = "h100-sxm"
OUTPUT = Path("build/bench.json")
TRIES = 3
_POINTS = 20_000
_ALONE = 50
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
        batch_seconds = best(partial(predict_arrays, batch, device))
        single_seconds = best(partial(_predict_singles, singles, device))
        rows.append(row(f"{name}, arrays", _POINTS / batch_seconds, "predictions/s"))
        rows.append(row(f"{name}, one at a time", _ALONE / single_seconds, "predictions/s"))
    return rows


def start_up() -> list[Row]:
    """One prediction as a whole process, compared with importing its dependencies, in
    alternation."""
    jobs = (("-c", "import numpy, pydantic, typer"), ("-m", "perfmodel.cli", *_COMMAND))
    rounds = [[best(partial(_run, *job), time.perf_counter, 1) for job in jobs] for _ in range(5)]
    imports, process = (min(taken) for taken in zip(*rounds, strict=True))
    return [
        row("import numpy, pydantic, typer", imports, "s"),
        row("perfmodel predict attention, whole process", process, "s"),
        row("perfmodel predict over those imports", process / imports, "1"),
    ]


def memory() -> list[Row]:
    """Peak memory of a sweep beyond its inputs and results, for 10⁵ and for 10⁶ problems."""
    growth = {n: _process_result(_peak_growth, n) for n in (100_000, 1_000_000)}
    return [
        row(f"matmul sweep of {n:.0e}, working memory".replace("e+0", "e"), size / 2**20, "MiB")
        for n, size in growth.items()
    ]


BENCHES: list[Callable[[], list[Row]]] = [
    rates, bench_steps, start_up, memory, bench_sweep, bench_dask,
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


def _process_result(job: Callable[[int], float], argument: int) -> float:
    """The result of `job` in a fresh process, where no earlier memory peak hides its own."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(job, argument).result()


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
