"""The layers before and after the blocks: embeddings, norms, heads, the loss."""

from __future__ import annotations

from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.network import SelfAttention
from perfmodel.networks.operations.embedding import Embedding
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.loss import Loss
from perfmodel.networks.operations.maps import Dropout, activation
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
    if layer.drops:
        layer.one(Dropout("embedding dropout", setting, x))


def head(layer: Layer) -> None:
    """Final norm, logits and loss; or BERT's heads."""
    network, setting, x = layer.network, layer.setting, layer.x
    if network.final_norm:
        x = layer.norm("final norm", x)
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
