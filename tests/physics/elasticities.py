"""Elasticities: one per cent more of a rate saves between nothing and one per cent of the time."""

from __future__ import annotations

import numpy as np
from draws import KINDS, make
from sample import SIZE, device
from tally import Tally, largest

from perfmodel.analysis.whatif import Sensitivity, whatif
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import names

PHYSICAL = ("bandwidth", "compute rate", "special-function rate", "frequency")
"""Dimensions of what is a rate; numbers of units are a count."""
STEP = "a step, which is told instead"
_MOST = 0.05  # secants over ±10 % of a time that bends


def law(dimension: str) -> str:
    """The name of the law for quantities of a dimension."""
    return f"an elasticity to a {dimension} is -1.05 to 0.05"


def elasticities(seed: int, index: int, n: int = SIZE) -> Tally:
    """Draw sample number `index` of a seed, and check its elasticities to all rates and counts.

    Samples take the devices in turn, so that as many problems are drawn for each.
    """
    draw = np.random.default_rng([seed, index, 2])
    slug, kind = names()[index % len(names())], str(draw.choice(KINDS))
    problem, schedule = make(kind, int(draw.integers(2**32)), n)
    tally = Tally(asked=n)
    try:
        found = whatif(problem, device(slug), schedule=schedule)
    except PerfmodelError:
        return tally
    tally.predicted = n
    for item in found.sensitivities:
        if item.quantity.dimension in (*PHYSICAL, "count"):
            _take(tally, item, kind, slug)
    return tally


def _take(tally: Tally, item: Sensitivity, kind: str, slug: str) -> None:
    """Count the elasticities to one quantity, with those beyond and those that are steps."""
    slope, name = np.asarray(item.elasticity), law(item.quantity.dimension)
    tally.checked[name] += slope.size
    stepping = np.array([bool(text) for text in item.step])
    if stepping.any():
        tally.fallen[STEP, name] += int(stepping.sum())
        tally.saw((STEP, name), 1.0, f"{slug} {kind} {item.quantity.name}")
    beyond = ~stepping & ((slope < -1.0 - _MOST) | (slope > _MOST))
    if beyond.any():
        key, i = (name, kind, item.quantity.name), largest(np.abs(slope), beyond)
        tally.violated[key] += int(beyond.sum())
        tally.saw(key, float(slope[i]), f"{slug} number {i} of the sample")
