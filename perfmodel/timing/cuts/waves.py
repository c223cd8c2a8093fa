"""As many slices as fill whole waves of blocks.

Source: FlashInfer, scheduler.cuh (PrefillPlan); TensorRT-LLM, decoderXQARunner.h
(computeMultiBlockCount); SGLang, triton_backend.py (get_num_kv_splits_triton).
"""

from __future__ import annotations

from math import inf
from typing import Annotated, Literal

import numpy as np

from perfmodel.frozen import dataclass
from perfmodel.timing.cuts.grid import Sizes, Tile, columns
from perfmodel.timing.machine import Machine


@dataclass(frozen=True)
class WavesCut:
    """Slices of the keys: as many as fill whole waves of blocks. A block has one query of all heads
    that share their keys."""

    rule: Literal["waves"]
    """This rule."""
    keys: Annotated[int, "keys"]
    """Fewest keys of a slice."""
    waves: Annotated[float, "waves"]
    """Waves that the blocks of all slices fill."""
    root: float = 0.0
    """If set, at most √(`root` · n) slices, where n is the number of slices of `keys` keys."""
    rounds_up: bool = False
    """Whether a last slice of fewer keys counts in n."""
    doubles_from: Annotated[int, "keys"] = 0
    """If set, the number of waves is multiplied by log2(keys / `doubles_from`), where that is above
    1."""
    begun: bool = False
    """Whether slices may fill part of the last wave."""
    most: Annotated[float, "slices"] = inf
    """Most slices."""

    def number(self, sizes: Sizes, tile: Tile, machine: Machine) -> np.ndarray:
        """Numbers of slices, shape (n, 1)."""
        b, g, q, x = columns(sizes, "bgqx")
        slices = np.ceil(x / self.keys) if self.rounds_up else np.floor(x / self.keys)
        if self.root:
            slices = np.minimum(slices, np.round(np.sqrt(self.root * slices)))
        waves = np.full_like(x, self.waves)
        if self.doubles_from:
            waves = waves * np.maximum(np.log2(x / self.doubles_from), 1.0)
        room = waves * machine.units / (b * g * q)
        room = np.minimum(np.ceil(room) if self.begun else np.floor(room), self.most)
        return np.asarray(np.maximum(np.minimum(slices, room), 1.0))
