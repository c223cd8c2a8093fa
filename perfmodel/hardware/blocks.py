"""The parts of a hardware spec: compute, memory, occupancy, latency, links, measurements.

Memory has three roles on every machine: `hbm` is the main memory (HBM, GDDR, DDR, or the only
SRAM), `l2` the last cache in front of it (L3 on a CPU), `shared` the memory next to the unit that
the program places data in (shared memory, LDS, VMEM, a core's own L2). `llc` is a second cache
between `hbm` and `l2` (Infinity Cache).
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Annotated, Any, Literal

from perfmodel.entries import Rule, within
from perfmodel.frozen import dataclass
from perfmodel.hardware.facts import (
    Bandwidth,
    BytesPerClock,
    Capacity,
    Clock,
    Count,
    Duration,
    Label,
    Latency,
    Line,
    NotEmpty,
    PerClock,
    Rate,
    Sourced,
    SpecialRate,
    one_line,
)
from perfmodel.plaintext import quoted

DTYPES = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4")
DType = Literal["fp64", "fp32", "tf32", "fp16", "bf16", "fp8", "fp6", "fp4", "int8", "int4"]
Stream = Literal["read", "copy", "triad", "scale", "mixed", "stream", "write"]
_FACT_VALUES = {"type": ["number", "boolean", "string", "array"]}


def _fact_value(value: Any) -> None:
    """A number, a word, true or false, or a list of these."""
    for item in value if isinstance(value, list) else [value]:
        if not isinstance(item, (bool, int, float, str)):
            raise ValueError(f"{quoted(str(item))} is no number, word, true or false")
        if isinstance(item, str):
            one_line(item)


def _link_name(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9-]{0,29}", name) or name in TAKEN:
        raise ValueError(
            f"{name[:60]!r} names no further link: write up to 30 of a-z, 0-9 and -, and no level "
            f"or term ({', '.join(TAKEN)})"
        )


Positive = Annotated[int, within(1, 1e12)]
"""A whole number above zero."""
FlopCounts = Annotated[dict[DType, Positive], NotEmpty]
"""By type, of one type at least."""
FactTable = Annotated[dict[Line, Annotated[Any, Rule(_fact_value, _FACT_VALUES)]], NotEmpty]
"""By name, of one at least: numbers, words, true or false, or lists of them."""
LinkName = Annotated[str, Rule(_link_name)]
"""The name of a further link: no level's and no term's."""


@dataclass(frozen=True, kw_only=True)
class Clocks:
    """Clock rates of the compute units."""

    base: Clock | None = None
    """Guaranteed clock."""
    boost: Clock | None = None
    """Highest clock; the vector peaks are rated at it."""
    reached: Clock | None = None
    """Clock that the board reaches beyond the boost clock, where power and temperature allow: GPU
    Boost of GeForce and TITAN cards, whose rated boost is a typical clock."""
    tensor: Clock | None = None
    """Clock at which the matrix peaks are rated; absent means boost."""


@dataclass(frozen=True, kw_only=True)
class FlopPerClock(Sourced):
    """FLOP per clock per unit by type; a multiply-add counts two."""

    values: FlopCounts
    """Type to FLOP per clock per unit."""


@dataclass(frozen=True, kw_only=True)
class SpecialFunction:
    """The special-function unit: exponentials and similar functions."""

    per_clock_per_unit: PerClock
    """Exponentials per clock per unit."""


@dataclass(frozen=True, kw_only=True)
class Compute:
    """The compute units and their rates. Peaks are dense."""

    units: Count
    """Number of SMs, CUs or cores."""
    unit_name: Label
    """Name of one unit."""
    warp_size: Count | None = None
    """Threads that issue together; absent where there are none."""
    clocks: Clocks
    """Clock rates."""
    matrix: dict[DType, Rate] = field(default_factory=dict)
    """Dense peak of the matrix unit by operand type, accumulating in fp32 (int32)."""
    vector: dict[DType, Rate] = field(default_factory=dict)
    """Peak of the vector unit by type."""
    matrix_flop_per_clock_per_unit: FlopPerClock | None = None
    """FLOP per clock of the matrix unit; the peaks are checked against it."""
    vector_flop_per_clock_per_unit: FlopPerClock | None = None
    """FLOP per clock of the vector unit; the peaks are checked against it."""
    special_function: SpecialFunction | None = None
    """The special-function unit."""

    def __post_init__(self) -> None:
        if self.clocks.base is None and self.clocks.boost is None:
            raise ValueError("needs a clock: clocks.boost or clocks.base")
        if not self.matrix and not self.vector:
            raise ValueError("needs a peak: matrix or vector")


@dataclass(frozen=True, kw_only=True)
class Hbm:
    """Main memory."""

    technology: Label
    """HBM3, GDDR6, DDR4-2933 x6 ..."""
    capacity: Capacity
    """Capacity on the label, decimal."""
    bandwidth: Bandwidth
    """Theoretical peak."""
    ecc: Literal["inline"] | None = None
    """`inline` where the board ships with error correction whose bits are in the memory itself:
    they take a sixteenth of its capacity and part of its bandwidth. HBM has separate storage for
    them, and other boards ship without error correction."""


@dataclass(frozen=True, kw_only=True)
class Cache:
    """A cache shared by the units."""

    label: Label | None = None
    """Its name on this machine where it is not "L2"."""
    capacity: Capacity
    """Capacity of all partitions together."""
    bandwidth: Bandwidth | None = None
    """Theoretical or documented peak, all partitions together; measured ones are in `measured`."""
    bytes_per_clock: BytesPerClock | None = None
    """Peak per clock, all partitions together."""
    partitions: Count | None = None
    """Partitions with a slower path between them, or private parts."""
    shared_by_all: bool | None = None
    """False where each partition serves only its own units."""


@dataclass(frozen=True, kw_only=True)
class Shared:
    """Memory next to the unit, placed by the program."""

    label: Label
    """shared memory, LDS, VMEM ..."""
    capacity_per_unit: Capacity
    """Most bytes for all blocks on one unit together."""
    max_per_block: Capacity | None = None
    """Most bytes for one block."""
    reserved_per_block: Capacity | None = None
    """Bytes that the system reserves for each block."""
    bandwidth_per_unit: BytesPerClock | None = None
    """Bytes per clock per unit."""
    l1_capacity_per_unit: Capacity | None = None
    """Level-1 cache per unit; on NVIDIA from Volta on it contains the shared memory."""


@dataclass(frozen=True, kw_only=True)
class Memory:
    """The memory hierarchy."""

    hbm: Hbm
    """Main memory."""
    llc: Cache | None = None
    """A memory-side cache between main memory and L2."""
    l2: Cache | None = None
    """The last cache in front of memory."""
    shared: Shared | None = None
    """The memory next to the unit."""


@dataclass(frozen=True, kw_only=True)
class Occupancy(Sourced):
    """How many threads fit on one unit."""

    max_threads_per_unit: Positive | None = None
    """Most resident threads."""
    max_warps_per_unit: Positive | None = None
    """Most resident warps."""
    max_blocks_per_unit: Positive | None = None
    """Most resident blocks."""
    max_threads_per_block: Positive | None = None
    """Most threads in one block."""
    registers_per_unit: Positive | None = None
    """32-bit registers."""
    max_registers_per_thread: Positive | None = None
    """32-bit registers one thread may use."""


@dataclass(frozen=True, kw_only=True)
class Latencies:
    """Latency of one dependent access, by level."""

    shared: Latency | None = None
    """Shared memory."""
    l1: Latency | None = None
    """Level-1 cache hit."""
    l2: Latency | None = None
    """L2 hit in the near partition."""
    llc: Latency | None = None
    """Memory-side cache hit."""
    hbm: Latency | None = None
    """Main memory."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link to other devices."""

    name: Label
    """PCIe 5 x16, NVLink 4 ..."""
    bandwidth_per_direction: Bandwidth | None = None
    """Bandwidth in one direction; vendors print the sum of both."""
    capacity: Capacity | None = None
    """Memory behind the link."""
    latency: Latency | None = None
    """One dependent load by a unit from behind it; one message of an exchange."""
    devices: Count | None = None
    """Devices that it joins, this one included."""


