"""Columns of the page's tables: what a value is, by its key, and so how it is written.

A key of the tool's JSON says its unit (`time_us`, `ttft_ms`, `weight_bytes`, `tokens_per_s`), so a
column needs no more than its key and its values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_KINDS = (
    (r"flops_per_s$", "flops_per_s"),
    (r"gb_per_s$", "gb_per_s"),
    (r"flop_per_byte$|intensity|_percent$", "number"),
    (r"_per_(s|token|gpu|device)(_per_device)?$", "number"),
    (r"_us(_|$)", "time"),
    (r"_ms$", "ms"),
    (r"seconds|_s$", "seconds"),
    (r"bytes", "bytes"),
    (r"flops", "flops"),
    (r"watts", "watts"),
    (r"share|coverage|mape|mfu|hit$|explained", "percent"),
)
"""What a column's values are, by a part of its key; the first that is found holds."""
_UNIT = re.compile(r"_(us|ms|s|bytes)(?=_|$)")


@dataclass(frozen=True)
class Column:
    """One column of a table on the page."""

    key: str
    header: str
    kind: str
    """text, number, percent, time (microseconds), ms, seconds, bytes, flops, flops_per_s,
    gb_per_s or watts."""

    def as_dict(self) -> dict[str, str]:
        """The column in the page's data."""
        return {"key": self.key, "header": self.header, "kind": self.kind}


def kind_of(key: str) -> str:
    """What numbers under `key` are: `ttft_ms` are "ms"; "number" where the key does not say."""
    return next((kind for part, kind in _KINDS if re.search(part, key)), "number")


def header_of(key: str) -> str:
    """The key in words, without the unit that each cell has: `low_ttft_ms` is "low ttft"."""
    bare = key if "_per_s" in key else _UNIT.sub("", key)
    return bare.replace("_per_", "/").replace("_", " ").strip() or key


def column(key: str, values: Iterable[Any], header: str = "") -> Column:
    """A column named and formatted by its key; text where a value is no number."""
    numeric = all(
        isinstance(value, int | float) and not isinstance(value, bool)
        for value in values
        if value is not None
    )
    return Column(key, header or header_of(key), kind_of(key) if numeric else "text")


def columns(
    rows: Sequence[Mapping[str, Any]], first: Sequence[str] = (), left_out: str = ""
) -> list[Column]:
    """Columns of all that stands in some row: the keys `first`, then the others as they come.

    Keys that the pattern `left_out` matches are left out.
    """
    keys = dict.fromkeys(key for row in rows for key in row)
    order = [*(key for key in first if key in keys), *(key for key in keys if key not in first)]
    return [
        column(key, [row.get(key) for row in rows])
        for key in order
        if not (left_out and re.search(left_out, key))
        and any(row.get(key) not in (None, "") for row in rows)
    ]
