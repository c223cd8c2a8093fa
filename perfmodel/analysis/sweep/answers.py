"""Queries on a sweep in one pass over its tables: best rows, Pareto front, and filters.

Rows that could not be predicted have no time; only a filter can return them. Memory grows with the
answer, not with the sweep.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np

from perfmodel.analysis.sweep.expressions import SHORT, Expression
from perfmodel.analysis.sweep.sample import Sample
from perfmodel.columns import Column, Result
from perfmodel.errors import ProblemError

if TYPE_CHECKING:
    import pyarrow as pa

MOST = 1_000_000
"""Largest number of rows of an answer, also while it is computed."""

_BATCH = 65_536  # candidate rows collected before they are reduced again

Keep = Callable[["Rows"], np.ndarray]


@dataclass(frozen=True)
class Answer(Result):
    """The answer to a query."""

    rows: list[dict[str, Any]]
    """Rows as plain values."""
    matched: Annotated[int, Column()]
    """Rows that met the condition."""
    seen: Annotated[int, Column(key="points")]
    """Rows of the sweep."""
    operator: Annotated[str, Column(place=-1)] = ""
    """The operator of the sweep."""


class Rows:
    """A table whose columns are converted to NumPy arrays on first use; missing numbers are NaN."""

    def __init__(self, table: pa.Table) -> None:
        self.table = table
        self._columns: dict[str, np.ndarray] = {}

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __getitem__(self, name: str) -> np.ndarray:
        if name not in self._columns:
            self._columns[name] = _array(self.table.column(name))
        return self._columns[name]

    def take(self, index: np.ndarray) -> Rows:
        """The rows at `index`, with text as plain strings so that tables can be joined."""
        import pyarrow as pa

        table = self.table.take(index)
        columns = [
            column.cast(pa.string()) if pa.types.is_dictionary(column.type) else column
            for column in table.columns
        ]
        return Rows(pa.table(dict(zip(table.column_names, columns, strict=True))))


def _array(column: Any) -> np.ndarray:
    import pyarrow as pa

    array = column.combine_chunks()
    if pa.types.is_dictionary(array.type):
        names = np.array([*array.dictionary.to_pylist(), ""], dtype=object)
        codes = array.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
        return np.asarray(names[codes])
    if pa.types.is_string(array.type):
        return np.array(array.fill_null("").to_pylist(), dtype=object)
    return np.asarray(array.to_numpy(zero_copy_only=False))


def matching(
    tables: Iterable[pa.Table], where: Expression | None = None, limit: int | None = None
) -> Answer:
    """The first `limit` rows (all where None) that meet `where`, in the order of the grid."""
    records: list[dict[str, Any]] = []
    hits = total = 0
    for rows in map(Rows, tables):
        index = _matches(rows, where)
        hits, total = hits + index.size, total + len(rows)
        room = index.size if limit is None else max(limit - len(records), 0)
        if len(records) + min(room, index.size) > MOST:
            raise ProblemError(f"more than {MOST:,} rows match; narrow the question, or its limit")
        records += rows.take(index[:room]).table.to_pylist()
    return Answer(records, hits, total)


def best(
    tables: Iterable[pa.Table],
    by: Expression,
    per: Sequence[str] = (),
    where: Expression | None = None,
) -> Answer:
    """The row with the smallest `by` for each combination of the columns `per`; the first of ties.

    Raises `ProblemError` for more than `MOST` combinations.
    """

    def keep(rows: Rows) -> np.ndarray:
        values, groups = _values(by, rows), _groups(rows, per)
        order = np.lexsort((np.arange(len(rows)), values, groups))
        order = order[~np.isnan(values[order])]
        starts = np.r_[True, np.diff(groups[order]) != 0] if order.size else np.zeros(0, dtype=bool)
        picks: np.ndarray = np.sort(order[starts])
        return picks

    return _answer(tables, keep, where)


def pareto(
    tables: Iterable[pa.Table],
    by: Sequence[Expression],
    per: Sequence[str] = (),
    where: Expression | None = None,
    beside: Sample | None = None,
) -> Answer:
    """The Pareto front in `by` (smaller is better) for each combination of the columns `per`.

    Of rows that are equal in all of `by` the first is kept. `beside` is called with all rows that
    meet the condition. Raises `ProblemError` for fewer than two quantities and for a front of more
    than `MOST` rows.
    """
    if len(by) < 2:
        raise ProblemError("a Pareto front needs two quantities or more; write --pareto time,bytes")

    def keep(rows: Rows) -> np.ndarray:
        values = np.stack([_values(quantity, rows) for quantity in by], axis=1)
        return front(values, _groups(rows, per))

    return _answer(tables, keep, where, beside)


def front(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Indices of the rows of `values` (n × k) on their group's Pareto front, in ascending order."""
    n = len(values)
    order: np.ndarray = np.lexsort((np.arange(n), *values.T[::-1], groups))
    order = order[~np.isnan(values[order]).any(axis=1)]
    if not order.size:
        return order
    if values.shape[1] == 2:
        order = order[_falls(groups[order], values[order, 1])]
        return np.asarray(np.sort(order))
    parts = np.split(order, np.flatnonzero(np.diff(groups[order])) + 1)
    return np.asarray(np.sort(np.concatenate([part[_front(values[part])] for part in parts])))


