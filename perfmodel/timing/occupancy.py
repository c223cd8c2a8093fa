"""Occupancy: thread blocks that one compute unit holds at once, and waves of the grid."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number, floor_div
from perfmodel.count import KernelCost
from perfmodel.frozen import dataclass
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

    @property
    def concurrent(self) -> np.ndarray:
        """Blocks that the busiest unit holds at once."""
        return np.asarray(np.clip(self.busiest, 1.0, np.maximum(self.blocks_per_unit, 1.0)))


def addressing_registers(cost: KernelCost) -> int:
    """Registers of a thread beside those of its tiles."""
    streams = cost.nest.kernel.operand_tile is None
    return _STREAMING_REGISTERS if streams else ADDRESSING_REGISTERS


def resident_blocks(
    machine: Machine,
    shared_bytes: Number,
    tile_bytes: Number,
    threads: Number,
    addressing: int = ADDRESSING_REGISTERS,
) -> Number:
    """Blocks that a unit holds at once: the least of the limits by shared memory, registers,
    threads and blocks (CUDA C++ Programming Guide, compute capabilities).

    `tile_bytes` are the registers of a block's tiles; a thread has `addressing` registers more. A
    block that needs more registers than a unit has still runs, alone.
    """
    # Registers above the limit of a thread spill to memory.
    registers = np.minimum(
        tile_bytes + 4.0 * addressing * threads, machine.thread_registers_bytes * threads
    )
    room = np.maximum(shared_bytes + machine.shared_reserved, 1e-9)
    by_memory = np.minimum(
        floor_div(machine.shared_capacity, room), floor_div(machine.registers_bytes, registers)
    )
    by_slots = np.minimum(floor_div(machine.max_threads, threads), machine.max_blocks)
    return np.maximum(np.minimum(by_memory, by_slots), 1.0)


def residency(machine: Machine, cost: KernelCost, most: Number = np.inf) -> Residency:
    """How the blocks of a counted grid spread: of `resident_blocks` a unit holds at most `most`. A
    block above the per-block limit of shared memory gives 0."""
    threads = np.asarray(cost.nest.kernel.threads, dtype=np.float64)
    shared = np.asarray(cost.shared_footprint_bytes, dtype=np.float64)
    registers = cost.register_footprint_bytes
    blocks = resident_blocks(machine, shared, registers, threads, addressing_registers(cost))
    blocks = np.where(shared > machine.shared_per_block, 0.0, np.minimum(blocks, most))
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
