"""Learned corrections of the serving model, tested on devices and engines left out of training.

    python -m perfmodel.fitting.foil serving_runs.csv.gz

Each device, then each engine, is left out in turn. A foil learns the residual ln(measured) −
ln(start) on the other rows and is scored on the rows left out. The start is the model, the model
without the engines' fitted constants, or nothing (only sizes and hardware numbers as features).

Rates are converted to times, so that all errors have the same sign. The learned corrections are not
stored.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.algorithms.matmul import matmul_format
from perfmodel.errors import TableError, exit_code, needs
from perfmodel.evidence.tables.reading import read
from perfmodel.fitting.engines import names_of
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.memory import weight_bytes
from perfmodel.serving.runs import MEMORY, SIZES, Answers, Asked
from perfmodel.serving.served import METRICS, Served
from perfmodel.serving.spread import Spread
from perfmodel.validation.serving import LAYOUT, asked_of

if TYPE_CHECKING:
    import pandas as pd

HELD_OUT = ("device", "engine")
"""Columns whose values are left out one at a time."""
CLASSES = ("matmul", "attention", "communication", "host")
"""Classes of operations whose shares of the model's time are features; all others are one more."""
MODEL, UNFITTED, NOTHING = "model", "model, engines unfitted", "nothing"
"""Starts of a foil: columns of ln seconds; the last is 0."""
SHARES = tuple(f"share {kind}" for kind in (*CLASSES, "rest"))
UNFITTED_SHARES = tuple(f"unfitted {name}" for name in SHARES)
LOADS = (
    "ln requests", "ln isl", "ln osl", "ln devices",
    *(f"metric {name}" for name in METRICS), *(f"load {name}" for name in SIZES),
)  # fmt: skip
HARDWARE = ("ln weight bytes", "ln bytes/s", "ln FLOP/s")
_RIDGE = 1.0
_SEED = 0

Learner = Callable[["pd.DataFrame", np.ndarray, "pd.DataFrame"], np.ndarray]
"""Learns residuals of rows and predicts those of others: (rows, residuals, other rows)."""


@dataclass(frozen=True)
class Foil:
    """A learner and its start."""

    name: str
    """Its name in the table of scores."""
    start: str
    """`MODEL`, `UNFITTED` or `NOTHING`."""
    learner: Learner
    """The learner of the residual."""


# -- learners --------------------------------------------------------------------------------------


def as_it_is(rows: pd.DataFrame, residual: np.ndarray, others: pd.DataFrame) -> np.ndarray:
    """Learns nothing."""
    return np.zeros(len(others))


def bias(column: str) -> Learner:
    """The mean residual of each value of `column`; for a new value the mean of these means."""

    def learn(rows: pd.DataFrame, residual: np.ndarray, targets: pd.DataFrame) -> np.ndarray:
        import pandas as pd

        means = pd.Series(residual, rows.index).groupby(rows[column]).mean()
        return targets[column].map(means).fillna(means.mean()).to_numpy(float)

    return learn


def ridge(features: Sequence[str]) -> Learner:
    """Ridge regression on standardised features (Hoerl and Kennard, 1970)."""

    def learn(rows: pd.DataFrame, residual: np.ndarray, targets: pd.DataFrame) -> np.ndarray:
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler

        model = make_pipeline(StandardScaler(), Ridge(alpha=_RIDGE))
        model.fit(rows[list(features)].to_numpy(), residual)
        return np.asarray(model.predict(targets[list(features)].to_numpy()))

    return learn


def trees(features: Sequence[str]) -> Learner:
    """Gradient-boosted trees (Friedman, 2001) with scikit-learn's own settings."""

    def learn(rows: pd.DataFrame, residual: np.ndarray, targets: pd.DataFrame) -> np.ndarray:
        from sklearn.ensemble import HistGradientBoostingRegressor

        model = HistGradientBoostingRegressor(random_state=_SEED, early_stopping=False)
        model.fit(rows[list(features)].to_numpy(), residual)
        return np.asarray(model.predict(targets[list(features)].to_numpy()))

    return learn


def _foils(start: str, shares: Sequence[str]) -> Iterator[Foil]:
    features = (*shares, *LOADS)
    yield Foil("as it is", start, as_it_is)
    yield Foil("one bias a device", start, bias("device"))
    yield Foil("one bias an engine", start, bias("engine"))
    yield Foil("ridge", start, ridge(features))
    yield Foil("trees", start, trees(features))


FOILS = (
    *_foils(MODEL, SHARES),
    *_foils(UNFITTED, UNFITTED_SHARES),
    Foil("ridge", NOTHING, ridge((*HARDWARE, *LOADS))),
    Foil("trees", NOTHING, trees((*HARDWARE, *LOADS))),
)
"""The foils that are compared."""


# -- rows ------------------------------------------------------------------------------------------


def rows_of(table: pd.DataFrame) -> pd.DataFrame:
    """The unflagged rows that are predicted: `device`, `engine`, ln seconds `measured` and from
    each start, features. Raises `TableError` where there are none."""
    import pandas as pd

    frame = table[(table["flag"] == "") & (table["metric"] != MEMORY)]
    requests = asked_of(frame)
    frame = frame[[isinstance(row, Asked) for row in requests]]
    queries = [row for row in requests if isinstance(row, Asked)]
    answers = Answers(Spread.none())
    fitted, base = answers.served(queries), answers.served([_unfitted_row(row) for row in queries])
    values = frame["value"].to_numpy(float)
    rows = {
        i: _row(row, value, a, b)
        for i, row, value, a, b in zip(frame.index, queries, values, fitted, base, strict=True)
        if isinstance(a, Served) and isinstance(b, Served)
    }
    if not rows:
        raise TableError("no row is predicted; perfmodel compare --kind serving says why")
    labels = frame.loc[list(rows), list(HELD_OUT)].astype(str)
    return labels.join(pd.DataFrame.from_dict(rows, orient="index"))


