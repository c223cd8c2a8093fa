"""Pairs of neighbours: random problems of one kind on one device, and the same with one more."""

from __future__ import annotations

import numpy as np
from changes import Change, larger
from draws import KINDS, make
from jumps import JUMPS, MOST, excess
from sample import SIZE, check, device, predicted
from tally import Tally

from perfmodel.hardware import names

LAW = f"one more takes at most {MOST:g} times its proportion"
TYPES = ("matmul int8", "matmul fp64", "matmul nvfp4", "matmul w8a16")


def neighbours(seed: int, index: int, n: int = SIZE) -> Tally:
    """Draw sample number `index` of a seed, which is always the same, and check its pairs."""
    draw = np.random.default_rng([seed, index, 1])
    slug, kind = str(draw.choice(names())), str(draw.choice((*KINDS, *TYPES)))
    problem, schedule = make(kind, int(draw.integers(2**32)), n)
    tally = Tally(asked=n)
    before = predicted(problem, device(slug), schedule)
    if before is None:
        return tally
    tally.predicted = len(before)
    for axis, step, grown in larger(problem):
        after = predicted(grown, device(slug), schedule) if step == "+1" else None
        if after is not None:
            change = Change(kind, axis, step, before, after)
            check(tally, change, change.law, change.excess)
            check(tally, change, LAW, excess(change), JUMPS, MOST)
    return tally
