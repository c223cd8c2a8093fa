"""Matmul: the rule against the walker, its laws, and worked examples with their arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from walker import same

from perfmodel.algorithms import Matmul
from perfmodel.count import count
from perfmodel.schedules.matmul import tiled_matmul

lengths = st.integers(1, 60)
tiles = st.integers(3, 24)
problems = st.builds(
    Matmul, lengths, lengths, lengths, st.integers(1, 2), st.sampled_from(["bf16", "fp8", "w4a16"])
)


def counts(problem: Matmul, *tile, **options):
    return count(tiled_matmul(*tile, **options), problem.sizes(), problem.elements())


@given(problems, tiles, tiles, tiles, st.none() | st.integers(1, 3))
def test_tiles_on_the_grid(problem, bm, bn, bk, group):
    schedule = tiled_matmul(bm, bn, bk, group_m=group)
    same(schedule, problem.sizes(), problem.elements())


@given(problems, tiles, tiles, st.integers(3, 12), st.integers(1, 4), st.none() | st.integers(1, 3))
def test_the_sum_split_over_the_grid(problem, bm, bn, bk, per_slice, group):
    schedule = tiled_matmul(bm, bn, bk, split_k=per_slice * bk, group_m=group)
    same(schedule, problem.sizes(), problem.elements())


@given(st.lists(st.tuples(lengths, lengths, lengths, tiles, tiles, tiles), min_size=1, max_size=6))
def test_arrays_of_problems_are_each_of_them(rows):
    m, n, k, bm, bn, bk = (np.array(column) for column in zip(*rows, strict=True))
    together = counts(Matmul(m, n, k), bm, bn, bk, split_k=2 * bk)
    for i, (m, n, k, *tile) in enumerate(rows):
        alone = counts(Matmul(m, n, k), *tile, split_k=2 * tile[2])
        for boundary in ("hbm", "l2", "shared"):
            whole = np.broadcast_to(together.bytes_at(boundary), len(rows))
            assert whole[i] == pytest.approx(alone.bytes_at(boundary), rel=1e-12)
        assert together.matrix_flops[i] == alone.matrix_flops


def test_symbols_give_the_closed_form():
    # Q = MNK(1/BM + 1/BN) + MN elements of two bytes.
    sympy = pytest.importorskip("sympy")
    t, u, v, bm, bn, bk = sympy.symbols("t u v bm bn bk", positive=True, integer=True)
    m, n, k = t * bm, u * bn, v * bk
    found = counts(Matmul(m, n, k), bm, bn, bk).bytes_at("l2")
    closed = 2 * (m * n * k * (1 / bm + 1 / bn) + m * n)
    assert sympy.simplify(found - closed) == 0


@given(problems, tiles, tiles, tiles, st.integers(1, 4), st.integers(1, 4))
def test_larger_nested_tiles_never_move_more_and_never_hold_less(problem, bm, bn, bk, fm, fn):
    fine, coarse = counts(problem, bm, bn, bk), counts(problem, bm * fm, bn * fn, bk)
    assert coarse.bytes_at("l2") <= fine.bytes_at("l2")
    assert coarse.kernels[0].shared_footprint_bytes >= fine.kernels[0].shared_footprint_bytes
    assert coarse.kernels[0].register_footprint_bytes >= fine.kernels[0].register_footprint_bytes


@given(problems, tiles, tiles, tiles)
def test_bytes_never_grow_towards_memory(problem, bm, bn, bk):
    cost = counts(problem, bm, bn, bk)
    kernel = cost.kernels[0]
    for name, traffic in kernel.l2.items():
        assert kernel.hbm[name].total_bytes <= traffic.total_bytes
    # Nothing can move less than each operand once: the compulsory bound.
    assert cost.bytes_at("hbm") == cost.memory_bytes
    # One tile as large as the product meets the bound.
    whole = counts(problem, problem.m, problem.n, bk)
    assert whole.bytes_at("l2") == pytest.approx(cost.memory_bytes, rel=1e-12)


@given(problems, tiles, tiles, st.integers(3, 12))
def test_a_group_changes_the_order_and_not_the_traffic_of_the_blocks(problem, bm, bn, bk):
    plain, grouped = counts(problem, bm, bn, bk), counts(problem, bm, bn, bk, group_m=3)
    assert plain.bytes_at("l2") == grouped.bytes_at("l2")
    assert plain.kernels[0].blocks == grouped.kernels[0].blocks
    assert plain.matrix_flops == grouped.matrix_flops == problem.flops()


def test_worked_example():
    # reference/counting.md: m 300, n 200, k 130 in 128 × 64 × 32.
    # A: 300 · 130 · ⌈200/64⌉ = 39,000 · 4; B: 130 · 200 · ⌈300/128⌉ = 26,000 · 3; C: 300 · 200.
    kernel = counts(Matmul(300, 200, 130, dtype="fp16"), 128, 64, 32).kernels[0]
    assert kernel.l2["A"].read_bytes == 2 * 156_000
    assert kernel.l2["B"].read_bytes == 2 * 78_000
    assert kernel.l2["C"].write_bytes == 2 * 60_000
    assert kernel.blocks == 3 * 4
    assert kernel.passes == 3 * 4 * 5
    assert kernel.matrix_flops == 2 * 300 * 200 * 130


def test_split_k_adds_up_fp32_parts():
    # k 1024 in slices of 256: four parts of 64 · 64 floats written, read, and one result in bf16.
    first, second = counts(Matmul(64, 64, 1024), 64, 64, 32, split_k=256).kernels
    assert first.l2["C"].write_bytes == second.l2["C"].read_bytes == 4 * 64 * 64 * 4
    assert second.l2["C"].write_bytes == 64 * 64 * 2
    assert first.blocks == 4
    whole, nothing = counts(Matmul(64, 64, 1024), 64, 64, 32, split_k=1024).kernels
    assert whole.l2["C"].write_bytes == 64 * 64 * 2
    assert nothing.bytes_at("l2") == 0


def test_operands_cross_shared_memory_by_the_warp_tile():
    # A tile of 32 rows × 128 columns: A is fetched once per 128 columns, B once per 32 rows.
    # A: 256 · 512 · 64 / 128 elements, B: … / 32, each of its own width.
    points = 256 * 512 * 64
    for dtype, wide_a, wide_b in (("bf16", 2, 2), ("fp8", 1, 1), ("fp32", 4, 4)):
        problem = Matmul(256, 512, 64, dtype=dtype)
        cost = counts(problem, 128, 128, 32, operand_tile=(32, 128))
        assert cost.bytes_at("shared") == points / 128 * wide_a + points / 32 * wide_b


def test_the_tile_in_flight_counts_once_a_stage():
    # A 128 × 32 and B 32 × 64 in bf16, three stages: 3 · (8192 + 4096) bytes; C in fp32 registers.
    kernel = counts(Matmul(512, 512, 512), 128, 64, 32, stages=3).kernels[0]
    assert kernel.shared_footprint_bytes == 3 * (128 * 32 + 32 * 64) * 2
    assert kernel.register_footprint_bytes == 128 * 64 * 4


def test_quantised_weights_count_their_bits_and_their_scales():
    # int4 in groups of 128 with a 16-bit scale: 4.125 bits an element.
    cost = counts(Matmul(16, 4096, 4096, dtype="w4a16"), 16, 128, 64)
    assert cost.kernels[0].hbm["B"].read_bytes == 4096 * 4096 * 4.125 / 8


def test_huge_problems_stay_exact_for_ints_and_finite_for_arrays():
    n = 2**40
    exact = counts(Matmul(n, n, n), 128, 128, 64)
    # MNK/BN + MNK/BM + MN, two bytes each.
    assert exact.bytes_at("l2") == 2 * (2 * n**3 // 128 + n * n)
    arrays = counts(Matmul(np.array([n]), n, n), 128, 128, 64)
    assert arrays.bytes_at("l2")[0] == pytest.approx(exact.bytes_at("l2"), rel=1e-12)
    assert float(np.squeeze(Matmul(np.array([n]), n, n).flops())) == pytest.approx(2 * n**3)
