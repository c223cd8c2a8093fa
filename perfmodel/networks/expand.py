"""Network × setting → segments: the operations of every kind of layer, in order.

    segments = expand(network, Setting(batch=8, seq=512, training=True))
    segments[1].forward.graph.nodes      # kernels of one layer, forward

What is counted of a network comes from here: parameters are those that its operations own,
operations and bytes those of its kernels, activations what its operations save.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from perfmodel.errors import ProblemError
from perfmodel.networks.layers.block import block
from perfmodel.networks.layers.ends import embedding, head
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.network import Block, Network
from perfmodel.networks.segment import Segment
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Weight


@lru_cache(maxsize=256)
def expand(network: Network, setting: Setting) -> tuple[Segment, ...]:
    """The segments of a network in order. Raises `ProblemError` for sizes that devices cannot
    share, in one line with what would work."""
    if network.positions and setting.past + setting.seq > network.positions:
        raise ProblemError(
            f"{network.name} has {network.positions:,} learned positions, fewer than the "
            f"{setting.past + setting.seq:,} tokens of a sequence; give a shorter seq"
        )
    found = []
    if network.encoder:
        found.append(_embedding(network, setting, network.encoder, "embedding"))
        found += _blocks(network, setting, network.encoder, "encoder block")
        layer = Layer(network, setting)
        layer.norm("encoder norm", layer.x)
        found.append(Segment("encoder norm", 1, tuple(layer.operations)))
    name = "decoder embedding" if network.encoder else "embedding"
    found.append(_embedding(network, setting, network.blocks, name))
    found += _blocks(network, setting, network.blocks, "block")
    if not setting.ends:
        return tuple(one for one in found if one.block)
    layer = Layer(network, setting)
    head(layer)
    if layer.operations:
        found.append(Segment("head", 1, tuple(layer.operations)))
    return tuple(found)


def parameters(network: Network, setting: Setting | None = None) -> tuple[tuple[Weight, int], ...]:
    """Every parameter tensor with how many layers have one; shared ones once."""
    sizes = setting or Setting(batch=1, seq=1)
    return tuple(
        (weight, segment.repeat)
        for segment in expand(network, sizes)
        for weight in segment.weights
        if not weight.shared
    )


def parameter_count(network: Network) -> int:
    """Parameters of a network."""
    return sum(weight.elements * repeat for weight, repeat in parameters(network))


def active_count(network: Network, *, input_embedding: bool = True) -> int:
    """Parameters that one token meets: `chosen` of the experts; of the input embedding's table all
    rows, or none."""
    found = sum(weight.active * repeat for weight, repeat in parameters(network))
    if input_embedding:
        return found
    tables = sum(
        weight.elements * repeat
        for weight, repeat in parameters(network)
        if weight.name == "embedding.weight"
    )
    return found - (0 if network.tied else tables)


def _embedding(network: Network, setting: Setting, before: Sequence[Block], name: str) -> Segment:
    """Tables, their sums, a norm, dropout, of the blocks that follow; those of a decoder behind an
    encoder share its table."""
    layer = Layer(network, setting)
    embedding(layer, before[0].attention, shared=name != "embedding")
    return Segment(name, 1, tuple(layer.operations))


def _blocks(
    network: Network, setting: Setting, blocks: Sequence[Block], called: str
) -> list[Segment]:
    """A segment for each entry."""
    found = []
    for i, one in enumerate(blocks):
        name = called if len(blocks) == 1 else f"{called} {i + 1}"
        layer = Layer(network, setting)
        block(layer, one)
        found.append(Segment(name, one.repeat, tuple(layer.operations), block=True))
    return found
