"""How a kernel uses the device: its library's facts as numbers."""

from __future__ import annotations

from dataclasses import field

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.count.executed import Extents
from perfmodel.frozen import dataclass
from perfmodel.timing.circumstances import Circumstances


@dataclass(frozen=True)
class Code:
    """Operations that the compiled code executes beyond the algorithm, and its issue rates."""

    vector_ops: Number = 0.0
    """Vector operations beyond those of the algorithm."""
    special_ops: Number = 0.0
    """Special-function operations beyond those of the algorithm."""
    integer_ops: Number = 0.0
    """Integer instructions: loads, stores, addresses, bounds and masks."""
    integer_share: float = 0.0
    """Share of the algorithm's vector operations that run on integer lanes: compares, converts."""
    vector_share: float = 1.0
    """Share of the vector rate that the kernel's vector code sustains."""
    accurate: bool = False
    """Whether special functions are correctly rounded, which takes further operations."""


@dataclass(frozen=True)
class Block:
    """Costs of a block, or of a unit for its blocks, besides its stream. Seconds are at the
    reference clock of 1.75 GHz unless a field says otherwise."""

    price: Number = 1.0
    """Cost of starting and ending a block, as a multiple of the constant `block_price`."""
    setup_seconds: float = 0.0
    """Seconds of setup, once for all blocks; negative where the first ones start before the kernel
    before ends."""
    chain_seconds: Number = 0.0
    """Seconds of dependent steps of a block: reductions."""
    turn_seconds: float = 0.0
    """Seconds of dependent steps a streamed tile that finish before the next tile's begin, at the
    device's own clock."""
    tile_seconds: Number = 0.0
    """Seconds to transpose a tile before it is multiplied, at the device's own clock."""
    search_seconds: Number = 0.0
    """Seconds in which a unit finds its blocks' sequences, at the device's own clock."""
    waits: Number = 0.0
    """Dependent loads of a block outside its stream."""


@dataclass(frozen=True)
class Turns:
    """Which stages of a block run one after the other instead of overlapping."""

    chained: bool = False
    """Whether special functions and the vector work around them are one dependent chain."""
    fetched_by: float | None = None
    """Exponent of the p-norm of matrix work and operand fetches, where the same warp does both;
    None where hardware fetches."""
    exchange: Number = 0.0
    """Seconds in which warps exchange data through shared memory, per second of matrix work,
    without overlap."""
    fills: Number = 1.0
    """Pipeline fills of a block; FlashAttention-1 has one for each tile of keys."""
    alone: bool = False
    """Whether one resident block overlaps nothing, so that only other blocks hide its latencies."""
    waits: int = 0
    """Loads of a tile that a block waits for while it does nothing else; 0 where tiles are loaded
    ahead."""
    warps: int = 1
    """Warps that take turns in multiplying; with 2, one stages operands while the other
    multiplies."""


@dataclass(frozen=True)
class LargeProduct:
    """Seconds of an operation of a large matrix product, by a good library."""

    boost_seconds: float
    """At the boost clock."""
    power_seconds: float
    """That the power limit allows."""


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
    """Blocks that share one L2 read: those of a cluster, or of neighbouring units whose requests
    the L2 coalesces."""
    tensor_copies: bool = False
    """Whether warps of their own bring the tiles by tensor copies."""
    stream_share: float = 1.0
    """Bandwidth of the kernel's access pattern over that of a plain stream."""
    shared: tuple[str, ...] = ()
    """Inputs that are stored inside another input: V inside K."""
    overlap_power: float | None = None
    """Exponent of the p-norm over all resources; None: the constant `overlap_power`."""
    streams: bool = False
    """Whether each line is read by one unit only: an element-wise map."""
    resident: Number = np.inf
    """Most resident blocks of a unit, where launch bounds or shared memory limit them."""
    persistent: bool = False
    """Whether a block processes several tiles and loads the next one ahead."""
    longest_first: bool = True
    """Whether the longest row tiles of a head start first."""
    compiled_for: Extents = field(default_factory=dict)
    """Extents that the code is compiled for, by axis; others are padded to the next."""
    combining_seconds: float | None = None
    """Start of the kernel that adds partial results up, at the reference clock of 1.75 GHz; None
    where blocks combine inside the kernel."""
    large_product: LargeProduct | None = None
    """A large product on the device, than which chained products are not faster; None for kernels
    without chained products."""
    code: Code = Code()
    """Operations of the compiled code beyond the algorithm."""
    block: Block = Block()
    """Costs of a block besides its stream."""
    turns: Turns = Turns()
    """Stages of a block that do not overlap."""
    run: Circumstances = field(default_factory=Circumstances)
    """How the run is timed, as far as it affects the device."""
