"""Seconds of a step's exchanges, by the collectives that its engine runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.collectives import Collective, predict_collective
from perfmodel.networks.recorder import Exchanged
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.times import Line, Times

KIND = "communication"

_Layers = tuple[Exchanged, int]
"""The exchange of one layer, and the number of layers."""


def times(of: Deployment, steps: Sequence[Sequence[_Layers]]) -> Times | None:
    """Times of the exchanges of steps that all have the same ones; None where there are none."""
    if not steps[0]:
        return None
    rows = [_row(of, [step[i] for step in steps]) for i in range(len(steps[0]))]
    lines = tuple(Line(one.kind, KIND, KIND, repeat) for one, repeat in steps[0])
    return Times(lines, *(np.array([row[i] for row in rows]) for i in range(3))).merged()


def send(of: Deployment, tensor_bytes: np.ndarray) -> Times:
    """Sends from one pipeline stage to the next."""
    problem = Collective("send-receive", np.ceil(tensor_bytes).astype(np.int64), 2, 2)
    time = predict_collective(problem, of.fabric)
    line = Line("send-receive", KIND, KIND, 1)
    return Times((line,), *(v[None] for v in (time.seconds, time.low_seconds, time.high_seconds)))


def _row(setup: Deployment, row: Sequence[_Layers]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, low and high ends of one exchange in several steps."""
    first, _ = row[0]
    ranks = setup.tensor if first.axis == "tensor" else setup.expert
    local = min(
        ranks, max(setup.fabric.node_devices // (1 if first.axis == "tensor" else setup.tensor), 1)
    )
    while ranks % local:
        local -= 1
    width = setup.dispatch_width if first.out else 1.0
    sizes = np.array([round(one.tensor_bytes * width) for one, _ in row], dtype=np.int64)
    library = setup.engine.all_reduce if first.kind == "all-reduce" else "nccl"
    share = 1.0 if first.router is None else first.router.share(ranks // local)
    problem = Collective(first.kind, sizes, ranks, local, network_share=share)
    time = predict_collective(problem, setup.fabric, library=library)
    repeat = np.array([layers for _, layers in row])
    return time.seconds * repeat, time.low_seconds * repeat, time.high_seconds * repeat
