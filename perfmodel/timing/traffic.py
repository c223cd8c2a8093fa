"""Bytes that cross the HBM and L2 boundaries, and what answers a block's loads."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number, is_one
from perfmodel.count import KernelCost, rule, waves
from perfmodel.count.rule import Nest
from perfmodel.elements import ElementType
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.occupancy import Residency
from perfmodel.timing.reuse import Reuse, Reuses

# Working set, as a share of an L1's capacity, at which half of it is still there. Its lines are not
# replaced in the order of their use (Jia et al. 2018, Volta): of lines replaced at random e^(-s/c)
# are left after s of c others, half of them at ln 2.
_L1_KNEE = 0.69

Retain = Callable[[Number, float, float], np.ndarray]
_ZERO = np.zeros(())
_NOWHERE: Mapping[str, str] = {}


@dataclass(frozen=True)
class Traffic:
    """Bytes over HBM and L2, and which level serves a block's loads."""

    hbm_bytes: np.ndarray
    """Bytes between HBM and the caches in front of it."""
    turnaround_bytes: np.ndarray
    """The smaller of HBM's bytes read and written: what DRAM bus turnarounds are charged on."""
    l2_bytes: np.ndarray
    """Bytes between L2 and the units."""
    missed: np.ndarray
    """Share of a block's loads that the L2 does not serve. Concurrent requests for one tile share
    one miss, which counts once in the bytes and for each of them here."""
    near: np.ndarray
    """Share of a block's loads that the unit's own L1 serves."""
    llc_bytes: np.ndarray | None = None
    """Bytes between L2 and a memory-side cache; None where there is none."""
    caught: np.ndarray = field(default_factory=lambda: _ZERO)
    """Share of a block's loads that the memory-side cache serves, of those that the L2 missed."""
    written_bytes: np.ndarray = field(default_factory=lambda: _ZERO)
    """Bytes of `hbm_bytes` that are written."""
    linked_bytes: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Bytes read over each link, by level; they are in none of the bytes behind the L2."""
    linked: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Share of a block's loads that come over each link, of those that the L2 missed."""

    def through(self) -> Traffic:
        """The same with what comes over links counted at each boundary behind the L2.

        It takes the same way into the L2. Whether a device gets more through links and memory
        together than its memory alone gives is not known, and is not taken for granted.
        """
        if not self.linked_bytes:
            return self
        more = sum(self.linked_bytes.values(), start=_ZERO)
        every = np.asarray(self.hbm_bytes + more)
        return replace(
            self,
            hbm_bytes=every,
            turnaround_bytes=np.minimum(every - self.written_bytes, self.written_bytes),
            llc_bytes=None if self.llc_bytes is None else np.asarray(self.llc_bytes + more),
        )


def held_share(working_set: Number, capacity: float, knee: float) -> np.ndarray:
    """Share of a working set that a cache still holds when it is asked for again.

    1 / (1 + (set / (knee · capacity))⁴): near 1 while it fits, falling smoothly rather than off a
    cliff, because replacement is not exact and a partitioned L2 holds some lines twice. The fourth
    power is what a set-associative LRU of that capacity does to tile streams (`evidence.cachesim`).
    """
    if capacity <= 0:
        return np.zeros(np.shape(working_set))
    ratio = np.asarray(working_set, dtype=np.float64) / (knee * capacity)
    return 1.0 / (1.0 + np.square(np.square(ratio)))


