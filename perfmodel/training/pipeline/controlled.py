"""V-Half and V-Min: V-shaped schedules with a half or a third of 1F1B's activations.

Source: Qi et al., Pipeline Parallelism with Controllable Memory (2405.15362). A building block is
the work of stage i of p for one micro-batch: the time units at which it runs F and B of its two
chunks, with F = B = W = 1. The block repeats every six units, once a micro-batch; W takes the units
that are left. The shorter the block, the fewer micro-batches are in flight:

    V-Min     i    2p − 1 − i    2p + i + e       4p − 1 − i + e      e = 2 where 3 divides p
    V-Half    2i   3p − 2 − i    3p − 1 + 2i + e  6p − 2 − i + e      e = 3 where p is even

The columns are F of chunk 0, F of chunk 1, B of chunk 1, B of chunk 0; e keeps passes from
colliding.

The warm-up and drain of the repeated block have gaps, which the paper removes by reordering. Here
each stage runs, in every unit, the earliest pass of its pattern that is ready, unless it would hold
more activations than the pattern does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from perfmodel.training.pipeline.orders import B, F, Row, W

_PERIOD = 6  # units of a micro-batch: F, B and W of two chunks
_BLOCK = ((F, 0), (F, 1), (B, 1), (B, 0))  # in a building block's order
_HELD = {F: 1, B: 0, W: -1}


def v_half(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """About p/2 + 1 stages' activations, half of 1F1B's bubble."""
    p, gap = stages, 3 if stages % 2 == 0 else 0
    columns = ((0, 2), (3 * p - 2, -1), (3 * p - 1 + gap, 2), (6 * p - 2 + gap, -1))
    return _orders(stages, micro_batches, columns)


def v_min(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """About p/3 + 1 stages' activations, two thirds of 1F1B's bubble."""
    p, gap = stages, 2 if stages % 3 == 0 else 0
    columns = ((0, 1), (2 * p - 1, -1), (2 * p + gap, 1), (4 * p - 1 + gap, -1))
    return _orders(stages, micro_batches, columns)


def _orders(
    stages: int, micro_batches: int, columns: Sequence[tuple[int, int]]
) -> list[np.ndarray]:
    """The orders of a block whose columns begin at a unit and go on by a slope a stage."""
    blocks = [[first + slope * i for first, slope in columns] for i in range(stages)]
    return _squeezed([_pattern(block, micro_batches) for block in blocks])


def _pattern(block: Sequence[int], micro_batches: int) -> list[Row]:
    """The block once a micro-batch, sorted by unit, with W in the free units."""
    slots = {
        unit + _PERIOD * micro: (name, chunk, micro, 0)
        for unit, (name, chunk) in zip(block, _BLOCK, strict=True)
        for micro in range(micro_batches)
    }
    rows: list[Row] = []
    weights: list[Row] = []
    for unit in range(max(slots) + 1):
        if unit in slots:
            rows.append(slots[unit])
            if slots[unit][0] == B:
                weights.append((W, *slots[unit][1:]))
        elif weights:
            rows.append(weights.pop(0))
    return rows + weights


def _squeezed(patterns: list[list[Row]]) -> list[np.ndarray]:
    """Each stage's passes in the order in which they run, one unit of time after another.

    An F that runs ahead of earlier passes holds one more chunk while these run.
    """
    stages = len(patterns)
    most = max(np.cumsum([_HELD[row[0]] for row in rows]).max() for rows in patterns)
    memories = [0] * stages
    ends: dict[tuple[int, ...], int] = {}
    orders: list[list[Row]] = [[] for _ in patterns]
    unit = 0
    while any(patterns):
        for stage, queue in enumerate(patterns):
            memory = peak = memories[stage]
            for place, row in enumerate(queue[: _PERIOD * 2 * stages]):
                ready = all(ends.get(need, unit + 1) <= unit for need in _needs(stage, row, stages))
                if ready and (row[0] != F or peak < most):
                    orders[stage].append(queue.pop(place))
                    ends[stage, *row[:3]] = unit + 1
                    memories[stage] += _HELD[row[0]]
                    break
                memory += _HELD[row[0]]
                peak = max(peak, memory)
        unit += 1
    return [np.array(order, dtype=np.int64) for order in orders]


def _needs(stage: int, row: Row, stages: int) -> list[tuple[int, ...]]:
    """Stage, pass, chunk and micro-batch of a pass's inputs."""
    name, chunk, micro, _ = row
    if name == W:
        return [(stage, B, chunk, micro)]
    needs: list[tuple[int, ...]] = [(stage, F, chunk, micro)] if name == B else []
    source = stage - 1 if (name == F) == (chunk == 0) else stage + 1
    if source == stages:  # the tip of the V
        needs.append((stage, name, 1 - chunk, micro))
    elif source >= 0:  # chunk 0 takes the input, chunk 1 the loss
        needs.append((source, name, chunk, micro))
    return needs
