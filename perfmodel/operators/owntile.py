"""A tile of the caller's own, instead of a library's menu.

    predict(Matmul(4096, 4096, 4096), h100, implementation="triton",
            tile={"m": 128, "n": 256, "k": 64, "warps": 8, "stages": 3})

A dimension may be an array with a tile for each of n problems, so that one call times a tuner's
whole menu.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from perfmodel.errors import ProblemError, UnknownName
from perfmodel.operators.operator import Operator

NEEDED = 2
"""Dimensions of `Operator.own_tile` that a tile must have: its extents. The rest have defaults."""


class TileDoesNotFit(ProblemError):
    """Tiles that need more shared memory than a block may have; `fits` marks those that do not."""

    def __init__(self, message: str, fits: np.ndarray) -> None:
        super().__init__(message)
        self.fits = fits
        """Whether each of the n tiles fits, shape (n,)."""


def read(operator: Operator, tile: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """The dimensions of a tile as arrays of length n, or of length 1 where all are numbers.

    Raises `ProblemError` for an operator whose tile cannot be set, a missing dimension, one that is
    not a positive whole number, and arrays of different lengths; `UnknownName` for an unknown
    dimension.
    """
    names = operator.own_tile
    if not names:
        raise ProblemError(
            f"the tile of {operator.name} cannot be set; leave it out, and the model's is taken"
        )
    for name in tile:
        if name not in names:
            raise UnknownName(f"dimension of a tile of {operator.name}", str(name), names)
    gaps = [name for name in names[:NEEDED] if name not in tile]
    if gaps:
        raise ProblemError(f"a tile of {operator.name} needs its {' and its '.join(gaps)}")
    dims = {name: _dimension(name, value) for name, value in tile.items()}
    lengths = {value.size for value in dims.values()} - {1}
    if len(lengths) > 1:
        raise ProblemError("the arrays of a tile have several lengths; give each one a tile")
    n = max(lengths, default=1)
    return {name: np.broadcast_to(value, (n,)) for name, value in dims.items()}


def _dimension(name: str, value: Any) -> np.ndarray:
    """A dimension as an array of whole numbers."""
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if array.ndim != 1 or not array.size or not np.all((array >= 1) & (array == np.floor(array))):
        raise ProblemError(f"{name} of a tile is a whole number from 1, not {value}")
    return array


def columns(tile: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A tile's arrays as columns of shape (n, 1), as plans take them."""
    return {name: value.reshape(-1, 1) for name, value in tile.items()}


def at(tile: Mapping[str, np.ndarray], index: np.ndarray) -> dict[str, np.ndarray]:
    """The tiles of the problems at `index`; a single tile serves all."""
    return {name: value[index] if value.size > 1 else value for name, value in tile.items()}


def described(tile: Mapping[str, np.ndarray], i: int) -> str:
    """The i-th tile in words."""
    dims = {name: value[i if value.size > 1 else 0] for name, value in tile.items()}
    return " ".join(f"{name}={value:.0f}" for name, value in dims.items())
