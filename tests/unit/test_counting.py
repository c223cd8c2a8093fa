"""The counting rule under every family of schedules: against the walker, laws, worked examples."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import ATTENTION, FAMILIES, PRODUCTS, ROWS, Laid, examples, laid
from walker import same

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count
from perfmodel.count.executed import padded
from perfmodel.errors import UnknownName
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.schedules.rowwise import elementwise, rows
from perfmodel.schedules.standard import standard, standard_backward
from perfmodel.schedules.tiled import split_kv, tiled, tiled_backward


def counts(schedule, problem):
    return count(schedule, problem.sizes(), problem.elements())


def figures(cost) -> list:
    """Every number of a cost, in a fixed order."""
    numbers = []
    for kernel in cost.kernels:
        numbers += [kernel.blocks, kernel.passes, kernel.matrix_flops, kernel.vector_ops]
        numbers += [kernel.special_ops, kernel.shared_bytes]
        numbers += [kernel.shared_footprint_bytes, kernel.register_footprint_bytes]
        for table in (kernel.l2, kernel.hbm):
            for traffic in table.values():
                numbers += [traffic.read_bytes, traffic.write_bytes, traffic.atomic_bytes]
    return [*numbers, cost.memory_bytes]


# -- the rule is the walk ------------------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@examples(0.6)
@given(data=st.data())
def test_the_rule_counts_what_a_walk_over_all_tiles_moves(family, data):
    case = data.draw(laid((family,)))
    # Every entry of the inner body fetches, as the code of FlashAttention's Algorithm 1 does.
    keep = not family.startswith("flash 1")
    same(case.schedule, case.problem.sizes(), case.problem.elements(), keep=keep)


@given(st.integers(1, 70), st.integers(1, 70), st.integers(1, 5), st.integers(1, 3))
def test_a_map_moves_each_of_its_tensors_once(height, width, inputs, outputs):
    problem = Rowwise("pointwise", height, width, inputs=inputs, outputs=outputs)
    cost = counts(elementwise(problem, 48), problem)
    assert cost.bytes_at("l2") == cost.bytes_at("hbm") == (inputs + outputs) * height * width * 2


# -- one rule, three kinds of number -------------------------------------------------------------


@pytest.mark.parametrize("family", FAMILIES)
@examples(0.4)
@given(data=st.data())
def test_arrays_of_problems_are_each_of_them(family, data):
    one = data.draw(laid((family,), most=300))
    more = laid((family,), most=300).map(lambda each: each.having(options=one.options))
    drawn = [each for each in [one, *data.draw(st.lists(more, max_size=4))]
             if each.dtype == one.dtype and each.mask[0] == one.mask[0]
             and (each.mask[1] is None) == (one.mask[1] is None)
             and (each.tile[-1] is None) == (one.tile[-1] is None)]  # fmt: skip

    def stacked(values):
        columns = zip(*values, strict=True)
        return tuple(None if c[0] is None else np.array(c) for c in columns)

    window = one.mask[1] and np.array([each.mask[1] for each in drawn])
    every = one.having(
        sizes=stacked(each.sizes for each in drawn), tile=stacked(each.tile for each in drawn),
        mask=(one.mask[0], window),
    )  # fmt: skip
    together = figures(every.cost)
    for i, alone in enumerate(drawn):
        found = [float(np.broadcast_to(value, len(drawn))[i]) for value in together]
        assert found == pytest.approx(figures(alone.cost), rel=1e-12)


@pytest.mark.parametrize("family", [f for f in FAMILIES if f not in ROWS])
@pytest.mark.parametrize("causal", [False, True])
def test_symbols_are_the_same_counts_before_the_numbers_are_put_in(family, causal):
    sympy = pytest.importorskip("sympy")
    letters = sympy.symbols("B G R T c d e", positive=True, integer=True)

    def case(batch, groups, ratio, trips, keys, *dims):
        length = 2 * trips * keys
        if family in ATTENTION:
            tile = 2 * keys, keys, 2 if family == "split" else 16
            sizes = batch, groups, ratio, length, length, *dims
            return Laid(family, sizes, tile, (causal, None))
        if family in PRODUCTS:
            return Laid(family, (batch, length, length, length), (keys, 2 * keys, keys))
        return Laid(family, (batch, length), (1, None))

    values = (2, 3, 2, 5, 64, 128, 64)
    given_ = dict(zip(letters, values, strict=True))
    found = [float(sympy.S(each).subs(given_)) for each in figures(case(*letters).cost)]
    assert found == pytest.approx(figures(case(*values).cost), rel=1e-12)


def test_symbols_give_the_closed_forms():
    """A product: Q = MNK(1/BM + 1/BN) + MN elements; a softmax's row on chip and streamed."""
    sympy = pytest.importorskip("sympy")
    t, u, v, bm, bn, bk = sympy.symbols("t u v bm bn bk", positive=True, integer=True)
    m, n, k = t * bm, u * bn, v * bk
    found = counts(tiled_matmul(bm, bn, bk), Matmul(m, n, k)).bytes_at("l2")
    assert sympy.simplify(found - 2 * (m * n * k * (1 / bm + 1 / bn) + m * n)) == 0
    problem = Rowwise("softmax", t, 2 * u * bm)
    held = counts(rows(problem), problem)
    assert sympy.simplify(held.bytes_at("l2") - 2 * t * 2 * u * bm * 2) == 0
    # Whether a streamed row needs its second pass stays open until the tile count is known.
    streamed = counts(rows(problem, 1, bm), problem).bytes_at("l2")
    assert streamed.subs({t: 8, u: 3, bm: 16}) == 3 * 8 * 96 * 2


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("causal", [False, True])
def test_huge_problems_stay_exact_for_ints_and_finite_for_arrays(family, causal):
    n = 2**40
    sizes = (2, 4, 2, n, n, 128) if family in ATTENTION else (1, n, n, n)
    sizes = sizes if family in (*ATTENTION, *PRODUCTS) else (n, n)
    tile = (128, 64, 2) if family == "split" else (128, 64, 64)
    case = Laid(family, sizes, tile, (causal, None))
    arrays = case.having(sizes=tuple(np.array([size]) for size in sizes))
    exact = figures(case.cost)
    assert isinstance(case.cost.matrix_flops, int)
    for one, many in zip(exact, figures(arrays.cost), strict=True):
        value = float(np.broadcast_to(many, 1)[0])
        assert np.isfinite(value)
        assert value == pytest.approx(one, rel=1e-12)
    assert float(np.squeeze(arrays.problem.flops())) == pytest.approx(case.problem.flops())


