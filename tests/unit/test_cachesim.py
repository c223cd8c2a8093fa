"""The cache simulator against a dictionary, and the model's HBM bytes against the simulator."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.proof.replay import cachesim, launchorders
from perfmodel.proof.replay.cachesim import WAYS, Feed, LineCache, SetCache, TileCache
from perfmodel.proof.replay.recorder import Chunk
from perfmodel.proof.replay.tilestream import Walk, simulate
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.tiled import tiled, tiled_backward


def by_hand(sets, accesses):
    """One dictionary a set, one access at a time: the cache as a textbook has it."""
    held = [OrderedDict() for _ in range(sets)]
    missing, written = [], 0
    for line, mask, dirty in accesses:
        place = held[line % sets]
        valid, soiled = place.pop(line, (0, 0))
        missing.append(mask & ~valid)
        place[line] = (valid | mask, soiled | dirty)
        if len(place) > WAYS:
            _, (_, gone) = place.popitem(last=False)
            written += gone.bit_count()
    left = sum(soiled.bit_count() for place in held for _, soiled in place.values())
    return missing, written, left


access = st.tuples(st.integers(0, 120), st.integers(1, 15), st.booleans())


@given(st.lists(st.lists(access, min_size=1, max_size=60), min_size=1, max_size=8))
def test_batches_are_the_textbook_cache(batches):
    capacity = 3 * WAYS * 128
    cache = SetCache(capacity)
    flat = [(line, mask, mask if dirty else 0) for batch in batches for line, mask, dirty in batch]
    expected, written, left = by_hand(3, flat)
    found = []
    for batch in batches:
        lines = np.array([line for line, _, _ in batch])
        masks = np.array([mask for _, mask, _ in batch], dtype=np.uint8)
        dirty = np.where([soiled for _, _, soiled in batch], masks, 0).astype(np.uint8)
        found += cache.access(lines, masks, dirty).tolist()
    assert found == expected
    assert cache.written_sectors == written
    cache.flush()
    assert cache.written_sectors == written + left


def stream(cache, lines, way=0, unit=0):
    lines = np.asarray(lines)
    masks = np.full(len(lines), 15, dtype=np.uint8)
    cache.access(lines, masks, np.full(len(lines), way), np.full(len(lines), unit))


def test_a_partitioned_cache_holds_shared_lines_twice():
    # 1 MiB of lines read by two units: one fetch each, whichever partition they sit on.
    lines = np.arange(8192)
    for partitions in (1, 2):
        cache = LineCache(4 * 2**20, partitions)
        stream(cache, lines, unit=0)
        stream(cache, lines, unit=1)
        assert cache.finish().read_bytes == 2**20
    # In 1.25 MiB they fit once and not twice.
    single, double = LineCache(1.25 * 2**20, 1), LineCache(1.25 * 2**20, 2)
    for cache in (single, double):
        for unit in (0, 1, 0, 1):
            stream(cache, lines, unit=unit)
    assert single.finish().read_bytes == 2**20
    assert double.finish().read_bytes > 1.5 * 2**20


def test_only_sectors_asked_for_are_fetched_and_writes_fetch_nothing():
    cache = LineCache(2**20)
    one = np.array([1], dtype=np.uint8)
    cache.access(np.array([7]), one, np.array([0]), np.array([0]))
    cache.access(np.array([8]), one, np.array([1]), np.array([0]))
    cache.access(np.array([9]), one, np.array([2]), np.array([0]))
    found = cache.finish()
    assert found.read_bytes == 64  # the read and the atomic
    assert found.write_bytes == 64  # the write and the atomic
    assert found.requested_bytes == 96


def test_a_feed_interleaves_the_blocks_in_flight_and_holds_no_more():
    device = load("t4")
    feed = Feed.of(device, {"A": (0, 10**6)}, 4)
    deepest = 0
    for block in range(40):
        for step in range(3):
            offsets = np.arange(0, 4096, 4) + 4096 * step
            feed.take(Chunk(block, "A", offsets, 4, "read"))
        deepest = max(deepest, len(feed._slots) + len(feed._waiting))
    found = feed.finish()
    assert deepest <= 5
    assert found.read_bytes == 3 * 4096
    assert found.requested_bytes == 40 * 3 * 4096


def test_the_tile_cache_evicts_the_least_recent_and_writes_it_back():
    cache = TileCache(100)
    cache.access("a", 60, 1, 0)
    cache.access("b", 40, 0, 0)
    cache.access("a", 60, 0, 0)
    cache.access("c", 40, 0, 0)  # drops b
    cache.access("b", 40, 0, 0)  # drops a, which was written
    found = cache.finish()
    assert found.read_bytes == 120
    assert found.write_bytes == 60


SMALL = [
    (tiled_matmul(32, 32, 16, group_m=2), Matmul(100, 130, 70, dtype="fp16")),
    (tiled_matmul(32, 64, 16), Matmul(65, 130, 33, batch=2, dtype="fp16")),
    (tiled(None, 32, 16), Attention(1, 4, 2, 70, 50, 16, dtype="fp16")),
    (tiled(Attention(1, 1, 1, 70, 90, 16, causal=True).mask(), 32, 16),
     Attention(1, 2, 1, 70, 90, 16, causal=True, dtype="fp16")),
    (tiled(Attention(1, 1, 1, 90, 90, 16, window=20).mask(), 16, 32),
     Attention(1, 2, 1, 90, 90, 16, window=20, dtype="fp16")),
]  # fmt: skip


@pytest.mark.parametrize(("schedule", "problem"), SMALL)
def test_a_walk_asks_for_what_the_rule_counts(schedule, problem):
    elements = problem.elements()
    cost = count(schedule, problem.sizes(), elements)
    walk = Walk(schedule, cost.kernels[-1], elements)
    asked: dict[str, float] = {}
    blocks = 0
    for span in walk.blocks():
        blocks += 1
        for items in walk.accesses(span):
            for (name, _), size, _ in items:
                asked[name] = asked.get(name, 0) + size
    assert blocks == cost.kernels[-1].blocks
    assert asked == {name: t.total_bytes for name, t in cost.kernels[-1].l2.items()}


@pytest.mark.parametrize(("schedule", "problem"), SMALL)
def test_nothing_held_is_everything_asked_and_everything_held_is_the_least(schedule, problem):
    elements = problem.elements()
    part = count(schedule, problem.sizes(), elements).kernels[-1]
    nothing = simulate(schedule, part, elements, 1, 0.0)
    assert nothing.total_bytes == pytest.approx(part.bytes_at("l2"))
    for partitions in (1, 2):
        everything = simulate(schedule, part, elements, 8, 1e12, partitions)
        assert everything.total_bytes == pytest.approx(part.bytes_at("hbm"))


def test_the_closed_form_meets_the_simulator_over_launch_orders():
    """Every fifteenth case here; all of them in the evidence suite."""
    results = [launchorders.run(case) for case in launchorders.cases()[::15]]
    errors = np.abs([result.error for result in results])
    assert np.median(errors) <= 0.10
    assert np.quantile(errors, 0.9) <= 0.25


def test_at_least_a_hundred_cases_of_both_kinds():
    found = launchorders.cases()
    assert len(found) >= 100
    for kind in ("matmul", "attention"):
        assert sum(case.label.startswith(kind) for case in found) >= 30


def test_atomic_sums_are_shared_by_the_blocks_in_flight():
    # Key tiles of one head add to the same dQ at the same time: one copy in L2, not one each.
    problem = Attention(1, 4, 4, 512, 512, 64, dtype="fp16", direction="bwd")
    schedule = tiled_backward(None, 64, 128)
    case = launchorders.OrderCase("one", "v100-sxm2-32gb", problem, schedule, 16)
    result = launchorders.run(case)
    assert result.closed_form_bytes == pytest.approx(result.simulated_bytes, rel=0.25)
    assert result.closed_form_bytes < 0.5 * result.asked_bytes


def test_a_launch_order_moves_the_head_loop():
    plain = tiled(None, 64, 64)
    turned = launchorders.reordered(plain, "q", "b", "g", "r")
    assert [loop.axis for loop in turned.kernels[0].nest] == ["q", "b", "g", "r", "x"]
    assert [loop.axis for loop in plain.kernels[0].nest] == ["b", "g", "r", "q", "x"]


def test_partitions_that_copy_are_two():
    assert cachesim.partitions(load("a100-sxm4-80gb")) == 2
    assert cachesim.partitions(load("mi300x")) == 1
    assert cachesim.partitions(load("t4")) == 1


def test_lines_and_tiles_agree():
    """The same kernel by addresses and by tiles, where the cache is too small for all of it."""
    pytest.importorskip("triton")
    from perfmodel.proof import registry
    from perfmodel.proof.replay.replay import replay

    device = load("t4")
    config = replace(registry.kernel("matmul").configs[0], bm=128, bn=128, bk=64, group_m=4)
    problem = Matmul(512, 512, 1024, dtype="fp32")
    found = replay("matmul", problem, config, device, concurrent=16, check=False).cache[0]
    schedule = registry.kernel("matmul").schedule(problem, config)
    elements = problem.elements()
    part = count(schedule, problem.sizes(), elements).kernels[0]
    tiles = simulate(schedule, part, elements, 16, device.l2_capacity_bytes)
    assert found.simulated_bytes == pytest.approx(tiles.total_bytes, rel=0.1)
