"""The attention part of a layer: projections, positions, cached and exchanged keys, output."""

from __future__ import annotations

from dataclasses import replace

from perfmodel.networks.layers.layer import Layer
from perfmodel.networks.layers.states import gated, states
from perfmodel.networks.network import Indexer, Latent, SelfAttention
from perfmodel.networks.operations.attention import FusedAttention, KeyChoice, UnfusedAttention
from perfmodel.networks.operations.exchange import Exchange
from perfmodel.networks.operations.linear import Linear
from perfmodel.networks.operations.maps import Map, Pass, Repeat, Rotary
from perfmodel.networks.operations.norm import Norm
from perfmodel.networks.setting import Setting
from perfmodel.networks.value import Value

ALONE = "q projection alone"
"""The product of a layer that borrows keys and values."""
_Group = tuple[Value, ...]
"""One tensor, or several side by side."""


def attention(
    layer: Layer, of: SelfAttention, x: Value, name: str, *, cross: bool = False
) -> Value:
    """Attention over x; with `cross`, queries of x over the encoder's output."""
    if of.state is not None:
        return states(layer, of, of.state, x, name)
    setting, tensor = layer.setting, layer.tensor
    x = layer.spread(x, name)
    heads = layer.share("heads", of.heads, tensor, "tensor")
    # Fewer key-value heads than devices: each device has a copy of one.
    replicas = of.kv_heads % tensor and tensor % of.kv_heads == 0
    kv_heads = 1 if replicas else layer.share("kv_heads", of.kv_heads, tensor, "tensor")
    if of.latent is not None:
        q, k, v = _latent(layer, of, of.latent, x, heads, name)
    else:
        q, k, v = _projections(layer, of, x, heads, kv_heads, name, cross=cross)
    seq = layer.share("tokens of a sequence", setting.seq, setting.shards.context, "context")
    past = 0 if cross else setting.past
    keys, attn = past + (_encoded(layer) if cross else seq), of
    if setting.shards.context > 1:
        keys = _keys_seen(of, setting.seq)
        attn = replace(of, causal=False)
        k = _ring_group(layer, k, keys, f"{name} k")
        v = _ring_group(layer, v, keys, f"{name} v")
    if past:
        k = (_cache(setting, f"{name} past k", kv_heads * of.score_width), *k)
        v = (_cache(setting, f"{name} past v", kv_heads * of.value_width), *v)
    kind = FusedAttention if setting.fused_attention else UnfusedAttention
    context = layer.one(
        kind(
            name,
            setting,
            attn,
            q,
            k,
            v,
            setting.batch,
            heads,
            kv_heads,
            seq,
            keys,
            layer.drops,
            layer.network.norm == "rmsnorm",
        )
    )
    if of.gated:
        columns = heads * of.value_width
        gate = layer.one(Linear(f"{name} gate", setting, x, columns, of.qkv_bias, split="out"))
        context = gated(layer, context, gate, f"{name} gating")
    hidden = layer.network.hidden
    output = Linear(f"{name} output", setting, context, hidden, of.output_bias, split="in")
    return layer.joined(layer.one(output), name)


def _encoded(layer: Layer) -> int:
    """Rows of the encoder's output of each sequence."""
    frames = layer.network.frames
    return layer.setting.seq if frames is None else frames.positions


def _cache(setting: Setting, name: str, cols: int) -> Value:
    """Cached keys or values of all sequences, for the tokens before this pass."""
    return Value(name, setting.batch * setting.past, cols, setting.data)


