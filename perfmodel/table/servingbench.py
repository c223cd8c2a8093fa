"""Turns the results of serving benchmarks, one row with many metrics, into one metric a row.

`vllm bench serve` (SGLang's bench_serving writes nearly the same), genai-perf (AIPerf writes nearly
the same) and trtllm-bench have medians of the times, tails of first tokens, and rates of all
devices; llama-bench and llama-batched-bench have prompts and answers of a static batch. What a
benchmark does not say (the device, mostly) is given by `--set`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from perfmodel.table.numerals import number
from perfmodel.table.sheet import Sheet

Row = Mapping[str, str]

_CLIENT = (
    ("median_ttft_ms", "ttft_ms", "p50"),
    ("p90_ttft_ms", "ttft_ms", "p90"),
    ("p99_ttft_ms", "ttft_ms", "p99"),
    ("median_tpot_ms", "tpot_ms", ""),
    ("median_e2el_ms", "e2e_ms", ""),
    ("median_e2e_latency_ms", "e2e_ms", ""),
    ("output_throughput", "output_tokens_per_s", ""),
    ("total_token_throughput", "total_tokens_per_s", ""),
)
"""Of a tool, the cells, the metric that each is, and its statistic of first tokens."""
_GENAI = (
    ("time_to_first_token.p50", "ttft_ms", "p50"),
    ("time_to_first_token.p90", "ttft_ms", "p90"),
    ("time_to_first_token.p99", "ttft_ms", "p99"),
    ("inter_token_latency.p50", "tpot_ms", ""),
    ("request_latency.p50", "e2e_ms", ""),
    ("output_token_throughput.avg", "output_tokens_per_s", ""),
)
_TRTLLM_RATES = (
    ("performance.system_output_throughput_tok_s", "output_tokens_per_s", ""),
    ("performance.system_total_throughput_tok_s", "total_tokens_per_s", ""),
)
_TRTLLM_TIMES = (
    ("streaming_metrics.ttft_percentiles.p50", "ttft_ms", "p50"),
    ("streaming_metrics.ttft_percentiles.p90", "ttft_ms", "p90"),
    ("streaming_metrics.ttft_percentiles.p99", "ttft_ms", "p99"),
    ("streaming_metrics.tpot_percentiles.p50", "tpot_ms", ""),
    ("performance.request_latency_percentiles_ms.p50", "e2e_ms", ""),
)
_STIMULUS = ("input_config.perf_analyzer.stimulus.", "input_config.loadgen.", "input_config.")
"""Where genai-perf and AIPerf keep the load that was asked for, the newest first."""
_MODELS = ("input_config.model_names", "input_config.endpoint.model_names", "input_config.model")
_BACKENDS = {"tensorrtllm": "tensorrt-llm", "vllm": "vllm"}
"""Engines behind a Triton server, by genai-perf's names."""
_FORMATS = {
    "W4A16_AWQ": "int4", "W4A16_GPTQ": "int4", "W4A16": "int4", "W8A16": "int8",
    "W8A8_SQ_PER_CHANNEL": "w8a8", "FP8_BLOCK_SCALES": "fp8-block", "W4A16_MXFP4": "mxfp4",
}  # fmt: skip
"""Formats of weights by TensorRT-LLM's names (`QuantAlgo`), where they differ."""
_TUNED = re.compile(r"-(instruct|chat|it|hf|fp8|nvfp4|fp4|awq|gptq)(?=-|$)", re.IGNORECASE)
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
    load = _asked(row.get("max_concurrency", ""), row.get("request_rate", ""))
    labels = {"network": _network(row.get("model_id", "")), "engine": row.get("backend", "")}
    yield from _metrics(row, _CLIENT, {**labels, **lengths, **load})


