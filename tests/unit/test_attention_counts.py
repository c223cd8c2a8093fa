"""Attention: the rule against the walker, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from walker import same, walk

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.count.executed import padded
from perfmodel.schedules.standard import standard, standard_backward
from perfmodel.schedules.tiled import split_kv, tiled, tiled_backward

lengths = st.integers(1, 40)
tiles = st.integers(3, 20)
HEADS = [(1, 1, 1), (2, 1, 2), (1, 2, 1), (1, 3, 1), (1, 1, 3)]


@st.composite
def problems(draw: st.DrawFn, *, masked: bool | None = None) -> Attention:
    """Small problems with ragged lengths, grouped heads, two head dims and all masks."""
    batch, kv, ratio = draw(st.sampled_from(HEADS))
    mask = draw(st.booleans()) if masked is None else masked
    causal = mask and draw(st.booleans())
    window = draw(st.integers(1, 45)) if mask and not causal else None
    if causal and draw(st.booleans()):
        window = draw(st.integers(1, 45))
    return Attention(
        batch,
        ratio * kv,
        kv,
        draw(lengths),
        draw(lengths),
        draw(st.integers(1, 9)),
        head_dim_v=draw(st.none() | st.integers(1, 9)),
        causal=causal,
        window=window,
        dtype=draw(st.sampled_from(["bf16", "fp8"])),
    )


def counts(make, problem: Attention, *args, **options):
    return count(make(problem.mask(), *args, **options), problem.sizes(), problem.elements())


# -- the rule is the walk ------------------------------------------------------------------------


@given(problems(), tiles, tiles, st.integers(1, 3))
def test_query_tiles_on_the_grid(problem, br, bc, pack):
    schedule = tiled(problem.mask(), br, bc, pack=pack)
    same(schedule, problem.sizes(), problem.elements())


@given(problems(), tiles, tiles, st.sampled_from(["paper", "literal", "impl"]))
def test_keys_outside_queries_inside(problem, br, bc, accounting):
    # Every entry of the inner body fetches, as the code of Algorithm 1 does.
    forward = tiled(problem.mask(), br, bc, order=1, accounting=accounting)
    same(forward, problem.sizes(), problem.elements(), keep=False)
    backward = tiled_backward(problem.mask(), br, bc, order=1, accounting=accounting)
    same(backward, problem.sizes(), problem.elements(), keep=False)


@given(problems(masked=False), tiles, tiles)
def test_keeping_a_tile_saves_nothing_once_the_inner_loop_has_two_trips(problem, br, bc):
    schedule = tiled(None, br, bc, order=1)
    sizes = problem.sizes()
    kept = walk(schedule, schedule.kernels[0], sizes)
    entered = walk(schedule, schedule.kernels[0], sizes, keep=False)
    if sizes["q"] > br:
        assert kept == entered
    else:
        assert all(kept.reads[name] <= entered.reads[name] for name in entered.reads)


@given(problems(), tiles, tiles)
def test_backward_with_keys_on_the_grid(problem, br, bc):
    same(tiled_backward(problem.mask(), br, bc), problem.sizes(), problem.elements())


@given(problems(), tiles, st.integers(2, 12), st.integers(1, 4), st.integers(1, 2))
def test_keys_split_over_the_grid(problem, br, bc, per_slice, pack):
    schedule = split_kv(problem.mask(), br, per_slice * bc, bc, pack=pack)
    same(schedule, problem.sizes(), problem.elements())


@given(
    problems(),
    st.tuples(tiles, tiles, st.integers(2, 9)),
    st.sampled_from(["none", "additive", "masked_fill"]),
    st.booleans(),
    st.booleans(),
)
def test_every_step_its_own_kernel(problem, tile, mask_pass, dropout, scaled_copy):
    options = {"mask_pass": mask_pass, "dropout": dropout, "scaled_copy": scaled_copy}
    forward = standard(problem.mask(), tile=tile, **options)
    same(forward, problem.sizes(), problem.elements())
    backward = standard_backward(problem.mask(), tile=tile, **options)
    same(backward, problem.sizes(), problem.elements())


# -- one rule, three kinds of number -------------------------------------------------------------

SCHEDULES = {
    "fa1": lambda mask, br, bc: tiled(mask, br, bc, order=1),
    "fa2": lambda mask, br, bc: tiled(mask, br, bc),
    "split": lambda mask, br, bc: split_kv(mask, br, 2 * bc, bc),
    "bwd1": lambda mask, br, bc: tiled_backward(mask, br, bc, order=1),
    "bwd2": lambda mask, br, bc: tiled_backward(mask, br, bc),
    "standard": lambda mask, br, bc: standard(mask, tile=(br, bc, 16)),
    "standard-bwd": lambda mask, br, bc: standard_backward(mask, tile=(br, bc, 16)),
}


def figures(cost) -> list:
    """Every number of a cost, in a fixed order."""
    rows = []
    for kernel in cost.kernels:
        rows += [kernel.blocks, kernel.passes, kernel.matrix_flops, kernel.vector_ops]
        rows += [kernel.special_ops, kernel.shared_bytes]
        rows += [kernel.shared_footprint_bytes, kernel.register_footprint_bytes]
        for table in (kernel.l2, kernel.hbm):
            for traffic in table.values():
                rows += [traffic.read_bytes, traffic.write_bytes, traffic.atomic_bytes]
    return [*rows, cost.memory_bytes]


@pytest.mark.parametrize("name", SCHEDULES)
@given(data=st.data())
def test_arrays_of_problems_are_each_of_them(name, data):
    causal, windowed = data.draw(st.booleans()), data.draw(st.booleans())
    size = st.integers(1, 300)
    row = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 3), size, size)
    row = st.tuples(row, st.integers(1, 64), size, tiles, tiles)
    rows = data.draw(st.lists(row, min_size=1, max_size=5))

    def problem(batch, kv, ratio, seq_q, seq_kv, dim, window):
        band = window if windowed else None
        return Attention(batch, kv * ratio, kv, seq_q, seq_kv, dim, causal=causal, window=band)

    columns = zip(*((*shape, dim, w, br, bc) for shape, dim, w, br, bc in rows), strict=True)
    *sizes, br, bc = (np.array(column) for column in columns)
    arrays = problem(*sizes)
    schedule = SCHEDULES[name](arrays.mask(), br, bc)
    together = figures(count(schedule, arrays.sizes(), arrays.elements()))
    for i, (shape, dim, window, r, c) in enumerate(rows):
        alone = problem(*shape, dim, window)
        schedule = SCHEDULES[name](alone.mask(), r, c)
        expected = figures(count(schedule, alone.sizes(), alone.elements()))
        got = [float(np.broadcast_to(value, len(rows))[i]) for value in together]
        assert got == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("causal", [False, True])
def test_symbols_are_the_same_counts_before_the_numbers_are_put_in(name, causal):
    sympy = pytest.importorskip("sympy")
    letters = sympy.symbols("B G R T c d e", positive=True, integer=True)
    bc = letters[4]

    def problem(batch, kv, ratio, trips, bc, dim, dim_v):
        length = 2 * trips * bc
        return Attention(batch, kv * ratio, kv, length, length, dim, dim_v, causal=causal)

    symbolic = problem(*letters)
    schedule = SCHEDULES[name](symbolic.mask(), 2 * bc, bc)
    found = figures(count(schedule, symbolic.sizes(), symbolic.elements()))
    values = (2, 3, 2, 5, 64, 128, 64)
    number = problem(*values)
    schedule = SCHEDULES[name](number.mask(), 128, 64)
    expected = figures(count(schedule, number.sizes(), number.elements()))
    got = [float(sympy.S(f).subs(dict(zip(letters, values, strict=True)))) for f in found]
    assert got == pytest.approx(expected, rel=1e-12)


# -- laws ----------------------------------------------------------------------------------------

names = st.sampled_from(sorted(SCHEDULES))


@given(names, problems(), tiles, tiles)
def test_bytes_never_grow_towards_memory_and_every_tensor_moves_once(name, problem, br, bc):
    # Parts of rows that see no key are never made, though the whole result is due at the end.
    hidden = problem.mask() is not None and problem.seq_q > problem.seq_kv
    assume(not (hidden and name in ("split", "bwd2")))
    cost = counts(SCHEDULES[name], problem, br, bc)
    for kernel in cost.kernels:
        assert kernel.l2.keys() == kernel.hbm.keys()
        for tensor, traffic in kernel.l2.items():
            assert kernel.hbm[tensor].total_bytes <= traffic.total_bytes, tensor
    assert cost.bytes_at("hbm") <= cost.bytes_at("l2")
    if problem.mask() is None:
        assert cost.bytes_at("hbm") >= cost.memory_bytes


@given(names, problems(), tiles, tiles, st.integers(1, 3), st.integers(1, 3))
def test_larger_nested_tiles_never_move_more_and_never_hold_less(name, problem, br, bc, fr, fc):
    problem = Attention(**{**vars(problem), "causal": False, "window": None})
    fine, coarse = (
        counts(SCHEDULES[name], problem, *tile) for tile in ((br, bc), (br * fr, bc * fc))
    )
    assert coarse.bytes_at("l2") <= fine.bytes_at("l2")
    for small, large in zip(fine.kernels, coarse.kernels, strict=True):
        assert small.shared_footprint_bytes <= large.shared_footprint_bytes
        assert small.register_footprint_bytes <= large.register_footprint_bytes


@given(names, problems(masked=False), tiles, tiles, st.integers(1, 50))
def test_a_window_costs_at_most_causal_and_causal_at_most_all(name, problem, br, bc, window):
    full = counts(SCHEDULES[name], problem, br, bc)
    causal = Attention(**{**vars(problem), "causal": True})
    narrow = Attention(**{**vars(problem), "causal": True, "window": window})
    costs = [full, *(counts(SCHEDULES[name], p, br, bc) for p in (causal, narrow))]
    for what in ("matrix_flops", "special_ops"):
        work = [getattr(cost, what) for cost in costs]
        assert work == sorted(work, reverse=True)
    moved = [cost.bytes_at("l2") for cost in costs]
    assert moved == sorted(moved, reverse=True)


@given(problems(), tiles, tiles)
def test_masks_never_save_more_work_than_they_hide(problem, br, bc):
    sizes, mask = problem.sizes(), problem.mask()
    shift = sizes["x"] - sizes["q"]
    i, j = np.indices((sizes["q"], sizes["x"]))
    seen = np.ones(i.shape, dtype=bool)
    if mask is not None and mask.right is not None:
        seen &= j <= i + shift + mask.right
    if mask is not None and mask.left is not None:
        seen &= j > i + shift - mask.left
    heads = sizes["b"] * sizes["g"] * sizes["r"]
    least = 2 * heads * int(seen.sum()) * (sizes["d"] + sizes["e"])
    assert counts(SCHEDULES["fa2"], problem, br, bc).matrix_flops >= least
    # In tiles of one nothing is wasted.
    assert counts(SCHEDULES["fa2"], problem, 1, 1).matrix_flops == least


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.parametrize("causal", [False, True])
def test_huge_problems_stay_exact_for_ints_and_finite_for_arrays(name, causal):
    n = 2**40
    exact = Attention(2, 8, 4, n, n, 128, causal=causal)
    arrays = Attention(2, 8, 4, np.array([n]), np.array([n]), 128, causal=causal)
    ints = counts(SCHEDULES[name], exact, 128, 64)
    floats = counts(SCHEDULES[name], arrays, 128, 64)
    assert isinstance(ints.matrix_flops, int)
    for a, b in zip(figures(ints), figures(floats), strict=True):
        value = float(np.broadcast_to(b, 1)[0])
        assert np.isfinite(value)
        assert value == pytest.approx(a, rel=1e-12)
    assert float(np.squeeze(arrays.flops())) == pytest.approx(exact.flops(), rel=1e-12)


@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(1, 256), st.booleans())
def test_huge_ints_follow_the_closed_form(seq_q, seq_kv, tile, causal):
    problem = Attention(1, 1, 1, seq_q, seq_kv, 64)
    kernel = counts(SCHEDULES["fa2"], problem, tile, 64).kernels[0]
    assert kernel.l2["K"].read_bytes == 2 * 64 * seq_kv * -(-seq_q // tile)


def test_the_released_kernel_holds_keys_in_registers_where_the_paper_has_them_in_sram():
    problem = Attention(1, 1, 1, 1024, 1024, 64, dtype="fp16")
    sizes, elements = problem.sizes(), problem.elements()
    paper, released = (
        count(tiled(None, 16, 256, order=1, accounting=said), sizes, elements).kernels[0]
        for said in ("paper", "impl")
    )
    both = 2 * 256 * 64 * 2
    assert paper.shared_footprint_bytes >= released.shared_footprint_bytes + both
    assert released.register_footprint_bytes >= paper.register_footprint_bytes + both


@pytest.mark.parametrize("heads", [2, 8])
def test_gradients_of_keys_are_summed_a_query_head_at_a_time(heads):
    """32 queries of one head, 128 keys by 64 elements in bf16, three stages."""
    problem = Attention(1, heads, 2, 512, 512, 64)
    cost = count(standard_backward(), problem.sizes(), problem.elements())
    names = [step.name for step in standard_backward().algorithm.steps]
    kernels = dict(zip(names, cost.kernels, strict=True))
    for gradient in ("dK of scores", "dV of values"):
        assert kernels[gradient].shared_footprint_bytes == 3 * 32 * (128 + 64) * 2


def test_a_masked_kernel_executes_whole_tiles_of_the_pairs_that_it_visits():
    """Ragged edges are padded: every visited pair has all of its queries, keys and scores."""
    problem = Attention(1, 2, 2, 100, 100, 64, causal=True)
    cost = count(tiled(problem.mask(), 32, 16), problem.sizes(), problem.elements()).kernels[0]
    ragged, whole = cost.nest.visits, padded(cost.nest).visits
    assert whole.pairs == ragged.pairs > 0
    assert whole.queries == 32 * whole.pairs > ragged.queries
    assert whole.keys == 16 * whole.pairs > ragged.keys
    assert whole.area == 32 * 16 * whole.pairs > ragged.area
