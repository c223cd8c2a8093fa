"""An even share of all key tiles for every unit.

Source: FlashAttention-3, flash_prepare_scheduler.cu, and heuristics.h for grids of many queries.
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from perfmodel.frozen import dataclass
from perfmodel.timing.cuts.grid import Sizes, Tile, columns
from perfmodel.timing.machine import Machine

# Most queries of calls that vLLM captures in a graph (max_cudagraph_capture_size), and sequences
# that a warp of FlashAttention's tile scheduler scans at a time (tile_scheduler.hpp).
CAPTURED, SEARCHED = 512, 31


@dataclass(frozen=True)
class EvenCut:
    """Slices of the keys: each has at least an even share of all key tiles.

    With n key tiles a row block, each unit's share is ⌈`margin` · all tiles / units⌉ tiles, and
    there are ⌈n / share⌉ slices. With a paged cache and up to `CAPTURED` sequences, the kernel that
    can slice and the combining kernel run even for one slice. Every unit searches its next tile
    among `SEARCHED` sequences at a time.
    """

    rule: Literal["even"]
    """This rule."""
    margin: Annotated[float, "of an even share"] = 1.1
    """A unit's share over its part of all tiles."""
    full: Annotated[float, "of the units"] = 0.8
    """Grids of many queries are cut only where one sequence has fewer row blocks than this share of
    the units."""
    whole_tiles: Annotated[int, "tiles"] = 4
    """Grids of many queries are cut only where they see more key tiles than this."""
    most: Annotated[int, "slices"] = 128
    """Most slices."""

    def number(self, sizes: Sizes, tile: Tile, machine: Machine) -> np.ndarray:
        """Numbers of slices, shape (n, 1), or (n, c) for tiles of (1, c) rows and keys."""
        rows, bc = tile[:2]
        b, g, r, q, x = columns(sizes, "bgrqx")
        tiles = np.ceil(x / bc)
        share = np.ceil(self.margin * b * g * np.ceil(r * q / rows) * tiles / machine.units)
        return np.asarray(np.minimum(np.ceil(tiles / share), self.most))

    def may_cut(self, sizes: Sizes, tile: Tile, machine: Machine) -> np.ndarray:
        """Whether the host cuts at all, where the number of slices is not given."""
        rows, bc = tile[:2]
        g, r, q, x = columns(sizes, "grqx")
        few = g * np.ceil(r * q / rows) < self.full * machine.units
        return np.asarray(few & (np.ceil(x / bc) > self.whole_tiles))
