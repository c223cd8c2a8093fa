"""How a run is timed, as far as the device itself feels it: what is in cache, what the data are."""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.timing.constants import Constants

# Timing loops that repeat one kernel without clearing the cache find small inputs in L2; graph
# captures rotate the weights of a matmul, so that those come from memory as they do in a model.
_WARM = {"cuda_graph": 1.0, "cuda_events_eager": 1.0, "wall_clock": 1.0, "profiler": 1.0}
# Loops over prepared inputs, small numbers or zeros, which toggle fewer bits than random ones.
_QUIET = ("cuda_graph", "wall_clock")
_ROTATED = {("cuda_graph", "gemm")}
# Calls one at a time, between which the host leaves the board idle; others follow at once.
_ONE_AT_A_TIME = ("cuda_events_eager", "wall_clock")


@dataclass(frozen=True)
class Circumstances:
    """How a run is timed, as far as the device itself feels it."""

    warm: float = 0.0
    """Share of the inputs that fit in L2 and are still there from the run before."""
    rotated: bool = False
    """Whether the loop cycles through copies of the weights, so that they are never warm in L2."""
    activity: float = 1.0
    """Switching activity of the data relative to random numbers: a factor of energy."""
    lag_seconds: float = 0.0
    """Response time of the power limit, where the board rested before the run."""


def circumstances(harness: str, operator: str, constants: Constants) -> Circumstances:
    """What a harness means for the device; see the tables above."""
    rotated = (harness, operator) in _ROTATED
    rested = harness in _ONE_AT_A_TIME and "lag" not in constants.off
    return Circumstances(
        warm=0.0 if rotated else _WARM.get(harness, 0.0),
        rotated=rotated,
        activity=constants["activity_quiet"] if harness in _QUIET else 1.0,
        lag_seconds=constants["power_lag"] if rested else 0.0,
    )
