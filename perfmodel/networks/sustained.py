"""Energy of work that goes on for hours: what a board pays at the clock it is rated for.

The constants' energies are those of a 7 nm unit at the clock of A100. Runs that they were fitted to
last milliseconds, over which no regulator acts, so that they hardly show what an operation takes
at higher clocks. A step of training shows it.

An operation switches a charge through the supply voltage, E = C·V², and the voltage rises with the
clock (Horowitz, ISSCC 2014; DVFS: V ∝ f near the rated clock), so that relative to the same gates
at A100's clock f₀

    E = E₀ · (f / f₀)²

of the matrix unit, whose share of the energy is by far the largest. What AMD's matrix operations
take (`amd_energy`) comes from published rates of MI300X at its power limit: there f₀ is its clock.
"""

from __future__ import annotations

from perfmodel.hardware import Device
from perfmodel.timing.constants import Constants

_REFERENCE_HZ = {"AMD": 2.1e9}
"""Boost clock of MI300X (AMD Instinct MI300X data sheet), whose energies AMD's are."""
_OTHERS_HZ = 1.41e9
"""Boost clock of A100 (NVIDIA A100 data sheet), whose energies the constants are."""


def sustained(constants: Constants, device: Device) -> Constants:
    """The constants for a device's long runs."""
    if device.kind != "gpu":
        return constants
    faster = (device.boost_hz / _REFERENCE_HZ.get(device.vendor, _OTHERS_HZ)) ** 2
    return constants.with_values({"matrix_joules": constants["matrix_joules"] * faster})
