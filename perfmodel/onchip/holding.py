"""The number of devices that hold a network, their power, and their cost at the user's price."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from perfmodel.columns import SOME, Column, Result
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.summary import cache_bytes

CONTEXT = 2048
"""Tokens of a sequence in the KV cache where none are given."""


@dataclass(frozen=True)
class Holding(Result):
    """A network's weights and the cache of a batch, in the memories of equal devices."""

    device: Annotated[str, Column("device")]
    """The device's slug."""
    weight_bytes: Annotated[float, Column("weights")]
    """All weights."""
    cache_bytes: Annotated[float, Column("cache", show="bytes")]
    """KV cache of all sequences."""
    capacity_bytes: Annotated[float, Column("memory", show="bytes")]
    """Memory of one device."""
    devices: Annotated[int, Column("count")]
    """Fewest devices that hold both."""
    watts: Annotated[float | None, Column("power")]
    """Power limit of all devices; None where the spec has none."""
    price: Annotated[float | None, Column("price", show="{:,.0f}", when=SOME)]
    """Price of all devices; None without a price."""

    @property
    def fits(self) -> Annotated[bool, Column()]:
        """Whether one device holds all of it."""
        return self.devices == 1


def least_devices(held_bytes: float, device: Device) -> int:
    """Fewest devices that together hold `held_bytes`: ⌈bytes / capacity⌉. Weights and cache may be
    cut anywhere."""
    if held_bytes <= 0.0:
        raise ProblemError(f"{held_bytes:g} bytes to hold; give more than 0")
    return math.ceil(held_bytes / device.memory_bytes)


def holding(
    network: Compressed,
    device: Device,
    *,
    batch: int = 1,
    context: int = CONTEXT,
    kv_dtype: str = "bf16",
    price: float | None = None,
) -> Holding:
    """Devices for a network with `batch` sequences of `context` tokens; without a cache if that is
    0."""
    if price is not None and not price >= 0.0:
        raise ProblemError(f"a price of {price:g}; give 0 or more for one device")
    cached = batch * cache_bytes(network.network, context, kv_dtype) if context else 0.0
    count = least_devices(network.weight_bytes + cached, device)
    if price is not None and not math.isfinite(count * price):
        raise ProblemError(
            f"a price of {price:g} for each of {count:,} devices is no finite sum; give less"
        )
    watts = device.tdp_watts
    return Holding(
        device.slug,
        network.weight_bytes,
        cached,
        device.memory_bytes,
        count,
        None if watts is None else count * watts,
        None if price is None else count * price,
    )
