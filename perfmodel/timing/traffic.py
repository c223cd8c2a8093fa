"""Bytes that cross the HBM and L2 boundaries, and which level serves a block's loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace

import numpy as np

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number, is_one
from perfmodel.count import KernelCost, rule, waves
from perfmodel.count.rule import Nest
from perfmodel.elements import ElementType
from perfmodel.frozen import dataclass
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.occupancy import Residency
from perfmodel.timing.reuse import Reuse, Reuses

# Working set over L1 capacity at which half of the working set still hits. The L1 does not replace
# in LRU order (Jia et al. 2018, Volta). Under random replacement a share e^(-s/c) of the lines is
# left after s others in a cache of c lines: half at s/c = ln 2.
_L1_KNEE = 0.69

Retain = Callable[[Number, float, float], np.ndarray]
_ZERO = np.zeros(())
_NOWHERE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Traffic:
    """Bytes over HBM and L2, and the level that serves a block's loads."""

    hbm_bytes: np.ndarray
    """Bytes between HBM and the caches in front of it."""
    turnaround_bytes: np.ndarray
    """The smaller of HBM bytes read and HBM bytes written: DRAM bus turnarounds cost time per such
    byte."""
    l2_bytes: np.ndarray
    """Bytes between L2 and the units."""
    missed: np.ndarray
    """Share of a block's loads that miss the L2. Concurrent requests for one tile share one miss;
    it counts once in the bytes, and once for each request here."""
    near: np.ndarray
    """Share of a block's loads that hit the unit's own L1."""
    llc_bytes: np.ndarray | None = None
    """Bytes between L2 and a memory-side cache; None where there is none."""
    caught: np.ndarray = field(default_factory=lambda: _ZERO)
    """Share of a block's loads that miss the L2 and hit the memory-side cache."""
    written_bytes: np.ndarray = field(default_factory=lambda: _ZERO)
    """Bytes of `hbm_bytes` that are written."""
    linked_bytes: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Bytes read over each link, by level; not included in the bytes behind the L2."""
    linked: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Share of a block's loads that miss the L2 and come over each link, by level."""

    def through(self) -> Traffic:
        """The traffic with bytes over links added at each boundary behind the L2.

        They take the same way into the L2. Whether links and memory together give more bandwidth
        than memory alone is not known; the model assumes that they do not.
        """
        if not self.linked_bytes:
            return self
        link_bytes = sum(self.linked_bytes.values(), start=_ZERO)
        hbm_bytes = np.asarray(self.hbm_bytes + link_bytes)
        return replace(
            self,
            hbm_bytes=hbm_bytes,
            turnaround_bytes=np.minimum(hbm_bytes - self.written_bytes, self.written_bytes),
            llc_bytes=None if self.llc_bytes is None else np.asarray(self.llc_bytes + link_bytes),
        )


def held_share(working_set: Number, capacity: float, knee: float) -> np.ndarray:
    """Share of a working set that still hits in a cache when it is read again.

        1 / (1 + (set / (knee · capacity))⁴)

    It is near 1 while the set fits and falls smoothly: replacement is not exact, and a partitioned
    L2 holds some lines twice. `knee` is fitted. The fourth power is what a set-associative LRU
    cache does to tile streams (`perfmodel.proof.replay.cachesim`).
    """
    if capacity <= 0:
        return np.zeros(np.shape(working_set))
    ratio = np.asarray(working_set, dtype=np.float64) / (knee * capacity)
    return 1.0 / (1.0 + np.square(np.square(ratio)))


def swept_share(distance: Number, capacity: float, knee: float) -> np.ndarray:
    """Share of a tensor that still hits in a cache when a loop reads it again in the same order.

        1 / (1 + (distance / (knee · capacity))¹⁶)

    Every line has the same reuse `distance` in bytes, so an LRU cache holds all of the tensor or
    nothing (Mattson et al. 1970); hashed sets smooth the step a little. Reuse within a kernel has a
    distribution of distances instead: see `held_share`.
    """
    if capacity <= 0:
        return np.zeros(np.shape(distance))
    ratio = np.asarray(distance, dtype=np.float64) / (knee * capacity)
    fourth = np.square(np.square(np.minimum(ratio, 1e6)))
    return np.asarray(1.0 / (1.0 + np.square(np.square(fourth))))


