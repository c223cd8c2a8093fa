"""How many devices hold a network, what they draw, and what they cost at the user's price."""

from __future__ import annotations

import math
from dataclasses import dataclass

from perfmodel.compression.network import Compressed
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.summary import cache_bytes


@dataclass(frozen=True)
class Holding:
    """A network's weights and the cache of a batch, in the memories of equal devices."""

    device: str
    """The device's slug."""
    weight_bytes: float
    """All weights."""
    cache_bytes: float
    """Keys and values of all sequences."""
    capacity_bytes: float
    """Memory of one device."""
    devices: int
    """Least that hold both."""
    watts: float | None
    """Power limit of all, where the spec has one."""
    price: float | None
    """Of all, at the price that was given."""

    @property
    def fits(self) -> bool:
        """Whether one device holds it."""
        return self.devices == 1


def least_devices(held_bytes: float, device: Device) -> int:
    """Devices whose memories together hold so many bytes: ⌈bytes / capacity⌉, weights and cache cut
    as finely as need be."""
    if held_bytes <= 0.0:
        raise ProblemError(f"{held_bytes:g} bytes to hold; give more than 0")
    return math.ceil(held_bytes / device.hbm_capacity_bytes)


def holding(
    network: Compressed,
    device: Device,
    *,
    batch: int = 1,
    context: int = 0,
    kv_dtype: str = "bf16",
    price: float | None = None,
) -> Holding:
    """What a network takes with `batch` sequences of `context` tokens; no cache where that is 0."""
    if price is not None and not price >= 0.0:
        raise ProblemError(f"a price of {price:g}; give 0 or more for one device")
    cached = batch * cache_bytes(network.network, context, kv_dtype) if context else 0.0
    many = least_devices(network.weight_bytes + cached, device)
    watts = device.tdp_watts
    return Holding(
        device.slug,
        network.weight_bytes,
        cached,
        device.hbm_capacity_bytes,
        many,
        None if watts is None else many * watts,
        None if price is None else many * price,
    )