# -- laws ----------------------------------------------------------------------------------------


@examples(2.4)
@given(laid())
def test_bytes_never_grow_towards_memory_and_every_tensor_moves_once(case):
    # Parts of rows that see no key are never made, though the whole result is due at the end.
    if case.family in ("split", "flash 2 backward"):
        assume(case.problem.mask() is None or case.problem.seq_q <= case.problem.seq_kv)
    cost = case.cost
    for kernel in cost.kernels:
        assert kernel.l2.keys() == kernel.hbm.keys()
        for tensor, traffic in kernel.l2.items():
            assert kernel.hbm[tensor].total_bytes <= traffic.total_bytes, tensor
    assert cost.bytes_at("hbm") <= cost.bytes_at("l2")
    if case.mask == (False, None):
        assert cost.bytes_at("hbm") >= cost.memory_bytes
    if case.family == "product":  # one tile as large as the product meets the bound
        whole = case.having(tile=(*case.sizes[1:3], case.tile[2]))
        assert whole.cost.bytes_at("l2") == pytest.approx(cost.memory_bytes, rel=1e-12)


@examples(2.4)
@given(laid((*ATTENTION, *PRODUCTS), masked=False), st.integers(1, 3), st.integers(1, 3))
def test_larger_nested_tiles_never_move_more_and_never_hold_less(case, rows_, columns):
    r, c, *rest = case.tile
    fine, coarse = case.cost, case.having(tile=(r * rows_, c * columns, *rest)).cost
    assert coarse.bytes_at("l2") <= fine.bytes_at("l2")
    for small, large in zip(fine.kernels, coarse.kernels, strict=True):
        assert small.shared_footprint_bytes <= large.shared_footprint_bytes
        assert small.register_footprint_bytes <= large.register_footprint_bytes


