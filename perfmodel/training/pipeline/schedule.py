"""Pipeline schedules by name: the order of every stage, and the path of the model through them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from perfmodel.errors import ProblemError, SizeError, UnknownName
from perfmodel.graph.jobs import Jobs, Wait
from perfmodel.training.pipeline import controlled, orders
from perfmodel.training.pipeline.orders import BW, PASSES, B, F, W

Place = tuple[int, int]
"""Stage and chunk."""
Path = tuple[Place, ...]
T = TypeVar("T")

# Schedules in the cache, the largest of a few hundred kB: a sweep reuses the same few.
_KEPT = 64


class Task(NamedTuple):
    """One pass of one chunk for one micro-batch."""

    name: str
    """F, B, W or BW: B is the gradient of a chunk's input, W that of its weights, BW is both in
    one, whose gradient reaches the stage before only at its end."""
    chunk: int
    """Index of the chunk on its stage."""
    micro_batch: int
    """Index from 0, in the order in which micro-batches enter the pipeline."""
    joined: bool = False
    """Whether it runs as one with the task before it, such as DualPipe's F and BW."""


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
    paths: tuple[Path, ...]
    """Stage and chunk of the model's parts, first to last: one path, or two in DualPipe."""
    orders: tuple[np.ndarray, ...]
    """Each stage's tasks as rows (`perfmodel.training.pipeline.orders`)."""

    @cached_property
    def tasks(self) -> tuple[tuple[Task, ...], ...]:
        """Each stage's order as tasks."""
        return tuple(
            tuple(Task(PASSES[name], chunk, micro, bool(join)) for name, chunk, micro, join in rows)
            for rows in (order.tolist() for order in self.orders)
        )

    @cached_property
    def opens(self) -> np.ndarray:
        """Whether each task of all stages, in order, begins a step: one task, or two joined."""
        return np.asarray(np.concatenate(self.orders)[:, 3] == 0)

    @cached_property
    def jobs(self) -> Jobs:
        """Its steps as jobs on stages.

        F waits for F of the part before, B or BW for that of the part after. (A chunk's own F comes
        earlier on the stage.) Delay i is between stages i and i + 1, the last one between the last
        stage and the first.
        """
        rows = np.concatenate(self.orders).tolist()
        stages = np.repeat(np.arange(self.stages), [len(order) for order in self.orders]).tolist()
        steps = (np.cumsum(self.opens) - 1).tolist()
        makers = {
            (B if row[0] == BW else row[0], stage, *row[1:3]): step
            for row, stage, step in zip(rows, stages, steps, strict=True)
        }
        waits: dict[int, list[Wait]] = {}
        for (name, chunk, micro, _), stage, step in zip(rows, stages, steps, strict=True):
            source = self._sources.get((F if name == F else B, stage, chunk))
            if source is not None and name != W:
                place, delay = source
                waits.setdefault(step, []).append(
                    (makers[F if name == F else B, *place, micro], delay)
                )
        counts = [int((order[:, 3] == 0).sum()) for order in self.orders]
        return Jobs(counts, waits)

    @cached_property
    def _sources(self) -> dict[tuple[int, int, int], tuple[Place, int]]:
        """Of F and B of each stage and chunk: where its input is made, and the delay's index."""
        sources: dict[tuple[int, int, int], tuple[Place, int]] = {}
        for before, after in (pair for path in self.paths for pair in pairwise(path)):
            low, high = sorted((before[0], after[0]))
            delay = -1 if low == high else low if high - low == 1 else high
            sources[F, *after], sources[B, *before] = (before, delay), (after, delay)
        return sources

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
        """An array by part as one by stage and chunk, shape (stages, chunks).

        Raises `ProblemError` for another number of parts.
        """
        values = np.asarray(by_part)
        if values.shape != (self.parts,):
            count = "a single number" if values.ndim == 0 else f"{len(values)} parts"
            raise ProblemError(
                f"{self.kind} over {self.stages} stages cuts the model into {self.parts} parts, "
                f"but {count} were given; give one number a part"
            )
        table = np.empty((self.stages, self.chunks), dtype=values.dtype)
        for path in self.paths:
            for part, place in enumerate(path):
                table[place] = values[part]
        return table

    def by_stage(self, parts: Sequence[T]) -> list[list[T]]:
        """The parts of the model that each stage holds."""
        stages: list[list[T]] = [[] for _ in range(self.stages)]
        for path in self.paths:
            for part, (stage, _) in zip(parts, path, strict=True):
                stages[stage].append(part)
        return stages

    def peak_held(self, held: np.ndarray | None = None) -> np.ndarray:
        """Peak of what each stage holds for micro-batches between their F and W, shape (stages,).

        `held` is what one micro-batch leaves in a chunk, shape (stages, chunks). Without it all
        parts are equal, and the unit is one stage's activations of one micro-batch, 1/p of the
        model's.
        """
        share = np.full((self.stages, self.chunks), self.stages / self.parts)
        sizes = share if held is None else np.asarray(held, dtype=np.float64)
        sign = np.array([1, 0, -1, -1])  # of F, B, W, BW
        return np.array([
            np.cumsum(sign[order[:, 0]] * sizes[stage][order[:, 1]]).max(initial=0.0)
            for stage, order in enumerate(self.orders)
        ])  # fmt: skip


