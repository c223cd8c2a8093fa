"""Clocks under a power cap: board power bounds operations a second times energy an operation."""

from __future__ import annotations

import numpy as np

from perfmodel.arithmetic import Number
from perfmodel.timing.constants import Constants
from perfmodel.timing.machine import DOT_PRODUCTS, Machine

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
# The same on AMD's, where it differs: MI300X at 750 W sustains 708 TFLOP/s of 1,307 in bf16 and
# 1,270 TOP/s of 2,615 in int8 (AITER's assembly): an int8 operation takes 708 / 1270 of the energy.
_RELATIVE_AMD = _RELATIVE | {"int8": 0.56}
# The same on the vector unit, relative to fp32. Energy goes into fetching an instruction and its
# 32-bit operands. An 8-bit dot-product instruction does eight operations instead of two.
_VECTOR = {"fp64": 4.0, DOT_PRODUCTS: 0.25}


def operation_joules(machine: Machine, constants: Constants, dtype: str, *, vector: bool) -> float:
    """Energy of one floating-point operation: a 7 nm reference scaled by process node and type.

    The vector unit fetches an instruction and three operands for every operation, the matrix unit
    for hundreds of operations; hence two references. Fetches use wires, which shrink less than
    gates with the process: vector energy scales with a power of the node below one (`vector_node`),
    matrix energy with the node. AMD's matrix units need more (`amd_energy`).
    """
    scale = machine.node_nm / 7.0
    if vector:  # narrower types are summed in fp32
        factor: float = scale ** constants["vector_node"]
        return constants["vector_joules"] * factor * _VECTOR.get(dtype, 1.0)
    table = _RELATIVE
    if machine.device.vendor == "AMD":
        scale, table = scale * constants["amd_energy"], _RELATIVE_AMD
    return constants["matrix_joules"] * scale * table.get(dtype, 0.25)


def usable_watts(machine: Machine, constants: Constants) -> float:
    """Board power limit less the idle power: a fixed part and a share of the limit."""
    idle = constants["idle_watts"] + constants["idle_share"] * machine.tdp_watts
    return max(machine.tdp_watts - idle, 0.1 * machine.tdp_watts)


def power_seconds(
    machine: Machine,
    constants: Constants,
    dtype: str,
    operations: Number,
    dram_bytes: Number = 0.0,
    *,
    activity: float,
    share: Number,
) -> np.ndarray:
    """Least time in which the board power covers the energy of a kernel.

    `operations` are those of the main loop in `dtype`, `activity` is the switching activity of
    their data, `share` the share of the unit's rate that the loop reaches. Energies hold at the
    rated boost clock; cards may clock higher (`Device.beyond_boost`).

    At its limit of P usable watts a board lowers the clock, and the voltage with it (DVFS). With E
    joules of arithmetic at boost voltage, D joules of memory traffic and t₀ seconds at boost, a
    clock of x = t₀/t needs E·x² + D = P·t. Hence P·t³ ≥ (E + D)·t₀². The voltage does not fall
    below a share v of its highest. Hence P·t ≥ E·v² + D. The longer time is taken.

    On the vector unit v is larger (`vector_voltage` against `least_voltage`): an fp32 operation on
    a T4 at half its boost clock takes four fifths of the energy that it takes on a V100 near boost.

    Vendors guarantee the base clock at this power for vector loads, so a loop on the vector unit is
    never slower than at the base clock. A loop on the matrix unit may be: A100 SXM at 8192³ reaches
    257 TFLOP/s, where its base clock would give 282.
    """
    vector = machine.on_vector(dtype)
    usable = usable_watts(machine, constants)
    work = np.asarray(operations)  # in single precision where the caller works in it
    at_boost = work / (machine.matrix_per_unit(dtype) * machine.units * share)
    arithmetic = work * (activity * operation_joules(machine, constants, dtype, vector=vector))
    memory = constants["dram_joules"] * dram_bytes
    base_seconds = at_boost * machine.device.beyond_boost
    seconds = np.cbrt((arithmetic + memory) / usable * base_seconds * base_seconds)
    voltage = constants["vector_voltage" if vector else "least_voltage"]
    lowest = (arithmetic * voltage**2 + memory) / usable
    seconds = np.maximum(seconds, lowest)
    if vector and machine.base_share > 0:
        seconds = np.minimum(seconds, at_boost / machine.base_share + memory / usable)
    return np.asarray(seconds)


def held_down_seconds(at_boost: Number, sustained: Number, lag: float) -> np.ndarray:
    """Seconds of a run that takes `at_boost` at the boost clock and `sustained` under the power
    limit.

    A board that has been running takes the longer of the two. After a rest, the regulator lowers
    the clock with a time constant τ = `lag`: the rate falls from r_b to r_s as r_s + (r_b - r_s)
    e^(-t/τ). With u = `at_boost` and S = `sustained`, the work is done at the t that solves

        t + (S / u - 1) τ (1 - e^(-t/τ)) = S,        u <= t <= S.

    The left side rises and is concave. Newton's method from below, starting with 1 - e^(-t/τ) at
    its upper bound of 1, stays below and converges: three steps leave an error below 1e-5 up to S =
    6 u.
    """
    if lag <= 0:
        return np.asarray(np.maximum(at_boost, sustained))
    boost = np.maximum(at_boost, 1e-30)
    excess = np.maximum(sustained / boost - 1.0, 0.0)
    seconds = np.maximum(at_boost, sustained - excess * lag)
    for _ in range(3):
        decay = np.exp(-seconds / lag)
        work = seconds + excess * lag * (1.0 - decay)
        seconds = seconds + np.maximum(sustained - work, 0.0) / (1.0 + excess * decay)
    return np.asarray(seconds)
