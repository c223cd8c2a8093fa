"""Which family reads a config.json, and what it makes of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from perfmodel.errors import ProblemError, UnknownName, nearest
from perfmodel.hardware.catalogue import normalise
from perfmodel.networks.huggingface import gated, plain
from perfmodel.networks.huggingface.config import COMMON, TEXT, WITHOUT_EFFECT, Config, load
from perfmodel.networks.huggingface.gated import Habits
from perfmodel.networks.network import Network
from perfmodel.plaintext import printable, quoted


@dataclass(frozen=True)
class Imported:
    """A network that was read, and what to know of it."""

    network: Network
    """The network."""
    notes: tuple[str, ...] = ()
    """Defaults taken, parts left out, keys not recognised: a line each."""


@dataclass(frozen=True)
class Family:
    """How files of a family are read."""

    read: Callable[[Config], Network]
    """A file's keys as a network."""
    usual: Mapping[str, int] = field(default_factory=dict)
    """Sizes that its files leave out where they are these."""


_GEMMA3 = {
    "vocab_size": 262208, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 256,
    "sliding_window": 4096,
}  # fmt: skip
_SWITCH = {
    "relative_attention_num_buckets": 32, "num_sparse_encoder_layers": 3,
    "num_sparse_decoder_layers": 3,
}  # fmt: skip

FAMILIES: Mapping[str, Family] = {
    "bert": Family(plain.bert, {"type_vocab_size": 2}),
    "gpt2": Family(plain.gpt2),
    "gptj": Family(plain.gptj),
    "opt": Family(plain.opt),
    "mpt": Family(plain.mpt, {"expansion_ratio": 4}),
    "falcon": Family(plain.falcon),
    "t5": Family(plain.t5, {"relative_attention_num_buckets": 32}),
    "switch_transformers": Family(partial(plain.t5, experts=True), _SWITCH),
    "llama": Family(partial(gated.llama, habits=Habits())),
    "llama4_text": Family(gated.llama4),
    "mistral": Family(partial(gated.llama, habits=Habits())),
    "mixtral": Family(gated.mixtral),
    "qwen2": Family(partial(gated.qwen, habits=Habits(qkv_bias=True))),
    "qwen2_moe": Family(partial(gated.qwen, habits=Habits(), experts=True, shared=True)),
    "qwen3": Family(partial(gated.qwen, habits=Habits(head_norm=True)), {"head_dim": 128}),
    "qwen3_moe": Family(
        partial(gated.qwen, habits=Habits(head_norm=True), experts=True), {"head_dim": 128}
    ),
    "deepseek_v2": Family(partial(gated.deepseek, router_bias=False)),
    "deepseek_v3": Family(partial(gated.deepseek, router_bias=True)),
    "gpt_oss": Family(gated.gpt_oss, {"sliding_window": 128}),
    "gemma2": Family(
        partial(gated.gemma, head_norm=False, pattern=2), {"head_dim": 256, "sliding_window": 4096}
    ),
    "gemma3_text": Family(partial(gated.gemma, head_norm=True, pattern=6), _GEMMA3),
}
"""Families by `model_type`."""

ALIASES = {"llama4": "llama4_text", "gemma3": "gemma3_text", "RefinedWeb": "falcon",
           "RefinedWebModel": "falcon", "kimi_k2": "deepseek_v3"}  # fmt: skip
"""Further `model_type`s that are read as a family, the text part of models of several inputs."""

OTHERS = {
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba"), "state-space layers"),
    **dict.fromkeys(
        ("jamba", "zamba", "zamba2", "bamba", "nemotron_h", "granitemoehybrid", "falcon_h1"),
        "state-space layers beside attention",
    ),
    **dict.fromkeys(("rwkv", "rwkv5", "xlstm", "recurrent_gemma"), "recurrent layers"),
    **dict.fromkeys(("qwen3_next", "minimax", "lfm2"), "linear or convolutional attention"),
    **dict.fromkeys(("vit", "clip", "siglip", "resnet", "convnext"), "images in place of tokens"),
}
"""Well-known families that are none of ours, and why."""


def read(
    source: str | Path | Mapping[str, Any], family: str | None = None, name: str = ""
) -> Imported:
    """The network of a config.json, a path or its mapping; `family` overrules its `model_type`.

    Raises `SpecError` for a file that is none, `UnknownName` for a family that is not known, and
    `ProblemError` for sizes that are missing or have no meaning, each in one line with the file.
    """
    where = "config" if isinstance(source, Mapping) else str(source)
    whole = source if isinstance(source, Mapping) else load(source)
    nested = whole.get(TEXT)
    data = nested if isinstance(nested, Mapping) else whole
    said = whole.get("model_type", data.get("model_type"))
    chosen = _family(family, said, data, where)
    config = Config(data, FAMILIES[chosen].usual)
    if data is whole:
        config.left_out("vision_config", "the vision part is left out")
    else:
        config.notes.append(f"only {TEXT} is read; the rest of the model is left out")
    config.left_out("quantization_config", "types of weights are no part of a network")
    try:
        found = replace(FAMILIES[chosen].read(config), name=name or _named(whole, chosen))
    except (ProblemError, UnknownName) as error:
        raise ProblemError(f"{where}: {error}") from None
    return Imported(replace(found, family=chosen, source=printable(where)), config.remarks())


def _family(asked: str | None, said: Any, data: Mapping[str, Any], where: str) -> str:
    """The family of a file; raises where there is none."""
    if asked is not None:
        wanted = ALIASES.get(asked, asked)
        if wanted not in FAMILIES:
            raise UnknownName("family", asked, (*FAMILIES, *ALIASES))
        return wanted
    found = ALIASES.get(said, said) if isinstance(said, str) else None
    if found in FAMILIES:
        return str(found)
    if isinstance(said, str) and said in OTHERS:
        raise ProblemError(
            f"{where}: model_type {said} has {OTHERS[said]}; only transformers of tokens are read"
        )
    read = sorted(key for key in data if key in COMMON)
    unread = sorted(key for key in data if key not in COMMON | WITHOUT_EFFECT)
    raise ProblemError(
        f"{where}: {_asked(said)}; recognised: {_listed(read)}; not recognised: {_listed(unread)}; "
        "name the family whose code it is like with --family"
    )


def _asked(said: Any) -> str:
    if not isinstance(said, str):
        return "has no model_type"
    return f"model_type {quoted(said)} is not known, {nearest(said, (*FAMILIES, *ALIASES))}"


def _listed(keys: list[str]) -> str:
    shown = ", ".join(printable(key)[:60] for key in keys[:40])
    return (shown or "none") + (f" and {len(keys) - 40} more" if len(keys) > 40 else "")


def _named(data: Mapping[str, Any], family: str) -> str:
    """What a network is called: the last part of `_name_or_path`, else its family."""
    path = data.get("_name_or_path")
    last = path.rstrip("/").split("/")[-1] if isinstance(path, str) else ""
    return normalise(printable(last)) or family
