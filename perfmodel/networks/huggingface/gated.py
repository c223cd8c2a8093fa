"""Families after Llama: RMS norms, rotary positions, gated inner layers, often experts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from perfmodel.errors import ProblemError
from perfmodel.networks.huggingface.config import (
    EXPERTS,
    HEADS,
    HIDDEN,
    INNER,
    KV_HEADS,
    LAYERS,
    Config,
)
from perfmodel.networks.network import Block, Latent, Mlp, Network, SelfAttention

SLIDING, CHUNKED = ("sliding_attention", "local", "sliding"), ("chunked_attention",)
_FULL = ("full_attention", "global", "full")


@dataclass(frozen=True)
class Base:
    """What layers of one network share."""

    hidden: int
    """Width of the residual stream."""
    layers: int
    """Layers."""
    attention: SelfAttention
    """Attention without a window."""
    mlp: Mlp
    """A dense inner layer."""


def base(
    config: Config,
    *,
    inner: Sequence[str] = INNER,
    latent: Latent | None = None,
    qkv_bias: bool = False,
    head_norm: bool = False,
    sinks: bool = False,
) -> Base:
    """Sizes that every family has; `inner` are the keys of a dense inner layer. The last three are
    facts of attention in families whose files do not say them."""
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    if latent is None:
        kv_heads, head_size = config.maybe(*KV_HEADS) or heads, config.maybe("head_dim")
    else:
        kv_heads, head_size = heads, latent.nope + latent.rope
        config.idle(*KV_HEADS, "head_dim")
    bias = config.flag("attention_bias")
    attention = SelfAttention(
        heads,
        kv_heads,
        head_size or shared_out(hidden, heads),
        qkv_bias=bias or qkv_bias,
        output_bias=bias,
        head_norm=head_norm,
        sinks=sinks,
        latent=latent,
    )
    activation = config.activation("hidden_activation", "hidden_act")
    mlp = Mlp(config.whole(*inner), activation=activation, bias=config.flag("mlp_bias"))
    return Base(hidden, layers, attention, mlp)


def shared_out(hidden: int, heads: int) -> int:
    """Width of a head where nothing else is said."""
    if not heads or hidden % heads:
        fits = [n for n in range(1, min(hidden, 4 * heads) + 1) if hidden % n == 0]
        raise ProblemError(
            f"width {hidden:,} does not divide by {heads} heads; give head_dim, or "
            f"heads of {', '.join(map(str, fits[-6:]))}"
        )
    return hidden // heads


def network(config: Config, blocks: Iterable[Block], hidden: int) -> Network:
    """The network of some layers, one after another."""
    return Network(
        "imported",
        hidden,
        config.whole("vocab_size"),
        runs(blocks),
        tied=config.flag("tie_word_embeddings"),
        dropout=config.share("resid_pdrop"),
    )


def runs(blocks: Iterable[Block]) -> tuple[Block, ...]:
    """Layers, equal neighbours as one block with how often it comes."""
    groups: list[Block] = []
    for block in blocks:
        if groups and replace(groups[-1], repeat=1) == block:
            groups[-1] = replace(block, repeat=groups[-1].repeat + 1)
        else:
            groups.append(block)
    return tuple(groups)


def windows(config: Config, of: Base, window: int, sliding: Iterable[bool]) -> list[SelfAttention]:
    """Attention by layer: `layer_types` where a file has them, else `sliding`."""
    types = config.listed("layer_types", str)
    if types is None:
        return [replace(of.attention, window=window if s else 0) for s in sliding]
    if len(types) != of.layers:
        raise ProblemError(f"layer_types has {len(types)} entries for {of.layers} layers")
    for kind in types:
        if kind not in (*SLIDING, *_FULL):
            raise ProblemError(
                f"layers of kind {kind} are none of attention that is known "
                f"({', '.join((*SLIDING, *_FULL))}); only transformers are read"
            )
    return [replace(of.attention, window=window if kind in SLIDING else 0) for kind in types]


def llama(config: Config) -> Network:
    """Llama 1 to 3, Mistral: every layer alike, a window where there is one."""
    body = base(config)
    window = config.maybe("sliding_window") or 0
    attention = windows(config, body, window, [bool(window)] * body.layers)
    return network(config, (Block(each, body.mlp) for each in attention), body.hidden)


def mixtral(config: Config) -> Network:
    """Experts in every layer."""
    body = base(config)
    mlp = replace(
        body.mlp, experts=config.whole(*EXPERTS), chosen=config.whole("num_experts_per_tok")
    )
    window = config.maybe("sliding_window") or 0
    blocks = (Block(replace(body.attention, window=window), mlp) for _ in range(body.layers))
    return network(config, blocks, body.hidden)


def qwen(
    config: Config,
    *,
    qkv_bias: bool = False,
    head_norm: bool = False,
    experts: bool = False,
    shared: bool = False,
) -> Network:
    """Qwen2 and Qwen3: a window that is mostly off; experts in some layers or all."""
    if experts and shared:
        qkv_bias = config.flag("qkv_bias")
    sparse = _sparse_layers(config) if experts else []
    all_sparse = experts and all(sparse)
    inner = ("moe_intermediate_size",) if all_sparse else INNER
    body = base(config, inner=inner, qkv_bias=qkv_bias, head_norm=head_norm)
    config.idle(*INNER, "sliding_window", "max_window_layers")
    sliding, window, first = config.flag("use_sliding_window"), 0, 0
    if sliding or "layer_types" in config.data:
        window = config.maybe("sliding_window") or 0
    if sliding and "layer_types" not in config.data:
        first = config.maybe("max_window_layers") or 0
    attention = windows(config, body, window, (sliding and i >= first for i in range(body.layers)))
    mlps = [body.mlp] * body.layers
    if any(sparse):
        expert = _expert(config, body, shared=shared)
        mlps = [expert if s else body.mlp for s in sparse]
    blocks = (Block(*pair) for pair in zip(attention, mlps, strict=True))
    return network(config, blocks, body.hidden)


def _sparse_layers(config: Config) -> list[bool]:
    """Whether each layer has experts: `mlp_only_layers` and `decoder_sparse_step` say."""
    step = config.maybe("decoder_sparse_step") or 1
    dense = config.listed("mlp_only_layers", int) or []
    return [i not in dense and (i + 1) % step == 0 for i in range(config.whole(*LAYERS))]


def _expert(config: Config, body: Base, *, shared: bool) -> Mlp:
    """An inner layer of experts, with one that every token goes to where `shared`."""
    return replace(
        body.mlp,
        inner=config.whole("moe_intermediate_size"),
        experts=config.whole(*EXPERTS),
        chosen=config.whole("num_experts_per_tok"),
        shared_inner=config.whole("shared_expert_intermediate_size") if shared else 0,
        shared_gate=shared,
    )


def deepseek(config: Config, *, router_bias: bool) -> Network:
    """DeepSeek-V2 and V3: latent attention; dense layers first, then experts and shared ones."""
    latent = Latent(
        kv_rank=config.whole("kv_lora_rank"),
        nope=config.whole("qk_nope_head_dim"),
        rope=config.whole("qk_rope_head_dim"),
        value=config.whole("v_head_dim"),
        q_rank=config.maybe("q_lora_rank") or 0,
    )
    inner = config.whole("moe_intermediate_size")
    first, step = config.maybe("first_k_dense_replace") or 0, config.maybe("moe_layer_freq") or 1
    dense = INNER if first or step > 1 else ("moe_intermediate_size",)
    config.idle(*INNER)
    body = base(config, inner=dense, latent=latent)
    sparse = replace(
        body.mlp,
        inner=inner,
        experts=config.whole(*EXPERTS),
        chosen=config.whole("num_experts_per_tok"),
        shared_inner=(config.maybe("n_shared_experts") or 0) * inner,
        router_bias=router_bias,
    )
    groups = config.maybe("n_group") or 0
    if groups > 1:
        limit = config.maybe("topk_group") or groups
        sparse = replace(sparse, groups=groups, chosen_groups=limit)
    config.left_out("num_nextn_predict_layers", "layers that predict further tokens are left out")
    blocks = (
        Block(body.attention, body.mlp if i < first or i % step else sparse)
        for i in range(body.layers)
    )
    return network(config, blocks, body.hidden)


def gpt_oss(config: Config) -> Network:
    """gpt-oss: windows in every other layer, sinks, biases in experts too."""
    body = base(config, sinks=True)
    window = config.whole("sliding_window")
    mlp = replace(
        body.mlp,
        bias=True,
        experts=config.whole(*EXPERTS),
        chosen=config.whole("num_experts_per_tok", "experts_per_token"),
        router_bias=True,
    )
    attention = windows(config, body, window, (i % 2 == 0 for i in range(body.layers)))
    return network(config, (Block(each, mlp) for each in attention), body.hidden)


def llama4(config: Config) -> Network:
    """Llama 4: chunks and rotary positions in most layers; experts in all or every other one."""
    dense = "intermediate_size_mlp"
    layers = config.whole(*LAYERS)
    sparse = config.listed("moe_layers", int)
    if sparse is None:
        step = config.maybe("interleave_moe_layer_step") or 1
        sparse = list(range(step - 1, layers, step))
    config.idle(dense, "interleave_moe_layer_step", "no_rope_layer_interval")
    inner = config.whole("intermediate_size")
    all_sparse = set(range(layers)) <= set(sparse)
    body = base(config, inner=("intermediate_size" if all_sparse else dense,))
    chunk = config.maybe("attention_chunk_size") or 0
    rotary = config.listed("no_rope_layers", int)
    if not rotary:
        period = config.maybe("no_rope_layer_interval") or 4
        rotary = [int((i + 1) % period != 0) for i in range(layers)]
    config.listed("layer_types", str)  # says again what no_rope_layers says
    mlp = replace(
        body.mlp,
        inner=inner,
        experts=config.whole(*EXPERTS),
        chosen=config.whole("num_experts_per_tok"),
        shared_inner=inner,
    )
    config.left_out("use_qk_norm", "a norm of queries and keys without weights is left out")
    attention = (
        replace(body.attention, rotary=bool(flag), chunk=chunk if flag else 0)
        for flag in rotary[: body.layers]
    )
    blocks = (Block(layer, mlp if i in sparse else body.mlp) for i, layer in enumerate(attention))
    return network(config, blocks, body.hidden)


def gemma(config: Config, *, head_norm: bool, pattern: int) -> Network:
    """Gemma 2 and 3: gated gelu, norms around each part, windows in all but every n-th layer."""
    body = base(config, head_norm=head_norm)
    if config.flag("use_bidirectional_attention"):
        body = replace(body, attention=replace(body.attention, causal=False))
    window = config.whole("sliding_window")
    period = config.maybe("sliding_window_pattern", "_sliding_window_pattern") or pattern
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        config.left_out(key, "a soft cap is left out")
    attention = windows(config, body, window, ((i + 1) % period != 0 for i in range(body.layers)))
    blocks = (Block(each, body.mlp, sandwich=True) for each in attention)
    return network(config, blocks, body.hidden)
