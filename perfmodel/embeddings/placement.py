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

from dataclasses import replace

from perfmodel.collectives import Collective
from perfmodel.embeddings.bag import (
    Bags,
    bag_time,
    cache_hit,
    fetched_bytes,
    line_of,
    random_rate,
)
from perfmodel.errors import ProblemError
from perfmodel.graph.live import Memory
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device, System
from perfmodel.offload.links import host_bytes_per_s

_LINK_ENDS = (0.8, 1.25)
"""Ends of a link's time, as factors: its documented rate, and three quarters of the usual copy
rate."""


def in_memory(bags: Bags, device: Device) -> Tree:
    """All tables in one device's memory."""
    memory = Memory.of({"hbm": (bags.table_bytes, device.memory_bytes)})
    return _placed("memory", bags, device, [bag_time(bags, device)], memory)


def cached(bags: Bags, device: Device, host: Device, rows: float, *, pinned: bool = True) -> Tree:
    """`rows` rows in the device's memory: pinned popular rows, or the most recently used ones.

    Misses cross the link as whole rows, at the achieved rate of link and host memory. They are
    written to the device's memory and summed there like the hits, so a higher hit rate never takes
    longer.
    """
    popularity = bags.popularity
    hit = popularity.static_hit(rows) if pinned else popularity.lru_hit(rows)
    link = link_seconds(bags, device, host, 1.0 - hit)
    ends = (link * _LINK_ENDS[0], link * _LINK_ENDS[1])
    lanes = (
        bag_time(bags, device),
        Tree.part("missed rows", "communication", link, ends, resource="link"),
    )
    memory = Memory.of({
        "hbm": (rows * bags.row_bytes, device.memory_bytes),
        "host": (bags.table_bytes, host.memory_bytes),
    })  # fmt: skip
    beside = Tree.beside("look-ups", "embedding", lanes)
    return _placed("cached", bags, device, [beside], memory, hit=hit)


def link_seconds(bags: Bags, device: Device, host: Device, missed: float) -> float:
    """Seconds of the missed share of the look-ups on the link."""
    row = fetched_bytes(bags.row_bytes, line_of(device))
    rate = min(host_bytes_per_s(device), random_rate(bags, host))
    return missed * bags.lookups * row / rate


def sharded(bags: Bags, device: Device, system: System, devices: int) -> Tree:
    """Tables over the memories of several devices, spread evenly by look-ups.

    Each device looks up its share for the whole batch, and sends every other device the sums of
    that device's samples. Raises what `predict_collective` raises.
    """
    if devices < 2:
        raise ProblemError(f"tables are sharded over {devices} device; give 2 or more")
    sums = Collective("all-to-all", round(bags.pooled_bytes / devices), devices, dtype=bags.dtype)
    seconds, *ends = sums.seconds_on(system)
    parts = [
        bag_time(bags, device, 1.0 / devices),
        Tree.part("sums", "communication", seconds, (ends[0], ends[1]), resource="sums"),
    ]
    memory = Memory.of({"hbm": (bags.table_bytes / devices, device.memory_bytes)})
    return _placed("sharded", bags, device, parts, memory, devices=devices)


def break_even_hit(bags: Bags, device: Device, host: Device) -> float:
    """Hit rate above which a cache on the device beats the host's own memory: max(0, 1 − v/BW).

    BW is the host's rate for random rows, hits of its cache included.
    """
    host_s = bag_time(bags, host).seconds
    link = link_seconds(bags, device, host, 1.0)
    return max(1.0 - host_s / link, 0.0)


def _placed(
    placement: str, bags: Bags, device: Device, parts: list[Tree], memory: Memory, *,
    devices: int = 1, hit: float | None = None,
) -> Tree:  # fmt: skip
    """A batch's look-ups under a placement. The hit rate is the share of the look-ups that need no
    slower memory: hits of the device's last cache or, for tables in host memory, of the device's
    memory."""
    return replace(
        Tree.series(placement, "embedding", parts),
        settings={
            "placement": placement,
            "batch": bags.batch,
            "devices": devices,
            "hit": cache_hit(bags, device) if hit is None else hit,
        },
        device=device.slug,
        memory=memory,
    )
