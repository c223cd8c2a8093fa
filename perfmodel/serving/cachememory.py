"""The memory of a device, and how many sequences fit beside the weights.

    cache room = share · memory − weights − reserve      (share of all memory: vLLM, SGLang)
    cache room = share · (memory − weights − reserve)    (share of what is left: TensorRT-LLM)

A sequence keeps keys and values of its tokens in whole blocks; a layer with a window keeps at most
the window's. Makers call 2³⁰ bytes of memory a gigabyte: the driver reports 79.6 GiB for the 80 GB
of an H100.

The reserve is the CUDA context, buffers of exchanges, captured graphs, and activations. Activations
are counted. The other sizes are typical of runtimes, recalled from memory.
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
from perfmodel.networks.summary import cached_elements, state_bytes
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.weights import stored_bits
from perfmodel.units import binary

_GIB = 2**30
CONTEXT_BYTES = 0.5 * _GIB
"""CUDA context and libraries on a device."""
BUFFERS_BYTES = 0.5 * _GIB
"""Communication buffers on a device."""
GRAPHS_BYTES = 1.0 * _GIB
"""CUDA graphs of decode steps."""
_MOST_TENSOR = 64
"""Largest tensor parallelism that messages propose."""
_SCALES_BITS = 32
"""Bits of scale and zero of each token and head, in integer caches (KIVI, 2402.02750)."""
_LONGEST = 2**24
"""Limit of the search for a context, in tokens."""


@dataclass(frozen=True)
class Memory:
    """Bytes of one device."""

    total_bytes: float
    """Memory of the device."""
    share: float
    """Share that the engine uses."""
    of_free: bool
    """Whether `share` is of what weights and reserve leave; otherwise of all memory."""
    weights_bytes: float
    """Weights of the fullest stage."""
    context_bytes: float
    """CUDA context and libraries."""
    buffers_bytes: float
    """Communication buffers."""
    graphs_bytes: float
    """CUDA graphs."""
    activations_bytes: float
    """Activations and logits of the largest step."""

    @property
    def reserve_bytes(self) -> float:
        """Everything except weights and cache."""
        return self.context_bytes + self.buffers_bytes + self.graphs_bytes + self.activations_bytes

    @property
    def cache_bytes(self) -> float:
        """Room for the KV cache; 0 where the weights do not fit."""
        usage = self.weights_bytes + self.reserve_bytes
        if self.of_free:
            return max(self.share * (self.total_bytes - usage), 0.0)
        return max(self.share * self.total_bytes - usage, 0.0)

    def terms(self) -> Mapping[str, float]:
        """Bytes by use; they add up to the whole memory."""
        terms = {
            "weights": self.weights_bytes,
            "context": self.context_bytes,
            "exchange buffers": self.buffers_bytes,
            "graphs": self.graphs_bytes,
            "activations": self.activations_bytes,
            "cache room": self.cache_bytes,
        }
        return terms | {"left alone": self.total_bytes - sum(terms.values())}


def memory(of: Deployment, *, share: float | None = None, reserve: float | None = None) -> Memory:
    """The memory of a device; `reserve` replaces the reserve, in bytes."""
    cache = of.engine.cache
    captured = of.engine.prefill != of.setting(1).stack.host or of.setting(1).stack.host == "graph"
    reserves = (
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
        *reserves,
    )


def weight_bytes(of: Deployment) -> float:
    """Weights on one device: its share of a stage's layers, of the embedding and of the head; those
    of an encoder of images are beside the embedding."""
    layers, ends = Fraction(0), []
    for weight, repeat in parameters(of.network, of.setting(1)):
        size = weight.elements * stored_bits(weight, of.format, of.network) / 8
        if weight.kind == "embedding":
            ends.append(size)
        else:
            layers += size * repeat
    if of.encoder is not None and not of.network.encoder:
        ends[0] += Fraction(weight_bytes(of.encoder))
    if of.pipeline == 1:
        return float(layers + sum(ends))
    stage = Fraction(-(-of.network.layers // of.pipeline), of.network.layers)
    return float(layers * stage + max(ends))


def activation_bytes(of: Deployment) -> float:
    """Live tensors of the largest step: the residual stream, the two widest tensors of one layer,
    and fp32 logits of a token of each sequence; or those of the passes over a prompt's images."""
    live = _live_bytes(of, min(of.engine.batching.tokens, 16384))
    count, rows = of.passes
    if of.encoder is None or not count:
        return live
    return max(live, _live_bytes(of.encoder, count * rows))


