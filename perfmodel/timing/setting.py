"""What every plan is made for: a device, the constants of the model, and how the run is timed."""

from __future__ import annotations

from dataclasses import dataclass, field

from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine


@dataclass(frozen=True)
class Setting:
    """A device, the constants of the model, and how the run is timed."""

    machine: Machine
    """The device in SI units."""
    constants: Constants
    """Shares and prices of the model."""
    run: Circumstances = field(default_factory=Circumstances)
    """What the device feels of the way in which it is timed."""

    def at_clock(self, name: str) -> float:
        """Seconds of a constant at the device's clock."""
        return float(self.machine.at_clock(self.constants[name]))

    def small_kernel_seconds(self, steps: int) -> float:
        """Seconds of a kernel of a few blocks before another: the gap, its blocks, and so many
        loads, sums and stores that wait for each other in the L2.
        """
        launched = self.at_clock("kernel_gap") + self.at_clock("block_price")
        return launched + steps * self.machine.l2_latency
