"""Weights streamed from host memory each time a layer runs (ZeRO-Inference, Accelerate).

A pass takes at least W/v: bytes of weights over the link's rate. A batch of B hides that once its
own work takes as long: B ≥ (W/v)/(t/B), with t the seconds of work of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from perfmodel.hardware import Device
from perfmodel.networks.setting import step
from perfmodel.offload.layershape import Stored, of_network, predicted
from perfmodel.offload.links import host_bytes_per_s

_MOST = 2**16


@dataclass(frozen=True)
class Streaming:
    """A decode step of a network with weights in host memory and its cache on the device."""

    network: Stored
    """The network, with its weights as they are stored."""
    device: Device
    """The device."""
    context: int
    """Tokens of each sequence, the new one included."""
    away: float = 1.0
    """Share of the layers' weights that are streamed."""

    @cached_property
    def link_seconds(self) -> float:
        """Seconds of the weights on the link, the lower bound of every step."""
        shape = of_network(self.network)
        volume = self.away * shape.layers * shape.weight_bytes
        return volume / host_bytes_per_s(self.device)

    def work_seconds(self, batch: int) -> float:
        """Seconds of the step with resident weights."""
        return predicted(self.network, step(batch, self.context), self.device).seconds

    def seconds(self, batch: int) -> float:
        """Seconds of the step: the link overlapped with the work."""
        return max(self.link_seconds, self.work_seconds(batch))

    @cached_property
    def hiding_batch(self) -> int | None:
        """The smallest batch whose work takes as long as the link; None if 65,536 is too small.

        Work increases with the batch, so bisection finds it.
        """
        if self.work_seconds(_MOST) < self.link_seconds:
            return None
        low, high = 0, _MOST
        while high - low > 1:
            middle = (low + high) // 2
            if self.work_seconds(middle) < self.link_seconds:
                low = middle
            else:
                high = middle
        return high
