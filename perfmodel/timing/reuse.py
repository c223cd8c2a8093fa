"""What earlier kernels left of a kernel's inputs in the caches, as reuse distances.

An LRU cache still holds a line if fewer distinct bytes than its capacity were touched since
(Mattson et al. 1970, "Evaluation techniques for storage hierarchies": the stack distance). An input
is therefore described by the bytes touched since its last use. Each cache turns that into a hit
share by the rule for working sets (`traffic.held_share`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.frozen import dataclass


@dataclass(frozen=True)
class Reuse:
    """A share of an input that an earlier kernel touched; numbers, or arrays of one length n."""

    share: Number
    """Share of the input's bytes, from 0 to 1."""
    distance_bytes: Number
    """Reuse distance: bytes touched since each byte of it was, itself included."""
    swept: bool = False
    """Whether every byte has that distance, as where two kernels go over a tensor in the same
    order; otherwise it is about the mean of different distances."""

    def at(self, index: np.ndarray) -> Reuse:
        """The entries of the problems at `index`, where the values are arrays."""
        return replace(
            self,
            share=_entry(self.share, index),
            distance_bytes=_entry(self.distance_bytes, index),
        )

    def column(self) -> Reuse:
        """The same with arrays of shape (n, 1), to broadcast against a menu of tiles."""
        return replace(self, share=_column(self.share), distance_bytes=_column(self.distance_bytes))


Reuses = Mapping[str, Sequence[Reuse]]
"""The reuse of each tensor by name; tensors that are missing come from memory. For an output it
describes the old lines in a cache that will be overwritten."""


def at(reuses: Reuses | None, index: np.ndarray) -> Reuses | None:
    """The reuses of the problems at `index`."""
    if reuses is None:
        return None
    return {name: [one.at(index) for one in said] for name, said in reuses.items()}


def _entry(value: Number, index: np.ndarray) -> Number:
    return value[index] if isinstance(value, np.ndarray) else value


def _column(value: Number) -> Number:
    return value.reshape(-1, 1) if isinstance(value, np.ndarray) else value
