"""Which family reads a config.json, and what it makes of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from perfmodel.catalogue import normalise
from perfmodel.errors import ProblemError, UnknownName, nearest
from perfmodel.networks.huggingface.config import (
    COMMON,
    FACTS,
    KEYS,
    TEXTS,
    WITHOUT_EFFECT,
    Config,
    load,
)
from perfmodel.networks.huggingface.declared import FAMILIES, TOWERS, WRAPPERS, declared, tower
from perfmodel.networks.network import Network
from perfmodel.plaintext import printable, quoted


@dataclass(frozen=True)
class Imported:
    """A network that was read, and what to know of it."""

    network: Network
    """The network."""
    notes: tuple[str, ...] = ()
    """Defaults taken, parts left out, keys not recognised: a line each."""


DEFAULTS: Mapping[str, Mapping[str, Any]] = FACTS["defaults"]
"""What a file means by leaving a key out, by `model_type` and key."""
ALIASES: Mapping[str, str] = FACTS["aliases"]
"""Further `model_type`s that are read as a family."""
OTHERS = {name: reason for reason, names in FACTS["others"].items() for name in names}
"""Well-known families that are none of ours, and why."""

_LARGEST = frozenset(
    (*(key for name in ("hidden", "layers", "heads", "inner") for key in KEYS[name]), "vocab_size")
)
"""Keys whose defaults hold for a file of the same `model_type` alone."""

_OTHER_LAYERS = re.compile(
    r"expert|moe(_|$)|lora_rank|ssm|mamba|state_size|conv_(kernel|dim|l_cache)|hybrid|recurren|lru_|"
    r"rwkv|linear_(attn|num|key|value|conv)|index_(topk|head|n_head)|altup|laurel|per_layer_input|"
    r"kv_shared|layers_block_type|cross_attention_layers"
)
"""Keys that name experts, state-space or other layers."""


def read(
    source: str | Path | Mapping[str, Any], family: str | None = None, name: str = ""
) -> Imported:
    """The network of a config.json, a path or its mapping; `family` overrules its `model_type`.

    Raises `SpecError` for a file that is none, `UnknownName` for a family that is not known, and
    `ProblemError` for sizes that are missing or have no meaning, each in one line with the file.
    """
    place = "config" if isinstance(source, Mapping) else str(source)
    file = source if isinstance(source, Mapping) else load(source)
    text_key = next((key for key in TEXTS if isinstance(file.get(key), Mapping)), "")
    data = _text_part(file, text_key) if text_key else file
    model_type = data.get("model_type", file.get("model_type"))
    reader = _family(family, model_type, file.get("model_type"), data, place)
    same = isinstance(model_type, str) and ALIASES.get(model_type, model_type) == reader
    defaults = _defaults(model_type if same else reader)
    if not same:
        defaults = {key: value for key, value in defaults.items() if key not in _LARGEST}
    config = Config(data, defaults)
    config.idle(_VISION)
    encoder = _encoder(file, text_key)
    if text_key:
        known = (text_key, _VISION if encoder else "")
        parts = [key for key, value in file.items() if key not in known and _is_part(key, value)]
        if parts or not encoder:
            left = ", ".join(map(printable, parts)) or "the rest"
            config.notes.append(
                f"only {' and '.join(filter(None, known))} is read; left out: {left}"
            )
    if not encoder and isinstance(file.get(_VISION), Mapping):
        config.notes.append(_why_not(file))
    weights = _weights(config)
    try:
        network = replace(
            declared(reader, config), name=name or _name(file, source, reader), weights=weights
        )
        if not same:
            _refuse_other_layers(config, reader)
        if encoder:
            network = replace(network, tower=_tower(encoder, file, config, network.hidden))
    except (ProblemError, UnknownName) as error:
        raise ProblemError("; ".join(filter(None, [f"{place}: {error}", config.taken()]))) from None
    return Imported(replace(network, family=reader, source=printable(place)), config.remarks())


_VISION = "vision_config"


def _encoder(file: Mapping[str, Any], text_key: str) -> str:
    """The declared encoder of a file's images; empty where it has none that is known."""
    part = file.get(_VISION)
    if not isinstance(part, Mapping):
        return ""
    wrapper = str(file.get("model_type", ""))
    name = str(part.get("model_type") or WRAPPERS.get(wrapper, {}).get("tower", wrapper))
    name = name.removesuffix("_vision")
    return name if name in TOWERS and (wrapper in WRAPPERS or name == wrapper) else ""


