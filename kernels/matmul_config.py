"""A matmul's config: its tile, launch order and split, and how tiles move."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class MatmulConfig:
    """Tile, launch order and split of one matmul."""

    bm: int = 128
    """Rows of the tile."""
    bn: int = 128
    """Columns of the tile."""
    bk: int = 64
    """Step of k."""
    group_m: int | None = 8
    """Rows of tiles in a group of the launch order; None: column after column of tiles."""
    split_k: int | None = None
    """Extent of k that one block sums; None: all of it."""
    persistent: int | None = None
    """Number of persistent blocks that share all tiles; None: one block a tile."""
    flatten: bool = False
    """Whether a persistent block's tiles and their steps are one flattened loop, so that a tile's
    first loads overlap with the last tile's store."""
    warps: int = 8
    """Warps of a block."""
    stages: int = 3
    """Buffers of the pipeline."""
    descriptors: str = "none"
    """How tiles move: "none" by pointers, "host" by tensor descriptors that the host makes, "block"
    by descriptors that each block makes once. The bytes are the same; Triton specialises warps on
    Hopper for "block" only."""
    subtiles: int = 1
    """Column slices (1, 2 or 4) in which a tile of C is stored by descriptors, each through a
    smaller buffer."""
    specialise: bool = False
    """Whether loads and products run in specialised warps."""
