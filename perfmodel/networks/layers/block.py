"""A block: attention, optional cross-attention, and the inner layer."""

from __future__ import annotations

from perfmodel.networks.layers.attention import attention
from perfmodel.networks.layers.inner import inner
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.network import Block
from perfmodel.networks.value import Value


def block(layer: Layer, of: Block) -> None:
    """Add attention and the inner layer, in sequence or, in a parallel block, side by side."""
    if of.parallel:
        _parallel_block(layer, of)
        return
    x = layer.x
    parts = ("attention", "mlp") if of.cross is None else ("attention", "cross", "mlp")
    for number, part in enumerate(parts, 1):
        x = _part(layer, of, x, part, number)


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
    y = layer.residual(f"residual {number}", output, x)
    return layer.norm(f"norm {number}", y) if block.norm_after else y
