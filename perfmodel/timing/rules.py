"""Rules by which libraries cut the work of attention into slices; `slicing` carries them out."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

# Queries up to which vLLM captures calls in a graph (max_cudagraph_capture_size), and sequences
# that a warp of FlashAttention's tile scheduler looks through at a time (tile_scheduler.hpp).
CAPTURED, SEARCHED = 512, 31


@dataclass(frozen=True)
class SplitRule:
    """How a library cuts keys into slices: the fewest that fill its slots nearly as well as any.

    It aims at `blocks_per_unit` blocks a unit, leaves alone grids that fill `full` of those slots
    and rows of keys of `whole_tiles` tiles or fewer, and takes the smallest number of slices whose
    last wave is at least `near` as full as the best one's. With `grouped_only` it cuts for grouped
    queries alone.
    """

    blocks_per_unit: int = 1
    whole_tiles: int = 1
    full: float = 0.8
    near: float = 0.85
    grouped_only: bool = False


@dataclass(frozen=True)
class EvenRule:
    """How a library cuts keys into slices: each of its even share of all key tiles, and no less.

    With n tiles of keys a row block, each unit's share is ⌈`margin` · all tiles / units⌉, and there
    are ⌈n / share⌉ slices, `most` of them at most. On keys in pages, the kernel that can slice and
    the one that combines run for up to `CAPTURED` sequences even where there is one slice, and
    every unit looks for its next tile `SEARCHED` sequences at a time. Grids of many queries are cut
    only where the row blocks of one sequence are fewer than `full` of the units and see more than
    `whole_tiles` tiles of keys.
    """

    margin: float = 1.1
    full: float = 0.8
    whole_tiles: int = 4
    most: int = 128


@dataclass(frozen=True)
class GraphRule:
    """Slices of the keys in a serving framework's CUDA graphs, for up to `CAPTURED` queries.

    A graph's grid is fixed, and so are the buffers that slices are added up from: a library that
    chooses by an `EvenRule` may take `slices` at most. One that does not takes all of them,
    whatever the keys: blocks whose slice has no keys run all the same, each of them looking for its
    sequence `SEARCHED` at a time. More queries are one slice there.
    """

    slices: int


@dataclass(frozen=True)
class WaveRule:
    """How a library cuts keys into slices: as many as `waves` waves of blocks take.

    A slice has `keys` keys or more, and where `root` is given there are √(`root` · n) of them at
    most, for n slices of so many keys. The number of those is rounded up or down. There are as many
    times the waves as keys double from `doubles_from` on, where that is given, and slices are those
    that fill them or, where a wave may be `begun`, that take any of the last one; `most` at most.
    """

    keys: int
    waves: float
    root: float = 0.0
    rounds_up: bool = False
    doubles_from: int = 0
    begun: bool = False
    most: float = inf


@dataclass(frozen=True)
class HeadRule:
    """How FlashAttention-1 spreads a head over blocks.

    Forward it takes the fewest slices of the queries, `most` of them at most, whose last wave is at
    least `near` as full as the best one's, at `blocks_per_unit` blocks a unit. Backward a block
    takes one tile of keys where that fills waves better, or else a whole head: a unit holds one
    block, and the slices count for less by a tile's share of the keys, since dQ has to be set to
    zero before and converted after (half of that share under a causal mask, and never from `spread`
    tiles on).
    """

    blocks_per_unit: int = 2
    near: float = 0.95
    most: int = 30
    spread: int = 10
