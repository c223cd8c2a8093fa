"""The serving-run table: times to first token, times between tokens and rates of served networks.

Every row has a prediction or a reason why not. Flagged rows are predicted but scored separately.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from perfmodel.errors import PerfmodelError
from perfmodel.serving.served import Spread, Value
from perfmodel.serving.servingrows import Asked, answers, asked
from perfmodel.table import servingbench
from perfmodel.table.layout import Layout
from perfmodel.validation.judging import Fields

if TYPE_CHECKING:
    import pandas as pd

LAYOUT = Layout(
    needed=("device", "engine", "network", "load", "metric", "value"),
    measured="value",
    text=(
        "source", "device", "engine", "engine_version", "network", "weights_dtype", "kv_dtype",
        "activations_dtype", "pools", "load", "metric", "statistic", "per", "flag", "assumed",
        "notes",
    ),
    whole=(
        "devices", "hidden", "layers", "heads", "kv_heads", "head_dim", "inner", "vocabulary",
        "experts", "experts_chosen", "expert_inner", "shared_experts", "dense_layers",
        "mla_q_rank", "mla_kv_rank", "mla_nope_dim", "mla_rope_dim", "mla_value_dim", "tensor",
        "pipeline", "expert", "data", "batch", "concurrency", "isl", "osl",
    ),
    numbers=("year", "rate", "cached", "vary"),
    truth=("gated", "tied"),
    template="serving",
    adapted=servingbench.melted,
)  # fmt: skip
"""Columns of the table."""

FIELDS = Fields("value", "predicted", "low", "high", ("known_engine", "known_devices"))
"""Columns that are used for errors."""


_ADDED = ("predicted", "low", "high", "assumed_of_plan", *FIELDS.known)


def asked_of(table: pd.DataFrame) -> list[Asked | str]:
    """The request of each row, or the reason why it is not valid."""
    names = [str(name) for name in table.columns]
    rows = table.itertuples(index=False, name=None)
    return [_query(dict(zip(names, row, strict=True))) for row in rows]


def predict_table(table: pd.DataFrame, *, spread: Spread | None = None) -> pd.DataFrame:
    """The table with `predicted`, `low`, `high` in the unit of `value`, and `reason`."""
    import pandas as pd

    queries = asked_of(table)
    requests = [q for q in queries if not isinstance(q, str)]
    values = iter(answers(requests, spread))
    rows = [_columns(q, q if isinstance(q, str) else next(values)) for q in queries]
    columns = {name: [row[name] for row in rows] for name in (*_ADDED, "reason")}
    return table.assign(**{name: pd.Series(v, table.index) for name, v in columns.items()})


def _query(row: dict[str, Any]) -> Asked | str:
    try:
        return asked({name: _cell_value(cell) for name, cell in row.items()})
    except PerfmodelError as error:
        return str(error)


def _columns(query: Asked | str, value: Value | str) -> dict[str, Any]:
    """The columns that a prediction adds to a row."""
    nan = float("nan")
    out: dict[str, Any] = {"predicted": nan, "low": nan, "high": nan, "reason": ""}
    out |= {"assumed_of_plan": "", "known_engine": "", "known_devices": ""}
    if isinstance(query, str) or isinstance(value, str):
        return {**out, "reason": str(query if isinstance(query, str) else value)}
    out |= {"predicted": value.value, "low": value.low, "high": value.high}
    deployment = query.deployment
    return out | {
        "assumed_of_plan": "; ".join(query.assumed),
        "known_engine": "fitted" if deployment.engine.fitted else "unfitted",
        "known_devices": "several" if deployment.tensor > 1 else "one",
    }


def _cell_value(cell: Any) -> Any:
    """A cell as a Python value; None if it is missing."""
    import pandas as pd

    return None if cell is pd.NA or cell is None or cell != cell else cell
