"""Where embedding tables lie, and what a batch's look-ups then take.

- `memory`: all tables in the memory of one device, a CPU's or a GPU's.
- `cached`: in host memory, with the popular rows cached in a GPU's memory; the rest over the link.
- `sharded`: over the memories of several GPUs, whose sums are exchanged, all to all.

Against a CPU that has all tables in its memory, a cache in front of a link pays once

    (1 − hit)/v < 1/BW,      hit > 1 − v/BW

with v the link's bytes a second and BW what the CPU's memory delivers of rows at random. A link
that is faster than that memory always pays.
"""

from __future__ import annotations

from dataclasses import dataclass

from perfmodel.collectives import Collective, predict_collective
from perfmodel.embeddings.bag import (
    Bags,
    BagTime,
    bag_time,
    fetched_bytes,
    line_of,
    random_rate,
)
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device, System
from perfmodel.offload.links import host_bytes_per_s

_LINK_ENDS = (0.8, 1.25)
"""Ends of a link's time: its documented rate, and three quarters of what copies usually reach."""


@dataclass(frozen=True)
class Placed:
    """A batch's look-ups under a placement, in seconds."""

    placement: str
    """memory, cached or sharded."""
    device: str
    """Where look-ups are summed."""
    devices: int
    """How many of it."""
    seconds: float
    """Of the batch."""
    low_seconds: float
    """Low end of the range."""
    high_seconds: float
    """High end."""
    hit: float
    """Share of the look-ups that need no slower memory: of the device's last cache, or of its
    memory where tables lie in the host's."""
    limiter: str
    """What takes longest."""
    fits: bool
    """Whether the tables fit where they lie."""


def in_memory(bags: Bags, device: Device) -> Placed:
    """All tables in one device's memory."""
    found = bag_time(bags, device)
    fits = bags.table_bytes <= device.hbm_capacity_bytes
    return _placed("memory", device, 1, found, found.hit, fits)


def cached(bags: Bags, device: Device, host: Device, rows: float, *, pinned: bool = True) -> Placed:
    """`rows` in the device's memory, the most popular pinned or those asked for last, others from
    the host's over the link: each missed row whole, at what the link and the host's memory reach.

    Missed rows land in the device's memory and are summed there as the others are, so that a higher
    hit rate never takes longer.
    """
    popularity = bags.popularity
    hit = popularity.static_hit(rows) if pinned else popularity.lru_hit(rows)
    found = bag_time(bags, device)
    link = link_seconds(bags, device, host, 1.0 - hit)
    over = (link, link * _LINK_ENDS[0], link * _LINK_ENDS[1])
    held = rows * bags.row_bytes
    fits = held <= device.hbm_capacity_bytes and bags.table_bytes <= host.hbm_capacity_bytes
    return _placed("cached", device, 1, found, hit, fits, over=over)


def link_seconds(bags: Bags, device: Device, host: Device, missed: float) -> float:
    """Seconds in which the missed share of the look-ups comes over the link."""
    row = fetched_bytes(bags.row_bytes, line_of(device))
    rate = min(host_bytes_per_s(device), random_rate(bags, host))
    return missed * bags.lookups * row / rate


def sharded(bags: Bags, device: Device, system: System, devices: int) -> Placed:
    """Tables over the memories of several devices: each looks up its share for the whole batch, and
    sends every other device the sums of that device's samples.

    Tables are spread evenly by look-ups. Raises what `predict_collective` raises.
    """
    if devices < 2:
        raise ProblemError(f"tables over {devices} device; give 2 or more")
    found = bag_time(bags, device, 1.0 / devices)
    sent = Collective("all-to-all", round(bags.pooled_bytes / devices), devices, dtype=bags.dtype)
    exchange = predict_collective(sent, system)
    then = (
        float(exchange.seconds[0]),
        float(exchange.low_seconds[0]),
        float(exchange.high_seconds[0]),
    )
    fits = bags.table_bytes <= devices * device.hbm_capacity_bytes
    return _placed("sharded", device, devices, found, found.hit, fits, then=then)


def break_even_hit(bags: Bags, device: Device, host: Device) -> float:
    """Hit rate from which a cache on the device beats the host's own memory: 1 − v/BW, 0 at least.

    BW is what the host delivers of rows at random, its cache's hits included.
    """
    whole = bag_time(bags, host).seconds
    over = link_seconds(bags, device, host, 1.0)
    return max(1.0 - whole / over, 0.0)


Seconds = tuple[float, float, float]
"""Of something, and both ends of its range."""

_NONE = (0.0, 0.0, 0.0)


def _placed(
    placement: str,
    device: Device,
    devices: int,
    found: BagTime,
    hit: float,
    fits: bool,
    *,
    over: Seconds = _NONE,
    then: Seconds = _NONE,
) -> Placed:
    """Look-ups beside what comes over a link, and what follows both."""
    own = (found.seconds, found.low_seconds, found.high_seconds)
    seconds, low, high = (
        max(one, other) + last for one, other, last in zip(own, over, then, strict=True)
    )
    longest = {found.limiter: found.seconds, "link": over[0], "sums": then[0]}
    limiter = max(longest, key=longest.__getitem__)
    return Placed(placement, device.slug, devices, seconds, low, high, hit, limiter, fits)
