"""Seconds at the boundaries of memory and of the caches in front of it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.count import KernelCost
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Link, Machine
from perfmodel.timing.occupancy import Residency
from perfmodel.timing.pipes import Balance
from perfmodel.timing.traffic import Traffic

# A share of a round of blocks that is the error of a division, not a further round.
_ROUNDING = 1e-9


def hbm_rate(machine: Machine, constants: Constants) -> float:
    """Bytes per second that memory gives to a pure streaming kernel.

        measured bandwidth (calibrated spec), as it is
        or min(copy / copy_share, peak)        where a copy was measured on the device
        or peak · hbm_share of its memory family

    A measured copy reads and writes; it reaches `copy_share` of the rate. The last two are
    multiplied by `inline_ecc_share` on boards with inline error correction, which fetch its bits
    too: about a fifth of the bandwidth (CUDA C++ Best Practices Guide, 8.2.1). Copies were measured
    without it.
    """
    if machine.hbm_is_measured:
        return machine.hbm_bytes_per_s
    ecc = constants["inline_ecc_share"] if machine.inline_ecc else 1.0
    if machine.copy_bytes_per_s is not None:
        rate = machine.copy_bytes_per_s / constants["copy_share"]
        return ecc * min(rate, machine.hbm_bytes_per_s)
    return ecc * machine.hbm_bytes_per_s * constants[f"hbm_share_{machine.memory_family}"]


def hbm_seconds(
    machine: Machine, constants: Constants, moved: Traffic, share: Number
) -> np.ndarray:
    """Seconds at the HBM boundary for a kernel that reaches `share` of a plain stream's bandwidth.

    DRAM turns its bus around between reads and writes. Each byte of the smaller of the two costs
    `turn_price` bytes more: 4-8 % for a copy or triad compared with reads alone (gpu-benches).
    """
    bytes_ = moved.hbm_bytes + constants["turn_price"] * moved.turnaround_bytes
    return np.asarray(bytes_ / (hbm_rate(machine, constants) * share))


def l2_seconds(
    machine: Machine,
    constants: Constants,
    cost: KernelCost,
    where: Residency,
    l2_bytes: np.ndarray,
    *,
    copied: bool = False,
) -> np.ndarray:
    """Seconds at the L2 boundary: all bytes over its rate, or the busiest unit's over its port.

    A unit's port takes 64 bytes a clock (NVIDIA since Volta), where tensor copies fill it
    (`copied`) as many as the architecture says.
    """
    chip = l2_bytes / (machine.l2_bytes_per_s * constants["l2_share"])
    block_bytes = sum(crossing.total_bytes for crossing in cost.l2.values()) / cost.blocks
    port = block_bytes * where.busiest / port_bytes_per_s(machine, copied=copied)
    return np.asarray(np.maximum(chip, port))


def port_bytes_per_s(machine: Machine, *, copied: bool) -> float:
    """Bytes per second that a unit's port takes from the L2."""
    return machine.clock_hz * (machine.architecture.copied_bytes_per_clock if copied else 64.0)


def llc_seconds(machine: Machine, constants: Constants, moved: Traffic) -> np.ndarray | None:
    """Seconds at the boundary of a memory-side cache; None where there is none.

    All bytes behind the L2 over the cache's rate times `l2_share`, the share that mixed traffic
    reaches.
    """
    if machine.llc is None or moved.llc_bytes is None:
        return None
    return np.asarray(moved.llc_bytes / (machine.llc.bytes_per_s * constants["l2_share"]))


def link_seconds(
    machine: Machine, constants: Constants, link: Link, bytes_: np.ndarray, share: Number
) -> np.ndarray:
    """Seconds of reading over a link; a kernel reaches the same share of its peak as of
    memory's."""
    efficiency = hbm_rate(machine, constants) / machine.hbm_bytes_per_s * share
    return np.asarray(bytes_ / (link.bytes_per_s * efficiency))


def link_latency(
    machine: Machine, links: Mapping[str, Link], linked: Mapping[str, np.ndarray]
) -> Number:
    """Seconds that the mean load waits beyond the memory latency, due to loads over links."""
    excess = (
        linked[link.name] * max(link.latency_seconds - machine.hbm_latency, 0.0)
        for link in links.values()
        if link.name in linked
    )
    return sum(excess, start=0.0)


def mean_latency(
    machine: Machine, missed: Number, near: Number = 0.0, caught: Number = 0.0
) -> np.ndarray:
    """Unloaded latency of the mean load, in seconds.

    The L2 latency, the memory latency for loads that miss the L2 (`missed`), the L1 latency for
    those that hit the L1 (`near`), and a memory-side cache's for those that hit it (`caught`).
    """
    hbm_gap = np.maximum(machine.hbm_latency - machine.l2_latency, 0.0)
    l1_gap = np.maximum(machine.l2_latency - machine.l1_latency, 0.0)
    latency = machine.l2_latency + missed * hbm_gap - near * l1_gap
    if machine.llc is not None:
        llc_gain = np.clip(machine.hbm_latency - machine.llc.latency_seconds, 0.0, hbm_gap)
        latency = latency - caught * llc_gain
    return np.asarray(latency)


def latency_seconds(
    cost: KernelCost,
    where: Residency,
    even: Balance,
    latency: Number,
    chain_seconds: Number = 0.0,
) -> np.ndarray:
    """Seconds if every streamed tile waits its latency: Little's law at the busiest unit.

        rounds · passes of a block / max(stages − 1, 1) · latency + chain_seconds a round of blocks

    A unit has `stages` − 1 tiles of each resident block in flight, so a round of tiles takes one
    latency. Blocks that start together wait together, so the last round takes as long as a full
    one. The busiest unit is not done before its longest block. `chain_seconds` are a block's
    other dependent steps, its reductions.
    """
    stages = np.maximum(np.asarray(cost.nest.kernel.stages, dtype=np.float64) - 1.0, 1.0)
    per_block = np.asarray(cost.passes, dtype=np.float64) / cost.blocks * cost.row_passes
    resident = where.concurrent
    rounds = np.maximum(np.ceil(even.share / resident - _ROUNDING), even.longest)
    stream = rounds * (per_block / stages * latency)
    return np.asarray(stream + where.busiest / resident * chain_seconds)


def loaded_seconds(constants: Constants, waiting: Number, crossing: Number) -> np.ndarray:
    """Seconds of waiting for loads while traffic of `crossing` seconds is under way.

    A load queues behind the traffic. Its latency grows from the unloaded one to `latency_share`
    times that, with the share of time that memory is busy: crossing / (crossing + waiting).
    """
    load = crossing / np.maximum(crossing + waiting, 1e-30)
    return np.asarray(waiting * (1.0 + (constants["latency_share"] - 1.0) * load))
