"""Speculative decoding: a draft proposes γ tokens, the target verifies them in one pass.

α is the probability that a token is accepted, independent of the others. A pass of the target makes

    E = (1 − α^(γ+1)) / (1 − α)      tokens      (2211.17192, equation 1)

The speed-up over plain decoding is E / (γ c + v + overhead): c is a draft's step over a target's
step (theorem 3.8), v the target's pass over its step. The theorem has v = 1. Here the pass has B (γ
+ 1) tokens, so v grows with the batch. Once B (γ + 1) reaches the ridge point, a pass costs in
proportion to its tokens, rejected ones included.

α depends on networks and texts, so the caller gives it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.serving.deployment import expected_tokens
from perfmodel.serving.steps import Steps

MOST = 16
"""The largest γ that `best` tries."""


@dataclass(frozen=True)
class Speculation:
    """The gain of a draft at one γ and batch."""

    gamma: int
    """Tokens that the draft proposes."""
    batch: int
    """Sequences."""
    tokens: float
    """Expected tokens of a pass."""
    draft: float
    """A draft's step over a target's step, c."""
    verify: float
    """The target's pass over its step, v."""
    seconds: float
    """Seconds of a pass with its drafts."""
    step_seconds: float
    """Seconds of a plain step of the target."""

    @property
    def speedup(self) -> float:
        """Speed-up over decoding without a draft."""
        return self.tokens * self.step_seconds / self.seconds


def speculate(
    target: Steps, draft: Steps, accept: float, gamma: int, batch: int, past: int
) -> Speculation:
    """The gain of a draft for `batch` sequences with `past` tokens cached; none of γ = 0."""
    sizes = np.array([batch]), np.array([past])
    step, cost = (float(steps.decode(*sizes).total[0]) for steps in (target, draft))
    check = float(target.verify(*sizes, gamma + 1).total[0]) if gamma else step
    return Speculation(
        gamma, batch, expected_tokens(accept, gamma), cost / step, check / step,
        gamma * cost + check, step,
    )  # fmt: skip


def best(target: Steps, draft: Steps, accept: float, batch: int, past: int) -> Speculation:
    """The γ with the largest speed-up, from 0 to `MOST`; 0 where no draft is worth its time."""
    gains = (speculate(target, draft, accept, gamma, batch, past) for gamma in range(MOST + 1))
    return max(gains, key=lambda gain: gain.speedup)
