"""Slices of the keys: how many a library's rule cuts, which have any, and what adds them up."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention
from perfmodel.hardware import load
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing import attention_style, splitkv
from perfmodel.timing.constants import default
from perfmodel.timing.cuts.smallest import SmallestCut
from perfmodel.timing.libraries import Caller, kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.plan import combining_seconds
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Style

H100, A100, B200 = load("h100-sxm"), load("a100-sxm4-80gb"), load("b200")
FLASH2 = kernel_facts("flash2").cut
EVEN = kernel_facts("flash3").cut
XQA, GEN = (kernel_facts(name).cut for name in ("trtllm-xqa", "trtllm"))
PAGED = replace(kernel_facts("flash3"), caller=Caller(paged=True))
CONSTANTS = default()
TILE = (64, 128, 128)


def slices_one_by_one(grid: int, tiles: int, slots: int, rule: SmallestCut) -> int:
    """The rule as a loop over numbers of slices (FlashAttention-2, num_splits_heuristic)."""
    if grid >= rule.full * slots or tiles <= rule.whole_tiles:
        return 1
    most, fills = min(128, slots, tiles), {}
    for slices in range(1, most + 1):
        if slices > 1 and math.ceil(tiles / slices) == math.ceil(tiles / (slices - 1)):
            continue
        waves = grid * slices / slots
        fills[slices] = waves / math.ceil(waves)
    best = max(fills.values())
    return next(slices for slices, fill in fills.items() if fill >= rule.near * best)


shapes = st.tuples(
    st.integers(1, 300), st.integers(1, 16), st.integers(2, 32), st.integers(1, 200_000)
)


def columns_of(batch: int, groups: int, together: int, keys: int) -> dict[str, np.ndarray]:
    """Axes of one decode problem as (1, 1) columns."""
    sizes = {"b": batch, "g": groups, "r": together, "q": 1, "x": keys}
    return {axis: np.array([[float(size)]]) for axis, size in sizes.items()}


@given(shapes)
def test_slices_are_those_of_the_rule(shape):
    batch, groups, _, keys = shape
    found = FLASH2.number(columns_of(*shape), (64, 128, 128), machine(A100))
    slots = A100.units * FLASH2.blocks_per_unit
    expected = slices_one_by_one(batch * groups, math.ceil(keys / 128), slots, FLASH2)
    assert found.shape == (1, 1)
    assert found[0, 0] == expected


@given(shapes)
def test_even_slices_give_every_unit_its_share_of_key_tiles(shape):
    # flash_prepare_scheduler.cu, for sequences of one length: blocks_per_sm is at least the mean.
    batch, groups, together, keys = shape
    found = float(EVEN.number(columns_of(*shape), (64, 128, 256), machine(H100))[0, 0])
    tiles = math.ceil(keys / 128)
    rows = batch * groups * math.ceil(together / 64)
    share = math.ceil(1.1 * rows * tiles / H100.units)
    assert found == min(math.ceil(tiles / share), 128)
    assert 1 <= found <= tiles
    # No slice is longer than the share, unless there may be no more slices.
    assert math.ceil(tiles / found) <= share or found == 128


@pytest.mark.parametrize("release", ["fa3", "fa4"])
@pytest.mark.parametrize("head_dim", [64, 128, 512])
def test_captured_and_loose_batches_together_are_what_they_are_apart(release, head_dim):
    batch, queries = np.array([1, 1, 4, 16, 64, 2]), np.array([128, 512, 512, 16, 64, 2048])
    how = {"implementation": f"vllm-0.24.0:vllm_flash_attn_{release}", "harness": "cuda_graph"}
    for device in (H100, load("b200")):
        whole = Attention(batch, 16, 2, queries, queries, head_dim, causal=True)
        found = predict_arrays(whole, device, **how).seconds
        for i, (b, q) in enumerate(zip(batch, queries, strict=True)):
            alone = Attention(int(b), 16, 2, int(q), int(q), head_dim, causal=True)
            assert found[i] == pytest.approx(predict(alone, device, **how).seconds, rel=1e-9)


@given(shapes)
def test_xqa_slices_are_those_of_its_library(shape):
    # TensorRT-LLM, computeMultiBlockCount: in its order, and in whole numbers.
    batch, groups, _, keys = shape
    slices = keys // 128
    slices = max(min(slices, round(math.sqrt(8 * slices))), 1)
    if batch * groups * slices > 8 * A100.units:
        slices = max(8 * A100.units // (batch * groups), 1)
    found = XQA.number(columns_of(*shape), TILE, machine(A100))
    assert found[0, 0] == slices


@given(shapes)
def test_slices_on_blackwell_fill_one_wave_and_have_two_steps_each(shape):
    # TensorRT-LLM, fmhaKernels.h: ⌈keys / 2·256⌉ of them, or as many as units are left for.
    batch, groups, _, keys = shape
    found = GEN.number(columns_of(*shape), TILE, machine(A100))[0, 0]
    assert found == min(-(-keys // 512), max(A100.units // (batch * groups), 1))
    assert found == 1 or found * batch * groups <= A100.units


@given(shapes)
def test_triton_slices_of_sglang_are_those_of_its_library(shape):
    # get_num_kv_splits_triton, for sequences of one length: more units by the doublings from 64.
    batch, groups, _, keys = shape
    units = int(A100.units * max(math.log2(keys / 64), 1.0))
    slices = min(-(-units // (batch * groups)), 8, -(-keys // 32))
    rule = kernel_facts("sglang-triton-decode").cut
    found = rule.number(columns_of(*shape), TILE, machine(A100))[0, 0]
    assert abs(found - slices) <= (units % (batch * groups) == 0)  # units are cut to whole ones


def test_blocks_that_combine_among_themselves_need_no_second_launch():
    apart = Style(compute="fp16", combining_seconds=CONSTANTS["split_price"])
    inside = Style(compute="fp16")
    l2 = machine(A100).l2_latency
    assert combining_seconds(machine(A100), CONSTANTS, inside) == pytest.approx(3 * l2)
    assert combining_seconds(machine(A100), CONSTANTS, apart) > 3 * l2


def test_flash2_cuts_keys_for_grouped_queries_alone():
    grouped = Attention(1, 8, 4, 1, 16384, 128)
    single = Attention(1, 4, 4, 1, 16384, 128)
    tiles = [predict(p, A100, implementation="flash2").tile for p in (grouped, single)]
    assert tiles[0]["splits"] > 1
    assert tiles[1]["splits"] == 1


def split(shape: Attention):
    """The plan of one paged decode by FlashAttention-3, and its menu's single column."""
    setting = Setting(machine(H100), CONSTANTS)
    how = attention_style.style(shape, PAGED, setting)
    return splitkv.split_plan(shape, shape.mask(), PAGED, setting, how)


