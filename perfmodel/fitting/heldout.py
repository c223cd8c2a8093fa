"""Every row predicted by constants that have not seen its device, source or implementation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from perfmodel.errors import TableError
from perfmodel.fitting.estimation import STEPS, first_slopes, fit, values_of
from perfmodel.timing.constants import Constant
from perfmodel.timing.runs import Run
from perfmodel.validation.compare import predict_table

if TYPE_CHECKING:
    import pandas as pd


def folds(table: pd.DataFrame, column: str) -> list[tuple[str, pd.Series]]:
    """Each value of a column with its rows, for which all others can be fitted to.

    Raises `TableError` for a table of one value.
    """
    found = [(value, table[column] == value) for value in sorted(table[column].unique())]
    found = [(value, mine) for value, mine in found if not mine.all()]
    if not found:
        raise TableError(f"nothing to leave out: give runs of more than one {column}")
    return found


def left_out(
    table: pd.DataFrame,
    column: str,
    start: Sequence[Constant],
    *,
    steps: int = STEPS,
    first: np.ndarray | None = None,
    runs: Mapping[str, Run] | None = None,
) -> pd.DataFrame:
    """Every row predicted by constants fitted again without any row of its own `column` value.

    In the table's order, with its index; `held_out` says what was left out. Each fit starts at the
    priors, so that it knows nothing of the rows left out; what the others cannot identify stays
    there. The fits run side by side, a process each, and share `first_slopes`, which may be given,
    and how harnesses time.
    Raises `TableError` for a table of one value.
    """
    from concurrent.futures import ProcessPoolExecutor
    from functools import partial
    from multiprocessing import get_context

    import pandas as pd

    each = folds(table, column)
    slopes = first_slopes(table, start, runs) if first is None else first
    task = partial(_fold, constants=tuple(start), steps=steps, runs=runs)
    others = [~mine.to_numpy() for _, mine in each]
    given = [table[rows] for rows in others], [slopes[rows] for rows in others]
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        parts = pool.map(task, *given, [table[mine] for _, mine in each])
        found = [
            part.set_axis(table.index[mine], axis="index").assign(held_out=value)
            for part, (value, mine) in zip(parts, each, strict=True)
        ]
    return pd.concat(found).sort_index()


def _fold(
    others: pd.DataFrame,
    first: np.ndarray,
    rows: pd.DataFrame,
    *,
    constants: Sequence[Constant],
    steps: int,
    runs: Mapping[str, Run] | None,
) -> pd.DataFrame:
    """`rows` predicted by constants fitted to `others`, whose first slopes are known."""
    fitted = fit(others, constants, steps=steps, intervals=False, first=first, runs=runs)
    values = values_of([item.constant for item in fitted], runs)
    return predict_table(rows, constants=values)
