"""How far served networks miss: the widths of `serving/spread.yaml`, by what is known.

    python -m perfmodel.fitting.servingranges serving_runs.csv.gz

A range is that of the operators, and of the engine beside it: half-widths in ln add by their
squares. Each width is the least with which a tenth of the rows lies below the range, and a tenth
above. Errors of times that constants were fitted to are those under constants that were fitted
without the row's device, or its network where there is one device only.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import exit_code
from perfmodel.fitting.engines import fitting_rows, left_out, names_of
from perfmodel.serving.engine import engines
from perfmodel.serving.spread import Spread, group_of
from perfmodel.validation.serving import predict_table, read

if TYPE_CHECKING:
    import pandas as pd

_SHARE = 0.1
_FEWEST = 20
"""Rows that a width needs; groups with fewer take that of all rows."""


def widths(table: pd.DataFrame) -> dict[str, tuple[float, float]]:
    """Widths down and up by group, and of all rows."""
    named = [*dict.fromkeys(table["group"]), "any"]
    found = {}
    for name in named:
        rows = table if name == "any" else table[table["group"] == name]
        if len(rows) >= _FEWEST:
            found[name] = (
                _width(rows["off"], rows["down"]),
                _width(-rows["off"], rows["up"]),
            )
    return found


def coverage(table: pd.DataFrame, found: dict[str, tuple[float, float]]) -> float:
    """Share of rows inside the ranges of some widths."""
    pairs = [found.get(name, found["any"]) for name in table["group"]]
    down, up = np.array(pairs).T
    off = table["off"].to_numpy(float)
    inside = (-np.hypot(table["up"], up) <= off) & (off <= np.hypot(table["down"], down))
    return float(inside.mean())


def _width(over: pd.Series[float], operators: pd.Series[float]) -> float:
    """The least width with which no more than a tenth of the predictions are further over."""
    low, high = 0.0, 5.0
    for _ in range(40):
        middle = (low + high) / 2.0
        beyond = float((over > np.hypot(operators, middle)).mean())
        low, high = (middle, high) if beyond > _SHARE else (low, middle)
    return high


def errors(table: pd.DataFrame) -> pd.DataFrame:
    """Unflagged predicted rows with `group`, `off` (ln predicted/published, held out where it was
    fitted) and the operators' half-widths `down` and `up` in ln."""
    bare = predict_table(table, spread=Spread.none())
    kept = bare[(bare["flag"] == "") & (bare["reason"] == "") & (bare["metric"] != "memory_gb")]
    kept = kept.assign(
        off=np.log(kept["predicted"] / kept["value"]),
        down=np.log(kept["predicted"] / kept["low"]),
        up=np.log(kept["high"] / kept["predicted"]),
        group=[
            group_of(metric, engine, devices)
            for metric, engine, devices in zip(
                kept["metric"], kept["known_engine"], kept["known_devices"], strict=True
            )
        ],
    )
    for engine in engines().values():
        if names_of(engine):
            rows = fitting_rows(table, engine.name)
            several = rows.table["device"].nunique() > 1
            off = left_out(rows, engine, "device" if several else "network")
            known = ~np.isnan(off)
            kept.loc[rows.table.index[known], "off"] = off[known]
    return kept


def _lines(table: pd.DataFrame) -> Iterator[str]:
    found = widths(table)
    yield from (f"  {name}: [{down:.3f}, {up:.3f}]" for name, (down, up) in found.items())
    yield f"coverage {coverage(table, found):.1%}"
    for column in ("source", "engine", "device"):
        held = []
        for value in table[column].unique():
            mine = table[column] == value
            if (~mine).any():
                held.append(coverage(table[mine], widths(table[~mine])) * mine.sum())
        yield f"coverage without its {column} {sum(held) / len(table):.1%}"


def _main() -> None:
    for line in _lines(errors(read(sys.argv[1:]))):
        print(line)


if __name__ == "__main__":
    sys.exit(exit_code("perfmodel.fitting.servingranges", _main))
