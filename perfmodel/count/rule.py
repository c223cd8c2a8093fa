"""The counting rule: what a loop nest moves, computes and holds. One rule for all operations.

    moved(T) = size(T) × Π trips of the loops that do not index T and enclose the innermost
                         loop that does

The unit at this boundary is a thread block. It starts with empty on-chip memory, so every grid loop
counts as enclosing. Sizes are full extents: ragged ends are exact because masked lanes move
nothing. Two loops on one axis count as one loop with the finer tile. A mask couples its two loops,
and the product over them becomes a sum over visited pairs (`band`).

Derivation: a tile is fetched whenever one of its own indices changes. Each loop that encloses the
innermost loop over such an index repeats every fetch. (FlashAttention on a Napkin, section 2;
Timeloop's reuse analysis.)

Mesh loops, whose blocks are devices, are removed first: a `Nest` is that of one device, over the
largest shard. `exchanges` counts the bytes over the links.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property

from perfmodel.algorithms.algorithm import Band, Step, Tensor
from perfmodel.arithmetic import Number, ceil_div, minimum, product, where
from perfmodel.count.band import Visits, visit
from perfmodel.frozen import dataclass
from perfmodel.schedules.schedule import Kernel, Loop, Schedule

Sizes = Mapping[str, Number]


@dataclass(frozen=True)
class Nest:
    """A kernel's loops with the sizes they run over, and the mask that couples two of them."""

    kernel: Kernel
    """The kernel."""
    sizes: Sizes
    """Extent of each axis."""
    mask: Band | None
    """The mask; None without one."""
    visits: Visits | None
    """Sums over the visited tile pairs; None without a mask."""

    def trips(self, axis: str, loops: tuple[Loop, ...]) -> Number:
        """Trips of the given loops over one axis together: those of the finest tile."""
        finest = loops[-1]
        for loop, trips in self._trip_cache:
            if loop is finest:
                return trips
        stated = finest.ranks if finest.mesh else finest.trips
        trips = ceil_div(self.sizes[axis], finest.tile) if stated is None else stated
        self._trip_cache.append((finest, trips))
        return trips

    @cached_property
    def _trip_cache(self) -> list[tuple[Loop, Number]]:
        """Cache of trip counts: the rule needs those of the same few loops again and again."""
        return []

    def tile(self, axis: str) -> Number:
        """Extent of an axis that a block holds at once."""
        loops = self.kernel.loops(axis)
        return minimum(loops[-1].tile, self.sizes[axis]) if loops else self.sizes[axis]

    def allocated(self, axis: str) -> Number:
        """Extent of an axis that a block allocates: a whole tile, however short the axis."""
        loops = self.kernel.loops(axis)
        return loops[-1].tile if loops else self.sizes[axis]

    def block_extent(self, axis: str) -> Number:
        """Extent of an axis that a block covers from start to end."""
        grid = tuple(loop for loop in self.kernel.loops(axis) if loop.grid)
        return minimum(grid[-1].tile, self.sizes[axis]) if grid else self.sizes[axis]

    def over(self, axes: tuple[str, ...], again: Mapping[str, tuple[Loop, ...]]) -> Number:
        """Σ over the iterations of the loops in `again` (by axis) of the extents of `axes`.

        Without a mask this is Π extents × Π trips; the mask's own two axes are summed over the
        visited pairs.
        """
        trips = {axis: self.trips(axis, loops) for axis, loops in again.items()}
        if self.mask is None or not {self.mask.query, self.mask.key} <= {*axes, *trips}:
            return product([*(self.sizes[axis] for axis in axes), *trips.values()])
        q, k = self.mask.query, self.mask.key
        visits = self.visits_of(again)
        count = {
            (True, True): visits.area,
            (True, False): visits.queries,
            (False, True): visits.keys,
            (False, False): visits.pairs,
        }[q in axes, k in axes]
        rest = [self.sizes[axis] for axis in axes if axis not in (q, k)]
        return product([count, *rest, *(n for axis, n in trips.items() if axis not in (q, k))])

    def visits_of(self, again: Mapping[str, tuple[Loop, ...]]) -> Visits:
        """Visited pairs of the tiles of the loops in `again`: an axis with two loops has two tile
        sizes."""
        mask, visits = self.mask, self.visits
        if mask is None or visits is None:
            raise ValueError("a nest without a mask visits every pair")
        ends = {axis: self.kernel.loops(axis)[-1:] for axis in (mask.query, mask.key)}
        coarse = {axis: again[axis] for axis in ends if axis in again}
        if all(loops[-1] is ends[axis][-1] for axis, loops in coarse.items()):
            return visits
        tile = {axis: minimum(ls[-1].tile, self.sizes[axis]) for axis, ls in coarse.items()}
        br, bc = (tile.get(axis, self.tile(axis)) for axis in (mask.query, mask.key))
        return visit(mask, self.sizes[mask.query], self.sizes[mask.key], br, bc)


