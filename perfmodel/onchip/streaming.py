"""Weights that come to a wafer from outside, layer by layer (MemoryX).

A step takes W/link at least, whatever the batch; arithmetic takes as long from

    B = (W/link) / (2·P/peak)

sequences on, below which the machine waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfmodel.compression.network import Compressed
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.expand import active_count


@dataclass(frozen=True)
class Streamed:
    """A step with its weights from outside."""

    link_seconds: float
    """All weights over the link: the floor of a step."""
    sequence_seconds: float
    """Arithmetic of one sequence at the peak."""

    @property
    def hiding_batch(self) -> int:
        """Sequences whose arithmetic takes as long as the link."""
        return math.ceil(self.link_seconds / self.sequence_seconds)

    def seconds(self, batch: int) -> float:
        """Of a step of so many sequences."""
        return max(self.link_seconds, batch * self.sequence_seconds)


def streamed(network: Compressed, device: Device, link_bytes_per_s: float) -> Streamed:
    """A network's weights over a link of so many bytes a second."""
    if not link_bytes_per_s > 0.0:
        raise ProblemError(f"a link of {link_bytes_per_s:g} B/s; give more than 0")
    flops = 2.0 * active_count(network.network, input_embedding=False)
    return Streamed(network.weight_bytes / link_bytes_per_s, flops / device.matrix_flops("fp16"))
