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
from dataclasses import replace

from perfmodel.compression.compressed import Compressed
from perfmodel.errors import ProblemError
from perfmodel.graph.tree import Tree, waits
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


def is_on_chip(device: Device) -> bool:
    """Whether a device's memory is SRAM on the chip."""
    return "SRAM" in device.hbm_technology.upper()


def latency(
    network: Compressed, device: Device, devices: int, *, batch: int = 1, context: int = CONTEXT
) -> Tree:
    """A decode step of `batch` sequences of `context` tokens on `devices` devices: the geometric
    mean of both bounds, because nothing justifies a better estimate. It is made of the faster
    layout, and of what software adds.

    Raises `ProblemError` for a device whose memory is not on the chip.
    """
    if not is_on_chip(device):
        raise ProblemError(
            f"the memory of {device.slug} is {device.hbm_technology}, not on the chip; predict its "
            "steps as those of a GPU"
        )
    ways = (SPREAD, STACKED)
    layouts = [layout(network, device, devices, batch, context, name) for name in ways]
    low, high = sorted(each.seconds for each in layouts)
    seconds = math.sqrt(low * _SOFTWARE * high)
    fastest = min(layouts, key=lambda each: each.seconds)
    step = Tree.series("step", "network", [fastest, *waits(software=seconds - low)])
    return replace(
        step,
        seconds=seconds,
        low_seconds=low,
        high_seconds=_SOFTWARE * high,
        settings={"network": network.network.name, "batch": batch},
        device=device.slug,
    )


def layout(
    network: Compressed, device: Device, devices: int, batch: int, context: int, name: str
) -> Tree:
    """A step under one layout: distance, the longer of arithmetic and memory, and activations sent
    between devices."""
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
    at_once = (
        _taking("matrix", parts * flops / (devices * device.matrix_flops("fp16"))),
        _taking("sram", parts * bytes_ / (devices * device.hbm_bytes_per_s)),
    )
    return Tree.series(name, "forward", [
        _taking("fabric", hops / device.boost_hz),
        Tree.beside("layers", "forward", at_once),
        _taking("links", crossings * (message / rate + _CROSSING_SECONDS)),
    ])  # fmt: skip


def streamed(network: Compressed, device: Device, link_bytes_per_s: float, batch: int = 1) -> Tree:
    """A step of `batch` sequences with a network's weights over a link of `link_bytes_per_s`, and
    the sequences whose arithmetic takes as long as the link."""
    if not link_bytes_per_s > 0.0:
        raise ProblemError(f"a link of {link_bytes_per_s:g} B/s; give more than 0")
    flops = 2.0 * active_count(network.network, input_embedding=False)
    link, sequence = network.weight_bytes / link_bytes_per_s, flops / device.matrix_flops("fp16")
    lanes = (_taking("link", link), _taking("matrix", batch * sequence))
    hiding = math.ceil(link / sequence)
    return replace(Tree.beside("step", "network", lanes), settings={"hiding_batch": hiding})


def _taking(resource: str, seconds: float) -> Tree:
    """Seconds at the peak of a resource."""
    return Tree.part(resource, "network", seconds, resource=resource)