def nest(schedule: Schedule, kernel: Kernel, sizes: Sizes) -> Nest:
    """The loops of a kernel on one device, with its mask's visited pairs already summed.

    Raises `ProblemError` where a mask's keys are split over devices while there are several
    queries: which shard is the busiest then depends on the mask.
    """
    mask = schedule.algorithm.mask
    if kernel.mesh:
        if mask is not None and kernel.masked:
            mask.check_split([loop.axis for loop in kernel.mesh], sizes[mask.query])
        kernel, sizes = shard(kernel, sizes)
    axes = {a for name in kernel.steps for a in _axes(schedule, name)}
    if mask is None or not mask.bounded or not kernel.masked or not {mask.query, mask.key} <= axes:
        return Nest(kernel, sizes, None, None)
    base = Nest(kernel, sizes, None, None)
    visits = visit(
        mask, sizes[mask.query], sizes[mask.key], base.tile(mask.query), base.tile(mask.key)
    )
    return Nest(kernel, sizes, mask, visits)


def shard(kernel: Kernel, sizes: Sizes) -> tuple[Kernel, Sizes]:
    """The kernel and extents of the device with the largest shard.

    A mask is aligned to the end of both axes, so the last shard of the queries sees the most keys.
    """
    loops = tuple(loop for loop in kernel.nest if loop.mesh is None)
    return replace(kernel, nest=loops), {**sizes, **{loop.axis: loop.tile for loop in kernel.mesh}}


def _axes(schedule: Schedule, step: str) -> tuple[str, ...]:
    return schedule.algorithm.step_axes(schedule.algorithm.step(step))


def outside(kernel: Kernel, tensor: Tensor) -> dict[str, tuple[Loop, ...]]:
    """The loops, by axis, that make a tensor move again: the condition of the rule."""
    repeats = _repeat_loops(kernel, tensor)
    first_axis = kernel.first_pass.get(tensor.name, "")
    loops = repeats.pop(first_axis, ())
    # Each block has its own first pass.
    blocks = tuple(loop for loop in loops if loop.grid)
    return {**repeats, first_axis: blocks} if blocks else repeats


def _repeat_loops(kernel: Kernel, tensor: Tensor) -> dict[str, tuple[Loop, ...]]:
    """Loops that return to every tile of a tensor."""
    indexing = [i for i, loop in enumerate(kernel.nest) if loop.axis in tensor.axes]
    innermost = indexing[-1] if indexing else -1
    repeats: dict[str, tuple[Loop, ...]] = {}
    for i, loop in enumerate(kernel.nest):
        if loop.axis not in tensor.axes and (loop.grid or i < innermost):
            repeats[loop.axis] = (*repeats.get(loop.axis, ()), loop)
    return repeats


def moved(nest: Nest, tensor: Tensor) -> Number:
    """Elements of a tensor that cross the boundary of the blocks, repeats included."""
    repeats = outside(nest.kernel, tensor)
    first = nest.kernel.first_pass.get(tensor.name)
    if first in _repeat_loops(nest.kernel, tensor):
        return product([touched(nest, tensor), *(nest.trips(a, ls) for a, ls in repeats.items())])
    if tensor.windows:
        return product([windowed(nest, tensor), *(nest.trips(a, ls) for a, ls in repeats.items())])
    return nest.over(tensor.axes, repeats)


def windowed(nest: Nest, tensor: Tensor) -> Number:
    """Elements of a tensor with windows over all tiles of its own axes, overlaps fetched again.

    A tile of p positions and r taps spans stride·(p − 1) + r; over Tp × Tr tiles these add up to
    stride·(P − Tp)·Tr + R·Tp: P·R where taps are taken one by one (im2col), P + Tp·(R − 1) where
    all are held (a halo a tile).
    """

    def trips(axis: str) -> Number:
        loops = nest.kernel.loops(axis)
        return nest.trips(axis, loops) if loops else 1

    def span(axis: str, tap: str, stride: int) -> Number:
        positions = nest.sizes[axis] - trips(axis)
        return stride * positions * trips(tap) + nest.sizes[tap] * trips(axis)

    window_axes = {axis for window in tensor.windows for axis in window[:2]}
    rest = [nest.sizes[axis] for axis in tensor.axes if axis not in window_axes]
    return product([*rest, *(span(*window) for window in tensor.windows)])


