"""Ranges of collectives: the errors of predictions that the fit had not seen."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from perfmodel import yamltable
from perfmodel.collectives.collectiveprediction import CollectiveKnown, DeviceKnown, LinkKnown
from perfmodel.collectives.nccl import Method
from perfmodel.collectives.route import Route

PATH = Path(__file__).with_name("spread.yaml")
# Half-widths for links without measured runs, and for libraries that another one stands in for: an
# estimate, as natural logarithms (as in `perfmodel.timing.spread`).
_GUESS = 0.7


@lru_cache(maxsize=1)
def table() -> Mapping[str, Any]:
    """The shipped table."""
    document: Mapping[str, Any] = yamltable.read(PATH)
    return document


def known(device: str, architecture: str, library: str, links: Route | None) -> CollectiveKnown:
    """How much is known of a library's collectives on a device of an architecture, over links;
    None: of a single rank."""
    facts = table()
    level: DeviceKnown = "sibling" if architecture in facts["architectures"] else "unseen"
    return CollectiveKnown(
        "fitted" if device in facts["devices"] else level,
        "fitted" if library in table()["libraries"] else "assumed",
        "fitted" if links is None else _link(links),
    )


def _link(links: Route) -> LinkKnown:
    """What is known of the links: of fabrics the generations of the fit, else the name alone."""
    if not links.on_fabric:
        return "unseen"
    generation = links.inner.level.generation
    if generation in table()["links"]:
        return "fitted"
    names = {name.rstrip("0123456789") for name in table()["links"]}
    return "sibling" if generation.rstrip("0123456789") in names else "unseen"


def ends(what: CollectiveKnown, method: Method, links: Route) -> tuple[float, float]:
    """Low and high end over the prediction, as natural logarithms: of a device and a link of the
    fit those of this generation of link, else those of devices left out."""
    family = f"{method.algorithm} {method.protocol}"
    facts = table()
    ranges = facts["unseen"]
    if (what.device, what.link) == ("fitted", "fitted"):
        ranges = {**facts["fitted"], **facts["links"][links.inner.level.generation]}
    low, high = ranges.get(family, (-_GUESS, _GUESS))
    if what.link == "unseen" or what.library == "assumed":
        return min(low, -_GUESS), max(high, _GUESS)
    return min(low, 0.0), max(high, 0.0)
