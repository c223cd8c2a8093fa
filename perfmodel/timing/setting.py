"""The setting of every plan: device, constants, how the run is timed, the caller's own tile."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np

from perfmodel.frozen import dataclass
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine

# Default warps of a caller's own block: those of triton.Config.
_WARPS = 4.0


@dataclass(frozen=True)
class Setting:
    """Device, model constants, how the run is timed, and the caller's own tile."""

    machine: Machine
    """The device in SI units."""
    constants: Constants
    """Constants of the time model."""
    run: Circumstances = field(default_factory=Circumstances)
    """How the run is timed, as far as it affects the device."""
    tile: Mapping[str, np.ndarray] = field(default_factory=dict)
    """The caller's own tile by dimension, shape (n, 1); empty: the library's menu is searched."""

    @property
    def own_threads(self) -> np.ndarray:
        """Threads of a block of the caller's own tile, shape (n, 1)."""
        warps = self.tile.get("warps", np.full((1, 1), _WARPS))
        return np.asarray(warps * self.machine.warp_threads)

    def at_clock(self, name: str) -> float:
        """Seconds of a constant at the device's clock."""
        return float(self.machine.at_clock(self.constants[name]))

    @property
    def further_seconds(self) -> float:
        """Seconds until a further kernel of a call loads its data: the gap, and its own start."""
        return self.at_clock("kernel_gap") + self.at_clock("kernel_start")

    def small_kernel_seconds(self, steps: int) -> float:
        """Seconds of a further kernel of a few blocks: until it starts, its blocks, and `steps`
        dependent accesses of the L2."""
        start = self.further_seconds + self.at_clock("block_price")
        return start + steps * self.machine.l2_latency
