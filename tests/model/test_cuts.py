"""Cuts of the keys into slices: each library's rule by hand, and what adding slices up takes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfmodel.hardware import load
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.plan import adding_seconds, combining_seconds
from perfmodel.timing.style import Style

CONSTANTS = default()
H100 = machine(load("h100-sxm"))
near = pytest.approx
TILE, DIM = (64, 64, 128), 128.0


def test_seconds_of_adding_slices_up_worked_by_hand():
    how = Style("fp16")
    start = combining_seconds(H100, CONSTANTS, how)
    price = H100.at_clock(CONSTANTS["block_price"])

    # A few rows: a block and a round trip to the L2.
    assert adding_seconds(H100, CONSTANTS, how, 8.0 * DIM * 6.0) == near(
        start + price + H100.l2_latency
    )
    # Many slices are bytes: 4 written and 4 read for each number.
    rows = 24.0 * H100.units
    narrow = replace(H100, l2_bytes_per_s=1e9, l2_latency=1e-9)
    start = combining_seconds(narrow, CONSTANTS, how)
    assert adding_seconds(narrow, CONSTANTS, how, rows * DIM * 6.0) == near(
        start + price + 8 * rows * DIM * 6 / (1e9 * CONSTANTS["l2_share"])
    )


def axes_of(**given: float) -> dict[str, np.ndarray]:
    """Axes of one problem as (1, 1) columns; one of each where nothing is said."""
    return {axis: np.array([[float(given.get(axis, 1.0))]]) for axis in "bgrqxd"}


def test_no_more_slices_are_tried_than_blocks_run_at_once():
    # Five rows of blocks on eleven slots: of 24 tiles, 2 slices fill 10/11 of a wave, and so do 4,
    # 6 and 8; 24 would fill 120/121 of eleven waves, but are more than run at once.
    rule = replace(kernel_facts("flash2").cut, near=0.999, blocks_per_unit=1)
    few = replace(machine(load("a100-sxm4-80gb")), units=11)
    axes = axes_of(b=5.0, g=1.0, r=8.0, q=1.0, x=24.0 * 64)
    assert rule.number(axes, TILE, few).item() == 2


def test_decode_slices_stop_at_128_and_count_all_rows_of_a_group():
    rule = replace(kernel_facts("flash2").cut, near=0.999)
    one = {"r": 2.0, "x": 128.0 * 100_000}  # flash2 cuts for grouped queries alone
    here = replace(H100, units=512)

    def slices(**given: float) -> float:
        return rule.number(axes_of(**one | given), (64, 128, 128), here).item()

    # One block alone fills its slots the better, the more slices: as many as there may be.
    assert slices() == 128
    # 100 rows of 64 are 2 blocks, whether of one query's heads or of one head's queries.
    assert slices(r=100.0) == slices(q=50.0) == slices(b=2.0) == slices(g=2.0)
    assert slices(r=64.0) == slices(q=32.0) == 128
    assert slices(b=32.0) == slices(g=32.0) == slices(q=1024.0) < 128
    few = replace(H100, units=4)
    found = rule.number(axes_of(**one), (64, 128, 128), few).item()
    assert found == rule.blocks_per_unit * 4
    # The grid fills the slots by itself.
    full = rule.full * rule.blocks_per_unit * 512
    assert slices(b=np.ceil(full)) == 1
    assert slices(b=np.ceil(full) - 1) > 1 or rule.near < rule.full


def queries_one_by_one(heads: int, rule, units: int) -> int:
    """FlashAttention-1's rule as a loop (fmha_fwd_launch_template.h, num_splits_heuristic_fwd)."""
    waves = [heads * n / (units * rule.blocks_per_unit) for n in range(1, rule.most + 1)]
    fills = [each / np.ceil(each) for each in waves]
    return next(n for n, fill in enumerate(fills, 1) if fill > rule.near * max(fills))


@pytest.mark.parametrize("heads", [(1, 1, 1), (2, 3, 5), (4, 8, 3), (16, 16, 1), (7, 1, 31)])
def test_slices_of_a_heads_queries_are_those_of_the_rule(heads):
    rule, units = kernel_facts("flash1").cut, H100.units
    b, g, r = heads
    found = rule.of_queries(axes_of(b=b, g=g, r=r), H100)
    assert found == [[queries_one_by_one(b * g * r, rule, units)]]
    # A machine that 30 slices do not fill is cut into all 30, or nearly as many.
    large = replace(H100, units=10**6)
    for near_best, most in ((rule.near, 29), (0.999, 30)):
        each = replace(rule, near=near_best)
        assert each.of_queries(axes_of(b=b, g=g, r=r), large).item() == most


