"""Placement of a sequence's tokens on devices, the keys that queries see, and the attention
problems that follow.

A shard is tokens at equal distances: first, first + stride, … A device holds one or two:

    contiguous    device i has the i-th of c parts
    zigzag        parts i and 2c − 1 − i of 2c (Llama 3, 2407.21783, section 3.3.2; Megatron-LM)
    striped       tokens i, i + c, i + 2c … (Brandon et al. 2311.09431)

Query f + t·m of a shard that begins at f sees key g + t·n of another shard if t·n ≤ f − g + t·m,
that is n ≤ m + ⌊(f − g)/t⌋. So a causal mask between two shards is a shifted band, and is counted
like any other mask.

A causal mask between two shards leaves nothing, everything, or a triangle. Queries that see the
same whole shards share one call. A device's own tokens are in order, so its own step is one causal
call for any placement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace

from perfmodel.algorithms import Attention
from perfmodel.arithmetic import Number
from perfmodel.errors import ProblemError, UnknownName

PLACEMENTS = ("contiguous", "zigzag", "striped")
"""Every placement by name."""


@dataclass(frozen=True)
class Shard:
    """Equally spaced tokens on one device."""

    first: int
    """Position of the first one in the sequence."""
    stride: int
    """Distance from one to the next."""
    count: int
    """Number of tokens."""


Held = tuple[Shard, ...]
"""The shards of one device, in the order of the sequence."""


def placed(placement: str, tokens: int, ranks: int) -> tuple[Held, ...]:
    """Each device's shards of a sequence.

    Raises `UnknownName` for another placement, `ProblemError` for a length that does not divide.
    """
    if placement not in PLACEMENTS:
        raise UnknownName("placement of tokens", placement, PLACEMENTS)
    parts = 2 * ranks if placement == "zigzag" else ranks
    check_divides(tokens, parts, f"{placement} parts of {ranks} devices")
    count = tokens // parts
    if placement == "zigzag":
        pairs = ((i, parts - 1 - i) for i in range(ranks))
        return tuple(tuple(Shard(part * count, 1, count) for part in pair) for pair in pairs)
    if placement == "striped":
        return tuple((Shard(i, ranks, count),) for i in range(ranks))
    return tuple((Shard(i * count, 1, count),) for i in range(ranks))


def check_divides(tokens: Number, parts: int, what: str) -> None:
    """Raise `ProblemError`, with the nearest valid lengths, where tokens do not divide into
    parts."""
    if tokens % parts:
        lower = tokens - tokens % parts
        nearest = f"{lower:,} or {lower + parts:,}" if lower else f"{parts:,}"
        raise ProblemError(
            f"{tokens:,} tokens do not divide into {parts} {what}; take {nearest} tokens"
        )


def last_seen(queries: Shard, keys: Shard) -> int:
    """The last key of a shard that its first query sees under a causal mask, from 0; may be
    negative.

    Each further query sees one more. Raises `ProblemError` for shards of different strides.
    """
    if queries.stride != keys.stride:
        raise ProblemError("shards of one sequence have one stride; place all of it alike")
    return (queries.first - keys.first) // queries.stride


def step_calls(problem: Attention, queries: Held, keys: Held) -> tuple[Attention, ...]:
    """The calls of one step; empty where the mask hides every key from every query."""
    rows, cells = (sum(shard.count for shard in held) for held in (queries, keys))
    if not problem.causal:
        return (aligned(problem, rows, cells, causal=False),)
    if queries == keys:
        return (aligned(problem, rows, cells, causal=True),)
    counts: dict[tuple[Shard, ...], int] = defaultdict(int)  # keys seen → queries
    parts: list[Attention] = []
    for shard in queries:
        view = tuple(block for block in keys if last_seen(shard, block) >= block.count - 1)
        if view:
            counts[view] += shard.count
        for block in keys:
            if block not in view:
                parts += _triangle(problem, shard, block)
    for view, count in counts.items():
        parts.append(aligned(problem, count, sum(block.count for block in view), causal=False))
    return tuple(parts)


def gathered_calls(problem: Attention, queries: Held) -> tuple[Attention, ...]:
    """The calls of queries when their device has all keys of the sequence.

    Raises `ProblemError` for causal queries that are not contiguous.
    """
    if not problem.causal:
        return (
            aligned(problem, sum(shard.count for shard in queries), problem.seq_kv, causal=False),
        )
    if any(shard.stride > 1 for shard in queries):
        raise ProblemError(
            "striped queries see gathered keys in steps, which no kernel's mask has; "
            "take zigzag or contiguous"
        )
    return tuple(aligned(problem, one.count, one.first + one.count, causal=True) for one in queries)


def aligned(problem: Attention, queries: Number, keys: Number, *, causal: bool) -> Attention:
    """The problem with `queries` and `keys`, aligned at their ends."""
    return replace(problem, seq_q=queries, seq_kv=keys, causal=causal)


def _triangle(problem: Attention, queries: Shard, keys: Shard) -> Iterator[Attention]:
    """Calls where each query sees one key more than the query before, up to all keys."""
    last = last_seen(queries, keys)
    rows = queries.count - max(-last, 0)  # queries that see at least one key
    if rows <= 0:
        return
    last = max(last, 0)  # keys that the first of them sees
    slope = min(rows, keys.count - last)
    yield aligned(problem, slope, last + slope, causal=True)
    if rows > slope:
        yield aligned(problem, rows - slope, keys.count, causal=False)
