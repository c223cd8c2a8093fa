"""What every plan is made for: a device, the constants, how the run is timed, a tile of its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine

# Warps of a block of the caller's own that does not say: those of triton.Config.
_WARPS = 4.0


@dataclass(frozen=True)
class Setting:
    """A device, the constants of the model, how the run is timed, and what tile is asked for."""

    machine: Machine
    """The device in SI units."""
    constants: Constants
    """Shares and prices of the model."""
    run: Circumstances = field(default_factory=Circumstances)
    """What the device feels of the way in which it is timed."""
    tile: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The caller's own tile by dimension, shape (n, 1); empty: the library's menu is searched."""

    @property
    def own_threads(self) -> np.ndarray:
        """Threads of a block of the caller's own, shape (n, 1)."""
        warps = self.tile.get("warps", np.full((1, 1), _WARPS))
        return np.asarray(warps * self.machine.warp_threads)

    def at_clock(self, name: str) -> float:
        """Seconds of a constant at the device's clock."""
        return float(self.machine.at_clock(self.constants[name]))

    def small_kernel_seconds(self, steps: int) -> float:
        """Seconds of a kernel of a few blocks before another: the gap, its blocks, and so many
        loads, sums and stores that wait for each other in the L2.
        """
        launched = self.at_clock("kernel_gap") + self.at_clock("block_price")
        return launched + steps * self.machine.l2_latency
