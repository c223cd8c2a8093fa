"""The length from which a ring's link is hidden, and the fastest way at each length.

A step of a ring with r queries and r keys a device computes 4·r²·d operations a query head and
sends 4·r·d bytes a key-value head (16 bits). The link is hidden where r ≥ (g/a)·P/B, with g
key-value heads, a query heads, and B bytes a second. P is the rate of the attention kernel on such
a block, by the time model and not by a data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.context_parallel.carrier import Carrier, Clock
from perfmodel.context_parallel.contexttime import WAYS, ContextPrediction, predict_context
from perfmodel.context_parallel.contexttraffic import exchanged
from perfmodel.context_parallel.placement import aligned
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device

LONGEST = 2**20
"""Longest block in the search, in tokens."""

_GRAIN = 64  # tokens; all blocks are multiples; successive ones differ by a sixteenth of their size


@dataclass(frozen=True)
class Threshold:
    """The shortest block of a ring's step that hides its transfer."""

    block: int
    """Queries and keys of a device, in tokens; all longer blocks hide their transfers too."""
    compute_seconds: float
    """Seconds of computing in a step."""
    send_seconds: float
    """Seconds of sending in a step."""
    flops_per_s: float
    """Achieved rate of the kernel on that block."""


def threshold(
    problem: Attention, device: Device, carrier: Carrier, *, clock: Clock | None = None
) -> Threshold:
    """The shortest block from which on every step hides its transfer, to a sixteenth.

    The lengths of the problem do not matter. Raises `ProblemError` where not even the longest block
    hides it, as on a link slower than the rate at which the kernel streams keys.
    """
    times = clock or Clock(device)
    blocks = block_lengths()
    steps = [aligned(problem, n, n, causal=False) for n in blocks]
    times.together(steps)
    computing = np.array([times.known[step][0] for step in steps])
    sends = np.array([carrier.send_seconds(_block_bytes(step))[0] for step in steps])
    misses = np.flatnonzero(computing < sends)
    i = int(misses[-1]) + 1 if misses.size else 0
    if i == len(blocks):
        raise ProblemError(
            f"not even a block of {LONGEST:,} tokens hides its transfer on {device.slug}; "
            "take a faster link, or fewer key-value heads"
        )
    flops = float(steps[i].flops())
    return Threshold(blocks[i], float(computing[i]), float(sends[i]), flops / computing[i])


def _block_bytes(step: Attention) -> float:
    """Bytes of a block's keys and values, which two devices exchange."""
    pair = replace(step, seq_q=2 * step.seq_q, seq_kv=2 * step.seq_kv)
    return sum(float(one.sent_bytes) for one in exchanged("ring", pair, 2))


def block_lengths() -> list[int]:
    """Blocks from one grain to the longest, a sixteenth apart, in whole grains."""
    sizes = [_GRAIN]
    while sizes[-1] < LONGEST:
        sizes.append(min(max(sizes[-1] * 17 // 16 // _GRAIN, sizes[-1] // _GRAIN + 1) * _GRAIN,
                         LONGEST))  # fmt: skip
    return sizes


@dataclass(frozen=True)
class Crossover:
    """All ways at one length."""

    tokens: int
    """Tokens of the whole sequence."""
    ways: Mapping[str, ContextPrediction]
    """The ways that can share it, by name."""

    @property
    def fastest(self) -> str:
        """The way with the least time."""
        return min(self.ways, key=lambda way: self.ways[way].seconds)


def crossovers(
    problem: Attention,
    device: Device,
    carrier: Carrier,
    ranks: int,
    lengths: Sequence[int],
    *,
    placement: str = "zigzag",
    clock: Clock | None = None,
) -> tuple[Crossover, ...]:
    """Every way at every length; for a problem with one query, the lengths are numbers of keys.

    Ways that cannot share the problem are left out. Raises `ProblemError` where none remains.
    """
    times = clock or Clock(device)
    rows = []
    for tokens in lengths:
        queries = 1 if problem.seq_q == 1 else tokens
        case = replace(problem, seq_q=queries, seq_kv=tokens)
        ways: dict[str, ContextPrediction] = {}
        errors: list[ProblemError] = []
        for way in WAYS:
            try:
                ways[way] = predict_context(
                    case, device, carrier, ranks, way=way, placement=placement, clock=times
                )
            except ProblemError as error:
                errors.append(error)
        if not ways:
            raise errors[0]
        rows.append(Crossover(tokens, ways))
    return tuple(rows)
