"""The tiles that a schedule's blocks access, in order, from the loop nest; no kernel runs.

Every block runs its sequential loops and accesses a tensor's tile whenever one of the tile's
indices changes. Tile pairs that the mask hides are skipped. `simulate` interleaves the concurrent
blocks, one iteration of each in turn, into a `TileCache`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from perfmodel.algorithms.algorithm import Band, Tensor
from perfmodel.arithmetic import Number
from perfmodel.count import KernelCost, waves
from perfmodel.elements import ElementType
from perfmodel.proof.replay.cachesim import Simulated, TileCache
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing import traffic
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import default
from perfmodel.timing.machine import Machine
from perfmodel.timing.occupancy import fill

# (tensor, tile), bytes, way: 0 read, 1 write, 2 atomic
Access = tuple[tuple[str, tuple[int, ...]], float, int]


@dataclass(frozen=True)
class Walk:
    """One kernel of a schedule with plain integer sizes, for iteration block by block."""

    schedule: Schedule
    """The schedule."""
    cost: KernelCost
    """Counts of the kernel."""
    elements: Mapping[str, ElementType]
    """Element type of each role."""

    def blocks(self) -> Iterator[dict[str, tuple[int, int]]]:
        """Extent (first, one past) of every grid axis, block by block in launch order."""
        nest = self.cost.nest
        loops = waves.grid_loops(nest)
        for index in product(*(range(int(loop.trips)) for loop in loops)):
            span: dict[str, tuple[int, int]] = {}
            for loop, i in zip(loops, index, strict=True):
                low, high = span.get(loop.axis, (0, int(nest.sizes[loop.axis])))
                first = low + i * int(loop.tile)
                span[loop.axis] = (first, min(first + int(loop.tile), high))
            if all(first < last for first, last in span.values()):
                yield span

    def accesses(self, span: Mapping[str, tuple[int, int]]) -> Iterator[list[Access]]:
        """The accesses of one block, one list for each iteration of its sequential loops."""
        nest, kernel = self.cost.nest, self.cost.nest.kernel
        tensors = self.schedule.algorithm.tensors
        reads = [tensors[name] for name in self.schedule.reads(kernel)]
        writes = [tensors[name] for name in self.schedule.writes(kernel)]
        inner = [loop for loop in kernel.nest if not loop.grid]
        full = {axis: (0, int(extent)) for axis, extent in nest.sizes.items()} | dict(span)
        steps = [_tiles(full[loop.axis], int(loop.tile)) for loop in inner]
        resident: dict[str, tuple[int, ...]] = {}
        pending: dict[str, Access] = {}
        for parts in product(*steps):
            extents = full | {loop.axis: part for loop, part in zip(inner, parts, strict=True)}
            if nest.mask is not None and not _sees(nest.mask, extents, nest.sizes):
                continue
            accesses = [self._access(tensor, extents, 0) for tensor in reads]
            misses = [item for item in accesses if resident.get(item[0][0]) != item[0][1]]
            resident.update(item[0] for item in misses)
            for tensor in writes:
                way = 2 if tensor.name in kernel.atomic else 1
                item = self._access(tensor, extents, way)
                previous = pending.get(tensor.name)
                if previous is not None and previous[0] != item[0]:
                    misses.append(previous)
                pending[tensor.name] = item
            yield misses
        yield list(pending.values())

    def _access(self, tensor: Tensor, extents: Mapping[str, tuple[int, int]], way: int) -> Access:
        kernel = self.cost.nest.kernel
        role = kernel.spill.get(tensor.name, tensor.element) if way == 2 else tensor.element
        size = self.elements[role].bytes
        for axis in tensor.axes:
            size *= extents[axis][1] - extents[axis][0]
        return (tensor.name, tuple(extents[axis][0] for axis in tensor.axes)), size, way


def _tiles(span: tuple[int, int], tile: int) -> list[tuple[int, int]]:
    """A range cut into tiles; the last may be smaller."""
    first, last = span
    return [(start, min(start + tile, last)) for start in range(first, last, tile)]


def _sees(band: Band, extents: Mapping[str, tuple[int, int]], sizes: Mapping[str, Number]) -> bool:
    """Whether any query of the current tile sees any key of it."""
    (q0, q1), (k0, k1) = extents[band.query], extents[band.key]
    shift = int(sizes[band.key]) - int(sizes[band.query])
    if band.right is not None and k0 >= q1 + shift + int(band.right):
        return False
    return band.left is None or k1 > q0 + shift - int(band.left) + 1


def simulate(
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    concurrent: int,
    capacity_bytes: float,
    partitions: int = 1,
) -> Simulated:
    """HBM bytes of one kernel: `concurrent` blocks in flight, one iteration each in turn."""
    walk = Walk(schedule, cost, elements)
    cache = TileCache(capacity_bytes, partitions)
    spans = walk.blocks()
    slots: list[Iterator[list[Access]]] = []
    while True:
        while len(slots) < concurrent:
            span = next(spans, None)
            if span is None:
                break
            slots.append(walk.accesses(span))
        if not slots:
            return cache.finish()
        rest = []
        for unit, slot in enumerate(slots):
            accesses = next(slot, None)
            if accesses is None:
                continue
            rest.append(slot)
            for tile, size, way in accesses:
                cache.access(tile, size, way, unit)
        slots = rest


def model_bytes(
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    concurrent: int,
    machine: Machine,
    retain: traffic.Retain = traffic.held_share,
) -> float:
    """HBM bytes by the time model for the same kernel, with `concurrent` blocks in flight.

    By default the retention is the one fitted to real caches. With `exact_retention` only the
    closed form is tested: the simulated cache is exactly LRU, and a real one is not.
    """
    slots = np.asarray(float(concurrent))
    residency = replace(fill(machine, cost.blocks, slots / machine.units), slots=slots)
    volume = traffic.traffic(
        machine, default(), schedule, cost, elements, residency, run=Circumstances(), retain=retain
    )
    return float(volume.hbm_bytes)


def exact_retention(working_set: Number, capacity: float, _knee: float) -> np.ndarray:
    """Share of a working set that the simulated cache retains: 1 / (1 + (size / capacity)^12).

    `capacity` counts distinct lines. Each of two partitions also keeps copies of the other's half,
    so a working set that every unit reads occupies 3/2 of its size.
    """
    size = np.asarray(working_set, dtype=np.float64)
    return np.asarray(1.0 / (1.0 + (size / capacity) ** 12))
