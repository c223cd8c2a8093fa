"""Rows of a serving-run table as deployments and loads, and the predicted metric of each row.

Rows with equal deployment and kind of load are predicted together, as arrays.

Published settings of benchmarks that their tables leave out are in `recipes.yaml`. Each is for rows
of a source, an engine and an architecture. A cell of a row comes before it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import yamltable
from perfmodel.entries import made
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import Device
from perfmodel.hardware import load as load_device
from perfmodel.networks.network import Network
from perfmodel.serving.cachememory import memory, sequence_bytes
from perfmodel.serving.clients import STATISTICS
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import Engine, released
from perfmodel.serving.served import METRICS, Spread, Value, serve
from perfmodel.serving.steps import Steps
from perfmodel.training.runnetwork import Cells, network_of

Row = Mapping[str, Any]
MEMORY = "memory_gb"
"""The metric of memory, the only one that is not a time or rate."""
_GIGA = 1e9
SIZES = {"static batch": "batch", "concurrency": "concurrency", "rate": "rate", "full": ""}
"""Kinds of load, and the column that has their size."""
_SIZES = (
    "network", "hidden", "layers", "heads", "kv_heads", "head_dim", "inner", "vocabulary", "gated",
    "tied", "experts", "experts_chosen", "expert_inner", "shared_experts", "dense_layers",
    "mla_q_rank", "mla_kv_rank", "mla_nope_dim", "mla_rope_dim", "mla_value_dim",
)  # fmt: skip
_SHORT = {"int4": "int4-g128"}
_MAKERS = {"nvidia": "nvfp4", "amd": "mxfp4"}
"""What fp4 means without a further word: the format of each maker's checkpoints."""
_BLOCKS = ("deepseek_v3",)
"""Families whose fp8 checkpoint has a scale a block of 128 x 128 (2412.19437, section 3.3.2)."""
_CHUNK = re.compile(r"prompt chunk (\d+)")
_LENGTHS = re.compile(r"lengths uniform in (\d+)-(\d+) ?%")
_UNSAID = "not said"
_LIKE = "accepted as those of DeepSeek-V3"
_OWN_DRAFTS = re.compile(r"\bspec mtp\b")
_OWN_ATTENTION = re.compile(r"dp_attention True")
_POOLS = re.compile(r"prefill (\d+)x\((.*?)\), decode (\d+)x\((.*?)\)")
"""Devices of each pool, and the plan of its copies, as in `pools`."""
_SHARES = re.compile(r"(tp|ep)(\d+)")
_OFFLOADS = {
    "flexgen": "auto", "flexgen-compressed": "auto", "accelerate": "stream",
    "zero-inference": "stream",
}  # fmt: skip
"""Programs that keep a network in host memory, and their policy of `perfmodel offload`."""


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
    cached: float = 0.0
    """Tokens of a prompt that are cached already, or below 1 their share."""
    vary: float = 0.0
    """(longest − shortest) / mean of the output lengths."""
    statistic: str = "mean"
    """Statistic of first tokens."""
    assumed: tuple[str, ...] = ()
    """Assumptions for empty cells, a few words each."""

    @property
    def portion(self) -> float:
        """What of a whole system's metric is asked for. A rate for one device is with pools of
        those that make the tokens (InferenceX: n · OSL over the seconds of a request is that rate
        times those devices)."""
        if not (self.per_device and self.metric.endswith("_per_s")):
            return 1.0
        plan = self.deployment
        prompts = plan.counts[0] * plan.for_prompts.devices
        first = prompts and self.metric.startswith("input")
        return 1.0 / (prompts if first else plan.devices - prompts)


def asked(row: Row) -> Asked:
    """What a row asks for. Raises `ProblemError` and `UnknownName` for missing or unknown cells."""
    notes = str(row.get("notes") or "")
    cells = Cells(row)
    load, metric = str(row["load"]), str(row["metric"])
    if load not in SIZES:
        raise UnknownName("load", load, SIZES)
    if metric not in (*METRICS, MEMORY):
        raise UnknownName("metric", metric, (*METRICS, MEMORY))
    device, engine = load_device(str(row["device"])), _engine(row)
    recipe = recipe_of(str(row.get("source") or ""), engine.name, device)
    column = SIZES[load]
    size = 0.0 if not column or cells.missing(column) else float(row[column])
    if column and not size > 0:
        raise ProblemError(f"a row of load {load} without {column}; give the column")
    deployment = _deployment(cells, device, recipe.polled(engine, size), recipe)
    if "disaggregated" in str(row.get("flag") or "") or not cells.missing("pools"):
        deployment = _pooled(deployment, str(row.get("pools") or notes), notes)
    if "speculative" in str(row.get("flag") or ""):
        deployment = replace(deployment, drafted=recipe.drafts(notes))
        cells.assumed.append(f"{deployment.drafted} tokens drafted, {_LIKE}")
    first = metric in ("ttft_ms", "input_tokens_per_s")
    isl, osl = cells.whole("isl"), cells.whole("osl")
    return Asked(
        deployment, load, size, isl or int(cells.usual("isl", 128, _UNSAID)),
        osl or int(cells.usual("osl", 1 if first else 128, _UNSAID)), metric,
        str(row.get("per") or "system") == "device",
        0.0 if cells.missing("cached") else float(row["cached"]), _vary(cells),
        _statistic(cells, recipe), tuple(cells.assumed),
    )  # fmt: skip


