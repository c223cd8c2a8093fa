"""The attention problems of a device, between its queries and the keys of another device.

A causal mask between two shards leaves nothing, everything, or a triangle. Queries that see the
same whole shards share one call. A device's own tokens are in order, so its own step is one causal
call for any placement.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from perfmodel.algorithms import Attention
from perfmodel.context_parallel.placement import Held, Shard, last_seen
from perfmodel.errors import ProblemError


def calls(problem: Attention, queries: Held, keys: Held) -> tuple[Attention, ...]:
    """The calls of one step; empty where the mask hides every key from every query."""
    rows, cells = (sum(shard.count for shard in held) for held in (queries, keys))
    if not problem.causal:
        return (of(problem, rows, cells, causal=False),)
    if queries == keys:
        return (of(problem, rows, cells, causal=True),)
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
        parts.append(of(problem, count, sum(block.count for block in view), causal=False))
    return tuple(parts)


def before(problem: Attention, queries: Held) -> tuple[Attention, ...]:
    """The calls of queries when their device has all keys of the sequence.

    Raises `ProblemError` for causal queries that are not contiguous.
    """
    if not problem.causal:
        return (of(problem, sum(shard.count for shard in queries), problem.seq_kv, causal=False),)
    if any(shard.stride > 1 for shard in queries):
        raise ProblemError(
            "striped queries see gathered keys in steps, which no kernel's mask has; "
            "take zigzag or contiguous"
        )
    return tuple(of(problem, one.count, one.first + one.count, causal=True) for one in queries)


def of(problem: Attention, queries: int, keys: int, *, causal: bool) -> Attention:
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
    yield of(problem, slope, last + slope, causal=True)
    if rows > slope:
        yield of(problem, rows - slope, keys.count, causal=False)
