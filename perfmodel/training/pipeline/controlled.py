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

from collections.abc import Callable

import numpy as np

from perfmodel.training.pipeline.task import BW, B, F, W

_PERIOD = 6  # units of a micro-batch: F, B and W of two chunks
_BLOCK = ((F, 0), (F, 1), (B, 1), (B, 0))  # in a building block's order
_HELD = {F: 1, B: 0, W: -1, BW: -1}

_Row = tuple[int, int, int, int]


def v_half(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """About p/2 + 1 stages' activations, half of 1F1B's bubble."""
    gap = 3 if stages % 2 == 0 else 0

    def block(i: int) -> tuple[int, ...]:
        second, last = 3 * stages - 1 + 2 * i + gap, 6 * stages - 2 - i + gap
        return 2 * i, 3 * stages - 2 - i, second, last

    return _orders(stages, micro_batches, block)


def v_min(stages: int, micro_batches: int, chunks: int) -> list[np.ndarray]:
    """About p/3 + 1 stages' activations, two thirds of 1F1B's bubble."""
    gap = 2 if stages % 3 == 0 else 0

    def block(i: int) -> tuple[int, ...]:
        return i, 2 * stages - 1 - i, 2 * stages + i + gap, 4 * stages - 1 - i + gap

    return _orders(stages, micro_batches, block)


def _orders(
    stages: int, micro_batches: int, block: Callable[[int], tuple[int, ...]]
) -> list[np.ndarray]:
    patterns = [_pattern(block(i), micro_batches) for i in range(stages)]
    return _Squeezed(patterns).orders()


def _pattern(block: tuple[int, ...], micro_batches: int) -> list[_Row]:
    """The block once a micro-batch, sorted by unit, with W in the free units."""
    slots = {
        unit + _PERIOD * micro: (name, chunk, micro, 0)
        for unit, (name, chunk) in zip(block, _BLOCK, strict=True)
        for micro in range(micro_batches)
    }
    rows: list[_Row] = []
    weights: list[_Row] = []
    for unit in range(max(slots) + 1):
        if unit in slots:
            rows.append(slots[unit])
            if slots[unit][0] == B:
                weights.append((W, *slots[unit][1:]))
        elif weights:
            rows.append(weights.pop(0))
    return rows + weights


class _Squeezed:
    """All stages, simulated one unit of time after another."""

    def __init__(self, patterns: list[list[_Row]]) -> None:
        self._left = patterns
        self._stages = len(patterns)
        # The peak number of chunks' activations that a pattern holds.
        self._most = max(np.cumsum([_HELD[row[0]] for row in rows]).max() for rows in patterns)
        self._held = [0] * self._stages
        self._done: dict[tuple[int, int, int, int], int] = {}
        self._orders: list[list[_Row]] = [[] for _ in patterns]

    def orders(self) -> list[np.ndarray]:
        """Each stage's passes in the order in which they ran."""
        unit = 0
        while any(self._left):
            for stage in range(self._stages):
                self._run_one(stage, unit)
            unit += 1
        return [np.array(order, dtype=np.int64) for order in self._orders]

    def _run_one(self, stage: int, unit: int) -> None:
        """Run the earliest ready pass that does not exceed the held activations, if any.

        An F that runs ahead of earlier passes holds one more chunk while these run.
        """
        memory = peak = self._held[stage]
        queue = self._left[stage]
        for place, row in enumerate(queue[: _PERIOD * 2 * self._stages]):
            fits = row[0] != F or peak < self._most
            if fits and self._is_ready(stage, row, unit):
                del queue[place]
                self._orders[stage].append(row)
                self._done[stage, *row[:3]] = unit + 1
                self._held[stage] += _HELD[row[0]]
                return
            memory += _HELD[row[0]]
            peak = max(peak, memory)

    def _is_ready(self, stage: int, row: _Row, unit: int) -> bool:
        """Whether the inputs of a pass were complete before this unit."""
        name, chunk, micro, _ = row
        if name == W:
            return self._is_done(unit, stage, B, chunk, micro)
        if name == B and not self._is_done(unit, stage, F, chunk, micro):
            return False
        inwards = (name == F) == (chunk == 0)  # from the stage before, or from the one after
        source = stage - 1 if inwards else stage + 1
        if source < 0:  # chunk 0 takes the input, chunk 1 the loss
            return True
        if source == self._stages:  # the tip of the V
            return self._is_done(unit, stage, name, 1 - chunk, micro)
        return self._is_done(unit, source, name, chunk, micro)

    def _is_done(self, unit: int, *key: int) -> bool:
        stage, name, chunk, micro = key
        return self._done.get((stage, name, chunk, micro), unit + 1) <= unit