@examples(2.4)
@given(laid(tuple(ATTENTION), masked=False), st.integers(1, 50))
def test_a_window_costs_at_most_causal_and_causal_at_most_all(case, window):
    options = {name: value for name, value in case.options.items() if name != "mask_pass"}
    masks = ((False, None), (True, None), (True, window))
    costs = [case.having(mask=mask, options=options).cost for mask in masks]
    for what in ("matrix_flops", "special_ops"):
        work = [getattr(cost, what) for cost in costs]
        assert work == sorted(work, reverse=True)
    moved = [cost.bytes_at("l2") for cost in costs]
    assert moved == sorted(moved, reverse=True)


@given(laid(("flash 2",)))
def test_masks_never_save_more_work_than_they_hide(case):
    sizes, mask = case.problem.sizes(), case.problem.mask()
    shift = sizes["x"] - sizes["q"]
    i, j = np.indices((sizes["q"], sizes["x"]))
    seen = np.ones(i.shape, dtype=bool)
    if mask is not None and mask.right is not None:
        seen &= j <= i + shift + mask.right
    if mask is not None and mask.left is not None:
        seen &= j > i + shift - mask.left
    heads = sizes["b"] * sizes["g"] * sizes["r"]
    least = 2 * heads * int(seen.sum()) * (sizes["d"] + sizes["e"])
    assert case.cost.matrix_flops >= least
    # In tiles of one nothing is wasted.
    assert case.having(tile=(1, 1, 1), options={}).cost.matrix_flops == least


@given(laid(ROWS), st.integers(1, 24))
def test_streaming_a_row_costs_one_more_read_of_it_and_no_more(case, tile):
    (height, width), block = case.sizes, case.tile[0]
    held, streamed = (case.having(tile=(block, t)).cost.kernels[0] for t in (None, tile))
    extra = {n: t.read_bytes - held.l2[n].read_bytes for n, t in streamed.l2.items()}
    assert extra.pop("X") == (height * width * 2 if tile < width else 0)
    assert set(extra.values()) <= {0}
    if tile <= width:  # a tile longer than its row still sets its whole length aside
        assert streamed.register_footprint_bytes <= held.register_footprint_bytes


@given(st.integers(1, 70), st.integers(1, 70), st.tuples(*[st.integers(0, 3)] * 4))
def test_an_element_is_accessed_as_often_as_its_tensors_are_moved(height, width, tensors):
    reads, writes, also_reads, also_writes = tensors
    problem = Rowwise(
        "pointwise", height, width, inputs=reads + 1, outputs=writes, also_inputs=also_reads,
        also_outputs=also_writes + 1, also_dtype="bf16",
    )  # fmt: skip
    assert counts(elementwise(problem), problem).bytes_at("hbm") == (
        2 * height * width * problem.accesses()
    )


# -- worked examples -----------------------------------------------------------------------------


def test_split_k_adds_up_fp32_parts():
    # k 1024 in slices of 256: four parts of 64 · 64 floats written, read, and one result in bf16.
    first, second = counts(tiled_matmul(64, 64, 32, split_k=256), Matmul(64, 64, 1024)).kernels
    assert first.l2["C"].write_bytes == second.l2["C"].read_bytes == 4 * 64 * 64 * 4
    assert second.l2["C"].write_bytes == 64 * 64 * 2
    assert first.blocks == 4
    whole, nothing = counts(tiled_matmul(64, 64, 32, split_k=1024), Matmul(64, 64, 1024)).kernels
    assert whole.l2["C"].write_bytes == 64 * 64 * 2
    assert nothing.bytes_at("l2") == 0


