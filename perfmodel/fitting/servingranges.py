"""Widths of the ranges of served networks, for `serving/spread.yaml`.

    python -m perfmodel.fitting.servingranges serving_runs.csv.gz

A range combines the operators' half-width and the engine's in ln by the root of the sum of squares.
Each engine width is the smallest for which `_COVERAGE` of the rows are inside. Errors of fitted
metrics are with constants fitted without the row's device, or without its network if there is only
one device.

It also prints how many rows are inside ranges made without their source, engine or device.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import exit_code
from perfmodel.fitting.engines import fitting_rows, left_out, names_of
from perfmodel.serving.engine import engines
from perfmodel.serving.served import Spread, group_of
from perfmodel.table.reading import read
from perfmodel.validation.serving import LAYOUT, predict_table

if TYPE_CHECKING:
    import pandas as pd

_COVERAGE = 0.9
"""Above the 80 % of a range, since coverage is lower on new sources, engines and devices."""
_HELD_OUT = ("source", "engine", "device")


def widths(table: pd.DataFrame) -> dict[str, float]:
    """The smallest width of each group for which `_COVERAGE` of its rows are inside."""
    return {str(name): _width(rows) for name, rows in table.groupby("group")}


def inside(table: pd.DataFrame, found: Mapping[str, float]) -> np.ndarray:
    """Whether each row is inside the range with its group's width."""
    width = table["group"].map(dict(found)).to_numpy(float)
    return np.asarray(np.abs(table["off"]) <= np.hypot(table["operators"], width))


def _width(rows: pd.DataFrame) -> float:
    """The smallest sufficient width, by bisection: coverage grows with the width."""
    group = str(rows["group"].iloc[0])
    low, high = 0.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2.0
        short = inside(rows, {group: middle}).mean() < _COVERAGE
        low, high = (middle, high) if short else (low, middle)
    return high


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Unflagged predicted rows with `group`, `off` (ln(predicted / published), held out for fitted
    metrics) and `operators`, the half-width in ln of the operators' range on the side of the
    error."""
    runs = predict_table(table, spread=Spread.none())
    frame = runs[(runs["flag"] == "") & (runs["reason"] == "") & (runs["metric"] != "memory_gb")]
    off = (frame["predicted"] / frame["value"]).map(math.log)
    for engine in engines().values():
        if names_of(engine):
            rows = fitting_rows(table, engine.name)
            by_device = rows.table["device"].nunique() > 1
            misses = left_out(rows, engine, "device" if by_device else "network")
            mask = ~np.isnan(misses)
            off.loc[rows.table.index[mask]] = misses[mask]
    down = (frame["predicted"] / frame["low"]).map(math.log)
    up = (frame["high"] / frame["predicted"]).map(math.log)
    group = [
        group_of(metric, fitted=engine == "fitted")
        for metric, engine in zip(frame["metric"], frame["known_engine"], strict=True)
    ]
    return frame.assign(off=off, group=group, operators=down.where(off > 0, up))


def _lines(table: pd.DataFrame) -> Iterator[str]:
    spans = widths(table)
    yield ", ".join(f"{name} {width:.3f}" for name, width in spans.items())
    yield f"inside: {inside(table, spans).mean():.1%} of {len(table):,} rows"
    for column in _HELD_OUT:
        hits = [
            inside(table[mask], {**spans, **widths(table[~mask])})
            for value in table[column].unique()
            for mask in (table[column] == value,)
        ]
        yield f"inside without their {column}: {np.concatenate(hits).mean():.1%}"


def _main() -> None:
    for line in _lines(errors(read(sys.argv[1:], LAYOUT).strict())):
        print(line)


if __name__ == "__main__":
    sys.exit(exit_code("perfmodel.fitting.servingranges", _main))
