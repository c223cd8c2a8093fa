"""A fixed number of slices for small grids.

Source: vLLM, triton_unified_attention.py (NUM_PAR_SOFTMAX_SEGMENTS, MIN_LAUNCH_GRID_SIZE_2D).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from perfmodel.frozen import dataclass
from perfmodel.timing.cuts.grid import Sizes, Tile, columns
from perfmodel.timing.machine import Machine


@dataclass(frozen=True)
class SegmentsCut:
    """Slices of the keys: a fixed number, for small grids of sequences times key-value heads.

    Slices are whole tiles of all keys, so the last ones of short rows have none, nor have those
    that a window hides.
    """

    rule: Literal["segments"]
    """This rule."""
    slices: Annotated[int, "slices"]
    """Slices of a small grid."""
    most_blocks: Annotated[int, "blocks"]
    """Largest grid, sequences times key-value heads, that is cut."""

    def number(self, sizes: Sizes, tile: Tile, machine: Machine) -> np.ndarray:
        """Numbers of slices, shape (n, 1)."""
        b, g = columns(sizes, "bg")
        return np.where(b * g <= self.most_blocks, float(self.slices), 1.0)
