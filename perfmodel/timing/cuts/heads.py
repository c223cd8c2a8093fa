"""A head spread over blocks, in kernels that stream queries under an outer loop over keys.

Source: FlashAttention, fmha_fwd_launch_template.h and fmha_bwd_launch_template.h
(num_splits_heuristic_fwd, num_splits_heuristic_bwd).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.frozen import dataclass
from perfmodel.timing.cuts.grid import Sizes, columns, last_wave
from perfmodel.timing.machine import Machine


@dataclass(frozen=True)
class HeadsCut:
    """How FlashAttention-1 spreads a head over blocks.

    Forward, the queries are cut into slices. Backward, a block takes one tile of keys or a whole
    head, whichever fills waves better; a unit holds one block. The fill with tiles counts for less
    by a tile's share of the keys (half of that under a causal mask), since dQ has to be zeroed
    before and converted after.
    """

    rule: Literal["heads"]
    """This rule."""
    blocks_per_unit: Annotated[int, "blocks"] = 2
    """Blocks a unit that the forward rule assumes."""
    near: Annotated[float, "of the best fill"] = 0.95
    """Forward: fill of the last wave, over that of the best number of slices, from which a number
    is good enough; the smallest such number is taken."""
    most: Annotated[int, "slices"] = 30
    """Forward: most slices of the queries."""
    spread: Annotated[int, "tiles"] = 10
    """Backward under a causal mask: heads of at least so many key tiles are always spread."""

    def of_queries(self, sizes: Sizes, machine: Machine) -> np.ndarray:
        """Numbers of slices of a head's queries, shape (n, 1)."""
        b, g, r = columns(sizes, "bgr")
        slices = np.arange(1.0, self.most + 1)[None]
        fill = last_wave(b * g * r * slices / (machine.units * self.blocks_per_unit))
        fills = fill > self.near * fill.max(axis=1, keepdims=True)
        return np.asarray(np.argmax(fills, axis=1)[:, None] + 1.0)

    def of_keys(self, sizes: Sizes, bc: Number, machine: Machine, *, causal: bool) -> np.ndarray:
        """Numbers of slices of a head's keys in the backward pass, shape (n, 1)."""
        b, g, r, x = columns(sizes, "bgrx")
        heads, tiles = b * g * r / machine.units, np.ceil(x / bc)
        gain = last_wave(heads * tiles) / (1.0 + (0.5 if causal else 1.0) * bc / x)
        spread = (gain > last_wave(heads)) | (causal & (tiles >= self.spread))
        return np.where(spread, tiles, 1.0)
