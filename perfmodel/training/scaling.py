"""Scaling: steps on more and more devices against the step on the fewest, by cause.

With c the device seconds of a token, and c_k those of a cause, efficiency and its losses are

    E(N) = c(N₀) / c(N)        1 − E(N) = Σ_k (c_k(N) − c_k(N₀)) / c(N)

over the causes k: computing, recomputation, communication that kernels wait for, the pipeline's
bubble, the host, and the optimiser (own derivation). Strong scaling keeps the global batch; weak
scaling lets it grow with the devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

from perfmodel.columns import Column, Result
from perfmodel.training.result import Step

WAYS = ("strong", "weak")
"""Strong: the global batch stays; weak: it grows with the devices."""
COMPUTE, RECOMPUTING = "compute", "recomputing"
"""What no other cause takes, and kernels that recomputation runs again."""
CAUSES = (COMPUTE, RECOMPUTING, "communication", "bubble", "host", "optimiser")
"""What takes the time of a step."""


@dataclass(frozen=True)
class Scaled(Result):
    """A step against one on fewer devices."""

    efficiency: Annotated[float, Column("efficiency", show="percent")]
    """Tokens a second and device over those on the fewest devices."""
    shares: Annotated[Mapping[str, float], Column()]
    """Share of the step by cause; they add up to 1."""
    lost: Annotated[Mapping[str, float], Column()]
    """What of the efficiency is lost by cause, below 0 for what is won: 1 − efficiency in all."""


def shares(step: Step) -> dict[str, float]:
    """Share of a step by cause."""
    seconds = {cause: step.classes.get(cause, 0.0) for cause in CAUSES[1:]}
    seconds[RECOMPUTING] = step.recompute_seconds
    return {
        cause: seconds.get(cause, step.seconds - sum(seconds.values())) / step.seconds
        for cause in CAUSES
    }


def scaled(steps: Sequence[Step]) -> list[Scaled]:
    """Each step against that on the fewest devices of its kind."""
    results = []
    for step in steps:
        alike = (each for each in steps if each.device == step.device)
        fewest = min(alike, key=lambda each: each.plan.devices)
        efficiency = step.tokens_per_second_per_device / fewest.tokens_per_second_per_device
        before, now = shares(fewest), shares(step)
        lost = {cause: now[cause] - efficiency * before[cause] for cause in CAUSES}
        results.append(Scaled(efficiency, now, lost))
    return results
