"""What a network is in numbers: parameters by part, and the bytes of keys and values in a cache."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from perfmodel.elements import element
from perfmodel.networks.expand import parameters
from perfmodel.networks.network import Network, SelfAttention

_OTHER = "head"
_STARTS = {
    "cross attention": "cross attention",
    "attention": "attention",
    "router": "router",
    "experts": "experts",
    "shared expert": "shared expert",
    "mlp": "mlp",
    "embedding": "embedding",
    "norm": "norms",
    "final norm": "norms",
    "encoder norm": "norms",
}
PARTS = tuple(dict.fromkeys((*_STARTS.values(), _OTHER)))
"""Parts of a network, as operations of its layers are called."""


@dataclass(frozen=True)
class Part:
    """The parameters of one part in all layers."""

    name: str
    """One of `PARTS`."""
    parameters: int
    """How many it has."""
    active: int
    """How many of them one token meets."""


def parts(network: Network) -> tuple[Part, ...]:
    """Parameters by part, those that it has: they add up to the network's."""
    whole, met = dict.fromkeys(PARTS, 0), dict.fromkeys(PARTS, 0)
    for weight, repeat in parameters(network):
        part = _part(weight.name)
        whole[part] += weight.elements * repeat
        met[part] += weight.active * repeat
    return tuple(Part(name, whole[name], met[name]) for name in PARTS if whole[name])


def cached_elements(of: SelfAttention) -> int:
    """Numbers that a layer keeps of one token: its keys and values, or their latent and the rotated
    part of all heads' keys (DeepSeek-V2, 2405.04434, table 1)."""
    if of.latent is not None:
        return of.latent.kv_rank + of.latent.rope
    return of.kv_heads * (of.score_width + of.value_width)


def cache_bytes(network: Network, tokens: int, dtype: str = "bf16") -> float:
    """Bytes of keys and values of one sequence; a layer with a window or chunks keeps no more
    tokens than these. 0 for an encoder. Keys of an encoder's output are not among them."""
    return element(dtype).bytes * sum(
        repeat * cached_elements(of) * min(tokens, of.window or of.chunk or tokens)
        for of, repeat in _cached(network)
    )


def cache_bytes_per_token(network: Network, dtype: str = "bf16") -> float:
    """The same of one token, before any window is full."""
    return cache_bytes(network, 1, dtype)


def _cached(network: Network) -> Iterable[tuple[SelfAttention, int]]:
    """Attention whose tokens come one after another, and in how many layers."""
    return ((block.attention, block.repeat) for block in network.blocks if block.attention.causal)


def _part(weight: str) -> str:
    """The part that a weight belongs to, by the first words of its name."""
    return next((part for start, part in _STARTS.items() if weight.startswith(start)), _OTHER)
