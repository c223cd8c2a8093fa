"""Operator, library, type and tile from a kernel's name, by the patterns of `kernelnames.yaml`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable

UNKNOWN = "unknown"
"""The class of a kernel whose name matches no pattern."""
_TILE = ("bm", "bn", "bk", "head_dim")
_LONGEST = 2000  # characters of a name that are matched


@dataclass(frozen=True)
class Named:
    """What a kernel's name states."""

    kind: str
    """An operator of this package, or transfer, collective, reduction, other, `UNKNOWN`."""
    implementation: str = ""
    """Its library, as the measured-run table names it."""
    dtype: str = ""
    """The type of its operands, where the name states it."""
    tile: Mapping[str, int] = field(default_factory=dict)
    """Extents of the block's tile (bm, bn, bk) and the head dimension, where the name states them.
    """
    ops: str = ""
    """Operators that a compiler fused into it, joined by underscores."""


@dataclass(frozen=True)
class Entry:
    """A line of the table."""

    pattern: re.Pattern[str]
    """Regular expression that is searched in a name."""
    kind: str
    """The class."""
    implementation: str
    """The library of such kernels."""
    example: str
    """A name that it matches."""


@lru_cache(maxsize=1)
def entries() -> tuple[Entry, ...]:
    """Every line, in the order in which they are tried."""
    return tuple(
        Entry(re.compile(row["pattern"]), row["is"], row.get("implementation", ""), row["example"])
        for row in _document()["kernels"]
    )


@lru_cache(maxsize=1)
def _document() -> Mapping[str, Any]:
    document: Mapping[str, Any] = yamltable.read(Path(__file__).with_name("kernelnames.yaml"))
    return document


@lru_cache(maxsize=65536)
def named(kernel: str) -> Named:
    """The statements of a kernel's name, by the first pattern that matches."""
    for entry in entries():
        match = entry.pattern.search(kernel[:_LONGEST])
        if match is not None:
            parts = {name: text for name, text in match.groupdict().items() if text}
            tile = {name: int(text) for name, text in parts.items() if name in _TILE}
            dtype = _document()["types"].get(parts.get("type", ""), "")
            return Named(entry.kind, entry.implementation, dtype, tile, parts.get("ops", ""))
    return Named(UNKNOWN)


def short(kernel: str, most: int = 48) -> str:
    """A kernel's name without its types and arguments."""
    text = re.sub(r"\(anonymous namespace\)::", "", kernel)
    words = text.split("<")[0].split("(")[0].split("::")[-1].split()
    is_signature = bool(words) and ("<" in text or "(" in text)
    name = words[-1] if is_signature else kernel.strip()
    return name if len(name) <= most else f"{name[: most - 3]}..."
