"""The mixer of a layer with a state of fixed size: projections, convolution, state, gate, norm."""

from __future__ import annotations

from perfmodel.errors import ProblemError
from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.network import SelfAttention, State
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Map, Pass, activation
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.operations.states import Convolution, Scan
from perfmodel.networks.value import Value


def states(layer: Layer, of: SelfAttention, state: State, x: Value, name: str) -> Value:
    """Add the mixer over x. Raises `ProblemError` for tokens that are split over devices."""
    if layer.setting.shards.context > 1:
        raise ProblemError("a state passes from token to token; give context 1")
    x = layer.spread(x, name)
    heads = layer.share("heads", of.heads, layer.tensor, "tensor")
    replicas = of.kv_heads % layer.tensor and layer.tensor % of.kv_heads == 0
    key_heads = 1 if replicas else layer.share("kv_heads", of.kv_heads, layer.tensor, "tensor")
    width = heads * of.head_size
    gate = layer.value(f"{name} gate", width) if state.gated else None
    if state.selective:
        operands = _selective(layer, of, state, x, gate, width, name)
    else:
        operands = _projected(layer, of, state, x, gate, key_heads, heads, name)
    y = layer.one(
        Scan(f"{name} state", layer.setting, state, operands, heads, key_heads, of.head_size)
    )
    y = _normed(layer, state, y, of.head_size, name)
    if gate is not None:
        y = layer.one(activation(f"{name} gating", layer.setting, y, "silu", gate))
    output = Linear(
        f"{name} output", layer.setting, y, layer.network.hidden, of.output_bias, split="in"
    )
    return layer.joined(layer.one(output), name)


def _projected(
    layer: Layer, mixer: SelfAttention, state: State, x: Value, gate: Value | None, key_heads: int,
    heads: int, name: str,
) -> tuple[Value, ...]:  # fmt: skip
    """Queries, keys and values, convolved; the gate and the decays beside them."""
    setting = layer.setting
    keys = key_heads * state.key_size
    mixed = [layer.value(f"{name} {part} in", keys) for part in "qk"]
    mixed.append(layer.value(f"{name} v in", heads * mixer.head_size))
    outputs = list(mixed)
    if gate is not None and not state.rank:
        outputs.append(gate)
    if state.decays:
        outputs.append(layer.value(f"{name} decays", state.decays * heads))
    columns, group = sum(y.cols for y in outputs), tuple(outputs)
    layer.add(Linear(f"{name} in", setting, x, columns, mixer.qkv_bias, to=group, split="out"))
    if state.rank:
        low = [layer.value(f"{name} {part} rank", state.rank) for part in ("gate", "decay")]
        layer.add(Linear(f"{name} ranks", setting, x, 2 * state.rank, to=tuple(low)))
        if gate is not None:
            layer.add(
                Linear(f"{name} gate up", setting, low[0], gate.cols, to=(gate,), split="out")
            )
        layer.add(Linear(f"{name} decay up", setting, low[1], heads * state.key_size, split="out"))
    if not state.taps:
        return tuple(mixed)
    convolved = tuple(
        layer.value(f"{name} {part}", y.cols) for part, y in zip("qkv", mixed, strict=True)
    )
    layer.add(Convolution(f"{name} taps", setting, state, tuple(mixed), convolved))
    return convolved


def _selective(
    layer: Layer, mixer: SelfAttention, state: State, x: Value, gate: Value | None, width: int,
    name: str,
) -> tuple[Value, ...]:  # fmt: skip
    """What a selective scan reads: queries (C), keys (B), the convolved input, and time steps."""
    setting = layer.setting
    inside = layer.value(f"{name} x in", width)
    outputs = (inside,) if gate is None else (inside, gate)
    columns = sum(y.cols for y in outputs)
    layer.add(Linear(f"{name} in", setting, x, columns, mixer.qkv_bias, to=outputs, split="out"))
    convolved = layer.value(f"{name} x", width)
    layer.add(Convolution(f"{name} taps", setting, state, (inside,), (convolved,)))
    b, c = (layer.value(f"{name} {part}", state.key_size) for part in "bc")
    low = layer.value(f"{name} step rank", state.selective)
    columns = state.selective + 2 * state.key_size
    layer.add(Linear(f"{name} steps", setting, convolved, columns, to=(low, b, c), split="in"))
    steps = layer.one(Linear(f"{name} step up", setting, low, width, bias=True, split="out"))
    return c, b, convolved, steps


def _normed(layer: Layer, state: State, y: Value, width: int, name: str) -> Value:
    """The output normed over all heads, over each, or as it is."""
    if state.norm == "none":
        return y
    cols = width if state.norm == "head" else y.cols
    rows = Value(y.name, y.rows * (y.cols // cols), cols, y.dtype)
    normed = layer.one(Norm(f"{name} state norm", layer.setting, rows, "rmsnorm"))
    return Value(normed.name, y.rows, y.cols, y.dtype)


def gated(layer: Layer, x: Value, gate: Value, name: str) -> Value:
    """An output scaled by the sigmoid of a gate."""
    passes = (Pass("sigmoid"), Pass("mul", reads=2))
    return layer.one(Map(name, layer.setting, (gate, x), passes))
