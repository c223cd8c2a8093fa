"""What transformers builds of a config.json: parameters of the model on the meta device, and the
keys and values that a token leaves in the cache.

`python -m tests.metamodels` writes tests/vectors/removed_keys.json anew: for each file of
tests/configs and each key that is taken away, what the rest builds (null: nothing); and the
parameters of the networks of tests/vectors/deployed.json, and of the texts and encoders of images
of tests/vectors/wrappers.json.
"""

from __future__ import annotations

import copy
import json
import re
import warnings
from pathlib import Path

from perfmodel.networks.huggingface.config import WITHOUT_EFFECT

CONFIGS = Path(__file__).parent / "configs"
REMOVED = Path(__file__).parent / "vectors" / "removed_keys.json"
DEPLOYED = Path(__file__).parent / "vectors" / "deployed.json"
WRAPPERS = Path(__file__).parent / "vectors" / "wrappers.json"
_OF_IMAGES = re.compile("vision|visual|project|merger|multi_modal")
"""Names of parameters of an encoder of images and of its projector."""
NOT_BUILT = {"mpt-1b": "transformers' MPT has neither learned positions nor biases"}
_HEADS = {
    "bert": "BertForPreTraining", "t5": "T5ForConditionalGeneration",
    "switch_transformers": "SwitchTransformersForConditionalGeneration",
    "whisper": "WhisperForConditionalGeneration",
}  # fmt: skip


def text_part(data):
    """The language model's part of a file, in a file of its own."""
    nested = data.get("text_config")
    return {**nested, "tie_word_embeddings": data["tie_word_embeddings"]} if (
        nested is not None and "tie_word_embeddings" in data
    ) else nested or data  # fmt: skip


def built(data):
    """Parameters and cached elements a token of what transformers builds, or None where it builds
    nothing."""
    import torch
    import transformers

    data = copy.deepcopy(text_part(data))
    for key in ("quantization_config", "rope_scaling", "attn_temperature_tuning"):
        data.pop(key, None)
    try:
        with torch.device("meta"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            config = transformers.AutoConfig.for_model(**data)
            model = _model(transformers, config, data)
            parameters = sum(one.numel() for one in model.parameters())
            parameters += sum(
                one.numel() for name, one in model.named_buffers() if name.endswith(_ROUTER_BIAS)
            )
            return parameters, _cached(config)
    except Exception:
        return None


def _model(transformers, config, data):
    kind = data["model_type"]
    if kind == "bert" and "BertForPreTraining" not in data.get("architectures", ()):
        return transformers.BertModel(config)
    if kind in _HEADS:
        return getattr(transformers, _HEADS[kind])(config)
    return transformers.AutoModelForCausalLM.from_config(config)


def built_parts(data):
    """Parameters of the text, and of the encoder of images with its projector, of a whole file."""
    import torch
    import transformers
    from transformers.models.auto import modeling_auto

    with torch.device("meta"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        config = transformers.AutoConfig.for_model(**copy.deepcopy(data))
        model = modeling_auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING[type(config)](config)
    named = [*model.named_parameters()]
    named += [(name, one) for name, one in model.named_buffers() if name.endswith(_ROUTER_BIAS)]
    seen = [one.numel() for name, one in named if _OF_IMAGES.search(name)]
    return sum(one.numel() for _, one in named) - sum(seen), sum(seen)


def _cached(config):
    """Elements of keys and values of one token in every layer of a decoder."""
    kind = config.model_type
    if not hasattr(config, "num_attention_heads"):  # states alone
        return None
    if kind in ("bert", "t5", "switch_transformers", "whisper"):
        return None
    if kind.startswith("deepseek"):
        return config.num_hidden_layers * (config.kv_lora_rank + config.qk_rope_head_dim)
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    kept = getattr(config, "num_key_value_heads", None) or heads
    if kind == "falcon":
        one = config.multi_query and not config.new_decoder_architecture
        kept = 1 if one else config.num_kv_heads if config.new_decoder_architecture else heads
    if kind == "mpt":
        kept = heads
    return 2 * config.num_hidden_layers * kept * size


def without(data, key):
    """A file without a key, of its text part where that is nested."""
    data = copy.deepcopy(data)
    place = data.get("text_config", data)
    del place[key]
    return data


def keys(data):
    """Keys whose absence may matter."""
    place = data.get("text_config", data)
    return sorted(key for key in place if key not in WITHOUT_EFFECT or key in _POSITIONS)


_ROUTER_BIAS = "e_score_correction_bias"
"""What checkpoints of DeepSeek-V3 store as weights and transformers holds as buffers."""
_POSITIONS = ("max_position_embeddings", "n_positions")


def removed():
    """For each file and key, what the rest builds."""
    found = {}
    for path in sorted(CONFIGS.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        if path.stem in NOT_BUILT:
            continue
        found[path.stem] = {"": built(data)} | {
            key: built(without(data, key)) for key in keys(data)
        }
    return found


def deployed():
    """The deployed networks, their parameters built anew."""
    entries = json.loads(DEPLOYED.read_text(encoding="utf-8"))
    return {name: entry | {"built": built(entry["keys"])[0]} for name, entry in entries.items()}


def wrappers():
    """The wrappers of an encoder, their parts built anew."""
    entries = json.loads(WRAPPERS.read_text(encoding="utf-8"))
    return {name: entry | {"built": built_parts(entry["keys"])} for name, entry in entries.items()}


if __name__ == "__main__":
    rows = ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in wrappers().items())
    WRAPPERS.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    rows = ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in deployed().items())
    DEPLOYED.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")
    REMOVED.parent.mkdir(exist_ok=True)
    lines = ",\n".join(f'"{name}": {json.dumps(row)}' for name, row in removed().items())
    REMOVED.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
