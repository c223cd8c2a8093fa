"""Attention over several devices: four ways, each timed from its kernels and exchanges.

    ring      queries stay, keys and values rotate (2310.01889): a send is hidden where computing
              on a block takes longer
    gather    keys and values are gathered first (Llama 3, 2407.21783, section 3.3.2), all exposed
    ulysses   all-to-alls before and after trade tokens for heads (2309.14509), all exposed
    tree      one query each: every device attends to its own keys, then results are reduced
              (2408.04093)

The backward pass works the same way, with 5 products for 2. In a ring the gradients of keys and
values rotate with them; after a gather they are scattered. In Ulysses the all-to-alls of inputs and
outputs are swapped.

A ring is simulated step by step: each device works on its current keys while the next arrive.

    start(i, s + 1) = max(end(i, s), arrival at i, arrival at i + 1)
    arrival at i    = max(start(i − 1, s), start(i, s)) + send

Both ends of a transfer post it when they begin step s and wait for it at its end, as the published
kernels do. So a step takes the longer of computing and sending, and a device with less work waits
for its neighbours. In step s, device i works on the keys of device i − s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from perfmodel.algorithms import Attention
from perfmodel.algorithms.attention import Direction
from perfmodel.context_parallel.carrier import Carrier, Clock
from perfmodel.context_parallel.contexttraffic import exchanged
from perfmodel.context_parallel.placement import (
    Held,
    aligned,
    check_divides,
    gathered_calls,
    placed,
    step_calls,
)
from perfmodel.count.exchanges import Exchange
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import Device

Steps = list[list[tuple[Attention, ...]]]
"""The calls of each device in each step of a ring."""


@dataclass(frozen=True)
class ContextPrediction:
    """Time of the busiest device, and its exchanges."""

    way: str
    """ring, gather, ulysses or tree."""
    placement: str
    """Placement of tokens; empty where the way has no choice."""
    ranks: int
    """Devices that the sequence is split over."""
    seconds: float
    """Seconds until the last device has ended."""
    low_seconds: float
    """Seconds with every kernel and exchange at the low end of its range."""
    high_seconds: float
    """Seconds with every kernel and exchange at the high end of its range."""
    compute_seconds: float
    """The part of `seconds` for attention and merging on the busiest device."""
    merge_seconds: float
    """The part of `compute_seconds` for merging partial results in separate passes."""
    exposed_seconds: float
    """Seconds that exchanges and waiting add."""
    sent_bytes: float
    """Bytes that each device sends."""
    exchanges: tuple[Exchange, ...]
    """Its exchanges, by tensor."""

    def __add__(self, other: ContextPrediction) -> ContextPrediction:
        """One after the other, such as a forward and a backward pass."""
        sums = {
            name: getattr(self, name) + getattr(other, name)
            for name in ContextPrediction.__dataclass_fields__
            if name not in ("way", "placement", "ranks")
        }
        return replace(self, **sums)


@dataclass(frozen=True)
class _Shared:
    """One direction of a problem, and how it is shared."""

    way: str
    problem: Attention
    ranks: int
    placement: str
    merged: bool
    gradient: str
    carrier: Carrier
    clock: Clock


def predict_context(
    problem: Attention,
    device: Device,
    carrier: Carrier,
    ranks: int,
    *,
    way: str = "ring",
    placement: str = "zigzag",
    merged: bool = False,
    gradient: str = "fp32",
    clock: Clock | None = None,
    asked: Mapping[str, Any] | None = None,
) -> ContextPrediction:
    """Predict attention whose sequence is split over `ranks` devices.

    The problem is the whole one, over all devices. `merged`: kernels merge partial results
    themselves. `gradient`: type in which a ring sends partial dK and dV. `asked`: further options
    of the kernels for `perfmodel.predict`. `clock` caches predictions between calls.

    Raises `UnknownName` for another way or placement, and `ProblemError` for a problem that the way
    cannot share; the message names one that can.
    """
    if way not in _WAYS:
        raise UnknownName("way to share attention", way, _WAYS)
    _check(problem, way, ranks)
    times = clock or Clock(device, asked or {})
    directions: tuple[Direction, ...] = ("fwd", "bwd")
    passes = directions if problem.direction == "fwdbwd" else (problem.direction,)
    predictions = [
        _WAYS[way](
            _Shared(way, replace(problem, direction=one), ranks, placement, merged, gradient,
                    carrier, times)
        )
        for one in passes
    ]  # fmt: skip
    return predictions[0] if len(predictions) == 1 else predictions[0] + predictions[1]


def ring_steps(problem: Attention, ranks: int, placement: str) -> Steps:
    """The calls of each device in each step; a single query is on all devices."""
    if problem.seq_q == 1:
        check_divides(problem.seq_kv, ranks, "parts, one a device")
        block = aligned(problem, 1, problem.seq_kv // ranks, causal=False)
        return [[(block,)] * ranks] * ranks
    shards: tuple[Held, ...] = placed(placement, problem.seq_q, ranks)
    return [
        [step_calls(problem, shards[i], shards[(i - step) % ranks]) for step in range(ranks)]
        for i in range(ranks)
    ]


def _ring(shared: _Shared) -> ContextPrediction:
    """Blocks rotate; a step takes the longer of computing and sending."""
    steps = ring_steps(shared.problem, shared.ranks, shared.placement)
    shared.clock.together([call for device in steps for step in device for call in step])
    merging = np.array([[_merging(shared, at, step) for at, step in enumerate(d)] for d in steps])
    computing = np.array([[shared.clock.together(step) for step in device] for device in steps])
    crossing = exchanged("ring", shared.problem, shared.ranks, gradient=shared.gradient)
    step_bytes = sum(float(one.sent_bytes) for one in crossing) / max(shared.ranks - 1, 1)
    send = shared.carrier.send_seconds(step_bytes) if shared.ranks > 1 else np.zeros(3)
    timeline = ring_times(computing + merging, send)
    busiest = int(timeline.busy_seconds[:, 0].argmax())
    merge = merging[busiest].sum(axis=0)
    return _prediction(shared, timeline.seconds, timeline.busy_seconds[busiest], merge, crossing)


def _merging(shared: _Shared, step: int, problems: tuple[Attention, ...]) -> np.ndarray:
    """Seconds to add a step's results to those of the steps before.

    Forward: the output, rescaled. Backward: the gradients of queries, keys and values.
    """
    if step == 0 or shared.merged:
        return np.zeros(3)
    problem, sizes = shared.problem, shared.problem.sizes()
    groups = sizes["b"] * sizes["g"]
    rows = groups * sizes["r"] * sum(call.seq_q for call in problems)
    if problem.direction == "fwd":
        return shared.clock.merging(rows, sizes["e"], problem.elements()["output"].name)
    cells = groups * sum(call.seq_kv for call in problems)
    dtype = problem.elements()["gradient"].name
    parts = ((rows, sizes["d"]), (cells, sizes["d"]), (cells, sizes["e"]))
    return sum((shared.clock.merging(*part, dtype) for part in parts), start=np.zeros(3))


def _gather(shared: _Shared) -> ContextPrediction:
    """Gather all keys first (forward), or scatter the gradients of all keys at the end
    (backward)."""
    check_divides(shared.problem.seq_q, shared.ranks, "parts, one a device")
    shards = placed(shared.placement, shared.problem.seq_q, shared.ranks)
    times = [shared.clock.together(gathered_calls(shared.problem, shard)) for shard in shards]
    crossing = exchanged("gather", shared.problem, shared.ranks, gradient=shared.gradient)
    return _serial(shared, max(times, key=lambda t: t[0]), crossing)


def _ulysses(shared: _Shared) -> ContextPrediction:
    """Each device has all tokens of its heads; too few key-value heads are repeated."""
    problem, ranks = shared.problem, shared.ranks
    check_divides(problem.seq_q, ranks, "parts, one a device")
    full = replace(problem, heads_kv=max(problem.heads_kv, ranks))
    share = replace(full, heads_q=problem.heads_q // ranks, heads_kv=full.heads_kv // ranks)
    crossing = exchanged("ulysses", full, ranks)
    return _serial(shared, shared.clock.together([share]), crossing)


def _tree(shared: _Shared) -> ContextPrediction:
    """Each device attends to its own keys; outputs and statistics are reduced over all."""
    check_divides(shared.problem.seq_kv, shared.ranks, "parts, one a device")
    keys = shared.problem.seq_kv // shared.ranks
    share = aligned(shared.problem, 1, keys, causal=False)
    crossing = exchanged("tree", shared.problem, shared.ranks)
    return _serial(shared, shared.clock.together([share]), crossing)


_WAYS: Mapping[str, Callable[[_Shared], ContextPrediction]] = {
    "ring": _ring,
    "gather": _gather,
    "ulysses": _ulysses,
    "tree": _tree,
}

WAYS = tuple(_WAYS)
"""Every way to share attention."""


def _serial(
    shared: _Shared, computing: np.ndarray, crossing: tuple[Exchange, ...]
) -> ContextPrediction:
    """Kernels and exchanges one after the other."""
    carrier = shared.carrier
    wait = sum((carrier.exchange_seconds(one) for one in crossing), start=np.zeros(3))
    return _prediction(shared, computing + wait, computing, np.zeros(3), crossing)


def _prediction(
    shared: _Shared,
    seconds: np.ndarray,
    computing: np.ndarray,
    merging: np.ndarray,
    crossing: tuple[Exchange, ...],
) -> ContextPrediction:
    has_choice = shared.way == "gather" or (shared.way == "ring" and shared.problem.seq_q > 1)
    return ContextPrediction(
        way=shared.way,
        placement=shared.placement if has_choice else "",
        ranks=shared.ranks,
        seconds=float(seconds[0]),
        low_seconds=float(seconds[1]),
        high_seconds=float(seconds[2]),
        compute_seconds=float(computing[0]),
        merge_seconds=float(merging[0]),
        exposed_seconds=float(seconds[0] - computing[0]),
        sent_bytes=sum(float(one.sent_bytes) for one in crossing),
        exchanges=crossing,
    )


def _check(problem: Attention, way: str, ranks: int) -> None:
    """Raise `ProblemError` for a problem that no way, or not this way, can share."""
    if any(isinstance(size, np.ndarray) for size in problem.sizes().values()):
        raise ProblemError("a problem here is one, not an array; predict one at a time")
    if not isinstance(ranks, int) or isinstance(ranks, bool) or ranks < 1:
        raise ProblemError(f"{ranks} devices share a sequence; write a whole number from 1")
    if problem.window is not None and np.any(problem.window):
        raise ProblemError(
            "a window leaves most steps of a ring without work, and is not shared over devices "
            "here; leave the window out, or split heads or batch"
        )
    decode = problem.seq_q == 1
    if way == "tree" and not (decode and problem.direction == "fwd"):
        raise ProblemError("tree is for one query a sequence, forward; take ring, gather, ulysses")
    if way in ("gather", "ulysses") and decode and ranks > 1:
        raise ProblemError(f"one query cannot be dealt out to {ranks} devices; take tree or ring")
    if not decode and problem.seq_q != problem.seq_kv:
        raise ProblemError(
            f"{problem.seq_q:,} queries and {problem.seq_kv:,} keys: devices share one sequence of "
            "both; give as many of each, or one query"
        )
    if way == "ulysses":
        _check_heads(problem, ranks)


def _check_heads(problem: Attention, ranks: int) -> None:
    queries, keys = problem.heads_q, problem.heads_kv
    counts = [
        n for n in range(1, queries + 1) if queries % n == 0 and (keys % n == 0 or n % keys == 0)
    ]
    if ranks not in counts:
        raise ProblemError(
            f"ulysses deals {queries} query and {keys} key-value heads out evenly, which "
            f"{ranks} devices do not allow; take {', '.join(map(str, counts))} devices, or ring"
        )


@dataclass(frozen=True, eq=False)
class Ring:
    """The times of a simulated ring, as (predicted, low, high)."""

    seconds: np.ndarray
    """Seconds until the last device has ended, shape (3,)."""
    busy_seconds: np.ndarray
    """Seconds of computing of each device, shape (ranks, 3)."""

    @property
    def exposed_seconds(self) -> np.ndarray:
        """Seconds beyond the computing of the busiest device, shape (3,)."""
        return np.asarray(self.seconds - self.busy_seconds.max(axis=0))


def ring_times(step_seconds: np.ndarray, send_seconds: np.ndarray) -> Ring:
    """Simulate a ring.

    `step_seconds`: computing of each device in each step, shape (ranks, steps, 3). `send_seconds`:
    one send, shape (3,). Nothing is sent in the last step.
    """
    ranks, steps, _ = step_seconds.shape
    start = np.zeros((ranks, step_seconds.shape[2]))
    for step in range(steps):
        end = start + step_seconds[:, step]
        arrival = np.maximum(np.roll(start, 1, axis=0), start) + send_seconds
        if step < steps - 1:
            start = np.maximum(end, np.maximum(arrival, np.roll(arrival, -1, axis=0)))
    return Ring(end.max(axis=0), step_seconds.sum(axis=1))