def traffic(
    machine: Machine,
    constants: Constants,
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    where: Residency,
    run: Circumstances,
    retain: Retain = held_share,
    shared: Sequence[str] = (),
    multicast: float = 1.0,
    placed: Mapping[str, str] = _NOWHERE,
    reuse: Reuses | None = None,
) -> Traffic:
    """Bytes over HBM: each tensor once per pass that the waves of blocks cannot share in L2.

    Bytes over L2 are those between the L2 and the units. `multicast` blocks get a tile from one
    read: those of a cluster (Hopper Tuning Guide, 1.4.1.3), or of neighbouring units that ask for
    the same lines together, whose requests the L2 request coalescer joins (Nsight Compute, Metrics
    Decoder, lrc; kernels/measured/h200/counters.csv). What comes from memory crosses the L2 at
    least once, since blocks share only what each of them reads.

    `run.warm` is the share of what fits in L2 that an earlier run of the same kernel left there, as
    in timing loops that do not clear the cache. Inputs hit on it. An output overwrites the earlier
    output, so a write-back cache never sends that to memory. `reuse`, where given, says what
    earlier kernels left instead (`perfmodel.timing.reuse`).

    An input that is `shared` lies in another tensor's memory and always hits. `retain` gives the
    share of a working set that still hits, from its size, the cache's capacity and the fitted knee.

    A memory-side cache sees the misses of the L2 and keeps lines by the same rule. All that the L2
    holds has passed through it, so the larger of the two shares counts, not their sum.

    Inputs `placed` behind a link, by level, are read over it on every L2 miss. No earlier run left
    them in the L2, since lines of another memory do not outlast a kernel, and no memory-side cache
    holds them.
    """

    caches = _caches(machine, constants, retain)
    l2_bytes = np.asarray(cost.bytes_at("l2"), dtype=np.float64)
    if not cost.nest.kernel.steps:  # a combining kernel reads what was just written
        footprint = sum((t.total_bytes for t in cost.hbm.values()), start=_ZERO)
        shares = [1.0 - cache.held(footprint) for cache in caches]
        return _traffic([_Crossing(footprint * share, _ZERO) for share in shares], shares, l2_bytes)
    wave = _wave(schedule, cost, elements, where)
    near_share = _l1_share(machine, cost, wave, where)
    pins = dict.fromkeys(placed, _ZERO) | dict.fromkeys(shared, np.ones(()))
    if reuse is None:
        reuse = _run_reuses(schedule, cost, run)
    # No cache behind the L2 holds what was not written to memory yet.
    inner = _hits(caches[0], reuse, pins)
    outputs = {name: share for name, share in inner.items() if name in wave.writes}
    crossings = []
    for cache in caches:
        contents = _Contents(cache.held, pins, _hits(cache, reuse, pins) | outputs)
        crossings.append(_crossing(schedule, cost, elements, wave, near_share, contents, placed))
    loads, near_bytes = _ZERO, _ZERO
    for name in wave.reads:
        loads = loads + cost.l2[name].read_bytes
        near_bytes = near_bytes + near_share * _reread_bytes(schedule, cost, wave, where, name)
    loads = np.maximum(loads, 1.0)
    linked = crossings[0].linked
    remote = sum(linked.values(), start=_ZERO)
    misses = [np.minimum((c.loaded + remote) * wave.sharing / loads, 1.0) for c in crossings]
    spare = np.clip(loads - np.maximum(loads / multicast, crossings[0].loaded + remote), 0.0, None)
    l1_hits = np.minimum(near_bytes / loads, 1.0 - misses[0])
    totals = _traffic(crossings, misses, l2_bytes - near_bytes - spare, l1_hits)
    if not linked:
        return totals
    share = {name: np.minimum(each * wave.sharing / loads, 1.0) for name, each in linked.items()}
    return replace(totals, linked_bytes=linked, linked=share)


@dataclass(frozen=True)
class _Cache:
    """Hit shares of the caches up to a boundary: `held` for reuse within a kernel (`held_share`),
    `swept` for a tensor that is read again in the same order (`swept_share`)."""

    held: Callable[[Number], np.ndarray]
    swept: Callable[[Number], np.ndarray]


def _caches(machine: Machine, constants: Constants, retain: Retain) -> tuple[_Cache, ...]:
    """The L2, and the L2 with a memory-side cache where there is one: the larger of the two
    shares."""
    knee, rooms = constants["l2_knee"], [machine.l2_distinct_bytes]
    if machine.llc is not None:
        rooms.append(machine.llc.capacity_bytes)

    def largest(curve: Retain, reach: Sequence[float]) -> Callable[[Number], np.ndarray]:
        if len(reach) == 1:
            return lambda footprint: curve(footprint, reach[0], knee)
        return lambda footprint: np.asarray(
            np.maximum(curve(footprint, reach[0], knee), curve(footprint, reach[1], knee))
        )

    reaches = [rooms[:i] for i in range(1, len(rooms) + 1)]
    return tuple(_Cache(largest(retain, each), largest(swept_share, each)) for each in reaches)


