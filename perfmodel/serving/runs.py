"""Rows of a serving-run table as deployments and loads, and the predicted metric of each row.

Rows with equal deployment and kind of load are predicted together, as arrays.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import load as load_device
from perfmodel.networks.network import Network
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import Engine, released
from perfmodel.serving.memory import memory, sequence_bytes
from perfmodel.serving.served import METRICS, Served, Value, serve
from perfmodel.serving.spread import Spread
from perfmodel.serving.steps import Steps
from perfmodel.training.cells import Cells
from perfmodel.training.runnetwork import network_of

Row = Mapping[str, Any]
MEMORY = "memory_gb"
"""The metric of memory, the only one that is not a time or rate."""
_GIGA = 1e9
SIZES = {"static batch": "batch", "concurrency": "concurrency", "rate": "rate", "full": ""}
"""Kinds of load, and the column that has their size."""
_SIZES = (
    "network", "hidden", "layers", "heads", "kv_heads", "head_dim", "inner", "vocabulary", "gated",
    "tied", "experts", "experts_chosen", "expert_inner", "shared_experts", "dense_layers",
)  # fmt: skip
_SHORT = {"int4": "int4-g128"}
_CHUNK = re.compile(r"prompt chunk (\d+)")


@dataclass(frozen=True)
class Asked:
    """The deployment, load and metric of a row."""

    deployment: Deployment
    """The deployment."""
    load: str
    """One of `SIZES`."""
    size: float
    """Sequences, clients, or requests a second; 0 for a full load."""
    isl: int
    """Tokens of a prompt (ISL)."""
    osl: int
    """Output tokens (OSL)."""
    metric: str
    """One of `served.METRICS`, or `MEMORY`."""
    per_device: bool
    """Whether a rate is for one device; otherwise for all."""
    assumed: tuple[str, ...] = ()
    """Assumptions for empty cells, a few words each."""


def asked(row: Row) -> Asked:
    """What a row asks for. Raises `ProblemError` and `UnknownName` for missing or unknown cells."""
    said: list[str] = []

    def usual(name: str, value: Any, why: str = "not said") -> Any:
        if not _missing(row, name):
            return row[name]
        said.append(f"{name} {value} ({why})")
        return value

    load, metric = str(row["load"]), str(row["metric"])
    if load not in SIZES:
        raise UnknownName("load", load, SIZES)
    if metric not in (*METRICS, MEMORY):
        raise UnknownName("metric", metric, (*METRICS, MEMORY))
    column = SIZES[load]
    size = 0.0 if not column or _missing(row, column) else float(row[column])
    if column and not size > 0:
        raise ProblemError(f"a row of load {load} without {column}; give the column")
    first = metric in ("ttft_ms", "input_tokens_per_s")
    osl = _whole(row, "osl") or int(usual("osl", 1 if first else 128))
    return Asked(
        _deployment(row, usual), load, size, _whole(row, "isl") or int(usual("isl", 128)), osl,
        metric, str(row.get("per") or "system") == "device", tuple(said),
    )  # fmt: skip


def _deployment(row: Row, usual: Any) -> Deployment:
    network = _network(tuple((name, row.get(name)) for name in _SIZES))
    weights = str(usual("weights_dtype", network.weights or "bf16"))
    cache = "" if _missing(row, "kv_dtype") else str(row["kv_dtype"])
    return Deployment(
        network,
        load_device(str(row["device"])),
        _engine(row),
        weights=_SHORT.get(weights, weights),
        cache=cache,
        tensor=_whole(row, "tensor") or int(usual("tensor", _whole(row, "devices") or 1)),
        pipeline=_whole(row, "pipeline") or 1,
        data=_whole(row, "data") or 1,
    )


def _engine(row: Row) -> Engine:
    """The engine of a row's release, with chunked prefill where the row's notes name it."""
    version = "" if _missing(row, "engine_version") else str(row["engine_version"])
    early = "llm-inference-bench" in str(row.get("source") or "")  # of the summer of 2024
    found = released(str(row["engine"]), version or ("0.5" if early else ""))
    chunk = _CHUNK.search(str(row.get("notes") or ""))
    if chunk is None:
        return found
    return replace(found, batching=replace(found.batching, tokens=int(chunk[1]), chunked=True))


@lru_cache(maxsize=256)
def _network(sizes: tuple[tuple[str, Any], ...]) -> Network:
    return replace(network_of(Cells(dict(sizes))), positions=0)


class Answers:
    """Predictions of rows; steps of equal deployments are predicted once."""

    def __init__(self, spread: Spread | None = None) -> None:
        self._spread = spread
        self._steps: dict[tuple[object, ...], Steps] = {}

    def steps(self, of: Deployment) -> Steps:
        """The steps of a deployment."""
        bare = replace(of, engine=_bare(of.engine))
        if bare.key not in self._steps:
            self._steps[bare.key] = Steps(bare)
        return self._steps[bare.key].under(of.engine)

    def values(self, rows: Sequence[Asked]) -> list[Value | str]:
        """The metric of each row, or the reason why there is none."""
        return [self._value(*pair) for pair in zip(rows, self.served(rows), strict=True)]

    def served(self, rows: Sequence[Asked]) -> list[Served | str]:
        """The load of each row, or the reason why it cannot be served."""
        groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
        for i, row in enumerate(rows):
            groups[(row.deployment.key, row.load)].append(i)
        found: dict[int, Served | str] = {}
        for members in groups.values():
            found.update(zip(members, self._group([rows[i] for i in members]), strict=True))
        return [found[i] for i in range(len(rows))]

    @staticmethod
    def _value(row: Asked, found: Served | str) -> Value | str:
        """The row's metric of its load."""
        if row.metric == MEMORY:
            return _memory(row)
        if isinstance(found, str):
            return found
        value = found.metric(row.metric)
        rate = row.metric.endswith("_per_s")
        return value.times(1.0 / row.deployment.devices) if rate and row.per_device else value

    def _group(self, rows: Sequence[Asked]) -> list[Served | str]:
        """Loads of rows with equal deployment and kind: together, or one by one where one is
        refused."""
        size, isl, osl = (
            np.array([getattr(row, name) for row in rows], dtype=float)
            for name in ("size", "isl", "osl")
        )
        first = rows[0]
        try:
            steps = self.steps(first.deployment)
            return list(serve(steps, first.load, size, isl, osl, spread=self._spread))
        except PerfmodelError as error:
            if len(rows) == 1:
                return [str(error)]
            return [found for row in rows for found in self._group([row])]


def _bare(engine: Engine) -> Engine:
    """The parts of an engine that kernels and exchanges depend on."""
    plain = Engine(engine.name, "", "", engine.stack, "")
    kernels = replace(engine.kernels, reread=0.0)
    return replace(
        plain, residual_norm=engine.residual_norm, cache_write=engine.cache_write,
        all_reduce=engine.all_reduce, kernels=kernels,
    )  # fmt: skip


def _memory(row: Asked) -> Value:
    """Gigabytes of all memory in use on a device."""
    has = memory(row.deployment)
    cache = row.size * sequence_bytes(row.deployment, row.isl + row.osl)
    total = (has.weights_bytes + has.reserve_bytes + cache) / _GIGA
    return Value(total, total, total)


def _missing(row: Row, name: str) -> bool:
    value = row.get(name)
    return value is None or value == "" or value != value


def _whole(row: Row, name: str) -> int | None:
    return None if _missing(row, name) else int(row[name])
