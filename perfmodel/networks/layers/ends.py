"""The layers before and after the blocks: embeddings, norms, heads, projectors, the loss."""

from __future__ import annotations

from perfmodel.networks.images import Patches, Projector
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.layers.streams import joined_streams, layer_embeddings
from perfmodel.networks.network import SelfAttention
from perfmodel.networks.operations.embedding import Embedding
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.loss import Loss
from perfmodel.networks.operations.maps import Dropout, Learned, Map, Pass, activation
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.sound import TAPS, Frames
from perfmodel.networks.value import Value, Weight

# Per cent of tokens that BERT predicts (1810.04805, section 3.1).
_MASKED = 15


def embedding(layer: Layer, first: SelfAttention, *, shared: bool = False) -> None:
    """Tables and their sum, a norm, dropout.

    `first` is the attention of the first block. With `shared`, another segment owns the main table.
    """
    network, setting = layer.network, layer.setting
    tables = [("positions", network.positions), ("types", network.token_types)]
    extras = tuple((name, rows) for name, rows in tables if rows)
    vocabulary = -(-network.vocabulary // layer.tensor)
    table = Embedding(
        "embedding", setting, layer.tokens, network.hidden, vocabulary, extras,
        shared=shared, distances=(first.relative_buckets, first.heads),
    )  # fmt: skip
    x = layer.joined(layer.one(table), "embedding")
    if network.embedding_norm:
        x = layer.norm("embedding norm", x)
    layer_embeddings(layer, x)
    if layer.drops:
        layer.one(Dropout("embedding dropout", setting, x))


def patch_embedding(layer: Layer, of: Patches) -> None:
    """Patches of pixels through a product; learned positions, a norm."""
    network, setting = layer.network, layer.setting
    pixels = layer.value("pixels", of.values)
    x = layer.one(Linear("patch embedding", setting, pixels, network.hidden, of.bias))
    learned = network.positions + of.extra
    if learned:
        x = layer.one(Learned("positions", setting, x, (learned, network.hidden)))
    if network.embedding_norm:
        layer.norm("embedding norm", x)


def sound_embedding(layer: Layer, of: Frames) -> None:
    """Frames through two convolutions, as products of their taps; learned positions."""
    setting, hidden, rows = layer.setting, layer.network.hidden, layer.tokens
    x = Value("frames", 2 * rows, TAPS * of.mels, setting.data)
    for i in (1, 2):
        y = layer.one(Linear(f"frames {i}", setting, x, hidden, bias=True))
        y = layer.one(activation(f"frames activation {i}", setting, y, "gelu", None))
        x = Value("frames side by side", rows, TAPS * hidden, y.dtype)
    layer.one(Learned("positions", setting, layer.x, (of.positions, hidden)))


def head(layer: Layer) -> None:
    """Final norm, logits and loss; or BERT's heads; or an encoder's projectors."""
    network, setting, x = layer.network, layer.setting, joined_streams(layer, layer.x)
    if network.final_norm:
        x = layer.norm("final norm", x)
    for i, projector in enumerate(
        each for part in network.projectors for each in [part] * part.repeat
    ):
        _project(layer, projector, x, f"projector {i + 1}" if i else "projector")
    if network.head == "none":
        return
    if network.head in ("pooler", "pretraining"):
        _pooler(layer, x)
    if network.head == "pooler":
        return
    if network.head == "pretraining":
        x = _transform(layer, x)
    if setting.logits == "last" and not setting.training:
        x = Value("last tokens", setting.batch, x.cols, x.dtype)
    logits = _logits(layer, x)
    if setting.training and setting.loss:
        layer.add(Loss("loss", setting, logits, network.hidden))


def _project(layer: Layer, projector: Projector, x: Value, name: str) -> None:
    """Groups of rows side by side, or their means, through products. Devices split the last two."""
    setting, group = layer.setting, projector.merge**2
    if not projector.norm_joined:
        x = _projector_norm(layer, projector, x, name)
    if projector.pooled:
        layer.add(Map(f"{name} mean", setting, (x,), (Pass("add", writes=0),)))
    cols = x.cols if projector.pooled else x.cols * group
    x = Value(f"{name} in", max(x.rows // group, 1), cols, x.dtype)
    if projector.norm_joined:
        x = _projector_norm(layer, projector, x, name)
    last = len(projector.widths) - 1
    for i, columns in enumerate(projector.widths):
        split = {last - 1: "out", last: "in"}.get(i, "") if last else ""
        if split == "out":
            columns = layer.share("columns of the projector", columns, layer.tensor, "tensor")
        label = f"{name} {i + 1}"
        x = layer.one(Linear(label, setting, x, columns, projector.bias, split=split))
        if projector.plain <= i < last:
            x = layer.one(activation(f"{label} act", setting, x, projector.activation, None))
    if last:
        layer.joined(x, name)


def _projector_norm(layer: Layer, projector: Projector, x: Value, name: str) -> Value:
    """The norm before the products, where there is one."""
    if projector.norm == "none":
        return x
    bias = projector.norm == "layernorm"
    return layer.one(Norm(f"{name} norm", layer.setting, x, projector.norm, bias))


def _pooler(layer: Layer, x: Value) -> None:
    """A dense layer over the first token of each sequence, its tanh, and BERT's second head."""
    setting = layer.setting
    first = Value("first tokens", setting.batch, x.cols, x.dtype)
    pool = layer.one(Linear("pooler", setting, first, x.cols, bias=True))
    pool = layer.one(activation("pooler activation", setting, pool, "tanh", None))
    if layer.network.head == "pretraining":
        layer.add(Linear("next sentence", setting, pool, 2, bias=True))


def _transform(layer: Layer, x: Value) -> Value:
    """BERT's dense layer before the logits, over all tokens or only the masked ones."""
    setting = layer.setting
    if setting.stack.masked_logits:
        x = Value("masked tokens", -(-x.rows * _MASKED // 100), x.cols, x.dtype)
    x = layer.one(Linear("transform", setting, x, layer.network.hidden, bias=True))
    x = layer.one(activation("transform activation", setting, x, "gelu", None))
    return layer.norm("transform norm", x)


def _logits(layer: Layer, x: Value) -> Value:
    """Products with the embedding's table, or with the head's own."""
    network, setting = layer.network, layer.setting
    x = layer.spread(x, "logits")
    vocabulary = -(-network.vocabulary // layer.tensor)
    shape = (network.hidden, vocabulary)
    table = Weight("head.weight", shape, "embedding", shared=network.tied)
    biased = network.head_bias or network.head == "pretraining"
    return layer.one(
        Linear(
            "logits",
            setting,
            x,
            vocabulary,
            biased,
            split="out",
            weight=table,
            dtype=setting.multiplied,
        )
    )
