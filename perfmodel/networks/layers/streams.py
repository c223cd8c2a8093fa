"""What Gemma 3n has beside attention and inner layer: an embedding of each layer, several residual
streams (AltUp), a low-rank path (LAuReL). Source: transformers 5.24, modeling_gemma3n.py."""

from __future__ import annotations

from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.operations.embedding import Embedding
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Learned, Map, Pass, activation
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.value import Value, Weight


def layer_embeddings(layer: Layer, x: Value) -> None:
    """Before the layers: a row of every layer's table and a product of the embedding, summed; and
    a product for each further stream."""
    network, setting = layer.network, layer.setting
    width = network.layers * network.layer_embedding
    if width:
        rows = -(-network.layer_vocabulary // layer.tensor)
        table = Embedding("layer embedding", setting, layer.tokens, width, rows)
        tables = layer.joined(layer.one(table), "layer embedding")
        product = layer.one(Linear("layer embedding product", setting, x, width))
        parts = Value(product.name, x.rows * network.layers, network.layer_embedding, product.dtype)
        normed = layer.one(Norm("layer embedding norm", setting, parts, network.norm))
        layer.added("layer embedding sum", Value(normed.name, x.rows, width, x.dtype), tables)
    for i in range(1, network.streams):
        layer.add(Linear(f"stream {i}", setting, x, network.hidden))


def joined_streams(layer: Layer, x: Value) -> Value:
    """After the layers: a product for each further stream, and the mean of all."""
    setting, streams = layer.setting, layer.network.streams
    if streams == 1:
        return x
    outputs = [layer.one(Linear(f"stream {i} out", setting, x, x.cols)) for i in range(1, streams)]
    return layer.one(Map("stream mean", setting, (x, *outputs), (Pass("add", reads=streams),)))


def predicted_stream(layer: Layer, x: Value) -> Value:
    """The stream that the layer works on, of all streams mixed by coefficients of each token."""
    if layer.network.streams > 1:
        _mix(layer, x, "stream prediction", layer.network.streams**2, shared=False)
    return x


def corrected_streams(layer: Layer, x: Value) -> Value:
    """All streams, moved by what the layer changed; then the embedding of the layer, added."""
    network, setting = layer.network, layer.setting
    if network.streams > 1:
        _mix(layer, x, "stream correction", network.streams, shared=True)
        x = layer.one(Learned("stream scale", setting, x, (1, x.cols)))
    if not network.layer_embedding:
        return x
    width = network.layer_embedding
    gate = layer.one(Linear("layer embedding gate", setting, x, width))
    rows = layer.value("layer embedding rows", width)
    name = "layer embedding activation"
    gated = layer.one(activation(name, setting, rows, layer.network.blocks[0].mlp.activation, gate))
    output = layer.one(Linear("layer embedding out", setting, gated, network.hidden))
    output = layer.norm("layer embedding norm", output)
    further = max(network.streams - 1, 1)
    streams = (Value(f"{x.name} further", x.rows * further, x.cols, x.dtype), output)
    layer.add(Map("layer embedding add", setting, streams, (Pass("add", reads=2),)))
    return x


def low_rank(layer: Layer, source: Value, x: Value, rank: int) -> Value:
    """Two products of attention's input through a low rank, a norm, and their sums with x."""
    setting = layer.setting
    down = layer.one(Linear("low rank down", setting, source, rank))
    up = layer.one(Linear("low rank up", setting, down, layer.network.hidden))
    path = layer.added("low rank residual", source, layer.norm("low rank norm", up))
    return layer.added("low rank sum", x, path)


def _mix(layer: Layer, x: Value, name: str, coefficients: int, *, shared: bool) -> None:
    """A norm, the router's product and tanh, a product for the coefficients, and the streams scaled
    and added; norm and router of a layer are used twice (`shared`)."""
    setting, streams = layer.setting, layer.network.streams
    if shared:
        normed = layer.one(Map(f"{name} norm", setting, (x,), (Pass("mul_scalar"),)))
    else:
        normed = layer.norm(f"{name} norm", x)
    weight = Weight(f"{name} router.weight", (x.cols, streams), shared=shared)
    routed = layer.one(Linear(f"{name} router", setting, normed, streams, weight=weight))
    routed = layer.one(Map(f"{name} tanh", setting, (routed,), (Pass("tanh"),)))
    layer.add(Linear(f"{name} coefficients", setting, routed, coefficients))
    every = Value(f"{name} streams", x.rows * streams, x.cols, x.dtype)
    layer.add(Map(name, setting, (every,), (Pass("mul_scalar"), Pass("add", reads=2))))
