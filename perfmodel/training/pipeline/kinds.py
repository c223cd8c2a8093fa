"""The schedules by name: their orders, their limits on stages and micro-batches, their sources."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from perfmodel.errors import ProblemError, SizeError, UnknownName
from perfmodel.training.pipeline import controlled, dualpipe, flush, zerobubble
from perfmodel.training.pipeline.schedule import Place, Schedule

Path = tuple[Place, ...]

# Schedules in the cache, the largest of a few hundred kB: a sweep reuses the same few.
_KEPT = 64


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


def _vee(stages: int, chunks: int) -> tuple[Path, ...]:
    """To the last stage and back."""
    down = tuple((stage, 0) for stage in range(stages))
    return ((*down, *((stage, 1) for stage in reversed(range(stages)))),)


def _opposite_paths(stages: int, chunks: int) -> tuple[Path, ...]:
    """From either end to the other."""
    down = tuple((stage, 0) for stage in range(stages))
    return down, tuple((stage, 1) for stage in reversed(range(stages)))


KINDS = {
    kind.name: kind
    for kind in (
        Kind("gpipe", "All forwards, then all backwards.", "1811.06965 figure 2", flush.gpipe,
             _loop),
        Kind("1f1b", "One forward and one backward in turn.", "2104.04473 section 2.2.1",
             flush.one_forward_one_backward, _loop),
        Kind("interleaved", "1F1B with several chunks a stage.", "2104.04473 section 2.2.2",
             flush.interleaved, _loop, chunks=None, whole_groups=True),
        Kind("zb-h1", "Zero bubble, memory of 1F1B.", "2401.10241 section 2.1", zerobubble.h1,
             _loop),
        Kind("zb-h2", "Zero bubble, twice the memory.", "2401.10241 section 2.2", zerobubble.h2,
             _loop),
        Kind("zb-v", "Zero bubble in a V, memory of 1F1B.", "2401.10241 section 6",
             zerobubble.zb_v, _vee, chunks=2),
        Kind("v-half", "V with half the memory.", "2405.15362 section 3", controlled.v_half, _vee,
             chunks=2),
        Kind("v-min", "V with a third of the memory.", "2405.15362 section 3", controlled.v_min,
             _vee, chunks=2),
        Kind("dualpipe", "From both ends, F and B overlapped.", "2412.19437 section 3.2.1",
             dualpipe.dualpipe, _opposite_paths, chunks=2, in_pairs=True, fewest=2),
        Kind("dualpipe-v", "DualPipe folded into a V.", "2412.19437, published code",
             dualpipe.dualpipe_v, _vee, chunks=2, fewest=2),
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