def test_operands_cross_shared_memory_by_the_warp_tile():
    # A tile of 32 rows × 128 columns: A is fetched once per 128 columns, B once per 32 rows.
    points = 256 * 512 * 64
    for dtype, wide_a, wide_b in (("bf16", 2, 2), ("fp8", 1, 1), ("fp32", 4, 4)):
        problem = Matmul(256, 512, 64, dtype=dtype)
        cost = counts(tiled_matmul(128, 128, 32, operand_tile=(32, 128)), problem)
        assert cost.bytes_at("shared") == points / 128 * wide_a + points / 32 * wide_b


def test_the_tile_in_flight_counts_once_a_stage():
    # A 128 × 32 and B 32 × 64 in bf16, three stages: 3 · (8192 + 4096) bytes; C in fp32 registers.
    kernel = counts(tiled_matmul(128, 64, 32, stages=3), Matmul(512, 512, 512)).kernels[0]
    assert kernel.shared_footprint_bytes == 3 * (128 * 32 + 32 * 64) * 2
    assert kernel.register_footprint_bytes == 128 * 64 * 4


def test_standard_attention_moves_4n2_forward_and_7n2_backward():
    # Forward: S w, P r w, P r = 4 N² and Q, K, V r, O w = 4 Nd. Backward: P and dP r, dP w, dS w,
    # P r, dS r r = 7 N²; dO r r, V, K, Q r and dQ, dK, dV w = 8 Nd. Two bytes each.
    n, d = 4096, 64
    square = Attention(1, 1, 1, n, n, d)
    assert counts(standard(statistics=()), square).bytes_at("hbm") == 2 * (4 * n * n + 4 * n * d)
    assert counts(standard_backward(), square).bytes_at("hbm") == 2 * (7 * n * n + 8 * n * d)


def test_tiles_that_do_not_nest_under_a_causal_mask():
    # Tile i sees ⌈128(i+1)/96⌉ = 2, 3, 4, 6, 7, 8, 10, 11 key tiles: 51 pairs, the last 40 keys
    # wide (1000 − 10 · 96): (50 · 96 + 40) · 64 = 309,760 elements of K and of V.
    problem = Attention(1, 1, 1, 1000, 1000, 64, causal=True)
    kernel = counts(tiled(problem.mask(), 128, 96), problem).kernels[0]
    assert kernel.passes == 51
    assert kernel.l2["K"].read_bytes == kernel.l2["V"].read_bytes == 2 * 309_760
    assert kernel.l2["Q"].read_bytes == kernel.l2["O"].write_bytes == 2 * 64_000


def test_split_keys_leave_fp32_parts_that_the_second_kernel_reads():
    # 8 slices of 512 of 4096 keys: each leaves 128 floats of O and one of L for one query row.
    problem = Attention(1, 1, 1, 1, 4096, 128, causal=True)
    first, second = counts(split_kv(problem.mask(), 16, 512, 64), problem).kernels
    assert first.l2["Q"].read_bytes == 8 * 128 * 2
    assert first.l2["O"].write_bytes == second.l2["O"].read_bytes == 8 * 128 * 4
    assert first.l2["L"].write_bytes == second.l2["L"].read_bytes == 8 * 4
    assert second.l2["O"].write_bytes == 128 * 2
    alone = counts(split_kv(None, 16, 4096, 64), Attention(1, 1, 1, 1, 4096, 128))
    assert alone.kernels[0].l2["O"].write_bytes == 128 * 2
    assert alone.kernels[1].bytes_at("l2") == 0


def test_attentions_operands_cross_shared_memory_by_the_tile_that_shares_them():
    # Instruction tile 64 rows × 256 columns, two bytes. Q·Kᵀ: Q once per 256 columns, K once per
    # 64 rows; P·V: P stays in registers, V once per 64 rows.
    problem = Attention(1, 1, 1, 1024, 1024, 128)
    cost = counts(tiled(None, 128, 256, operand_tile=(64, 256)), problem)
    points = 1024 * 1024 * 128
    assert cost.bytes_at("shared") == 2 * (points / 256 + points / 64 + points / 64)


