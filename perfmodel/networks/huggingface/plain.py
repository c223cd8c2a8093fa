"""Older families: layer norms, learned positions or slopes, biases; and encoder-decoders."""

from __future__ import annotations

from perfmodel.errors import ProblemError
from perfmodel.networks.huggingface.config import HEADS, HIDDEN, INNER, LAYERS, Config, known
from perfmodel.networks.huggingface.gated import runs, shared_out
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention

_ALIBI = "slopes by distance, which have no weights, are left out"
_CROSS = "attention to an encoder is left out"


def bert(config: Config) -> Network:
    """BERT: an encoder, norms behind the sums."""
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    if config.word("position_embedding_type") not in ("", "absolute"):
        config.notes.append("position_embedding_type: positions are taken as learned ones")
    config.left_out("add_cross_attention", _CROSS)
    attention = SelfAttention(
        heads, heads, shared_out(hidden, heads), causal=config.flag("is_decoder"),
        qkv_bias=True, output_bias=True, rotary=False,
    )  # fmt: skip
    mlp = _mlp(config, hidden, config.activation("hidden_act"))
    pretraining = "BertForPreTraining" in (config.listed("architectures", str) or [])
    if not pretraining:
        config.notes.append("taken with the pooler; the heads of pre-training: BertForPreTraining")
    return Network(
        "imported", hidden, config.whole("vocab_size"),
        (Block(attention, mlp, layers, norm_after=True),),
        norm="layernorm", norm_bias=True, positions=config.whole("max_position_embeddings"),
        token_types=config.whole("type_vocab_size"), embedding_norm=True, final_norm=False,
        tied=config.flag("tie_word_embeddings"),
        head="pretraining" if pretraining else "pooler", head_bias=pretraining,
        dropout=config.share("hidden_dropout_prob"),
    )  # fmt: skip


def gpt2(config: Config) -> Network:
    """GPT-2: one product for queries, keys and values."""
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    config.left_out("add_cross_attention", _CROSS)
    attention = SelfAttention(
        heads, heads, shared_out(hidden, heads),
        qkv_bias=True, output_bias=True, rotary=False, joined=True,
    )  # fmt: skip
    mlp = _mlp(config, hidden, config.activation("activation_function"))
    return Network(
        "imported", hidden, config.whole("vocab_size"), (Block(attention, mlp, layers),),
        norm="layernorm", norm_bias=True,
        positions=config.whole("n_positions", "n_ctx", "max_position_embeddings"),
        tied=config.flag("tie_word_embeddings"), dropout=config.share("resid_pdrop"),
    )  # fmt: skip


def gptj(config: Config) -> Network:
    """GPT-J: attention and inner layer side by side behind one norm; biases in the latter."""
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    attention = SelfAttention(heads, heads, shared_out(hidden, heads))
    mlp = _mlp(config, hidden, config.activation("activation_function"))
    return Network(
        "imported", hidden, config.whole("vocab_size"),
        (Block(attention, mlp, layers, parallel=True),), norm="layernorm", norm_bias=True,
        tied=config.flag("tie_word_embeddings"), head_bias=True,
        dropout=config.share("resid_pdrop"),
    )  # fmt: skip


def opt(config: Config) -> Network:
    """OPT: two positions more than tokens."""
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    if (config.maybe("word_embed_proj_dim") or hidden) != hidden:
        raise ProblemError(
            "word_embed_proj_dim differs from the width (OPT-350M); embeddings of another width "
            "are not described"
        )
    bias = config.flag("enable_bias")
    affine = config.flag("layer_norm_elementwise_affine")
    if not affine:
        config.notes.append("layer_norm_elementwise_affine: norms are taken with weights")
    attention = SelfAttention(
        heads, heads, shared_out(hidden, heads),
        qkv_bias=bias, output_bias=bias, rotary=False,
    )  # fmt: skip
    config.idle("activation_dropout")
    mlp = _mlp(config, hidden, config.activation("activation_function"), bias)
    norm_first = config.flag("do_layer_norm_before")
    return Network(
        "imported", hidden, config.whole("vocab_size"),
        (Block(attention, mlp, layers, norm_after=not norm_first),), norm="layernorm",
        norm_bias=True, positions=config.whole("max_position_embeddings") + 2,
        final_norm=norm_first and not config.flag("_remove_final_layer_norm"),
        tied=config.flag("tie_word_embeddings"), dropout=config.share("dropout"),
    )  # fmt: skip


