"""A row of a training-run table as a network and a plan.

A network that the package knows by the row's name is taken, with what the row says of it; another
one is a network of the nearest name's family at the row's sizes. What a row leaves open is filled
by what its stack usually does, and said.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.networks import library
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.training.plan import Plan

Row = Mapping[str, Any]

# Whose code a name without sizes of its own stands for; the first that a name begins with.
_FAMILIES = {
    "switch": "t5-large",
    "t5": "t5-large",
    "bert": "bert-large",
    "opt": "opt-1.3b",
    "mpt": "mpt-1b",
    "llama-4": "llama-4-scout",
    "llama": "llama-3-8b",
    "mistral": "mistral-7b",
    "decilm": "llama-3-8b",
    "aquila": "llama-2-7b",
    "bloom": "mpt-7b",
    "falcon": "falcon-40b",
    "mixtral": "mixtral-8x7b",
    "qwen3": "qwen3-8b",
    "qwen": "qwen2.5-7b",
    "deepseek": "deepseek-v3",
    "gpt-oss": "gpt-oss-20b",
    "gpt": "gpt2-xl",
    "mt-nlg": "gpt3-175b",
    "megatron": "gpt3-175b",
}


@dataclass(frozen=True)
class Asked:
    """What a row asks for."""

    network: Network
    """The network."""
    plan: Plan
    """The step."""
    assumed: tuple[str, ...]
    """What was filled in, each in a few words."""


def network_of(row: Row) -> Network:
    """The network of a row. Raises `ProblemError` where its name says nothing and sizes lack."""
    name = str(row["network"])
    try:
        known = library.load(name)
    except UnknownName:
        return _resized(_template(name), row)
    return _said(known, row)


def _template(name: str) -> Network:
    """A network of the family that a name begins with."""
    lowered = name.lower()
    for prefix, known in _FAMILIES.items():
        if lowered.startswith(prefix):
            return library.load(known)
    raise ProblemError(
        f"network {name} is of no known family; name one of {', '.join(_FAMILIES)}, or one of "
        "perfmodel network list"
    )


def _said(network: Network, row: Row) -> Network:
    """A known network with what the row says otherwise: vocabulary, positions, head."""
    changes: dict[str, Any] = {}
    if _whole(row, "vocabulary"):
        changes["vocabulary"] = _whole(row, "vocabulary")
    if network.positions:
        changes["positions"] = max(_whole(row, "seq") or 0, network.positions)
    if network.family == "bert" and row.get("pass") == "train":
        changes["head"] = "pretraining" if _pretrains(row) else "none"
    layers = _whole(row, "layers")
    if layers and layers != network.layers and len(network.blocks) == 1:
        changes["blocks"] = (replace(network.blocks[0], repeat=layers),)
    return replace(network, **changes)


def _pretrains(row: Row) -> bool:
    return "finetune" not in str(row.get("notes") or "")


def _resized(like: Network, row: Row) -> Network:
    """A network like another one, at a row's sizes."""
    hidden, layers = _needed(row, "hidden"), _needed(row, "layers")
    block = like.blocks[-1]
    attention = _attention(block.attention, row, hidden)
    mlp = _mlp(block.mlp, row, hidden)
    dense = _whole(row, "dense_layers") or 0
    if mlp.experts and dense:
        inner = _whole(row, "inner") or mlp.inner
        first = replace(
            mlp, experts=0, chosen=0, shared_inner=0, inner=inner, router_bias=False,
            shared_gate=False,
        )  # fmt: skip
        blocks = [
            replace(block, attention=attention, mlp=first, repeat=dense),
            replace(block, attention=attention, mlp=mlp, repeat=layers - dense),
        ]
    else:
        blocks = [replace(block, attention=attention, mlp=mlp, repeat=layers)]
    found = replace(
        like,
        name=str(row["network"]),
        hidden=hidden,
        vocabulary=_whole(row, "vocabulary") or like.vocabulary,
        blocks=tuple(blocks),
        encoder=(),
        positions=max(like.positions, _whole(row, "seq") or 0) if like.positions else 0,
        tied=like.tied if _missing(row, "tied") else bool(row["tied"]),
    )
    return _two_stacks(found, like, mlp, attention) if like.encoder else found


def _two_stacks(found: Network, like: Network, mlp: Mlp, attention: SelfAttention) -> Network:
    """An encoder and a decoder of half of the layers each; of Switch's every second one has experts
    (2101.03961, section 2.2)."""
    half = found.layers // 2
    dense = replace(mlp, experts=0, chosen=0)
    kinds = (dense, mlp) if mlp.experts else (dense,)
    each = half // len(kinds)
    both = replace(attention, causal=False)
    own = replace(attention, causal=True)

    def stack(of: SelfAttention, cross: SelfAttention | None) -> tuple[Block, ...]:
        block = replace(like.blocks[-1], attention=of, cross=cross)
        return tuple(replace(block, mlp=one, repeat=each) for one in kinds)

    return replace(found, encoder=stack(both, None), blocks=stack(own, both))


def _attention(like: SelfAttention, row: Row, hidden: int) -> SelfAttention:
    heads = _needed(row, "heads")
    width = _whole(row, "head_dim") or hidden // heads
    return replace(
        like,
        heads=heads,
        kv_heads=_whole(row, "kv_heads") or heads,
        head_size=width,
        relative_buckets=0,
    )


