"""Overlap of communication and computing: how much is hidden, and how each slows the other.

A collective's kernels occupy a share σ of the units, and its bytes pass through the device's
memory, of whose bandwidth it takes a share μ. A kernel that needs a share u of the units' time and
m of the memory's runs beside it at

    pace = min(1, (1 − σ)/u, (1 − μ)/m)

of its full speed. The transfer is limited by its link and keeps its own speed. When the transfer
ends, the kernel has the device to itself again. So t₁ of computing beside t₂ of communication take

    max(t₂, t₁ + (1 − pace)·t₂),    never less than either, nor more than both in turn.

Where the transfer lasts throughout, computing takes t₁/(1 − σ). Where the kernel is memory-bound,
the bytes of both add up. Both cases are measured in Rashidi et al., ACE, 2007.00156.

Queues of layers and transfers are timed by `perfmodel.graph.jobs`.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from perfmodel.arithmetic import Number, maximum, minimum
from perfmodel.errors import ProblemError

# Share of the units that a collective's kernels occupy (Calculon, Isaev et al., SC 2023, section 3:
# 15 % for NVLink, 2 % for InfiniBand).
FABRIC_UNITS = 0.15
NETWORK_UNITS = 0.02


@dataclass(frozen=True)
class Work:
    """A kernel, several kernels, or a transfer, as if alone on the device."""

    seconds: Number
    """Seconds that it takes alone."""
    unit_share: Number
    """Share of the units' time that it needs: 1 for a product; for a collective the share it
    occupies."""
    memory_share: Number = 0.0
    """Share of the device's memory bandwidth that it takes."""

    def __post_init__(self) -> None:
        _check("seconds", self.seconds, sys.float_info.max)
        _check("unit_share", self.unit_share, 1.0)
        _check("memory_share", self.memory_share, 1.0)


def pace(compute: Work, transfer: Work) -> Number:
    """Speed of computing beside a transfer, relative to computing alone, 0 to 1; numbers or
    arrays."""
    units = _share(1 - transfer.unit_share, compute.unit_share)
    memory = _share(1 - transfer.memory_share, compute.memory_share)
    return minimum(units, memory)


def together_seconds(compute: Work, transfer: Work) -> Number:
    """Seconds until both have ended when both start at once; numbers or arrays."""
    duration = compute.seconds + (1 - pace(compute, transfer)) * transfer.seconds
    return maximum(transfer.seconds, duration)


def tiled_seconds(product: Work, transfer: Work, tiles: int) -> Number:
    """A product whose result is sent tile by tile (asynchronous tensor parallelism, Flux).

    Each tile's transfer is beside the next tile's product: the first product and the last transfer
    are exposed, so that at most (tiles − 1)/tiles of the transfer are hidden. Raises `ProblemError`
    for less than one tile.
    """
    if tiles < 1:
        raise ProblemError(f"a product in {tiles} tiles; write a whole number from 1")
    tile, send = (replace(work, seconds=work.seconds / tiles) for work in (product, transfer))
    return tile.seconds + (tiles - 1) * together_seconds(tile, send) + send.seconds


def _share(supply: Number, demand: Number) -> Number:
    """free / needed, at most 1; 1 where nothing is needed."""
    return minimum(1.0, supply / maximum(demand, 1e-300))


def _check(name: str, value: Number, limit: float) -> None:
    fits = (value >= 0) & (value <= limit)
    if not (fits if isinstance(fits, bool) else fits.all()):
        bound = f"from 0 to {limit:g}" if limit == 1 else "from 0"
        raise ProblemError(f"{name} is {value}; give a number {bound}")