def _run_reuses(schedule: Schedule, cost: KernelCost, run: Circumstances) -> Reuses:
    """What an earlier run of the same kernel left of each tensor.

    The reuse distance is all bytes that the kernel touches. For tensors that take turns with their
    copies, the bytes of all the other copies are added. Where other kernels run between two runs,
    the distances scatter about that size, and outputs are new memory.
    """
    if not run.warm:
        return {}
    reads = schedule.reads(cost.nest.kernel)
    footprint = sum((moved.total_bytes for moved in cost.hbm.values()), start=_ZERO)
    roles = schedule.algorithm.tensors
    turns = {
        name: moved.total_bytes
        for name, moved in cost.hbm.items()
        if (roles[name].element if name in reads else "output") in run.turns
    }
    others = sum(turns.values(), start=_ZERO) * (run.copies - 1.0)
    return {
        name: (Reuse(run.warm, footprint + (others if name in turns else 0.0), run.repeats),)
        for name in cost.hbm
        if name in reads or run.repeats
    }


@dataclass(frozen=True)
class _Contents:
    """What the caches up to a boundary hold."""

    held: Callable[[Number], np.ndarray]
    """Share of a working set that still hits, from its bytes."""
    always: Mapping[str, np.ndarray]
    """Share of an input that hits on every read."""
    first: Mapping[str, np.ndarray]
    """Share of an input that hits on its first read; share of an output whose old lines are still
    in the cache and are overwritten there."""


