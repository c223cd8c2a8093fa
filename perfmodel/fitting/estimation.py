"""Fit the time model's constants to measured runs: one set for all devices, within physical bounds.

Residuals are ln(predicted / measured) under a robust loss. Every constant has a prior from physics
whose width is that of its bounds (maximum a posteriori). A constant that the data cannot identify
thus stays at its source's value, and a fit does not depend on an earlier one. The fit is
deterministic: the sample is stratified by position, not random.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from perfmodel.fitting.fitted import Fitted, families
from perfmodel.timing.constants import Constant, Constants
from perfmodel.timing.runs import Run
from perfmodel.validation.compare import predict_table
from perfmodel.validation.judging import LEFT_OUT

if TYPE_CHECKING:
    import pandas as pd

# Rows of one kind in the fit: all if they are few, else in proportion to the square root of their
# number, since rows of a kind are nearly repetitions.
_PER_KIND, _PER_ROOT = 60, 2.5
# Steps of a fit: half with a loss that grows with every error, half with one that discounts
# outliers.
STEPS = 12
_KIND = ("source", "device", "op", "implementation", "dtype", "kv_dtype", "direction", "phase")
# A constant's bounds are two standard deviations of its prior on either side. One standard
# deviation weighs as much as this many rows with an error of the robust scale.
_PRIOR_ROWS = 4.0
ROBUST_SCALE = 0.15
_STEP = 0.02
# Steps between two evaluations of slopes by finite differences, and the change of ln(constant)
# since its last evaluation beyond which its slopes are evaluated again.
_EXACT, _MOVED = 3, 0.06
# Largest half-width of an interval in ln (a factor of 10¹³).
_WIDEST = 30.0


def sample(
    table: pd.DataFrame, per_kind: int = _PER_KIND, per_root: float = _PER_ROOT
) -> pd.DataFrame:
    """Evenly spaced rows of every kind, ordered by time, so that all sizes are included.

    Of a kind with n rows, max(`per_kind`, `per_root` · √n) are taken.
    """
    runs = table[~table["flag"].isin(LEFT_OUT)] if "flag" in table.columns else table
    runs = runs[runs["measured_us"] > 0]
    index: list[int] = []
    for _, rows in runs.groupby(list(_KIND), dropna=False, sort=True):
        order = rows.sort_values("measured_us", kind="stable").index
        count = min(len(order), max(per_kind, int(per_root * np.sqrt(len(order)))))
        places = np.unique(np.linspace(0, len(order) - 1, count).astype(int))
        index += list(order[places])
    return runs.loc[sorted(index)].reset_index(drop=True)


def weights(table: pd.DataFrame) -> np.ndarray:
    """Square roots of the rows' weights, with mean square 1.

    A family of operators weighs as the square root of its number of rows, so that large families do
    not dominate small ones. Within a family all rows weigh the same.
    """
    rows = table.groupby(families(table))["measured_us"].transform("size").to_numpy(float)
    weight = np.power(rows, -0.25)
    return np.asarray(weight / np.sqrt(np.mean(np.square(weight))))


def bounds(free: Sequence[Constant]) -> tuple[np.ndarray, np.ndarray]:
    """ln of the lower and upper bounds of constants."""
    low = np.log([max(constant.low, constant.high * 1e-4) for constant in free])
    return low, np.log([constant.high for constant in free])


def pulls(free: Sequence[Constant]) -> np.ndarray:
    """Weight of a constant's deviation from its prior, per unit of ln."""
    floors = [max(constant.low, constant.prior / 10) for constant in free]
    deviation = np.log([c.high / low for c, low in zip(free, floors, strict=True)]) / 4
    return np.asarray(ROBUST_SCALE * np.sqrt(_PRIOR_ROWS) / deviation)


class _Watched(Constants):
    """Constants that record which of them were read."""

    def __init__(self, values: Constants) -> None:
        super().__init__(values)
        self.off, self.changed_runs = values.off, values.changed_runs
        self.asked: set[str] = set()

    def __getitem__(self, name: str) -> float:
        self.asked.add(name)
        return super().__getitem__(name)


