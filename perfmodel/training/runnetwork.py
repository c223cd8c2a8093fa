"""A row of a training-run table as a network, and its cells.

A name that the package knows gives that network, changed where the row differs. Any other name
gives a network of the nearest name's family at the row's sizes, and without a family a decoder like
Llama's (RMSNorm, rotary positions, gated).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.networks import library
from perfmodel.networks.network import Block, Latent, Mlp, Network, SelfAttention

# The family's code for names without sizes of their own; the first prefix that matches counts.
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
_SIZES = ("hidden", "layers", "heads")
"""Sizes without which a row is no network."""


def network_of(cells: Cells) -> Network:
    """The network of a row; what was assumed of an unknown name is in `cells.assumed`.

    Raises `ProblemError` where its name is unknown and sizes are missing.
    """
    name = str(cells.row["network"])
    try:
        network = library.load(name)
    except UnknownName:
        return _similar_network(_template(name, cells), cells)
    return _known_network(network, cells)


def _template(name: str, cells: Cells) -> Network:
    """A network of the family that a name begins with, else Llama's where the row has sizes."""
    word = name.lower()
    for prefix, preset in _FAMILIES.items():
        if word.startswith(prefix):
            return library.load(preset)
    if any(cells.missing(size) for size in _SIZES):
        raise ProblemError(
            f"network {name} is of no known family; name one of {', '.join(_FAMILIES)}, or one of "
            f"perfmodel network list, or give its {', '.join(_SIZES[:-1])} and {_SIZES[-1]}"
        )
    cells.assumed.append(f"network {name} (unknown name: a Llama of the row's sizes)")
    return library.load(_FAMILIES["llama"])


def _known_network(network: Network, cells: Cells) -> Network:
    """A known network with the row's vocabulary, positions and head."""
    changes: dict[str, Any] = {}
    if cells.whole("vocabulary"):
        changes["vocabulary"] = cells.whole("vocabulary")
    if network.positions:
        changes["positions"] = max(cells.whole("seq") or 0, network.positions)
    if network.family == "bert" and cells.row.get("pass") == "train":
        tuned = "finetune" in str(cells.row.get("notes") or "")
        changes["head"] = "none" if tuned else "pretraining"
    layers = cells.whole("layers")
    if layers and layers != network.layers and len(network.blocks) == 1:
        changes["blocks"] = (replace(network.blocks[0], repeat=layers),)
    return replace(network, **changes)


def _similar_network(template: Network, cells: Cells) -> Network:
    """A network like another one, at a row's sizes."""
    hidden, layers = cells.needed("hidden"), cells.needed("layers")
    block = template.blocks[-1]
    attention = _attention(block.attention, cells, hidden)
    mlp = _mlp(block.mlp, cells, hidden)
    dense = cells.whole("dense_layers") or 0
    if mlp.experts and dense:
        inner = cells.whole("inner") or mlp.inner
        first = replace(
            mlp, experts=0, chosen=0, shared_inner=0, inner=inner, router_bias=False,
            shared_gate=False, groups=0, chosen_groups=0,
        )  # fmt: skip
        blocks = [
            replace(block, attention=attention, mlp=first, repeat=dense),
            replace(block, attention=attention, mlp=mlp, repeat=layers - dense),
        ]
    else:
        blocks = [replace(block, attention=attention, mlp=mlp, repeat=layers)]
    network = replace(
        template,
        name=str(cells.row["network"]),
        hidden=hidden,
        vocabulary=cells.whole("vocabulary") or template.vocabulary,
        blocks=tuple(blocks),
        encoder=(),
        positions=max(template.positions, cells.whole("seq") or 0) if template.positions else 0,
        tied=template.tied if cells.missing("tied") else bool(cells.row["tied"]),
    )
    return _two_stacks(network, template, mlp, attention) if template.encoder else network


def _two_stacks(network: Network, template: Network, mlp: Mlp, attention: SelfAttention) -> Network:
    """An encoder and a decoder with half of the layers each. In Switch, every second layer has
    experts (2101.03961, section 2.2)."""
    half = network.layers // 2
    dense = replace(mlp, experts=0, chosen=0)
    kinds = (dense, mlp) if mlp.experts else (dense,)
    repeat = half // len(kinds)
    full = replace(attention, causal=False)
    masked = replace(attention, causal=True)

    def stack(attn: SelfAttention, cross: SelfAttention | None) -> tuple[Block, ...]:
        block = replace(template.blocks[-1], attention=attn, cross=cross)
        return tuple(replace(block, mlp=kind, repeat=repeat) for kind in kinds)

    return replace(network, encoder=stack(full, None), blocks=stack(masked, full))


def _attention(template: SelfAttention, cells: Cells, hidden: int) -> SelfAttention:
    heads = cells.needed("heads")
    width = cells.whole("head_dim") or hidden // heads
    return replace(
        template,
        heads=heads,
        kv_heads=cells.whole("kv_heads") or heads,
        head_size=width,
        relative_buckets=0,
        latent=_latent(cells) or template.latent,
    )


def _latent(cells: Cells) -> Latent | None:
    """The latent of a row's attention; None where it has no `mla_kv_rank`."""
    if not cells.whole("mla_kv_rank"):
        return None
    rank, nope, rope, value = (
        cells.needed(f"mla_{name}") for name in ("kv_rank", "nope_dim", "rope_dim", "value_dim")
    )
    return Latent(rank, nope, rope, value, cells.whole("mla_q_rank") or 0)


def _mlp(template: Mlp, cells: Cells, hidden: int) -> Mlp:
    experts = cells.whole("experts") or 0
    inner = (cells.whole("expert_inner") if experts else None) or cells.whole("inner")
    shared = cells.whole("shared_experts") or 0
    width = inner or 4 * hidden
    return replace(
        template,
        inner=width,
        gated=template.gated if cells.missing("gated") else bool(cells.row["gated"]),
        experts=experts,
        chosen=(cells.whole("experts_chosen") or 1) if experts else 0,
        shared_inner=shared * width if experts else 0,
        router_bias=template.router_bias and bool(experts),
        shared_gate=template.shared_gate and bool(experts),
        groups=template.groups if experts == template.experts else 0,
        chosen_groups=template.chosen_groups if experts == template.experts else 0,
    )


Row = Mapping[str, Any]


class Cells:
    """The cells of a row, and the defaults that replaced empty ones."""

    def __init__(self, row: Row) -> None:
        self.row = row
        self.assumed: list[str] = []

    def missing(self, name: str) -> bool:
        """Whether a cell is empty."""
        value = self.row.get(name)
        return value is None or value == "" or value != value

    def whole(self, name: str) -> int | None:
        """A whole number; None where the cell is empty."""
        return None if self.missing(name) else int(self.row[name])

    def needed(self, name: str) -> int:
        """A required whole number. Raises `ProblemError` where the cell is empty."""
        number = self.whole(name)
        if number is None:
            raise ProblemError(f"{name} is empty; fill the column")
        return number

    def usual(self, name: str, value: Any, why: str) -> Any:
        """A cell, or its default `value`, which is recorded with the reason."""
        if not self.missing(name):
            return self.row[name]
        self.assumed.append(f"{name} {value} ({why})")
        return value
