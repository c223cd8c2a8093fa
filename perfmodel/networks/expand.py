"""Network × setting → segments: the operations of every kind of layer, in order.

    segments = expand(network, Setting(batch=8, seq=512, training=True))
    segments[1].forward.graph.nodes      # kernels of one layer, forward

Every count of a network is derived from its operations: parameters from the weights that they own,
FLOPs and bytes from their kernels, activations from the tensors that they save.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

from perfmodel.errors import ProblemError, SizeError
from perfmodel.networks.adapters import tuned
from perfmodel.networks.finetuning import FineTuning
from perfmodel.networks.layers.attention import attention
from perfmodel.networks.layers.ends import embedding, head, patch_embedding, sound_embedding
from perfmodel.networks.layers.inner import inner
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.layers.streams import corrected_streams, low_rank, predicted_stream
from perfmodel.networks.network import Block, Network
from perfmodel.networks.operations.maps import Learned
from perfmodel.networks.segment import Segment
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value, Weight


def expand(network: Network, setting: Setting) -> tuple[Segment, ...]:
    """The segments of a network in order.

    Raises `SizeError` for sizes that do not divide among the devices, and `ProblemError` for more
    tokens than learned positions.
    """
    try:
        return _segments(network, setting)
    except SizeError as error:
        raise error.those(
            lambda axis, ranks: _segments(
                network,
                replace(setting, shards=replace(setting.shards, **{axis: ranks})),  # type: ignore[arg-type]
            )
        ) from None


@lru_cache(maxsize=256)
def _segments(network: Network, setting: Setting) -> tuple[Segment, ...]:
    own = network.own_segments(setting)
    if own is not None:
        return own
    fixed = 0 if network.patches else network.positions  # those of images are interpolated
    if fixed and setting.past + setting.seq > fixed:
        raise ProblemError(
            f"{network.name} has {fixed:,} learned positions, fewer than the "
            f"{setting.past + setting.seq:,} tokens of a sequence; give a shorter seq"
        )
    segments = []
    if network.encoder:
        read = replace(setting, seq=network.frames.positions) if network.frames else setting
        segments.append(_embedding(network, read, network.encoder, "embedding"))
        segments += _blocks(network, read, network.encoder, "encoder block")
        layer = Layer(network, read)
        layer.norm("encoder norm", layer.x)
        segments.append(Segment("encoder norm", 1, tuple(layer.operations)))
    name = "decoder embedding" if network.encoder else "embedding"
    segments.append(_embedding(network, setting, network.blocks, name))
    segments += _blocks(network, setting, network.blocks, "block")
    if not setting.ends:
        return tuned([segment for segment in segments if segment.block], setting)
    layer = Layer(network, setting)
    head(layer)
    if layer.operations:
        segments.append(Segment("head", 1, tuple(layer.operations)))
    return tuned(segments, setting)


def parameters(network: Network, setting: Setting | None = None) -> tuple[tuple[Weight, int], ...]:
    """Every parameter tensor, with the number of layers that have one; shared tensors count
    once."""
    sizes = setting or Setting(batch=1, seq=1)
    return tuple(
        (weight, segment.repeat)
        for segment in expand(network, sizes)
        for weight in segment.weights
        if not weight.shared
    )


def parameter_count(
    network: Network, tuning: FineTuning | None = None, *, trained: bool = False
) -> int:
    """Parameters of a network and of its adapters; `trained`: those that train."""
    pairs = parameters(network, Setting(batch=1, seq=1, training=True, tuning=tuning))
    return sum(w.elements * repeat for w, repeat in pairs if w.trains or not trained)


def active_count(network: Network, *, input_embedding: bool = True) -> int:
    """Parameters that one token uses: of the experts, the `chosen` ones; of the input embedding,
    the whole table, or nothing without `input_embedding`."""
    count = sum(weight.active * repeat for weight, repeat in parameters(network))
    if input_embedding:
        return count
    tables = sum(
        weight.elements * repeat
        for weight, repeat in parameters(network)
        if weight.name == "embedding.weight"
    )
    return count - (0 if network.tied else tables)


def _embedding(network: Network, setting: Setting, blocks: Sequence[Block], name: str) -> Segment:
    """The embedding segment: tables, their sum, a norm, dropout; of an encoder of images, its
    patches; of one of sound, its frames. The decoder of an encoder-decoder shares the encoder's
    table of tokens."""
    layer = Layer(network, setting)
    if network.patches is not None:
        patch_embedding(layer, network.patches)
    elif network.frames is not None and name == "embedding":
        sound_embedding(layer, network.frames)
    else:
        shared = name != "embedding" and network.frames is None
        embedding(layer, blocks[0].attention, shared=shared)
    return Segment(name, 1, tuple(layer.operations))


def _blocks(
    network: Network, setting: Setting, blocks: Sequence[Block], label: str
) -> list[Segment]:
    """One segment for each entry of the list of blocks."""
    segments = []
    for i, entry in enumerate(blocks):
        name = label if len(blocks) == 1 else f"{label} {i + 1}"
        layer = Layer(network, setting)
        block(layer, entry)
        segments.append(Segment(name, entry.repeat, tuple(layer.operations), block=True))
    return segments


def block(layer: Layer, of: Block) -> None:
    """Add attention and the inner layer, in sequence or, in a parallel block, side by side."""
    if of.parallel:
        _parallel_block(layer, of)
        return
    x = predicted_stream(layer, layer.x)
    parts = ["attention", *(["cross"] if of.cross is not None else ())]
    if of.mlp.inner:
        parts.append("mlp")
    for number, part in enumerate(parts, 1):
        x = _part(layer, of, x, part, number)
    corrected_streams(layer, x)


def _parallel_block(layer: Layer, block: Block) -> None:
    """Attention and inner layer on the same input, added together (PaLM, Falcon)."""
    source = layer.norm("norm", layer.x)
    mlp_source = layer.norm("norm of mlp", layer.x) if block.own_norm else source
    context = attention(layer, block.attention, source, "attention")
    x = layer.residual("residual 1", context, layer.x)
    layer.residual("residual 2", inner(layer, block.mlp, mlp_source), x)


def _part(layer: Layer, block: Block, x: Value, part: str, number: int) -> Value:
    """One part, its norm and its residual."""
    source = x if block.norm_after else layer.norm(f"norm {number}", x)
    if part == "attention":
        output = attention(layer, block.attention, source, "attention")
    elif part == "cross" and block.cross is not None:
        output = attention(layer, block.cross, source, "cross attention", cross=True)
    else:
        output = inner(layer, block.mlp, source)
    if block.sandwich:
        output = layer.norm(f"norm behind {number}", output)
    if block.scaled:
        scale = (1, output.cols)
        output = layer.one(Learned(f"scale {number}", layer.setting, output, scale))
    y = layer.residual(f"residual {number}", output, x)
    if part == "attention" and block.low_rank:
        y = low_rank(layer, source, y, block.low_rank)
    return layer.norm(f"norm {number}", y) if block.norm_after else y
