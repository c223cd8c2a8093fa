"""The counting rule at the memory boundary, where the unit is a wave of concurrent blocks.

Blocks launch in grid order, innermost grid loop fastest, `concurrent` at a time. Blocks that read
the same tile at once share one fetch, so a tile crosses once per *wave* that touches it, not once
per block. A tile fetched by an earlier wave still hits if the bytes touched since fit in the cache.

`hbm_passes` is the closed form. `walk_waves` counts the same block by block, slowly and exactly;
tests compare the two.

Closed form. Take the grid loops innermost first, with trips t and stride s (blocks an iteration
spans). A loop that indexes T changes nothing. A loop that does not index T repeats the set of
blocks that touch a tile t times, s blocks apart, so they lie in t times as many waves.

They never lie in more waves than all blocks from the first to the last of them. With D blocks
between these two, and the first at multiples of g (the gcd of W and the strides of the loops that
index T; waves start at multiples of W), that is 1 + ⌊D/g⌋·g / W waves, averaged over the position
of the first. The numbers of waves and of touching blocks are further upper limits.

Each such repeat costs a fetch unless the cache still holds the tile: its reuse distance is the
footprint of the blocks in between, at least one wave.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from perfmodel.algorithms.algorithm import Tensor
from perfmodel.arithmetic import Number, ceil_div, floor_div, is_one, maximum, minimum, product
from perfmodel.count.rule import Nest, blocks, extents, least, moved, outside
from perfmodel.frozen import dataclass

Held = Callable[[Number], Number]


@dataclass(frozen=True)
class GridLoop:
    """A grid loop with its trips."""

    axis: str
    """Its axis."""
    trips: Number
    """Number of its trips."""
    stride: Number
    """Blocks that one iteration spans."""
    tile: Number
    """Indices of a trip."""
    extent: Number
    """Extent of an iteration along the axis: a tile, cut off at the end of the axis."""


def grid_loops(nest: Nest) -> list[GridLoop]:
    """Grid loops of a nest, outermost first; of two loops on one axis the inner runs within the
    outer's tile."""
    loops = [loop for loop in nest.kernel.nest if loop.grid]
    grid: list[GridLoop] = []
    stride: Number = 1
    for i in range(len(loops) - 1, -1, -1):
        loop = loops[i]
        outer = [other for other in loops[:i] if other.axis == loop.axis]
        size = nest.sizes[loop.axis]
        trips = loop.trips
        if trips is None:
            trips = ceil_div(minimum(outer[-1].tile, size) if outer else size, loop.tile)
        extent = minimum(loop.tile, size)
        grid.append(GridLoop(loop.axis, trips, stride, loop.tile, extent))
        stride = product([stride, trips])
    return grid[::-1]


def covered(nest: Nest, loops: Sequence[GridLoop], blocks: Number) -> dict[str, Number]:
    """Extent that `blocks` consecutive blocks cover along every axis of the grid.

    Along a grid loop they cover blocks / stride iterations, at least one and at most all. Of an
    outer loop's iteration they cover at least what they cover of the inner loop.
    """
    cover: dict[str, Number] = {}
    for loop in reversed(loops):
        if loop.axis not in cover and is_one(loop.trips):
            cover[loop.axis] = loop.extent
            continue
        inner = cover.get(loop.axis, loop.extent)
        reach = loop.extent * minimum(blocks / loop.stride, loop.trips)
        cover[loop.axis] = minimum(maximum(reach, inner), nest.sizes[loop.axis])
    return cover


def by_one_block(loops: Sequence[GridLoop]) -> dict[str, Number]:
    """Extent of one block along every axis of the grid: the finest tile of each."""
    return {loop.axis: loop.extent for loop in loops}


