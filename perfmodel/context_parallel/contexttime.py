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

Each way is defined by a split axis and the axis along which its tensors are sharded; the counting
rule gives the exchanges. A ring is timed by the list scheduler (`perfmodel.graph.jobs`), on devices
and links: each device works on its current keys while the next arrive.

    start(i, s + 1) = max(end(i, s), arrival at i, arrival at i + 1)
    arrival at i    = max(start(i − 1, s), start(i, s)) + send

Both ends of a transfer post it when they begin step s and wait for it at its end, as the published
kernels do. So a step takes the longer of computing and sending, and a device with less work waits
for its neighbours. In step s, device i works on the keys of device i − s.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from perfmodel.algorithms import Attention, Problem, Rowwise
from perfmodel.algorithms.attention import Direction
from perfmodel.context_parallel.carrier import Carrier
from perfmodel.context_parallel.placement import (
    Held,
    aligned,
    check_divides,
    gathered_calls,
    placed,
    step_calls,
)
from perfmodel.count.exchanges import Exchange
from perfmodel.elements import element
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.graph.asks import Ask, answers
from perfmodel.graph.jobs import Jobs, Wait
from perfmodel.graph.tree import Tree
from perfmodel.hardware import Device
from perfmodel.operators.mesh import crossing

Calls = tuple[Attention, ...]
Steps = list[list[Calls]]
"""The calls of each device in each step of a ring."""

# Way → the split axis, and for each pass the axis along which a tensor is sharded. The backward
# pass of gather and Ulysses takes its inputs as the forward pass left them.
_LIES: Mapping[str, tuple[str, Mapping[str, Mapping[str, str]]]] = {
    "ring": (
        "q",
        {"fwd": {"K": "x", "V": "x"}, "bwd": {"K": "x", "V": "x", "dK": "x", "dV": "x"}},
    ),
    "gather": ("q", {"fwd": {"K": "x", "V": "x"}, "bwd": {"dK": "x", "dV": "x"}}),
    "ulysses": (
        "g",
        {
            "fwd": {"Q": "q", "K": "x", "V": "x", "O": "q"},
            "bwd": {"dO": "q", "dQ": "q", "dK": "x", "dV": "x"},
        },
    ),
    "tree": ("x", {"fwd": {}}),
}


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
    device: Device

    def seconds(self, calls: Sequence[Sequence[Problem]]) -> list[np.ndarray]:
        """Predicted, low and high seconds of each sequence of problems, shape (3,)."""
        asks = [Ask("", each, "auto", None, (), {}) for sequence in calls for each in sequence]
        replies = iter(answers(asks, self.device, harness="kernel", constants=None))
        times = [[next(replies) for _ in sequence] for sequence in calls]
        return [
            sum(
                (np.array([t.seconds, t.low_seconds, t.high_seconds]) for t in each),
                start=np.zeros(3),
            )
            for each in times
        ]

    @property
    def exchanges(self) -> tuple[Exchange, ...]:
        """Its exchanges; a ring sends partial dK and dV in the type `gradient`."""
        return exchanged(self.way, self.problem, self.ranks, gradient=self.gradient)


def exchanged(
    way: str, problem: Attention, ranks: int, *, gradient: str = "fp32"
) -> tuple[Exchange, ...]:
    """Exchanges of one pass of a problem, `problem.direction`, shared among `ranks` devices.

    `gradient` is the type in which partial dK and dV are sent; they are computed in the problem's
    type.
    """
    axis, layouts = _LIES[way]
    placement = {(tensor, axis): along for tensor, along in layouts[problem.direction].items()}
    streams = way != "gather"  # the kernels start once all keys have arrived
    transfers = crossing(replace(problem, causal=False), {axis: ranks}, placement, fused=streams)
    factor = float(element(gradient).bits / problem.elements()["gradient"].bits)
    return tuple(
        replace(one, tensor_bytes=one.tensor_bytes * factor, sent_bytes=one.sent_bytes * factor)
        if one.tensor in ("dK", "dV") and one.kind == "reduce-scatter"
        else one
        for one in transfers
    )


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
) -> Tree:
    """Predict attention whose sequence is split over `ranks` devices.

    The problem is the whole one, over all devices. `merged`: kernels merge partial results
    themselves. `gradient`: type in which a ring sends partial dK and dV.

    Raises `UnknownName` for another way or placement, and `ProblemError` for a problem that the way
    cannot share; the message names one that can.
    """
    if way not in _WAYS:
        raise UnknownName("way to share attention", way, _WAYS)
    _check(problem, way, ranks)
    directions: tuple[Direction, ...] = ("fwd", "bwd")
    passes = directions if problem.direction == "fwdbwd" else (problem.direction,)
    trees = [
        _WAYS[way](
            _Shared(way, replace(problem, direction=one), ranks, placement, merged, gradient,
                    carrier, device)
        )
        for one in passes
    ]  # fmt: skip
    if len(trees) == 1:
        return trees[0]
    exchanges = tuple(exchange for tree in trees for exchange in tree.exchanges)
    both = Tree.series(way, problem.direction, trees)
    return replace(both, settings=trees[0].settings, device=device.slug, exchanges=exchanges)


