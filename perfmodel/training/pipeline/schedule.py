"""A pipeline schedule: the order of every stage, and the path of the model through the stages."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from perfmodel.errors import ProblemError
from perfmodel.training.pipeline.task import BW, F, Task, W, tasks

Place = tuple[int, int]
"""Stage and chunk."""


@dataclass(frozen=True, eq=False)
class Schedule:
    """The order of each stage's tasks. It has no times (`simulate` does)."""

    kind: str
    """Its name: gpipe, 1f1b, interleaved ..."""
    stages: int
    """Devices in the pipeline (p)."""
    micro_batches: int
    """Micro-batches a step (m)."""
    chunks: int
    """Parts of the model that a stage holds (v)."""
    paths: tuple[tuple[Place, ...], ...]
    """Stage and chunk of the model's parts, first to last: one path, or two in DualPipe."""
    orders: tuple[np.ndarray, ...]
    """Each stage's order, in the format of `perfmodel.training.pipeline.task`."""

    @cached_property
    def tasks(self) -> tuple[tuple[Task, ...], ...]:
        """Each stage's order as tasks."""
        return tuple(tasks(order) for order in self.orders)

    @property
    def copies(self) -> int:
        """Copies of every parameter in the pipeline: 2 in DualPipe."""
        return len(self.paths)

    @property
    def parts(self) -> int:
        """Number of parts that the model is cut into."""
        return len(self.paths[0])

    @property
    def crossings(self) -> int:
        """Boundaries between stages that a micro-batch crosses in the forward pass; as many
        backward."""
        steps = [(a[0], b[0]) for path in self.paths for a, b in pairwise(path)]
        return sum(before != after for before, after in steps) // self.copies

    def by_place(self, by_part: np.ndarray) -> np.ndarray:
        """An array by part, shape (parts, ...), as one by stage and chunk, shape (stages, chunks,
        ...).

        Raises `ProblemError` for another number of parts.
        """
        values = np.asarray(by_part)
        if values.ndim == 0 or len(values) != self.parts:
            count = "a single number" if values.ndim == 0 else f"{len(values)} parts"
            raise ProblemError(
                f"{self.kind} over {self.stages} stages cuts the model into {self.parts} parts, "
                f"but {count} were given; give one number a part"
            )
        table = np.empty((self.stages, self.chunks, *values.shape[1:]), dtype=values.dtype)
        for path in self.paths:
            for part, place in enumerate(path):
                table[place] = values[part]
        return table

    def peak_held(self, held: np.ndarray | None = None) -> np.ndarray:
        """Peak of what each stage holds for micro-batches between their F and W, shape (stages,).

        `held` is what one micro-batch leaves in a chunk, shape (stages, chunks). Without it all
        parts are equal, and the unit is one stage's activations of one micro-batch, 1/p of the
        model's.
        """
        share = np.full((self.stages, self.chunks), self.stages / self.parts)
        sizes = share if held is None else np.asarray(held, dtype=np.float64)
        peaks = []
        for stage, order in enumerate(self.orders):
            sign = np.where(order[:, 0] == F, 1, np.where(np.isin(order[:, 0], (W, BW)), -1, 0))
            counts = np.cumsum(sign * sizes[stage][order[:, 1]])
            peaks.append(counts.max(initial=0.0))
        return np.array(peaks)
