"""From which length on the link hides, and which way is fastest at which length.

A step of a ring with r queries and r keys a device computes 4·r²·d operations a query head and
sends 4·r·d bytes a key-value head (16 bits): the link hides where r ≥ (g/a)·P/B for g of a heads. P
is what the attention kernel achieves on such a block, by the time model and not by a data sheet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.context_parallel import calls
from perfmodel.context_parallel.carrier import Carrier
from perfmodel.context_parallel.clock import Clock
from perfmodel.context_parallel.predict import WAYS, ContextPrediction, predict_context
from perfmodel.context_parallel.traffic import exchanged
from perfmodel.errors import ProblemError
from perfmodel.hardware import Device

LONGEST = 2**20
"""Longest block that is tried, in tokens."""

_GRAIN = 64  # tokens; the lengths tried are multiples, a sixteenth of their size apart


@dataclass(frozen=True)
class Threshold:
    """The shortest block of a ring's step under which its transfer hides."""

    block: int
    """Queries and keys of a device, in tokens; from here on all longer blocks hide."""
    compute_seconds: float
    """What a step computes for."""
    send_seconds: float
    """What it sends for."""
    flops_per_s: float
    """Achieved rate of the kernel on that block."""


def threshold(
    problem: Attention, device: Device, carrier: Carrier, *, clock: Clock | None = None
) -> Threshold:
    """The shortest block from which on a whole step hides its transfer, to a sixteenth.

    The lengths of the problem do not matter. Raises `ProblemError` where not even the longest one
    hides, as of a link that is slower than the kernel streams keys.
    """
    times = clock or Clock(device)
    blocks = _lengths()
    steps = [calls.of(problem, n, n, causal=False) for n in blocks]
    times.together(steps)
    computing = np.array([times.known[step][0] for step in steps])
    sending = np.array([carrier.send_seconds(_sent(step))[0] for step in steps])
    short = np.flatnonzero(computing < sending)
    at = int(short[-1]) + 1 if short.size else 0
    if at == len(blocks):
        raise ProblemError(
            f"not even a block of {LONGEST:,} tokens hides its transfer on {device.slug}; "
            "take a faster link, or fewer key-value heads"
        )
    useful = float(steps[at].flops())
    return Threshold(blocks[at], float(computing[at]), float(sending[at]), useful / computing[at])


def _sent(step: Attention) -> float:
    """Bytes of a block's keys and values, that two devices would exchange."""
    pair = replace(step, seq_q=2 * step.seq_q, seq_kv=2 * step.seq_kv)
    return sum(float(one.sent_bytes) for one in exchanged("ring", pair, 2))


def _lengths() -> list[int]:
    """Blocks from one grain to the longest, a sixteenth apart, in whole grains."""
    found = [_GRAIN]
    while found[-1] < LONGEST:
        found.append(min(max(found[-1] * 17 // 16 // _GRAIN, found[-1] // _GRAIN + 1) * _GRAIN,
                         LONGEST))  # fmt: skip
    return found


@dataclass(frozen=True)
class Crossover:
    """All ways at one length."""

    tokens: int
    """Of the whole sequence."""
    ways: Mapping[str, ContextPrediction]
    """The ways that can share it, by name."""

    @property
    def fastest(self) -> str:
        """The one that takes least."""
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
    """Every way at every length: a single query over so many keys where the problem has one query.

    Ways that a problem does not allow are left out. Raises `ProblemError` where none is left.
    """
    times = clock or Clock(device)
    found = []
    for tokens in lengths:
        queries = 1 if problem.seq_q == 1 else tokens
        one = replace(problem, seq_q=queries, seq_kv=tokens)
        ways: dict[str, ContextPrediction] = {}
        refused: list[ProblemError] = []
        for way in WAYS:
            try:
                ways[way] = predict_context(
                    one, device, carrier, ranks, way=way, placement=placement, clock=times
                )
            except ProblemError as error:
                refused.append(error)
        if not ways:
            raise refused[0]
        found.append(Crossover(tokens, ways))
    return tuple(found)
