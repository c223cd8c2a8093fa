"""The kind `collective`: one exchange among devices a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.validation.collectives import FIELDS, LAYOUT, predict_table
from perfmodel.validation.judging import assumptions, by_knowledge
from perfmodel.validation.kinds.kind import Kind, Remarks

if TYPE_CHECKING:
    import pandas as pd

_SHOWN = 5  # assumptions printed in full


def _remarks(table: pd.DataFrame, _: Sequence[str]) -> Remarks:
    """Assumptions, and errors by what was known of the rows."""
    assumed, groups = assumptions(table), by_knowledge(table, fields=FIELDS)
    notes = [f"{count} rows assumed: {text}" for text, count in assumed.items()][:_SHOWN]
    notes += [
        f"known: device {line['device']}, library {line['library']}, link {line['link']}: "
        f"{line['n']} rows, median |ln| {line['median_abs_ln']:.2f}, {line['coverage']:.0%} in "
        f"ranges of {line['width_ln']:.2f} in ln"
        for line in groups
    ]
    return Remarks({"assumed": assumed, "known": groups}, notes)


KIND = Kind(
    fields=FIELDS,
    group="collective",
    layout=LAYOUT,
    predict=predict_table,
    example={
        "device": "h100-sxm", "system": "dgx-h100", "library": "nccl", "collective": "all-reduce",
        "dtype": "bf16", "ranks": "8", "ranks_per_node": "8", "bytes": "67108864",
    },
    remarks=_remarks,
)  # fmt: skip
