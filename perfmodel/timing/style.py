"""How a kernel uses the machine: the facts of its library, as the numbers of a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.count.executed import Extents
from perfmodel.timing.circumstances import Circumstances


@dataclass(frozen=True)
class Code:
    """What the compiled code executes beyond the algorithm, and how fast it is issued."""

    vector_ops: Number = 0.0
    """Vector operations of the code beyond those of the algorithm."""
    special_ops: Number = 0.0
    """Special-function operations of the code beyond those of the algorithm."""
    integer_ops: Number = 0.0
    """Integer instructions: loads, stores, addresses, bounds and masks."""
    integer_share: float = 0.0
    """Share of the algorithm's vector operations that run on integer lanes: compares, converts."""
    vector_share: float = 1.0
    """Share of the vector rate that the kernel's vector code sustains."""
    accurate: bool = False
    """Whether special functions are computed to the last bit, which takes further operations."""


@dataclass(frozen=True)
class Block:
    """What a block, or a unit for its blocks, takes beside its stream; seconds at 1.75 GHz where a
    field does not say otherwise."""

    price: Number = 1.0
    """Multiple of the constant `block_price` that a block takes to start and end."""
    setup_seconds: float = 0.0
    """What persistent blocks set up once."""
    chain_seconds: Number = 0.0
    """Dependent steps of a block: reductions."""
    step_seconds: float = 0.0
    """Dependent arithmetic of a streamed tile, at the device's own clock."""
    turn_seconds: float = 0.0
    """Dependent steps of a streamed tile that all of the next tile's come after, at the device's
    own clock."""
    tile_seconds: Number = 0.0
    """Time in which a tile is transposed before it is multiplied, at the device's own clock."""
    search_seconds: Number = 0.0
    """Time in which each unit finds out which blocks are its own, at the device's own clock."""
    waits: Number = 0.0
    """Loads that a block waits for one after another, outside its stream."""


@dataclass(frozen=True)
class Turns:
    """Which stages of a block follow each other, where they could run beside each other."""

    chained: bool = False
    """Whether special functions and the vector work around them wait for each other."""
    fetched_by: float | None = None
    """Exponent of the norm of matrix work and operand fetches, where one warp does both."""
    exchange: Number = 0.0
    """Seconds of exchange between warps through shared memory for each second of matrix work,
    one after the other."""
    fills: Number = 1.0
    """Pipeline fills of a block; FlashAttention-1 has one for each tile of keys."""
    alone: bool = False
    """Whether a single resident block overlaps nothing, so that only another block does."""
    waits: int = 0
    """Loads of a tile that a block waits for with nothing else of it under way; 0 where tiles are
    loaded ahead."""
    warps: int = 1
    """Warps between which products take turns: with 2, one stages operands meanwhile."""


@dataclass(frozen=True)
class Combining:
    """The kernel that adds partial results up."""

    seconds: float
    """Its own start, at 1.75 GHz."""
    ahead: bool = False
    """Whether it is launched before the sliced kernel ends."""


@dataclass(frozen=True)
class Style:
    """How a kernel uses the machine: the facts of its library, as the numbers of a device."""

    compute: str
    """Type whose rate the matrix unit runs at."""
    matrix_share: Number = 1.0
    """Share of the matrix rate that the kernel's instructions and loop sustain."""
    overlap: float = 0.0
    """Share of the vector and special work that is hidden under the matrix unit."""
    multicast: float = 1.0
    """Blocks that share one L2 read."""
    paired_rows: float = np.inf
    """Rows of a tile from which two units multiply two of them together, each with half of the
    columns that both need."""
    stream_share: float = 1.0
    """Bandwidth of the kernel's access pattern over that of a plain stream."""
    shared: tuple[str, ...] = ()
    """Inputs that are stored inside another input: V inside K."""
    overlap_power: float | None = None
    """Exponent of the norm over all resources, where it is not the constant `overlap_power`."""
    streams: bool = False
    """Whether each line that it reads is read by one unit: an element-wise map."""
    resident: Number = np.inf
    """Most blocks that a unit holds, where the kernel's launch bounds say so."""
    persistent: bool = False
    """Whether a block processes several tiles and loads the next one ahead."""
    longest_first: bool = True
    """Whether the longest rows of tiles of a head start first."""
    pitches: Mapping[str, Number] = field(default_factory=dict)
    """Bytes between the rows of the operands, by the axis of the rows, where a unit does not have
    all page addresses at hand."""
    compiled_for: Extents = field(default_factory=dict)
    """Extents that the code exists for, by axis; others are padded to the next."""
    combining: Combining | None = None
    """The kernel that adds partial results up; None where blocks do so among themselves."""
    code: Code = Code()
    """What the compiled code executes beyond the algorithm."""
    block: Block = Block()
    """What a block takes beside its stream."""
    turns: Turns = Turns()
    """Which stages of a block follow each other."""
    run: Circumstances = field(default_factory=Circumstances)
    """How the run is timed, as far as the device feels it."""
