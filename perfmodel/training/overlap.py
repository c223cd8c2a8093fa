"""Communication beside computing: what it hides under, and what each costs the other.

A collective's kernels hold a share σ of the units, and its bytes pass through the device's memory.
While both run, a kernel that needs a share u of the units' time and m of the memory's is left

    pace = min(1, (1 − σ)/u, (1 − μ)/m)

of its speed, with μ the share of the memory's bandwidth that the transfer takes. A transfer is
paced by its link and keeps its own speed. When it ends the kernel has the device to itself again,
so that t₁ of computing beside t₂ of communication take

    max(t₂, t₁ + (1 − pace)·t₂),    never less than either, nor more than both in turn.

Where the transfer lasts throughout, computing takes t₁/(1 − σ), and where the kernel is bound by
memory the bytes of both add up (both are measured in Rashidi et al., ACE, 2007.00156).

Longer sequences are two queues, of computing and of transfers, each in order: a layer waits until
so many transfers have ended, a transfer until so many layers have. `run` plays them through.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace

from perfmodel.arithmetic import Number, maximum, minimum
from perfmodel.errors import ProblemError


@dataclass(frozen=True)
class Work:
    """A kernel, some kernels, or a transfer, as if alone on the device."""

    seconds: Number
    """How long it takes alone."""
    unit_share: Number
    """Share of the units' time that it needs: 1 for a product, of a collective what it holds."""
    memory_share: Number = 0.0
    """Share of the bandwidth of the device's memory that it takes."""

    def __post_init__(self) -> None:
        _check("seconds", self.seconds, sys.float_info.max)
        _check("unit_share", self.unit_share, 1.0)
        _check("memory_share", self.memory_share, 1.0)

    @classmethod
    def moving(
        cls, seconds: float, hbm_bytes: float, hbm_bytes_per_s: float, unit_share: float
    ) -> Work:
        """Work that moves so many bytes to and from a memory of that bandwidth."""
        share = hbm_bytes / (seconds * hbm_bytes_per_s) if seconds else 0.0
        return cls(seconds, unit_share, min(share, 1.0))

    def part(self, share: float) -> Work:
        """A share of it, alike in all else."""
        return replace(self, seconds=self.seconds * share)


def pace(compute: Work, transfer: Work) -> Number:
    """Speed that is left to computing beside a transfer, from 0 to 1; numbers or arrays."""
    units = _left(1 - transfer.unit_share, compute.unit_share)
    memory = _left(1 - transfer.memory_share, compute.memory_share)
    return minimum(units, memory)


def together_seconds(compute: Work, transfer: Work) -> Number:
    """Seconds until both have ended, begun at the same time; numbers or arrays."""
    slowed = compute.seconds + (1 - pace(compute, transfer)) * transfer.seconds
    return maximum(transfer.seconds, slowed)


@dataclass(frozen=True)
class Layer:
    """An entry of the queue of computing."""

    work: Work
    """What is computed."""
    needs: int = 0
    """How many transfers of the other queue have to have ended."""


@dataclass(frozen=True)
class Transfer:
    """An entry of the queue of transfers."""

    work: Work
    """What crosses the link."""
    after: int = 0
    """How many layers of the other queue have to have ended."""


@dataclass(frozen=True)
class Overlapped:
    """Both queues from their begin until the last of both has ended."""

    seconds: float
    """How long it took."""
    compute_seconds: float
    """All computing, as if alone."""
    transfer_seconds: float
    """All transfers, as if alone."""
    waiting_seconds: float
    """Of `seconds`, those in which nothing was computed."""

    @property
    def exposed_seconds(self) -> float:
        """What the transfers add to computing: waiting, and computing that is slower."""
        return self.seconds - self.compute_seconds

    @property
    def slowed_seconds(self) -> float:
        """What computing took longer because units and memory were shared."""
        return max(self.exposed_seconds - self.waiting_seconds, 0.0)  # -1e-16 by rounding

    @property
    def hidden_seconds(self) -> float:
        """Seconds of transfers that cost nothing."""
        return self.transfer_seconds - self.exposed_seconds


def run(layers: Sequence[Layer], transfers: Sequence[Transfer]) -> Overlapped:
    """Play both queues through.

    Raises `ProblemError` where a layer and a transfer wait for each other.
    """
    now = waiting = 0.0
    done = sent = 0  # layers and transfers that have ended
    left = [entry.work.seconds for entry in layers]
    to_send = [entry.work.seconds for entry in transfers]
    while done < len(layers) or sent < len(transfers):
        computes = done < len(layers) and layers[done].needs <= sent
        sends = sent < len(transfers) and transfers[sent].after <= done
        if not (computes or sends):
            raise ProblemError(
                f"layer {done} needs {layers[done].needs} transfers, and no more than {sent} can "
                "end before it; lower its `needs`, or the next transfer's `after`"
                if done < len(layers)
                else f"transfer {sent} waits for more layers than there are; lower its `after`"
            )
        speed = pace(layers[done].work, transfers[sent].work) if computes and sends else 1.0
        compute_end = left[done] / speed if computes and speed > 0 else math.inf
        send_end = to_send[sent] if sends else math.inf
        step = min(compute_end, send_end)
        now += step
        waiting += 0.0 if computes else step
        if computes:
            left[done] = 0.0 if compute_end <= step else left[done] - step * speed
            done += compute_end <= step
        if sends:
            to_send[sent] = 0.0 if send_end <= step else to_send[sent] - step
            sent += send_end <= step
    computing, sending = (sum(e.work.seconds for e in queue) for queue in (layers, transfers))
    return Overlapped(now, computing, sending, waiting)


