"""Least traffic for every capacity: all legal nests and tiles of a kernel, and the best of them.

A kernel's points (bytes held, bytes moved) are reduced to their Pareto front. The best point at a
capacity is then a look-up. Kernels run one after another, so the least traffic of a fusion at a
capacity is the sum over its kernels, and the best fusion is a shortest path over the steps.
Orojenesis (Huang et al. 2024) draws the same curve for one einsum.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.columns import Column
from perfmodel.count import count
from perfmodel.count.cost import Elements
from perfmodel.errors import ProblemError
from perfmodel.napkin.fusion import groups, part
from perfmodel.napkin.nests import Nest, Tiled, held, nests, schedule
from perfmodel.napkin.tiles import COLUMNS, all_of
from perfmodel.units import binary

Tiles = dict[str, int]


@dataclass(frozen=True)
class Choice(Tiled):
    """One nest and tiling of a kernel."""

    held_bytes: Annotated[float, Column("held", show="binary", place=1)]
    """Bytes held by a block."""
    moved_bytes: Annotated[float, Column("moved")]
    """Bytes moved by all blocks."""


@dataclass(frozen=True)
class Front:
    """The Pareto front of one kernel."""

    steps: tuple[str, ...]
    """The steps that it fuses."""
    held_bytes: np.ndarray
    """Bytes held by a block of each choice, ascending."""
    moved_bytes: np.ndarray
    """Bytes moved by each choice, descending."""
    choices: tuple[Choice, ...]
    """The choices."""
    nests: int
    """Number of loop nests that were tried."""
    considered: int
    """Number of tilings that were counted."""

    def least(self, capacity_bytes: float) -> Choice | None:
        """The choice with least traffic that fits; None where nothing fits."""
        i = int(np.searchsorted(self.held_bytes, capacity_bytes, side="right")) - 1
        return self.choices[i] if i >= 0 else None

    def moved(self, capacity_bytes: np.ndarray) -> np.ndarray:
        """Least bytes moved at each capacity; infinite where nothing fits."""
        index = np.searchsorted(self.held_bytes, capacity_bytes, side="right") - 1
        return np.where(index >= 0, self.moved_bytes[np.maximum(index, 0)], np.inf)


def evaluate(
    fused: Algorithm,
    nest: Nest,
    tiles: Mapping[str, np.ndarray],
    sizes: Mapping[str, int],
    elements: Elements,
) -> tuple[np.ndarray, np.ndarray]:
    """(bytes held, bytes moved) of one nest for arrays of tiles."""
    width = max((len(values) for values in tiles.values()), default=1)
    plan = schedule(fused, nest, tiles)
    kernel = count(plan, sizes, elements).kernels[0]
    shape = (width,)
    memory = np.broadcast_to(np.asarray(held(fused, kernel.nest, elements), float), shape)
    traffic = np.broadcast_to(np.asarray(kernel.bytes_at("l2"), float), shape)
    return memory, traffic


def front(
    fused: Algorithm, sizes: Mapping[str, int], elements: Elements, columns: int = COLUMNS
) -> Front:
    """The front of one kernel over all its legal nests and tiles."""
    pieces: list[tuple[Nest, dict[str, np.ndarray], np.ndarray, np.ndarray]] = []
    tally = 0
    for nest in nests(fused, sizes):
        tiles = all_of(fused, nest.tiled, sizes, columns)
        if any(not len(values) for values in tiles.values()):
            continue
        memory, traffic = evaluate(fused, nest, tiles, sizes, elements)
        tally += len(memory)
        keep = undominated(memory, traffic)
        pieces.append((nest, {a: v[keep] for a, v in tiles.items()}, memory[keep], traffic[keep]))
    owner = np.concatenate([np.full(len(p[2]), i) for i, p in enumerate(pieces)])
    place = np.concatenate([np.arange(len(p[2])) for p in pieces])
    memory, traffic = (np.concatenate([p[k] for p in pieces]) for k in (2, 3))
    keep = undominated(memory, traffic)
    choices = tuple(
        _choice(pieces[owner[i]][0], pieces[owner[i]][1], int(place[i]), memory[i], traffic[i])
        for i in keep
    )
    steps = tuple(step.name for step in fused.steps)
    return Front(steps, memory[keep], traffic[keep], choices, len(pieces), tally)


def _choice(
    nest: Nest, tiles: Mapping[str, np.ndarray], i: int, memory: float, traffic: float
) -> Choice:
    return Choice(nest, {a: int(v[i]) for a, v in tiles.items()}, float(memory), float(traffic))


def undominated(used: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Indices of the Pareto-optimal points, ascending in bytes held."""
    order = np.lexsort((moved, used))
    best = np.minimum.accumulate(moved[order])
    first = np.concatenate([[True], best[1:] < best[:-1]])
    return np.array(order[first])


@dataclass(frozen=True)
class Fronts:
    """The fronts of every run of consecutive steps of an algorithm."""

    algorithm: Algorithm
    """The algorithm."""
    by_steps: Mapping[tuple[str, ...], Front]
    """The front of each run of consecutive steps."""

    def fusion(self, capacity_bytes: float) -> tuple[Choice, ...]:
        """The kernels, in order, with least total traffic at a capacity.

        Raises `ProblemError` with the smallest need of the step where nothing fits.
        """
        names = [step.name for step in self.algorithm.steps]
        best: list[tuple[float, tuple[Choice, ...]]] = [(0.0, ())]
        for end in range(1, len(names) + 1):
            ways = []
            for start in range(end):
                choice = self.by_steps[tuple(names[start:end])].least(capacity_bytes)
                if choice is not None and np.isfinite(best[start][0]):
                    total, choices = best[start]
                    ways.append((total + choice.moved_bytes, (*choices, choice)))
            best.append(min(ways, key=lambda way: way[0], default=(np.inf, ())))
        if not np.isfinite(best[-1][0]):
            raise ProblemError(self._misfit(capacity_bytes))
        return best[-1][1]

    def _misfit(self, capacity_bytes: float) -> str:
        singles = [f for steps, f in self.by_steps.items() if len(steps) == 1]
        worst = max(singles, key=lambda f: f.held_bytes[0])
        need = worst.held_bytes[0]
        return (
            f"no tile of step {worst.steps[0]} fits in {binary(capacity_bytes)}: its smallest "
            f"holds {binary(need)}, {binary(need - capacity_bytes)} more; the capacity binds"
        )

    def moved(self, fusion: Sequence[tuple[str, ...]], capacity_bytes: np.ndarray) -> np.ndarray:
        """Least bytes that a given fusion moves at each capacity."""
        return sum((self.by_steps[g].moved(capacity_bytes) for g in fusion), start=np.zeros(()))

    def best_moved(self, capacity_bytes: np.ndarray) -> np.ndarray:
        """Least bytes of any fusion at each capacity."""
        names = [step.name for step in self.algorithm.steps]
        best = [np.zeros(np.shape(capacity_bytes))]
        for end in range(1, len(names) + 1):
            ways = [
                best[start] + self.by_steps[tuple(names[start:end])].moved(capacity_bytes)
                for start in range(end)
            ]
            best.append(np.min(ways, axis=0))
        return best[-1]


def fronts(
    algorithm: Algorithm, sizes: Mapping[str, int], elements: Elements, columns: int = COLUMNS
) -> Fronts:
    """Fronts of all kernels that an algorithm may be split into."""
    table = {
        steps: front(part(algorithm, steps), sizes, elements, columns)
        for steps in groups(algorithm)
    }
    return Fronts(algorithm, table)
