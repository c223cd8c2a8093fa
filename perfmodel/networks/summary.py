"""Sizes of a network: parameters by part, and bytes of the KV cache.

Formats of weights store parts differently. Releases keep routers, norms, biases and positions at 16
bits. Formats differ in the embedding and the head, and some are of experts alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from perfmodel.elements import element
from perfmodel.networks.expand import parameters
from perfmodel.networks.network import Network, SelfAttention
from perfmodel.networks.value import Weight

_OTHER = "head"
_STARTS = {
    "cross attention": "cross attention",
    "attention": "attention",
    "router": "router",
    "experts": "experts",
    "shared expert": "shared expert",
    "mlp": "mlp",
    "embedding": "embedding",
    "layer embedding": "embedding",
    "stream": "residual",
    "low rank": "residual",
    "norm": "norms",
    "final norm": "norms",
    "encoder norm": "norms",
}
PARTS = tuple(dict.fromkeys((*_STARTS.values(), _OTHER)))
"""Parts of a network, by the names of operations."""


@dataclass(frozen=True)
class Part:
    """The parameters of one part in all layers."""

    name: str
    """One of `PARTS`."""
    parameters: int
    """Number of parameters."""
    active: int
    """Parameters that one token uses."""


def parts(network: Network) -> tuple[Part, ...]:
    """Parameters by part, without empty parts; they add up to the network's."""
    total, active = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    for weight, repeat in parameters(network):
        part = _part(weight.name)
        total[part] += weight.elements * repeat
        active[part] += weight.active * repeat
    return tuple(Part(name, total[name], active[name]) for name in PARTS if total[name])


def cached_elements(of: SelfAttention) -> int:
    """Elements that a layer caches for one token: keys and values; or, with latent attention, the
    latent and the rotary keys that all heads share (DeepSeek-V2, 2405.04434, table 1), and the key
    of an indexer. A state has no such elements (`state_bytes`), nor a layer that borrows them."""
    if of.state is not None or of.borrowed:
        return 0
    if of.latent is not None:
        index = 0 if of.indexer is None else of.indexer.size
        return of.latent.kv_rank + of.latent.rope + index
    return of.kv_heads * (of.score_width + of.value_width)


def state_bytes(of: SelfAttention, heads: int, key_heads: int, dtype: str = "bf16") -> float:
    """Bytes that a sequence keeps in a layer whatever its length: the state of every head in fp32,
    and the last tokens before its convolution; 0 for keys and values."""
    if of.state is None:
        return 0.0
    keys, values = key_heads * of.state.key_size, heads * of.head_size
    channels = values if of.state.selective else 2 * keys + values
    tokens = max(of.state.taps - 1, 0)
    return 4.0 * of.state.key_size * values + tokens * channels * element(dtype).bytes


def cache_bytes(network: Network, tokens: int, dtype: str = "bf16") -> float:
    """Bytes of one sequence's KV cache; 0 for an encoder.

    A layer with a window or chunks caches no more tokens than these. Keys of an encoder's output
    are not included.
    """
    return sum(
        repeat * (
            element(dtype).bytes * cached_elements(attn) * min(tokens, attn.span or tokens)
            + state_bytes(attn, attn.heads, attn.kv_heads, dtype)
        )
        for attn, repeat in _causal_attentions(network)
    )  # fmt: skip


def cache_bytes_per_token(network: Network, dtype: str = "bf16") -> float:
    """Bytes of the KV cache for one more token, before any window is full."""
    return cache_bytes(network, 1, dtype) - cache_bytes(network, 0, dtype)


def _causal_attentions(network: Network) -> Iterable[tuple[SelfAttention, int]]:
    """Causal attentions, each with its number of layers."""
    return ((block.attention, block.repeat) for block in network.blocks if block.attention.causal)


def _part(weight: str) -> str:
    """The part that a weight belongs to, by the first words of its name."""
    return next((part for start, part in _STARTS.items() if weight.startswith(start)), _OTHER)


Role = Literal["layer", "expert", "head", "embedding", "kept"]
"""`layer`: a matrix of every layer; `expert`: one of an expert; `kept`: none that is narrowed."""


def part(weight: Weight, network: Network) -> Role:
    """The part of the network that a parameter is; a tied embedding is the head."""
    if weight.name == "head.weight" or (network.tied and weight.name == "embedding.weight"):
        return "head"
    if weight.name == "embedding.weight":
        return "embedding"
    if weight.kind != "matrix" or weight.name.startswith("router"):
        return "kept"
    return "expert" if weight.expert else "layer"


def narrowed(weight: Weight, network: Network, *, experts_only: bool) -> bool:
    """Whether a format stores a parameter of the layers; one of experts alone stores no other
    matrix of a network that has experts."""
    role = part(weight, network)
    stores_layers = not (experts_only and any(block.mlp.experts for block in network.blocks))
    return role == "expert" or (role == "layer" and stores_layers)
