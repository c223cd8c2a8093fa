"""How long a layer takes under a policy, from what each way and each machine needs for it.

Prefill overlaps three things: what comes to the device (from host and from disk), what leaves it
(to host and on to disk), and work. Decoding moves the same ways; FlexGen's own code puts what
comes to the device before the rest, its paper (2303.06865, section 4.3) beside it.
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
    """Seconds of one layer for a whole block, by what is kept busy."""

    to_device: Number
    """From host memory over the link."""
    to_host: Number
    """Back over it."""
    from_disk: Number
    """Read."""
    to_disk: Number
    """Written."""
    work: Number
    """Operators on the device, and those that the host takes over."""

    def prefill_seconds(self) -> Number:
        """max(in, out, work)."""
        return _longest(self.to_device + self.from_disk, self.to_host + self.to_disk, self.work)

    def decode_seconds(self, *, first_comes: bool) -> Number:
        """in + max(others) where what comes to the device comes first, else max of all."""
        others = _longest(self.to_host, self.from_disk, self.to_disk, self.work)
        return self.to_device + others if first_comes else _longest(self.to_device, others)

    def limiter(self) -> str:
        """What takes longest, of plain numbers."""
        named = {
            "link to device": self.to_device,
            "link to host": self.to_host,
            "disk read": self.from_disk,
            "disk write": self.to_disk,
            "work": self.work,
        }
        return max(named, key=lambda name: float(np.asarray(named[name])))


class Rates(Protocol):
    """Something that knows how long a layer's parts take."""

    @property
    def first_comes(self) -> bool:
        """Whether in decoding what comes to the device comes before the rest."""

    def prefill(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Of all prompt tokens of a block."""

    def decode(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Of one token of each sequence, at the mean length of the cache."""


@dataclass(frozen=True)
class Answer:
    """How long a block of requests takes under a policy."""

    policy: Policy
    """The policy, or policies."""
    request: Request
    """What is asked of each sequence."""
    prefill: LayerTimes
    """Of one layer."""
    decode: LayerTimes
    """Of one layer and token."""
    prefill_seconds: Number
    """Of all layers, T_pre·l."""
    decode_seconds: Number
    """Of all layers and all tokens but the first, T_gen·(n − 1)·l."""

    @property
    def seconds(self) -> Number:
        """Of the block."""
        return self.prefill_seconds + self.decode_seconds

    @property
    def tokens_per_s(self) -> Number:
        """Generated tokens of all sequences over all of its time."""
        return self.policy.batch * self.request.generated / self.seconds


def answer(shape: LayerShape, request: Request, policy: Policy, rates: Rates) -> Answer:
    """T = l·T_pre + (n − 1)·l·T_gen (FlexGen, section 4.3)."""
    before, after = rates.prefill(shape, request, policy), rates.decode(shape, request, policy)
    each = after.decode_seconds(first_comes=rates.first_comes)
    return Answer(
        policy,
        request,
        before,
        after,
        shape.layers * before.prefill_seconds(),
        shape.layers * (request.generated - 1) * each,
    )


def _longest(*times: Number) -> Number:
    return reduce(np.maximum, times)