def _hits(cache: _Cache, reuses: Reuses, pins: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Share of each tensor that earlier kernels left in the caches up to a boundary."""
    return {
        name: np.asarray(sum(_hit_share(cache, one) for one in said))
        for name, said in reuses.items()
        if name not in pins
    }


def _hit_share(cache: _Cache, reuse: Reuse) -> Number:
    curve = cache.swept if reuse.swept else cache.held
    return reuse.share * curve(reuse.distance_bytes)


@dataclass(frozen=True)
class _Crossing:
    """Bytes that cross a boundary, after the hits of the caches in front of it."""

    loaded: np.ndarray
    written: np.ndarray
    linked: Mapping[str, np.ndarray] = field(default_factory=dict)


def _traffic(
    crossings: Sequence[_Crossing],
    misses: Sequence[np.ndarray],
    l2_bytes: np.ndarray,
    l1_hits: np.ndarray = _ZERO,
) -> Traffic:
    """The bytes behind the L2 and, where there is a memory-side cache, those behind that.

    The memory-side cache holds no dirty data: writes from the L2 pass through to memory. Only reads
    of an output can hit there, half of the bytes of a read-modify-write.
    """
    inner, outer = crossings[0], crossings[-1]
    writes = inner.written if inner is outer else (inner.written + outer.written) / 2.0
    return Traffic(
        np.asarray(outer.loaded + writes),
        np.minimum(outer.loaded, writes),
        np.asarray(l2_bytes),
        np.asarray(misses[0]),
        np.asarray(l1_hits),
        None if inner is outer else np.asarray(inner.loaded + inner.written),
        np.asarray(misses[0] - misses[-1]),
        np.asarray(writes),
    )


def _crossing(
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    wave: _Wave,
    near_share: Number,
    contents: _Contents,
    places: Mapping[str, str],
) -> _Crossing:
    """Bytes that cross a boundary whose caches hold `contents`."""
    retain = contents.held
    loads, writes = _ZERO, _ZERO
    links: dict[str, np.ndarray] = {}
    for name, least in cost.hbm.items():
        if name not in wave.reads:
            leaves = _write_bytes(schedule, cost, elements, wave, name, retain)
            writes = writes + leaves * (1.0 - contents.first.get(name, 0.0))
            continue
        passes = wave.passes(schedule, name, retain)
        times = rule.normaliser_passes(schedule, cost.nest, name)
        if not is_one(times):
            # A row that is streamed again for its normaliser may still hit. Between two of its
            # passes the other blocks touch one pass of their own rows, and their share of the
            # writes.
            distance = wave.load_bytes + (wave.all_bytes - wave.load_bytes) / times
            passes = passes + (times - 1) * (1.0 - near_share) * (1.0 - retain(distance))
        if name in contents.first:
            passes = np.maximum(passes - contents.first[name], 0.0)
        bytes_ = least.read_bytes * passes
        if name in contents.always:
            bytes_ = bytes_ * (1.0 - contents.always[name])
        if name in places:
            links[places[name]] = links.get(places[name], _ZERO) + bytes_
        else:
            loads = loads + bytes_
    return _Crossing(loads, writes, links)


@dataclass(frozen=True)
class _Wave:
    """The blocks that run at once, and the bytes that they touch from start to end, each tile once.

    `sharing` is the mean number of blocks that wait for one fetch. `between` has the bytes touched
    in one iteration of each grid loop.
    """

    nest: Nest
    reads: tuple[str, ...]
    widths: Mapping[Tensor, float]
    loops: Sequence[waves.GridLoop]
    concurrent: np.ndarray
    all_bytes: Number
    load_bytes: Number
    sharing: Number
    between: tuple[Number, ...] = ()

    @property
    def writes(self) -> frozenset[str]:
        """Tensors that are written and not read."""
        return frozenset(tensor.name for tensor in self.widths) - frozenset(self.reads)

    def loads(self) -> dict[Tensor, float]:
        """Bytes an element of every tensor that is read."""
        return {tensor: width for tensor, width in self.widths.items() if tensor.name in self.reads}

    def passes(self, schedule: Schedule, name: str, retain: Callable[[Number], Number]) -> Number:
        """How often each element of a tensor crosses the memory boundary."""
        tensor = schedule.algorithm.tensors[name]
        return waves.hbm_passes(
            self.nest, tensor, self.concurrent, retain, self.between, self.all_bytes, self.loops
        )

    def fetches(self, tensor: Tensor) -> bool:
        """Whether a tensor is brought in from memory: it is read, or added to atomically."""
        return tensor.name in self.reads or tensor.name in self.nest.kernel.atomic

    def between_bytes(self, loop: waves.GridLoop) -> Number:
        """Bytes touched in one iteration of a grid loop, or in one wave where that is more."""
        # A loop of one trip, or one whose axis every fetched tensor has, causes no second fetch.
        if is_one(loop.trips) or is_one(loop.stride):
            return self.all_bytes
        if all(loop.axis in tensor.axes for tensor in self.widths if self.fetches(tensor)):
            return self.all_bytes
        blocks = np.maximum(loop.stride, self.concurrent)
        return waves.footprint(self.nest, self.widths, self.loops, blocks)


def _wave(
    schedule: Schedule, cost: KernelCost, elements: Mapping[str, ElementType], grid: Residency
) -> _Wave:
    nest, tensors = cost.nest, schedule.algorithm.tensors
    reads = schedule.reads(nest.kernel)
    loops = waves.grid_loops(nest)
    concurrent = np.minimum(grid.slots, np.asarray(cost.blocks, dtype=np.float64))
    widths = {tensors[n]: elements[tensors[n].element].bytes for n in cost.hbm}
    loads = {tensor: width for tensor, width in widths.items() if tensor.name in reads}
    reach = waves.covered(nest, loops, concurrent)
    load_bytes = waves.touched(nest, loads, reach)
    single = waves.touched(nest, loads, waves.by_one_block(loops))
    wave = _Wave(
        nest=nest,
        reads=reads,
        widths=widths,
        loops=loops,
        concurrent=concurrent,
        all_bytes=waves.touched(nest, widths, reach),
        load_bytes=load_bytes,
        sharing=concurrent * single / np.maximum(load_bytes, 1.0),
    )
    return replace(wave, between=tuple(wave.between_bytes(loop) for loop in loops))


def _write_bytes(
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    wave: _Wave,
    name: str,
    retain: Callable[[Number], Number],
) -> Number:
    """HBM bytes of an output: one write, and more where it is rewritten or accumulated and
    evicted."""
    tensor, kernel = schedule.algorithm.tensors[name], cost.nest.kernel
    if name in kernel.atomic:
        # Concurrent blocks add to one copy in L2; every pass reads it from memory and writes it
        # back.
        role = kernel.spill.get(name, tensor.element)
        bytes_ = rule.size(cost.nest.sizes, tensor) * elements[role].bytes
        return 2.0 * bytes_ * wave.passes(schedule, name, retain)
    least = cost.hbm[name].write_bytes
    rewrites = cost.l2[name].total_bytes - least
    return least + rewrites * (1.0 - retain(wave.all_bytes))


def _l1_share(machine: Machine, cost: KernelCost, wave: _Wave, grid: Residency) -> Number:
    """Share of a row-wise kernel's repeated reads that hit the unit's L1.

    The L1 must hold the rows of all resident blocks. Tiled kernels keep their operands in shared
    memory or registers and read each once, so they have no such hits.
    """
    if cost.nest.kernel.operand_tile is not None:
        return _ZERO
    rows = waves.footprint(wave.nest, wave.loads(), wave.loops, grid.concurrent)
    return held_share(rows, machine.l1_capacity, _L1_KNEE)


def _reread_bytes(
    schedule: Schedule, cost: KernelCost, wave: _Wave, grid: Residency, name: str
) -> Number:
    """Bytes that a unit's blocks read again: further passes over rows, and the weights that all
    rows use."""
    if cost.nest.kernel.operand_tile is not None:
        return 0.0
    axes = schedule.algorithm.tensors[name].axes
    varies = any(loop.axis in axes for loop in wave.loops)
    first = cost.hbm[name].read_bytes * (1.0 if varies else grid.active_units)
    return np.maximum(cost.l2[name].read_bytes - first, 0.0)
