"""The time of a block of requests under a policy, from the times of each transfer direction and
machine.

Prefill overlaps three things: transfers to the device (from host and disk), transfers from it (to
host and disk), and work. Decoding has the same transfers. FlexGen's code runs the transfers to the
device before the rest, its paper (2303.06865, section 4.3) beside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from typing import Protocol

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.graph.live import Memory
from perfmodel.graph.tree import Tree
from perfmodel.offload.layershape import LayerShape, Request
from perfmodel.offload.policy import Policy
from perfmodel.offload.policymemory import MOMENTS, spans


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

    @property
    def lanes(self) -> dict[str, Tree]:
        """Its resources, of plain numbers."""
        return {
            name: Tree.part(
                resource,
                "network" if name == "work" else "communication",
                float(np.asarray(getattr(self, name))),
                resource=resource,
            )
            for name, resource in _RESOURCES.items()
        }


_RESOURCES = {
    "to_device": "link to device", "to_host": "link to host", "from_disk": "disk read",
    "to_disk": "disk write", "work": "work",
}  # fmt: skip


class Rates(Protocol):
    """A source of the times of a layer's parts."""

    @property
    def first_comes(self) -> bool:
        """Whether transfers to the device precede all else in decoding."""

    def prefill(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times for all prompt tokens of a block."""

    def decode(self, shape: LayerShape, request: Request, policy: Policy) -> LayerTimes:
        """Times for one token of each sequence, at the mean length of the cache."""


def block_seconds(shape: LayerShape, request: Request, policy: Policy, rates: Rates) -> Number:
    """Seconds of a block, for many policies at once: T = l·T_pre + (n − 1)·l·T_gen (FlexGen,
    section 4.3)."""
    prefill, decode = rates.prefill(shape, request, policy), rates.decode(shape, request, policy)
    step = decode.decode_seconds(first_comes=rates.first_comes)
    return shape.layers * prefill.prefill_seconds() + shape.layers * (request.generated - 1) * step


def predict_block(
    shape: LayerShape, request: Request, policy: Policy, rates: Rates, rooms: Mapping[str, float]
) -> Tree:
    """A block under one policy: its layers in prefill, then in decoding all tokens but the first,
    each with its transfers beside its work; and what each memory of `rooms` holds."""
    first = rates.prefill(shape, request, policy).lanes
    prefill = Tree.beside("layer", "forward", [
        Tree.series("in", "communication", [first["to_device"], first["from_disk"]]),
        Tree.series("out", "communication", [first["to_host"], first["to_disk"]]),
        first["work"],
    ])  # fmt: skip
    each = rates.decode(shape, request, policy).lanes
    ahead = [each.pop("to_device")] if rates.first_comes else []
    decode = Tree.series(
        "layer", "forward", [*ahead, Tree.beside("rest", "forward", each.values())]
    )
    passes = (
        Tree.series("prefill", "forward", [prefill], shape.layers),
        Tree.series("decode", "forward", [decode], shape.layers * (request.generated - 1)),
    )
    return replace(
        Tree.series("block", "network", passes),
        settings={"part": policy.part, "blocks": policy.blocks, **policy.shares},
        phases={each.name: each.seconds for each in passes},
        memory=Memory(spans(shape, request, policy), MOMENTS, rooms),
    )


def _maximum(*times: Number) -> Number:
    return reduce(np.maximum, times)
