"""Energy of operations in runs of hours, at the device's rated clock.

The fitted energies are those of a 7 nm device at A100's clock. They were fitted to runs of
milliseconds, over which no power regulator acts. Such runs hardly show what an operation costs at a
higher clock; a training step does.

An operation switches a charge through the supply voltage: E = C·V². The voltage rises with the
clock (Horowitz, ISSCC 2014; DVFS: V ∝ f near the rated clock). Relative to the same gates at A100's
clock f₀

    E = E₀ · (f / f₀)²

This applies to the matrix unit, whose share of the energy is by far the largest. The energy of
AMD's matrix operations (`amd_energy`) comes from published rates of MI300X at its power limit;
there f₀ is MI300X's clock.
"""

from __future__ import annotations

from perfmodel.hardware import Device
from perfmodel.timing.constants import Constants

_REFERENCE_HZ = {"AMD": 2.1e9}
"""Boost clock of MI300X (AMD Instinct MI300X data sheet), for energies of AMD devices."""
_OTHERS_HZ = 1.41e9
"""Boost clock of A100 (NVIDIA A100 data sheet), for all other energies."""


def sustained(constants: Constants, device: Device) -> Constants:
    """The constants for long runs on a device."""
    if device.kind != "gpu":
        return constants
    faster = (device.boost_hz / _REFERENCE_HZ.get(device.vendor, _OTHERS_HZ)) ** 2
    return constants.with_values({"matrix_joules": constants["matrix_joules"] * faster})