def test_a_block_takes_one_tile_of_keys_where_that_fills_waves_better():
    rule = kernel_facts("flash1").cut

    def tiles(b, keys, *, causal=False, g=1.0, r=1.0):
        axes = axes_of(b=b, g=g, r=r, x=keys)
        return rule.of_keys(axes, 128, H100, causal=causal).item()

    units = H100.units
    # A head a unit is full already; half as many are filled by two tiles, worth 1 / (1 + 1/2).
    assert tiles(units, 1024.0) == 1
    assert tiles(units / 2, 256.0) == 2
    # 80 % of the units are worth more than two tiles that fill 2/3 of them twice, 0.8 of 2 waves.
    assert tiles(0.8 * units, 256.0) == 1
    # Three quarters of 60 % are worth less than those; 90 % under a causal mask, 0.72, are more.
    assert tiles(0.65 * units, 256.0) == 1
    assert tiles(0.45 * units, 256.0, causal=True) == 2
    # 257 keys are three tiles; and heads of all groups count.
    assert tiles(units / 4, 257.0) == 3
    assert tiles(1.0, 257.0, g=units / 2, r=0.5) == tiles(units / 4, 257.0)
    # Ten tiles under a causal mask are spread whatever they fill.
    assert tiles(units, 1280.0, causal=True) == 10
    assert tiles(units, 1152.0, causal=True) == 1
    assert tiles(units, 1280.0) == 1


def test_the_worth_of_a_tile_of_keys_falls_by_its_share():
    rule = kernel_facts("flash1").cut
    # 90 % of the units; two tiles fill 1.8 waves of 2, as full: worth less by half a tile or one.
    axes = axes_of(b=0.9 * H100.units, x=256.0)
    assert rule.of_keys(axes, 128, H100, causal=True).item() == 1
    # 70 %: two tiles fill 1.4 of 2 waves, 0.7; three 2.1 of 3; four 2.8 of 3, 0.933 / (1 + 1/4) of
    # all keys is more than 0.7, and with half of the share more so.
    for keys, causal, spread in ((512.0, False, 4), (512.0, True, 4), (256.0, False, 1)):
        axes = axes_of(b=0.7 * H100.units, x=keys)
        found = rule.of_keys(axes, 128, H100, causal=causal).item()
        assert found == spread
    # 80 %: four tiles fill 3.2 of 4, five 4 of 4: 1 / (1 + 1/5) = 0.833 and 1 / (1 + 1/10).
    for causal in (False, True):
        axes = axes_of(b=0.8 * H100.units, x=640.0)
        assert rule.of_keys(axes, 128, H100, causal=causal).item() == 5
    # 86 %: seven tiles fill 6.02 of 7, worth 0.86 / (1 + 1/7) and less than one.
    axes = axes_of(b=0.86 * H100.units, x=7 * 128.0)
    assert rule.of_keys(axes, 128, H100, causal=False).item() == 1


def test_grids_of_many_queries_are_cut_where_row_blocks_are_few_and_keys_many():
    rule = kernel_facts("flash3").cut
    least = rule.full * H100.units  # 105.6 row blocks of one sequence

    def cut(**given):
        axes = axes_of(**{"x": 128.0 * 64, "q": 128.0, **given})
        return bool(rule.may_cut(axes, (128, 128, 256), H100).item())

    assert cut()
    assert cut(g=np.floor(least))
    assert not cut(g=np.ceil(least))
    assert cut(q=128 * np.floor(least))
    assert not cut(q=128 * np.floor(least) + 1)
    assert cut(r=np.floor(least))
    assert not cut(r=np.ceil(least))
    # Every sequence is looked at by itself.
    assert cut(b=1000.0)
    # Rows that see four tiles of keys are whole, five are cut.
    assert not cut(x=512.0)
    assert cut(x=513.0)


def test_even_slices_count_all_rows():
    rule = kernel_facts("flash3").cut
    tile = (64, 128, 256)

    def even(**given):
        axes = axes_of(**{"x": 128.0 * 1000, **given})
        return rule.number(axes, tile, H100).item()

    # 1,000 tiles of a row block on 132 units: shares of ⌈1.1 · 1000 / 132⌉ = 9 are 112 slices.
    assert even() == 112
    # Two row blocks, whatever makes them: ⌈16.7⌉ = 17 a share, 59 slices.
    for given in ({"r": 100.0}, {"q": 100.0}, {"r": 10.0, "q": 10.0}, {"b": 2.0}, {"g": 2.0}):
        assert even(**given) == 59


def test_waves_of_slices_count_a_block_for_every_query():
    rule = kernel_facts("trtllm-xqa").cut
    one = rule.number(axes_of(x=128.0 * 256, b=64.0), TILE, H100).item()
    for given in ({"q": 64.0}, {"g": 64.0}, {"b": 8.0, "q": 8.0}):
        assert rule.number(axes_of(x=128.0 * 256, **given), TILE, H100).item() == one
    assert 1 < one < rule.number(axes_of(x=128.0 * 256, b=8.0), TILE, H100).item()
