"""Predicts every row with constants fitted without its device, architecture, source or framework.

A fit to fewer rows is derived from the fit to all rows, where every row's error e and slopes S = d
ln(predicted) / d ln(constant) are known. For a change d of ln(constants) the errors are about e + S
d. Leaving rows out is then a small robust least-squares problem in d (a one-step jackknife: Cook
and Weisberg, Residuals and Influence in Regression, 1982, ch. 3).

Weights, loss, bounds and priors are those of the whole fit.

The rows left out are then predicted by the model itself. Starts of calls are also read again from
the remaining rows.

Compared with complete fits without Ada, Blackwell or Hopper, medians differ by at most 0.001 and
90th percentiles by at most 0.006.

Facts of kernels and device specs were chosen by people who knew all rows; they are not held out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError
from perfmodel.fitting.estimation import (
    ROBUST_SCALE,
    bounds,
    movable,
    pulls,
    robust,
    slopes,
    values_of,
    weights,
)
from perfmodel.fitting.starts import runs_of
from perfmodel.hardware import Device, load
from perfmodel.timing.architectures import architecture_of
from perfmodel.timing.constants import Constant, Constants
from perfmodel.timing.libraries import framework_of
from perfmodel.timing.runs import Run
from perfmodel.validation.compare import predict_table

if TYPE_CHECKING:
    import pandas as pd

COLUMNS: Mapping[str, str] = {
    "source": "who published it",
    "framework": "what ran it, of whatever version",
    "implementation": "what ran it, version and kernel",
    "architecture": "a generation of devices",
    "device": "a device, whose siblings stay",
}
"""Columns whose values can be left out one at a time."""
# Most steps of the reweighted least squares, and the change of ln(constant) below which they end.
_STEPS, _NEAR = 30, 1e-3


def labels(table: pd.DataFrame, column: str) -> pd.Series:
    """Each row's value of one of `COLUMNS`."""
    if column == "architecture":
        kinds = {str(name): architecture_of(load(str(name))).name for name in set(table["device"])}
        return table["device"].map(kinds).rename(column)
    if column == "framework":
        names = {name: framework_of(name) or name for name in set(table["implementation"])}
        return table["implementation"].map(names).rename(column)
    return table[column]


def folds(table: pd.DataFrame, column: str) -> list[tuple[str, np.ndarray]]:
    """Each value of a column, with its rows.

    Raises `TableError` for a table with only one value.
    """
    values = labels(table, column)
    groups = [(str(value), (values == value).to_numpy()) for value in sorted(values.unique())]
    groups = [(value, mask) for value, mask in groups if not mask.all()]
    if not groups:
        raise TableError(f"nothing to leave out: give runs of more than one {column}")
    return groups


@dataclass(frozen=True)
class Linearised:
    """A fit with the errors and slopes of its rows."""

    table: pd.DataFrame
    """The rows."""
    constants: tuple[Constant, ...]
    """All constants, with the values that were fitted."""
    runs: Mapping[str, Run]
    """The harnesses with fitted starts."""
    seen: pd.DataFrame
    """The rows from which starts were read (`starts.shown`)."""
    errors: np.ndarray
    """ln(predicted / measured) of each row; 0 where it cannot be predicted."""
    slopes: np.ndarray
    """Shape (rows, constants that a fit may move)."""
    kernel: pd.Series
    """The kernel that each row was predicted as."""

    def without(self, mine: np.ndarray) -> tuple[Constant, ...]:
        """The constants fitted to all rows except `mine`."""
        free = movable(self.constants)
        x = np.log([constant.value for constant in free])
        pull, prior = np.diag(pulls(free)), np.log([constant.prior for constant in free])
        weight = weights(self.table[~mine])
        slope = np.concatenate([weight[:, None] * self.slopes[~mine], pull])
        offset = np.concatenate([weight * self.errors[~mine], pull @ (x - prior)])
        low, high = bounds(free)
        solution = x + _robust_step(slope, offset, low - x, high - x)
        values = dict(zip([c.name for c in free], np.exp(solution), strict=True))
        return tuple(
            replace(c, value=float(np.clip(values.get(c.name, c.value), c.low, c.high)))
            for c in self.constants
        )

    def values_without(self, column: str, value: str) -> Constants:
        """Constants and starts fitted without the rows with `value` in `column`."""
        mask = (labels(self.table, column) == value).to_numpy()
        rest = (labels(self.seen, column) != value).to_numpy()
        values = values_of(self.constants, self.runs)
        runs = runs_of(self.seen[rest], values, forget=True)
        return values_of(self.without(mask), runs)


def _robust_step(
    slope: np.ndarray, offset: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """The d that minimises the robust loss of offset + slope d, within bounds.

    Solved by iteratively reweighted least squares (Holland and Welsch 1977).
    """
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import lsq_linear

    step = np.zeros(slope.shape[1])
    for _ in range(_STEPS):
        residual = (offset + slope @ step) / ROBUST_SCALE
        weight = robust(np.square(residual), lets_go=True)[1]
        matrix = slope * weight[:, None]
        root = cholesky(matrix.T @ slope)  # root.T @ root d = -weighed.T @ offset
        aim = solve_triangular(root, -matrix.T @ offset, trans="T")
        previous, step = step, lsq_linear(root, aim, (low - 1e-9, high + 1e-9)).x
        if np.max(np.abs(step - previous)) < _NEAR:
            break
    return step


def linearised(
    table: pd.DataFrame,
    constants: Sequence[Constant],
    runs: Mapping[str, Run],
    seen: pd.DataFrame,
) -> Linearised:
    """A fit's errors and slopes. `constants` have its values; `seen` are the rows behind its
    starts."""
    frame = predict_table(table, constants=values_of(constants, runs))
    error = np.log(frame["predicted_us"].to_numpy(float) / table["measured_us"].to_numpy(float))
    slope = slopes(table, constants, runs)
    finite = np.where(np.isfinite(error), error, 0.0)
    return Linearised(table, tuple(constants), runs, seen, finite, slope, frame["kernel"])


@dataclass(frozen=True)
class Fold:
    """One value of a column, its rows, and constants and starts fitted without them."""

    value: str
    """The value."""
    mine: np.ndarray
    """Whether a row has it."""
    constants: Constants
    """Constants and starts fitted to all other rows."""


def without_each(fit: Linearised, column: str) -> list[Fold]:
    """A fold for each value of a column; raises `TableError` for a table of one value."""
    return [
        Fold(value, mask, fit.values_without(column, value))
        for value, mask in folds(fit.table, column)
    ]


def left_out(
    fit: Linearised,
    column: str,
    *,
    device: Callable[[str], Device] = load,
    change: Callable[[Constants], Constants] | None = None,
    known: Sequence[Fold] | None = None,
) -> pd.DataFrame:
    """Every row predicted with constants fitted without its value of `column`.

    The rows have the table's order and index; `held_out` is the value left out. `device` makes a
    device from its name, `change` is applied to the constants of each fold, and `known` are the
    folds if already computed. Raises `TableError` for a table with only one value.
    """
    import pandas as pd

    parts: list[pd.DataFrame] = []
    for fold in without_each(fit, column) if known is None else known:
        values = fold.constants if change is None else change(fold.constants)
        predictions = predict_table(fit.table[fold.mine], constants=values, device=device)
        index = fit.table.index[fold.mine]
        parts.append(predictions.set_axis(index, axis="index").assign(held_out=fold.value))
    frame: pd.DataFrame = pd.concat(parts).sort_index()
    return frame
