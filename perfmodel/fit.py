"""Fit the time model's constants to measured runs: one set for all devices, within physical bounds.

Residuals are ln(predicted / measured) under a robust loss, every operator × direction weighing the
same, each device within it the same. A weak pull towards the start keeps what the data cannot
identify where its source put it. Deterministic: the sample is stratified by position, not drawn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from perfmodel.compare import LEFT_OUT, predict_table
from perfmodel.evidence.records import tidy
from perfmodel.timing import spread
from perfmodel.timing.constants import Constant, Constants

if TYPE_CHECKING:
    import pandas as pd

# Rows of one kind that enter the fit; more only repeat what these say.
_PER_KIND = 60
_KIND = ("source", "device", "op", "implementation", "dtype", "kv_dtype", "direction", "phase")
# One unit of ln(constant) away from its start costs as much as a residual this large.
_PULL = 0.03
_ROBUST_SCALE = 0.15
_STEP = 0.02
# Half of an interval in ln beyond which its ends say nothing (a factor of 10¹³).
_WIDEST = 30.0


@dataclass(frozen=True)
class Fitted:
    """A constant with the interval the data leave it, and whether they identify it at all."""

    constant: Constant
    low: float
    high: float
    identified: bool


def sample(table: pd.DataFrame, per_kind: int = _PER_KIND) -> pd.DataFrame:
    """Evenly spaced rows of every kind, ordered by time so that all sizes are there."""
    kept = table[~table["flag"].isin(LEFT_OUT)] if "flag" in table.columns else table
    kept = kept[kept["measured_us"] > 0]
    picked: list[int] = []
    for _, rows in kept.groupby(list(_KIND), dropna=False, sort=True):
        order = rows.sort_values("measured_us", kind="stable").index
        where = np.unique(np.linspace(0, len(order) - 1, min(per_kind, len(order))).astype(int))
        picked += list(order[where])
    return kept.loc[sorted(picked)].reset_index(drop=True)


def weights(table: pd.DataFrame) -> np.ndarray:
    """Square roots of weights, their mean square 1.

    A kind (operator, direction, device, implementation) counts as the square root of its rows, and
    so does an operator: large sources speak louder than small ones, but do not drown them.
    """
    operator = ["op", "direction", "phase"]
    kind = table.groupby([*operator, "device", "source", "implementation"], dropna=False)
    rows = kind["measured_us"].transform("size").to_numpy(float)
    kinds = table.groupby(operator, dropna=False)["implementation"].transform("nunique")
    weight = np.power(rows * kinds.to_numpy(float), -0.25)
    return np.asarray(weight / np.sqrt(np.mean(np.square(weight))))


class _Problem:
    """Residuals as a function of ln(constants), re-predicting only the operators a step touches."""

    def __init__(self, table: pd.DataFrame, free: Sequence[Constant], start: Constants) -> None:
        self.table, self.free, self.start = table, free, start
        self.measured = np.log(table["measured_us"].to_numpy(float))
        self.weight = weights(table)
        self.touches: dict[int, np.ndarray] = {}
        self.ops = (
            table["op"].astype(str) + table["direction"].astype(str) + table["phase"].astype(str)
        )
        self.x0 = np.log([constant.value for constant in free])

    def _values(self, x: np.ndarray) -> Constants:
        return self.start.with_values(
            {constant.name: float(np.exp(v)) for constant, v in zip(self.free, x, strict=True)}
        )

    def _errors(self, x: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
        table = self.table if rows is None else self.table.iloc[rows]
        measured = self.measured if rows is None else self.measured[rows]
        found = predict_table(table, constants=self._values(x))["predicted_us"].to_numpy(float)
        error = np.log(found) - measured
        return np.where(np.isfinite(error), error, 0.0)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        pull = _PULL * np.sqrt(len(self.table)) * (x - self.x0) / np.sqrt(len(x))
        return np.concatenate([self.weight * self._errors(x), pull * 0.1])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        base = self._errors(x)
        n, m = len(base), len(x)
        result = np.zeros((n + m, m))
        for j in range(m):
            moved = x.copy()
            moved[j] += _STEP if x[j] + _STEP <= np.log(self.free[j].high) else -_STEP
            rows = self.touches.get(j)
            change = self._errors(moved, rows) - (base if rows is None else base[rows])
            if rows is None:
                touched = self.ops.isin(self.ops[np.abs(change) > 1e-9])
                self.touches[j] = rows = np.flatnonzero(touched.to_numpy())
                change = change[rows]
            result[rows, j] = self.weight[rows] * change / (moved[j] - x[j])
        pull = 0.1 * _PULL * np.sqrt(n) / np.sqrt(m)
        result[n:] = np.eye(m) * pull
        return result


def fit(
    table: pd.DataFrame,
    constants: Sequence[Constant],
    *,
    only: Sequence[str] = (),
    per_kind: int = _PER_KIND,
    steps: int = 12,
    verbose: Literal[0, 1, 2] = 0,
) -> list[Fitted]:
    """Fit every constant marked `fitted` (or those named) to a measured-run table.

    Returns all constants, the fitted ones with their 95 % interval. Needs SciPy (extra `[fit]`).
    """
    from scipy.optimize import least_squares

    start = Constants({constant.name: constant.value for constant in constants})
    free = [c for c in constants if c.fitted and c.value > 0 and (not only or c.name in only)]
    problem = _Problem(sample(table, per_kind), free, start)
    low = np.log([max(constant.low, constant.high * 1e-4) for constant in free])
    high = np.log([constant.high for constant in free])
    solution = least_squares(
        problem.residuals,
        np.clip(problem.x0, low + 1e-9, high - 1e-9),
        jac=problem.jacobian,
        bounds=(low, high),
        loss="soft_l1",
        f_scale=_ROBUST_SCALE,
        max_nfev=steps,
        verbose=verbose,
    )
    return _intervals(
        constants, free, solution.x, np.asarray(solution.jac), np.asarray(solution.fun)
    )


def _intervals(
    constants: Sequence[Constant],
    free: Sequence[Constant],
    x: np.ndarray,
    jacobian: np.ndarray,
    residuals: np.ndarray,
) -> list[Fitted]:
    """95 % intervals from the curvature at the solution; wide ones are not identified."""
    from dataclasses import replace

    variance = np.median(np.abs(residuals)) ** 2 / 0.455
    spread = 1.96 * np.sqrt(np.diag(np.linalg.pinv(jacobian.T @ jacobian)) * variance)
    found: Mapping[str, tuple[float, float]] = {
        constant.name: (float(v), float(s)) for constant, v, s in zip(free, x, spread, strict=True)
    }
    result = []
    for constant in constants:
        if constant.name not in found:
            result.append(Fitted(constant, constant.value, constant.value, False))
            continue
        value, width = found[constant.name]
        width = min(width, _WIDEST)
        best = replace(constant, value=float(np.clip(np.exp(value), constant.low, constant.high)))
        bounds = float(np.exp(value - width)), float(np.exp(value + width))
        result.append(Fitted(best, *bounds, identified=width < 0.5))
    return result


def left_out(
    table: pd.DataFrame, column: str, start: Sequence[Constant], *, steps: int = 3
) -> pd.DataFrame:
    """Every row predicted by constants fitted again without any row of its own `column` value.

    What the other rows cannot identify stays at `start`: where that was fitted to all rows, it
    still knows those left out, and the errors are optimistic.
    """
    import pandas as pd

    parts = []
    for value, rows in table.groupby(column, sort=True):
        others = table[table[column] != value]
        if others.empty:
            continue
        fitted = fit(others, start, per_kind=20, steps=steps)
        values = Constants({item.constant.name: item.constant.value for item in fitted})
        parts.append(predict_table(rows, constants=values).assign(held_out=value))
    return pd.concat(parts, ignore_index=True)


# Predicted times, in microseconds, at which the spread of errors changes character: launch floors,
# one wave, many waves, sustained clocks.
_EDGES_US = (10.0, 40.0, 200.0, 1000.0)
_FEWEST = 40


def spread_of(predicted: pd.DataFrame) -> dict[str, Any]:
    """10th and 90th percentiles of ln(measured / predicted) by family and predicted time.

    A bin with few rows borrows from the whole family. `predicted` comes from `predict_table`.
    """
    import pandas as pd

    kept = predicted[predicted["predicted_us"].notna() & ~predicted["flag"].isin(LEFT_OUT)]
    error = pd.Series(np.log(kept["measured_us"] / kept["predicted_us"]), index=kept.index)
    names = [
        _family(*row) for row in kept[["op", "dtype", "direction", "phase"]].itertuples(index=False)
    ]
    families: dict[str, Any] = {}
    for name, rows in error.groupby(names):
        time = kept.loc[rows.index, "predicted_us"].to_numpy(float)
        bins = np.searchsorted(_EDGES_US, time)
        low, high = [], []
        for i in range(len(_EDGES_US) + 1):
            here = rows.to_numpy()[bins == i]
            here = here if len(here) >= _FEWEST else rows.to_numpy()
            low.append(round(float(np.quantile(here, 0.1)), 4))
            high.append(round(float(np.quantile(here, 0.9)), 4))
        families[str(name)] = {
            "n": len(rows),
            "edges_us": list(_EDGES_US),
            "low": low,
            "high": high,
        }
    return families


def _family(op: str, dtype: str, direction: str, phase: str) -> str:
    if op == "attention":
        return f"attention-{phase if direction == 'fwd' else direction}"
    return spread.family_of_matmul(dtype) if op == "gemm" else op


def constants_text(fitted: Sequence[Fitted]) -> str:
    """The constants file: one line each, fitted values with their interval and its verdict."""
    import yaml

    lines = [
        "# Constants of the time model. None belongs to a device, a shape or a row. Fitted ones",
        "# come from measured runs within their physical bounds, with a 95 % interval; where the",
        "# data do not identify one, and for the others, the source decides.",
        "version: 1",
        "constants:",
    ]
    for item in fitted:
        constant = item.constant
        entry: dict[str, Any] = {
            "value": float(f"{constant.value:.5g}"),
            "unit": constant.unit,
            "low": constant.low,
            "high": constant.high,
            "fitted": constant.fitted,
        }
        if item.low != item.high:
            interval = [float(f"{item.low:.3g}"), float(f"{item.high:.3g}")]
            entry |= {"interval": interval, "identified": item.identified}
        entry |= {"meaning": constant.meaning, "source": constant.source}
        flow = yaml.safe_dump(entry, default_flow_style=True, sort_keys=False, width=10**6).strip()
        lines.append(f"  {constant.name}: {flow}")
    return "\n".join(lines) + "\n"


def spread_text(predicted: pd.DataFrame, widening: float) -> str:
    """The table of ranges: quantiles by family and time, the generations seen, the widening."""
    import yaml

    from perfmodel.hardware import load

    devices = sorted({str(name) for name in predicted["device"]})
    generations = {load(name).compute_capability for name in devices}
    entry = {
        "version": 1,
        "fitted_generations": sorted(name for name in generations if name),
        "unseen_widening": round(widening, 3),
        "families": spread_of(predicted),
    }
    body = yaml.safe_dump(entry, sort_keys=False, default_flow_style=None, width=100)
    said = "# 80 % ranges: quantiles of ln(measured / predicted) by family and by predicted time.\n"
    return said + "# Written by the fit; perfmodel/timing/spread.py reads it.\n" + body


def _p90(predicted: pd.DataFrame) -> float:
    error = (predicted["predicted_us"] / predicted["measured_us"]).map(np.log).abs()
    return float(error.quantile(0.9))


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m perfmodel.fit TABLE...`: fit, and write the two files beside `timing`."""
    import argparse
    from pathlib import Path

    from perfmodel.evidence.records import read_table, replacing
    from perfmodel.timing import constants as known

    parser = argparse.ArgumentParser(prog="perfmodel.fit", description=__doc__)
    parser.add_argument("table", nargs="+", help="measured-run tables (CSV, CSV.gz, Parquet)")
    parser.add_argument("--output", default=str(Path(known.__file__).parent), help="folder")
    parser.add_argument("--steps", type=int, default=3)
    chosen = parser.parse_args(arguments)
    table = tidy(read_table(chosen.table))
    start = known.shipped()
    fitted = fit(table, start, steps=chosen.steps, verbose=1)
    constants = [item.constant for item in fitted]
    values = Constants({constant.name: constant.value for constant in constants})
    # Ranges come from devices that the constants have not seen: that is what they will meet.
    rows = sample(table, _PER_KIND)
    held = left_out(rows, "device", constants, steps=2)
    widening = _p90(held) / _p90(predict_table(rows, constants=values))
    folder = Path(chosen.output)
    texts = {
        "constants.yaml": constants_text(fitted),
        "spread.yaml": spread_text(held, max(widening, 1.0)),
    }
    for name, text in texts.items():
        with replacing(str(folder / name)) as partial:
            partial.write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
