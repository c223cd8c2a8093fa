"""Rules of libraries by problem: `slicing` evaluates those that cut the keys of attention into
slices, `routing` those that choose the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Annotated

from perfmodel.timing.architectures import Instruction

# Most queries of calls that vLLM captures in a graph (max_cudagraph_capture_size), and sequences
# that a warp of FlashAttention's tile scheduler scans at a time (tile_scheduler.hpp).
CAPTURED, SEARCHED = 512, 31


# Every number of heads or elements.
_ANY = (0.0, 1e9)


@dataclass(frozen=True)
class Route:
    """Problems that a library sends to another kernel: those for which all that is stated holds."""

    kernel: str
    """The other kernel."""
    group: Annotated[tuple[float, float], "query heads a key-value head"] = _ANY
    """Fewest and most query heads that share a key-value head."""
    head_dim: Annotated[tuple[float, float], "elements"] = _ANY
    """Least and largest head dimension."""
    cache: tuple[str, ...] = ()
    """Types of keys and values; empty: all."""
    instruction: tuple[Instruction, ...] = ()
    """Matrix instructions of the devices; empty: all."""
    windowed: bool = False
    """Whether only where a window hides keys."""
    masked: bool = False
    """Whether only under an explicit mask."""
    few_blocks: Annotated[float, "blocks a unit"] = 0.0
    """If set, only grids of fewer blocks: sequences x key-value heads x slices of `slice_keys`."""
    slice_keys: Annotated[int, "keys"] = 128
    """Keys of such a slice."""


@dataclass(frozen=True)
class SplitRule:
    """Slices of the keys: the smallest number that fills the slots nearly as well as the best
    number."""

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


@dataclass(frozen=True)
class EvenRule:
    """Slices of the keys: each has at least an even share of all key tiles.

    With n key tiles a row block, each unit's share is ⌈`margin` · all tiles / units⌉ tiles, and
    there are ⌈n / share⌉ slices. With a paged cache and up to `CAPTURED` sequences, the kernel that
    can slice and the combining kernel run even for one slice. Every unit searches its next tile
    among `SEARCHED` sequences at a time.
    """

    margin: Annotated[float, "of an even share"] = 1.1
    """A unit's share over its part of all tiles."""
    full: Annotated[float, "of the units"] = 0.8
    """Grids of many queries are cut only where one sequence has fewer row blocks than this share of
    the units."""
    whole_tiles: Annotated[int, "tiles"] = 4
    """Grids of many queries are cut only where they see more key tiles than this."""
    most: Annotated[int, "slices"] = 128
    """Most slices."""


@dataclass(frozen=True)
class WaveRule:
    """Slices of the keys: as many as fill whole waves of blocks."""

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


@dataclass(frozen=True)
class SegmentRule:
    """Slices of the keys: a fixed number, for small grids of sequences times key-value heads.

    Slices are whole tiles, so the last ones of short rows have no keys.
    """

    slices: Annotated[int, "slices"]
    """Slices of a small grid."""
    most_blocks: Annotated[int, "blocks"]
    """Largest grid, sequences times key-value heads, that is cut."""


@dataclass(frozen=True)
class HeadRule:
    """How FlashAttention-1 spreads a head over blocks.

    Forward, the queries are cut into slices. Backward, a block takes one tile of keys or a whole
    head, whichever fills waves better; a unit holds one block. The fill with tiles counts for less
    by a tile's share of the keys (half of that under a causal mask), since dQ has to be zeroed
    before and converted after.
    """

    blocks_per_unit: Annotated[int, "blocks"] = 2
    """Blocks a unit that the forward rule assumes."""
    near: Annotated[float, "of the best fill"] = 0.95
    """Forward: fill of the last wave, over that of the best number of slices, from which a number
    is good enough; the smallest such number is taken."""
    most: Annotated[int, "slices"] = 30
    """Forward: most slices of the queries."""
    spread: Annotated[int, "tiles"] = 10
    """Backward under a causal mask: heads of at least so many key tiles are always spread."""
