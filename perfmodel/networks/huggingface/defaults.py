"""What a config.json means by leaving a key out: the defaults of transformers' config classes.

Source: the `configuration_*.py` of transformers 5.24, by `model_type`; RefinedWeb and
RefinedWebModel: `configuration_RW.py` beside the files of 2023. Keys whose default is null, false
or 0 are absent: null means that the size follows from others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_GATED = {"hidden_act": "silu"}
_QWEN = {**_GATED, "vocab_size": 151936, "sliding_window": 4096, "max_window_layers": 28}
_QWEN_7B = {
    "hidden_size": 4096, "intermediate_size": 22016, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32,
}  # fmt: skip
_QWEN2_VL = {
    **_QWEN, "vocab_size": 152064, "hidden_size": 8192, "intermediate_size": 29568,
    "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8,
    "max_window_layers": 80,
}  # fmt: skip
_MISTRAL = {
    **_GATED, "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
}  # fmt: skip
_GEMMA = {
    "hidden_size": 2304, "intermediate_size": 9216, "num_hidden_layers": 26,
    "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "hidden_activation": "gelu_pytorch_tanh", "tie_word_embeddings": True, "sliding_window": 4096,
}  # fmt: skip
_LATENT = {
    **_GATED, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64, "v_head_dim": 128,
}  # fmt: skip
_T5 = {
    "vocab_size": 32128, "d_kv": 64, "d_ff": 2048, "relative_attention_num_buckets": 32,
    "dropout_rate": 0.1, "tie_word_embeddings": True,
}  # fmt: skip
_REFINED_WEB = {"activation": "gelu", "tie_word_embeddings": True}

DEFAULTS: Mapping[str, Mapping[str, Any]] = {
    "bert": {
        "vocab_size": 30522, "hidden_size": 768, "num_hidden_layers": 12,
        "num_attention_heads": 12, "intermediate_size": 3072, "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1, "max_position_embeddings": 512, "type_vocab_size": 2,
        "tie_word_embeddings": True,
    },
    "gpt2": {
        "vocab_size": 50257, "n_positions": 1024, "n_embd": 768, "n_layer": 12, "n_head": 12,
        "activation_function": "gelu_new", "resid_pdrop": 0.1, "tie_word_embeddings": True,
    },
    "gptj": {
        "vocab_size": 50400, "n_embd": 4096, "n_layer": 28, "n_head": 16,
        "activation_function": "gelu_new",
    },
    "opt": {
        "vocab_size": 50272, "hidden_size": 768, "num_hidden_layers": 12, "ffn_dim": 3072,
        "num_attention_heads": 12, "activation_function": "relu", "dropout": 0.1,
        "max_position_embeddings": 2048, "do_layer_norm_before": True, "enable_bias": True,
        "layer_norm_elementwise_affine": True, "tie_word_embeddings": True,
    },
    "mpt": {
        "d_model": 2048, "n_heads": 16, "n_layers": 24, "expansion_ratio": 4, "max_seq_len": 2048,
        "vocab_size": 50368, "learned_pos_emb": True, "no_bias": True,
        "tie_word_embeddings": True,
        "attn_config": {"alibi": True, "attn_type": "multihead_attention"},
    },
    "falcon": {
        **_REFINED_WEB, "vocab_size": 65024, "hidden_size": 4544, "num_hidden_layers": 32,
        "num_attention_heads": 71, "multi_query": True, "parallel_attn": True,
    },
    "RefinedWeb": _REFINED_WEB,
    "RefinedWebModel": _REFINED_WEB,
    "t5": {**_T5, "d_model": 512, "num_layers": 6, "num_heads": 8, "feed_forward_proj": "relu"},
    "switch_transformers": {
        **_T5, "d_model": 768, "num_layers": 12, "num_decoder_layers": 12, "num_heads": 12,
        "num_sparse_encoder_layers": 3, "num_sparse_decoder_layers": 3, "num_experts": 8,
        "dense_act_fn": "relu",
    },
    "llama": {
        **_GATED, "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32,
    },
    "llama4_text": {
        **_GATED, "vocab_size": 202048, "hidden_size": 5120, "intermediate_size": 8192,
        "intermediate_size_mlp": 16384, "num_hidden_layers": 48, "num_attention_heads": 40,
        "num_key_value_heads": 8, "head_dim": 128, "num_experts_per_tok": 1,
        "num_local_experts": 16, "interleave_moe_layer_step": 1, "no_rope_layer_interval": 4,
        "attention_chunk_size": 8192,
    },
    "mistral": {**_MISTRAL, "sliding_window": 4096},
    "ministral3": {**_MISTRAL, "vocab_size": 131072, "num_hidden_layers": 34, "head_dim": 128},
    "mixtral": {**_MISTRAL, "num_experts_per_tok": 2, "num_local_experts": 8},
    "qwen2": {**_QWEN, **_QWEN_7B},
    "qwen2_vl_text": _QWEN2_VL,
    "qwen2_5_vl_text": _QWEN2_VL,
    "qwen2_moe": {
        **_QWEN, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "decoder_sparse_step": 1,
        "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632,
        "num_experts_per_tok": 4, "num_experts": 60, "qkv_bias": True,
    },
    "qwen3": {**_QWEN, **_QWEN_7B, "head_dim": 128},
    "qwen3_vl_text": {**_QWEN, **_QWEN_7B, "head_dim": 128},
    "qwen3_moe": {
        **_QWEN, "hidden_size": 2048, "intermediate_size": 6144, "num_hidden_layers": 24,
        "num_attention_heads": 32, "num_key_value_heads": 4, "decoder_sparse_step": 1,
        "moe_intermediate_size": 768, "num_experts_per_tok": 8, "num_experts": 128,
    },
    "qwen3_vl_moe_text": {
        **_QWEN, "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 24,
        "num_attention_heads": 16, "num_key_value_heads": 16, "decoder_sparse_step": 1,
        "moe_intermediate_size": 1408, "num_experts_per_tok": 4, "num_experts": 60,
    },
    "deepseek_v2": {
        **_LATENT, "vocab_size": 102400, "hidden_size": 4096, "intermediate_size": 11008,
        "num_hidden_layers": 32, "num_attention_heads": 32, "n_routed_experts": 64,
        "n_shared_experts": 2, "moe_intermediate_size": 1407,
    },
    "deepseek_v3": {
        **_LATENT, "vocab_size": 129280, "hidden_size": 7168, "intermediate_size": 18432,
        "num_hidden_layers": 61, "num_attention_heads": 128, "n_routed_experts": 256,
        "n_shared_experts": 1, "moe_intermediate_size": 2048, "num_experts_per_tok": 8,
        "first_k_dense_replace": 3,
    },
    "gpt_oss": {
        **_GATED, "vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880,
        "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8,
        "head_dim": 64, "num_local_experts": 128, "num_experts_per_tok": 4,
        "sliding_window": 128, "attention_bias": True,
    },
    "gemma2": {**_GEMMA, "vocab_size": 256000},
    "gemma3_text": {**_GEMMA, "vocab_size": 262208},
}  # fmt: skip
"""Defaults by `model_type`, and by key as files have them."""