def every_way(
    problem: Attention, device: Device, carrier: Carrier, ranks: int, *, placement: str = "zigzag"
) -> dict[str, Tree]:
    """The ways that can share a problem, the fastest first. Raises `ProblemError` where none
    can."""
    ways: list[Tree] = []
    errors: list[ProblemError] = []
    for way in WAYS:
        try:
            ways.append(
                predict_context(problem, device, carrier, ranks, way=way, placement=placement)
            )
        except ProblemError as error:
            errors.append(error)
    if not ways:
        raise errors[0]
    return {each.name: each for each in sorted(ways, key=lambda each: each.seconds)}


def ring_steps(problem: Attention, ranks: int, placement: str) -> Steps:
    """The calls of each device in each step; a single query is on all devices."""
    if problem.seq_q == 1:
        check_divides(problem.seq_kv, ranks, "parts, one a device")
        block = aligned(problem, 1, problem.seq_kv // ranks, causal=False)
        return [[(block,)] * ranks] * ranks
    shards: tuple[Held, ...] = placed(placement, int(problem.seq_q), ranks)
    return [
        [step_calls(problem, shards[i], shards[(i - step) % ranks]) for step in range(ranks)]
        for i in range(ranks)
    ]


def _ring(shared: _Shared) -> Tree:
    """Blocks rotate; a step takes the longer of computing and sending."""
    steps, shape = ring_steps(shared.problem, shared.ranks, shared.placement), (shared.ranks, -1, 3)
    calls = [step for device in steps for step in device]
    merges = [_merging(shared, at, step) for device in steps for at, step in enumerate(device)]
    computing, merging = np.split(np.array(shared.seconds([*calls, *merges])), 2)
    crossing = shared.exchanges
    step_bytes = sum(float(one.sent_bytes) for one in crossing) / max(shared.ranks - 1, 1)
    send = shared.carrier.send_seconds(step_bytes) if shared.ranks > 1 else np.zeros(3)
    work = (computing + merging).reshape(shape)
    busy = work.sum(axis=1)
    busiest = int(busy[:, 0].argmax())
    merge = merging.reshape(shape)[busiest].sum(axis=0)
    return _prediction(shared, ring_seconds(work, send), busy[busiest], merge, crossing)


def _merging(shared: _Shared, step: int, calls: Calls) -> list[Problem]:
    """What adds a step's results to those of the steps before, in fp32.

    Forward: the output, rescaled. Backward: the gradients of queries, keys and values.
    """
    if step == 0 or shared.merged:
        return []
    problem, sizes = shared.problem, shared.problem.sizes()
    groups = sizes["b"] * sizes["g"]
    rows = groups * sizes["r"] * sum(call.seq_q for call in calls)
    cells = groups * sum(call.seq_kv for call in calls)
    forward = problem.direction == "fwd"
    dtype = problem.elements()["output" if forward else "gradient"].name
    parts = ((rows, "e"),) if forward else ((rows, "d"), (cells, "d"), (cells, "e"))
    return [
        Rowwise("pointwise", n, sizes[axis], "fp32", variant="add", also_inputs=1, also_dtype=dtype)
        for n, axis in parts
        if n
    ]


def _gather(shared: _Shared) -> Tree:
    """Gather all keys first (forward), or scatter the gradients of all keys at the end
    (backward)."""
    check_divides(shared.problem.seq_q, shared.ranks, "parts, one a device")
    shards = placed(shared.placement, int(shared.problem.seq_q), shared.ranks)
    times = shared.seconds([gathered_calls(shared.problem, shard) for shard in shards])
    return _serial(shared, max(times, key=lambda t: t[0]), shared.exchanges)


def _ulysses(shared: _Shared) -> Tree:
    """Each device has all tokens of its heads; too few key-value heads are repeated."""
    problem, ranks = shared.problem, shared.ranks
    check_divides(problem.seq_q, ranks, "parts, one a device")
    full = replace(problem, heads_kv=max(problem.heads_kv, ranks))
    share = replace(full, heads_q=problem.heads_q // ranks, heads_kv=full.heads_kv // ranks)
    crossing = exchanged("ulysses", full, ranks)
    return _serial(shared, shared.seconds([[share]])[0], crossing)


def _tree(shared: _Shared) -> Tree:
    """Each device attends to its own keys; outputs and statistics are reduced over all."""
    check_divides(shared.problem.seq_kv, shared.ranks, "parts, one a device")
    keys = shared.problem.seq_kv // shared.ranks
    share = aligned(shared.problem, 1, keys, causal=False)
    return _serial(shared, shared.seconds([[share]])[0], shared.exchanges)


_WAYS: Mapping[str, Callable[[_Shared], Tree]] = {
    "ring": _ring,
    "gather": _gather,
    "ulysses": _ulysses,
    "tree": _tree,
}

WAYS = tuple(_WAYS)
"""Every way to share attention."""


def _serial(shared: _Shared, computing: np.ndarray, crossing: tuple[Exchange, ...]) -> Tree:
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
) -> Tree:
    """The time of the busiest device: of attention, of merging partial results in passes of their
    own, and what exchanges and waiting add."""
    parts = {
        ("attention", "attention"): computing - merging,
        ("merging", "pointwise"): merging,
        ("exchanges", "communication"): seconds - computing,
    }
    has_choice = shared.way == "gather" or (shared.way == "ring" and shared.problem.seq_q > 1)
    middle, low, high = seconds.tolist()
    return Tree(
        name=shared.way,
        kind=shared.problem.direction,
        seconds=middle,
        low_seconds=low,
        high_seconds=high,
        children=tuple(
            Tree.part(*names, ends[0].item(), (ends[1].item(), ends[2].item()))
            for names, ends in parts.items()
            if np.any(ends)
        ),
        settings={
            "way": shared.way,
            "placement": shared.placement if has_choice else "",
            "ranks": shared.ranks,
        },
        device=shared.device.slug,
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
    queries, keys = int(problem.heads_q), int(problem.heads_kv)
    counts = [
        n for n in range(1, queries + 1) if queries % n == 0 and (keys % n == 0 or n % keys == 0)
    ]
    if ranks not in counts:
        raise ProblemError(
            f"ulysses deals {queries} query and {keys} key-value heads out evenly, which "
            f"{ranks} devices do not allow; take {', '.join(map(str, counts))} devices, or ring"
        )


def ring_seconds(step_seconds: np.ndarray, send_seconds: np.ndarray) -> np.ndarray:
    """Seconds until the last device of a ring has ended, shape (3,).

    `step_seconds`: computing of each device in each step, shape (ranks, steps, 3). `send_seconds`:
    one send, shape (3,). Nothing is sent in the last step.
    """
    ranks, steps, cases = step_seconds.shape
    span, sends = 2 * steps, steps - 1  # a device's queue: for each step its beginning and its work
    waits: dict[int, list[Wait]] = {}
    for i in range(ranks):
        for step in range(sends):
            send = ranks * span + i * sends + step
            waits[send] = [(d * span + 2 * step, -1) for d in ((i - 1) % ranks, i)]
            for device in {i, (i - 1) % ranks}:
                waits.setdefault(device * span + 2 * step + 2, []).append((send, -1))
    jobs = Jobs([span] * ranks + [sends] * ranks, waits)
    work = np.zeros((ranks, steps, 2, cases))
    work[:, :, 1] = step_seconds
    times = np.concatenate([work.reshape(-1, cases), np.tile(send_seconds, (ranks * sends, 1))])
    ends = np.array([jobs.ends(column.tolist()) for column in times.T])
    return np.asarray(ends[:, : ranks * span].max(axis=1))


LONGEST = 2**20
"""Longest block in the search for a threshold, in tokens."""

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


def threshold(problem: Attention, device: Device, carrier: Carrier) -> Threshold:
    """The shortest block from which on every step hides its transfer, to a sixteenth.

    A step with r queries and keys a device computes 4·r²·d operations a query head and sends 4·r·d
    bytes a key-value head (16 bits): the link is hidden where r ≥ (g/a)·P/B, with g key-value
    heads, a query heads, B the link's bytes a second and P the kernel's rate on such a block.

    The lengths of the problem do not matter. Raises `ProblemError` where not even the longest block
    hides it, as on a link slower than the rate at which the kernel streams keys.
    """
    blocks = block_lengths()
    steps = [aligned(problem, n, n, causal=False) for n in blocks]
    shared = _Shared("ring", problem, 2, "", True, "fp32", carrier, device)
    computing = np.array(shared.seconds([[step] for step in steps]))[:, 0]
    pairs = (aligned(problem, 2 * n, 2 * n, causal=False) for n in blocks)
    sent = [sum(float(one.sent_bytes) for one in exchanged("ring", pair, 2)) for pair in pairs]
    sends = np.array([carrier.send_seconds(block)[0] for block in sent])
    misses = np.flatnonzero(computing < sends)
    i = int(misses[-1]) + 1 if misses.size else 0
    if i == len(blocks):
        raise ProblemError(
            f"not even a block of {LONGEST:,} tokens hides its transfer on {device.slug}; "
            "take a faster link, or fewer key-value heads"
        )
    flops = float(steps[i].flops())
    return Threshold(blocks[i], float(computing[i]), float(sends[i]), flops / float(computing[i]))


def block_lengths() -> list[int]:
    """Blocks from one grain to the longest, a sixteenth apart, in whole grains."""
    sizes = [_GRAIN]
    while sizes[-1] < LONGEST:
        step = max(sizes[-1] * 17 // 16 // _GRAIN, sizes[-1] // _GRAIN + 1)
        sizes.append(min(step * _GRAIN, LONGEST))
    return sizes
