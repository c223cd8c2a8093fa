"""What kernels before this one left of its inputs in the caches, as reuse distances.

A cache that replaces what was used longest ago still holds a line if fewer bytes than it keeps went
by since (Mattson et al. 1970, "Evaluation techniques for storage hierarchies": the stack distance).
So an input is said to be found by the bytes that were touched since it was, and each cache answers
by the rule that it keeps a working set by (`traffic.held_share`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.arithmetic import Number


@dataclass(frozen=True)
class Reuse:
    """A share of an input that an earlier kernel touched; numbers, or arrays of one length n."""

    share: Number
    """Of the bytes of the input, from 0 to 1."""
    distance_bytes: Number
    """Bytes touched since each of its own was, itself included."""
    swept: bool = False
    """Whether that is the distance of every byte, as where one kernel goes over what another one
    went over before in the same order; else it is about the mean of distances that differ."""

    def at(self, index: np.ndarray) -> Reuse:
        """That of the problems at `index`, where it holds arrays."""
        return replace(
            self,
            share=_each(self.share, index),
            distance_bytes=_each(self.distance_bytes, index),
        )

    def column(self) -> Reuse:
        """With arrays as columns of shape (n, 1), beside a menu of tiles."""
        return replace(self, share=_column(self.share), distance_bytes=_column(self.distance_bytes))


Reuses = Mapping[str, Sequence[Reuse]]
"""What is said of each input, by its tensor's name; what is not named comes from memory. Of an
output it says how much of what was there before lies in a cache to be written over."""


def at(reuses: Reuses | None, index: np.ndarray) -> Reuses | None:
    """What is said of the problems at `index`."""
    if reuses is None:
        return None
    return {name: [one.at(index) for one in said] for name, said in reuses.items()}


def _each(value: Number, index: np.ndarray) -> Number:
    return value[index] if isinstance(value, np.ndarray) else value


def _column(value: Number) -> Number:
    return value.reshape(-1, 1) if isinstance(value, np.ndarray) else value
