"""Seconds at the boundaries of memory and the caches in front of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number, product
from perfmodel.count import KernelCost
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Link, Machine
from perfmodel.timing.occupancy import Residency
from perfmodel.timing.pipes import Balance, whole_extents
from perfmodel.timing.traffic import Traffic

# Bytes of a page, and rows that a warp's request takes 32 bytes of, 16 a thread.
_PAGE, _ROWS = 2.0**21, 16.0


def hbm_rate(machine: Machine, constants: Constants) -> float:
    """Bytes per second that memory gives to a kernel that asks for nothing else.

    A copy measured on the device is a kernel too, one that reads and writes, and reaches
    `copy_share` of that. Without one it is the peak times the share that memory of its family
    allows. Boards with inline error correction fetch its bits as well: about a fifth of the
    bandwidth (CUDA C++ Best Practices Guide, 8.2.1), which copies measured without it do not show.
    A bandwidth that was itself measured (a calibrated spec) is taken as it is.
    """
    if machine.hbm_is_measured:
        return machine.hbm_bytes_per_s
    ecc = constants["inline_ecc_share"] if machine.inline_ecc else 1.0
    if machine.copy_bytes_per_s is not None:
        copied = machine.copy_bytes_per_s / constants["copy_share"]
        return ecc * min(copied, machine.hbm_bytes_per_s)
    return ecc * machine.hbm_bytes_per_s * constants[f"hbm_share_{machine.memory_family}"]


def hbm_seconds(
    machine: Machine, constants: Constants, moved: Traffic, share: Number
) -> np.ndarray:
    """Seconds at the HBM boundary for a kernel that reaches `share` of a plain stream.

    DRAM turns its bus around between reads and writes, so that each byte of the fewer of the two
    costs `turn_price` bytes more: 4-8 % of a copy or triad beside reads alone (gpu-benches).
    """
    bytes_ = moved.hbm_bytes + constants["turn_price"] * moved.turnaround_bytes
    return np.asarray(bytes_ / (hbm_rate(machine, constants) * share))


def l2_seconds(
    machine: Machine,
    constants: Constants,
    cost: KernelCost,
    where: Residency,
    l2_bytes: np.ndarray,
    tensors: Mapping[str, Tensor],
    paired_rows: float = np.inf,
) -> np.ndarray:
    """Seconds at the L2 boundary: all bytes over its rate, or the busiest unit's over its port.

    A unit's port takes 64 bytes a clock (NVIDIA since Volta). The busiest unit has blocks of whole
    tiles, not the ragged ones at the ends of an axis. Where two units multiply together
    (`Style.paired_rows`), half of a tile of columns comes over the port.
    """
    chip = l2_bytes / (machine.l2_bytes_per_s * constants["l2_share"])
    whole, mean = _block_bytes(cost, tensors, paired_rows)
    port = (whole + mean * (where.busiest - 1.0)) / (64.0 * machine.clock_hz)
    return np.asarray(np.maximum(chip, port))


def _block_bytes(
    cost: KernelCost, tensors: Mapping[str, Tensor], paired_rows: float
) -> tuple[Number, Number]:
    """Bytes that a block of whole tiles asks of the L2, and the mean block: of each tensor, the
    mean block's times whole over mean extents along its axes.
    """
    extents = whole_extents(cost.nest)
    fed = cost.nest.kernel.operand_tile is not None and "m" in cost.nest.sizes
    pairs = np.isfinite(paired_rows) and fed
    shared = (
        units_together(cost.nest.tile("m"), cost.nest.sizes["m"], paired_rows) if pairs else 1.0
    )
    whole: Number = 0.0
    mean: Number = 0.0
    for name, moved in cost.l2.items():
        asked = moved.total_bytes / (1.0 if "m" in tensors[name].axes else shared)
        times = [extents[axis] for axis in tensors[name].axes if axis in extents]
        whole, mean = whole + product([asked, *times]), mean + asked
    return whole / cost.blocks, mean / cost.blocks


def units_together(rows: Number, m: Number, paired_rows: float) -> np.ndarray:
    """Units that multiply a tile of `rows` of m and its neighbour together: 2, or 1."""
    return np.where((np.asarray(rows) >= paired_rows) & (np.asarray(m) > rows), 2.0, 1.0)


def translation_seconds(
    machine: Machine,
    constants: Constants,
    cost: KernelCost,
    where: Residency,
    pitches: Mapping[str, Number],
) -> np.ndarray:
    """Seconds in which the chip translates addresses of pages that units have not at hand.

    Rows of a matrix lie `pitches` bytes apart, by their axis.
    """
    rows = {axis: np.asarray(cost.nest.tile(axis), dtype=np.float64) for axis in pitches}
    resident = np.clip(where.busiest, 1.0, np.maximum(where.blocks_per_unit, 1.0))
    return np.asarray(cost.passes * page_seconds(machine, constants, rows, pitches, resident))


def page_seconds(
    machine: Machine,
    constants: Constants,
    rows: Mapping[str, Number],
    pitches: Mapping[str, Number],
    resident: Number,
) -> Number:
    """Seconds of translation for one step of a block, `resident` of which share a unit.

    R rows of a tile that lie p bytes apart span R p / 2 MiB pages; of all that a unit's blocks
    touch it keeps as many as it has room for, whichever they are. A step takes 32 bytes of each
    row: a warp's request those of 16 rows, from 1 + 15 p / 2 MiB pages. What misses goes to a
    translator that all units share, one after another.
    """
    touched: Number = 0.0
    looked_up: Number = 0.0
    for axis, pitch in pitches.items():
        touched = touched + 1.0 + (rows[axis] - 1.0) * (pitch / _PAGE)
        requests = np.ceil(rows[axis] / _ROWS)
        looked_up = looked_up + requests * (1.0 + (_ROWS - 1.0) * (pitch / _PAGE))
    missed = np.maximum(1.0 - machine.pages_at_hand / (touched * resident), 0.0)
    return looked_up * missed * machine.at_clock(constants["translation_price"])


def llc_seconds(machine: Machine, constants: Constants, moved: Traffic) -> np.ndarray | None:
    """Seconds at the boundary of a memory-side cache, None where there is none.

    All bytes beyond L2 over its rate, of which mixed traffic reaches what it does of the L2's.
    """
    if machine.llc is None or moved.llc_bytes is None:
        return None
    return np.asarray(moved.llc_bytes / (machine.llc.bytes_per_s * constants["l2_share"]))


def link_seconds(
    machine: Machine, constants: Constants, link: Link, bytes_: np.ndarray, share: Number
) -> np.ndarray:
    """Seconds of reading over a link: its rate, of which a kernel gets what it gets of memory's."""
    reached = hbm_rate(machine, constants) / machine.hbm_bytes_per_s * share
    return np.asarray(bytes_ / (link.bytes_per_s * reached))


