"""Ranges of collectives: how far predictions have missed those that the fit had not seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.collectives.prediction import CollectiveKnown

PATH = Path(__file__).with_name("spread.yaml")
# Links that no run was compared on, and libraries that another one stands for: an honest first
# guess, in ln (as `perfmodel.timing.spread`).
_GUESS = 0.7


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table."""
    found: Mapping[str, Any] = yamltable.read(PATH)
    return found


def known(device: str, library: str, link_fitted: bool) -> CollectiveKnown:
    """What is known of collectives of a library on a device."""
    return CollectiveKnown(
        "fitted" if device in table()["devices"] else "unseen",
        "fitted" if library in table()["libraries"] else "assumed",
        "fitted" if link_fitted else "unseen",
    )


def ends(what: CollectiveKnown, protocol: str) -> tuple[float, float]:
    """ln of the low and the high end over the prediction."""
    low, high = table()[what.device].get(protocol, (-_GUESS, _GUESS))
    if what.link == "unseen" or what.library == "assumed":
        return min(low, -_GUESS), max(high, _GUESS)
    return min(low, 0.0), max(high, 0.0)
