"""Traffic at the memory boundary: the block-by-block walk, and the closed form held against it."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul
from perfmodel.count import rule, waves
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.tiled import tiled

concurrency = st.sampled_from([1, 2, 3, 4, 8, 13, 16, 32, 60, 132])


@st.composite
def matmuls(draw: st.DrawFn):
    bm, bn = draw(st.sampled_from([16, 32, 64])), draw(st.sampled_from([16, 32, 64]))
    trips = st.integers(1, 24)
    problem = Matmul(
        draw(trips) * bm, draw(trips) * bn, draw(st.integers(1, 64)), draw(st.integers(1, 2))
    )
    group = draw(st.sampled_from([None, 1, 2, 4]))
    return tiled_matmul(bm, bn, 32, group_m=group), problem


@st.composite
def attentions(draw: st.DrawFn):
    kv, ratio = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    lengths = draw(st.integers(1, 1500)), draw(st.integers(1, 1500))
    problem = Attention(draw(st.integers(1, 3)), kv * ratio, kv, *lengths, 64)
    return tiled(None, 128, 64), problem


nests = matmuls() | attentions()


def parts(schedule, problem):
    """The nest of a one-kernel schedule, and its inputs with their bytes per element."""
    kernel, tensors = schedule.kernels[0], schedule.algorithm.tensors
    kinds = problem.elements()
    widths = {tensors[n]: kinds[tensors[n].element].bytes for n in schedule.reads(kernel)}
    return rule.nest(schedule, kernel, problem.sizes()), widths


def passes(schedule, problem, concurrent, capacity):
    """The closed form for every input, under a cache that holds all that fits and nothing else."""
    nest, widths = parts(schedule, problem)
    loops = waves.grid_loops(nest)
    concurrent = min(concurrent, int(rule.blocks(nest)))

    def held(working_set):
        return float(working_set <= capacity)

    between = [waves.footprint(nest, widths, loops, max(x.stride, concurrent)) for x in loops]
    streamed = waves.footprint(nest, widths, loops, concurrent)
    return {
        t.name: float(waves.hbm_passes(nest, t, concurrent, held, between, streamed, loops))
        for t in widths
    }


def walked(schedule, problem, concurrent, capacity):
    """How often each input crosses, by the walk."""
    nest, widths = parts(schedule, problem)
    found = waves.walk_waves(nest, widths, concurrent, capacity)
    return {t.name: found[t.name].elements / rule.size(nest.sizes, t) for t in widths}


def by_hand(schedule, problem, concurrent):
    """Elements of every input fetched with nothing held between waves: one set of tiles a wave."""
    kernel, sizes = schedule.kernels[0], problem.sizes()
    grid = [x for x in kernel.nest if x.grid]
    blocks = [{}]
    for loop in grid:
        cut = []
        for block in blocks:
            start, stop = block.get(loop.axis, (0, sizes[loop.axis]))
            cut += [
                {**block, loop.axis: (low, min(low + loop.tile, stop))}
                for low in range(start, stop, loop.tile)
            ]
        blocks = cut
    total = dict.fromkeys(schedule.reads(kernel), 0)
    for first in range(0, len(blocks), concurrent):
        for name in total:
            axes = schedule.algorithm.tensors[name].axes
            tiles = {
                tuple(block.get(a, (0, sizes[a])) for a in axes)
                for block in blocks[first : first + concurrent]
            }
            total[name] += sum(int(np.prod([b - a for a, b in tile])) for tile in tiles)
    return total


@given(nests, concurrency)
def test_the_walk_fetches_one_set_of_tiles_a_wave(nest, concurrent):
    schedule, problem = nest
    loops, widths = parts(schedule, problem)
    found = waves.walk_waves(loops, widths, concurrent)
    assert {n: w.elements for n, w in found.items()} == by_hand(schedule, problem, concurrent)


@given(nests, concurrency)
def test_the_closed_form_is_the_walk_within_a_factor_of_two(nest, concurrent):
    # Where waves cut across rows of blocks the closed form takes the mean over where they fall.
    schedule, problem = nest
    closed, walk = (
        passes(schedule, problem, concurrent, 0),
        walked(schedule, problem, concurrent, 0),
    )
    for name, value in walk.items():
        assert 0.5 <= closed[name] / value < 2, name


def test_the_closed_form_is_unbiased_over_many_nests():
    rng = np.random.default_rng(7)
    ratios = []
    for _ in range(400):
        tile = [int(rng.choice([16, 32, 64])) for _ in range(2)]
        m, n = (int(rng.integers(1, 40)) * size for size in tile)
        schedule = tiled_matmul(*tile, 32, group_m=[None, 1, 4, 8][rng.integers(4)])
        case = schedule, Matmul(m, n, 64), int(rng.choice([8, 32, 60, 132]))
        closed, walk = passes(*case, 0), walked(*case, 0)
        ratios += [closed[name] / walk[name] for name in walk]
    assert np.exp(np.mean(np.log(ratios))) == pytest.approx(1, abs=0.04)
    assert np.median(ratios) == pytest.approx(1, abs=0.01)
    # Nine in ten within a fifth.
    assert np.quantile(np.abs(np.log(ratios)), 0.9) < np.log(1.2)


@given(nests)
def test_one_block_at_a_time_fetches_what_the_blocks_ask_for(nest):
    schedule, problem = nest
    loops, widths = parts(schedule, problem)
    asked = {t.name: rule.moved(loops, t) / rule.size(loops.sizes, t) for t in widths}
    assert walked(schedule, problem, 1, 0) == pytest.approx(asked)
    assert passes(schedule, problem, 1, 0) == pytest.approx(asked)


@given(nests, concurrency)
def test_what_fits_is_fetched_once(nest, concurrent):
    assert set(walked(*nest, concurrent, 1e18).values()) == {1.0}
    assert set(passes(*nest, concurrent, 1e18).values()) == {1.0}


@given(nests, st.integers(1, 64))
def test_a_grid_that_runs_at_once_fetches_once(nest, spare):
    loops, _ = parts(*nest)
    everything = int(rule.blocks(loops)) * spare
    assert set(walked(*nest, everything, 0).values()) == {1.0}
    assert set(passes(*nest, everything, 0).values()) == {1.0}


@given(nests, concurrency, st.lists(st.integers(0, 10**7), min_size=2, max_size=4))
def test_a_larger_cache_never_fetches_more(nest, concurrent, capacities):
    for how in (walked, passes):
        found = [how(*nest, concurrent, capacity) for capacity in sorted(capacities)]
        for less, more in pairwise(found):
            assert all(more[name] <= less[name] + 1e-12 for name in more)


@given(nests, concurrency, st.integers(0, 10**7))
def test_no_less_than_once_and_no_more_than_the_blocks_ask_for(nest, concurrent, capacity):
    loops, widths = parts(*nest)
    asked = {t.name: rule.moved(loops, t) / rule.size(loops.sizes, t) for t in widths}
    for how in (walked, passes):
        for name, value in how(*nest, concurrent, capacity).items():
            assert 1 <= value <= asked[name] + 1e-9


@given(attentions(), concurrency, st.integers(1, 10**6), st.integers(1, 500))
def test_a_mask_never_fetches_more(nest, concurrent, capacity, window):
    schedule, problem = nest
    full = passes(schedule, problem, concurrent, capacity)
    causal = Attention(**{**vars(problem), "causal": True, "window": window})
    masked = passes(tiled(causal.mask(), 128, 64), causal, concurrent, capacity)
    assert all(masked[name] <= full[name] + 1e-9 for name in full)
    # One block at a time with nothing held fetches what the visited pairs ask for.
    loops, widths = parts(tiled(causal.mask(), 128, 64), causal)
    alone = passes(tiled(causal.mask(), 128, 64), causal, 1, 0)
    for tensor in widths:
        asked = rule.moved(loops, tensor) / rule.least(loops, tensor)
        assert alone[tensor.name] == pytest.approx(asked)


def test_a_row_of_blocks_shares_its_operands():
    # 4 × 4 output tiles, four blocks at once down a column: each wave fetches all of A and one
    # column of B, so A crosses 4 times and B once.
    problem = Matmul(64, 64, 32)
    assert walked(tiled_matmul(16, 16, 32), problem, 4, 0) == {"A": 4.0, "B": 1.0}
    # Two by two: a group of two rows, columns in turn. Each operand crosses twice.
    assert walked(tiled_matmul(16, 16, 32, group_m=2), problem, 4, 0) == {"A": 2.0, "B": 2.0}
    assert passes(tiled_matmul(16, 16, 32), problem, 4, 0) == {"A": 4.0, "B": 1.0}
    # The closed form knows where whole groups start, not that a row stands near its group's start.
    assert passes(tiled_matmul(16, 16, 32, group_m=2), problem, 4, 0) == {"A": 2.5, "B": 2.0}


def test_footprint_covers_what_consecutive_blocks_touch():
    # Five blocks of a 4 × 4 grid (m fastest): all four row tiles; 5/4 column tiles.
    nest, widths = parts(tiled_matmul(16, 16, 32), Matmul(64, 64, 32))
    loops = waves.grid_loops(nest)
    assert waves.footprint(nest, widths, loops, 5) == (64 * 32 + 1.25 * 16 * 32) * 2
    sizes = [waves.footprint(nest, widths, loops, blocks) for blocks in range(1, 20)]
    assert sizes == sorted(sizes)
    assert sizes[-1] == 2 * 64 * 32 * 2


@given(st.integers(1, 200), st.integers(1, 200), st.integers(1, 5), st.integers(1, 4))
def test_one_block_reaches_as_far_as_a_single_consecutive_one(m, n, group, batch):
    problem = Matmul(m, n, 32, batch=batch)
    nest, _ = parts(tiled_matmul(16, 32, 8, group_m=group, split_k=16), problem)
    loops = waves.grid_loops(nest)
    assert waves.by_one_block(loops) == pytest.approx(waves.covered(nest, loops, 1))


def test_strides_of_the_grid():
    problem = Matmul(64, 48, 32, batch=2)
    nest, _ = parts(tiled_matmul(16, 16, 32), problem)
    loops = waves.grid_loops(nest)
    assert [(x.axis, x.trips, x.stride) for x in loops] == [("b", 2, 12), ("n", 3, 4), ("m", 4, 1)]
    assert len(list(product(*(range(x.trips) for x in loops)))) == rule.blocks(nest)


def test_a_wave_finds_what_the_cache_holds_since_the_last_one():
    # Four blocks in columns, one a wave: a column's B is touched in the next wave, a row's A in
    # the one after that. A tile has 4 KiB, and a wave a tile of either.
    schedule, problem = tiled_matmul(64, 64, 32), Matmul(128, 128, 32)
    tile = 64 * 32

    def fetched(capacity):
        found = waves.walk_waves(*parts(schedule, problem), 1, capacity)
        return {name: walk.elements // tile for name, walk in found.items()}

    assert fetched(2 * 4096 - 1) == {"A": 4, "B": 4}
    assert fetched(2 * 4096) == {"A": 4, "B": 2}
    assert fetched(4 * 4096) == {"A": 2, "B": 2}
