"""A row of a serving-run table as a deployment and a load, and its metric of what is predicted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load as load_device
from perfmodel.networks.network import Network
from perfmodel.serving import requests
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import released
from perfmodel.serving.memory import fitting_batch, memory, sequence_bytes
from perfmodel.serving.requests import Load
from perfmodel.serving.steps import Steps
from perfmodel.training.runs import network_of

Row = Mapping[str, Any]
METRICS = (
    "ttft_ms", "tpot_ms", "e2e_ms", "output_tokens_per_s", "total_tokens_per_s",
    "input_tokens_per_s", "memory_gb",
)  # fmt: skip
"""Metrics of the table."""
_WEIGHTS = {"": "bf16", "int4": "int4-g128"}
_SIZES = ("hidden", "layers", "heads", "kv_heads", "head_dim", "inner", "vocabulary", "gated",
          "tied", "experts", "experts_chosen", "expert_inner", "shared_experts",
          "dense_layers")  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """What a row asks for."""

    deployment: Deployment
    """What is served, on what."""
    load: str
    """static batch, concurrency, rate or full."""
    size: float
    """Sequences, clients, or requests a second; 0 of a full load."""
    isl: int
    """Tokens of a prompt."""
    osl: int
    """Tokens that are made."""
    assumed: tuple[str, ...]
    """What was filled in, each in a few words."""


def asked(row: Row) -> Asked:
    """What a row asks for. Raises `ProblemError` and `UnknownName` for what is missing."""
    said: list[str] = []

    def usual(name: str, value: Any, why: str = "not said") -> Any:
        if not _missing(row, name):
            return row[name]
        said.append(f"{name} {value} ({why})")
        return value

    engine = released(str(row["engine"]), str(row.get("engine_version") or _by_year(row)))
    weights = str(usual("weights_dtype", "bf16"))
    cache = str(row.get("kv_dtype") or "")
    load = str(row["load"])
    deployment = Deployment(
        _network(tuple((name, row.get(name)) for name in ("network", *_SIZES))),
        load_device(str(row["device"])),
        engine,
        weights=_WEIGHTS.get(weights, weights),
        cache="" if cache in ("fp16", "bf16") else cache,
        tensor=_whole(row, "tensor") or int(usual("tensor", _whole(row, "devices") or 1)),
        pipeline=_whole(row, "pipeline") or 1,
        data=_whole(row, "data") or 1,
    )
    size = {"static batch": "batch", "concurrency": "concurrency", "rate": "concurrency"}
    wanted = float(row.get(size.get(load, ""), 0) or 0)
    if load in size and not wanted > 0:
        raise ProblemError(f"a row of load {load} without {size[load]}; give the column")
    isl, osl = _whole(row, "isl"), _whole(row, "osl")
    first = str(row["metric"]) in ("ttft_ms", "input_tokens_per_s", "memory_gb")
    return Asked(
        deployment, load, wanted,
        isl or int(usual("isl", 128)),
        osl or (1 if first else int(usual("osl", 128))),
        tuple(said),
    )  # fmt: skip


def _by_year(row: Row) -> str:
    """The release of a row that names none: tables of LLM-Inference-Bench are of 2024."""
    return "0.5" if "llm-inference-bench" in str(row.get("source") or "") else ""


@lru_cache(maxsize=256)
def _network(sizes: tuple[tuple[str, Any], ...]) -> Network:
    return replace(network_of(dict(sizes)), positions=0)


_STEPS: dict[tuple[object, ...], Steps] = {}


def steps_of(deployment: Deployment) -> Steps:
    """The steps of a deployment, those of an equal one again."""
    found = _STEPS.get(deployment.key)
    if found is None:
        found = _STEPS[deployment.key] = Steps(deployment)
    return found


def loaded(one: Asked) -> Load:
    """What is predicted of a row's load."""
    steps = steps_of(one.deployment)
    sizes = (np.array([one.size]), np.array([one.isl]), np.array([one.osl]))
    if one.load == "static batch":
        return requests.static(steps, *sizes)
    if one.load == "concurrency":
        return requests.closed(steps, *sizes)
    if one.load == "full":
        return requests.full(steps, *sizes[1:])
    if one.load == "rate":
        return requests.at_rate(steps, one.size, one.isl, one.osl)
    raise UnknownName("load", one.load, ("static batch", "concurrency", "full", "rate"))


@dataclass(frozen=True)
class Value:
    """A metric, with the range of its operators."""

    value: float
    """In the metric's unit."""
    low: float
    """Low end."""
    high: float
    """High end."""


def metric(one: Asked, name: str, per: str) -> Value:
    """A metric of a row's load; `per` device or system. Raises `UnknownName`."""
    if name == "memory_gb":
        return _memory(one)
    found = loaded(one)
    ttft, tpot, osl = float(found.ttft[0]), float(found.tpot[0]), float(found.osl[0])
    first, later = found.prompt.range(), found.token.range()
    if name in ("ttft_ms", "tpot_ms"):
        seconds, ends = (ttft, first) if name == "ttft_ms" else (tpot, later)
        return Value(*(1e3 * seconds * factor for factor in (1.0, *ends)))
    decode = (osl - 1) * tpot
    whole = ttft + decode
    ends = tuple((ttft * a + decode * b) / whole for a, b in zip(first, later, strict=True))
    if name == "e2e_ms":
        return Value(*(1e3 * whole * factor for factor in (1.0, *ends)))
    rate = _rate(one, name, found)
    rate *= one.deployment.data / (one.deployment.devices if per == "device" else 1)
    return Value(rate, rate / ends[1], rate / ends[0])


def _rate(one: Asked, name: str, found: Load) -> float:
    """Tokens a second of one copy."""
    each = {
        "output_tokens_per_s": one.osl,
        "total_tokens_per_s": one.isl + one.osl,
        "input_tokens_per_s": one.isl,
    }
    if name not in each:
        raise UnknownName("metric", name, METRICS)
    if name == "input_tokens_per_s":
        return one.size * one.isl / float(found.ttft[0])
    if one.load == "static batch" and one.size == 1 and one.deployment.engine.name in _PACED:
        return 1.0 / float(found.tpot[0])
    return float(found.requests_per_s[0]) * each[name]


# Engines whose tables give the pace of decoding alone.
_PACED = ("gpt-fast", "llama.cpp")


def _memory(one: Asked) -> Value:
    """Gigabytes of all that lies in a device."""
    has = memory(one.deployment)
    cache = one.size * sequence_bytes(one.deployment, one.isl + one.osl)
    total = (has.weights_bytes + has.context_bytes + has.activations_bytes + cache) / 1e9
    return Value(total, total, total)


def resides(one: Asked) -> None:
    """Raises `ProblemError` where a static batch of a row does not fit."""
    fits = fitting_batch(one.deployment, one.isl + one.osl)
    if one.load == "static batch" and one.size > fits:
        raise ProblemError(
            f"{one.size:.0f} sequences of {one.isl + one.osl:,} tokens do not reside; {fits} do"
        )


def _missing(row: Row, name: str) -> bool:
    value = row.get(name)
    return value is None or value == "" or value != value


def _whole(row: Row, name: str) -> int | None:
    return None if _missing(row, name) else int(row[name])
