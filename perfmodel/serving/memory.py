"""What lies in a device's memory, and how many sequences fit beside it.

    cache room = share · memory − weights − reserve      (share of all memory: vLLM, SGLang)
    cache room = share · (memory − weights − reserve)    (share of what is left: TensorRT-LLM)

A sequence keeps keys and values of its tokens in whole blocks, of a layer with a window no more
than that window's. Makers call 2³⁰ bytes of memory a gigabyte: to its driver the 80 GB of an H100
are 79.6 GiB. Sizes of the reserve are what runtimes were seen to take, recalled from memory:
the CUDA context, buffers of exchanges, captured graphs; activations are counted.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from perfmodel.elements import element
from perfmodel.errors import ProblemError
from perfmodel.networks.expand import parameters
from perfmodel.networks.network import SelfAttention
from perfmodel.networks.summary import cached_elements
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.weights import stored_bits
from perfmodel.units import binary

_GIB = 2**30
CONTEXT_BYTES = 0.5 * _GIB
"""CUDA context and libraries of a device."""
BUFFERS_BYTES = 0.5 * _GIB
"""Buffers of exchanges among devices."""
GRAPHS_BYTES = 1.0 * _GIB
"""Captured graphs of decode steps."""
_MOST_TENSOR = 64
"""Devices that share a layer, beyond which none are proposed."""
_SCALES_BITS = 32
"""A scale and a zero of each token and head, of integer caches (KIVI, 2402.02750)."""
_LONGEST = 2**24
"""Tokens beyond which no context is asked after."""


@dataclass(frozen=True)
class Memory:
    """Bytes of one device."""

    total_bytes: float
    """What it has."""
    share: float
    """Share that the engine takes."""
    of_free: bool
    """Whether of what weights and reserve leave; else of all memory."""
    weights_bytes: float
    """Weights of the fullest stage."""
    context_bytes: float
    """The runtime."""
    buffers_bytes: float
    """Exchanges."""
    graphs_bytes: float
    """Captured graphs."""
    activations_bytes: float
    """The largest step's activations and logits."""

    @property
    def reserve_bytes(self) -> float:
        """All but weights and cache."""
        return self.context_bytes + self.buffers_bytes + self.graphs_bytes + self.activations_bytes

    @property
    def cache_bytes(self) -> float:
        """Room for keys and values; 0 where the weights do not fit."""
        taken = self.weights_bytes + self.reserve_bytes
        if self.of_free:
            return max(self.share * (self.total_bytes - taken), 0.0)
        return max(self.share * self.total_bytes - taken, 0.0)

    def terms(self) -> Mapping[str, float]:
        """Bytes by what they are for; they add up to the whole memory."""
        known = {
            "weights": self.weights_bytes,
            "context": self.context_bytes,
            "exchange buffers": self.buffers_bytes,
            "graphs": self.graphs_bytes,
            "activations": self.activations_bytes,
            "cache room": self.cache_bytes,
        }
        return known | {"left alone": self.total_bytes - sum(known.values())}


def memory(of: Deployment, *, share: float | None = None, reserve: float | None = None) -> Memory:
    """The memory of a device; `reserve` bytes stand for all of the reserve where it is given."""
    cache = of.engine.cache
    captured = of.engine.prefill != of.setting(1).stack.host or of.setting(1).stack.host == "graph"
    said = (
        (CONTEXT_BYTES, BUFFERS_BYTES if of.tensor * of.pipeline * of.expert > 1 else 0.0,
         GRAPHS_BYTES if captured else 0.0, activation_bytes(of))
        if reserve is None
        else (reserve, 0.0, 0.0, 0.0)
    )  # fmt: skip
    return Memory(
        of.device.memory_bytes,
        cache.share if share is None else share,
        cache.of == "free",
        weight_bytes(of),
        *said,
    )


