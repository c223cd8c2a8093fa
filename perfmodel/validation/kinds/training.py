"""The kind `training`: one step, pass or memory peak a row."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, System, systems
from perfmodel.hardware import load as load_device
from perfmodel.hardware.variants import through_one_host_link
from perfmodel.table import reading
from perfmodel.table.layout import Layout
from perfmodel.training.metrics import value
from perfmodel.training.step import predict_step
from perfmodel.training.trainingrows import plan_of
from perfmodel.validation.judging import Fields
from perfmodel.validation.kinds.kind import Kind

if TYPE_CHECKING:
    import pandas as pd

LAYOUT = Layout(
    needed=("device", "network", "pass", "dtype", "seq", "devices", "metric", "value"),
    measured="value",
    text=(
        "source", "device", "system", "network", "stack", "software", "dtype", "pass", "reshard",
        "recompute", "attention", "optimiser", "metric", "convention", "flag", "notes",
    ),
    whole=(
        "devices", "hidden", "layers", "heads", "kv_heads", "head_dim", "inner", "vocabulary",
        "experts", "experts_chosen", "expert_inner", "shared_experts", "dense_layers",
        "mla_q_rank", "mla_kv_rank", "mla_nope_dim", "mla_rope_dim", "mla_value_dim", "seq",
        "global_batch", "micro_batch", "tensor", "pipeline", "chunks", "data", "context", "expert",
        "zero",
    ),
    numbers=("dropout", "tokens_total", "year", "fill"),
    truth=("gated", "tied", "sequence_parallel", "gpudirect"),
    template="training",
)  # fmt: skip
"""Columns of the table."""

FIELDS = Fields("value", "predicted", "low", "high", ("known_device", "known_stack"))
"""Columns that are used for errors."""

_NUMBERS = (FIELDS.predicted, FIELDS.low, FIELDS.high)
_TEXTS = ("reason", "assumed_of_plan", *FIELDS.known, "limiter")


def read(paths: Sequence[str]) -> pd.DataFrame:
    """Tables of training runs."""
    return reading.read(paths, LAYOUT).strict()


def predict(table: pd.DataFrame) -> pd.DataFrame:
    """The table with `predicted`, `low`, `high` in the unit of `value`, and `reason`."""
    rows = [_row(row) for row in table.to_dict("records")]
    columns = {name: [row[name] for row in rows] for name in (*_NUMBERS, *_TEXTS)}
    return table.assign(**columns)


def _row(row: Mapping[Hashable, Any]) -> dict[str, Any]:
    """The columns that a prediction adds to a row."""
    values = {str(name): _cell_value(cell) for name, cell in row.items()}
    out: dict[str, Any] = dict.fromkeys(_NUMBERS, math.nan) | dict.fromkeys(_TEXTS, "")
    try:
        request = plan_of(values)
        device = load_device(str(values["device"]))
        system = _system(device, values)
        step = predict_step(request.network, request.plan, device, system)
        out["predicted"], out["low"], out["high"] = value(step, values)
        if request.in_turn:
            single = value(predict_step(request.network, request.in_turn, device, system), values)
            out["low"], out["high"] = min(out["low"], single[1]), max(out["high"], single[2])
    except PerfmodelError as error:
        return out | {"reason": str(error)}
    return out | {
        "known_device": step.known_device,
        "known_stack": request.plan.stack,
        "limiter": step.limiter,
        "assumed_of_plan": "; ".join((*request.assumed, *step.assumptions)),
    }


def _system(device: Device, row: Mapping[str, Any]) -> System | None:
    """The device's usual system where its adapters do not reach the devices' memory."""
    if row.get("gpudirect") is not False:
        return None
    return through_one_host_link(systems.usual(device))


def _cell_value(cell: Any) -> Any:
    """A cell as a Python value; None if it is missing."""
    import pandas as pd

    return None if cell is pd.NA or cell is None or cell != cell else cell


KIND = Kind(
    fields=FIELDS,
    group="source",
    layout=LAYOUT,
    predict=predict,
    example={
        "device": "h100-sxm", "devices": "8", "network": "llama-3-8b", "stack": "megatron",
        "pass": "train", "dtype": "bf16", "seq": "8192", "global_batch": "128", "micro_batch": "1",
        "tensor": "1", "pipeline": "1", "context": "1", "zero": "1", "recompute": "none",
        "optimiser": "adamw", "convention": "megatron", "metric": "step_ms",
    },
    knowledge="device {device}, stack {stack}",
    assumed="assumed_of_plan",
    micros=False,
)  # fmt: skip