def touched(nest: Nest, tensor: Tensor) -> Number:
    """Elements of a tensor in visited pairs: all, unless a mask hides whole rows."""
    if nest.mask is None or nest.visits is None or nest.mask.query not in tensor.axes:
        return size(nest.sizes, tensor)
    rest = [nest.sizes[axis] for axis in tensor.axes if axis != nest.mask.query]
    return product([nest.visits.distinct_queries, *rest])


def least(nest: Nest, tensor: Tensor) -> Number:
    """Elements of an input that must cross at least once: all but those that a mask hides.

    A mask hides elements only of tensors whose every fetch has both masked indices: from the
    tensor's own axes, or from a loop that repeats it.
    """
    mask, visits = nest.mask, nest.visits
    if mask is None or visits is None:
        return size(nest.sizes, tensor)
    axes = {*tensor.axes, *_repeat_loops(nest.kernel, tensor)}
    if not {mask.query, mask.key} <= axes:
        return size(nest.sizes, tensor)
    visible = {mask.query: visits.distinct_queries, mask.key: visits.distinct_keys}
    return product(visible.get(axis, nest.sizes[axis]) for axis in tensor.axes)


def size(sizes: Sizes, tensor: Tensor) -> Number:
    """Number of elements of a tensor."""
    return product(extents(tensor, sizes.__getitem__))


def extents(tensor: Tensor, of: Callable[[str], Number]) -> list[Number]:
    """Extents of a tensor's dimensions; `of` gives those of its axes, and a window joins two of
    them."""
    window_axes = {axis for window in tensor.windows for axis in window[:2]}
    spans = [stride * (of(axis) - 1) + of(tap) for axis, tap, stride in tensor.windows]
    return [*(of(axis) for axis in tensor.axes if axis not in window_axes), *spans]


def reduced_outside(
    schedule: Schedule, kernel: Kernel, tensor: Tensor, *, grid: bool
) -> tuple[str, ...]:
    """Axes that an output reduces by grid (or by sequential) loops enclosing its own loops."""
    repeats = outside(kernel, tensor)
    return tuple(
        axis
        for axis in reduces(schedule, kernel, tensor.name)
        if any(loop.grid is grid for loop in repeats.get(axis, ()))
    )


def reduces(schedule: Schedule, kernel: Kernel, name: str) -> tuple[str, ...]:
    """Axes of the step that makes a tensor which the tensor does not have."""
    for step_name in kernel.steps:
        step = schedule.algorithm.step(step_name)
        if name in step.outputs:
            axes = schedule.algorithm.tensors[name].axes
            return tuple(a for a in schedule.algorithm.step_axes(step) if a not in axes)
    return ()


def normaliser_passes(schedule: Schedule, nest: Nest, name: str) -> Number:
    """Number of passes over an input: more where a normalisation streams it and keeps its axis.

    The normaliser is known only after the whole row, so an output that keeps the axis needs the row
    again, unless the row stays on chip (one trip). Where a later step of the same kernel contracts
    the axis away, the running result is rescaled instead and one pass suffices.
    """
    passes: Number = 1
    writes = schedule.writes(nest.kernel)
    for step_name in nest.kernel.steps:
        step = schedule.algorithm.step(step_name)
        axis = step.along
        if step.kind != "normalisation" or axis is None or name not in step.inputs:
            continue
        if axis not in schedule.algorithm.tensors[name].axes or name in step.late:
            continue
        outputs = [n for n in step.outputs if axis in schedule.algorithm.tensors[n].axes]
        loops = tuple(loop for loop in nest.kernel.loops(axis) if not loop.grid)
        if loops and any(n in writes for n in outputs):
            passes = where(nest.trips(axis, loops) > 1, nest.kernel.row_passes, passes)
    return passes


def points(schedule: Schedule, nest: Nest, step: Step) -> Number:
    """Iteration points of a step over visited pairs, repeated by grid loops it does not index."""
    axes = schedule.algorithm.step_axes(step)
    repeats: dict[str, tuple[Loop, ...]] = {}
    for loop in nest.kernel.nest:
        if loop.grid and loop.axis not in axes:
            repeats[loop.axis] = (*repeats.get(loop.axis, ()), loop)
    return nest.over(axes, repeats)


def blocks(nest: Nest) -> Number:
    """Thread blocks that a kernel launches."""
    grid = [loop for loop in nest.kernel.nest if loop.grid]
    axes = dict.fromkeys(loop.axis for loop in grid)
    return product(
        nest.trips(axis, tuple(loop for loop in grid if loop.axis == axis)) for axis in axes
    )
