"""Seconds of a step's exchanges, by the collectives that its engine runs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.collectives import Collective, predict_collective
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.kernels import Exchange
from perfmodel.serving.times import Line, Times

KIND = "communication"


def times(of: Deployment, steps: Sequence[Sequence[Exchange]]) -> Times | None:
    """Times of the exchanges of steps that all have the same ones; None where there are none."""
    if not steps[0]:
        return None
    rows = [_row(of, [step[i] for step in steps]) for i in range(len(steps[0]))]
    lines = tuple(
        Line(each[0].one.kind, KIND, KIND, each[0].repeat) for each in zip(*steps, strict=True)
    )
    return Times(lines, *(np.array([row[i] for row in rows]) for i in range(3))).merged()


def send(of: Deployment, tensor_bytes: np.ndarray) -> Times:
    """Sends from one pipeline stage to the next."""
    problem = Collective("send-receive", np.ceil(tensor_bytes).astype(np.int64), 2, 2)
    found = predict_collective(problem, of.fabric)
    line = Line("send-receive", KIND, KIND, 1)
    return Times(
        (line,), *(v[None] for v in (found.seconds, found.low_seconds, found.high_seconds))
    )


def _row(of: Deployment, alike: Sequence[Exchange]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds, low and high ends of one exchange in several steps."""
    one = alike[0].one
    ranks = of.tensor if one.axis == "tensor" else of.expert
    near = min(ranks, max(of.fabric.node_devices // (1 if one.axis == "tensor" else of.tensor), 1))
    while ranks % near:
        near -= 1
    width = of.dispatch_width if one.out else 1.0
    sizes = np.array([round(each.one.tensor_bytes * width) for each in alike], dtype=np.int64)
    library = of.engine.all_reduce if one.kind == "all-reduce" else "nccl"
    share = 1.0 if one.router is None else one.router.share(ranks // near)
    problem = Collective(one.kind, sizes, ranks, near, network_share=share)
    found = predict_collective(problem, of.fabric, library=library)
    repeat = np.array([each.repeat for each in alike])
    return found.seconds * repeat, found.low_seconds * repeat, found.high_seconds * repeat