def weight_bytes(of: Deployment) -> float:
    """Weights of a device: its share of each layer of a stage, and of embedding and head."""
    layers, ends = Fraction(0), []
    for weight, repeat in parameters(of.network, of.setting(1)):
        size = weight.elements * stored_bits(weight, of.format) / 8
        if weight.kind == "embedding":
            ends.append(size)
        else:
            layers += size * repeat
    if of.pipeline == 1:
        return float(layers + sum(ends))
    stage = Fraction(-(-of.network.layers // of.pipeline), of.network.layers)
    return float(layers * stage + max(ends))


def activation_bytes(of: Deployment) -> float:
    """Live tensors of the largest step: the residual stream, one layer's widest pair, logits in
    fp32 of a token of each sequence."""
    network, batching = of.network, of.engine.batching
    tokens = min(batching.tokens, 16384)
    inner = max(block.mlp.inner * max(block.mlp.chosen, 1) for block in network.blocks)
    wide = 2 * network.hidden + 3 * inner / of.tensor
    logits = 4.0 * min(batching.sequences, 256) * network.vocabulary / of.tensor
    return 2.0 * tokens * wide + logits


def sequence_bytes(of: Deployment, tokens: int, *, shared: int = 0) -> float:
    """Keys and values of a sequence on the fullest device; the first `shared` tokens are another
    one's."""
    stage = -(-of.network.layers // of.pipeline) / of.network.layers
    return stage * sum(
        block.repeat
        * _kept_bytes(of, block.attention)
        * (_kept(of, block.attention, tokens) - _kept(of, block.attention, shared, whole=True))
        for block in of.network.blocks
    )


def token_bytes(of: Deployment) -> float:
    """Keys and values of one token, of all layers and devices of a copy together."""
    return sum(
        block.repeat * cached_elements(block.attention) * element_bytes(of, block.attention)
        for block in of.network.blocks
    )


def element_bytes(of: Deployment, kind: SelfAttention) -> float:
    """Bytes of a cached number, its share of scales included."""
    type_ = element(of.cache_type)
    scaled = type_.name.startswith("int")
    return type_.bytes + (_SCALES_BITS / 8 / kind.score_width if scaled else 0.0)


def _kept_bytes(of: Deployment, kind: SelfAttention) -> float:
    """Bytes of a token and layer on one device: where devices are more than heads, copies."""
    if kind.latent is not None:
        return cached_elements(kind) * element_bytes(of, kind)
    heads = max(kind.kv_heads // of.tensor, 1)
    return heads * (kind.score_width + kind.value_width) * element_bytes(of, kind)


def _kept(of: Deployment, kind: SelfAttention, tokens: int, *, whole: bool = False) -> int:
    """Tokens that a layer keeps, in whole blocks; of a prefix the blocks that are full."""
    block = of.engine.cache.block
    reach = kind.window or kind.chunk or tokens
    held = min(tokens, reach)
    return (held // block if whole else -(-held // block)) * block


def fitting_batch(
    of: Deployment, tokens: int, *, shared: int = 0, has: Memory | None = None
) -> int:
    """Sequences of so many tokens that fit, at most the engine's; 0 where the weights do not."""
    has = has or memory(of)
    each = sequence_bytes(of, tokens, shared=shared)
    once = sequence_bytes(of, shared) if shared else 0.0
    if has.cache_bytes < once + each:
        return 0
    return min(math.floor((has.cache_bytes - once) / each), of.engine.batching.sequences)


def fitting_context(of: Deployment, batch: int, *, has: Memory | None = None) -> int:
    """Tokens of each of `batch` sequences that fit, at most the network's positions."""
    has = has or memory(of)
    most = of.network.positions or _LONGEST
    low, high = 0, most
    while low < high:
        middle = (low + high + 1) // 2
        if batch * sequence_bytes(of, middle) <= has.cache_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def check_weights(of: Deployment) -> None:
    """Raises `ProblemError` where weights and reserve leave nothing."""
    has = memory(of)
    if has.cache_bytes <= 0.0:
        raise ProblemError(
            f"{of.network.name} in {of.weights} takes {binary(has.weights_bytes)} of the "
            f"{binary(has.total_bytes)} of {of.device.slug}, and nothing is left for its cache; "
            f"give {_more(of)}a smaller format"
        )


def _more(of: Deployment) -> str:
    """The fewest devices, of twice as many at a time, that leave room for a cache, as an option."""
    tensor = 2 * of.tensor
    while tensor <= _MOST_TENSOR:
        try:
            if memory(replace(of, tensor=tensor)).cache_bytes > 0.0:
                return f"--tp {tensor}, or "
        except ProblemError:  # heads do not divide, or no system joins so many
            break
        tensor *= 2
    return ""
