"""A decode step of a network in SRAM: bounds from two layouts.

On chip, bytes are no limit: 138 GB at 20 PB/s take 7 µs. The limit is distance. Each product
broadcasts its input to the cores that hold its matrix and reduces their results: √cores hops of one
cycle each way. Two layouts bound a step of L layers and p products a layer on n devices:

    spread    every matrix over all cores: hops 2·p·L·√(n·cores), of which 2·p·L·(√n − 1) cross
              from device to device; all arithmetic and SRAM at once
    stacked   every layer on cores of its own: hops 2·p·L·√(n·cores/L), n − 1 of the crossings;
              arithmetic and SRAM of a layer on 1/L of the machine at a time, L times as long in all

Vendors' compilers use other layouts, which are not public. The range is from the faster of the two
to `_SOFTWARE` times the slower.

Weights may be streamed to a wafer from outside, layer by layer (MemoryX). A step takes at least
W/link, for any batch. Arithmetic takes as long from

    B = (W/link) / (2·P/peak)

sequences on; below, the machine waits. W: bytes of weights; P: their number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

from perfmodel.columns import HIGH, RANGE, Column, Result
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device
from perfmodel.networks.expand import active_count
from perfmodel.networks.summary import cache_bytes
from perfmodel.onchip.holding import CONTEXT

PRODUCTS = 4
"""Products of a layer that depend on each other: queries to values, output, up, down."""

_BYTES = 2.0
_SOFTWARE = 3.0
_CROSSING_SECONDS = 1e-6
"""Seconds of a crossing between devices, without its bytes: links take 0.5 to 2 µs (recalled)."""

SPREAD, STACKED = "spread", "stacked"


@dataclass(frozen=True)
class Layout:
    """A step under one layout, in seconds."""

    name: str
    """`spread` or `stacked`."""
    fabric: float
    """Seconds of hops across cores."""
    matrix: float
    """Seconds of arithmetic."""
    sram: float
    """Seconds of reading weights and cache from memory."""
    links: float
    """Seconds of sending activations between devices."""

    @property
    def seconds(self) -> float:
        """Distance, plus the longer of arithmetic and memory."""
        return self.fabric + max(self.matrix, self.sram) + self.links

    @property
    def limiter(self) -> str:
        """The resource with the longest time."""
        times = {name: getattr(self, name) for name in ("fabric", "matrix", "sram", "links")}
        return max(times, key=times.__getitem__)


@dataclass(frozen=True)
class Latency(Result):
    """Bounds of a step, in seconds."""

    layouts: tuple[Layout, ...]
    """Both layouts, the faster first."""

    @property
    def low_seconds(self) -> Annotated[float, RANGE]:
        """Seconds of the faster layout."""
        return self.layouts[0].seconds

    @property
    def high_seconds(self) -> Annotated[float, HIGH]:
        """Seconds of the slower layout, times the loss in software."""
        return _SOFTWARE * self.layouts[-1].seconds

    @property
    def seconds(self) -> Annotated[float, Column(key="time_us", scale=1e6)]:
        """The geometric mean of both bounds; nothing justifies a better estimate."""
        return math.sqrt(self.low_seconds * self.high_seconds)

    @property
    def limiter(self) -> Annotated[str, Column("mostly")]:
        """What limits the faster layout."""
        return self.layouts[0].limiter


def is_on_chip(device: Device) -> bool:
    """Whether a device's memory is SRAM on the chip."""
    return "SRAM" in device.hbm_technology.upper()


def latency(
    network: Compressed, device: Device, devices: int, *, batch: int = 1, context: int = CONTEXT
) -> Latency:
    """Bounds of a decode step of `batch` sequences of `context` tokens on `devices` devices.

    Raises `ProblemError` for a device whose memory is not on the chip.
    """
    if not is_on_chip(device):
        raise ProblemError(
            f"the memory of {device.slug} is {device.hbm_technology}, not on the chip; predict its "
            "steps as those of a GPU"
        )
    ways = (SPREAD, STACKED)
    layouts = (_layout(network, device, devices, batch, context, name) for name in ways)
    return Latency(tuple(sorted(layouts, key=lambda layout: layout.seconds)))


def _layout(
    network: Compressed, device: Device, devices: int, batch: int, context: int, name: str
) -> Layout:
    base = network.network
    layers = base.layers
    parts = layers if name == STACKED else 1
    ways = 2.0 * PRODUCTS * layers
    hops = ways * math.sqrt(max(devices * device.units / parts, 1.0))
    crossings = devices - 1.0 if name == STACKED else ways * (math.sqrt(devices) - 1.0)
    flops = 2.0 * active_count(base, input_embedding=False) * batch
    bytes_ = network.weight_bytes + batch * cache_bytes(base, context)
    message = _BYTES * base.hidden * batch
    link = device.level("peer")
    rate = link.bytes_per_s if link is not None and link.bytes_per_s else math.inf
    return Layout(
        name,
        hops / device.boost_hz,
        parts * flops / (devices * device.matrix_flops("fp16")),
        parts * bytes_ / (devices * device.hbm_bytes_per_s),
        crossings * (message / rate + _CROSSING_SECONDS),
    )


@dataclass(frozen=True)
class Streamed:
    """A step with streamed weights."""

    link_seconds: float
    """Seconds of all weights on the link: the lower bound of a step."""
    sequence_seconds: float
    """Seconds of arithmetic for one sequence, at the peak."""

    @property
    def hiding_batch(self) -> int:
        """Sequences whose arithmetic takes as long as the link."""
        return math.ceil(self.link_seconds / self.sequence_seconds)

    def seconds(self, batch: int) -> float:
        """Seconds of a step of `batch` sequences."""
        return max(self.link_seconds, batch * self.sequence_seconds)


def streamed(network: Compressed, device: Device, link_bytes_per_s: float) -> Streamed:
    """A network's weights over a link of `link_bytes_per_s`."""
    if not link_bytes_per_s > 0.0:
        raise ProblemError(f"a link of {link_bytes_per_s:g} B/s; give more than 0")
    flops = 2.0 * active_count(network.network, input_embedding=False)
    return Streamed(network.weight_bytes / link_bytes_per_s, flops / device.matrix_flops("fp16"))
