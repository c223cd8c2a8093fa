"""Rules by which libraries cut the work of attention into slices; `slicing` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated

# Queries up to which vLLM captures calls in a graph (max_cudagraph_capture_size), and sequences
# that a warp of FlashAttention's tile scheduler looks through at a time (tile_scheduler.hpp).
CAPTURED, SEARCHED = 512, 31


@dataclass(frozen=True)
class SplitRule:
    """Slices of the keys: the fewest that fill the library's slots nearly as well as any."""

    blocks_per_unit: Annotated[int, "blocks"] = 1
    """Blocks of a unit that the rule aims at: its slots are so many times the units."""
    whole_tiles: Annotated[int, "tiles"] = 1
    """Rows of keys of so many tiles or fewer are left whole."""
    full: Annotated[float, "of the slots"] = 0.8
    """A grid that fills this share of the slots is left whole."""
    near: Annotated[float, "of the best fill"] = 0.85
    """The smallest number of slices is taken whose last wave is at least so nearly as full as the
    best one's."""
    grouped_only: bool = False
    """Whether only grouped queries are cut."""


@dataclass(frozen=True)
class EvenRule:
    """Slices of the keys: each has an even share of all key tiles, and no less.

    With n tiles of keys a row block, each unit's share is ⌈`margin` · all tiles / units⌉, and there
    are ⌈n / share⌉ slices. On keys in pages, the kernel that can slice and the one that combines
    run for up to `CAPTURED` sequences even where there is one slice, and every unit looks for its
    next tile `SEARCHED` sequences at a time.
    """

    margin: Annotated[float, "of an even share"] = 1.1
    """A unit's share over its part of all tiles."""
    full: Annotated[float, "of the units"] = 0.8
    """Grids of many queries are cut only where the row blocks of one sequence are fewer than this
    share of the units."""
    whole_tiles: Annotated[int, "tiles"] = 4
    """Grids of many queries are cut only where they see more tiles of keys than these."""
    most: Annotated[int, "slices"] = 128
    """Most slices."""


@dataclass(frozen=True)
class GraphRule:
    """Slices of the keys in a serving framework's CUDA graphs, for up to `CAPTURED` queries.

    A graph's grid is fixed, and so are the buffers that slices are added up from: a library that
    chooses by an `EvenRule` may take `slices` at most. One that does not takes all of them,
    whatever the keys: blocks whose slice has no keys run all the same, each of them looking for its
    sequence `SEARCHED` at a time. More queries are one slice there.
    """

    slices: Annotated[int, "slices"]
    """Slices of the graph's grid."""


@dataclass(frozen=True)
class WaveRule:
    """Slices of the keys: as many as whole waves of blocks take."""

    keys: Annotated[int, "keys"]
    """Fewest keys of a slice."""
    waves: Annotated[float, "waves"]
    """Waves of blocks that the slices come to."""
    root: float = 0.0
    """Where given, there are √(`root` · n) slices at most, for n slices of `keys` keys."""
    rounds_up: bool = False
    """Whether a last slice of fewer keys counts as one."""
    doubles_from: Annotated[int, "keys"] = 0
    """Where given, there are as many times the waves as keys double from this number on."""
    begun: bool = False
    """Whether slices may take any part of the last wave, rather than fill it."""
    most: Annotated[float, "slices"] = inf
    """Most slices."""


@dataclass(frozen=True)
class SegmentRule:
    """Slices of the keys: always as many, for sequences and key-value heads that make a small grid.

    Slices are whole tiles, so that short rows leave the last ones without keys.
    """

    slices: Annotated[int, "slices"]
    """Slices of a small grid."""
    most_blocks: Annotated[int, "blocks"]
    """Most sequences times key-value heads that are cut."""


@dataclass(frozen=True)
class HeadRule:
    """How FlashAttention-1 spreads a head over blocks.

    Forward it takes slices of the queries. Backward a block takes one tile of keys where that fills
    waves better, or else a whole head: a unit holds one block, and the slices count for less by a
    tile's share of the keys, since dQ has to be set to zero before and converted after (half of
    that share under a causal mask).
    """

    blocks_per_unit: Annotated[int, "blocks"] = 2
    """Blocks of a unit that the forward rule aims at."""
    near: Annotated[float, "of the best fill"] = 0.95
    """Forward, the fewest slices are taken whose last wave is at least so nearly as full as the
    best one's."""
    most: Annotated[int, "slices"] = 30
    """Forward, most slices of the queries."""
    spread: Annotated[int, "tiles"] = 10
    """Backward under a causal mask, a head of so many tiles of keys or more is always spread."""
