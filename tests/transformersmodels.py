"""Models of transformers that traces are held against: class → sizes, shapes of its inputs."""

WIDTHS = {
    "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 96,
    "vocab_size": 200, "pad_token_id": 1, "bos_token_id": 2, "eos_token_id": 3,
}  # fmt: skip
GROUPED = {**WIDTHS, "num_key_value_heads": 2}
DECODER = {"d_model": 64, "vocab_size": 200}
IMAGE = {"pixel_values": (1, 3, 32, 32)}
IDS = {"input_ids": (2, 4)}
PAIR = {**IDS, "decoder_input_ids": (2, 3)}
ROUTED = {"moe_intermediate_size": 32, "num_experts": 4, "num_experts_per_tok": 2}

MODELS = {
    "ViTModel": (
        {**WIDTHS, "image_size": 32, "patch_size": 8, "vocab_size": 2}, IMAGE,
    ),
    "WhisperEncoder": (
        {"d_model": 64, "encoder_layers": 1, "encoder_attention_heads": 4, "encoder_ffn_dim": 96,
         "max_source_positions": 20, "num_mel_bins": 16}, {"input_features": (1, 16, 40)},
    ),
    "T5ForConditionalGeneration": (
        {**DECODER, "d_kv": 16, "d_ff": 96, "num_layers": 1, "num_heads": 4}, PAIR,
    ),
    "BartForConditionalGeneration": (
        {**DECODER, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 4,
         "decoder_attention_heads": 4, "encoder_ffn_dim": 96, "decoder_ffn_dim": 96,
         "attn_implementation": "eager"}, PAIR,
    ),
    "BloomForCausalLM": ({"hidden_size": 64, "n_layer": 1, "n_head": 4, "vocab_size": 200}, IDS),
    "GPTNeoXForCausalLM": (WIDTHS, IDS),
    "Phi3ForCausalLM": (GROUPED, IDS),
    "RobertaForMaskedLM": (WIDTHS, IDS),
    "MambaForCausalLM": (
        {"hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 200, "state_size": 16},
        {"input_ids": (2, 2)},
    ),
    "Mamba2ForCausalLM": (
        {"hidden_size": 64, "num_hidden_layers": 1, "vocab_size": 200, "state_size": 16,
         "num_heads": 8, "head_dim": 16, "n_groups": 1, "chunk_size": 2}, IDS,
    ),
    "Qwen3NextForCausalLM": (
        {**GROUPED, **ROUTED, "num_hidden_layers": 2, "head_dim": 16, "linear_num_key_heads": 2,
         "linear_num_value_heads": 4, "linear_key_head_dim": 16, "linear_value_head_dim": 16,
         "shared_expert_intermediate_size": 32,
         "layer_types": ["linear_attention", "full_attention"]}, IDS,
    ),
    "ConvNextModel": (
        {"hidden_sizes": [16, 32], "depths": [1, 1], "num_stages": 2, "image_size": 32}, IMAGE,
    ),
    "MobileNetV2Model": ({"depth_multiplier": 0.35}, IMAGE),
}  # fmt: skip
