"""Placements of embedding tables, and the time of a batch's look-ups under each.

- `memory`: all tables in the memory of one device, a CPU's or a GPU's.
- `cached`: in host memory, with popular rows cached in a GPU's memory; misses cross the link.
- `sharded`: over the memories of several GPUs, whose sums are exchanged by an all-to-all.

A cache behind a link is faster than a CPU with all tables in its memory once

    (1 − hit)/v < 1/BW,      hit > 1 − v/BW

v: bytes a second of the link; BW: bytes a second of random rows from the CPU's memory. A link
faster than that memory always pays.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from perfmodel.collectives import Collective
from perfmodel.columns import HIGH, RANGE, Column, Result, Row
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
"""Ends of a link's time, as factors: its documented rate, and three quarters of the usual copy
rate."""


def _device(row: Row) -> str:
    return str(row["device"]) if row["devices"] == 1 else f"{row['devices']} x {row['device']}"


@dataclass(frozen=True)
class Placed(Result):
    """A batch's look-ups under a placement, in seconds."""

    placement: Annotated[str, Column("tables in")]
    """`memory`, `cached` or `sharded`."""
    device: Annotated[str, Column("device", _device, key="device")]
    """Slug of the device that sums the rows."""
    devices: Annotated[int, Column()]
    """Number of devices."""
    seconds: Annotated[float, Column("look-ups", key="time_us", scale=1e6)]
    """Seconds of the batch."""
    low_seconds: Annotated[float, RANGE]
    """Low end of the range."""
    high_seconds: Annotated[float, HIGH]
    """High end."""
    hit: Annotated[float, Column("hit")]
    """Share of the look-ups that need no slower memory: hits of the device's last cache or, for
    tables in host memory, of the device's memory."""
    limiter: Annotated[str, Column("limiter", place=1)]
    """The resource with the longest time."""
    fits: Annotated[bool, Column()]
    """Whether the tables fit into their memory."""


def in_memory(bags: Bags, device: Device) -> Placed:
    """All tables in one device's memory."""
    time = bag_time(bags, device)
    fits = bags.table_bytes <= device.memory_bytes
    return _prediction("memory", device, 1, time, time.hit, fits)


def cached(bags: Bags, device: Device, host: Device, rows: float, *, pinned: bool = True) -> Placed:
    """`rows` rows in the device's memory: pinned popular rows, or the most recently used ones.

    Misses cross the link as whole rows, at the achieved rate of link and host memory. They are
    written to the device's memory and summed there like the hits, so a higher hit rate never takes
    longer.
    """
    popularity = bags.popularity
    hit = popularity.static_hit(rows) if pinned else popularity.lru_hit(rows)
    time = bag_time(bags, device)
    link = link_seconds(bags, device, host, 1.0 - hit)
    transfer = (link, link * _LINK_ENDS[0], link * _LINK_ENDS[1])
    size = rows * bags.row_bytes
    fits = size <= device.memory_bytes and bags.table_bytes <= host.memory_bytes
    return _prediction("cached", device, 1, time, hit, fits, transfer=transfer)


def link_seconds(bags: Bags, device: Device, host: Device, missed: float) -> float:
    """Seconds of the missed share of the look-ups on the link."""
    row = fetched_bytes(bags.row_bytes, line_of(device))
    rate = min(host_bytes_per_s(device), random_rate(bags, host))
    return missed * bags.lookups * row / rate


def sharded(bags: Bags, device: Device, system: System, devices: int) -> Placed:
    """Tables over the memories of several devices, spread evenly by look-ups.

    Each device looks up its share for the whole batch, and sends every other device the sums of
    that device's samples. Raises what `predict_collective` raises.
    """
    if devices < 2:
        raise ProblemError(f"tables are sharded over {devices} device; give 2 or more")
    time = bag_time(bags, device, 1.0 / devices)
    sums = Collective("all-to-all", round(bags.pooled_bytes / devices), devices, dtype=bags.dtype)
    fits = bags.table_bytes <= devices * device.memory_bytes
    tail = sums.seconds_on(system)
    return _prediction("sharded", device, devices, time, time.hit, fits, tail=tail)


def break_even_hit(bags: Bags, device: Device, host: Device) -> float:
    """Hit rate above which a cache on the device beats the host's own memory: max(0, 1 − v/BW).

    BW is the host's rate for random rows, hits of its cache included.
    """
    host_s = bag_time(bags, host).seconds
    link = link_seconds(bags, device, host, 1.0)
    return max(1.0 - host_s / link, 0.0)


Seconds = tuple[float, float, float]
"""Predicted seconds, and both ends of their range."""

_NONE = (0.0, 0.0, 0.0)


def _prediction(
    placement: str,
    device: Device,
    devices: int,
    time: BagTime,
    hit: float,
    fits: bool,
    *,
    transfer: Seconds = _NONE,
    tail: Seconds = _NONE,
) -> Placed:
    """Look-ups concurrent with transfers over a link, and the steps that follow both."""
    lookup = (time.seconds, time.low_seconds, time.high_seconds)
    seconds, low, high = (
        max(a, b) + last for a, b, last in zip(lookup, transfer, tail, strict=True)
    )
    longest = {time.limiter: time.seconds, "link": transfer[0], "sums": tail[0]}
    limiter = max(longest, key=longest.__getitem__)
    return Placed(placement, device.slug, devices, seconds, low, high, hit, limiter, fits)