def _keys_seen(attn: SelfAttention, seq: int) -> int:
    """Keys that a query sees when a sequence is split over devices.

    All of them; on average half of them where a causal mask is balanced among the devices (zigzag
    or stripes); those of the window where there is one.
    """
    reach = attn.window or attn.chunk
    if 0 < reach < seq:
        return reach
    return -(-seq // 2) if attn.causal else seq


def _ring_group(layer: Layer, group: _Group, keys: int, name: str) -> _Group:
    """Keys or values of all devices of a ring (2310.01889), as each device receives them in
    turn."""
    setting = layer.setting
    ranks, rows = setting.shards.context, setting.batch * keys
    return tuple(
        layer.one(Exchange(f"{name} {i}", setting, x, "circulate", "context", ranks, rows))
        for i, x in enumerate(group)
    )


def _projections(
    layer: Layer, attn: SelfAttention, x: Value, heads: int, groups: int, name: str, *, cross: bool
) -> tuple[_Group, _Group, _Group]:
    """Queries, keys and values, by one product or three; normalised and rotated."""
    setting, width = layer.setting, attn.head_size
    rows = setting.batch * _encoded(layer) if cross else x.rows
    q = layer.value(f"{name} q", heads * width)
    k, v = (
        replace(layer.value(f"{name} {part}", groups * cols), rows=rows if cross else layer.tokens)
        for part, cols in (("k", width), ("v", attn.value_width))
    )
    bias = attn.qkv_bias
    if attn.borrowed:
        return (_borrowing(layer, attn, x, q, name),), (k,), (v,)
    apart = (q, k) if attn.shared_values else (q, k, v)
    v = k if attn.shared_values else v
    if (attn.joined or setting.stack.joined_products) and not cross:
        columns = sum(y.cols for y in apart)
        layer.add(Linear(f"{name} qkv", setting, x, columns, bias, to=apart, split="out"))
    else:
        source = Value("encoded", rows, x.cols, x.dtype) if cross else x
        for part, y in zip("qkv", apart, strict=False):
            operand = x if part == "q" else source
            label, biased = (
                f"{name} {part} projection",
                bias and not (part == "k" and attn.plain_keys),
            )
            layer.add(Linear(label, setting, operand, y.cols, biased, to=(y,), split="out"))
    if attn.head_norm:
        q, k = (
            _head_norm(layer, tensor, width, f"{name} {p} norm")
            for p, tensor in zip("qk", (q, k), strict=True)
        )
    if attn.rotary:
        q, k = layer.add(Rotary(f"{name} rotary", setting, q, k))
    return (q,), (k,), (v,)


def _borrowing(layer: Layer, attn: SelfAttention, x: Value, q: Value, name: str) -> Value:
    """Queries alone, where an earlier layer has keys and values."""
    q = layer.one(
        Linear(f"{name} {ALONE}", layer.setting, x, q.cols, attn.qkv_bias, to=(q,), split="out")
    )
    if attn.head_norm:
        q = _head_norm(layer, q, attn.head_size, f"{name} q norm")
    if attn.rotary:
        q = layer.one(Map(f"{name} rotary", layer.setting, (q,), (Pass("rotary"),)))
    return q


def _head_norm(layer: Layer, x: Value, width: int, name: str) -> Value:
    """An RMS norm of each head of queries or keys."""
    by_head = Value(x.name, x.rows * (x.cols // width), width, x.dtype)
    y = layer.one(Norm(name, layer.setting, by_head, "rmsnorm"))
    return replace(x, name=y.name)


def _latent(
    layer: Layer, attn: SelfAttention, dims: Latent, x: Value, heads: int, name: str
) -> tuple[_Group, _Group, _Group]:
    """Queries, keys and values through low-rank latents; rotary positions on separate columns."""
    setting = layer.setting
    q_nope = layer.value(f"{name} q nope", heads * dims.nope)
    q_rope = layer.value(f"{name} q rope", heads * dims.rope)
    latent = layer.value(f"{name} latent", dims.kv_rank)
    k_rope = layer.value(f"{name} k rope", dims.rope)
    source, down = x, dims.kv_rank + dims.rope
    if dims.q_rank and setting.stack.joined_latents:
        source = layer.value(f"{name} q latent", dims.q_rank)
        outputs = (source, latent, k_rope)
        product = Linear(f"{name} down", setting, x, dims.q_rank + down, attn.qkv_bias, to=outputs)
        layer.add(product)
    else:
        if dims.q_rank:
            source = layer.one(Linear(f"{name} q down", setting, x, dims.q_rank, attn.qkv_bias))
        layer.add(Linear(f"{name} kv down", setting, x, down, attn.qkv_bias, to=(latent, k_rope)))
    if dims.q_rank:
        source = layer.norm(f"{name} q norm", source)
    if attn.indexer is not None:
        _index(layer, attn.indexer, x, source, name)
    up = heads * (dims.nope + dims.rope)
    layer.add(Linear(f"{name} q up", setting, source, up, to=(q_nope, q_rope), split="out"))
    latent = layer.norm(f"{name} kv norm", latent)
    k_nope = layer.value(f"{name} k nope", heads * dims.nope)
    v = layer.value(f"{name} v", heads * dims.value)
    up = heads * (dims.nope + dims.value)
    layer.add(Linear(f"{name} kv up", setting, latent, up, to=(k_nope, v), split="out"))
    q_rope, k_rope = layer.add(Rotary(f"{name} rotary", setting, q_rope, k_rope))
    spread = layer.one(Repeat(f"{name} k rope of all heads", setting, k_rope, heads))
    return (q_nope, q_rope), (k_nope, spread), (v,)


def _index(layer: Layer, indexer: Indexer, x: Value, latent: Value, name: str) -> None:
    """The indexer: queries of the latent, one key and a weight a head of x, and the choice of keys.
    Every device of `tensor` runs all of it."""
    setting, columns = layer.setting, indexer.heads * indexer.size
    layer.add(Linear(f"{name} indexer q", setting, latent, columns))
    key = layer.value(f"{name} indexer key", indexer.size)
    weights = layer.value(f"{name} indexer weights", indexer.heads)
    columns = indexer.size + indexer.heads
    layer.add(Linear(f"{name} indexer k", setting, x, columns, to=(key, weights)))
    layer.add(Norm(f"{name} indexer norm", setting, key, "layernorm", bias=True))
    layer.add(KeyChoice(f"{name} choice", setting, indexer))
