"""How a run is timed, as far as it affects the device: cache contents, data, rest before the
run."""

from __future__ import annotations

from perfmodel.frozen import dataclass
from perfmodel.timing.constants import Constants


@dataclass(frozen=True)
class Circumstances:
    """How a run is timed, as far as it affects the device."""

    warm: float = 0.0
    """Share of the inputs that fit in L2 and that the run before left there."""
    repeats: bool = False
    """Whether the run before was of the same kernel, on the same memory."""
    copies: float = 1.0
    """Copies of its operands that a timing loop takes in turn: each is used again after that many
    calls."""
    turns: tuple[str, ...] = ("weights",)
    """Roles of the tensors that have copies."""
    activity: float = 1.0
    """Switching activity of the data relative to random numbers: a factor of energy."""
    lag_seconds: float = 0.0
    """Response time of the power limit, where the board rested before the run; else 0."""


def circumstances(harness: str, operator: str, constants: Constants) -> Circumstances:
    """What a harness means for the device. Raises `ProblemError` for an unknown harness."""
    run = constants.run(harness)
    rested = run.one_at_a_time and "lag" not in constants.off
    return Circumstances(
        warm=run.warm,
        repeats=run.repeats,
        copies=run.copies if operator in run.rotates else 1.0,
        activity=run.activity,
        lag_seconds=constants["power_lag"] if rested else 0.0,
    )
