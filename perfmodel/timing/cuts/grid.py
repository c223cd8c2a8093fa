"""What every rule of cutting shares: sizes as columns, tiles of a grid, the fill of a wave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.timing.machine import Machine

Sizes = Mapping[str, Number]
"""Extent of each axis of attention: numbers, or columns of shape (n, 1)."""
Tile = tuple[Number, ...]
"""Rows, keys and threads of a tile."""


class Cut(Protocol):
    """A library's rule for the number of slices that the keys of a decode are cut into."""

    def number(self, sizes: Sizes, tile: Tile, machine: Machine) -> np.ndarray:
        """Numbers of slices, shape (n, 1), or (n, c) for tiles of (1, c) rows and keys."""


def columns(sizes: Sizes, axes: str) -> list[np.ndarray]:
    """Sizes as columns of shape (n, 1), or (1, 1) where all problems share one."""
    return [np.atleast_2d(np.asarray(sizes[axis], dtype=np.float64)) for axis in axes]


def last_wave(waves: np.ndarray) -> np.ndarray:
    """Mean share of the slots that a grid of so many waves keeps busy (wave quantisation)."""
    return np.asarray(waves / np.ceil(waves))


def slice_keys(keys: Number, splits: np.ndarray, bc: Number) -> np.ndarray:
    """Keys of a slice, rounded up to whole tiles."""
    return np.asarray(np.ceil(np.ceil(np.atleast_2d(keys) / splits) / bc) * bc)
