"""Weights streamed to a wafer from outside, layer by layer (MemoryX).

A step takes at least W/link, for any batch. Arithmetic takes as long from

    B = (W/link) / (2·P/peak)

sequences on; below, the machine waits. W: bytes of weights; P: their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.expand import active_count


@dataclass(frozen=True)
class Streamed:
    """A step with streamed weights."""

    link_seconds: float
    """Seconds of all weights on the link: the lower bound of a step."""
    sequence_seconds: float
    """Seconds of arithmetic for one sequence, at the peak."""

    @property
    def hiding_batch(self) -> int:
        """Sequences whose arithmetic takes as long as the link."""
        return math.ceil(self.link_seconds / self.sequence_seconds)

    def seconds(self, batch: int) -> float:
        """Seconds of a step of `batch` sequences."""
        return max(self.link_seconds, batch * self.sequence_seconds)


def streamed(network: Compressed, device: Device, link_bytes_per_s: float) -> Streamed:
    """A network's weights over a link of `link_bytes_per_s`."""
    if not link_bytes_per_s > 0.0:
        raise ProblemError(f"a link of {link_bytes_per_s:g} B/s; give more than 0")
    flops = 2.0 * active_count(network.network, input_embedding=False)
    return Streamed(network.weight_bytes / link_bytes_per_s, flops / device.matrix_flops("fp16"))
