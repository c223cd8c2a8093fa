"""A matmul's config: its tile, launch order and split, and how tiles move."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatmulConfig:
    """Tile, launch order and split of one matmul.

    `group_m` rows of tiles launch together (None: columns of tiles, one after the other);
    `split_k` is the extent of k that one block sums (None: all of it); `persistent` is the number
    of blocks that share all tiles (None: a block a tile). `flatten` makes one loop of a persistent
    block's tiles and their steps, so that a tile's first loads fly while the last one is stored.
    `descriptors` says how tiles move: "none" by pointers, "host" by tensor descriptors that the
    host makes, "block" by descriptors that each block makes once (the same bytes; Triton
    specialises warps on Hopper for these only). With descriptors a tile of C leaves in `subtiles`
    column slices (1, 2 or 4), each through a smaller buffer, and `specialise` gives loads and
    products warps of their own.
    """

    bm: int = 128
    bn: int = 128
    bk: int = 64
    group_m: int | None = 8
    split_k: int | None = None
    persistent: int | None = None
    flatten: bool = False
    warps: int = 8
    stages: int = 3
    descriptors: str = "none"
    subtiles: int = 1
    specialise: bool = False
