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
from perfmodel.evidence.replay.cachesim import Simulated, TileCache
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
        for at in product(*(range(int(loop.trips)) for loop in loops)):
            span: dict[str, tuple[int, int]] = {}
            for loop, i in zip(loops, at, strict=True):
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
        whole = {axis: (0, int(extent)) for axis, extent in nest.sizes.items()} | dict(span)
        steps = [_cut(whole[loop.axis], int(loop.tile)) for loop in inner]
        held: dict[str, tuple[int, ...]] = {}
        pending: dict[str, Access] = {}
        for at in product(*steps):
            now = whole | {loop.axis: part for loop, part in zip(inner, at, strict=True)}
            if nest.mask is not None and not _visible(nest.mask, now, nest.sizes):
                continue
            asked = [self._access(tensor, now, 0) for tensor in reads]
            fresh = [item for item in asked if held.get(item[0][0]) != item[0][1]]
            held.update(item[0] for item in fresh)
            for tensor in writes:
                way = 2 if tensor.name in kernel.atomic else 1
                item = self._access(tensor, now, way)
                before = pending.get(tensor.name)
                if before is not None and before[0] != item[0]:
                    fresh.append(before)
                pending[tensor.name] = item
            yield fresh
        yield list(pending.values())

    def _access(self, tensor: Tensor, now: Mapping[str, tuple[int, int]], way: int) -> Access:
        kernel = self.cost.nest.kernel
        role = kernel.spill.get(tensor.name, tensor.element) if way == 2 else tensor.element
        size = self.elements[role].bytes
        for axis in tensor.axes:
            size *= now[axis][1] - now[axis][0]
        return (tensor.name, tuple(now[axis][0] for axis in tensor.axes)), size, way


def _cut(span: tuple[int, int], tile: int) -> list[tuple[int, int]]:
    """A range cut into tiles; the last may be smaller."""
    first, last = span
    return [(at, min(at + tile, last)) for at in range(first, last, tile)]


def _visible(band: Band, now: Mapping[str, tuple[int, int]], sizes: Mapping[str, int]) -> bool:
    """Whether any query of the current tile sees any key of it."""
    (q0, q1), (k0, k1) = now[band.query], now[band.key]
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
    upcoming = walk.blocks()
    slots: list[Iterator[list[Access]]] = []
    while True:
        while len(slots) < concurrent:
            span = next(upcoming, None)
            if span is None:
                break
            slots.append(walk.accesses(span))
        if not slots:
            return cache.finish()
        going = []
        for unit, slot in enumerate(slots):
            asked = next(slot, None)
            if asked is None:
                continue
            going.append(slot)
            for tile, size, way in asked:
                cache.access(tile, size, way, unit)
        slots = going


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
    where = replace(fill(machine, cost.blocks, slots / machine.units), slots=slots)
    moved = traffic.traffic(
        machine, default(), schedule, cost, elements, where, run=Circumstances(), retain=retain
    )
    return float(moved.hbm_bytes)


def exact_retention(working_set: Number, capacity: float, _knee: float) -> np.ndarray:
    """Share of a working set that the simulated cache retains: 1 / (1 + (size / capacity)^12).

    `capacity` counts distinct lines. Each of two partitions also keeps copies of the other's half,
    so a working set that every unit reads occupies 3/2 of its size.
    """
    size = np.asarray(working_set, dtype=np.float64)
    return np.asarray(1.0 / (1.0 + (size / capacity) ** 12))
