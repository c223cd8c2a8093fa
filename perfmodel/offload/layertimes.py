"""The time of a layer under a policy, from the times of each transfer direction and machine.

Prefill overlaps three things: transfers to the device (from host and disk), transfers from it (to
host and disk), and work. Decoding has the same transfers. FlexGen's code runs the transfers to the
device before the rest, its paper (2303.06865, section 4.3) beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Protocol

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.offload.layershape import LayerShape, Request
from perfmodel.offload.policy import Policy


@dataclass(frozen=True)
class LayerTimes:
    """Seconds of one layer for a whole block, by resource."""

    to_device: Number
    """From host memory to the device."""
    to_host: Number
    """From the device to host memory."""
    from_disk: Number
    """Reads from disk."""
    to_disk: Number
    """Writes to disk."""
    work: Number
    """Operators on the device, and those that the host computes."""

    def prefill_seconds(self) -> Number:
        """max(in, out, work)."""
        return _maximum(self.to_device + self.from_disk, self.to_host + self.to_disk, self.work)

    def decode_seconds(self, *, first_comes: bool) -> Number:
        """in + max(others) where transfers to the device come first; otherwise the max of all."""
        rest = _maximum(self.to_host, self.from_disk, self.to_disk, self.work)
        return self.to_device + rest if first_comes else _maximum(self.to_device, rest)

    def limiter(self) -> str:
        """The resource with the longest time; for plain numbers."""
        seconds = {
            "link to device": self.to_device,
            "link to host": self.to_host,
            "disk read": self.from_disk,
            "disk write": self.to_disk,
            "work": self.work,
        }
        return max(seconds, key=lambda name: float(np.asarray(seconds[name])))


class Rates(Protocol):
    """A source of the times of a layer's parts."""

    @property
    def first_comes(self) -> bool:
        """Whether transfers to the device precede all else in decoding."""

    def prefill(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times for all prompt tokens of a block."""

    def decode(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times for one token of each sequence, at the mean length of the cache."""


@dataclass(frozen=True)
class Answer:
    """Time of a block of requests under a policy."""

    policy: Policy
    """The policy, or policies."""
    request: Request
    """The tokens of each sequence."""
    prefill: LayerTimes
    """Times of one layer in prefill."""
    decode: LayerTimes
    """Times of one layer and token in decoding."""
    prefill_seconds: Number
    """Seconds of prefill over all layers, T_pre·l."""
    decode_seconds: Number
    """Seconds of decoding over all layers and all tokens but the first, T_gen·(n − 1)·l."""

    @property
    def seconds(self) -> Number:
        """Seconds of the block."""
        return self.prefill_seconds + self.decode_seconds

    @property
    def tokens_per_s(self) -> Number:
        """Generated tokens of all sequences over the block's time."""
        return self.policy.batch * self.request.generated / self.seconds


def answer(shape: LayerShape, request: Request, policy: Policy, rates: Rates) -> Answer:
    """T = l·T_pre + (n − 1)·l·T_gen (FlexGen, section 4.3)."""
    prefill, decode = rates.prefill(shape, request, policy), rates.decode(shape, request, policy)
    step = decode.decode_seconds(first_comes=rates.first_comes)
    return Answer(
        policy,
        request,
        prefill,
        decode,
        shape.layers * prefill.prefill_seconds(),
        shape.layers * (request.generated - 1) * step,
    )


def _maximum(*times: Number) -> Number:
    return reduce(np.maximum, times)
