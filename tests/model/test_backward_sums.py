"""Backward attention: sums of dQ in fp32, groups of warps on one tile, and the caller's
settings."""

from __future__ import annotations

import pytest

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.schedules.tiled import tiled_backward
from perfmodel.table.provenance import notes
from perfmodel.table.records import tidy
from perfmodel.timing import unfused
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.plan import time_plan
from perfmodel.timing.setting import Setting
from perfmodel.validation.compare import predict_table

pd = pytest.importorskip("pandas")

SHAPE = Attention(2, 16, 16, 4096, 4096, 128, dtype="fp16", direction="bwd")
QUERIES = 2 * 16 * 4096 * 128


def kernels(**options):
    schedule = tiled_backward(None, 64, 128, **options)
    return count(schedule, SHAPE.sizes(), SHAPE.elements()).kernels


def test_sums_of_query_gradients_are_cleared_before_and_converted_after():
    plain, cleared = kernels()[0], kernels(converted=True)
    assert cleared[0].bytes_at("hbm") - plain.bytes_at("hbm") == 4 * QUERIES
    assert cleared[-1].name == "conversion"
    assert cleared[-1].bytes_at("hbm") == (4 + 2) * QUERIES
    assert cleared[1].l2["dQ32"].atomic_bytes == kernels()[1].l2["dQ"].atomic_bytes


def test_one_block_a_head_sums_in_place_and_converts_nothing():
    assert [each.name for each in kernels(order=1, converted=True)] == ["tiled-backward-1"]


@pytest.mark.parametrize("name", ["flash2", "flash3", "cudnn"])
def test_a_backward_pass_is_three_kernels(name):
    found = predict(SHAPE, load("h100-sxm"), implementation=name)
    one = predict(SHAPE, load("h100-sxm"), implementation="flash1")
    gap = found.terms["gap"] - one.terms["gap"]
    one_gap = machine(load("h100-sxm")).at_clock(default()["kernel_gap"])
    assert 1e-6 < one_gap < 1.5e-6
    assert gap == pytest.approx(2 * one_gap)


@pytest.mark.parametrize("dim", [64, 128])
def test_groups_of_warps_on_one_tile_hide_nothing_of_each_other(dim):
    shape = Attention(4, 2048 // dim, 2048 // dim, 8192, 8192, dim, dtype="fp16", direction="bwd")
    terms = predict(shape, load("h100-sxm"), implementation="flash3")
    stages = sum(terms.terms[name] for name in ("matrix", "special", "vector"))
    assert terms.seconds > stages
    forward = Attention(4, 2048 // dim, 2048 // dim, 8192, 8192, dim, dtype="fp16")
    turns = predict(forward, load("h100-sxm"), implementation="flash3")
    assert turns.seconds < sum(turns.terms[name] for name in ("matrix", "special", "vector"))


def test_copies_into_another_order_divide_for_the_place_of_every_element():
    shape = Attention(32, 16, 16, 512, 512, 128, dtype="fp16")
    device = load("h100-sxm")
    here = machine(device)
    copies = unfused.plans(shape, Setting(here, default()))[0]
    (found,) = time_plan(here, default(), copies, (1, 1)).launches
    # Two accesses of four instructions, four dimensions of a division, a remainder and two strides.
    elements = 4 * 32 * 16 * 512 * 128
    least = elements * (2 * 4 + 4 * (6 + 2 + 2)) / (here.integer_per_unit * here.units)
    assert found.time.terms["vector"] == pytest.approx(least, rel=0.02)
    assert found.time.terms["vector"] > 2 * found.time.terms["hbm"]


@pytest.mark.parametrize("groups", [1, 4, 16])
def test_query_heads_of_a_group_have_blocks_of_their_own_and_are_added_up(groups):
    """FlashAttention-2, flash_api.cpp: dk_expanded of all query heads, then at::sum_out."""
    shape = Attention(1, 16, groups, 1024, 1024, 128, dtype="fp16", direction="bwd")
    schedule = tiled_backward(None, 64, 128, converted=True, spread=True)
    found = {k.name: k for k in count(schedule, shape.sizes(), shape.elements()).kernels}
    assert found["tiled-backward"].blocks == 16 * 1024 // 128
    one = 1024 * 128 * 2
    parts = 2 * one * (16 + groups) if groups < 16 else 0
    assert found["combine"].bytes_at("hbm") == parts
    many = Attention(1, 16, 16, 1024, 1024, 128, dtype="fp16", direction="bwd")
    few, whole = (predict(each, load("a100-sxm4-80gb"), implementation="flash2").seconds
                  for each in (shape, many))  # fmt: skip
    assert few == pytest.approx(whole, rel=0.1)


def test_sums_in_tensor_memory_leave_room_for_square_tiles():
    tiles = {
        slug: predict(SHAPE, load(slug), implementation="flash4").tile
        for slug in ("b200", "h100-sxm")
    }
    assert tiles["b200"] == {"rows": 128, "keys": 128}
    assert tiles["h100-sxm"]["rows"] < 128


def test_cudnn_has_a_kernel_of_its_own_for_blackwell():
    forward = Attention(4, 16, 16, 8192, 8192, 128, dtype="bf16")
    found = {
        name: predict(forward, load("b200"), implementation=name) for name in ("cudnn", "flash4")
    }
    assert found["cudnn"].tile == found["flash4"].tile == {"rows": 256, "keys": 128}
    assert predict(forward, load("h100-sxm"), implementation="cudnn").tile["rows"] == 128


ROW = {
    "source": "flashattention_papers", "device": "a100-sxm4-40gb", "op": "attention",
    "implementation": "torch", "harness": "paper", "dtype": "fp16", "direction": "fwd",
    "phase": "prefill", "batch": 16, "heads_q": 8, "heads_kv": 8, "head_dim": 64, "causal": False,
}  # fmt: skip


def row(seq, measured, **more):
    return ROW | {"seq_q": seq, "seq_kv": seq, "measured_us": measured} | more


def test_what_stands_beside_a_row_in_its_table_does_not_change_its_prediction():
    # Rows that stand twice have lost what they differ in: to pick it by their times would be a fit.
    rows = [row(1024, 1270.0), row(1024, 2540.0), row(1024, 1800.0, variant="dropout")]
    table = tidy(pd.DataFrame(rows))
    found = predict_table(table)["predicted_us"].to_numpy()
    assert found[0] == found[1] < found[2]
    for i in range(3):
        assert predict_table(table.iloc[[i]])["predicted_us"].item() == found[i]
    assert notes(table) == []
