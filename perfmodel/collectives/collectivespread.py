"""Ranges of collectives: the errors of predictions that the fit had not seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.collectives.collectiveprediction import CollectiveKnown, DeviceKnown
from perfmodel.collectives.nccl import Method

PATH = Path(__file__).with_name("spread.yaml")
# Half-widths for links without measured runs, and for libraries that another one stands in for: an
# estimate, as natural logarithms (as in `perfmodel.timing.spread`).
_GUESS = 0.7


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table."""
    document: Mapping[str, Any] = yamltable.read(PATH)
    return document


def known(device: str, architecture: str, library: str, *, link_fitted: bool) -> CollectiveKnown:
    """How much is known of a library's collectives on a device of an architecture."""
    facts = table()
    level: DeviceKnown = "sibling" if architecture in facts["architectures"] else "unseen"
    return CollectiveKnown(
        "fitted" if device in facts["devices"] else level,
        "fitted" if library in table()["libraries"] else "assumed",
        "fitted" if link_fitted else "unseen",
    )


def ends(what: CollectiveKnown, method: Method) -> tuple[float, float]:
    """Low and high end over the prediction, as natural logarithms."""
    family = f"{method.algorithm} {method.protocol}"
    key = "fitted" if what.device == "fitted" else "unseen"
    low, high = table()[key].get(family, (-_GUESS, _GUESS))
    if what.link == "unseen" or what.library == "assumed":
        return min(low, -_GUESS), max(high, _GUESS)
    return min(low, 0.0), max(high, 0.0)
