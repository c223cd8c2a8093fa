"""Facts about a kernel as numbers: the shares of units that it reaches."""

from __future__ import annotations

from perfmodel.timing.constants import Constants
from perfmodel.timing.libraries import MatrixFacts
from perfmodel.timing.machine import Machine


def matrix_share(kernel: MatrixFacts, machine: Machine) -> float:
    """Share of the matrix unit's rate that the kernel's instructions can reach.

    Register-fed instructions reach a share of it on devices whose native instructions are others.
    """
    return machine.architecture.mma_share if kernel.instruction == "register" else 1.0


def hidden_share(kernel: MatrixFacts, constants: Constants) -> float:
    """Share of non-matrix work that the kernel hides under the matrix unit."""
    if kernel.overlap == "none":
        return 0.0
    return constants["warps_overlap" if kernel.overlap == "warps" else "pipelined_overlap"]