def _statistic(cells: Cells, recipe: Recipe) -> str:
    """The statistic of first tokens. Raises `UnknownName`."""
    name = recipe.statistic if cells.missing("statistic") else str(cells.row["statistic"])
    if name not in STATISTICS:
        raise UnknownName("statistic", name, STATISTICS)
    return name


def _vary(cells: Cells) -> float:
    """How much output lengths vary, from the column or the notes."""
    if not cells.missing("vary"):
        return float(cells.row["vary"])
    match = _LENGTHS.search(str(cells.row.get("notes") or ""))
    if match is None:
        return 0.0
    low, high = float(match[1]), float(match[2])
    return 2.0 * (high - low) / (high + low)


def _deployment(cells: Cells, device: Device, engine: Engine, recipe: Recipe) -> Deployment:
    network, notes = _network(tuple((name, cells.row.get(name)) for name in _SIZES))
    cells.assumed += notes
    default = network.weights or "bf16"
    weights = str(cells.usual("weights_dtype", default, _UNSAID))
    if weights == "fp8" and network.family in _BLOCKS:
        weights = "fp8-block"
        cells.assumed.append(f"weights_dtype fp8-block (fp8 of {network.name}'s checkpoint)")
    if weights == "fp4":
        weights = _MAKERS.get(device.vendor.lower(), "mxfp4")
        cells.assumed.append(f"weights_dtype {weights} (fp4 of {device.vendor})")
    return Deployment(
        network,
        device,
        engine,
        weights=_SHORT.get(weights, weights),
        cache=recipe.cache if cells.missing("kv_dtype") else str(cells.row["kv_dtype"]),
        tensor=cells.whole("tensor")
        or int(cells.usual("tensor", cells.whole("devices") or 1, _UNSAID)),
        pipeline=cells.whole("pipeline") or 1,
        expert=cells.whole("expert") or 1,
        data=cells.whole("data") or 1,
    )