def test_windows_are_sliced_by_all_keys_and_combined_if_one_slice_has_any():
    # flash_prepare_scheduler.cu counts the tiles of every key: 64 of them on 132 units are cut in
    # two, of which a window of 128 keys, cut from its first key on, leaves one any work.
    narrow, whole = (Attention(64, 1, 1, 1, 8192, 128, causal=True, window=w) for w in (128, None))
    plan = split(narrow)
    assert plan.tile["splits"].item() == 1
    assert [part.only for part in plan.parts] == [("split-kv",), ("combine",)]
    assert split(whole).tile["splits"].item() == 2
    assert len(split(whole).parts) == 1
    # Enough sequences are not cut, and nothing is left to combine.
    (alone,) = split(replace(narrow, batch=1024)).parts
    assert alone.sizes["x"].item() == 128


@given(shapes, st.sampled_from(["flash3", "trtllm", "flash2"]))
def test_values_in_the_memory_of_keys_halve_what_comes_from_it(shape, name):
    batch, groups, together, keys = shape
    heads = groups * together
    apart, shared = (
        predict(
            Attention(batch, heads, groups, 1, keys, 128, keys_only=only),
            H100,
            implementation=name,
        )
        for only in (False, True)
    )
    assert shared.seconds <= apart.seconds * (1 + 1e-9)
    values = 2 * batch * groups * keys * 128
    # One tile on chip serves as both, so that the L2 too gives it once for each that reads it.
    assert apart.bytes["l2"] - shared.bytes["l2"] >= values * (1 - 1e-9)
    assert apart.bytes["hbm"] - shared.bytes["hbm"] == pytest.approx(values, rel=0.01)
    assert apart.footprint_bytes - shared.footprint_bytes == pytest.approx(values)


@pytest.mark.parametrize("window", [None, 128])
def test_a_slice_of_many_queries_pays_for_its_mask_as_a_whole_row_does(window):
    shape = Attention(1, 8, 1, 64, 16384, 128, causal=True, window=window)
    plan = split(shape)
    style, tile = plan.parts[0].style, plan.tile
    rows, keys = tile["rows"].item(), tile["keys"].item()
    expected = attention_style.masking(shape, shape.mask(), shape.sizes()["r"], rows, keys)
    assert float(np.max(style.code.integer_ops)) == expected > 0
    assert (
        np.max(split(replace(shape, causal=False, window=None)).parts[0].style.code.integer_ops)
        == 0
    )