def _why_not(file: Mapping[str, Any]) -> str:
    """Why the encoder of a file's images is not read."""
    kind = file[_VISION].get("model_type") or file.get("model_type")
    reason = OTHERS.get(str(kind), "is no encoder that is known")
    return f"{_VISION}: {quoted(str(kind))} {reason}; images cannot be given"


def _tower(name: str, file: Mapping[str, Any], config: Config, width: int) -> Network:
    """The encoder of a file's images, whose output has the width of its text."""
    part = config.beside(file[_VISION], FACTS["vision"].get(name), f"{_VISION}.")
    wrapper = str(file.get("model_type", ""))
    return tower(name, part, wrapper, Config(file), width)


_WEIGHTS = {"mxfp4 None": "mxfp4", "fp8 None": "fp8", "fp8 [128, 128]": "fp8_block"}
"""Element type of a checkpoint's weights by its `quant_method` and `weight_block_size`."""


def _weights(config: Config) -> str:
    """The element type of the checkpoint's weights where it is read; other formats are noted."""
    quantization = config.data.get("quantization_config")
    written = quantization if isinstance(quantization, Mapping) else {}
    method = f"{written.get('quant_method')} {written.get('weight_block_size')}"
    if method in _WEIGHTS:
        config.idle("quantization_config")
    else:
        config.left_out(
            "quantization_config", "weights are taken in 16 bits; --weights names others"
        )
    return _WEIGHTS.get(method, "")


def _text_part(file: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """The language model's keys; of the whole file's those that are about it too."""
    shared = ("tie_word_embeddings", "quantization_config")
    return {**file[key], **{name: file[name] for name in shared if file.get(name) is not None}}


def _is_part(key: str, value: Any) -> bool:
    """Whether a key holds another part of a model of several kinds of input."""
    return key.endswith("_config") and isinstance(value, Mapping) and key != "quantization_config"


def _defaults(model_type: str) -> Mapping[str, Any]:
    """The defaults of a `model_type`, or of the family that reads it."""
    names = (model_type, f"{model_type}_text", ALIASES.get(model_type, model_type))
    return next((DEFAULTS[name] for name in names if name in DEFAULTS), {})


def _refuse_other_layers(config: Config, family: str) -> None:
    """Raise `ProblemError` where the file names layers that the family does not have."""
    keys = [
        key
        for key in config.unread()
        if _OTHER_LAYERS.search(key.split(".")[-1].lower()) and config.data.get(key)
    ]
    if keys:
        raise ProblemError(
            f"{_keys(keys)} {'names' if len(keys) == 1 else 'name'} layers that {family} "
            "does not have; name a family that has them, or write the network as YAML"
        )


def _family(option: str | None, inner: Any, outer: Any, data: Mapping[str, Any], place: str) -> str:
    """The family of a file by its text part's `model_type`, or the whole file's; raises where there
    is none."""
    if option is not None:
        name = ALIASES.get(option, option)
        if name not in FAMILIES:
            raise UnknownName("family", option, (*FAMILIES, *ALIASES))
        return name
    for model_type in (outer, inner):
        if isinstance(model_type, str) and model_type in OTHERS:
            raise ProblemError(
                f"{place}: model_type {model_type} has {OTHERS[model_type]}; "
                "only transformers of tokens are read"
            )
    family = ALIASES.get(inner, inner) if isinstance(inner, str) else None
    if family in FAMILIES:
        return str(family)
    keys = sorted(key for key in data if key in COMMON)
    rest = sorted(key for key in data if key not in COMMON | WITHOUT_EFFECT)
    raise ProblemError(
        f"{place}: {_problem(inner)}; recognised: {_keys(keys)}; not recognised: {_keys(rest)}; "
        "name the family whose code it is like with --family"
    )


def _problem(name: Any) -> str:
    if not isinstance(name, str):
        return "has no model_type"
    return f"model_type {quoted(name)} is not known, {nearest(name, (*FAMILIES, *ALIASES))}"


def _keys(keys: list[str]) -> str:
    text = ", ".join(printable(key)[:60] for key in keys[:40])
    return (text or "none") + (f" and {len(keys) - 40} more" if len(keys) > 40 else "")


def _name(data: Mapping[str, Any], source: str | Path | Mapping[str, Any], family: str) -> str:
    """The network's name: the last part of `_name_or_path`, else the file's stem unless that is
    `config`, else the family."""
    path = data.get("_name_or_path")
    last = path.rstrip("/").split("/")[-1] if isinstance(path, str) else ""
    stem = "" if isinstance(source, Mapping) else Path(source).stem
    names = (normalise(printable(text)) for text in (last, stem if stem != "config" else ""))
    return next(filter(None, names), family)
