"""Errors of clients in a closed loop, for docs/accuracy/serving-closed-loop.csv.

    python -m perfmodel.fitting.closedloop serving_runs.csv.gz > serving-closed-loop.csv

Rows as shipped, by table, engine and device; then first tokens with the numbers of servers
(`engines.FIRST`) that are fitted to one half of the settings and scored on the other. Halves are
drawn by a hash of a row's sizes, so every run has the same ones.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import exit_code
from perfmodel.fitting.engines import fitting_rows, left_out, names_of
from perfmodel.serving.engine import engines
from perfmodel.table.reading import read
from perfmodel.validation.serving import LAYOUT, predict_table

if TYPE_CHECKING:
    import pandas as pd

_METRICS = {"ttft_ms": "TTFT", "tpot_ms": "TPOT", "output_tokens_per_s": "tokens/s"}


def closed_loop(table: pd.DataFrame) -> pd.DataFrame:
    """Predicted rows of clients, with `off`, ln(predicted / published), and `held`, the same with
    the server's numbers from the other half of the settings."""
    runs = predict_table(table[table["load"] == "concurrency"])
    runs = runs[(runs["reason"] == "") & runs["metric"].isin(_METRICS)]
    off = (runs["predicted"] / runs["value"]).map(math.log)
    misses = off.copy()
    for engine in engines().values():
        rows = fitting_rows(table, engine.name, first=True)
        if names_of(engine, first=True) and len(rows.asked):
            errors = left_out(rows, engine, "half", first=True)
            misses.loc[rows.table.index[~np.isnan(errors)]] = errors[~np.isnan(errors)]
    return runs.assign(off=off, held=misses)


def summary(runs: pd.DataFrame) -> Iterator[tuple[str, str, int, float, float]]:
    """Label, metric, rows, median and 90th percentile of |ln| of each group."""
    plain = runs[(runs["flag"] == "") & (runs["metric"] != "output_tokens_per_s")]
    pools = runs[runs["flag"].str.contains("disaggregated")]
    yield from _by_metric("all", plain, "off")
    first = plain[plain["metric"] == "ttft_ms"]
    yield from _by_metric("all, servers by the other half of the settings", first, "held")
    for (source, engine, device), rows in plain.groupby(["source", "engine", "device"]):
        yield from _by_metric(f"{source}, {engine}, {device}", rows, "off")
        if (rows["held"] != rows["off"]).any():
            label = f"{source}, {engine}, {device}, its server by the other half"
            yield from _by_metric(label, rows[rows["metric"] == "ttft_ms"], "held")
    yield from _by_metric("pools (flagged)", pools, "off")


def _by_metric(
    label: str, runs: pd.DataFrame, column: str
) -> Iterator[tuple[str, str, int, float, float]]:
    for metric, name in _METRICS.items():
        size = runs.loc[runs["metric"] == metric, column].abs()
        if len(size):
            yield label, name, len(size), float(size.median()), float(size.quantile(0.9))


def _main() -> None:
    runs = closed_loop(read(sys.argv[1:], LAYOUT).strict())
    print("rows,metric,n,median,p90")
    for label, metric, count, median, p90 in summary(runs):
        print(f'"{label}",{metric},{count},{median:.3f},{p90:.3f}')


if __name__ == "__main__":
    sys.exit(exit_code("perfmodel.fitting.closedloop", _main))
