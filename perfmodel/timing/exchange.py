"""Seconds of an exchange over a link: α–β, messages times latency plus bytes over bandwidth.

With p devices and n bytes, each device sends one message after another (Thakur, Rabenseifner &
Gropp, Optimization of Collective Communication Operations in MPICH, 2005; the ring of sections 4.1
and 4.3 and the pairwise exchange of 4.2):

    reduce-scatter, all-gather, ring      (p − 1)·α + (p − 1)/p · n / β
    all-reduce                            2(p − 1)·α + 2(p − 1)/p · n / β
    all-to-all, of n/p bytes a device     (p − 1)·α + (p − 1)/p · n/p / β

The number of messages and the bytes are counted (`perfmodel.count.exchanges`); only α (seconds a
message) and β (bytes a second) come from the device. A kernel waits for the whole of an exchange,
except for a ring: it works on one p-th of the data while the next p-th arrives, and the first is
local. Of a ring it waits only for the part that its own work does not hide.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from perfmodel.arithmetic import Number, maximum
from perfmodel.count.exchanges import Exchange
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device, Level
from perfmodel.timing.machine import Link
from perfmodel.units import seconds as time
from perfmodel.units import si

# Latency of one message where the spec has none: that of PCIe. NCCL's ring hop takes 0.6 us over
# NVLink and 2.7 us over the network (src/graph/tuning.cc of NCCL 2.2x, protocol LL).
_MESSAGE = 1e-6


def seconds(exchange: Exchange, link: Link) -> Number:
    """Seconds of an exchange alone."""
    return exchange.steps * link.latency_seconds + exchange.sent_bytes / link.bytes_per_s


def waited(exchanges: Iterable[tuple[Exchange, Number]], kernel_seconds: np.ndarray) -> np.ndarray:
    """Seconds that exchanges add to the kernels beside them; each pair is an exchange and its
    seconds alone. Only rings are hidden under kernels."""
    exposure: Number = 0.0
    rings: Number = 0.0
    cover: Number = np.inf
    for exchange, seconds in exchanges:
        if exchange.kind == "ring":
            rings = rings + seconds
            cover = np.minimum(cover, (exchange.ranks - 1) / exchange.ranks * kernel_seconds)
        else:
            exposure = exposure + seconds
    return np.asarray(0 * kernel_seconds + exposure + maximum(rings - cover, 0.0))


def link_of(device: Device, name: str) -> tuple[Level, Link]:
    """The link of a device called `name`: the name of its level, or a word of its label in the
    spec.

    Raises `UnknownName` where there is none, `ProblemError` where there are two or the spec has no
    bandwidth of it.
    """
    links = [level for level in device.levels() if level.scope == "link"]
    matches = [level for level in links if level.name == name]
    matches = matches or [level for level in links if name.lower() in _words(level)]
    if not matches:
        spellings = [spelling for level in links for spelling in (level.name, *_words(level))]
        raise UnknownName(f"link of {device.slug}", name, spellings)
    if len(matches) > 1:
        names = " and ".join(level.name for level in matches)
        raise ProblemError(f"{name} is {names} of {device.slug}; write one of them")
    (level,) = matches
    if level.bytes_per_s is None:
        raise ProblemError(
            f"the spec of {device.slug} has no bandwidth of {level.label}, so nothing can cross "
            f"{level.name}; add bandwidth_per_direction"
        )
    return level, Link(level.name, level.bytes_per_s, level.latency_seconds or _MESSAGE)


def sentence(level: Level, link: Link) -> str:
    """The sentence of a prediction on the assumed link."""
    return (
        f"exchanges cross {level.label} ({level.name}) at its documented "
        f"{si(link.bytes_per_s, 'B/s')}, {time(link.latency_seconds)} a message, "
        "which no measured run was compared with"
    )


def _words(level: Level) -> list[str]:
    """Words of a link's label without numbers and units: nvlink of NVLink 4, nic of 400 Gb/s
    NIC."""
    return [word for word in level.label.lower().split() if word.isalpha() and len(word) > 2]
