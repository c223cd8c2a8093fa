"""What the numbers under a key are: their unit, their heading, and how they are written.

Keys of the tool's results contain their unit (`time_us`, `ttft_ms`, `weight_bytes`,
`tokens_per_s`), so a table's column or a chart's axis needs only its key.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from perfmodel.units import binary, seconds, si

_KINDS = (
    (r"flops_per_s$", "flops_per_s"),
    (r"gb_per_s$", "gb_per_s"),
    (r"bytes_per_s$", "bytes_per_s"),
    (r"flop_per_byte$|intensity|_percent$", "number"),
    (r"_per_(s|token|gpu|device)(_per_device)?$", "number"),
    (r"_us(_|$)", "time"),
    (r"_ms$", "ms"),
    (r"seconds|_s$", "seconds"),
    (r"^(memory|capacity|lacking|total|weights|cache|cache_room|left_alone)_\w*bytes$", "binary"),
    (r"^(context|exchange_buffers|graphs|activations|device|host|disk|problem)_bytes$", "binary"),
    (r"^footprint_bytes$", "binary"),
    (r"bytes", "bytes"),
    (r"flops", "flops"),
    (r"watts", "watts"),
    (r"share(?!d)|coverage|mape|mfu|hit$|explained", "percent"),
)
"""The kind of a key's values, by a part of it; the first match counts."""
_UNIT = re.compile(r"_(us|ms|s|bytes)(?=_|$)")
_SHORT = re.compile(r"\b(ttft|tpot|e2e|isl|osl|mfu)\b")
_SHOWN: Mapping[str, Callable[[float], str]] = {
    "change": lambda value: f"{value:+.0%}" if value else "now",
    "percent": lambda value: f"{value:.0%}" if abs(value) >= 0.0995 else f"{value:.1%}",
    "time": lambda value: seconds(value / 1e6),
    "ms": lambda value: seconds(value / 1e3),
    "seconds": seconds,
    "gb_per_s": lambda value: si(value * 1e9, "B/s"),
    "bytes_per_s": lambda value: si(value, "B/s"),
    "watts": lambda value: si(value, "W"),
    "binary": binary,
    "length": lambda value: f"{value / 1024:g}k" if value >= 1024 else f"{value:g}",
    "bytes": lambda value: si(value, "B"),
    "count": lambda value: si(value, "").rstrip(),
    "year": lambda value: f"{value:.0f}",
    "flops": lambda value: si(value, "FLOP"),
    "flops_per_s": lambda value: si(value, "FLOP/s"),
}

KINDS = frozenset((*_SHOWN, "number"))
"""Every kind of numbers."""


def has_unit(key: str) -> bool:
    """Whether a key names the unit of its numbers, as `time_us` does."""
    return _UNIT.search(key) is not None


def kind_of(key: str) -> str:
    """The kind of numbers under `key`: `ttft_ms` gives "ms"; "number" if the key has no unit."""
    return next((kind for part, kind in _KINDS if re.search(part, key)), "number")


def header_of(key: str) -> str:
    """The key in words, without the unit, which values show: `low_ttft_ms` gives "low TTFT"."""
    if key.endswith("_gb_per_s"):
        return key.removesuffix("_gb_per_s").replace("_", " ") + " bandwidth"
    bare = key if "_per_s" in key else _UNIT.sub("", key)
    words = bare.replace("_per_", "/").replace("_", " ").strip() or key
    return _SHORT.sub(lambda match: match[0].upper(), words)


def ends_of(key: str) -> tuple[str, str]:
    """The keys of the ends of a value's range: `ttft_ms` gives `low_ttft_ms` and `high_ttft_ms`."""
    suffix = {"time_us": "_us", "step_us": "_us", "predicted": ""}.get(key, f"_{key}")
    return f"low{suffix}", f"high{suffix}"


def shown(value: Any, kind: str) -> str:
    """A value with its unit, to three digits; what is no number as it is."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, int | float) or not math.isfinite(value):
        return str(value)
    if kind in _SHOWN:
        return _SHOWN[kind](value)
    return f"{value:.3g}" if abs(value) < 999.5 and value != int(value) else f"{value:.0f}"


def signed(value: float, form: str = "+.2f") -> str:
    """A number with its sign, and a zero without one."""
    text = format(value, form)
    return text if any(digit in text for digit in "123456789") else text[1:]


def tick(value: float, kind: str) -> str:
    """A value at a tick of an axis: "10 ms" where a table has "10.0 ms"; thousands are k."""
    text = si(value, "") if kind == "number" and value >= 1e3 else shown(value, kind)
    return re.sub(r"\.(?=\D|$)", "", re.sub(r"(\.\d*?)0+(?=\D|$)", r"\1", text)).strip()