def link_latency(
    machine: Machine, links: Mapping[str, Link], linked: Mapping[str, np.ndarray]
) -> Number:
    """Seconds that a mean load waits longer than for memory, for those that come over links."""
    further = (
        linked[link.name] * max(link.latency_seconds - machine.hbm_latency, 0.0)
        for link in links.values()
        if link.name in linked
    )
    return sum(further, start=0.0)


def mean_latency(
    machine: Machine, missed: Number, near: Number = 0.0, caught: Number = 0.0
) -> np.ndarray:
    """Unloaded seconds that a load waits: the L2's latency, the memory's for what it misses, the
    L1's for what never gets there, and a memory-side cache's for what is `caught` there.
    """
    beyond = np.maximum(machine.hbm_latency - machine.l2_latency, 0.0)
    before = np.maximum(machine.l2_latency - machine.l1_latency, 0.0)
    found = machine.l2_latency + missed * beyond - near * before
    if machine.llc is not None:
        sooner = np.clip(machine.hbm_latency - machine.llc.latency_seconds, 0.0, beyond)
        found = found - caught * sooner
    return np.asarray(found)


def latency_seconds(
    cost: KernelCost,
    where: Residency,
    even: Balance,
    latency: Number,
    chain_seconds: Number = 0.0,
) -> np.ndarray:
    """Seconds if every streamed tile waits its latency: Little's law at the busiest unit.

    A unit holds `stages` − 1 tiles of each of its resident blocks in flight (at least one), so a
    round of tiles takes one latency: passes / resident / (stages − 1) × latency. The busiest unit
    is not done before the longest block. A block's other dependent steps, its reductions, are on
    the same path: `chain_seconds` each block.
    """
    stages = np.maximum(np.asarray(cost.nest.kernel.stages, dtype=np.float64) - 1.0, 1.0)
    per_block = np.asarray(cost.passes, dtype=np.float64) / cost.blocks * cost.row_passes
    resident = np.clip(where.busiest, 1.0, np.maximum(where.blocks_per_unit, 1.0))
    streamed = np.maximum(even.share / resident, even.longest) * (per_block / stages * latency)
    return np.asarray(streamed + where.busiest / resident * chain_seconds)


def loaded_seconds(constants: Constants, waiting: Number, crossing: Number) -> np.ndarray:
    """Seconds of waiting for loads while traffic of `crossing` seconds is under way.

    A load queues behind others: its latency grows from the unloaded one to `latency_share` times
    that, by the share of the time that memory is busy, crossing / (crossing + waiting).
    """
    busy = crossing / np.maximum(crossing + waiting, 1e-30)
    return np.asarray(waiting * (1.0 + (constants["latency_share"] - 1.0) * busy))