def swept_share(distance: Number, capacity: float, knee: float) -> np.ndarray:
    """Share of a tensor that a cache still holds when a loop comes round to it again.

    Every line of it comes back after the same `distance`, where reuse within a kernel has a
    distribution of them: least-recently-used replacement holds all of it or nothing (Mattson et al.
    1970), and hashed sets smooth that little. 1 / (1 + (distance / (knee · capacity))¹⁶).
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

    Bytes over L2 are those that it delivers and takes. Blocks of a cluster that ask for the same
    tile get it from one read: `multicast` is how many share (Hopper Tuning Guide, 1.4.1.3). What
    comes from memory is delivered once at least: blocks share only what they both ask for.

    `run.warm` is the share of what fits in L2 that is still there from an earlier run of the same
    kernel, as in timing loops that do not clear the cache. Inputs are found there, and what is
    written lies over what the run before wrote, so that a cache that writes back never sends it to
    memory. Where `reuse` is given, it says what earlier kernels left of the inputs instead
    (`perfmodel.timing.reuse`).

    An input that is `shared` lies in the memory of another, whose bytes are there when it asks for
    them. `retain` gives the share of a working set that a cache still holds, from its size, the
    capacity and the fitted knee.

    A memory-side cache sees what the L2 misses and keeps by the same rule. All that the L2 holds
    has come through it, so that the larger of the two counts and not their sum. Inputs `placed`
    behind a link, by level, come from there whenever the L2 does not hold them: no earlier run left
    them, since lines of another memory do not outlast a kernel, and no memory-side cache sees them.
    """

    caches = _caches(machine, constants, retain)
    asked = np.asarray(cost.bytes_at("l2"), dtype=np.float64)
    if not cost.nest.kernel.steps:  # a combining kernel reads what was just written
        touched = sum((t.total_bytes for t in cost.hbm.values()), start=_ZERO)
        shares = [1.0 - cache.held(touched) for cache in caches]
        return _traffic([_Crossing(touched * share, _ZERO) for share in shares], shares, asked)
    wave = _wave(schedule, cost, elements, where)
    near_share = _l1_share(machine, cost, wave, where)
    away = dict.fromkeys(placed, _ZERO) | dict.fromkeys(shared, np.ones(()))
    if reuse is None:
        reuse = _from_run(schedule, cost, run)
    # No cache behind the L2 holds what was not written to memory yet.
    inner = _found(caches[0], reuse, away)
    rewritten = {name: share for name, share in inner.items() if name in wave.writes}
    crossings = []
    for cache in caches:
        kept = _Kept(cache.held, away, _found(cache, reuse, away) | rewritten)
        crossings.append(_crossing(schedule, cost, elements, wave, near_share, kept, placed))
    loads, near = _ZERO, _ZERO
    for name in wave.reads:
        loads = loads + cost.l2[name].read_bytes
        near = near + near_share * _repeated(schedule, cost, wave, where, name)
    loads = np.maximum(loads, 1.0)
    linked = crossings[0].linked
    over = sum(linked.values(), start=_ZERO)
    missed = [np.minimum((each.loaded + over) * wave.sharing / loads, 1.0) for each in crossings]
    spared = np.clip(loads - np.maximum(loads / multicast, crossings[0].loaded + over), 0.0, None)
    within = np.minimum(near / loads, 1.0 - missed[0])
    found = _traffic(crossings, missed, asked - near - spared, within)
    if not linked:
        return found
    share = {name: np.minimum(each * wave.sharing / loads, 1.0) for name, each in linked.items()}
    return replace(found, linked_bytes=linked, linked=share)


@dataclass(frozen=True)
class _Cache:
    """What the caches up to a boundary hold: of a working set, and of what is swept again."""

    held: Callable[[Number], np.ndarray]
    swept: Callable[[Number], np.ndarray]


def _caches(machine: Machine, constants: Constants, retain: Retain) -> tuple[_Cache, ...]:
    """The L2, and it with a memory-side cache where there is one: the larger of the two counts."""
    knee, rooms = constants["l2_knee"], [machine.l2_distinct_bytes]
    if machine.llc is not None:
        rooms.append(machine.llc.capacity_bytes)

    def largest(of: Retain, reach: Sequence[float]) -> Callable[[Number], np.ndarray]:
        if len(reach) == 1:
            return lambda touched: of(touched, reach[0], knee)
        return lambda touched: np.asarray(
            np.maximum(of(touched, reach[0], knee), of(touched, reach[1], knee))
        )

    reaches = [rooms[:i] for i in range(1, len(rooms) + 1)]
    return tuple(_Cache(largest(retain, each), largest(swept_share, each)) for each in reaches)


def _from_run(schedule: Schedule, cost: KernelCost, run: Circumstances) -> Reuses:
    """What a run of the same kernel before this one left of each tensor.

    All that the kernel touches goes by until one is used again, and of what takes turns all its
    copies, until one of those is. Where other kernels run between, distances are about that size,
    and what is written is new.
    """
    if not run.warm:
        return {}
    reads = schedule.reads(cost.nest.kernel)
    touched = sum((moved.total_bytes for moved in cost.hbm.values()), start=_ZERO)
    found: dict[str, Sequence[Reuse]] = {}
    for name in cost.hbm:
        if name in reads or run.repeats:
            others = sum(
                (
                    moved.total_bytes * (run.copies - 1.0)
                    for other, moved in cost.hbm.items()
                    if _takes_turns(schedule, run, reads, other)
                ),
                start=_ZERO,
            )
            mine = others if _takes_turns(schedule, run, reads, name) else 0.0
            found[name] = (Reuse(run.warm, touched + mine, run.repeats),)
    return found


