"""A problem in words, for titles: "attention bf16, batch 4, heads 32, seq 4096, causal"."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

_DIRECTIONS = {"bwd": "backward", "fwd_bwd": "forward and backward"}
_OTHERS = {
    "heads_kv": "heads_q",
    "kv_heads": "heads",
    "seq_kv": "seq_q",
    "head_dim_v": "head_dim",
    "seq_q": "seq",
}
"""Sizes that are omitted if they equal another one."""


def spoken(operator: str, fields: Mapping[str, Any]) -> str:
    """An operator with the fields of its problem that matter.

    Fields that are off, zero, not given, or forward are omitted; so is a size of keys that equals
    that of queries.
    """
    first = f"{operator} {fields.get('dtype') or ''}".strip()
    direction = _DIRECTIONS.get(str(fields.get("direction")), "")
    return ", ".join([f"{first} {direction}".strip(), *_parts(fields)])


def _parts(fields: Mapping[str, Any]) -> Iterator[str]:
    for name, value in fields.items():
        source = _OTHERS.get(name)
        if name in ("dtype", "direction") or not value or (name, value) == ("batch", 1):
            continue
        if source is not None and fields.get(source) == value:
            continue
        words = name.replace("_", " ")
        if value is True:
            yield words
            continue
        pair = next((key for key, first in _OTHERS.items() if first == name), None)
        if pair is not None and fields.get(pair) == value:  # a single size for both
            words = words.removesuffix(" q")
        yield f"{words} {value}"


def shared(
    problem: Mapping[str, Any], varying: Collection[str], follows: Mapping[str, str]
) -> dict[str, Any]:
    """The fields of a problem that all cases share: neither `varying` ones, nor those that always
    equal one of them."""
    hidden = {*varying, *(name for name, other in follows.items() if other in varying)}
    return {name: value for name, value in problem.items() if name not in hidden}


def equals(fields: Mapping[str, Any]) -> str:
    """Fields in a line: m=4096 n=512."""
    return " ".join(f"{name}={value}" for name, value in fields.items())
