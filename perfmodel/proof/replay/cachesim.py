"""Simulates the device's L2 on a stream of addresses: HBM bytes and hit rate, to test the formula.

The cache is LRU, write-back and partitioned. There are two kinds of access streams.

A replayed kernel gives addresses. `Feed` takes them block by block and interleaves the concurrent
blocks one tile at a time; a set-associative cache of 128-byte lines with 32-byte sectors finds the
misses.

A schedule gives tiles. `tilestream.simulate` runs its loop nest and caches whole tiles. It is
thousands of times faster, which allows hundreds of launch orders.

If the L2 has several partitions (A100, H100), each line belongs to one of them. A unit reads
through its own partition, which keeps a copy. Data that all units read then occupies its size in
each partition.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from perfmodel.hardware.device import Device
from perfmodel.proof.replay.recorder import Chunk

LINE_BYTES = 128
SECTOR_BYTES = 32
WAYS = 16
# Bytes. Arrays of a launch are laid out one after another, each aligned to this.
_ALIGNMENT = 512
# Bits set in a mask of four sectors.
_POPULATION = np.array([bin(mask).count("1") for mask in range(16)], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Simulated:
    """Traffic of a simulated cache."""

    read_bytes: float
    """Bytes from memory."""
    write_bytes: float
    """Bytes to memory, including lines that are still dirty at the end."""
    requested_bytes: float
    """Bytes that the units requested."""

    @property
    def total_bytes(self) -> float:
        """Bytes both ways."""
        return self.read_bytes + self.write_bytes

    @property
    def hit_rate(self) -> float:
        """1 − fetched / requested; written bytes count as requested and not as fetched."""
        return 1.0 - self.read_bytes / self.requested_bytes if self.requested_bytes else 0.0


class SetCache:
    """One partition: LRU within sets of `WAYS` lines, processed in whole batches.

    The number of sets is odd, so that a power-of-two stride does not map its lines to a few sets.
    """

    def __init__(self, capacity_bytes: float) -> None:
        sets = max(int(capacity_bytes // (LINE_BYTES * WAYS)) - 1, 0) | 1
        self._sets = sets
        self._tags = np.full((sets, WAYS), -1, dtype=np.int64)
        self._used = np.zeros((sets, WAYS), dtype=np.int64)
        self._valid = np.zeros((sets, WAYS), dtype=np.uint8)
        self._dirty = np.zeros((sets, WAYS), dtype=np.uint8)
        self._clock = 0
        self.written_sectors = 0

    def access(self, lines: np.ndarray, sectors: np.ndarray, dirty: np.ndarray) -> np.ndarray:
        """Access lines in order; returns the mask of missing sectors of each.

        `sectors` are masks of four bits, `dirty` the ones among them that are written.
        """
        misses = np.zeros(len(lines), dtype=np.uint8)
        place = lines % self._sets
        order = np.argsort(place, kind="stable")
        sets = place[order]
        starts = np.flatnonzero(np.r_[True, sets[1:] != sets[:-1]])
        turn = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
        # Accesses to one set are processed in order; different sets are independent.
        by_turn = np.argsort(turn, kind="stable")
        for part in np.split(order[by_turn], np.flatnonzero(np.diff(turn[by_turn])) + 1):
            misses[part] = self._step(place[part], lines[part], sectors[part], dirty[part])
        return misses

    def _step(
        self, place: np.ndarray, lines: np.ndarray, sectors: np.ndarray, dirty: np.ndarray
    ) -> np.ndarray:
        """One access to each of many different sets."""
        self._clock += 1
        matches = self._tags[place] == lines[:, None]
        hit = matches.any(axis=1)
        way = np.where(hit, matches.argmax(axis=1), self._used[place].argmin(axis=1))
        had = np.where(hit, self._valid[place, way], 0).astype(np.uint8)
        marks = self._dirty[place, way]
        self.written_sectors += int(_POPULATION[marks[~hit]].sum())
        self._tags[place, way] = lines
        self._used[place, way] = self._clock
        self._valid[place, way] = had | sectors
        self._dirty[place, way] = np.where(hit, marks, 0).astype(np.uint8) | dirty
        return np.asarray(sectors & ~had, dtype=np.uint8)

    def flush(self) -> None:
        """Write back everything that is dirty."""
        self.written_sectors += int(_POPULATION[self._dirty].sum())
        self._dirty[:] = 0


class LineCache:
    """An L2 of one or more partitions at line granularity."""

    def __init__(self, capacity_bytes: float, partitions: int = 1) -> None:
        self._parts = [SetCache(capacity_bytes / partitions) for _ in range(partitions)]
        self._fetched = 0
        self._requested = 0

    def access(
        self, lines: np.ndarray, sectors: np.ndarray, ways: np.ndarray, unit: np.ndarray
    ) -> None:
        """Access lines in order. `ways`: 0 read, 1 write, 2 atomic; `unit` is the accessing unit.

        Reads go through the unit's partition and then the line's own. Writes and atomics go to the
        line's own partition only. Only reads and atomics fetch from memory.
        """
        self._requested += int(_POPULATION[sectors].sum())
        home = (lines >> 4) % len(self._parts)
        local = unit % len(self._parts)
        demand = sectors.copy()
        for number, part in enumerate(self._parts):
            copies = (local == number) & (home != number) & (ways == 0)
            if copies.any():
                clean = np.zeros(int(copies.sum()), dtype=np.uint8)
                demand[copies] = part.access(lines[copies], sectors[copies], clean)
        for number, part in enumerate(self._parts):
            mask = (home == number) & (demand != 0)
            dirty = np.where(ways[mask] > 0, demand[mask], 0).astype(np.uint8)
            misses = part.access(lines[mask], demand[mask], dirty)
            self._fetched += int(_POPULATION[misses[ways[mask] != 1]].sum())

    def finish(self) -> Simulated:
        """Totals, with what is dirty written back."""
        for part in self._parts:
            part.flush()
        sectors = sum(part.written_sectors for part in self._parts)
        return Simulated(
            float(self._fetched * SECTOR_BYTES),
            float(sectors * SECTOR_BYTES),
            float(self._requested * SECTOR_BYTES),
        )


_Lines = tuple[np.ndarray, np.ndarray, int]
_WAY = {"read": 0, "write": 1, "atomic": 2}


@dataclass
class Feed:
    """Feeds the addresses of a launch to a cache, one tile of each concurrent block in turn.

    When a block has finished, the next one starts. Only the blocks in flight are kept in memory.
    """

    cache: LineCache
    """The cache."""
    concurrent: int
    """Blocks in flight."""
    bases: Mapping[str, int]
    """First byte of each array."""
    _waiting: deque[deque[_Lines]] = field(default_factory=deque)
    _slots: list[deque[_Lines]] = field(default_factory=list)
    _block: int = -1

    @classmethod
    def of(
        cls, device: Device, spans: Mapping[str, tuple[int, int]], concurrent: int | None
    ) -> Feed:
        """A feed to the L2 of a device, with `concurrent` blocks in flight, by default one on each
        unit."""
        cache = LineCache(device.l2_capacity_bytes or 0.0, partitions(device))
        bases, offset = {}, 0
        for name, (start, end) in spans.items():
            bases[name] = offset
            offset += -(-(end - start) // _ALIGNMENT) * _ALIGNMENT
        return cls(cache, concurrent or device.units, bases)

    def take(self, chunk: Chunk) -> None:
        """Add one memory operation; blocks arrive one after another in launch order."""
        if chunk.block != self._block:
            self._drain(self.concurrent)
            self._block = chunk.block
            self._waiting.append(deque())
        self._waiting[-1].append(self._lines(chunk))

    def _lines(self, chunk: Chunk) -> _Lines:
        """Distinct lines of one operation with their masks of sectors."""
        sector = (chunk.offsets + self.bases[chunk.tensor]) // SECTOR_BYTES
        sector = sector[np.r_[True, sector[1:] != sector[:-1]]]
        sector = np.unique(sector)
        line = sector >> 2
        start = np.flatnonzero(np.r_[True, line[1:] != line[:-1]])
        masks = np.bitwise_or.reduceat(np.left_shift(1, sector & 3), start).astype(np.uint8)
        return line[start], masks, _WAY[chunk.way]

    def _drain(self, least: int) -> None:
        """Run turns while at least `least` blocks are available, so that every slot is filled."""
        while len(self._slots) + len(self._waiting) >= max(least, 1):
            while len(self._slots) < self.concurrent and self._waiting:
                self._slots.append(self._waiting.popleft())
            self._turn()
            self._slots = [slot for slot in self._slots if slot]

    def _turn(self) -> None:
        """One operation of every block in flight."""
        operations = [(unit, slot.popleft()) for unit, slot in enumerate(self._slots) if slot]
        if not operations:
            return
        count = [len(lines) for _, (lines, _, _) in operations]
        self.cache.access(
            np.concatenate([lines for _, (lines, _, _) in operations]),
            np.concatenate([masks for _, (_, masks, _) in operations]),
            np.repeat([way for _, (_, _, way) in operations], count),
            np.repeat([unit for unit, _ in operations], count),
        )

    def finish(self) -> Simulated:
        """Run what is left and return the totals."""
        self._drain(1)
        return self.cache.finish()


def partitions(device: Device) -> int:
    """Partitions of the L2 that keep copies of each other's lines: 2 if the spec says 2, else 1.

    Larger numbers in a spec are memory channels, which keep no copies.
    """
    return 2 if device.l2_partitions == 2 else 1


class TileCache:
    """The same cache at the granularity of whole tiles: fully associative, sizes in bytes."""

    def __init__(self, capacity_bytes: float, partitions: int = 1) -> None:
        self._capacity = capacity_bytes / partitions
        self._parts: list[OrderedDict[object, list[float]]] = [
            OrderedDict() for _ in range(partitions)
        ]
        self._held = [0.0] * partitions
        self._read = 0.0
        self._written = 0.0
        self._requested = 0.0

    def access(self, tile: object, size: float, way: int, unit: int) -> None:
        """Access one tile: `way` 0 reads, 1 writes, 2 adds atomically; `unit` is the accessing
        unit.

        A tile's lines are spread evenly over its partitions.
        """
        self._requested += size
        count = len(self._parts)
        if count == 1:
            if not self._touch(0, tile, size, way) and way != 1:
                self._read += size
            return
        local = unit % count
        for home in range(count):
            piece = (tile, home)
            if way == 0 and home != local and self._touch(local, piece, size / count, 0):
                continue
            if not self._touch(home, piece, size / count, way) and way != 1:
                self._read += size / count

    def _touch(self, part: int, tile: object, size: float, way: int) -> bool:
        """Access a tile in one partition, evicting LRU tiles if needed; returns whether it was
        there."""
        tiles = self._parts[part]
        entry = tiles.get(tile)
        if entry is not None:
            tiles.move_to_end(tile)
            if way:
                entry[1] = size
            return True
        tiles[tile] = [size, size if way else 0.0]
        self._held[part] += size
        while self._held[part] > self._capacity and tiles:
            _, (victim_size, dirty) = tiles.popitem(last=False)
            self._held[part] -= victim_size
            self._written += dirty
        return False

    def finish(self) -> Simulated:
        """Totals, with what is dirty written back."""
        self._written += sum(dirty for part in self._parts for _, dirty in part.values())
        for part in self._parts:
            part.clear()
        return Simulated(self._read, self._written, self._requested)
