"""Columns of the page's tables; a value's format follows from its key.

Keys of the tool's JSON contain their unit (`time_us`, `ttft_ms`, `weight_bytes`, `tokens_per_s`),
so a column needs only its key and its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

_KINDS = (
    (r"flops_per_s$", "flops_per_s"),
    (r"gb_per_s$", "gb_per_s"),
    (r"flop_per_byte$|intensity|_percent$", "number"),
    (r"_per_(s|token|gpu|device)(_per_device)?$", "number"),
    (r"_us(_|$)", "time"),
    (r"_ms$", "ms"),
    (r"seconds|_s$", "seconds"),
    (r"^(memory|capacity|lacking|total|weights?|cache|cache_room|left_alone)_\w*bytes$", "binary"),
    (r"^(context|exchange_buffers|graphs|activations|device|host|disk|problem)_bytes$", "binary"),
    (r"bytes", "bytes"),
    (r"flops", "flops"),
    (r"watts", "watts"),
    (r"share|coverage|mape|mfu|hit$|explained", "percent"),
)
"""The kind of a column's values, by a part of its key; the first match counts."""
_UNIT = re.compile(r"_(us|ms|s|bytes)(?=_|$)")
_SHORT = re.compile(r"\b(ttft|tpot|e2e|isl|osl|mfu)\b")
_COMMON = 2  # number of rows from which equal values are shown above the table


@dataclass(frozen=True)
class Column:
    """One column of a table on the page."""

    key: str
    """Key of its values in a row."""
    header: str
    """Its heading."""
    kind: str
    """text, number, percent, time (microseconds), ms, seconds, bytes, binary (bytes of capacity),
    flops, flops_per_s, gb_per_s or watts."""
    hidden: bool = False
    """Whether the page's table omits it because all rows have the same value; the CSV includes
    it."""

    def as_dict(self) -> dict[str, Any]:
        """The column in the page's data."""
        members = {"key": self.key, "header": self.header, "kind": self.kind}
        return {**members, "hidden": True} if self.hidden else members


def has_unit(key: str) -> bool:
    """Whether a key names the unit of its numbers, as `time_us` does."""
    return _UNIT.search(key) is not None


def kind_of(key: str) -> str:
    """The kind of numbers under `key`: `ttft_ms` gives "ms"; "number" if the key has no unit."""
    return next((kind for part, kind in _KINDS if re.search(part, key)), "number")


def header_of(key: str) -> str:
    """The key in words, without the unit, which each cell shows: `low_ttft_ms` gives "low ttft"."""
    if key.endswith("_gb_per_s"):
        return key.removesuffix("_gb_per_s").replace("_", " ") + " bandwidth"
    bare = key if "_per_s" in key else _UNIT.sub("", key)
    words = bare.replace("_per_", "/").replace("_", " ").strip() or key
    return _SHORT.sub(lambda match: match[0].upper(), words)


def column(key: str, values: Iterable[Any], header: str = "") -> Column:
    """A column named and formatted by its key; text if any value is no number."""
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
        if value is not None
    )
    return Column(key, header or header_of(key), kind_of(key) if numeric else "text")


def columns(
    rows: Sequence[Mapping[str, Any]],
    first: Sequence[str] = (),
    left_out: str = "",
    headers: Mapping[str, str] | None = None,
) -> list[Column]:
    """Columns for all keys of any row: the keys `first`, then the others in their order.

    Keys that match the pattern `left_out` are omitted. A column of words or of whole numbers in
    which several rows agree is hidden. `headers` are headings that do not follow from the key.
    """
    keys = dict.fromkeys(key for row in rows for key in row)
    order = [*(key for key in first if key in keys), *(key for key in keys if key not in first)]
    fields = []
    for key in order:
        values = [row.get(key) for row in rows]
        if (left_out and re.search(left_out, key)) or all(v in (None, "") for v in values):
            continue
        field = column(key, values, (headers or {}).get(key, ""))
        constant = len(rows) >= _COMMON and len(set(map(str, values))) == 1
        setting = field.kind == "text" or isinstance(values[0], int)
        fields.append(replace(field, hidden=constant and setting))
    return fields


def telling(rows: Sequence[Mapping[str, Any]], keys: Sequence[str], most: int = 60) -> list[str]:
    """Keys that distinguish rows, without redundant ones, up to `most` values."""
    by_groups: dict[tuple[int, ...], str] = {}
    for key in keys:
        indices: dict[str, int] = {}
        groups = tuple(indices.setdefault(str(row.get(key) or ""), len(indices)) for row in rows)
        if 1 < len(indices) <= most:
            by_groups.setdefault(groups, key)
    return list(by_groups.values())