def _takes_turns(schedule: Schedule, run: Circumstances, reads: Sequence[str], name: str) -> bool:
    """Whether copies of a tensor take turns in a loop; the weights do where anything does."""
    if name not in reads:
        return run.own_results
    return run.own_inputs or schedule.algorithm.tensors[name].element == "weights"


@dataclass(frozen=True)
class _Kept:
    """What the caches up to a boundary keep."""

    held: Callable[[Number], np.ndarray]
    """The share that they still hold of a working set."""
    always: Mapping[str, np.ndarray]
    """The share of an input that is there whenever the kernel asks for it."""
    first: Mapping[str, np.ndarray]
    """The share of an input that is there when the kernel first asks for it, and of an output that
    is there to be written over."""


def _found(cache: _Cache, reuses: Reuses, away: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The share of each tensor that earlier kernels left in the caches up to a boundary."""
    return {
        name: np.asarray(sum(_left(cache, one) for one in said))
        for name, said in reuses.items()
        if name not in away
    }


def _left(cache: _Cache, one: Reuse) -> Number:
    holds = cache.swept if one.swept else cache.held
    return one.share * holds(one.distance_bytes)


@dataclass(frozen=True)
class _Crossing:
    """Bytes that the caches up to a boundary leave to cross it."""

    loaded: np.ndarray
    written: np.ndarray
    linked: Mapping[str, np.ndarray] = field(default_factory=dict)


def _traffic(
    crossings: Sequence[_Crossing],
    missed: Sequence[np.ndarray],
    l2_bytes: np.ndarray,
    near: np.ndarray = _ZERO,
) -> Traffic:
    """What crosses the boundary behind the L2 and, where there is another cache, the one behind it.

    That one holds no dirty data: what leaves the L2 is written through to memory, and only what is
    read back of it may be found there, half of the bytes that an output is rewritten with.
    """
    inner, outer = crossings[0], crossings[-1]
    written = inner.written if inner is outer else (inner.written + outer.written) / 2.0
    return Traffic(
        np.asarray(outer.loaded + written),
        np.minimum(outer.loaded, written),
        np.asarray(l2_bytes),
        np.asarray(missed[0]),
        np.asarray(near),
        None if inner is outer else np.asarray(inner.loaded + inner.written),
        np.asarray(missed[0] - missed[-1]),
        np.asarray(written),
    )


def _crossing(
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    wave: _Wave,
    near_share: Number,
    kept: _Kept,
    placed: Mapping[str, str],
) -> _Crossing:
    """Bytes that cross behind caches which keep what is `kept`."""
    held = kept.held
    loaded, written = _ZERO, _ZERO
    linked: dict[str, np.ndarray] = {}
    for name, least in cost.hbm.items():
        if name not in wave.reads:
            leaves = _written(schedule, cost, elements, wave, name, held)
            written = written + leaves * (1.0 - kept.first.get(name, 0.0))
            continue
        passes = wave.passes(schedule, name, held)
        times = rule.normaliser_passes(schedule, cost.nest, name)
        if not is_one(times):
            # A row that is streamed again for its normaliser may still be on chip: between two of
            # its passes the others go over a pass of their own rows, and write now and then.
            between = wave.load_bytes + (wave.all_bytes - wave.load_bytes) / times
            passes = passes + (times - 1) * (1.0 - near_share) * (1.0 - held(between))
        if name in kept.first:
            passes = np.maximum(passes - kept.first[name], 0.0)
        fetched = least.read_bytes * passes
        if name in kept.always:
            fetched = fetched * (1.0 - kept.always[name])
        if name in placed:
            linked[placed[name]] = linked.get(placed[name], _ZERO) + fetched
        else:
            loaded = loaded + fetched
    return _Crossing(loaded, written, linked)


@dataclass(frozen=True)
class _Wave:
    """The blocks that run at once: what they touch over their lives, each tile once.

    `sharing` is how many of them wait for the mean fetch, `between` are the bytes that go by in an
    iteration of each grid loop.
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

    def passes(self, schedule: Schedule, name: str, held: Callable[[Number], Number]) -> Number:
        """How often each element of a tensor crosses the memory boundary."""
        tensor = schedule.algorithm.tensors[name]
        return waves.hbm_passes(
            self.nest, tensor, self.concurrent, held, self.between, self.all_bytes, self.loops
        )

    def fetches(self, tensor: Tensor) -> bool:
        """Whether a tensor is brought in from memory: it is read, or added to in place."""
        return tensor.name in self.reads or tensor.name in self.nest.kernel.atomic

    def between_bytes(self, loop: waves.GridLoop) -> Number:
        """Bytes touched in one iteration of a grid loop, or in a wave where that is more."""
        # Nothing is fetched again on account of a loop of one trip, or that all of it follows.
        if is_one(loop.trips) or is_one(loop.stride):
            return self.all_bytes
        if all(loop.axis in tensor.axes for tensor in self.widths if self.fetches(tensor)):
            return self.all_bytes
        blocks = np.maximum(loop.stride, self.concurrent)
        return waves.footprint(self.nest, self.widths, self.loops, blocks)


def _wave(
    schedule: Schedule, cost: KernelCost, elements: Mapping[str, ElementType], where: Residency
) -> _Wave:
    nest, tensors = cost.nest, schedule.algorithm.tensors
    reads = schedule.reads(nest.kernel)
    loops = waves.grid_loops(nest)
    concurrent = np.minimum(where.slots, np.asarray(cost.blocks, dtype=np.float64))
    widths = {tensors[n]: elements[tensors[n].element].bytes for n in cost.hbm}
    loads = {tensor: width for tensor, width in widths.items() if tensor.name in reads}
    reach = waves.covered(nest, loops, concurrent)
    together = waves.touched(nest, loads, reach)
    alone = waves.touched(nest, loads, waves.by_one_block(loops))
    wave = _Wave(
        nest=nest,
        reads=reads,
        widths=widths,
        loops=loops,
        concurrent=concurrent,
        all_bytes=waves.touched(nest, widths, reach),
        load_bytes=together,
        sharing=concurrent * alone / np.maximum(together, 1.0),
    )
    return replace(wave, between=tuple(wave.between_bytes(loop) for loop in loops))


def _written(
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    wave: _Wave,
    name: str,
    held: Callable[[Number], Number],
) -> Number:
    """HBM bytes of an output: once, and again where it is rewritten or added to and not held."""
    tensor, kernel = schedule.algorithm.tensors[name], cost.nest.kernel
    if name in kernel.atomic:
        # Concurrent blocks add to one copy in L2; every pass brings it in and takes it out.
        role = kernel.spill.get(name, tensor.element)
        whole = rule.size(cost.nest.sizes, tensor) * elements[role].bytes
        return 2.0 * whole * wave.passes(schedule, name, held)
    least = cost.hbm[name].write_bytes
    again = cost.l2[name].total_bytes - least
    return least + again * (1.0 - held(wave.all_bytes))


def _l1_share(machine: Machine, cost: KernelCost, wave: _Wave, where: Residency) -> Number:
    """Share of what a row-wise kernel's blocks read again that is still in their unit's L1.

    It holds the rows of all resident blocks at once or it does not. Tiled kernels keep their
    operands in shared memory or registers instead, and ask for each once.
    """
    if cost.nest.kernel.operand_tile is not None:
        return _ZERO
    resident = np.clip(where.busiest, 1.0, np.maximum(where.blocks_per_unit, 1.0))
    rows = waves.footprint(wave.nest, wave.loads(), wave.loops, resident)
    return held_share(rows, machine.l1_capacity, _L1_KNEE)


def _repeated(
    schedule: Schedule, cost: KernelCost, wave: _Wave, where: Residency, name: str
) -> Number:
    """Bytes that a unit's blocks read and that it has read before: rows again, weights of a row."""
    if cost.nest.kernel.operand_tile is not None:
        return 0.0
    axes = schedule.algorithm.tensors[name].axes
    own = any(loop.axis in axes for loop in wave.loops)
    first = cost.hbm[name].read_bytes * (1.0 if own else where.active_units)
    return np.maximum(cost.l2[name].read_bytes - first, 0.0)
