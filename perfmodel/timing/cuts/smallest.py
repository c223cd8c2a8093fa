"""The smallest number of slices that fills the last wave nearly as well as the best number.

Source: FlashAttention-2, flash_api.cpp (num_splits_heuristic).
"""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np

from perfmodel.frozen import dataclass
from perfmodel.timing.cuts.grid import Sizes, Tile, columns, last_wave
from perfmodel.timing.machine import Machine

_MOST = 128


@dataclass(frozen=True)
class SmallestCut:
    """Slices of the keys: the smallest number that fills the slots nearly as well as the best
    number."""

    rule: Literal["smallest"]
    """This rule."""
    blocks_per_unit: Annotated[int, "blocks"] = 1
    """Blocks a unit that the rule assumes: slots are so many times the units."""
    whole_tiles: Annotated[int, "tiles"] = 1
    """Rows of at most so many key tiles are not cut."""
    full: Annotated[float, "of the slots"] = 0.8
    """A grid that fills this share of the slots is not cut."""
    near: Annotated[float, "of the best fill"] = 0.85
    """Fill of the last wave, over that of the best number of slices, from which a number is good
    enough; the smallest such number is taken."""
    grouped_only: bool = False
    """Whether only grouped queries are cut."""

    def number(self, sizes: Sizes, tile: Tile, machine: Machine) -> np.ndarray:
        """Numbers of slices, shape (n, 1)."""
        rows, bc, _ = tile
        b, g, r, q, x = columns(sizes, "bgrqx")
        slots = machine.units * self.blocks_per_unit
        grid = b * g * np.ceil(r * q / rows)
        tiles = np.ceil(x / bc)
        slices = np.arange(1.0, _MOST + 1)[None]
        fill = last_wave(grid * slices / slots)
        # Excluded: more slices than tiles, and a slicing with the same tiles a slice as the one
        # before.
        longest = np.ceil(tiles / slices)
        first = np.zeros_like(tiles, bool)
        twins = np.concatenate([first, longest[:, 1:] == longest[:, :-1]], axis=1)
        fill = np.where((slices > np.minimum(tiles, slots)) | twins, 0.0, fill)
        best = np.argmax(fill >= self.near * fill.max(axis=1, keepdims=True), axis=1) + 1.0
        unsplit = (grid >= self.full * slots) | (tiles <= self.whole_tiles)
        unsplit = unsplit | (self.grouped_only & (r == 1))
        return np.where(unsplit, 1.0, best[:, None])