def _mlp(like: Mlp, row: Row, hidden: int) -> Mlp:
    experts = _whole(row, "experts") or 0
    inner = (_whole(row, "expert_inner") if experts else None) or _whole(row, "inner")
    shared = _whole(row, "shared_experts") or 0
    wide = inner or 4 * hidden
    return replace(
        like,
        inner=wide,
        gated=like.gated if _missing(row, "gated") else bool(row["gated"]),
        experts=experts,
        chosen=(_whole(row, "experts_chosen") or 1) if experts else 0,
        shared_inner=shared * wide if experts else 0,
        router_bias=like.router_bias and bool(experts),
        shared_gate=like.shared_gate and bool(experts),
    )


def plan_of(row: Row) -> Asked:
    """Network, plan, and what was assumed of a row. Raises `ProblemError` for what is missing."""
    said: list[str] = []

    def usual(name: str, value: Any, why: str) -> Any:
        if not _missing(row, name):
            return row[name]
        said.append(f"{name} {value} ({why})")
        return value

    network = network_of(row)
    trains = row["pass"] == "train"
    stack = _stack(row, usual)
    axes = {name: _whole(row, name) or 1 for name in ("tensor", "pipeline", "context", "expert")}
    devices = _needed(row, "devices")
    data = _whole(row, "data") or max(devices // math.prod((axes["tensor"], axes["pipeline"],
                                                             axes["context"])), 1)  # fmt: skip
    used = data * axes["tensor"] * axes["pipeline"] * axes["context"]
    if used != devices:
        raise ProblemError(
            f"{devices} devices are not data {data} x tensor {axes['tensor']} x pipeline "
            f"{axes['pipeline']} x context {axes['context']}; mend one of them"
        )
    micro, accumulation = _batches(row, data, usual, at_once=stack in _AT_ONCE)
    alone = row["metric"] in ("forward_ms", "backward_ms", "iteration_ms")
    plan = Plan(
        seq=_needed(row, "seq"),
        micro_batch=micro,
        accumulation=1 if alone else accumulation,
        tensor=axes["tensor"],
        sequence=bool(row["sequence_parallel"]) if not _missing(row, "sequence_parallel")
        and axes["tensor"] > 1 else False,
        pipeline=axes["pipeline"],
        chunks=_whole(row, "chunks") or 1,
        data=data,
        context=axes["context"],
        expert=axes["expert"],
        zero=_whole(row, "zero") or 0,
        recompute=str(usual("recompute", "none", "not said")),
        dtype=str(row["dtype"]),
        stack=stack,
        attention=_kernel(row, usual),
        dropout=None if _missing(row, "dropout") else float(row["dropout"]),
        optimiser=_optimiser(row, trains=trains and not alone),
        loss=_loss(row),
        ends="one transformer layer" not in str(row.get("convention") or ""),
        training=trains,
    )  # fmt: skip
    return Asked(network, plan, tuple(said))


# Stacks whose frameworks run a device's sequences in one pass unless told otherwise.
_AT_ONCE = ("eager", "compile", "compile-2024", "liger")


def _batches(row: Row, data: int, usual: Any, *, at_once: bool) -> tuple[int, int]:
    """Sequences of a micro-batch, and micro-batches of a step."""
    micro, whole = _whole(row, "micro_batch"), _whole(row, "global_batch")
    if micro is None:
        own = (whole or 1) // data if at_once and (_whole(row, "pipeline") or 1) == 1 else 1
        micro = int(usual("micro_batch", max(own, 1), "not said"))
    if whole is None:
        return micro, 1
    if whole % (micro * data):
        raise ProblemError(
            f"global batch {whole} does not divide by micro-batch {micro} x data {data}; "
            f"{-(-whole // (micro * data)) * micro * data} would"
        )
    return micro, whole // (micro * data)


_FUSED_SINCE = 2023
_LOSS_COMPILED_SINCE = 2025

# What tables call attention, as this package does; others are names of kernels.
_ATTENTION = {
    "unfused": "unfused",
    "flash": "flash",
    "sdpa": "flash",
    "flash-triton": "flash-triton",
}


def _kernel(row: Row, usual: Any) -> str:
    """Frameworks' own attention is one fused kernel since 2023 (PyTorch 2.0, SDPA)."""
    if _missing(row, "attention"):
        late = (_whole(row, "year") or 0) > _FUSED_SINCE
        return str(usual("attention", "flash", f"after {_FUSED_SINCE}")) if late else ""
    said = str(row["attention"])
    return _ATTENTION.get(said, said)


def _stack(row: Row, usual: Any) -> str:
    """The row's stack; torch.compile had the loss outside before 2025."""
    said = str(usual("stack", "megatron", "not said"))
    early = said == "compile" and 0 < (_whole(row, "year") or 0) < _LOSS_COMPILED_SINCE
    return "compile-2024" if early else said


def _optimiser(row: Row, *, trains: bool) -> str:
    if not trains or row.get("optimiser") == "none":
        return "none"
    return "adamw" if _missing(row, "optimiser") else str(row["optimiser"])


def _loss(row: Row) -> bool:
    """NeuSight's iterations are timed without the loss's forward pass; others have it inside."""
    return row["metric"] not in ("forward_ms", "backward_ms", "iteration_ms")


def _missing(row: Row, name: str) -> bool:
    value = row.get(name)
    return value is None or value == "" or value != value


def _whole(row: Row, name: str) -> int | None:
    return None if _missing(row, name) else int(row[name])


def _needed(row: Row, name: str) -> int:
    found = _whole(row, name)
    if found is None:
        raise ProblemError(f"no {name} is said; fill the column")
    return found
