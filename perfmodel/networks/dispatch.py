"""The host beside the device: kernels that are launched ahead, and a device that waits for them.

The host makes one launch after another and does not wait; the device takes them from a queue. Of a
stretch of launches three numbers say everything: the device's seconds D, the host's seconds H, and
the longest way M that goes along the host up to some launch and along the device from there:

    end' = max(end + D, host + M)        host' = host + H

Two stretches after each other are a stretch, and so are r equal ones: (max, +) products.

    D₁₂ = D₁ + D₂    H₁₂ = H₁ + H₂    M₁₂ = max(M₁ + D₂, H₁ + M₂)
    Dᵣ = r·D         Hᵣ = r·H         Mᵣ = M + (r − 1)·max(D, H)
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce


@dataclass(frozen=True)
class Stretch:
    """Launches one after another; times in seconds."""

    device_seconds: float = 0.0
    """All of its kernels and the gaps between them."""
    host_seconds: float = 0.0
    """All of its launches."""
    latest_seconds: float = 0.0
    """From its first launch to its last instruction, on a device that waits for nothing else."""

    @classmethod
    def of(cls, kernel_seconds: float, launch_seconds: float) -> Stretch:
        """One kernel: it starts when its launch is made, and takes what it takes."""
        return cls(kernel_seconds, launch_seconds, launch_seconds + kernel_seconds)

    def then(self, other: Stretch) -> Stretch:
        """This one, and another one after it."""
        return Stretch(
            self.device_seconds + other.device_seconds,
            self.host_seconds + other.host_seconds,
            max(
                self.latest_seconds + other.device_seconds,
                self.host_seconds + other.latest_seconds,
            ),
        )

    def times(self, repeat: int) -> Stretch:
        """Itself, so many times."""
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
        """What each of many equal ones adds: the longer of device and host."""
        return max(self.device_seconds, self.host_seconds)

    @property
    def seconds(self) -> float:
        """From the first launch to the last instruction."""
        return max(self.device_seconds, self.latest_seconds)


def joined(stretches: Iterable[Stretch]) -> Stretch:
    """Stretches after each other."""
    return reduce(Stretch.then, stretches, Stretch())