def test_a_window_spares_the_keys_before_it_at_every_boundary():
    # One query on 65,536 keys sees the last 4096 of them: 64 key tiles of 64, whichever boundary.
    problem = Attention(1, 1, 1, 1, 65536, 128, causal=True, window=4096)
    kernel = counts(tiled(problem.mask(), 16, 64), problem).kernels[0]
    assert kernel.l2["K"].read_bytes == kernel.hbm["K"].read_bytes == 4096 * 128 * 2
    # A backward block of keys loads them before it knows which queries see them.
    both = counts(tiled_backward(problem.mask(), 16, 64), problem).kernels[1].hbm
    assert both["K"].read_bytes == 65536 * 128 * 2


def test_the_released_kernel_holds_keys_in_registers_where_the_paper_has_them_in_sram():
    problem = Attention(1, 1, 1, 1024, 1024, 64, dtype="fp16")
    paper, released = (
        counts(tiled(None, 16, 256, order=1, accounting=name), problem).kernels[0]
        for name in ("paper", "impl")
    )
    both = 2 * 256 * 64 * 2
    assert paper.shared_footprint_bytes >= released.shared_footprint_bytes + both
    assert released.register_footprint_bytes >= paper.register_footprint_bytes + both


@pytest.mark.parametrize("heads", [2, 8])
def test_gradients_of_keys_are_summed_a_query_head_at_a_time(heads):
    """32 queries of one head, 128 keys by 64 elements in bf16, three stages."""
    cost = counts(standard_backward(), Attention(1, heads, 2, 512, 512, 64))
    names = [step.name for step in standard_backward().algorithm.steps]
    kernels = dict(zip(names, cost.kernels, strict=True))
    for gradient in ("dK of scores", "dV of values"):
        assert kernels[gradient].shared_footprint_bytes == 3 * 32 * (128 + 64) * 2


def test_a_masked_kernel_executes_whole_tiles_of_the_pairs_that_it_visits():
    """Ragged edges are padded: every visited pair has all of its queries, keys and scores."""
    problem = Attention(1, 2, 2, 100, 100, 64, causal=True)
    cost = counts(tiled(problem.mask(), 32, 16), problem).kernels[0]
    ragged, whole = cost.nest.visits, padded(cost.nest).visits
    assert whole.pairs == ragged.pairs > 0
    assert whole.queries == 32 * whole.pairs > ragged.queries
    assert whole.keys == 16 * whole.pairs > ragged.keys
    assert whole.area == 32 * 16 * whole.pairs > ragged.area


def test_a_softmax_has_an_exponential_an_element():
    problem = Rowwise("softmax", 128, 4096)
    assert counts(rows(problem), problem).special_ops == 128 * 4096


@cases
def test_gradients_of_maps_read_what_the_map_is_not_linear_in(variant, inputs, reads, writes):
    there = Rowwise("pointwise", 64, 128, "fp32", variant, inputs)
    back = Rowwise("pointwise", 64, 128, "fp32", variant, inputs, direction="bwd")
    assert there.streams() == (inputs, 1)
    assert back.streams() == (reads, writes)
    assert counts(elementwise(back), back).bytes_at("hbm") == (reads + writes) * 64 * 128 * 4


def test_both_passes_are_the_forward_and_the_backward_algorithm():
    forward, backward = Rowwise("rmsnorm", 64, 64, direction="fwdbwd").passes()
    assert forward.outputs == ("Y", "rstd")
    assert backward.outputs == ("dX", "dgamma")


@pytest.mark.parametrize("direction", ["fdwd", "", "FWD", None])
def test_an_unknown_direction_is_refused(direction):
    with pytest.raises(UnknownName, match="no direction named"):
        Rowwise("softmax", 64, 64, direction=direction)
    with pytest.raises(UnknownName, match="no direction named"):
        Attention(1, 1, 1, 64, 64, 64, direction=direction)