def prefetched(layers: Sequence[Work], gathers: Sequence[Work], *, ahead: int = 1) -> Overlapped:
    """Layers whose weights are gathered, `ahead` layers before they are used (FSDP, forward).

    The gather of layer i + 1 runs under layer i where `ahead` is 1; of the first layer nothing
    hides it. Raises `ProblemError` where there is not one gather a layer.
    """
    _check_equal("gathers", gathers, layers)
    queue = [Layer(work, i + 1) for i, work in enumerate(layers)]
    sends = [Transfer(work, max(i - ahead, 0)) for i, work in enumerate(gathers)]
    return run(queue, sends)


def gathered_and_reduced(
    layers: Sequence[Work], gathers: Sequence[Work], reductions: Sequence[Work], *, ahead: int = 1
) -> Overlapped:
    """Backward of layers whose weights are gathered and whose gradients are scattered (FSDP).

    In the order of the backward pass. A layer's gradients leave as soon as it has ended, behind the
    gather that was asked for before. Raises `ProblemError` where the lengths differ.
    """
    _check_equal("gathers", gathers, layers)
    _check_equal("reductions", reductions, layers)
    sends: list[Transfer] = []
    gathered: list[int] = []  # transfers up to a layer's gather
    for i in range(len(layers) + ahead):
        if i < len(layers):
            sends.append(Transfer(gathers[i], max(i - ahead, 0)))
            gathered.append(len(sends))
        if i >= ahead:
            sends.append(Transfer(reductions[i - ahead], i - ahead + 1))
    return run([Layer(w, n) for w, n in zip(layers, gathered, strict=True)], sends)


def reduced_in_buckets(layers: Sequence[Work], buckets: Sequence[tuple[int, Work]]) -> Overlapped:
    """Backward of layers whose gradients are reduced bucket by bucket (data parallel, ZeRO 0–2).

    `buckets` are the layers that have to have ended before each can leave, and its reduction
    (`fill_buckets` has the first of both). The last bucket is what nothing hides.
    """
    return run([Layer(work) for work in layers], [Transfer(w, after) for after, w in buckets])


def fill_buckets(gradient_bytes: Sequence[float], bucket_bytes: float) -> list[tuple[int, float]]:
    """Layers after which a bucket is full, and its bytes; layers in the order of backward.

    A bucket closes once it holds `bucket_bytes`, and the last one with what is left (PyTorch's
    distributed data parallel, Li et al. 2006.15704, section 3.2.2). Raises `ProblemError` for a
    bucket of nothing.
    """
    if not bucket_bytes > 0:
        raise ProblemError(f"a bucket of {bucket_bytes:g} bytes never fills; write bytes above 0")
    found: list[tuple[int, float]] = []
    held = 0.0
    for i, more in enumerate(gradient_bytes):
        held += more
        if held >= bucket_bytes or (held and i == len(gradient_bytes) - 1):
            found.append((i + 1, held))
            held = 0.0
    return found


def in_turn(layers: Sequence[Work], transfers: Sequence[Work]) -> Overlapped:
    """Each layer's result crosses before the next layer begins (tensor parallel): all exposed."""
    _check_equal("transfers", transfers, layers)
    queue = [Layer(work, i) for i, work in enumerate(layers)]
    return run(queue, [Transfer(work, i + 1) for i, work in enumerate(transfers)])


def tiled(product: Work, transfer: Work, tiles: int) -> Overlapped:
    """A product whose result leaves tile by tile (asynchronous tensor parallelism, Flux).

    At most (tiles − 1)/tiles of the transfer hide: the last tile's has nothing to hide under.
    Raises `ProblemError` for less than one tile.
    """
    if tiles < 1:
        raise ProblemError(f"a product in {tiles} tiles; write a whole number from 1")
    share = 1 / tiles
    sends = [Transfer(transfer.part(share), i + 1) for i in range(tiles)]
    return run([Layer(product.part(share))] * tiles, sends)


def _left(free: Number, needed: Number) -> Number:
    """Share of its speed that a need of `needed` has of what is free; 1 where it needs nothing."""
    return minimum(1.0, free / maximum(needed, 1e-300))


def _check(name: str, value: Number, most: float) -> None:
    within = (value >= 0) & (value <= most)
    if not (within if isinstance(within, bool) else within.all()):
        bound = f"from 0 to {most:g}" if most == 1 else "from 0"
        raise ProblemError(f"{name} is {value}; give a number {bound}")


def _check_equal(what: str, given: Sequence[Work], layers: Sequence[Work]) -> None:
    if len(given) != len(layers):
        raise ProblemError(f"{len(given)} {what} for {len(layers)} layers; give one a layer")
