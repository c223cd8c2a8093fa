"""FlexGen's policy (2303.06865): the shares of weights, cache and activations in each memory.

A block of `batch` sequences finishes a layer before the next layer's weights are needed. It is
processed in `blocks` parts that each fit on the device. `w`, `c` and `x` are the shares of weights,
cache and activations on device, host and disk; each three add up to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError

Shares = tuple[Number, Number, Number]
"""On device, host and disk."""
PLACES = ("device", "host", "disk")
"""Memories, in the order of shares."""


@dataclass(frozen=True)
class Policy:
    """A placement of all data. Shares may be arrays of one length: many policies at once."""

    part: int
    """Sequences that the device processes at a time."""
    blocks: int
    """Parts of a block; a layer's weights are loaded once for all of them."""
    weights: Shares
    """Shares of the layers' weights."""
    cache: Shares
    """Shares of keys and values."""
    activations: Shares
    """Shares of the activations between layers."""

    def __post_init__(self) -> None:
        for name in ("part", "blocks"):
            if getattr(self, name) < 1:
                raise ProblemError(f"policy: {name} is {getattr(self, name)}; it is 1 or more")
        for name in ("weights", "cache", "activations"):
            shares = [np.asarray(share) for share in getattr(self, name)]
            if any(np.any(share < -1e-9) for share in shares):
                raise ProblemError(f"policy: a share of {name} is below 0")
            if not np.allclose(sum(shares), 1.0):
                raise ProblemError(f"policy: the shares of {name} do not add up to 100 %")

    @property
    def batch(self) -> int:
        """Sequences of a block."""
        return self.part * self.blocks

    @property
    def shares(self) -> dict[str, float]:
        """Each share by its name; of one policy."""
        return {
            f"{data}_{place}": float(np.asarray(share))
            for data in ("weights", "cache", "activations")
            for place, share in zip(PLACES, getattr(self, data), strict=True)
        }


def of_percent(part: int, blocks: int, percent: Sequence[float]) -> Policy:
    """A policy from FlexGen's six percentages: device and host for weights, for cache, for
    activations.

    The rest is on disk. Raises `ProblemError` if there are not six, or if a pair exceeds 100.
    """
    if len(percent) != 6:
        raise ProblemError(
            f"a policy has six numbers, not {len(percent)}: percent of the weights on device and "
            "host, of the cache, of the activations, such as 20,80,0,100,0,100"
        )
    pairs = [(percent[i] / 100.0, percent[i + 1] / 100.0) for i in (0, 2, 4)]
    weights, cache, activations = ((a, b, 1.0 - a - b) for a, b in pairs)
    return Policy(part, blocks, weights, cache, activations)