@dataclass(frozen=True)
class Kind:
    """One published schedule."""

    name: str
    """Name in a plan."""
    about: str
    """One-line description."""
    source: str
    """Paper and section."""
    orders: Callable[[int, int, int], list[np.ndarray]]
    """(stages, micro-batches, chunks) → the order of each stage."""
    paths: Callable[[int, int], tuple[Path, ...]]
    """(stages, chunks) → stage and chunk of each part of the model."""
    chunks: int | None = 1
    """Chunks a stage; None: any number from 2."""
    whole_groups: bool = False
    """Whether micro-batches must be a multiple of the stages."""
    in_pairs: bool = False
    """Whether stages and micro-batches must be even."""
    fewest: int = 0
    """Minimum of micro-batches a stage; 0: at least one in all."""


def _loop(stages: int, chunks: int) -> tuple[Path, ...]:
    """Chunk after chunk, each from the first stage to the last."""
    return (tuple((stage, chunk) for chunk in range(chunks) for stage in range(stages)),)


def _opposite_paths(stages: int, chunks: int) -> tuple[Path, ...]:
    """From either end to the other."""
    down = tuple((stage, 0) for stage in range(stages))
    return down, tuple((stage, 1) for stage in reversed(range(stages)))


def _vee(stages: int, chunks: int) -> tuple[Path, ...]:
    """To the last stage and back."""
    down, back = _opposite_paths(stages, chunks)
    return ((*down, *back),)


KINDS = {
    kind.name: kind
    for kind in (
        Kind("gpipe", "All forwards, then all backwards.", "1811.06965 figure 2", orders.gpipe,
             _loop),
        Kind("1f1b", "One forward and one backward in turn.", "2104.04473 section 2.2.1",
             orders.alternating, _loop),
        Kind("interleaved", "1F1B with several chunks a stage.", "2104.04473 section 2.2.2",
             orders.alternating, _loop, chunks=None, whole_groups=True),
        Kind("zb-h1", "Zero bubble, memory of 1F1B.", "2401.10241 section 2.1", orders.h1,
             _loop),
        Kind("zb-h2", "Zero bubble, twice the memory.", "2401.10241 section 2.2", orders.h2,
             _loop),
        Kind("zb-v", "Zero bubble in a V, memory of 1F1B.", "2401.10241 section 6",
             orders.zb_v, _vee, chunks=2),
        Kind("v-half", "V with half the memory.", "2405.15362 section 3", controlled.v_half, _vee,
             chunks=2),
        Kind("v-min", "V with a third of the memory.", "2405.15362 section 3", controlled.v_min,
             _vee, chunks=2),
        Kind("dualpipe", "From both ends, F and B overlapped.", "2412.19437 section 3.2.1",
             orders.dualpipe, _opposite_paths, chunks=2, in_pairs=True, fewest=2),
        Kind("dualpipe-v", "DualPipe folded into a V.", "2412.19437, published code",
             orders.dualpipe_v, _vee, chunks=2, fewest=2),
    )
}  # fmt: skip
"""All schedules by name."""


