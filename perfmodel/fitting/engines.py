"""Fits constants of serving engines to published runs, and tests them on runs left out.

    python -m perfmodel.fitting.engines serving_runs.csv.gz

An engine's file lists its fitted constants (`fitted`). The fit minimises the mean of |ln(predicted
/ published)| over the rows of `SOURCES`: times between tokens and of whole requests, and by
themselves first tokens, for the constants of the server (`FIRST`). Flagged rows are not used, and
rows of other sources are used for tests only.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from perfmodel.errors import exit_code, needs
from perfmodel.serving.engine import Engine, engines
from perfmodel.serving.servingrows import Asked, answers
from perfmodel.table.reading import read
from perfmodel.validation.serving import LAYOUT, asked_of

if TYPE_CHECKING:
    import pandas as pd

SOURCES = ("argonne-llm-inference-bench", "aiconfigurator-silicon")
"""Tables with enough rows of an engine to fit it."""
METRICS = ("e2e_ms", "tpot_ms")
"""Metrics that constants are fitted to, except those of the server."""
FIRST = ("host.request_us", "host.admit_us", "host.client_us")
"""Constants of the server, which are fitted to first tokens."""
LEAVE_OUT = ("device", "network", "tensor", "half")
"""Columns whose values are left out one at a time; each half has every second setting, by a hash of
its sizes."""
_SETTING = ("network", "tensor", "expert", "data", "isl", "osl", "concurrency", "batch")
_MOST_CALLS = 80


@dataclass(frozen=True)
class Rows:
    """Rows of one engine, with their requests."""

    table: pd.DataFrame
    """The rows."""
    asked: tuple[Asked, ...]
    """The request of each row."""

    def at(self, kept: np.ndarray) -> Rows:
        """Some of the rows."""
        subset = tuple(a for a, keep in zip(self.asked, kept, strict=True) if keep)
        return Rows(self.table[kept], subset)

    def errors(self, constants: Mapping[str, float]) -> np.ndarray:
        """ln(predicted / published) of each row with given constants; NaN if not predicted."""
        variants: dict[Engine, Engine] = {}
        rows = []
        for row in self.asked:
            engine = row.deployment.engine
            variants.setdefault(engine, engine.having(constants))
            rows.append(replace(row, deployment=replace(row.deployment, engine=variants[engine])))
        values = [np.nan if isinstance(v, str) else v.value for v in answers(rows)]
        return np.asarray(np.log(np.array(values) / self.table["value"].to_numpy(float)))


def fitting_rows(table: pd.DataFrame, engine: str, *, first: bool = False) -> Rows:
    """The rows that an engine is fitted to; `first`: those of its server."""
    metrics = ("ttft_ms",) if first else METRICS
    rows = table[
        table["source"].isin(SOURCES) & table["metric"].isin(metrics) & (table["flag"] == "")
    ]
    settings = rows.reindex(columns=_SETTING).itertuples(index=False, name=None)
    rows = rows.assign(half=[crc32(str(setting).encode()) % 2 for setting in settings])
    pairs = [(i, a) for i, a in enumerate(asked_of(rows)) if not isinstance(a, str)]
    matches = [(i, a) for i, a in pairs if a.deployment.engine.name == engine]
    return Rows(rows.iloc[[i for i, _ in matches]], tuple(a for _, a in matches))


def names_of(engine: Engine, *, first: bool = False) -> tuple[str, ...]:
    """Names of an engine's fitted constants; `first`: those of its server."""
    return tuple(name for name in engine.fitted if (name in FIRST) == first)


def fitted(rows: Rows, engine: Engine, *, first: bool = False) -> dict[str, float]:
    """The constants with the smallest mean error; the search starts from the engine's file."""
    needs("scipy", "a fit")
    from scipy.optimize import minimize

    names = names_of(engine, first=first)
    start = {name: engine.constant(name) for name in names}

    def constants(point: np.ndarray) -> dict[str, float]:
        pairs = zip(names, point.tolist(), strict=True)
        return {name: abs(x) * start[name] for name, x in pairs}

    def loss(point: np.ndarray) -> float:
        return float(np.nanmean(np.abs(rows.errors(constants(point)))))

    solution = minimize(
        loss, np.ones(len(names)), method="Nelder-Mead",
        options={"maxfev": _MOST_CALLS, "xatol": 0.01, "fatol": 1e-5},
    )  # fmt: skip
    return constants(solution.x)


def left_out(rows: Rows, engine: Engine, column: str, *, first: bool = False) -> np.ndarray:
    """Errors of each row with constants fitted without its value of `column`; NaN if the rows have
    one value only."""
    values = rows.table[column].astype("str").to_numpy()
    errors = np.full(len(values), np.nan)
    for value in sorted(set(values)):
        mask = values == value
        if not mask.all():
            best = fitted(rows.at(~mask), engine, first=first)
            errors[mask] = rows.at(mask).errors(best)
    return errors


def _line(label: str, errors: np.ndarray) -> str:
    e = errors[~np.isnan(errors)]
    if not len(e):
        return f"  {label}: nothing to hold out"
    return (
        f"  {label}: {len(e)} rows, median |ln| {np.median(np.abs(e)):.3f}, p90 "
        f"{np.quantile(np.abs(e), 0.9):.3f}, bias {np.exp(e.mean()):.3f}"
    )


def _main() -> None:
    table = read(sys.argv[1:], LAYOUT).strict()
    for engine, first in product(engines().values(), (False, True)):
        if not names_of(engine, first=first):
            continue
        rows = fitting_rows(table, engine.name, first=first)
        best = fitted(rows, engine, first=first)
        words = ", ".join(f"{name} {value:.4g}" for name, value in best.items())
        print(engine.name, "first tokens:" if first else "", words)
        print(_line("fitted", rows.errors(best)))
        print(_line("as shipped", rows.errors({})))
        print(_line("nothing fitted", rows.errors(dict.fromkeys(best, 0.0))))
        for column in LEAVE_OUT:
            print(_line(f"without its {column}", left_out(rows, engine, column, first=first)))


if __name__ == "__main__":
    sys.exit(exit_code("perfmodel.fitting.engines", _main))
