"""DualPipe and DualPipeV: a forward and a backward pass of two micro-batches run as one.

DualPipe (DeepSeek-V3, 2412.19437, section 3.2.1 and figure 5) feeds micro-batches from both ends of
the pipeline. Stage d holds part d of the model for one direction and part p − 1 − d for the other,
so every parameter is held twice. F of one direction runs together with BW of the other, and the
communication of each overlaps the arithmetic of the other.

DualPipeV halves this: two chunks a stage in a V, every parameter once. In both, a stage at distance
r from the outer end of a side of n stages runs these eight steps, with m micro-batches in each
direction (the authors' published code):

    2(n − 1 − r) F₀ · (r + 1) F₀F₁ · (n − 1 − r) B₁W F₁ · (m − 2n + r + 1) of F₀&BW₁ F₁&BW₀
    · (n − 1 − r) BW₁ F₁&BW₀ · (r + 1) backwards of both, split half-way · (n − 1 − r) W B₀ · W left
"""

from __future__ import annotations

import numpy as np

from perfmodel.training.pipeline.task import Writer


def dualpipe(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """Two directions; the second half of the stages starts with the other one."""
    side = stages // 2
    orders = [_side(side, r, micro_batches // 2) for r in range(side)]
    return [*orders, *(_mirror(order) for order in reversed(orders))]


def dualpipe_v(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """One V."""
    return [_side(stages, r, micro_batches) for r in range(stages)]


def _mirror(order: np.ndarray) -> np.ndarray:
    """The same order with the two chunks exchanged."""
    mirror = order.copy()
    mirror[:, 1] = 1 - mirror[:, 1]
    return mirror


def _side(n: int, r: int, micro_batches: int) -> np.ndarray:
    """The order of one stage: the eight steps of the module docstring."""
    stage, inner = Writer(2), n - 1 - r
    for _ in range(2 * inner):
        stage.forward(0)
    for _ in range(r + 1):
        stage.forward(0)
        stage.forward(1)
    for _ in range(inner):
        stage.backward(1)
        stage.weight()
        stage.forward(1)
    for count in range(micro_batches - 2 * n + r + 1):
        if count == 0 and inner == 0:  # apart, so that the gradient reaches the next stage sooner
            stage.forward(0)
            stage.whole(1)
        else:
            stage.pair(0, 1)
        stage.pair(1, 0)
    for _ in range(inner):
        stage.whole(1)
        stage.pair(1, 0)
    _both_backwards(stage, r)
    for _ in range(inner):
        stage.weight()
        stage.backward(0)
    while stage.owed:
        stage.weight()
    return stage.order(micro_batches)


def _both_backwards(stage: Writer, r: int) -> None:
    """r + 1 backwards of each chunk in turn: whole up to the middle one, then B with W
    postponed."""
    for turn in range(2 * (r + 1)):
        chunk = 1 - turn % 2
        if turn > r:
            stage.backward(chunk)
        else:
            stage.whole(chunk)
