"""The kind `serving`: one metric of a served network a row."""

from __future__ import annotations

from perfmodel.validation.kinds.kind import Kind
from perfmodel.validation.serving import FIELDS, LAYOUT, predict_table

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
    knowledge="engine {engine}, {devices} devices",
    assumed="assumed_of_plan",
    micros=False,
)  # fmt: skip
