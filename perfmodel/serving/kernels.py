"""Kernels of one step on one device, as an engine runs the layers of a network, and its exchanges
by the collectives that the engine runs.

The layers are those of `networks.expand`, with the engine's changes: a residual sum and the
following norm share a kernel, products read quantised weights, keys and values are written to a
cache. Attention and states are separate (`Steps.decoding`, `Steps.prompts`), since their time
depends on the sequences and the cached tokens. All other time depends on the tokens of the step.

Latent attention decodes in the latent space (DeepSeek-V2, 2405.04434, appendix C). The product that
makes keys and values of the latent is absorbed: q·Wᵁᴷ before attention and ·Wᵁⱽ after it, one
product a head. All heads read one head of kv_rank + rope elements; the values are its first kv_rank
elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.matmul import is_widened
from perfmodel.collectives import Collective, predict_collective
from perfmodel.graph import Node, touches
from perfmodel.graph.asks import Ask, ask
from perfmodel.networks.dispatching import exchange_ends, sends
from perfmodel.networks.expand import expand
from perfmodel.networks.layers.attention import ALONE
from perfmodel.networks.network import Block, Latent, Mlp, Network
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.segment import Segment
from perfmodel.networks.summary import narrowed
from perfmodel.serving.deployment import NARROW, Deployment
from perfmodel.serving.times import COMMUNICATION, EXPERTS, Line, Times

HEAD = "head"
_EXPANDED = (" kv up", " k rope of all heads")
"""Operations of latent attention that decoding absorbs: keys and values of every head."""
_CROSS = "cross attention"
_ENCODED = (f"{_CROSS} k projection", f"{_CROSS} v projection")
"""Products that are made once of an encoder's output, after its pass (`Network.reading`)."""


@dataclass(frozen=True)
class Kernel:
    """A kernel of a step."""

    name: str
    """Name of the operation, unique within its segment."""
    segment: str
    """The segment that it belongs to."""
    kind: str
    """Its class: matmul, norm, pointwise, embedding."""
    launches: int
    """Launches in a step: layers times launches a layer."""
    asked: Ask
    """The question for the operator model."""


def kernels(of: Deployment, tokens: int, *, head: bool | None = None) -> Iterator[Kernel]:
    """Kernels of embedding, layers and head over `tokens` tokens, without attention; with `head`,
    those of the head alone, or of the rest."""
    for segment in expand(_engine_network(of), of.setting(tokens)):
        if head is not None and (segment.name == HEAD) != head:
            continue
        graph = segment.forward.graph
        reuses = touches.reuses(graph, [0.0] * len(graph.nodes), of.device, again=False)
        sums = _sums(segment) if of.engine.residual_norm else frozenset()
        for node, kind, reuse in zip(graph.nodes, segment.forward.kinds, reuses, strict=True):
            if kind == "attention" or node.name in sums or node.name.endswith(_EXPANDED):
                continue
            if node.name in _ENCODED:
                continue
            variant = _run(of, segment, node, kind)
            yield Kernel(
                node.name, segment.name, kind, segment.repeat * node.repeat, ask(variant, {}, reuse)
            )
        yield from _writes(of, segment, tokens)


def exchanges(of: Deployment, tokens: int) -> Iterator[tuple[Exchanged, int]]:
    """Exchanges of a step: that of one layer, and the number of layers."""
    for segment in expand(_engine_network(of), of.setting(tokens)):
        for exchange in segment.forward.exchanges:
            yield exchange, segment.repeat


def absorbed(of: Deployment, latent: Latent, heads: int, tokens: int) -> tuple[Matmul, Matmul]:
    """The two products that replace the product of keys and values in decoding."""
    query = Matmul(tokens, latent.kv_rank, latent.nope, heads, of.dtype)
    return query, Matmul(tokens, latent.value, latent.kv_rank, heads, of.dtype)


def expanded(of: Deployment, latent: Latent, heads: int, tokens: int) -> tuple[Matmul]:
    """The product that makes keys and values of a prompt's latents."""
    width = heads * (latent.nope + latent.value)
    return (Matmul(tokens, width, latent.kv_rank, 1, of.product),)


def _engine_network(setup: Deployment) -> Network:
    """The network as its engine runs it."""
    stack = setup.setting(1).stack
    return _grouped_network(setup.network, stack.fused_shared_experts and setup.expert == 1)


@lru_cache(maxsize=64)
def _grouped_network(network: Network, fused: bool) -> Network:
    """The network with equal layers grouped, and shared experts `fused` with the others.

    A step's time is a sum, so the order of layers does not matter.
    """
    kinds: dict[Block, int] = {}
    for block in network.blocks:
        kind = replace(block, repeat=1, mlp=_fused_mlp(block.mlp) if fused else block.mlp)
        kinds[kind] = kinds.get(kind, 0) + block.repeat
    blocks = tuple(replace(block, repeat=repeat) for block, repeat in kinds.items())
    return replace(network, blocks=blocks, encoder=(), frames=None, positions=0)


