"""Operations and bytes of the rows of a measured-run table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from perfmodel.count import compulsory_bytes
from perfmodel.errors import PerfmodelError
from perfmodel.operators import find

if TYPE_CHECKING:
    import pandas as pd

_KIND = ("op", "variant", "dtype", "kv_dtype", "direction")
_ONES = ("batch", "inputs", "outputs")  # sizes that are 1 if a row does not state them


def of(table: pd.DataFrame, kind: str, flops: str = "causal") -> np.ndarray:
    """Operations (`kind` flops) or bytes of all inputs and outputs (bandwidth) of each row.

    Operations follow the papers' convention, by which a causal mask halves the operations of a
    square problem (`Problem.flops`); with `flops` "full" the mask is ignored. Rows whose work is
    unknown are NaN. `table` is a tidy measured-run table.
    """
    values = np.full(len(table), np.nan)
    causal = table["causal"].fillna(False).astype(bool) & (flops != "full")
    keys = table[list(_KIND)].assign(causal=causal)
    groups: Any = keys.groupby([*_KIND, "causal"], sort=False, observed=True).indices
    for key, rows in groups.items():
        row = dict(zip((*_KIND, "causal"), key, strict=True))
        row["direction"] = row["direction"] or "fwd"
        for group in _batches(table.iloc[rows], str(row["op"])):
            values[rows[group]] = _work(table.iloc[rows[group]], row, kind)
    return values


def _sizes(table: pd.DataFrame, op: str) -> dict[str, np.ndarray]:
    operator = find(op)
    names = operator.measured_sizes if operator is not None else ()
    sizes = {}
    for name in names:
        if name in table:
            column = table[name].fillna(1 if name in _ONES else 0)
            sizes[name] = column.to_numpy(np.int64)
    if "head_dim_v" in sizes:
        sizes["head_dim_v"] = np.where(sizes["head_dim_v"], sizes["head_dim_v"], sizes["head_dim"])
    return sizes


def _batches(table: pd.DataFrame, op: str) -> list[np.ndarray]:
    """Indices of rows that one problem with array sizes can hold, group by group."""
    operator = find(op)
    if operator is None:
        return []
    sizes = _sizes(table, op)
    mask = np.ones(len(table), dtype=bool)
    for name in operator.needed:
        mask &= sizes[name] >= 1 if name in sizes else False
    codes = operator.same_call(sizes)
    spread = np.broadcast_to(0 if codes is None else codes, len(table))
    return [np.flatnonzero(mask & (spread == code)) for code in np.unique(spread[mask])]


def _work(table: pd.DataFrame, row: dict[str, Any], kind: str) -> np.ndarray:
    operator = find(str(row["op"]))
    assert operator is not None
    try:
        problems = operator.measured(row, _sizes(table, str(row["op"])))
        parts = [p.flops() if kind == "flops" else compulsory_bytes(p) for p in problems]
    except PerfmodelError:
        return np.full(len(table), np.nan)
    total = np.broadcast_to(sum(parts), len(table)).astype(np.float64)
    return np.where(total > 0, total, np.nan)