def touched(nest: Nest, tensors: Mapping[Tensor, float], reach: Mapping[str, Number]) -> Number:
    """Bytes of tensors within the extents `reach`, each element once; axes missing there are taken
    whole.

    `tensors` maps each tensor to its bytes per element.
    """
    total: Number = 0
    for tensor, width in tensors.items():
        spans = {a: reach.get(a, nest.sizes[a]) for a in tensor.axes}
        total = total + product(extents(tensor, spans.__getitem__)) * width
    return total


def footprint(
    nest: Nest, tensors: Mapping[Tensor, float], loops: Sequence[GridLoop], blocks: Number
) -> Number:
    """Bytes that `blocks` consecutive blocks touch from start to end, each tile once."""
    return touched(nest, tensors, covered(nest, loops, blocks))


def hbm_passes(
    nest: Nest,
    tensor: Tensor,
    concurrent: Number,
    held: Held,
    footprints: Sequence[Number],
    stream_footprint: Number,
    loops: Sequence[GridLoop],
) -> Number:
    """Number of times that each element of a tensor crosses the memory boundary, at least 1.

    `held` gives the fraction of a working set (bytes) that still hits in the cache. `footprints`
    are those of one iteration of each grid loop, or of one wave if that is more. `stream_footprint`
    is that of one iteration of the sequential loops of all concurrent blocks.
    """
    waves: Number = 1
    reach: Number = 0
    passes: Number = 1
    period = _alignment(tensor, loops, concurrent)
    most = minimum(ceil_div(blocks(nest), concurrent), _tile_blocks(nest, tensor))
    for loop, region in zip(reversed(loops), reversed(footprints), strict=True):
        if loop.axis in tensor.axes:
            continue
        reach = (loop.trips - 1) * loop.stride + reach
        merged = minimum(1 + floor_div(reach, period) * period / concurrent, most)
        next_waves = maximum(minimum(loop.trips * waves, merged), waves)
        passes = passes * (1 + (next_waves / waves - 1) * (1 - held(region)))
        waves = next_waves
    stream_passes = _stream_passes(nest, tensor)
    passes = passes * (1 + (stream_passes - 1) * (1 - held(stream_footprint)))
    return _mask_scaled(nest, tensor, passes, loops, stream_passes)


def _alignment(tensor: Tensor, loops: Sequence[GridLoop], concurrent: Number) -> Number:
    """Number of which the position in its wave of each tile's first touching block is a multiple.

    1 where a fractional concurrency leaves waves unaligned.
    """
    waves = np.asarray(concurrent)
    divisor = waves.astype(np.int64)
    # Innermost first: its stride of 1 gives the divisor 1 in one step.
    for loop in reversed(loops):
        if loop.axis in tensor.axes:
            # Modulo the wave first, so that huge strides fit in a 64-bit integer. Written out, it
            # is several times faster than `%` on floats.
            offset = loop.stride - np.floor(loop.stride / waves) * waves
            gap = np.minimum(np.maximum(offset, 0), waves) * (np.asarray(loop.trips) > 1)
            divisor = np.gcd(divisor, gap.astype(np.int64))
    return np.where(waves == np.floor(waves), divisor, 1.0)


def _tile_blocks(nest: Nest, tensor: Tensor) -> Number:
    """Number of blocks that touch one tile of a tensor."""
    repeats = outside(nest.kernel, tensor)
    grid = {axis: tuple(x for x in loops if x.grid) for axis, loops in repeats.items()}
    return product(nest.trips(axis, loops) for axis, loops in grid.items() if loops)


def _stream_passes(nest: Nest, tensor: Tensor) -> Number:
    """Passes of a block's sequential loops over its part of a tensor."""
    repeats = outside(nest.kernel, tensor)
    inner = {a: tuple(x for x in loops if not x.grid) for a, loops in repeats.items()}
    return product(nest.trips(axis, loops) for axis, loops in inner.items() if loops)


