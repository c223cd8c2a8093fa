"""Speculative decoding: a draft proposes γ tokens, the target checks them in one pass.

With α the chance that a token is accepted, independent of the others, a pass of the target makes

    E = (1 − α^(γ+1)) / (1 − α)      tokens      (2211.17192, equation 1)

and the speed-up over decoding is E / (γ c + v + overhead), where c is a draft's step over a
target's step (theorem 3.8) and v the target's pass over its step. The theorem has v = 1; here the
pass has B (γ + 1) tokens, so that v grows with the batch: from B (γ + 1) at the ridge on a pass
costs what its tokens cost, and guesses that are refused are paid for.

α depends on networks and texts and is the caller's to give.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.serving.steps import Steps

MOST = 16
"""The largest γ that `best` looks at."""


@dataclass(frozen=True)
class Speculation:
    """What a draft is worth at one γ and batch."""

    gamma: int
    """Tokens that the draft proposes."""
    batch: int
    """Sequences."""
    tokens: float
    """Expected tokens of a pass."""
    draft: float
    """A draft's step over a target's."""
    verify: float
    """The target's pass over its step."""
    seconds: float
    """Of a pass with its drafts."""
    step_seconds: float
    """Of a plain step of the target."""
    speedup: float
    """Over decoding without a draft."""


def expected_tokens(accept: float, gamma: int) -> float:
    """Tokens of a target's pass; raises `ProblemError` for a chance outside 0 to 1."""
    if not 0.0 <= accept <= 1.0:
        raise ProblemError(f"accept is {accept}; it is a chance from 0 to 1")
    if gamma < 0:
        raise ProblemError(f"gamma is {gamma}; it is 0 or more")
    return float(sum(accept**i for i in range(gamma + 1)))


def speedup(accept: float, gamma: int, draft: float, verify: float = 1.0) -> float:
    """Over decoding without a draft, of steps that cost `draft` and a pass that costs `verify`
    steps of the target."""
    return expected_tokens(accept, gamma) / (gamma * draft + verify)


def speculate(
    target: Steps, draft: Steps, accept: float, gamma: int, batch: int, past: int
) -> Speculation:
    """What a draft is worth for `batch` sequences with `past` tokens cached."""
    tokens = expected_tokens(accept, gamma)
    step = float(target.decode(np.array([batch]), np.array([past])).total[0])
    each = float(draft.decode(np.array([batch]), np.array([past])).total[0])
    check = float(target.verify(np.array([batch]), np.array([past]), gamma + 1).total[0])
    seconds = gamma * each + check
    return Speculation(
        gamma, batch, tokens, each / step, check / step, seconds, step, tokens * step / seconds
    )


def best(
    target: Steps, draft: Steps, accept: float, batch: int, past: int, most: int = MOST
) -> Speculation:
    """The γ from 0 on of the largest speed-up; 0 where no draft is worth its time."""
    found = [speculate(target, draft, accept, gamma, batch, past) for gamma in range(1, most + 1)]
    plain = found[0].step_seconds
    none = Speculation(0, batch, 1.0, found[0].draft, 1.0, plain, plain, 1.0)
    return max([none, *found], key=lambda one: one.speedup)
