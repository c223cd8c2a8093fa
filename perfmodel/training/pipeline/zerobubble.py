"""Zero-bubble schedules (Qi et al. 2401.10241): W, which no pass depends on, fills the bubbles.

Before its first B, stage i of p runs a number of forwards; its W are a number of B behind:

    schedule            forwards ahead      W behind      held at most
    ZB-H1 (figure 2)    p − i               i             p
    ZB-H2 (figure 3)    2(p − i) − 1        2i            2p − 1

Then it runs B, W, F in turn. F of micro-batch p reaches the last stage just when that stage has run
p F, p B and one W, so these numbers leave no bubble there.

ZB-V (section 6) folds the model into a V, two chunks a stage. The last part of the model is then on
the same stage as the first, and the first B comes early.
"""

from __future__ import annotations

import numpy as np

from perfmodel.training.pipeline.task import Writer


def h1(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """As much memory as 1F1B."""
    return [_alternation(stages - i, i, micro_batches) for i in range(stages)]


def h2(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """Twice the memory, no bubble where F = B = W."""
    return [_alternation(2 * (stages - i) - 1, 2 * i, micro_batches) for i in range(stages)]


def zb_v(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """As much memory as 1F1B, no bubble where F = B = W; fewer than 2p − 1 micro-batches leave
    gaps."""
    return [_vee(stages, i, micro_batches) for i in range(stages)]


def _alternation(warm_up: int, lag: int, micro_batches: int) -> np.ndarray:
    """Forwards ahead of the first B; then B, the W that is due, and F."""
    stage = Writer()
    for _ in range(min(warm_up, micro_batches)):
        stage.forward()
    for _ in range(micro_batches):
        stage.backward()
        if stage.owed > lag:
            stage.weight()
        if stage.forwards[0] < micro_batches:
            stage.forward()
    while stage.owed:
        stage.weight()
    return stage.order(micro_batches)


def _vee(stages: int, i: int, micro_batches: int) -> np.ndarray:
    """Stage i of the V, in the order that the paper's authors give for F = B = W."""
    stage, enough = Writer(2), max(2 * stages - 1, micro_batches)
    for _ in range(2 * (stages - i) - 1):
        stage.forward(0)
    for _ in range(i):
        stage.forward(1)
        stage.forward(0)
    for _ in range(stages - i):
        stage.forward(1)
        _backward_and_weight(stage, 1)
    while stage.forwards[1] < enough:
        if stage.forwards[0] < enough:
            stage.forward(0)
        _backward_and_weight(stage, 0)
        stage.forward(1)
        _backward_and_weight(stage, 1)
    for _ in range(i):
        stage.backward(0)
        stage.backward(1)
    while stage.backwards[0] < enough:
        _backward_and_weight(stage, 0)
    while stage.owed:
        stage.weight()
    return stage.order(micro_batches)


def _backward_and_weight(stage: Writer, chunk: int) -> None:
    stage.backward(chunk)
    stage.weight()
