"""Loop nests without tiles: which axes go to blocks, which are streamed, and in which order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from itertools import product
from typing import Annotated, Any

from perfmodel.algorithms.algorithm import Algorithm
from perfmodel.arithmetic import Number, maximum
from perfmodel.columns import Column, Result
from perfmodel.count import rule
from perfmodel.count.cost import Elements, to_bytes
from perfmodel.elements import ElementType
from perfmodel.napkin.fusion import loops_why_not, partitions
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

# For counts in elements: every type is one unit wide, so bytes are elements.
UNIT = ElementType("unit", Fraction(8), "unit")
_MANY, _FEW = 5, 4


@dataclass(frozen=True, slots=True)
class Nest:
    """Fused steps under one loop nest. An axis without a loop is held whole."""

    steps: tuple[str, ...]
    """The steps."""
    grid: tuple[str, ...]
    """Axes spread over blocks."""
    stream: tuple[str, ...]
    """Axes that are streamed, outermost first."""
    single: frozenset[str] = frozenset()
    """Axes of `grid` that are spread one index at a time."""

    @property
    def tiled(self) -> tuple[str, ...]:
        """Axes that need a tile size."""
        return (*(axis for axis in self.grid if axis not in self.single), *self.stream)

    def __str__(self) -> str:
        blocks = " ".join(axis for axis in self.grid if axis not in self.single)
        loops = " › ".join(self.stream)
        return f"{' + '.join(self.steps)}: blocks over {blocks or 'nothing'}, stream {loops or '-'}"


@dataclass(frozen=True)
class Tiled(Result):
    """Fused steps under a loop nest with its tiles."""

    nest: Nest
    """Its loop nest."""
    tiles: Annotated[Mapping[str, int], Column(place=3)]
    """Tile of each axis."""

    @property
    def kernel(self) -> Annotated[str, Column("kernel", fold=16, place=-1)]:
        """The steps."""
        return " + ".join(self.nest.steps)

    @property
    def blocks(self) -> Annotated[str, Column("blocks", fold=12, place=-1)]:
        """Grid axes with their tiles: "g q/128"."""
        tiles = self.tiles
        axes = (f"{axis}/{tiles[axis]}" if axis in tiles else axis for axis in self.nest.grid)
        return " ".join(axes) or "-"

    @property
    def stream(self) -> Annotated[str, Column("stream", fold=12, place=-1)]:
        """Streamed axes with their tiles, outermost first."""
        return " › ".join(f"{axis}/{self.tiles[axis]}" for axis in self.nest.stream) or "-"


def units(algorithm: Algorithm) -> dict[str, ElementType]:
    """Types of one byte each, so that bytes are elements."""
    roles = {tensor.element for tensor in algorithm.tensors.values()}
    return dict.fromkeys((*roles, "accumulator"), UNIT)


def batch_axes(fused: Algorithm) -> tuple[str, ...]:
    """Axes that every tensor has: independent copies of one problem.

    Where nothing is contracted, the last two of them are not batch axes but tiled, since a single
    element is too little work for a block.
    """
    verdicts = partitions(fused)
    sets = [set(tensor.axes) for tensor in fused.tensors.values()]
    windows = {axis for t in fused.tensors.values() for w in t.windows for axis in w[:2]}
    shared = [
        axis
        for axis in fused.axes
        if axis not in windows and verdicts[axis].groupable and all(axis in own for own in sets)
    ]
    if any(step.kind == "contraction" for step in fused.steps):
        return tuple(shared)
    return tuple(axis for axis in shared if axis not in fused.axes[-2:])


def sliced_axes(fused: Algorithm) -> frozenset[str]:
    """Axes of sums that blocks may share, each leaving a partial sum to be added up at the end.

    Only plain sums can be cut so: kernels of maps and reductions in which no step reads a sum.
    """
    sums = [step for step in fused.steps if step.kind == "reduction"]
    inputs = {name for step in fused.steps for name in step.inputs}
    is_sum = len(sums) + sum(step.kind == "map" for step in fused.steps) == len(fused.steps)
    if not is_sum or fused.mask or any(name in inputs for step in sums for name in step.outputs):
        return frozenset()
    windows = {axis for t in fused.tensors.values() for w in t.windows for axis in w[:2]}
    return frozenset(axis for step in sums for axis in step.reduces) - windows


def nests(
    fused: Algorithm, sizes: Mapping[str, int], shared: frozenset[str] = frozenset()
) -> Iterator[Nest]:
    """Every legal nest of a fused kernel: each axis grouped, streamed or held, in every order; axes
    of sums are grouped only where `shared` names them.

    A batch axis is spread one index at a time: traffic does not depend on its tile, and the
    footprint only grows with it. Axes of extent 1 have no loop.

    The order of grid axes does not matter at this boundary, since all blocks start empty. Nor does
    the order of two adjacent loops that index the same tensors. Where more than `_MANY` axes are
    free (a convolution), axes that index the same tensors are all grouped or all streamed, and keep
    their order; of more than `_FEW` such axes only the innermost are held, and the streamed ones
    are adjacent loops.
    """
    steps = tuple(step.name for step in fused.steps)
    batch = batch_axes(fused)
    free = [axis for axis in fused.axes if axis not in batch and sizes[axis] > 1]
    outer = tuple(axis for axis in batch if sizes[axis] > 1)
    users = {a: frozenset(n for n, t in fused.tensors.items() if a in t.axes) for a in free}
    coarse = len(free) > _MANY
    counts = Counter(users.values())
    crowded = frozenset(group for group, count in counts.items() if coarse and count > _FEW)
    for way in _ways(fused, free, shared):
        if coarse and not _is_uniform(way, users, crowded):
            continue
        grid = (*outer, *(axis for axis in free if way[axis] == "grid"))
        streams = [axis for axis in free if way[axis] == "stream"]
        for order in _orders(fused, streams, users, coarse, crowded, ()):
            yield Nest(steps, grid, order, frozenset(outer))


def _ways(fused: Algorithm, free: list[str], shared: frozenset[str]) -> Iterator[dict[str, str]]:
    """All combinations of choices (grouped, streamed, held) for the free axes."""
    verdicts = partitions(fused)
    choices = []
    for axis in free:
        ways = ["held"]
        ways += ["grid"] if verdicts[axis].groupable or axis in shared else []
        ways += ["stream"] if verdicts[axis].passes else []
        choices.append(ways)
    for combination in product(*choices):
        yield dict(zip(free, combination, strict=True))


def _is_uniform(
    way: Mapping[str, str],
    users: Mapping[str, frozenset[str]],
    crowded: frozenset[frozenset[str]],
) -> bool:
    """Whether axes that index the same tensors have the same choice or are held; where they are
    crowded, only the innermost of them are held."""
    choices: dict[frozenset[str], str] = {}
    for axis, choice in way.items():
        tensors = users[axis]
        if choice not in (choices.get(tensors, choice), "held"):
            return False
        if choice != "held" or tensors in crowded:
            choices[tensors] = choice
    return True


def _orders(
    fused: Algorithm,
    rest: list[str],
    users: Mapping[str, frozenset[str]],
    coarse: bool,
    crowded: frozenset[frozenset[str]],
    outer: tuple[str, ...],
) -> Iterator[tuple[str, ...]]:
    """Legal orders of the streamed axes, built from the outside in."""
    if not rest:
        yield outer
        return
    for i, axis in enumerate(rest):
        twins = [other for other in rest[:i] if users[other] == users[axis]]
        repeats = outer and users[outer[-1]] == users[axis] and outer[-1] not in _head(fused, axis)
        if repeats or (coarse and twins):
            continue
        current = users[outer[-1]] if outer else users[axis]
        unfinished = any(users[other] == current for other in rest)
        if current in crowded and unfinished and users[axis] != current:
            continue  # adjacent loops
        order = (*outer, axis)
        if not loops_why_not(fused, order):
            yield from _orders(fused, rest[:i] + rest[i + 1 :], users, coarse, crowded, order)


def _head(fused: Algorithm, axis: str) -> tuple[str, ...]:
    """Axes before a given one in the algorithm's list."""
    return fused.axes[: fused.axes.index(axis)]


