"""Bytes and seconds at the HBM and L2 boundaries."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number
from perfmodel.count import KernelCost, rule, waves
from perfmodel.count.rule import Nest
from perfmodel.elements import ElementType
from perfmodel.schedules.schedule import Schedule
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine
from perfmodel.timing.occupancy import Residency

Retain = Callable[[Number, float, float], np.ndarray]


@dataclass(frozen=True)
class Traffic:
    """Bytes over HBM, and the share of a block's loads that wait for HBM rather than for L2.

    Concurrent blocks that ask for the same tile wait for one and the same miss: the fetch is
    counted once in the bytes, and for each of them in `missed`. What an earlier wave fetched, or an
    earlier run of the kernel left, is a hit.
    """

    hbm_bytes: np.ndarray
    missed: np.ndarray


def held_share(working_set: Number, capacity: float, knee: float) -> np.ndarray:
    """Share of a working set that the L2 still holds when it is asked for again.

    1 / (1 + (set / (knee · capacity))⁴): near 1 while it fits, falling smoothly rather than off a
    cliff, because replacement is not exact and a partitioned L2 holds some lines twice. The fourth
    power is what a set-associative LRU of that capacity does to tile streams (`evidence.cachesim`).
    """
    if capacity <= 0:
        return np.zeros(np.shape(working_set))
    ratio = np.asarray(working_set, dtype=np.float64) / (knee * capacity)
    return 1.0 / (1.0 + np.square(np.square(ratio)))


def traffic(
    machine: Machine,
    constants: Constants,
    schedule: Schedule,
    cost: KernelCost,
    elements: Mapping[str, ElementType],
    where: Residency,
    warm: float,
    retain: Retain = held_share,
) -> Traffic:
    """Bytes over HBM: each tensor once per pass that the waves of blocks cannot share in L2.

    `warm` is the share of inputs that fit in L2 and are still there from an earlier run of the same
    kernel, as in timing loops that do not clear the cache. `retain` gives the share of a working
    set that the L2 still holds, from its size, the capacity and the fitted knee.
    """
    tensors = schedule.algorithm.tensors
    nest, reads = cost.nest, schedule.reads(cost.nest.kernel)
    knee, capacity = constants["l2_knee"], machine.l2_capacity

    def held(working_set: Number) -> np.ndarray:
        return retain(working_set, capacity, knee)

    touched = sum((t.total_bytes for t in cost.hbm.values()), start=np.zeros(()))
    kept = warm * held(touched)
    if not cost.nest.kernel.steps:  # a combining kernel reads what was just written
        missed = 1.0 - held(touched)
        return Traffic(np.asarray(touched * missed), missed)
    loops = waves.grid_loops(nest)
    concurrent = np.minimum(where.slots, np.asarray(cost.blocks, dtype=np.float64))
    widths = {tensors[n]: elements[tensors[n].element].bytes for n in cost.hbm}
    loads = {tensor: width for tensor, width in widths.items() if tensor.name in reads}
    wave = waves.covered(nest, loops, concurrent)
    streaming = waves.touched(nest, widths, wave)
    between = _between(nest, widths, loops, concurrent, streaming)
    total: Number = np.zeros(())
    loaded: Number = np.zeros(())
    asked_bytes: Number = np.zeros(())
    for name, least in cost.hbm.items():
        asked = cost.l2[name]
        if name in reads:
            passes = waves.hbm_passes(
                nest, tensors[name], concurrent, held, between, streaming, loops
            )
            # A row that is streamed twice for its normaliser may still be in L2 the second time.
            again = rule.normaliser_passes(schedule, nest, name) - 1
            passes = passes + again * (1.0 - held(streaming))
            loaded = loaded + least.read_bytes * passes * (1.0 - kept)
            asked_bytes = asked_bytes + asked.read_bytes
        elif name in cost.nest.kernel.atomic:
            # Concurrent blocks add to one copy in L2; every pass brings it in and takes it out.
            role = cost.nest.kernel.spill.get(name, tensors[name].element)
            whole = rule.size(nest.sizes, tensors[name]) * elements[role].bytes
            passes = waves.hbm_passes(
                nest, tensors[name], concurrent, held, between, streaming, loops
            )
            total = total + 2.0 * whole * passes
        else:
            again = asked.total_bytes - least.write_bytes
            total = total + least.write_bytes + again * (1.0 - held(streaming))
    # How many concurrent blocks wait for the mean fetch.
    alone = waves.touched(nest, loads, waves.covered(nest, loops, 1))
    sharing = concurrent * alone / np.maximum(waves.touched(nest, loads, wave), 1.0)
    missed = np.minimum(loaded * sharing / np.maximum(asked_bytes, 1.0), 1.0)
    return Traffic(np.asarray(total + loaded), np.asarray(missed))


def _between(
    nest: Nest,
    widths: Mapping[Tensor, float],
    loops: Sequence[waves.GridLoop],
    concurrent: Number,
    wave_bytes: Number,
) -> list[Number]:
    """Bytes touched in one iteration of each grid loop, or in a wave where that is more."""
    return [
        wave_bytes
        # Nothing is fetched again on account of a loop that all tensors follow, or of one trip.
        if _is_one(loop.trips) or _is_one(loop.stride) or all(loop.axis in t.axes for t in widths)
        else waves.footprint(nest, widths, loops, np.maximum(loop.stride, concurrent))
        for loop in loops
    ]


def _is_one(value: Number) -> bool:
    return isinstance(value, int) and value == 1


def hbm_rate(machine: Machine, constants: Constants) -> float:
    """Bytes per second that a stream reaches: the peak times the share its memory family allows.

    A bandwidth that was itself measured (a calibrated spec) is taken as it is.
    """
    if machine.hbm_is_measured:
        return machine.hbm_bytes_per_s
    return machine.hbm_bytes_per_s * constants[f"hbm_share_{machine.memory_family}"]


def l2_seconds(
    machine: Machine, constants: Constants, cost: KernelCost, where: Residency, multicast: float
) -> np.ndarray:
    """Seconds at the L2 boundary: all bytes over its rate, or the busiest unit's over its port.

    A unit's port takes 64 bytes a clock (NVIDIA since Volta). Blocks of a cluster that ask for the
    same tile get it from one read: `multicast` is how many share (Hopper Tuning Guide, 1.4.1.3).
    """
    moved = np.asarray(cost.bytes_at("l2"), dtype=np.float64) / multicast
    chip = moved / (machine.l2_bytes_per_s * constants["l2_share"])
    port = moved / cost.blocks * where.busiest / (64.0 * machine.clock_hz)
    return np.asarray(np.maximum(chip, port))


def _streams_rows(cost: KernelCost) -> bool:
    """Whether the kernel goes over its rows again for a normaliser (and over nothing else)."""
    kernel = cost.nest.kernel
    return kernel.operand_tile is None and any(not loop.grid for loop in kernel.nest)


def mean_latency(machine: Machine, missed: Number) -> np.ndarray:
    """Unloaded seconds that a load waits: the L2's latency, or the memory's for what it misses."""
    beyond = np.maximum(machine.hbm_latency - machine.l2_latency, 0.0)
    return np.asarray(machine.l2_latency + missed * beyond)


def latency_seconds(cost: KernelCost, where: Residency, latency: Number) -> np.ndarray:
    """Seconds if every streamed tile waits its latency: Little's law at the busiest unit.

    A unit holds `stages` − 1 tiles of each of its resident blocks in flight (at least one), so a
    round of tiles takes one latency: passes / resident / (stages − 1) × latency.
    """
    stages = np.maximum(np.asarray(cost.nest.kernel.stages, dtype=np.float64) - 1.0, 1.0)
    per_block = np.asarray(cost.passes, dtype=np.float64) / cost.blocks
    per_block = per_block * cost.nest.kernel.row_passes if _streams_rows(cost) else per_block
    resident = np.clip(where.busiest, 1.0, np.maximum(where.blocks_per_unit, 1.0))
    return np.asarray(per_block * where.busiest / resident / stages * latency)
