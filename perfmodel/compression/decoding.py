"""The work of a kernel to decode stored weights into numbers, besides reading them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np

from perfmodel.hardware import Device
from perfmodel.timing.constants import default
from perfmodel.timing.machine import Machine, machine

BANKS = 32
"""Banks of shared memory, four bytes wide; also lanes that access it together."""


@dataclass(frozen=True)
class Decoding:
    """Work for one weight, each time that it is brought to a unit."""

    vector: float = 0.0
    """Operations of the vector unit: shifts, masks, scaling."""
    shared: float = 0.0
    """Loads of four bytes from shared memory: look-ups in a table of values."""

    def seconds(self, weights: float, device: Device) -> float:
        """Seconds for `weights` weights, over the whole chip."""
        chip = machine(device)
        lanes = chip.units * chip.vector_ops_per_unit * default()["vector_share"]
        return weights * (self.vector / lanes + self.shared / accesses_per_s(chip))


def accesses_per_s(here: Machine) -> float:
    """Conflict-free accesses of four bytes to shared memory a second, over all units."""
    return here.units * here.shared_bytes_per_unit / 4.0


@lru_cache(maxsize=8)
def scattered(banks: int = BANKS) -> float:
    """Cycles of as many random accesses as there are banks: the expected load of the fullest bank.

    P(no bank has more than j) is n!/nⁿ times the coefficient of xⁿ in (Σ_{i≤j} xⁱ/i!)ⁿ (balls in
    bins; Kolchin et al. 1978, Random Allocations, chapter 2). The mean is Σ_j P(more than j): 3.53
    for 32 banks.
    """
    mean = 0.0
    for most in range(banks):
        series = np.array([1.0 / factorial(i) if i <= most else 0.0 for i in range(banks + 1)])
        power = np.zeros(banks + 1)
        power[0] = 1.0
        for _ in range(banks):
            power = np.convolve(power, series)[: banks + 1]
        mean += 1.0 - float(power[banks]) * factorial(banks) / float(banks) ** banks
    return mean
