"""Exchanges of rows with the devices of their experts, as a stack's dispatcher runs them.

A stack without a dispatcher uses the library's all-to-all. One with a dispatcher (DeepEP) sends
tokens by kernels of its own, whose time is that of the operators `expert-dispatch` and
`expert-combine` on the device. They forward rows inside a node while others cross the network, each
device by adapters of its own. So over nodes an exchange takes the longer of

    the kernel      and      the copies for other nodes, all-to-all among one device of each node

A kernel that sends a token once to each rank sends it once to each node too (`Router.share`); one
that sends a copy for each expert does not.

DeepEP's tables of H800 over InfiniBand, which no number here is made from, were recalled from
memory: with 128 tokens of 7168 and 8 experts, dispatch of 118, 155, 173, 192 and 194 us on 16 to
256 devices, combination of 195, 273, 314, 369 and 360 us. This rule has 101, 142, 162, 172 and 178,
and 189, 271, 311, 332 and 342 us.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.collectives import Collective, CollectivePredictions, predict_collective
from perfmodel.hardware import System
from perfmodel.hardware import load as load_device
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.stack import Stack
from perfmodel.operators import load as load_operator
from perfmodel.predict import predict_arrays
from perfmodel.prediction import Predictions
from perfmodel.timing.libraries import kernel_facts

PEERS = 8
"""Devices that a dispatcher's kernels serve in a node (DeepEP, NUM_MAX_NVL_PEERS); Megatron Core
leaves larger ones to all-to-all."""


def sends(stack: Stack, system: System, one: Exchanged) -> bool:
    """Whether kernels of the stack's dispatcher run an exchange, and not the library's."""
    return one.router is not None and _serves(stack, system)


def _serves(stack: Stack, system: System) -> bool:
    """Whether the stack has a dispatcher that runs on nodes of the system."""
    joined = system.levels[0].medium == "fabric" and system.node_devices <= PEERS
    return bool(stack.dispatchers) and joined


def occupied_share(stack: Stack, system: System) -> float | None:
    """Share of a device's units on which the stack's dispatcher runs; None where the library's
    exchange runs."""
    if not _serves(stack, system):
        return None
    sending = kernel_facts(f"{stack.dispatchers[-1]}-dispatch").sending
    units = load_device(system.device).units
    return (sending.units or units) / units


def exchange_ends(
    exchanges: Sequence[Exchanged], ranks: int, local: int, system: System, stack: Stack,
    dtype: str = "",
) -> np.ndarray:  # fmt: skip
    """Times of exchanges with experts that differ in their rows, by the stack's dispatcher: seconds
    and both ends of their 80 % range, shape (3, n).

    `local` of the `ranks` are in one node. `dtype` is the type of rows on their way out; empty:
    their own.
    """
    first = exchanges[0]
    assert first.router is not None
    chosen, device, nodes = first.router.chosen, load_device(system.device), ranks // local
    rows = np.array([one.x.rows for one in exchanges])
    tokens = -(-rows // chosen)
    operator = load_operator("expert-dispatch" if first.out else "expert-combine")
    problem = operator.problem(
        tokens=tokens, hidden=first.x.cols, top_k=chosen, ranks=ranks,
        dtype=dtype if dtype and first.out else first.x.dtype,
    )  # fmt: skip
    row_bytes = first.x.cols * problem.elements()["data"].bytes
    ends = np.zeros((3, len(rows)))
    waiting = np.full(len(rows), True)
    for dispatcher in stack.dispatchers:
        name = f"{dispatcher}-{operator.name.rpartition('-')[2]}"
        sending = kernel_facts(name).sending
        times = _ends(predict_arrays(problem, device, implementation=name))
        if nodes > 1:
            share = first.router.share(nodes) if sending.copies == "ranks" else 1.0
            sent = np.round(rows * row_bytes * share).astype(np.int64)
            beyond = _ends(predict_collective(Collective("all-to-all", sent, nodes, 1), system))
            times = np.where(times[0] >= beyond[0], times, beyond)
        runs = waiting & (tokens <= sending.most_tokens)
        ends, waiting = np.where(runs, times, ends), waiting & ~runs
    return ends


def _ends(time: Predictions | CollectivePredictions) -> np.ndarray:
    return np.array([time.seconds, time.low_seconds, time.high_seconds])
