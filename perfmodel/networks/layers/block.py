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
        _side_by_side(layer, of)
        return
    x = layer.x
    parts = ("attention", "mlp") if of.cross is None else ("attention", "cross", "mlp")
    for number, part in enumerate(parts, 1):
        x = _part(layer, of, x, part, number)


def _side_by_side(layer: Layer, of: Block) -> None:
    """Attention and inner layer on the same input, added together (PaLM, Falcon)."""
    read = layer.norm("norm", layer.x)
    beside = layer.norm("norm of mlp", layer.x) if of.own_norm else read
    attended = attention(layer, of.attention, read, "attention")
    x = layer.residual("residual 1", attended, layer.x)
    layer.residual("residual 2", inner(layer, of.mlp, beside), x)


def _part(layer: Layer, of: Block, x: Value, part: str, number: int) -> Value:
    """One part, its norm and its residual."""
    read = x if of.norm_after else layer.norm(f"norm {number}", x)
    if part == "attention":
        made = attention(layer, of.attention, read, "attention")
    elif part == "cross" and of.cross is not None:
        made = attention(layer, of.cross, read, "cross attention", cross=True)
    else:
        made = inner(layer, of.mlp, read)
    if of.sandwich:
        made = layer.norm(f"norm behind {number}", made)
    y = layer.residual(f"residual {number}", made, x)
    return layer.norm(f"norm {number}", y) if of.norm_after else y
