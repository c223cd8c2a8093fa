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

A longer sequence has two queues, layers to compute and transfers, each in order. A layer waits for
a number of transfers, a transfer for a number of layers. `run` simulates both queues.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
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

    @classmethod
    def moving(
        cls, seconds: float, hbm_bytes: float, hbm_bytes_per_s: float, unit_share: float
    ) -> Work:
        """Work that moves `hbm_bytes` to and from a memory of this bandwidth."""
        share = hbm_bytes / (seconds * hbm_bytes_per_s) if seconds else 0.0
        return cls(seconds, unit_share, min(share, 1.0))

    def part(self, share: float) -> Work:
        """A share of the work: its seconds are scaled."""
        return replace(self, seconds=self.seconds * share)


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


@dataclass(frozen=True)
class Queued:
    """An entry of the queue of layers, or of that of transfers."""

    work: Work
    """What is computed, or crosses the link."""
    after: int = 0
    """Number of entries of the other queue that must end before it starts."""


@dataclass(frozen=True)
class Overlapped:
    """Both queues from the start until the last of both has ended."""

    seconds: float
    """Seconds in all."""
    compute_seconds: float
    """Seconds of all computing, as if alone."""
    transfer_seconds: float
    """Seconds of all transfers, as if alone."""
    waiting_seconds: float
    """The part of `seconds` in which nothing was computed."""

    @property
    def exposed_seconds(self) -> float:
        """Seconds that the transfers add to computing: waiting, and slower kernels."""
        return self.seconds - self.compute_seconds

    @property
    def slowed_seconds(self) -> float:
        """Seconds that shared units and memory add to computing."""
        return max(self.exposed_seconds - self.waiting_seconds, 0.0)  # -1e-16 by rounding

    @property
    def hidden_seconds(self) -> float:
        """Seconds of transfers that add nothing."""
        return self.transfer_seconds - self.exposed_seconds


def run(layers: Sequence[Queued], transfers: Sequence[Queued]) -> Overlapped:
    """Simulate both queues.

    Raises `ProblemError` where a layer and a transfer wait for each other.
    """
    clock = waiting = 0.0
    layer = send = 0  # layers and transfers that have ended
    to_compute = [entry.work.seconds for entry in layers]
    to_send = [entry.work.seconds for entry in transfers]
    while layer < len(layers) or send < len(transfers):
        computes = layer < len(layers) and layers[layer].after <= send
        sends = send < len(transfers) and transfers[send].after <= layer
        if not (computes or sends):
            raise ProblemError(
                f"layer {layer} needs {layers[layer].after} transfers, and no more than {send} can "
                "end before it; lower its `after`, or the next transfer's"
                if layer < len(layers)
                else f"transfer {send} waits for more layers than there are; lower its `after`"
            )
        speed = pace(layers[layer].work, transfers[send].work) if computes and sends else 1.0
        compute_end = to_compute[layer] / speed if computes and speed > 0 else math.inf
        send_end = to_send[send] if sends else math.inf
        step = min(compute_end, send_end)
        clock += step
        waiting += 0.0 if computes else step
        if computes:
            to_compute[layer] = 0.0 if compute_end <= step else to_compute[layer] - step * speed
            layer += compute_end <= step
        if sends:
            to_send[send] = 0.0 if send_end <= step else to_send[send] - step
            send += send_end <= step
    computing, sending = (sum(e.work.seconds for e in queue) for queue in (layers, transfers))
    return Overlapped(clock, computing, sending, waiting)


def prefetched(layers: Sequence[Work], gathers: Sequence[Work], *, ahead: int = 1) -> Overlapped:
    """Layers whose weights are gathered `ahead` layers before their use (FSDP, forward).

    With `ahead` of 1, the gather of layer i + 1 overlaps layer i; the first gather is exposed.
    Raises `ProblemError` unless there is one gather a layer.
    """
    _check_equal("gathers", gathers, layers)
    queue = [Queued(work, i + 1) for i, work in enumerate(layers)]
    sends = [Queued(work, max(i - ahead, 0)) for i, work in enumerate(gathers)]
    return run(queue, sends)


def gathered_and_reduced(
    layers: Sequence[Work], gathers: Sequence[Work], reductions: Sequence[Work], *, ahead: int = 1
) -> Overlapped:
    """Backward of layers whose weights are gathered and whose gradients are scattered (FSDP).

    Layers are in the order of the backward pass. A layer's gradients are sent when it has ended,
    after the gathers queued before. Raises `ProblemError` where the lengths differ.
    """
    _check_equal("gathers", gathers, layers)
    _check_equal("reductions", reductions, layers)
    sends: list[Queued] = []
    gathered: list[int] = []  # transfers up to a layer's gather
    for i in range(len(layers) + ahead):
        if i < len(layers):
            sends.append(Queued(gathers[i], max(i - ahead, 0)))
            gathered.append(len(sends))
        if i >= ahead:
            sends.append(Queued(reductions[i - ahead], i - ahead + 1))
    return run([Queued(w, n) for w, n in zip(layers, gathered, strict=True)], sends)


def reduced_in_buckets(layers: Sequence[Work], buckets: Sequence[tuple[int, Work]]) -> Overlapped:
    """Backward of layers whose gradients are reduced bucket by bucket (data parallel, ZeRO 0–2).

    `buckets` has, for each bucket, the layers that must end before it can be sent, and its
    reduction. The last bucket is exposed.
    """
    return run([Queued(work) for work in layers], [Queued(w, n) for n, w in buckets])


def in_turn(layers: Sequence[Work], transfers: Sequence[Work]) -> Overlapped:
    """Each layer's result is sent before the next layer starts (tensor parallel): all exposed."""
    _check_equal("transfers", transfers, layers)
    queue = [Queued(work, i) for i, work in enumerate(layers)]
    return run(queue, [Queued(work, i + 1) for i, work in enumerate(transfers)])


def tiled(product: Work, transfer: Work, tiles: int) -> Overlapped:
    """A product whose result is sent tile by tile (asynchronous tensor parallelism, Flux).

    At most (tiles − 1)/tiles of the transfer are hidden: the last tile's transfer is exposed.
    Raises `ProblemError` for less than one tile.
    """
    if tiles < 1:
        raise ProblemError(f"a product in {tiles} tiles; write a whole number from 1")
    share = 1 / tiles
    sends = [Queued(transfer.part(share), i + 1) for i in range(tiles)]
    return run([Queued(product.part(share))] * tiles, sends)


def _share(supply: Number, demand: Number) -> Number:
    """free / needed, at most 1; 1 where nothing is needed."""
    return minimum(1.0, supply / maximum(demand, 1e-300))


def _check(name: str, value: Number, limit: float) -> None:
    fits = (value >= 0) & (value <= limit)
    if not (fits if isinstance(fits, bool) else fits.all()):
        bound = f"from 0 to {limit:g}" if limit == 1 else "from 0"
        raise ProblemError(f"{name} is {value}; give a number {bound}")


def _check_equal(name: str, work: Sequence[Work], layers: Sequence[Work]) -> None:
    if len(work) != len(layers):
        raise ProblemError(f"{len(work)} {name} for {len(layers)} layers; give one a layer")
