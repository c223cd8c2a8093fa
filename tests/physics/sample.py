"""One sample: n random problems of one kind on one device, with all checks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
from bounds import ROUNDING, bounds
from changes import Change, better_devices, larger
from cliffs import CLIFFS, Cliff, tolerance
from draws import KINDS, make
from tally import Tally, largest

from perfmodel.algorithms import Problem
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import Device, load, names
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions

SIZE = 200
"""Problems of a sample: enough that numpy's calls cost little."""

device = cache(load)


@cache
def better(slug: str) -> tuple[tuple[str, Device], ...]:
    """`better_devices`, made once."""
    return tuple(better_devices(device(slug)))


def sample(seed: int, index: int, n: int = SIZE) -> Tally:
    """Draw sample number `index` of a seed, which is always the same, and check it."""
    draw = np.random.default_rng([seed, index])
    slug, kind = str(draw.choice(names())), str(draw.choice(KINDS))
    problem, schedule = make(kind, int(draw.integers(2**32)), n)
    tally = Tally(asked=n)
    before = predicted(problem, device(slug), schedule)
    if before is None:
        return tally
    tally.predicted = len(before)
    for law, excess in bounds(before):
        _bound(tally, law, kind, before, excess)
    for part, faster in better(slug):
        after = predicted(problem, faster, schedule)
        if after is not None:
            _change(tally, Change(kind, part, "×2", before, after))
    for axis, step, grown in larger(problem):
        after = predicted(grown, device(slug), schedule)
        if after is not None:
            _change(tally, Change(kind, axis, step, before, after))
    return tally


def predicted(problem: Problem, on: Device, schedule: str) -> Predictions | None:
    """Predictions, or None where the device has no such rate or no tile fits."""
    try:
        return predict_arrays(problem, on, schedule=schedule)
    except PerfmodelError:
        return None


def _bound(tally: Tally, law: str, kind: str, found: Predictions, excess: np.ndarray) -> None:
    """Count a bound of every prediction."""
    tally.checked[law] += excess.size
    wrong = ~(excess <= 1.0 + ROUNDING)  # what is no number is wrong too
    if wrong.any():
        key, i = (law, kind, found.implementation), largest(excess, wrong)
        tally.violated[key] += int(wrong.sum())
        tally.saw(key, float(excess[i]), described(found, i))


def _change(tally: Tally, change: Change) -> None:
    """Count a change, and check that more work is not faster, nor a better device slower."""
    tally.changed += len(change.before)
    check(tally, change, change.law, change.excess)


def check(
    tally: Tally,
    change: Change,
    law: str,
    excess: np.ndarray,
    cliffs: Sequence[Cliff] = CLIFFS,
    most: float | None = None,
) -> None:
    """Count a check; what exceeds `most`, or the law's tolerance, is a cliff's or a violation."""
    tally.checked[law] += excess.size
    wrong = ~(excess <= (tolerance(change) if most is None else most))
    for cliff in cliffs:
        if not wrong.any():
            return
        steep = wrong & np.asarray(cliff.applies(change))
        if steep.any():
            steep &= excess <= cliff.most(change)
        if steep.any():
            key, i = (cliff.name, law), largest(excess, steep)
            tally.fallen[key] += int(steep.sum())
            tally.saw(key, float(excess[i]), compared(change, i))
            wrong &= ~steep
    if wrong.any():
        key = law, change.kind, change.before.implementation
        tally.violated[key] += int(wrong.sum())
        i = largest(excess, wrong)
        tally.saw(key, float(excess[i]), compared(change, i))


def described(found: Predictions, i: int) -> str:
    """The i-th prediction in a line."""
    one = found.one(i)
    sizes = " ".join(f"{name}={value}" for name, value in one.problem.items())
    tile = " ".join(f"{name}:{value:g}" for name, value in one.tile.items())
    return (
        f"{found.device.slug} {sizes} {one.implementation} [{tile}] "
        f"{one.seconds * 1e6:.3f} us, {one.limiter}"
    )


def compared(change: Change, i: int) -> str:
    """The i-th of a change in a line."""
    after = change.after.one(i)
    tile = " ".join(f"{name}:{value:g}" for name, value in after.tile.items())
    return (
        f"{described(change.before, i)} -> {after.implementation} [{tile}] "
        f"{after.seconds * 1e6:.3f} us, {after.limiter}"
    )