def schedule(kind: str, stages: int, micro_batches: int, chunks: int | None = None) -> Schedule:
    """The schedule `kind`; without `chunks`, as many as it has, or 2 for interleaved.

    Raises `UnknownName` for another kind, `ProblemError` for numbers that no schedule has, and
    `SizeError`, with the nearest sizes, for those that this one does not support.
    """
    if kind not in KINDS:
        raise UnknownName("pipeline schedule", kind, KINDS)
    entry = KINDS[kind]
    count = entry.chunks or 2 if chunks is None else chunks
    _check_whole(entry, stages, micro_batches, count)
    try:
        _check_sizes(entry, stages, micro_batches)
    except SizeError as error:
        sizes = {"pipeline": stages, "micro-batches": micro_batches}
        raise error.those(
            lambda name, size: _check_sizes(entry, *({**sizes, name: size}).values())
        ) from None
    return _schedule(kind, int(stages), int(micro_batches), int(count))


@lru_cache(maxsize=_KEPT)
def _schedule(kind: str, stages: int, micro_batches: int, chunks: int) -> Schedule:
    entry = KINDS[kind]
    orders = tuple(entry.orders(stages, micro_batches, chunks))
    return Schedule(kind, stages, micro_batches, chunks, entry.paths(stages, chunks), orders)


def _check_whole(kind: Kind, stages: int, micro_batches: int, chunks: int) -> None:
    """Raise `ProblemError` for numbers that are not whole, and for chunks of another kind."""
    numbers = {"stages": stages, "micro-batches": micro_batches, "chunks": chunks}
    for name, number in numbers.items():
        is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
        if not is_whole or number < 1:
            raise ProblemError(f"a pipeline has {number} {name}; write a whole number from 1")
    if kind.chunks is None and chunks < 2:
        raise ProblemError(f"{kind.name} needs 2 chunks a stage or more; with one chunk take 1f1b")
    if kind.chunks is not None and chunks != kind.chunks:
        count = "one chunk" if kind.chunks == 1 else f"{kind.chunks} chunks"
        hint = "; for more take interleaved" if kind.chunks == 1 else ""
        raise ProblemError(
            f"{kind.name} has {count} a stage, not {chunks}; write --chunks {kind.chunks}{hint}"
        )


def _check_sizes(kind: Kind, stages: int, micro_batches: int) -> None:
    """Raise `SizeError` for numbers of stages and micro-batches that do not go together."""
    step = max(stages if kind.whole_groups else 1, 2 if kind.in_pairs else 1)
    least = -(-kind.fewest * stages // step) * step
    floor = max(micro_batches // step * step, least)
    fits = {
        "micro-batches": [n for n in (floor, floor + step) if n],
        "pipeline": [n for n in range(1, 2 * stages + 1) if n != stages],
    }
    if kind.in_pairs and stages % 2:
        raise SizeError(
            f"{kind.name} feeds stages from both ends in pairs, and {stages} is odd",
            {"pipeline": fits["pipeline"]},
        )
    if kind.whole_groups and micro_batches % stages:
        raise SizeError(
            f"{kind.name} takes micro-batches in groups of {stages}, one a stage, and "
            f"{micro_batches} is not a multiple",
            fits,
        )
    if micro_batches < kind.fewest * stages:
        raise SizeError(
            f"{kind.name} needs {kind.fewest} micro-batches a stage, {kind.fewest * stages} for "
            f"{stages} stages, not {micro_batches}",
            fits,
        )
    if kind.in_pairs and micro_batches % 2:
        raise SizeError(
            f"{kind.name} feeds half of the micro-batches from each end, and {micro_batches} is "
            "odd",
            {"micro-batches": fits["micro-batches"]},
        )
