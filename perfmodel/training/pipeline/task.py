"""A task of a pipeline stage: one pass of one chunk for one micro-batch.

F is the forward pass, B the gradient of a chunk's input, W that of its weights. BW is a whole
backward pass, B and W in one, whose gradient reaches the stage before only at its end. A stage's
order is an array with one row a task:

    pass (an index of `PASSES`) · chunk · micro-batch · joined

`joined` is 1 for a task that runs together with the one before it, such as DualPipe's F and BW of
two micro-batches.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np

Pass = Literal["F", "B", "W", "BW"]

PASSES: tuple[Pass, ...] = ("F", "B", "W", "BW")
F, B, W, BW = range(4)


class Task(NamedTuple):
    """One pass of one chunk for one micro-batch."""

    name: Pass
    """F, B, W or BW."""
    chunk: int
    """Index of the chunk on its stage."""
    micro_batch: int
    """Index from 0, in the order in which micro-batches enter the pipeline."""
    joined: bool = False
    """Whether it runs together with the task before it."""


class Writer:
    """Builds a stage's order; each pass of a chunk takes the next micro-batch."""

    def __init__(self, chunks: int = 1) -> None:
        self.forwards = [0] * chunks
        self.backwards = [0] * chunks
        self._rows: list[tuple[int, int, int, int]] = []
        self._owed: list[tuple[int, int]] = []

    def forward(self, chunk: int = 0) -> None:
        """F of the next micro-batch."""
        self._rows.append((F, chunk, self.forwards[chunk], 0))
        self.forwards[chunk] += 1

    def backward(self, chunk: int = 0) -> None:
        """B of the next micro-batch; its W is postponed."""
        micro_batch = self.backwards[chunk]
        self._rows.append((B, chunk, micro_batch, 0))
        self._owed.append((chunk, micro_batch))
        self.backwards[chunk] += 1

    def whole(self, chunk: int = 0, joined: bool = False) -> None:
        """BW of the next micro-batch."""
        self._rows.append((BW, chunk, self.backwards[chunk], int(joined)))
        self.backwards[chunk] += 1

    def pair(self, forward: int, backward: int) -> None:
        """F of one chunk together with BW of another."""
        self.forward(forward)
        self.whole(backward, joined=True)

    def weight(self) -> None:
        """The W postponed for longest, if any."""
        if self._owed:
            self._rows.append((W, *self._owed.pop(0), 0))

    @property
    def owed(self) -> int:
        """Number of postponed W."""
        return len(self._owed)

    def order(self, micro_batches: int) -> np.ndarray:
        """The order so far, of the first `micro_batches`."""
        return np.array([row for row in self._rows if row[2] < micro_batches], dtype=np.int64)


def counted(passes: np.ndarray, chunks: np.ndarray) -> np.ndarray:
    """The order of these passes and chunks, each taking the next micro-batch."""
    order = np.zeros((len(passes), 4), dtype=np.int64)
    order[:, 0], order[:, 1] = passes, chunks
    kinds = passes * (chunks.max(initial=0) + 1) + chunks
    for kind in np.unique(kinds):
        rows = np.flatnonzero(kinds == kind)
        order[rows, 2] = np.arange(len(rows))
    return order


def tasks(order: np.ndarray) -> tuple[Task, ...]:
    """The rows of an order as tasks."""
    rows: Sequence[tuple[int, int, int, int]] = order.tolist()
    return tuple(Task(PASSES[p], chunk, micro, bool(flag)) for p, chunk, micro, flag in rows)
