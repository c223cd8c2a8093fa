"""Occupancy: thread blocks that one compute unit holds at once, and waves of the grid."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from perfmodel.arithmetic import Number, floor_div
from perfmodel.count import KernelCost
from perfmodel.timing.machine import Machine

# Registers of a thread for addresses, indices and masks, besides those for tiles. Kernels that only
# stream rows need fewer: two of their blocks of 1024 threads fit on a unit.
ADDRESSING_REGISTERS = 40
_STREAMING_REGISTERS = 24


@dataclass(frozen=True)
class Residency:
    """How the blocks of a grid are spread over the units."""

    blocks_per_unit: np.ndarray
    """Blocks that a unit holds at once; 0: a block does not fit."""
    slots: np.ndarray
    """Blocks that the whole device holds at once."""
    active_units: np.ndarray
    """Units that have work."""
    busiest: np.ndarray
    """Blocks on the busiest unit."""
    waves: np.ndarray
    """Blocks of the grid over `slots`."""


def addressing_registers(cost: KernelCost) -> int:
    """Registers of a thread beside those of its tiles."""
    streams = cost.nest.kernel.operand_tile is None
    return _STREAMING_REGISTERS if streams else ADDRESSING_REGISTERS


def residency(machine: Machine, cost: KernelCost, most: Number = np.inf) -> Residency:
    """Resident blocks: the least of the limits by shared memory, registers, threads and blocks
    (CUDA C++ Programming Guide, compute capabilities), and `most`.

    A block above the per-block limit of shared memory gives 0.
    """
    threads = np.asarray(cost.nest.kernel.threads, dtype=np.float64)
    shared = np.asarray(cost.shared_footprint_bytes, dtype=np.float64)
    # Registers above the limit of a thread spill to memory.
    registers = cost.register_footprint_bytes + 4.0 * addressing_registers(cost) * threads
    registers = np.minimum(registers, machine.thread_registers_bytes * threads)
    by_shared = floor_div(machine.shared_capacity, shared + machine.shared_reserved + 1e-9)
    by_registers = floor_div(machine.registers_bytes, registers)
    by_threads = floor_div(machine.max_threads, threads)
    blocks = np.minimum(
        np.minimum(by_shared, by_registers), np.minimum(by_threads, machine.max_blocks)
    )
    # A block that needs more registers than a unit has still runs, alone.
    blocks = np.clip(blocks, 1.0, most)
    blocks = np.where(shared > machine.shared_per_block, 0.0, blocks)
    return fill(machine, cost.blocks, blocks)


def fill(machine: Machine, grid: Number, blocks_per_unit: np.ndarray) -> Residency:
    """How a grid of blocks spreads: over all units first, then over further slots of each unit."""
    grid = np.asarray(grid, dtype=np.float64)
    slots = machine.units * np.maximum(blocks_per_unit, 1.0)
    return Residency(
        blocks_per_unit=blocks_per_unit,
        slots=slots,
        active_units=np.minimum(grid, machine.units),
        busiest=np.ceil(grid / machine.units),
        waves=grid / slots,
    )
