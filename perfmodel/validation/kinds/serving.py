"""The kind `serving`: one metric of a served network a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.validation.judging import assumptions, by_knowledge
from perfmodel.validation.kinds.kind import Kind, Remarks
from perfmodel.validation.serving import FIELDS, LAYOUT, predict_table

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5  # assumptions printed in full


def _remarks(table: pd.DataFrame, _: Sequence[str]) -> Remarks:
    """Assumptions, and the coverage of ranges by what was known."""
    assumed = assumptions(table.assign(assumed=table["assumed_of_plan"]))
    groups = by_knowledge(table, fields=FIELDS)
    notes = [f"{count} rows assumed: {text}" for text, count in assumed.items()][:_SHOWN]
    notes += [
        f"engine {line['engine']}, {line['devices']} devices: {line['n']} rows, median |ln| "
        f"{line['median_abs_ln']:.2f}, {line['coverage']:.0%} in ranges of "
        f"{line['width_ln']:.2f} in ln"
        for line in groups
    ]
    return Remarks({"assumed": assumed, "known": groups}, notes)


KIND = Kind(
    fields=FIELDS,
    group="engine",
    layout=LAYOUT,
    predict=predict_table,
    example={
        "device": "h100-sxm", "devices": "1", "engine": "vllm", "network": "llama-3-8b",
        "weights_dtype": "bf16", "kv_dtype": "bf16", "load": "concurrency", "concurrency": "16",
        "isl": "1024", "osl": "512", "per": "system", "metric": "output_tokens_per_s",
    },
    remarks=_remarks,
    micros=False,
)  # fmt: skip
