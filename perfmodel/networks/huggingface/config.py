"""A config.json read key by key: what was read, what was missing, what nobody read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.errors import ProblemError, SpecError, UnknownName, reason
from perfmodel.plaintext import printable, quoted

TEXTS = ("text_config", "llm_config", "language_config")
"""Where a file of a model of several kinds of input has its language model."""
MOST_BYTES = 2**20
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_new",
    "gelu_fast": "gelu_new",
    "gelu_pytorch_tanh": "gelu_new",
    "quick_gelu": "gelu",
    "relu": "relu",
    "relu2": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""What files call activations, and what we do."""
MOST_LAYERS = 10_000
FACTS: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("families.yaml"))
"""What files mean beyond what they say."""
KEYS: Mapping[str, Sequence[str]] = FACTS["keys"]
"""Spellings of one size, by our name of it."""
_COMMON = """
attention_bias head_dim hidden_act kv_lora_rank layer_types mlp_bias moe_intermediate_size
num_experts_per_tok q_lora_rank qk_nope_head_dim qk_rope_head_dim sliding_window
tie_word_embeddings v_head_dim vocab_size
"""
COMMON = frozenset((*(key for keys in KEYS.values() for key in keys), *_COMMON.split()))
"""Keys that several families read."""
WITHOUT_EFFECT = frozenset(FACTS["without_effect"])
"""Keys that change no size, kernel or type that a network says: tokens, starts of training, files;
they are left out without a word."""


class Config:
    """The keys of one file; each method marks what it reads.

    `defaults` are what the family's class takes for keys that a file leaves out. A key that is null
    is not left out: its size follows from others.
    """

    def __init__(
        self, data: Mapping[str, Any], defaults: Mapping[str, Any] | None = None, below: str = ""
    ) -> None:
        self.data, self.defaults, self.below = data, defaults or {}, below
        self.notes: list[str] = []
        self._read: set[str] = set()
        self._defaults: list[str] = []
        self._below_it: list[Config] = []

    def maybe(self, *keys: str) -> int | None:
        """The whole number of the first key that is there, else the default; None where there is
        none or null."""
        key, value = self._first(keys)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise self.wrong(key, value, "a whole number, 0 or more")
        if key in KEYS["layers"] and value > MOST_LAYERS:  # a layer is an entry of lists
            raise self.wrong(key, value, f"a number of layers up to {MOST_LAYERS:,}")
        return value

    def flag(self, key: str) -> bool:
        """True or false; false where nothing is said."""
        _, value = self._first((key,))
        if value is None:
            return False
        if not isinstance(value, bool):
            raise self.wrong(key, value, "true or false")
        return value

    def share(self, *keys: str) -> float:
        """A share such as a dropout, 0 where there is none."""
        key, value = self._first(keys)
        if value is None:
            return 0.0
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1:
            raise self.wrong(key, value, "a share below 1, such as 0.1")
        return float(value)

    def idle(self, *keys: str) -> None:
        """Mark keys that have no effect in this network."""
        self._read.update(keys)

    def plain(self, *keys: str) -> tuple[str, Any]:
        """The first of the keys that is there, and its value of whatever type; None without one."""
        key, value = self._first(keys)
        if isinstance(value, int) and not isinstance(value, bool):
            self.maybe(key)
        return key, value

    def lacks(self, key: str, *others: str) -> ProblemError:
        """The error of a size that is missing."""
        alternatives = f" (or {', '.join(others)})" if others else ""
        return ProblemError(f"lacks {self.below}{key}{alternatives}; add it")

    def nested(self, key: str) -> Config:
        """The mapping below a key, empty where there is none; its notes are ours."""
        self._read.add(key)
        value = self.data.get(key)
        if value is not None and not isinstance(value, Mapping):
            raise self.wrong(key, value, "a mapping")
        return self.beside(value or {}, self.defaults.get(key), f"{key}.")

    def beside(
        self, data: Mapping[str, Any], defaults: Mapping[str, Any] | None, below: str
    ) -> Config:
        """Further keys of the file; their notes are ours."""
        child = Config(data, defaults, below)
        child.notes, child._defaults = self.notes, self._defaults
        self._below_it.append(child)
        return child

    def left_out(self, key: str, what: str) -> None:
        """Note that the file asks for something that a network does not describe."""
        self._read.add(key)
        if self.data.get(key):
            self.notes.append(f"{self.below}{key}: {what}")

    def wrong(self, key: str, value: Any, wanted: str) -> ProblemError:
        """The error of a value of another type."""
        text = quoted(value if isinstance(value, str) else json.dumps(value, default=str))
        return ProblemError(f"{self.below}{key} is {text}; it is {wanted}")

    def remarks(self) -> tuple[str, ...]:
        """Everything that a person should know of the file once it has been read."""
        lines = [*dict.fromkeys(self.notes), *filter(None, [self.taken()])]
        keys = self.unread()
        if keys:
            lines.append(f"not recognised, left out: {', '.join(keys)}")
        return tuple(lines)

    def taken(self) -> str:
        """The defaults that were taken; empty without any."""
        defaults = ", ".join(dict.fromkeys(self._defaults))
        return f"not in the file, the family's default taken: {defaults}" if defaults else ""

    def unread(self) -> list[str]:
        """Keys that nobody read and that may matter, those of nested mappings too."""
        read_keys = self._read | WITHOUT_EFFECT
        keys = [self.below + printable(key)[:60] for key in self.data if key not in read_keys]
        return keys + [key for child in self._below_it for key in child.unread()]

    def _first(self, keys: Sequence[str]) -> tuple[str, Any]:
        """The first of the keys that is there and not null, else the default if none is there; all
        are marked as read."""
        self._read.update(keys)
        for key in keys:
            if self.data.get(key) is not None:
                return key, self.data[key]
        if not any(key in self.data for key in keys):
            for key in keys:
                if key in self.defaults:
                    value = self.defaults[key]
                    text = value if isinstance(value, str) else json.dumps(value)
                    self._defaults.append(f"{self.below}{key} {text}")
                    return key, value
        return keys[0], None


def known(activation: str) -> str:
    """What we call an activation; raises `UnknownName` for others."""
    if activation not in ACTIVATIONS:
        raise UnknownName("activation", activation, ACTIVATIONS)
    return ACTIVATIONS[activation]


def load(path: str | Path) -> dict[str, Any]:
    """The mapping of a JSON file; raises `SpecError` in one line."""
    try:
        with Path(path).open("rb") as stream:
            content = stream.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise SpecError(f"{path}: cannot be read: {reason(error)}; check the path") from None
    if len(content) > MOST_BYTES:
        raise SpecError(f"{path}: larger than {MOST_BYTES // 1024} KiB; is it a config.json?")
    try:
        document = json.loads(content)
    except UnicodeDecodeError:
        raise SpecError(f"{path}: not UTF-8 text") from None
    except (json.JSONDecodeError, RecursionError, ValueError) as error:
        cause = getattr(error, "msg", "nested too deeply")
        raise SpecError(f"{path}:{getattr(error, 'lineno', 1)}: not JSON: {cause}") from None
    if not isinstance(document, dict):
        raise SpecError(f"{path}: holds no mapping; a config.json is {{...}}")
    return document