def _front(values: np.ndarray) -> np.ndarray:
    """Indices of the rows that no other dominates; the rows are in ascending order."""
    rest = np.arange(len(values))
    i = 0
    while i < len(rest):
        keep = np.any(values[rest] < values[rest[i]], axis=1)
        keep[i] = True  # rows that equal it or are dominated by it are removed
        rest = rest[keep]
        i = int(keep[:i].sum()) + 1
    return rest


def _falls(groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Whether a value is below all earlier values of its group; the groups ascend."""
    ranks = np.unique(values, return_inverse=True)[1]
    codes = np.unique(groups, return_inverse=True)[1]
    # Values are shifted so that each group is below all earlier ones; one running minimum then
    # serves all groups.
    level = ranks - codes * (ranks.max() + 1)
    least = np.minimum.accumulate(level)
    return np.concatenate([[True], level[1:] < least[:-1]])


def _groups(rows: Rows, per: Sequence[str]) -> np.ndarray:
    """A group number for each row: equal where the columns `per` are equal."""
    code = np.zeros(len(rows), dtype=np.int64)
    for name in per:
        values, codes = np.unique(rows[name], return_inverse=True)
        code = np.unique(code * values.size + codes, return_inverse=True)[1]
    return code


def _values(quantity: Expression, rows: Rows) -> np.ndarray:
    """A quantity in every row, as float64."""
    values = np.asarray(quantity(rows), dtype=np.float64)  # type: ignore[arg-type]
    return np.broadcast_to(values, (len(rows),))


def _matches(rows: Rows, condition: Expression | None) -> np.ndarray:
    if condition is None:
        return np.arange(len(rows))
    return np.flatnonzero(np.broadcast_to(condition(rows), (len(rows),)))  # type: ignore[arg-type]


def _answer(
    tables: Iterable[pa.Table],
    keep: Keep,
    condition: Expression | None,
    sample: Sample | None = None,
) -> Answer:
    """Reduce each table by `keep`, and reduce the collected rows again whenever there are
    enough."""
    import pyarrow as pa

    parts: list[pa.Table] = []
    size = hits = total = base = 0
    for rows in map(Rows, tables):
        index = _matches(rows, condition)
        hits, total = hits + index.size, total + len(rows)
        picks = rows.take(index)
        if sample is not None:
            sample.add(picks.table)
        parts.append(picks.take(keep(picks)).table)
        size += parts[-1].num_rows
        if size > base + max(base, _BATCH):
            parts = [_reduction(pa.concat_tables(parts), keep)]
            size = base = parts[0].num_rows
            if base > MOST:
                raise ProblemError(f"the answer has more than {MOST:,} rows; ask for fewer columns")
    if not parts:
        return Answer([], hits, total)
    return Answer(_reduction(pa.concat_tables(parts), keep).to_pylist(), hits, total)


def _reduction(table: pa.Table, keep: Keep) -> pa.Table:
    rows = Rows(table)
    return rows.take(keep(rows)).table


def full_name(name: str) -> str:
    """The column of a short name."""
    return SHORT.get(name, name)
