"""Schedules with whole backward passes that drain the pipeline at the end of a step.

GPipe (Huang et al. 1811.06965, figure 2c) runs all forwards, then all backwards, the last first.
1F1B (PipeDream-flush, Narayanan et al. 2104.04473, section 2.2.1) starts backwards as soon as it
can: stage i of p runs p − 1 − i forwards to warm up, then one forward and one backward in turn.

Interleaved 1F1B (section 2.2.2 there) cuts the model into p·v parts, v chunks for each of p stages,
and takes micro-batches in groups of p, a chunk at a time. Stage i warms up with

    2(p − 1 − i) + (v − 1)·p        forwards of a chunk.
"""

from __future__ import annotations

import numpy as np

from perfmodel.training.pipeline.task import BW, F, counted


def gpipe(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """The same order on every stage."""
    order = counted(np.repeat([F, BW], micro_batches), np.zeros(2 * micro_batches, dtype=np.int64))
    order[micro_batches:, 2] = order[micro_batches:, 2][::-1]
    return [order] * stages


def one_forward_one_backward(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """One chunk a stage."""
    zeros = np.zeros(micro_batches, dtype=np.int64)
    return [_alternation(stages - 1 - stage, zeros, zeros) for stage in range(stages)]


def interleaved(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """Several chunks a stage; micro-batches a multiple of the stages."""
    group = np.repeat(np.arange(chunks), stages)
    forward = np.tile(group, micro_batches // stages)
    warm_up = [2 * (stages - 1 - stage) + (chunks - 1) * stages for stage in range(stages)]
    return [_alternation(count, forward, chunks - 1 - forward) for count in warm_up]


def _alternation(warm_up: int, forward: np.ndarray, backward: np.ndarray) -> np.ndarray:
    """Warm-up forwards, then one forward and one backward in turn, then the remaining backwards.

    `forward` and `backward` are the chunks of all passes in their order.
    """
    warm_up = min(warm_up, len(forward))
    steady = np.tile([F, BW], len(forward) - warm_up)
    passes = np.concatenate([np.full(warm_up, F), steady, np.full(warm_up, BW)])
    chunks = np.empty(len(passes), dtype=np.int64)
    chunks[passes == F], chunks[passes == BW] = forward, backward
    return counted(passes, chunks)