def mpt(config: Config) -> Network:
    """MPT: biases unless `no_bias`, learned positions unless slopes (`alibi`)."""
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    bias = not config.flag("no_bias")
    attn = config.nested("attn_config")
    alibi = attn.flag("alibi")
    if alibi:
        config.notes.append(f"alibi: {_ALIBI}")
    multiquery = attn.word("attn_type") == "multiquery_attention"
    kv_heads = 1 if multiquery else attn.maybe("kv_n_heads") or heads
    for key in ("qk_ln", "clip_qkv"):
        attn.left_out(key, "is left out")
    attention = SelfAttention(
        heads, kv_heads, shared_out(hidden, heads),
        qkv_bias=bias, output_bias=bias, rotary=attn.flag("rope"), joined=True,
    )  # fmt: skip
    mlp = Mlp(config.whole("expansion_ratio") * hidden, False, "gelu", bias)
    learned = not alibi and not attention.rotary and config.flag("learned_pos_emb")
    config.idle("learned_pos_emb", "emb_pdrop", "norm_type", "name", "max_seq_len")
    return Network(
        "imported", hidden, config.whole("vocab_size"), (Block(attention, mlp, layers),),
        norm="layernorm", norm_bias=bias,
        positions=config.whole("max_seq_len") if learned else 0,
        tied=config.flag("tie_word_embeddings"), dropout=config.share("resid_pdrop"),
    )  # fmt: skip


def falcon(config: Config) -> Network:
    """Falcon: one head of keys, or several in its newer form; parts side by side.

    Files of 2023 (RefinedWeb) say the newer form by `n_head_kv` alone.
    """
    hidden, layers, heads = (config.whole(*keys) for keys in (HIDDEN, LAYERS, HEADS))
    newer = config.flag("new_decoder_architecture") or (
        "new_decoder_architecture" not in config.data and bool(config.data.get("n_head_kv"))
    )
    multiquery = not newer and config.flag("multi_query")
    kv_heads = config.maybe("num_kv_heads", "n_head_kv", "num_key_value_heads")
    norms = config.maybe("num_ln_in_parallel_attn") or (2 if newer else 1)
    parallel = newer or config.flag("parallel_attn")
    config.idle("multi_query", "parallel_attn")
    bias, alibi = config.flag("bias"), config.flag("alibi")
    if alibi:
        config.notes.append(f"alibi: {_ALIBI}")
    attention = SelfAttention(
        heads, 1 if multiquery else (kv_heads or heads) if newer else heads,
        shared_out(hidden, heads),
        qkv_bias=bias, output_bias=bias, rotary=not alibi, joined=True,
    )  # fmt: skip
    mlp = _mlp(config, hidden, config.activation("activation"), bias)
    block = Block(attention, mlp, layers, parallel=parallel, own_norm=parallel and norms == 2)
    return Network(
        "imported", hidden, config.whole("vocab_size"), (block,), norm="layernorm",
        norm_bias=True, tied=config.flag("tie_word_embeddings"),
        dropout=config.share("hidden_dropout"),
    )  # fmt: skip


def t5(config: Config, *, experts: bool = False) -> Network:
    """T5, and Switch with experts in every n-th layer; both have an encoder."""
    hidden, heads = config.whole(*HIDDEN), config.whole(*HEADS)
    layers = config.whole("num_layers", "num_hidden_layers")
    size, inner = config.whole("d_kv"), config.whole("d_ff")
    name = config.word("dense_act_fn" if experts else "feed_forward_proj")
    config.idle("dense_act_fn", "feed_forward_proj", "is_gated_act")
    gated = name.startswith("gated-")
    activation = "gelu_new" if name == "gated-gelu" else known(name.removeprefix("gated-"))
    mlp = Mlp(inner, gated, activation)
    buckets = config.whole("relative_attention_num_buckets")
    decoder = config.maybe("num_decoder_layers") or layers
    stacks = []
    for count, causal in ((layers, False), (decoder, True)):
        attention = SelfAttention(
            heads, heads, size, causal=causal, rotary=False, relative_buckets=buckets
        )
        cross = SelfAttention(heads, heads, size, causal=False, rotary=False) if causal else None
        step = _step(config, "decoder" if causal else "encoder", count) if experts else 0
        sparse = [step == 1 or (step > 1 and i % step == 1) for i in range(count)]
        mlps = (_switch(config, mlp) if s else mlp for s in sparse)
        stacks.append(runs(Block(attention, each, cross=cross) for each in mlps))
    return Network(
        "imported", hidden, config.whole("vocab_size"), stacks[1], encoder=stacks[0],
        tied=config.flag("tie_word_embeddings"), dropout=config.share("dropout_rate"),
    )  # fmt: skip


def _switch(config: Config, mlp: Mlp) -> Mlp:
    """An inner layer of experts, of which a token goes to one."""
    config.idle("expert_capacity", "decoder_sparse_step", "encoder_sparse_step", "add_router_probs")
    return Mlp(
        mlp.inner, mlp.gated, mlp.activation, experts=config.whole("num_experts"), chosen=1,
        router_bias=config.flag("router_bias"),
    )  # fmt: skip


def _step(config: Config, stack: str, layers: int) -> int:
    """Every how many layers of a stack one has experts; its own key overrules their number."""
    sparse, step = f"num_sparse_{stack}_layers", config.maybe(f"{stack}_sparse_step")
    if step is None:
        number = config.whole(sparse)
        step = max(layers // number, 1) if number else 0
    config.idle(sparse)
    return step


def _mlp(config: Config, hidden: int, activation: str, bias: bool = True) -> Mlp:
    """Two products; four times as wide as the model unless the file says otherwise."""
    return Mlp(config.maybe(*INNER) or 4 * hidden, False, activation, bias)