TAKEN = (
    "registers", "shared", "l1", "l2", "llc", "hbm", "host", "peer", "network",
    "matrix", "special", "vector", "transpose", "latency", "power", "blocks", "gap", "launch",
    "included",
)  # fmt: skip
"""Names of levels and of terms of a time, which no further link may have."""


@dataclass(frozen=True, kw_only=True)
class Links:
    """Links out of the device."""

    host: Link | None = None
    """To the CPU."""
    scale_up: Link | None = None
    """To the neighbours in the node."""
    scale_out: Link | None = None
    """To other nodes, per device."""
    further: dict[LinkName, Link] = field(default_factory=dict)
    """More links, outwards: each is a level with that name."""


@dataclass(frozen=True, kw_only=True)
class Launch:
    """Time per small kernel, back to back."""

    stream: Duration | None = None
    """Queued in a stream."""
    graph: Duration | None = None
    """Inside a captured graph."""


@dataclass(frozen=True, kw_only=True)
class ArchitectureFacts(Sourced):
    """Facts in which this device differs from its architecture."""

    values: FactTable
    """Fact of the architecture to this device's value: a field of
    `perfmodel.timing.architectures.Architecture`, which describes each fact."""


@dataclass(frozen=True, kw_only=True)
class Measured:
    """Measured, achieved rates; never mixed with peaks."""

    hbm_bandwidth: dict[Stream, Bandwidth] = field(default_factory=dict)
    """Main memory, by access pattern; the time model uses the best of those that read and write."""
    l2_bandwidth: Bandwidth | None = None
    """Reads that hit in L2."""
    llc_bandwidth: Bandwidth | None = None
    """Reads that hit in the memory-side cache."""
    l1_bandwidth: Bandwidth | None = None
    """Reads that hit in L1, all units together."""
    shared_bandwidth: Bandwidth | None = None
    """Shared memory, all units together."""
    matrix: dict[DType, Rate] = field(default_factory=dict)
    """Best matrix product found, by type."""
    vector: dict[DType, Rate] = field(default_factory=dict)
    """Multiply-adds of the vector unit, by type."""
    special_function: SpecialRate | None = None
    """Exponentials per second, all units together."""
    launch: Launch | None = None
    """Launch overhead."""