def _genai(row: Row) -> Iterator[dict[str, str]]:
    """Metrics of genai-perf's profile_export_genai_perf.json. The engine is known behind Triton
    alone: other servers are asked without a word of theirs."""
    clients, rate = (
        next((_first(row[at + name]) for at in _STIMULUS if row.get(at + name)), "")
        for name in ("concurrency", "request_rate")
    )
    models = next((row[name] for name in _MODELS if row.get(name)), "")
    triton = row.get("input_config.endpoint.service_kind") == "triton"
    backend = row.get("input_config.endpoint.backend", "") if triton else ""
    labels = {"network": _network(_first(models)), "engine": _BACKENDS.get(backend, "")}
    lengths = {
        "isl": f"{_count(row, 'input_sequence_length.avg'):.0f}",
        "osl": f"{_count(row, 'output_sequence_length.avg'):.0f}",
    }
    yield from _metrics(row, _GENAI, {**labels, **lengths, **_asked(clients, rate)})


def _trtllm(row: Row) -> Iterator[dict[str, str]]:
    """Metrics of trtllm-bench's report. More requests than the engine runs at once were all sent at
    the start: their times are those of the queue, and rates alone are of the engine."""
    clients = _count(row, "request_info.avg_num_concurrent_requests")
    full = clients > (number(row.get("world_info.max_batch_size", "")) or math.inf)
    load = {"load": "full"} if full else _asked(f"{max(clients, 1.0):.0f}", "")
    algorithm = row.get("engine.quantization", "")
    labels = {
        "network": _network(row.get("engine.model", "")),
        "engine": "tensorrt-llm",
        "engine_version": row.get("engine.version", ""),
        "weights_dtype": _FORMATS.get(algorithm, algorithm) or row.get("engine.dtype", ""),
        "kv_dtype": row.get("engine.kv_cache_dtype", "") or row.get("engine.dtype", ""),
        "flag": "speculative" if row.get("decoding_stats.mode") else "",
        "isl": f"{_count(row, 'request_info.avg_input_length'):.0f}",
        "osl": f"{_count(row, 'request_info.avg_output_length'):.0f}",
        "devices": row.get("world_info.world_size", ""),
        "tensor": row.get("world_info.tp_size", ""),
        "pipeline": row.get("world_info.pp_size", ""),
        "expert": row.get("world_info.ep_size", ""),
    }
    times = () if full else _TRTLLM_TIMES
    yield from _metrics(row, (*_TRTLLM_RATES, *times), {**labels, **load})


def _metrics(
    row: Row, cells: Sequence[tuple[str, str, str]], shared: Mapping[str, str]
) -> Iterator[dict[str, str]]:
    """A row for each metric that a tool gave, with what all of them share."""
    for cell, metric, statistic in cells:
        if row.get(cell):
            yield {**shared, "metric": metric, "value": row[cell], "statistic": statistic}


def _asked(clients: str, rate: str) -> dict[str, str]:
    """The load of so many clients, else of a rate; without both all requests come at once."""
    if _is_number(clients):
        return {"load": "concurrency", "concurrency": clients}
    return {"load": "rate", "rate": rate} if _is_number(rate) else {"load": "full"}


def _network(model: str) -> str:
    """The network of a checkpoint: without owner or folder, and without what it was tuned to or
    stored in."""
    return _TUNED.sub("", model.rstrip("/").split("/")[-1])


def _first(cell: str) -> str:
    """The first item of a list in a cell; another cell as it is."""
    try:
        items = json.loads(cell) if cell.startswith("[") else None
    except (ValueError, RecursionError):
        return cell
    return str(items[0]) if items else cell


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
    (
        "genai-perf",
        {"time_to_first_token.p50", "output_token_throughput.avg", "input_sequence_length.avg"},
        _genai,
    ),
    (
        "trtllm-bench",
        {"engine.model", "world_info.tp_size", "performance.system_output_throughput_tok_s"},
        _trtllm,
    ),
    ("llama-bench", {"n_prompt", "n_gen", "avg_ts"}, _llama),
    ("llama-bench", {"model", "backend", "test", "t/s"}, _llama),
    ("llama-batched-bench", {"PP", "TG", "B", "T_PP s", "T_TG s"}, _batched),
)