def schedule(fused: Algorithm, nest: Nest, tiles: Mapping[str, Number], **options: Any) -> Schedule:
    """The one-kernel schedule of a nest with its tiles; `options` are those of `Kernel`.

    Where blocks share a sum, the last block to finish adds their partial sums up.
    """
    loops = [Loop(axis, tiles.get(axis, 1), grid=True) for axis in nest.grid]
    loops += [Loop(axis, tiles[axis]) for axis in nest.stream]
    partial = {
        n for step in fused.steps if set(step.reduces) & set(nest.grid) for n in step.outputs
    }
    spill = dict.fromkeys((_sums(fused) | partial) & set(fused.outputs), "accumulator")
    kernel = Kernel(" + ".join(nest.steps), nest.steps, tuple(loops), spill=spill, **options)
    if not partial:
        return Schedule("napkin", fused, (kernel,))
    summed = {axis for step in fused.steps for axis in step.reduces}
    fold_loops = tuple(loop for loop in loops if loop.grid and loop.axis not in summed)
    fold = Kernel("fold", (), fold_loops, combines=tuple(sorted(partial)))
    return Schedule("napkin", fused, (kernel, fold))


def _sums(fused: Algorithm) -> set[str]:
    """Outputs of contractions, which have the accumulators' type until finished."""
    return {n for step in fused.steps if step.kind == "contraction" for n in step.outputs}


def held(fused: Algorithm, nest: rule.Nest, elements: Elements) -> Number:
    """Memory M: bytes of all tiles on chip at once, in one shared space.

    A map or normalisation overwrites an input of the same axes that nothing else reads, as the
    probabilities overwrite the scores. Sums count in the accumulators' type.
    """
    sums = _sums(fused)
    total: Number = 0
    for names in places(fused):
        sizes = [
            to_bytes(
                product_of(rule.extents(fused.tensors[n], nest.tile)),
                elements["accumulator" if n in sums else fused.tensors[n].element],
            )
            for n in names
        ]
        largest = sizes[0]
        for size in sizes[1:]:
            largest = size if largest is size else maximum(largest, size)
        total = total + largest
    return total


def product_of(values: list[Number]) -> Number:
    """The product; arrays stay arrays."""
    result: Number = 1
    for value in values:
        result = result * value
    return result


def places(fused: Algorithm) -> list[list[str]]:
    """Groups of tensors that share one place on chip."""
    readers: dict[str, int] = {}
    for step in fused.steps:
        for name in step.inputs:
            readers[name] = readers.get(name, 0) + 1
    home: dict[str, list[str]] = {}
    for step in fused.steps:
        for name in step.inputs:
            home.setdefault(name, [name])
        free = [
            n
            for n in step.inputs
            if step.kind in ("map", "normalisation") and readers[n] == 1 and n not in fused.outputs
        ]
        for name in step.outputs:
            axes = fused.tensors[name].axes
            host = next((n for n in free if fused.tensors[n].axes == axes), None)
            if host is None:
                home.setdefault(name, [name])
            else:
                free.remove(host)
                home[host].append(name)
                home[name] = home[host]
    return list({id(names): names for names in home.values()}.values())
