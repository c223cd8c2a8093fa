"""All-reduce kernels of frameworks, and the sizes at which NCCL runs instead.

One-shot: each rank reads every rank's buffer and sums it, between two barriers. Two-shot: each rank
sums its share, then reads the other shares (`custom.yaml` has limits and sources).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from perfmodel import yamltable
from perfmodel.collectives.method import Method
from perfmodel.collectives.route import Route

ONE_SHOT, TWO_SHOT = Method("one-shot", "direct"), Method("two-shot", "direct")


@lru_cache(maxsize=1)
def libraries() -> Mapping[str, Mapping[str, Any]]:
    """Libraries with kernels of their own, by name."""
    found: Mapping[str, Mapping[str, Any]] = yamltable.read(
        Path(__file__).with_name("custom.yaml")
    )["libraries"]
    return found


def spelt(name: str) -> str:
    """The library with this name in tables."""
    said = name.lower()
    return next((k for k, v in libraries().items() if said in v.get("aliases", ())), said)


def runs(library: str, op: str, route: Route, bytes_: np.ndarray) -> np.ndarray:
    """Where the library's own kernel runs: few bytes, and ranks with direct links."""
    known = libraries()[library]
    sees = len(route.crossings) == 1 and route.inner.level.medium == "fabric"
    if op != "all-reduce" or not sees or route.ranks not in known["ranks"]:
        return np.zeros(bytes_.shape, dtype=bool)
    return np.asarray(bytes_ <= known["most_bytes"])


def one_shot(library: str, route: Route, bytes_: np.ndarray) -> np.ndarray:
    """Where the one-shot kernel runs."""
    return np.asarray(bytes_ < libraries()[library]["one_shot_below"][route.ranks])