def _unfitted_row(row: Asked) -> Asked:
    """The row with its engine's searched constants set to 0."""
    deployment = row.deployment
    engine = deployment.engine.having(dict.fromkeys(names_of(deployment.engine), 0.0))
    return replace(row, deployment=replace(deployment, engine=engine))


def _row(row: Asked, value: float, fitted: Served, base: Served) -> dict[str, float]:
    deployment = row.deployment
    total = value * deployment.devices if row.per_device and _is_rate(row) else value
    return {
        "measured": _ln_seconds(row, total),
        MODEL: _ln_seconds(row, fitted.metric(row.metric).value),
        UNFITTED: _ln_seconds(row, base.metric(row.metric).value),
        NOTHING: 0.0,
        **dict(zip(SHARES, _shares(row.metric, fitted), strict=True)),
        **dict(zip(UNFITTED_SHARES, _shares(row.metric, base), strict=True)),
        **dict(zip(HARDWARE, map(math.log, _hardware(deployment)), strict=True)),
        **dict(zip(LOADS, _load(row), strict=True)),
    }


def _is_rate(row: Asked) -> bool:
    return row.metric.endswith("_per_s")


def _ln_seconds(row: Asked, value: float) -> float:
    """ln of a time, or, for a rate, of the time of all requests' tokens."""
    if not _is_rate(row):
        return math.log(value / 1e3)
    tokens = row.isl if row.metric == "input_tokens_per_s" else row.osl
    return math.log(max(row.size, 1.0) * tokens / value)


def _shares(metric: str, served: Served) -> list[float]:
    """Shares of a request's time, or of its first or its later tokens if `metric` is about
    these."""
    load, i = served.load, served.place
    seconds = float(load.ttft[i]), (served.osl - 1) * float(load.tpot[i])
    weights = {"ttft_ms": (1.0, 0.0), "tpot_ms": (0.0, 1.0)}.get(metric, seconds)
    by_class = dict.fromkeys(CLASSES, 0.0)
    for times, weight in zip((load.prompt, load.token), weights, strict=True):
        kinds = times.by_kind(i)
        for kind in CLASSES:
            by_class[kind] += weight / sum(weights) * kinds.get(kind, 0.0) / sum(kinds.values())
    return [*by_class.values(), 1.0 - sum(by_class.values())]


def _hardware(deployment: Deployment) -> tuple[float, float, float]:
    """Bytes of weights on a device, its bandwidth, and the peak rate of its products."""
    device, dtype = deployment.device, matmul_format(deployment.product).compute
    supported = dtype in device.matrix_types
    flops = device.matrix_flops(dtype) if supported else device.vector_flops(dtype)
    return weight_bytes(deployment), device.hbm_bytes_per_s, flops


def _load(row: Asked) -> list[float]:
    """The features `LOADS`; the number of requests of a full load is unknown."""
    sizes = (max(row.size, 1.0), row.isl, row.osl, row.deployment.devices)
    return [
        *map(math.log, sizes),
        *(float(name == row.metric) for name in METRICS),
        *(float(name == row.load) for name in SIZES),
    ]


# -- scores ----------------------------------------------------------------------------------------


def predictions(rows: pd.DataFrame, foil: Foil, column: str) -> np.ndarray:
    """ln seconds of each row from a foil that learned without any row of its `column`'s value.

    Raises `TableError` for rows of one value.
    """
    logs = rows[foil.start].to_numpy(float).copy()
    residual = rows["measured"].to_numpy(float) - logs
    values = rows[column].to_numpy()
    names = sorted(set(values))
    if len(names) < 2:
        raise TableError(f"nothing to leave out: give rows of more than one {column}")
    for name in names:
        mask = values == name
        logs[mask] += foil.learner(rows[~mask], residual[~mask], rows[mask])
    return logs


def scores(rows: pd.DataFrame, column: str, foils: Sequence[Foil] = FOILS) -> pd.DataFrame:
    """One row for each foil: `start`, `foil`, `n`, `median` and `p90` of |ln(predicted /
    measured)|, and `groups`, the mean over values of `column` of their medians."""
    import pandas as pd

    def score(foil: Foil) -> dict[str, object]:
        off = (predictions(rows, foil, column) - rows["measured"]).abs()
        return {
            "start": foil.start,
            "foil": foil.name,
            "n": len(off),
            "median": off.median(),
            "p90": off.quantile(0.9),
            "groups": off.groupby(rows[column]).median().mean(),
        }

    return pd.DataFrame([score(foil) for foil in foils])


def main(paths: Sequence[str]) -> int:
    """Print the scores for the rows of tables; returns the exit code."""
    return exit_code("perfmodel.fitting.foil", lambda: _compare(paths))


def _compare(paths: Sequence[str]) -> None:
    needs("sklearn", "a learned residual")
    rows = rows_of(read(paths, LAYOUT).strict())
    for column in HELD_OUT:
        print(f"{len(rows):,} rows, left out: each of {rows[column].nunique()} {column}s")
        print(scores(rows, column).to_string(index=False, float_format="%.3f"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
