"""The kind `collective`: one exchange among devices a row."""

from __future__ import annotations

from perfmodel.validation.collectives import FIELDS, LAYOUT, predict_table
from perfmodel.validation.kinds.kind import Kind

KIND = Kind(
    fields=FIELDS,
    group="collective",
    layout=LAYOUT,
    predict=predict_table,
    example={
        "device": "h100-sxm", "system": "dgx-h100", "library": "nccl", "collective": "all-reduce",
        "dtype": "bf16", "ranks": "8", "ranks_per_node": "8", "bytes": "67108864",
    },
    knowledge="known: device {device}, library {library}, link {link}",
)  # fmt: skip