def _mask_scaled(
    nest: Nest, tensor: Tensor, passes: Number, loops: Sequence[GridLoop], stream_passes: Number
) -> Number:
    """Scale the repeats by the share that the mask leaves."""
    if nest.mask is None:
        return passes
    free = [loop.trips for loop in loops if loop.axis not in tensor.axes]
    total = product([*free, stream_passes])
    ratio = moved(nest, tensor) / least(nest, tensor)
    share = (ratio - 1) / maximum(total - 1, 1)
    return 1 + (passes - 1) * minimum(share, 1)


@dataclass(frozen=True)
class WaveWalk:
    """Elements of one tensor fetched over all waves."""

    elements: int
    """Elements fetched over all waves."""
    waves: int
    """Waves of the grid."""


def walk_waves(
    nest: Nest,
    tensors: Mapping[Tensor, float],
    concurrent: int,
    capacity_bytes: float = 0.0,
) -> dict[str, WaveWalk]:
    """Count the fetches of each tensor block by block and wave by wave (plain ints).

    A wave fetches a tile unless all bytes touched since the last wave that touched the tile, that
    wave included, fit in `capacity_bytes`.
    """
    loops = grid_loops(nest)
    index = np.indices([int(loop.trips) for loop in loops]).reshape(len(loops), -1)
    position: dict[str, np.ndarray] = {}
    for loop, coordinates in zip(loops, index, strict=True):
        outer = position.get(loop.axis)
        inner = [other for other in loops if other.axis == loop.axis][-1]
        scale = int(loop.tile) // int(inner.tile)
        position[loop.axis] = coordinates * scale + (0 if outer is None else outer)
    valid = np.ones(index.shape[1], dtype=bool)
    tiles = {loop.axis: int(loop.tile) for loop in loops}
    for axis, place in position.items():
        valid &= place < ceil_div(int(nest.sizes[axis]), tiles[axis])
    position = {axis: place[valid] for axis, place in position.items()}
    wave = np.arange(int(valid.sum())) // concurrent
    touches = {t: _touches(nest, t, position, tiles, wave) for t in tensors}
    return _fetches(touches, tensors, int(wave[-1]) + 1, capacity_bytes)


def _touches(
    nest: Nest,
    tensor: Tensor,
    position: Mapping[str, np.ndarray],
    tiles: Mapping[str, int],
    wave: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(wave, tile, elements) of every distinct pair, ordered by tile and then by wave."""
    name = np.zeros(len(wave), dtype=np.int64)
    elements = np.full(len(wave), 1, dtype=np.int64)
    for axis in tensor.axes:
        extent = int(nest.sizes[axis])
        if axis not in position:
            elements *= extent
            continue
        name = name * (int(position[axis].max()) + 1) + position[axis]
        elements *= np.minimum(tiles[axis], extent - position[axis] * tiles[axis])
    order = np.lexsort((wave, name))
    name, wave, elements = name[order], wave[order], elements[order]
    is_first = np.ones(len(name), dtype=bool)
    is_first[1:] = (name[1:] != name[:-1]) | (wave[1:] != wave[:-1])
    return wave[is_first], name[is_first], elements[is_first]


def _fetches(
    touches: Mapping[Tensor, tuple[np.ndarray, np.ndarray, np.ndarray]],
    widths: Mapping[Tensor, float],
    waves: int,
    capacity_bytes: float,
) -> dict[str, WaveWalk]:
    per_wave = np.zeros(waves + 1)
    for tensor, (wave, _, elements) in touches.items():
        np.add.at(per_wave, wave + 1, elements * widths[tensor])
    totals = np.cumsum(per_wave)
    result = {}
    for tensor, (wave, name, elements) in touches.items():
        repeat = np.zeros(len(name), dtype=bool)
        repeat[1:] = name[1:] == name[:-1]
        previous = np.concatenate([[0], wave[:-1]])
        distance = totals[wave] - totals[previous]
        miss = ~repeat | (distance > capacity_bytes)
        result[tensor.name] = WaveWalk(int(elements[miss].sum()), waves)
    return result
