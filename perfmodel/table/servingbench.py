"""Turns the results of serving benchmarks, one row with many metrics, into one metric a row.

`vllm bench serve` (SGLang's bench_serving writes nearly the same) has medians of the times and
rates of all devices; llama-bench and llama-batched-bench have prompts and answers of a static
batch. What a benchmark does not say (the device, mostly) is given by `--set`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.table.numerals import number
from perfmodel.table.sheet import Sheet

Row = Mapping[str, str]

_CLIENT = {
    "median_ttft_ms": "ttft_ms",
    "median_tpot_ms": "tpot_ms",
    "median_e2el_ms": "e2e_ms",
    "median_e2e_latency_ms": "e2e_ms",
    "output_throughput": "output_tokens_per_s",
    "total_token_throughput": "total_tokens_per_s",
}
_TEST = re.compile(r"(?:pp(\d+))?\+?(?:tg(\d+))?(?: @ d(\d+))?")
_QUANTISED = re.compile(r"(Q\d\w*?|IQ\d\w*?|F16|BF16|F32|MXFP4)(?: - (\w)\w*)?(?: MoE)?$")


def melted(sheet: Sheet) -> Sheet:
    """The sheet with one metric a row if it is of a known benchmark, else unchanged."""
    headings = set(sheet.headings)
    for tool, marks, rows_of in _TOOLS:
        if marks <= headings:
            return _unpivot(sheet, tool, rows_of)
    return sheet


def _unpivot(sheet: Sheet, tool: str, rows_of: Callable[[Row], Iterator[dict[str, str]]]) -> Sheet:
    import pandas as pd

    records = sheet.frame.astype("str").to_dict("records")
    rows: list[tuple[int, dict[str, str]]] = [
        (i, row)
        for i, record in enumerate(records)
        for row in rows_of({str(name): str(cell) for name, cell in record.items()})
    ]
    names = dict.fromkeys(name for _, row in rows for name in row)
    frame = pd.DataFrame(
        {name: pd.Series([row.get(name, "") for _, row in rows], dtype="str") for name in names}
    )
    lines = sheet.lines[np.array([i for i, _ in rows], dtype=np.int64)]
    note = f"read as the results of {tool}, a metric a row"
    return replace(sheet, frame=frame, lines=lines, faults={}, notes=(*sheet.notes, note))


def _client(row: Row) -> Iterator[dict[str, str]]:
    """Metrics of a client that sends requests, by concurrency or rate."""
    requests = number(row["completed"]) or 0
    lengths = {
        name: f"{_count(row, total) / requests:.0f}"
        for name, total in (("isl", "total_input_tokens"), ("osl", "total_output_tokens"))
        if requests
    }
    clients, rate = row.get("max_concurrency", ""), row.get("request_rate", "")
    load = {"load": "full"}
    if _is_number(clients):
        load = {"load": "concurrency", "concurrency": clients}
    elif _is_number(rate):
        load = {"load": "rate", "rate": rate}
    labels = {"network": row.get("model_id", ""), "engine": row.get("backend", "")}
    for field, metric in _CLIENT.items():
        if row.get(field):
            yield {**labels, **lengths, **load, "metric": metric, "value": row[field]}


def _llama(row: Row) -> Iterator[dict[str, str]]:
    """Prompt and generation speeds of one sequence: tokens a second as times."""
    if "test" in row:
        match = _TEST.fullmatch(row["test"].strip())
        prompt, answer, depth = (int(text or 0) for text in match.groups()) if match else (0, 0, 0)
        speed = number(row["t/s"].split("±")[0])
    else:
        prompt, answer, depth = (
            int(number(row.get(name, "")) or 0) for name in ("n_prompt", "n_gen", "n_depth")
        )
        speed = number(row["avg_ts"])
    if not speed or bool(prompt) == bool(answer):
        return  # both at once have no time of their own
    shared = _static_load(1, depth + (prompt or 1), answer or 1) | _weights(row)
    tokens, metric = (prompt, "ttft_ms") if prompt else (1, "tpot_ms")
    yield {**shared, "metric": metric, "value": f"{1000 * tokens / speed:.6g}"}


def _batched(row: Row) -> Iterator[dict[str, str]]:
    """Times of a static batch, from llama-batched-bench."""
    prompt, answer, batch = (int(number(row[name]) or 0) for name in ("PP", "TG", "B"))
    for metric, seconds, steps in (
        ("ttft_ms", row["T_PP s"], 1),
        ("tpot_ms", row["T_TG s"], answer),
    ):
        if (value := number(seconds)) and steps:
            time = f"{1000 * value / steps:.6g}"
            yield {**_static_load(batch, prompt, answer), "metric": metric, "value": time}


def _static_load(batch: int, isl: int, osl: int) -> dict[str, str]:
    return {
        "engine": "llama.cpp", "load": "static batch", "batch": str(batch), "isl": str(isl),
        "osl": str(osl),
    }  # fmt: skip


def _weights(row: Row) -> dict[str, str]:
    """The device, and the format of the weights from the model's type: "llama 8B Q4_K - Medium"."""
    model = row.get("model_type") or row.get("model", "")
    match = _QUANTISED.search(model.strip())
    labels = {"device": row["gpu_info"]} if row.get("gpu_info") else {}
    if match is None:
        return labels
    size = f"_{match[2].lower()}" if match[2] else ""
    return {**labels, "weights_dtype": f"{match[1].lower()}{size}"}


def _count(row: Row, name: str) -> float:
    return number(row.get(name, "")) or 0.0


def _is_number(text: str) -> bool:
    """Whether a cell is a finite number."""
    return number(text) is not None


_TOOLS: tuple[tuple[str, set[str], Any], ...] = (
    (
        "a serving client (vllm bench serve)",
        {"completed", "output_throughput", "median_ttft_ms"},
        _client,
    ),
    ("llama-bench", {"n_prompt", "n_gen", "avg_ts"}, _llama),
    ("llama-bench", {"model", "backend", "test", "t/s"}, _llama),
    ("llama-batched-bench", {"PP", "TG", "B", "T_PP s", "T_TG s"}, _batched),
)
