"""Launch overhead: the host launches kernels ahead of a device that takes them from a queue.

The host launches without waiting for the device. A stretch of launches needs three numbers: the
device's seconds D, the host's seconds H, and the critical path M. M is the longest path that
follows the host up to one launch and the device from there on:

    end' = max(end + D, host + M)        host' = host + H

Two stretches one after the other are a stretch again, and so are r equal ones. These are products
in the (max, +) algebra:

    D₁₂ = D₁ + D₂    H₁₂ = H₁ + H₂    M₁₂ = max(M₁ + D₂, H₁ + M₂)
    Dᵣ = r·D         Hᵣ = r·H         Mᵣ = M + (r − 1)·max(D, H)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Stretch:
    """Consecutive launches; times in seconds."""

    device_seconds: float = 0.0
    """Time of the kernels on the device, with the gaps between them."""
    host_seconds: float = 0.0
    """Time of the launches on the host."""
    latest_seconds: float = 0.0
    """Critical path from the first launch to the end of the last kernel, on an idle device."""

    @classmethod
    def of(cls, kernel_seconds: float, launch_seconds: float) -> Stretch:
        """One kernel: it starts when its launch is made, and runs for `kernel_seconds`."""
        return cls(kernel_seconds, launch_seconds, launch_seconds + kernel_seconds)

    def then(self, other: Stretch) -> Stretch:
        """This stretch followed by another one."""
        return Stretch(
            self.device_seconds + other.device_seconds,
            self.host_seconds + other.host_seconds,
            max(
                self.latest_seconds + other.device_seconds,
                self.host_seconds + other.latest_seconds,
            ),
        )

    def times(self, repeat: int) -> Stretch:
        """This stretch `repeat` times in a row."""
        if repeat < 1:
            return Stretch()
        slower = max(self.device_seconds, self.host_seconds)
        return Stretch(
            repeat * self.device_seconds,
            repeat * self.host_seconds,
            self.latest_seconds + (repeat - 1) * slower,
        )

    @property
    def steady_seconds(self) -> float:
        """What each of many equal stretches adds: the longer of device and host time."""
        return max(self.device_seconds, self.host_seconds)

    @property
    def seconds(self) -> float:
        """From the first launch to the end of the last kernel."""
        return max(self.device_seconds, self.latest_seconds)


def joined(stretches: Iterable[Stretch]) -> Stretch:
    """The stretches one after another, as one."""
    return reduce(Stretch.then, stretches, Stretch())
