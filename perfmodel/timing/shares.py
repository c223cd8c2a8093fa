"""What facts about a kernel mean in numbers: shares of units that it reaches, a block's price."""

from __future__ import annotations

from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import AttentionFacts, MatrixFacts
from perfmodel.timing.machine import Machine


def matrix_share(kernel: MatrixFacts, machine: Machine) -> float:
    """Share of the matrix unit's rate that the kernel's instructions can reach.

    Instructions fed from registers keep a share of it where they are not the native ones.
    """
    return machine.architecture.mma_share if kernel.instruction == "register" else 1.0


def hidden_share(kernel: MatrixFacts, constants: Constants) -> float:
    """Share of non-matrix work that the kernel hides under the matrix unit."""
    if kernel.overlap == "none":
        return 0.0
    return constants["warps_overlap" if kernel.overlap == "warps" else "pipelined_overlap"]


def block_price(kernel: AttentionFacts, constants: Constants) -> float:
    """Seconds that a block of attention takes to come and go, at the clock of the constants.

    Specialised warps hand work to each other, which costs more where sequences are packed.
    """
    name = "specialised_block_price" if kernel.specialises else "chained_block_price"
    return constants[name]
