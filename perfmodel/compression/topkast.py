"""Top-KAST (Jayakumar et al., 2106.03517): training with sparse forward and backward passes.

The forward pass uses the D_f largest weights of each matrix; the backward pass computes gradients
of the D_b ≥ D_f largest. Of the three products of a step, forward and input gradient read the first
set, and the weight gradient fills the second (section 2.2):

    operations / dense = (2 D_f + D_b) / 3

All weights stay in memory, at least on the host, since the sets are chosen again at intervals.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.errors import ProblemError


@dataclass(frozen=True)
class TopKast:
    """Densities of both passes. Raises `ProblemError`."""

    forward: float
    """Share of the weights in the forward pass, D_f."""
    backward: float
    """Share of the weights that have gradients, D_b."""

    def __post_init__(self) -> None:
        if not 0.0 < self.forward <= self.backward <= 1.0:
            raise ProblemError(
                f"top-kast: densities {self.forward:g} forward and {self.backward:g} backward; "
                "give 0 < forward <= backward <= 1"
            )

    @property
    def flops_share(self) -> float:
        """Operations of a step over those of a dense step."""
        return (2.0 * self.forward + self.backward) / 3.0

    def seconds(self, products_seconds: float, other_seconds: float) -> tuple[float, float]:
        """Seconds of a step on hardware that skips zeros, and on hardware that does not.

        The arguments are the seconds of a dense step's products and of everything else. GPUs
        without sparse kernels are the second case.
        """
        return (
            self.flops_share * products_seconds + other_seconds,
            products_seconds + other_seconds,
        )