def _pooled(copy: Deployment, text: str, notes: str) -> Deployment:
    """The deployment with pools as a row has them. Raises `ProblemError` where it does not say.

    Attention of their own is that of copies which share experts, as its notes say (`dp_attention
    True`) of both pools; copies with all experts share each layer.
    """
    match = _POOLS.search(text)
    if match is None:
        raise ProblemError(
            "disaggregated: prompts and tokens have devices of their own, and their plans are not "
            "given; give a column pools: prefill 16x(tp8 ep8), decode 56x(tp8 ep8)"
        )
    own = _OWN_ATTENTION.search(notes) is not None
    sides, counts = [], []
    for devices, shares in (match.groups()[:2], match.groups()[2:]):
        size = dict.fromkeys(("tp", "ep"), 1) | {k: int(n) for k, n in _SHARES.findall(shares)}
        apart = own and size["ep"] > 1
        side = replace(
            copy, tensor=1 if apart else size["tp"], data=size["tp"] if apart else 1,
            expert=size["ep"], pipeline=1,
        )  # fmt: skip
        sides.append(side)
        counts.append(max(int(devices) // side.devices, 1))
    return replace(sides[1], pools=f"{counts[0]}:{counts[1]}", prefill=replace(sides[0], drafted=0))


def _engine(row: Row) -> Engine:
    """The engine of a row's release, with chunked prefill where the row's notes name it. Raises
    `ProblemError` for programs that offload."""
    cells = Cells(row)
    if (name := str(row["engine"]).lower()) in _OFFLOADS:
        raise ProblemError(
            f"{name} keeps the network in host memory, and the host is no column; ask perfmodel "
            f"offload {row['network']} -d {row['device']} --policy {_OFFLOADS[name]}"
        )
    version = "" if cells.missing("engine_version") else str(row["engine_version"])
    early = "llm-inference-bench" in str(row.get("source") or "")  # of the summer of 2024
    engine = released(str(row["engine"]), version or ("0.5" if early else ""))
    chunk = _CHUNK.search(str(row.get("notes") or ""))
    if chunk is None:
        return engine
    return replace(engine, batching=replace(engine.batching, tokens=int(chunk[1]), chunked=True))


@lru_cache(maxsize=256)
def _network(sizes: tuple[tuple[str, Any], ...]) -> tuple[Network, list[str]]:
    """The network of a row's sizes, and what was assumed of it."""
    cells = Cells(dict(sizes))
    return replace(network_of(cells), positions=0), cells.assumed


def answers(rows: Sequence[Asked], spread: Spread | None = None) -> list[Value | str]:
    """The metric of each row, or the reason why there is none; those of equal deployments and loads
    are predicted together."""
    groups: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for i, row in enumerate(rows):
        groups[(row.deployment.key, row.load)].append(i)
    values: dict[int, Value | str] = {}
    for members in groups.values():
        values |= zip(members, _together([rows[i] for i in members], spread), strict=True)
    return [values[i] for i in range(len(rows))]


def _together(rows: Sequence[Asked], spread: Spread | None) -> list[Value | str]:
    """Answers to rows with equal deployment and kind of load; one by one where one is refused."""
    size, isl, osl, cached, vary = (
        np.array([getattr(row, name) for row in rows], dtype=float)
        for name in ("size", "isl", "osl", "cached", "vary")
    )
    if any(row.metric == MEMORY for row in rows):
        return [
            _memory(row) if row.metric == MEMORY else _together([row], spread)[0] for row in rows
        ]
    steps, load = Steps(rows[0].deployment), rows[0].load
    try:
        loads = serve(steps, load, size, isl, osl, cached=cached, vary=vary, spread=spread)
    except PerfmodelError as error:
        each = (_together([row], spread) for row in rows)
        return [str(error)] if len(rows) == 1 else [value for values in each for value in values]
    return [
        replace(load, statistic=row.statistic).metric(row.metric).times(row.portion)
        for load, row in zip(loads, rows, strict=True)
    ]


def _memory(row: Asked) -> Value:
    """Gigabytes of all memory in use on a device."""
    room = memory(row.deployment)
    cache = row.size * sequence_bytes(row.deployment, row.isl + row.osl)
    total = (room.weights_bytes + room.reserve_bytes + cache) / _GIGA
    return Value(total, total, total)


@dataclass(frozen=True)
class Recipe:
    """How a benchmark starts an engine, and what it publishes."""

    benchmark: str
    """How names of its tables begin."""
    source: str
    """Where the settings stand."""
    statistic: str = "mean"
    """Statistic of first tokens."""
    engine: str = ""
    """The engine; empty: any."""
    architecture: str = ""
    """How the device's architecture begins; empty: any."""
    cache: str = ""
    """Type of the KV cache; empty: the engine's."""
    tokens: int = 0
    """Most tokens of a step; 0: the engine's."""
    polls: Mapping[int, int] = field(default_factory=dict)
    """Steps from one look at new requests to the next, by the clients from which on it holds;
    empty: the engine's."""
    gather: int = 0
    """Most steps that prompts wait until every copy has one; 0: the engine's."""
    drafted: int = 0
    """Tokens that the network's own module drafts in runs with drafts."""
    apart: bool = False
    """Whether one token is drafted where copies share experts alone."""

    def matches(self, source: str, engine: str, device: Device) -> bool:
        """Whether rows of a source, an engine and a device run so."""
        return (
            source.lower().startswith(self.benchmark)
            and self.engine in ("", engine)
            and device.architecture.startswith(self.architecture)
        )

    def drafts(self, notes: str) -> int:
        """Tokens that are drafted for each pass. Raises `ProblemError` where nobody says."""
        if not self.drafted or not _OWN_DRAFTS.search(notes):
            raise ProblemError(
                "speculative: drafts and the chance that one is accepted are not columns; "
                "ask perfmodel infer --draft NETWORK --accept CHANCE, or --mtp N"
            )
        return 1 if self.apart and _OWN_ATTENTION.search(notes) else self.drafted

    def polled(self, engine: Engine, clients: float) -> Engine:
        """The engine with these settings under a number of clients."""
        limits = [limit for limit in self.polls if clients >= limit]
        batching = replace(
            engine.batching,
            tokens=self.tokens or engine.batching.tokens,
            poll=self.polls[max(limits)] if limits else engine.batching.poll,
            gather=self.gather or engine.batching.gather,
        )
        return replace(engine, batching=batching)


@lru_cache(maxsize=1)
def _table() -> tuple[Recipe, ...]:
    path = Path(__file__).with_name("recipes.yaml")

    def decode() -> tuple[Recipe, ...]:
        return tuple(made(Recipe, entry) for entry in yamltable.read(path)["recipes"])

    return yamltable.kept(path, "recipes", decode)


def recipe_of(source: str, engine: str, device: Device) -> Recipe:
    """The settings of a row's source; without any where none is known."""
    matching = (each for each in _table() if each.matches(source, engine, device))
    return next(matching, Recipe("", ""))