def _fused_mlp(mlp: Mlp) -> Mlp:
    """Shared experts as experts that every token chooses."""
    count, rest = divmod(mlp.shared_inner, mlp.inner)
    if not mlp.experts or not count or rest or mlp.shared_gate:
        return mlp
    return replace(
        mlp, experts=mlp.experts + count, chosen=mlp.chosen + count, shared_inner=0
    )  # fmt: skip


def _sums(segment: Segment) -> frozenset[str]:
    """Norms that share a kernel with a residual sum, of this layer or of the layer before."""
    sums = {
        tensor
        for node in segment.forward.graph.nodes
        if node.name.startswith("residual")
        for edge in node.writes
        for tensor in edge.tensors
    }
    norms = (
        node.name
        for node, kind in zip(segment.forward.graph.nodes, segment.forward.kinds, strict=True)
        if kind == "norm"
        and any(name in sums or name == "x" for edge in node.reads for name in edge.tensors)
    )
    return frozenset(norms) if segment.block else frozenset()


def _run(setup: Deployment, segment: Segment, node: Node, kind: str) -> Node:
    """The node with the engine's changes."""
    problem = node.problem
    joins = setup.engine.residual_norm and segment.block and node.name.startswith("residual")
    if joins and isinstance(problem, Rowwise):  # reads both, writes the sum and its norm
        return replace(node, problem=replace(problem, outputs=2))
    if isinstance(problem, Matmul) and node.name in _narrow_products(setup, segment):
        kernel = setup.engine.kernels.weight_only if is_widened(setup.product) else ""
        product = replace(problem, dtype=setup.product)
        return replace(node, problem=product, implementation=kernel or None)
    return node


def _narrow_products(setup: Deployment, segment: Segment) -> frozenset[str]:
    """Products of a layer whose weights the format stores."""
    if setup.format.wide or not segment.block:
        return frozenset()
    return frozenset(
        weight.name.removesuffix(".weight")
        for weight in segment.weights
        if narrowed(weight, setup.network, experts_only=setup.format.stored.experts_only)
    )


def _writes(setup: Deployment, segment: Segment, tokens: int) -> Iterator[Kernel]:
    """The write of the step's keys and values to the cache, if it is a kernel of its own."""
    if setup.engine.cache_write or not segment.block:
        return
    borrows = any(weight.name.endswith(f"{ALONE}.weight") for weight in segment.weights)
    for node in segment.forward.graph.nodes:
        if isinstance(node.problem, Attention) and node.name != _CROSS and not borrows:
            sizes = node.problem.sizes()
            cols = int(sizes["g"] * (sizes["d"] + sizes["e"]))
            problem = Rowwise("pointwise", tokens, cols, setup.dtype)
            name = f"{node.name} cache write"
            question = Ask(name, problem, "auto", None, (), {})
            yield Kernel(name, segment.name, "pointwise", segment.repeat, question)


_Layers = tuple[Exchanged, int]
"""The exchange of one layer, and the number of layers."""


def exchange_times(of: Deployment, steps: Sequence[Sequence[_Layers]]) -> Times | None:
    """Times of the exchanges of steps that all have the same ones; None where there are none."""
    if not steps[0]:
        return None
    rows = [_exchange_seconds(of, [step[i] for step in steps]) for i in range(len(steps[0]))]
    lines = tuple(
        Line((EXPERTS if one.axis == "expert" else "") + one.kind, COMMUNICATION, COMMUNICATION, n)
        for one, n in steps[0]
    )
    return Times(lines, *(np.array([row[i] for row in rows]) for i in range(3))).merged()


def _exchange_seconds(
    setup: Deployment, row: Sequence[_Layers]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, low and high ends of one exchange in several steps."""
    first, _ = row[0]
    ranks = setup.tensor if first.axis == "tensor" else setup.expert
    local = min(
        ranks, max(setup.fabric.node_devices // (1 if first.axis == "tensor" else setup.tensor), 1)
    )
    while ranks % local:
        local -= 1
    repeat = np.array([layers for _, layers in row])
    stack = setup.setting(1).stack
    if sends(stack, setup.fabric, first):
        dtype = setup.product if setup.product in NARROW else ""
        ends = exchange_ends([one for one, _ in row], ranks, local, setup.fabric, stack, dtype)
    else:
        sizes = np.array([round(one.tensor_bytes) for one, _ in row], dtype=np.int64)
        library = setup.engine.all_reduce if first.kind == "all-reduce" else "nccl"
        time = predict_collective(
            Collective(first.kind, sizes, ranks, local), setup.fabric, library=library
        )
        ends = np.array([time.seconds, time.low_seconds, time.high_seconds])
    seconds, low, high = ends * repeat
    return seconds, low, high