class _Problem:
    """Residuals as a function of ln(constants). A step in a constant predicts again only the rows
    that read it."""

    def __init__(
        self,
        table: pd.DataFrame,
        free: Sequence[Constant],
        start: Constants,
        first: np.ndarray | None = None,
    ) -> None:
        self.table, self.free, self.start = table, free, start
        self.first, self.evaluations, self.asked = first, 0, -1
        self.known: tuple[np.ndarray, np.ndarray] | None = None
        self.slopes, self.found_at = np.empty((0, 0)), np.empty(0)
        self.measured = np.log(table["measured_us"].to_numpy(float))
        self.weight = weights(table)
        self.latest = np.empty(0), np.empty(0)
        self.kinds = table.groupby(list(_KIND), dropna=False, sort=False).ngroup().to_numpy()
        self.touches = self._readers()
        self.reads = np.zeros((len(table), len(free)))
        for j, rows in enumerate(self.touches):
            self.reads[rows, j] = 1.0
        self.x0 = np.log([constant.prior for constant in free])
        self.low, self.high = bounds(free)
        self.begin = np.clip(self.x0, self.low + 1e-9, self.high - 1e-9)
        self.pull = np.diag(pulls(free))

    def _readers(self) -> list[np.ndarray]:
        """For each constant the rows of the kinds whose prediction reads it."""
        queries = []
        for kind in range(self.kinds.max() + 1):
            probe = _Watched(self.start)
            predict_table(self.table[self.kinds == kind], constants=probe)
            queries.append(probe.asked)
        reads = [np.array([c.name in names for names in queries]) for c in self.free]
        return [np.flatnonzero(r[self.kinds]) for r in reads]

    def _values(self, x: np.ndarray) -> Constants:
        return self.start.with_values(
            {constant.name: float(np.exp(v)) for constant, v in zip(self.free, x, strict=True)}
        )

    def _errors(self, x: np.ndarray, rows: slice | np.ndarray = slice(None)) -> np.ndarray:
        predictions = predict_table(self.table.iloc[rows], constants=self._values(x))
        error = np.log(predictions["predicted_us"].to_numpy(float)) - self.measured[rows]
        return np.where(np.isfinite(error), error, 0.0)

    def residuals(self, x: np.ndarray) -> np.ndarray:
        self.latest = x.copy(), self._errors(x)
        self.evaluations += 1
        return np.concatenate([self.weight * self.latest[1], self.pull @ (x - self.x0)])

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        point, base = self.latest
        if not np.array_equal(point, x):
            base = self._errors(x)
        now = np.concatenate([self.weight * base, self.pull @ (x - self.x0)])
        before, self.known = self.known, (x.copy(), now)
        self.asked += 1
        if before is None:
            slopes = self.sensitivity(x, base) if self.first is None else self.first
            self.slopes = np.concatenate([self.weight[:, None] * slopes, self.pull])
            self.found_at = x.copy()
            return self.slopes
        self._learn(x - before[0], now - before[1])
        if self.asked % _EXACT == 0:
            columns = np.flatnonzero(np.abs(x - self.found_at) > _MOVED)
            slopes = self.sensitivity(x, base, columns)[:, columns]
            self.slopes[: len(base), columns] = self.weight[:, None] * slopes
            self.found_at[columns] = x[columns]
        return self.slopes

    def _learn(self, step: np.ndarray, change: np.ndarray) -> None:
        """Update the slopes from the change of the residuals in a step, without further
        predictions.

        This is Schubert's sparse form (1970) of Broyden's update: only slopes of constants that a
        row reads are changed. The priors' terms are linear and stay the same.
        """
        rows = len(self.reads)
        effect = self.reads * step
        miss = (change - self.slopes @ step)[:rows]
        self.slopes = self.slopes.copy()
        length = np.maximum(np.square(effect).sum(axis=1), 1e-30)
        self.slopes[:rows] += effect * (miss / length)[:, None]

    def sensitivity(
        self,
        x: np.ndarray,
        base: np.ndarray | None = None,
        columns: Iterable[int] | None = None,
    ) -> np.ndarray:
        """d ln(predicted) / d ln(constant) from a small step of each, for the rows that read it.

        Shape (rows, constants); 0 for constants not in `columns` (default all). `base` are the
        errors at `x`, if known.
        """
        base = self._errors(x) if base is None else base
        result = np.zeros((len(base), len(x)))
        for j in range(len(x)) if columns is None else columns:
            point = x.copy()
            point[j] += _STEP if x[j] + _STEP <= np.log(self.free[j].high) else -_STEP
            rows = self.touches[j]
            if rows.size:
                result[rows, j] = (self._errors(point, rows) - base[rows]) / (point[j] - x[j])
        return result


def robust(z: np.ndarray, *, lets_go: bool) -> np.ndarray:
    """A robust loss of squared errors z, with its first and second derivatives.

    Charbonnier's loss, which grows with every error; or, with `lets_go`, Cauchy's, which discounts
    large errors.
    """
    root = 1.0 + z
    if lets_go:
        return np.array([np.log(root), 1.0 / root, -1.0 / root**2])
    return np.array([2.0 * (np.sqrt(root) - 1.0), root**-0.5, -0.5 * root**-1.5])


