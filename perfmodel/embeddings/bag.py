"""Embedding bags: rows of tables that are looked up and summed, and their time on one device.

A sample looks up some rows of each table and sums them. Bytes: line·⌈row/line⌉ and 8 of an index
for each look-up, and the sums. Operations: one addition an element. That is below 1/q operations a
byte for elements of q bytes, so the work is memory-bound everywhere (Gupta et al. 2020,
1906.03109).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from perfmodel.elements import element
from perfmodel.embeddings.popularity import Popularity, mixed, zipf
from perfmodel.errors import ProblemError
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate

_INDEX_BYTES = 8
SECTOR_BYTES, LINE_BYTES = 32, 64
"""Smallest access to the memory of a GPU and of a CPU, in bytes."""

# A row opens a page of DRAM, which takes as long as moving this many bytes. With four openings in
# 16 ns of 25 GB/s (HBM2e, a channel) or in 21 ns of 23 GB/s (DDR4-2933), it is up to 110 bytes,
# partly hidden by other banks. No measured run supports it: the ends are the range.
_OPENING_BYTES = (0.0, 64.0, 128.0)
# Cache lines that a core can have outstanding (Intel: 12 fill buffers since Skylake), and their
# latency (Cascade Lake, local DRAM: recalled).
_FILL_BUFFERS, _DRAM_SECONDS = 12, 90e-9
_WARPS = 64
_START_SECONDS = 1.5e-6


@dataclass(frozen=True)
class Table:
    """One table."""

    rows: int
    """Number of rows."""
    lookups: float
    """Rows that a sample looks up, on average."""


@dataclass(frozen=True)
class Bags:
    """A batch's look-ups in all tables. Raises `ProblemError` for sizes below 1."""

    batch: int
    """Samples."""
    tables: tuple[Table, ...]
    """Every table."""
    dim: int
    """Elements of a row."""
    dtype: str = "fp32"
    """Type of an element."""
    exponent: float = 1.05
    """Exponent of Zipf's law, for every table."""

    def __post_init__(self) -> None:
        for name in ("batch", "dim"):
            if getattr(self, name) < 1:
                raise ProblemError(f"{name} is {getattr(self, name)}; it is 1 or more")
        if not self.tables:
            raise ProblemError("there is no table; give one")
        element(self.dtype)

    @property
    def row_bytes(self) -> float:
        """Bytes of one row."""
        return self.dim * element(self.dtype).bytes

    @property
    def lookups(self) -> float:
        """Look-ups of the batch."""
        return self.batch * sum(table.lookups for table in self.tables)

    @property
    def table_bytes(self) -> float:
        """Bytes of all tables."""
        return sum(table.rows for table in self.tables) * self.row_bytes

    @property
    def pooled_bytes(self) -> float:
        """Bytes of the sums: one row a table and sample."""
        return self.batch * len(self.tables) * self.row_bytes

    @property
    def operations(self) -> float:
        """Additions: one for each element looked up."""
        return self.lookups * self.dim

    @cached_property
    def popularity(self) -> Popularity:
        """Popularity of all rows of all tables."""
        kinds = Counter(self.tables)
        return mixed(
            [(zipf(table.rows, self.exponent), table.lookups, n) for table, n in kinds.items()]
        )


def fetched_bytes(row_bytes: float, line_bytes: int) -> int:
    """Bytes that move for a row aligned to a line: line·⌈row/line⌉."""
    return line_bytes * -(-int(row_bytes) // line_bytes)


def line_of(device: Device) -> int:
    """Smallest access to a device's memory, in bytes."""
    return LINE_BYTES if device.kind == "cpu" else SECTOR_BYTES


def bag_time(bags: Bags, device: Device, share: float = 1.0) -> Tree:
    """Time of a batch's look-ups with all tables in the device's memory; of a `share` of the
    look-ups.

        t = start + max(missed bytes / (rate · row/(row + opening)), all bytes / cache rate,
                        latency · max(missed rows / rows in flight, 1), additions)

    The cache is the device's last level, with LRU replacement; misses pass through it too. The ends
    are those of free openings, and of openings that take twice as long.
    """
    cases = [terms(bags, device, share, opening) for opening in _OPENING_BYTES]
    start = _START_SECONDS if device.kind == "gpu" else 0.0
    low, middle, high = (start + max(times.values()) for times in cases)
    limiter = max(cases[1], key=cases[1].__getitem__)
    return Tree.part("look-ups", "embedding", middle, (low, high), resource=limiter)


def cache_hit(bags: Bags, device: Device) -> float:
    """Hit rate of the device's last cache, as a share of the look-ups; 0 without a cache."""
    capacity = machine(device).l2_distinct_bytes if device.l2_capacity_bytes else 0.0
    return bags.popularity.lru_hit(capacity / fetched_bytes(bags.row_bytes, line_of(device)))


def random_rate(bags: Bags, device: Device, opening: float = _OPENING_BYTES[1]) -> float:
    """Bytes a second of random rows from a device's memory."""
    row = fetched_bytes(bags.row_bytes, line_of(device))
    return hbm_rate(machine(device), default()) * row / (row + opening)


def terms(
    bags: Bags, device: Device, share: float = 1.0, opening: float = _OPENING_BYTES[1]
) -> dict[str, float]:
    """Seconds of each resource for a `share` of a batch's look-ups."""
    hit = cache_hit(bags, device)
    chip, constants = machine(device), default()
    row = fetched_bytes(bags.row_bytes, line_of(device))
    lookups = share * bags.lookups
    extra = share * (bags.pooled_bytes + _INDEX_BYTES * bags.lookups)
    misses = lookups * (1.0 - hit)
    wait, in_flight = _in_flight(device, row)
    return {
        "memory": misses * row / random_rate(bags, device, opening)
        + extra / hbm_rate(chip, constants),
        "cache": lookups * row / (chip.l2_bytes_per_s * constants["l2_share"]),
        "latency": wait * max(misses / in_flight, 1.0),
        "vector": share * bags.operations / (chip.vector_ops_per_unit * chip.units),
    }


def _in_flight(device: Device, row: int) -> tuple[float, float]:
    """Latency of a row in seconds, and rows in flight (Little's law): one a warp, or as many as a
    core's fill buffers hold."""
    chip = machine(device)
    if device.kind == "cpu":
        wait = device.latency_seconds("hbm") or _DRAM_SECONDS
        return wait, chip.units * _FILL_BUFFERS / (row / LINE_BYTES)
    return chip.hbm_latency, float(chip.units * (device.max_warps or _WARPS))


def equal_tables(count: int, rows: int, lookups: float) -> tuple[Table, ...]:
    """`count` tables of `rows` rows, with a sample's `lookups` spread evenly over them."""
    if count < 1 or not lookups > 0.0:
        raise ProblemError("give one table or more, and look-ups above 0")
    return tuple(Table(rows, lookups / count) for _ in range(count))


def of_sizes(rows: Sequence[int], lookups: Sequence[float]) -> tuple[Table, ...]:
    """A table for each pair of rows and look-ups."""
    return tuple(Table(size, count) for size, count in zip(rows, lookups, strict=True))
