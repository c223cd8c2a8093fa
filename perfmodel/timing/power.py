"""Sustained clocks: a chip may not do more operations a second than its board power pays for."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import Machine

# Energy of one operation on the matrix unit relative to 16-bit: multiplier area grows with the
# square of the significand, data movement with the width (Horowitz, ISSCC 2014).
_RELATIVE = {
    "fp64": 8.0,
    "fp32": 2.0,
    "tf32": 2.0,
    "fp16": 1.0,
    "bf16": 1.0,
    "fp8": 0.5,
    "int8": 0.4,
}


def operation_joules(machine: Machine, constants: Constants, dtype: str, *, vector: bool) -> float:
    """Energy of one floating-point operation: a 7 nm reference scaled by process node and type.

    The vector unit fetches an instruction and three operands for every operation, the matrix unit
    for hundreds, hence the two references.
    """
    scale = machine.node_nm / 7.0
    if vector:
        return constants["vector_joules"] * scale * (_RELATIVE.get(dtype, 1.0) / 2.0)
    return constants["matrix_joules"] * scale * _RELATIVE.get(dtype, 0.25)


def power_seconds(
    machine: Machine, constants: Constants, joules: Number, dram_bytes: Number
) -> np.ndarray:
    """Least time in which the board can pay for the energy of a kernel.

    Usable power is the board's less what it draws at rest (`idle_share`).
    """
    usable = machine.tdp_watts * (1.0 - constants["idle_share"])
    energy = np.asarray(joules, dtype=np.float64) + constants["dram_joules"] * dram_bytes
    return np.asarray(energy / usable)