def _live_bytes(setup: Deployment, tokens: int) -> float:
    network, batching = setup.network, setup.engine.batching
    inner = max(block.mlp.inner * max(block.mlp.chosen, 1) for block in network.blocks)
    width = (1 + network.streams) * network.hidden + 3 * inner / setup.tensor
    logits = 4.0 * min(batching.sequences, 256) * network.vocabulary / setup.tensor
    return 2.0 * tokens * width + logits


def sequence_bytes(of: Deployment, tokens: int, *, shared: int = 0) -> float:
    """KV cache and states of a sequence on the fullest device, without its first `shared` tokens (a
    shared prefix)."""
    stage = -(-of.network.layers // of.pipeline) / of.network.layers
    kept = 0.0
    for block in of.network.blocks:
        kind = block.attention
        span = _span(of, kind, tokens) - _span(of, kind, shared, prefix=True)
        key_heads = max(kind.kv_heads // of.tensor, 1)
        state = state_bytes(kind, kind.heads // of.tensor, key_heads, of.dtype)
        kept += block.repeat * (_kept_bytes(of, kind) * span + state)
        if block.cross is not None:  # the encoder's output, once for all tokens of the answer
            read = _span(of, block.cross, of.encoded)
            kept += block.repeat * _kept_bytes(of, block.cross) * read
    return stage * kept


def token_bytes(of: Deployment) -> float:
    """KV cache of one token, over all layers and devices of a copy."""
    return sum(
        block.repeat * cached_elements(block.attention) * element_bytes(of, block.attention)
        for block in of.network.blocks
    )


def element_bytes(of: Deployment, kind: SelfAttention) -> float:
    """Bytes of a cached element, with its share of scales."""
    type_ = element(of.cache_type)
    scaled = type_.name.startswith("int")
    return type_.bytes + (_SCALES_BITS / 8 / kind.score_width if scaled else 0.0)


def _kept_bytes(setup: Deployment, kind: SelfAttention) -> float:
    """Bytes of a token and layer on one device. With more devices than heads, heads are
    replicated."""
    if kind.latent is not None or kind.state is not None or kind.borrowed:
        return cached_elements(kind) * element_bytes(setup, kind)
    heads = max(kind.kv_heads // setup.tensor, 1)
    return heads * (kind.score_width + kind.value_width) * element_bytes(setup, kind)


def _span(setup: Deployment, kind: SelfAttention, tokens: int, *, prefix: bool = False) -> int:
    """Tokens that a layer keeps, in blocks: rounded up, or down for a shared prefix (`prefix`)."""
    block = setup.engine.cache.block
    count = min(tokens, kind.span or tokens)
    return (count // block if prefix else -(-count // block)) * block


def fitting_batch(
    of: Deployment, tokens: int, *, shared: int = 0, has: Memory | None = None
) -> int:
    """Sequences of `tokens` tokens that fit, at most the engine's limit; 0 where the weights do not
    fit."""
    has = has or memory(of)
    sequence = sequence_bytes(of, tokens, shared=shared)
    prefix = sequence_bytes(of, shared) if shared else 0.0
    if has.cache_bytes < prefix + sequence:
        return 0
    return min(math.floor((has.cache_bytes - prefix) / sequence), of.engine.batching.sequences)


def fitting_context(of: Deployment, batch: int, *, has: Memory | None = None) -> int:
    """Tokens of each of `batch` sequences that fit, at most the network's positions."""
    has = has or memory(of)
    limit = of.network.positions or _LONGEST
    low, high = 0, limit
    while low < high:
        middle = (low + high + 1) // 2
        if batch * sequence_bytes(*of.reading(middle)) <= has.cache_bytes:
            low = middle
        else:
            high = middle - 1
    return low


def check_weights(of: Deployment) -> None:
    """Raises `ProblemError` where weights and reserve leave no room for a cache."""
    room = memory(of)
    if room.cache_bytes <= 0.0:
        raise ProblemError(
            f"{of.network.name} in {of.weights} takes {binary(room.weights_bytes)} of the "
            f"{binary(room.total_bytes)} of {of.device.slug}, and nothing is left for its cache; "
            f"give {more(of)}a smaller format"
        )


def more(of: Deployment, tokens: int = 0) -> str:
    """An option with the fewest devices, by doubling, that leave room for a sequence of `tokens`
    tokens."""
    tensor = 2 * of.tensor
    while tensor <= _MOST_TENSOR:
        try:
            larger = replace(of, tensor=tensor)
            if memory(larger).cache_bytes > (sequence_bytes(larger, tokens) if tokens else 0.0):
                return f"--tensor {tensor}, or "
        except ProblemError:  # heads do not divide, or no system has so many devices
            break
        tensor *= 2
    return ""
