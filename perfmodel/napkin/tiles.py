"""Tiles worth trying, and their combinations as arrays.

Without a mask, traffic depends on a tile only through its trips ⌈n/t⌉, and the bytes held only grow
with t. Of all tiles with equally many trips the smallest is therefore best. The menu {⌈n/k⌉} loses
nothing and has about 2√n members.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm

# Most tilings of one nest; finer menus are thinned to it.
COLUMNS = 20_000
_EVERY = 64  # extents up to which a masked axis tries every tile


def fewest(extent: int) -> np.ndarray:
    """The smallest tile for every number of trips above one, ascending.

    More than `COLUMNS` are thinned, evenly by ratio: no nest tries more.
    """
    root = int(np.sqrt(extent)) + 1
    if root > COLUMNS:
        candidates = np.unique(np.geomspace(1, extent - 1, COLUMNS).astype(np.int64))
    else:
        trips = np.arange(2, max(root + 1, 2))
        small = np.arange(1, root + 1)
        # Each tile up to √n is the smallest for its trips; larger ones come from few trips.
        candidates = np.unique(np.concatenate([small, -(-extent // trips)]))
    candidates = candidates[candidates < extent]
    return np.array(np.unique(-(-extent // -(-extent // candidates))), dtype=np.int64)


def candidates(fused: Algorithm, axis: str, extent: int) -> np.ndarray:
    """Tiles of one axis below its whole extent; a masked axis has more, as its traffic depends on
    more than its trips."""
    mask = fused.mask
    if mask is None or axis not in (mask.query, mask.key) or mask.sparse:
        return fewest(extent)
    if extent <= _EVERY:
        return np.arange(1, extent)
    powers = 2 ** np.arange(0, int(np.log2(extent)) + 1)
    grid = np.unique(np.concatenate([fewest(extent), powers, 3 * powers // 2]))
    return np.array(grid[(grid < extent) & (grid > 0)], dtype=np.int64)


def thinned(values: np.ndarray, most: int) -> np.ndarray:
    """At most `most` values, evenly spaced by ratio, both ends kept."""
    if len(values) <= most:
        return values
    targets = np.geomspace(values[0], values[-1], most - 1)
    index = np.searchsorted(values, targets).clip(0, len(values) - 1)
    return np.array(values[np.unique(index)])


def combined(menus: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """All combinations of the menus as arrays of one length (one column where there are none)."""
    if not menus:
        return {}
    grids = np.meshgrid(*menus.values(), indexing="ij")
    return {axis: grid.ravel() for axis, grid in zip(menus, grids, strict=True)}


def all_of(
    fused: Algorithm, axes: Sequence[str], sizes: Mapping[str, int], columns: int = COLUMNS
) -> dict[str, np.ndarray]:
    """Combinations of the candidates of `axes`, thinned so that there are at most `columns`."""
    menus = {axis: candidates(fused, axis, sizes[axis]) for axis in axes}
    if any(not len(menu) for menu in menus.values()):
        return {axis: np.zeros(0, dtype=np.int64) for axis in axes}
    while np.prod([float(len(menu)) for menu in menus.values()]) > columns:
        longest = max(menus, key=lambda axis: len(menus[axis]))
        menus[longest] = thinned(menus[longest], max(2, len(menus[longest]) * 3 // 4))
    return combined(menus)