def values_of(
    constants: Sequence[Constant], runs: Mapping[str, Run] | None = None, *, prior: bool = False
) -> Constants:
    """Values of constants (or their priors), with the harnesses' runs."""
    values = Constants({item.name: item.prior if prior else item.value for item in constants})
    return values if runs is None else values.with_runs(runs)


def movable(constants: Sequence[Constant], only: Sequence[str] = ()) -> list[Constant]:
    """The constants that a fit may move."""
    return [c for c in constants if c.fitted and c.prior > 0 and (not only or c.name in only)]


def slopes(
    table: pd.DataFrame,
    constants: Sequence[Constant],
    runs: Mapping[str, Run] | None = None,
    *,
    prior: bool = False,
) -> np.ndarray:
    """d ln(predicted) / d ln(constant) of every row, at the constants' values or at their priors.

    Shape (rows, constants that a fit may move). Measurements do not enter. Constants are shared
    among one process for each processor.
    """
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial
    from multiprocessing import get_context
    from os import cpu_count

    number = len(movable(constants))
    workers = min(cpu_count() or 1, number)
    shares = [range(i, number, workers) for i in range(workers)]
    task = partial(_slopes, table, tuple(constants), runs, prior)
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        return np.asarray(sum(pool.map(task, shares)))


def _slopes(
    table: pd.DataFrame,
    constants: Sequence[Constant],
    runs: Mapping[str, Run] | None,
    prior: bool,
    columns: Iterable[int],
) -> np.ndarray:
    """`slopes` of some constants, 0 for the others."""
    free = movable(constants)
    problem = _Problem(table, free, values_of(constants, runs))
    x = problem.begin if prior else np.log([constant.value for constant in free])
    return problem.sensitivity(x, columns=columns)


def fit(
    table: pd.DataFrame,
    constants: Sequence[Constant],
    *,
    only: Sequence[str] = (),
    steps: int = STEPS,
    first: np.ndarray | None = None,
    runs: Mapping[str, Run] | None = None,
    verbose: Literal[0, 1, 2] = 0,
) -> list[Fitted]:
    """Fit every constant marked `fitted` (or those named) to all rows of a table, from its prior.

    Returns all constants, the fitted ones with their 95 % interval. `first` are the rows' `slopes`
    at the priors, if known; `runs` are the harnesses, if not the shipped ones. Needs SciPy (extra
    `[fit]`).
    """
    from scipy.optimize import least_squares

    start = values_of(constants, runs)
    free = movable(constants, only)
    problem = _Problem(table, free, start, first)

    def loss(z: Any) -> Any:
        # No constant explains runs of another release or of a throttled board. They are discounted
        # once all others are close (graduated non-convexity).
        return robust(z, lets_go=problem.evaluations > steps // 2)

    solution = least_squares(
        problem.residuals,
        problem.begin,
        jac=problem.jacobian,
        bounds=(problem.low, problem.high),
        x_scale="jac",
        loss=loss,  # type: ignore[arg-type]  # SciPy never passes the keyword of its stub
        f_scale=ROBUST_SCALE,
        max_nfev=steps,
        verbose=verbose,
    )
    residuals = np.asarray(solution.fun)
    # The weight of each residual under the loss.
    weight = loss(np.square(residuals / ROBUST_SCALE))[1]
    jacobian = problem.slopes * np.sqrt(weight)[:, None]
    return intervals(constants, free, solution.x, jacobian, residuals, np.diag(problem.pull))


def intervals(
    constants: Sequence[Constant],
    free: Sequence[Constant],
    x: np.ndarray,
    jacobian: np.ndarray,
    residuals: np.ndarray,
    pull: np.ndarray,
) -> list[Fitted]:
    """95 % intervals from the curvature at the solution.

    A constant is identified if the data tell more than its prior: its posterior standard deviation
    is below 1/√2 of the prior's.
    """
    from dataclasses import replace

    deviation = np.median(np.abs(residuals)) / np.sqrt(0.455)
    spread = 1.96 * deviation * np.sqrt(np.diag(np.linalg.pinv(jacobian.T @ jacobian)))
    prior = 1.96 * deviation / pull
    estimates: Mapping[str, tuple[float, float, bool]] = {
        constant.name: (float(v), float(s), bool(s < p / np.sqrt(2)))
        for constant, v, s, p in zip(free, x, spread, prior, strict=True)
    }
    result = []
    for constant in constants:
        if constant.name not in estimates:
            result.append(Fitted(constant, constant.value, constant.value, False))
            continue
        value, width, identified = estimates[constant.name]
        width = min(width, _WIDEST)
        best = replace(constant, value=float(np.clip(np.exp(value), constant.low, constant.high)))
        bounds = float(np.exp(value - width)), float(np.exp(value + width))
        result.append(Fitted(best, *bounds, identified=identified))
    return result
