"""Attention: the rule against the walker, its laws, and worked examples with their arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walker import same, walk

from perfmodel.algorithms import Attention
from perfmodel.count import count
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


@settings(max_examples=400)
@given(problems(), tiles, tiles, st.integers(1, 3))
def test_query_tiles_on_the_grid(problem, br, bc, pack):
    schedule = tiled(problem.mask(), br, bc, pack=pack)
    same(schedule, problem.sizes(), problem.elements())


@settings(max_examples=300)
@given(problems(), tiles, tiles, st.sampled_from(["paper", "literal", "impl"]))
def test_keys_outside_queries_inside(problem, br, bc, accounting):
    # Every entry of the inner body fetches, as the code of Algorithm 1 does.
    forward = tiled(problem.mask(), br, bc, order=1, accounting=accounting)
    same(forward, problem.sizes(), problem.elements(), keep=False)
    backward = tiled_backward(problem.mask(), br, bc, order=1, accounting=accounting)
    same(backward, problem.sizes(), problem.elements(), keep=False)


@settings(max_examples=100)
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


@settings(max_examples=250)
@given(problems(), tiles, tiles)
def test_backward_with_keys_on_the_grid(problem, br, bc):
    same(tiled_backward(problem.mask(), br, bc), problem.sizes(), problem.elements())


@settings(max_examples=250)
@given(problems(), tiles, st.integers(2, 12), st.integers(1, 4), st.integers(1, 2))
def test_keys_split_over_the_grid(problem, br, bc, per_slice, pack):
    schedule = split_kv(problem.mask(), br, per_slice * bc, bc, pack=pack)
    same(schedule, problem.sizes(), problem.elements())


@settings(max_examples=60)
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
@settings(max_examples=25)
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
    batch, kv, ratio, trips, bc, dim, dim_v = letters

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


@settings(max_examples=200)
@given(names, problems(), tiles, tiles)
def test_bytes_never_grow_towards_memory_and_every_tensor_moves_once(name, problem, br, bc):
    if problem.mask() is not None and name not in ("standard", "standard-bwd"):
        # A mask may hide whole rows or keys, which then never move at all.
        problem = Attention(2, 2, 1, 33, 47, 8, dtype=problem.dtype)
    cost = counts(SCHEDULES[name], problem, br, bc)
    for kernel in cost.kernels:
        assert kernel.l2.keys() == kernel.hbm.keys()
        for tensor, traffic in kernel.l2.items():
            assert kernel.hbm[tensor].total_bytes <= traffic.total_bytes, tensor
    assert cost.bytes_at("hbm") <= cost.bytes_at("l2")
    assert cost.bytes_at("hbm") >= cost.memory_bytes


@settings(max_examples=200)
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


@settings(max_examples=200)
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


@settings(max_examples=100)
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


@settings(max_examples=40)
@given(st.integers(1, 2**40), st.integers(1, 2**40), st.integers(1, 256), st.booleans())
def test_huge_ints_follow_the_closed_form(seq_q, seq_kv, tile, causal):
    problem = Attention(1, 1, 1, seq_q, seq_kv, 64)
    kernel = counts(SCHEDULES["fa2"], problem, tile, 64).kernels[0]
    assert kernel.l2["K"].read_bytes == 2 * 64 * seq_kv * -(-seq_q // tile)


# -- worked examples -----------------------------------------------------------------------------


def elements(make, problem: Attention, *args, **options) -> dict[str, tuple[float, float]]:
    """(read, written) elements of each tensor, from bytes of one width."""
    cost = counts(make, problem, *args, **options)
    width = {name: float(kind.bits / 8) for name, kind in problem.elements().items()}
    tensors = cost.schedule.algorithm.tensors
    return {
        name: (t.read_bytes / width[tensors[name].element], t.write_bytes / width[tensors[name].element])
        for name, t in cost.kernels[0].l2.items()
    }  # fmt: skip


def square(n: int, dim: int = 64, **options) -> Attention:
    return Attention(1, 1, 1, n, n, dim, **options)


# reference/counting.md. Reads of Q, K, V, O and writes of O, in elements.
WORKED = [
    # ⌈1000/128⌉ = 8 query tiles read K and V: 8 · 64,000 = 512,000.
    ("FA2 order", tiled, square(1000), (128, 64), {}, (64_000, 512_000, 512_000, 0), 64_000),
    # ⌈1000/64⌉ = 16 key tiles read Q and write O: 16 · 64,000; O is read back 15 times.
    (
        "FA1 order", tiled, square(1000), (128, 64), {"order": 1, "accounting": "paper"},
        (1_024_000, 64_000, 64_000, 960_000), 1_024_000,
    ),
    # N = 256 in tiles of 64: Tc = 4, Nd = 16,384; 4 + 1 + 1 + 3 read and 4 written: 13 Nd.
    (
        "FA1 order, (3Tc+1)Nd = 212,992", tiled, square(256), (64, 64),
        {"order": 1, "accounting": "paper"}, (65_536, 16_384, 16_384, 49_152), 65_536,
    ),
    # Tile i sees 2(i+1) key tiles, the last 16: 2 + 4 + … + 16 = 72 pairs. The last tile's last
    # key tile holds 40 keys: (71 · 64 + 40) · 64 = 293,376.
    ("causal", tiled, square(1000, causal=True), (128, 64), {},
     (64_000, 293_376, 293_376, 0), 64_000),
    # 1 + 2 + … + 16 = 136 pairs, one of them 40 keys wide: (135 · 64 + 40) · 64 = 555,520.
    ("causal, square tiles", tiled, square(1000, causal=True), (64, 64), {},
     (64_000, 555_520, 555_520, 0), 64_000),
    # Tile i sees ⌈128(i+1)/96⌉ = 2, 3, 4, 6, 7, 8, 10, 11 key tiles: 51 pairs, the last 40 keys
    # wide (1000 − 10 · 96): (50 · 96 + 40) · 64 = 309,760.
    ("causal, tiles that do not nest", tiled, square(1000, causal=True), (128, 96), {},
     (64_000, 309_760, 309_760, 0), 64_000),
    # 200 queries stand at keys 800 … 999. Tile 0 ends at 928: 15 key tiles, 960 keys; tile 1 sees
    # all 1000. (960 + 1000) · 64 = 125,440.
    ("causal, aligned to the end", tiled, Attention(1, 1, 1, 200, 1000, 64, causal=True),
     (128, 64), {}, (12_800, 125_440, 125_440, 0), 12_800),
    # Tile i starts at key ⌊max(0, 128i − 199)/64⌋ · 64 = 0, 0, 0, 128, 256, 384, 512, 640 and ends
    # at min(1000, 128(i+1)): 128 + 256 + 384·5 + 360 = 2664 keys; · 64 = 170,496.
    ("window of 200", tiled, square(1000, causal=True, window=200), (128, 64), {},
     (64_000, 170_496, 170_496, 0), 64_000),
]  # fmt: skip


@pytest.mark.parametrize("row", WORKED, ids=[row[0] for row in WORKED])
def test_worked_examples(row):
    _, make, problem, tile, options, reads, written = row
    moved = elements(make, problem, *tile, **options)
    assert tuple(moved[name][0] for name in ("Q", "K", "V", "O")) == reads
    assert moved["O"][1] == written


@pytest.mark.parametrize(("tile", "pairs"), [((128, 64), 72), ((64, 64), 136), ((128, 96), 51)])
def test_worked_pairs(tile, pairs):
    assert counts(tiled, square(1000, causal=True), *tile).kernels[0].passes == pairs


def test_standard_attention_moves_4n2_forward_and_7n2_backward():
    # Forward: S w, P r w, P r = 4 N² and Q, K, V r, O w = 4 Nd. Backward: P and dP r, dP w, dS w,
    # P r, dS r r = 7 N²; dO r r, V, K, Q r and dQ, dK, dV w = 8 Nd. Two bytes each.
    n, d = 4096, 64
    forward = counts(standard, square(n), statistics=())
    backward = counts(standard_backward, square(n))
    assert forward.bytes_at("hbm") == 2 * (4 * n * n + 4 * n * d)
    assert backward.bytes_at("hbm") == 2 * (7 * n * n + 8 * n * d)


def test_memory_grows_with_the_square_of_the_length_only_where_scores_are_kept():
    # Twice the length: the scores quadruple, everything else doubles.
    short, long = 16384, 32768
    kept = [counts(standard, square(n)).memory_bytes for n in (short, long)]
    fused = [counts(tiled, square(n), 128, 64).memory_bytes for n in (short, long)]
    assert kept[1] / kept[0] == pytest.approx(4, rel=0.01)
    assert fused[1] == 2 * fused[0]
    # Q, K, V, O in 2 bytes and L in 4.
    assert fused[0] == short * (4 * 64 * 2 + 4)


def test_a_decoding_query_head_group_reads_its_keys_once_when_packed():
    problem = Attention(1, 8, 1, 1, 4096, 128)
    apart = counts(tiled, problem, 16, 64).kernels[0].l2["K"].read_bytes
    packed = counts(tiled, problem, 16, 64, pack=8).kernels[0].l2["K"].read_bytes
    assert packed == 4096 * 128 * 2
    assert apart == 8 * packed


def test_split_keys_leave_fp32_parts_that_the_second_kernel_reads():
    # 8 slices of 512 of 4096 keys: each leaves 128 floats of O and one of L for one query row.
    cost = counts(split_kv, Attention(1, 1, 1, 1, 4096, 128, causal=True), 16, 512, 64)
    first, second = cost.kernels
    assert first.l2["Q"].read_bytes == 8 * 128 * 2
    assert first.l2["O"].write_bytes == second.l2["O"].read_bytes == 8 * 128 * 4
    assert first.l2["L"].write_bytes == second.l2["L"].read_bytes == 8 * 4
    assert second.l2["O"].write_bytes == 128 * 2
    alone = counts(split_kv, Attention(1, 1, 1, 1, 4096, 128), 16, 4096, 64)
    assert alone.kernels[0].l2["O"].write_bytes == 128 * 2
    assert alone.kernels[1].bytes_at("l2") == 0
