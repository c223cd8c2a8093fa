"""The counting rule on random loop nests: any order, any tiles, ragged ends, masks; and its pieces.

The families of schedules have files of their own; here the loops are dealt at random.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from walker import same, walk

from perfmodel.algorithms import Attention, Matmul
from perfmodel.algorithms import attention as attention_algorithms
from perfmodel.algorithms.matmul import matmul
from perfmodel.arithmetic import where
from perfmodel.count import Traffic, count, rule
from perfmodel.errors import ProblemError
from perfmodel.schedules.schedule import Kernel, Loop, Schedule
from perfmodel.schedules.tiled import tiled, tiled_backward

tiles = st.integers(2, 14)


@st.composite
def nests(draw: st.DrawFn, axes: tuple[str, ...], always: tuple[str, ...] = ()) -> tuple[Loop, ...]:
    """Loops over some of the axes in any order, the first few of them on the grid."""
    chosen = [axis for axis in draw(st.permutations(axes)) if axis in always or draw(st.booleans())]
    grid = draw(st.integers(0, len(chosen)))
    return tuple(Loop(axis, draw(tiles), i < grid) for i, axis in enumerate(chosen))


@st.composite
def matmul_kernels(draw: st.DrawFn) -> tuple[Schedule, Matmul]:
    sizes = [draw(st.integers(1, 30)) for _ in range(3)]
    flags = {name: frozenset({"C"} if draw(st.booleans()) else ()) for name in ("atomic", "zeroed")}
    kernel = Kernel(
        "any",
        ("multiply",),
        draw(nests(("b", "m", "n", "k"))),
        spill={"C": "accumulator"} if draw(st.booleans()) else {},
        **flags,
    )
    return Schedule("any", matmul(), (kernel,)), Matmul(*sizes, draw(st.integers(1, 3)))


@st.composite
def attention_kernels(draw: st.DrawFn) -> tuple[Schedule, Attention]:
    ratio, kv = draw(st.sampled_from([(1, 1), (2, 1), (1, 2), (3, 1)]))
    lengths = draw(st.integers(1, 40)), draw(st.integers(1, 40))
    causal = draw(st.booleans())
    window = draw(st.none() | st.integers(1, 45))
    problem = Attention(1, ratio * kv, kv, *lengths, draw(st.integers(1, 5)), 3, causal, window)
    kernel = Kernel(
        "any",
        ("scores", "softmax", "values"),
        draw(nests(("g", "r", "q", "x"), always=("q", "x"))),
        spill={"O": "accumulator"} if draw(st.booleans()) else {},
        first_pass={"Q": "x"} if draw(st.booleans()) else {},
    )
    algorithm = attention_algorithms.forward(problem.mask(), statistics=("m", "l"))
    return Schedule("any", algorithm, (kernel,)), problem


@given(matmul_kernels())
def test_any_matmul_nest(case):
    schedule, problem = case
    same(schedule, problem.sizes(), problem.elements(), keep=False)


@given(attention_kernels())
def test_any_attention_nest(case):
    schedule, problem = case
    kernel = schedule.kernels[0]
    # A step of the first pass belongs to loops that one block runs itself.
    assume(not (kernel.first_pass and kernel.loops("x")[0].grid))
    same(schedule, problem.sizes(), problem.elements(), keep=False)


@given(matmul_kernels())
def test_the_tile_kept_on_chip_saves_nothing_where_every_loop_turns(case):
    """Body entries are tile changes: the rule's two readings agree once each loop has two trips."""
    schedule, problem = case
    kernel, sizes = schedule.kernels[0], problem.sizes()
    kept, entered = (walk(schedule, kernel, sizes, keep=keep) for keep in (True, False))
    for name in ("A", "B"):
        assert kept.reads[name] <= entered.reads[name]
    if all(loop.tile < sizes[loop.axis] for loop in kernel.nest):
        assert (kept.reads, kept.writes) == (entered.reads, entered.writes)


@given(matmul_kernels(), st.integers(0, 5))
def test_a_finer_loop_inside_a_loop_is_one_loop_in_the_finer_tile(case, at):
    schedule, problem = case
    kernel = schedule.kernels[0]
    assume(kernel.nest)
    loop = kernel.nest[at % len(kernel.nest)]
    split = []
    for other in kernel.nest:
        split += [Loop(loop.axis, 2 * loop.tile, loop.grid), loop] if other is loop else [other]
    finer = Schedule("split", matmul(), (Kernel("any", ("multiply",), tuple(split)),))
    plain = Schedule("plain", matmul(), (Kernel("any", ("multiply",), kernel.nest),))
    costs = [count(s, problem.sizes(), problem.elements()) for s in (finer, plain)]
    assert costs[0].kernels[0].l2 == costs[1].kernels[0].l2
    assert costs[0].kernels[0].passes == costs[1].kernels[0].passes


# -- pieces ----------------------------------------------------------------------------------------


def one(nest: tuple[Loop, ...], **options):
    """Counts of a 64 × 64 × 64 matmul in a nest, two bytes an element."""
    schedule = Schedule("one", matmul(), (Kernel("one", ("multiply",), nest, **options),))
    problem = Matmul(64, 64, 64)
    return count(schedule, problem.sizes(), problem.elements()).kernels[0]


def test_an_output_summed_by_an_outer_loop_comes_back_on_every_pass_but_the_first():
    # k outside in 4 steps: C leaves 4 times and comes back 3 times; 8192 bytes each.
    nest = Loop("k", 16), Loop("m", 16), Loop("n", 16)
    assert one(nest).l2["C"] == Traffic(read_bytes=3 * 8192, write_bytes=4 * 8192)
    assert one(nest, zeroed=frozenset({"C"})).l2["C"].read_bytes == 4 * 8192
    # Kept in fp32 until the last write, which is in the final type.
    spilt = one(nest, spill={"C": "accumulator"}).l2["C"]
    assert spilt == Traffic(read_bytes=3 * 16384, write_bytes=3 * 16384 + 8192)


def test_an_output_summed_by_a_grid_loop_is_left_in_parts_or_added_atomically():
    nest = Loop("k", 16, grid=True), Loop("m", 16, grid=True), Loop("n", 16, grid=True)
    assert one(nest, spill={"C": "accumulator"}).l2["C"] == Traffic(write_bytes=4 * 16384)
    atomic = one(nest, atomic=frozenset({"C"}), spill={"C": "accumulator"}).l2["C"]
    assert atomic == Traffic(atomic_bytes=4 * 16384)
    # An atomic add reads and writes its payload.
    assert atomic.total_bytes == 8 * 16384


def test_the_footprint_is_what_a_block_holds_at_once():
    # FA2 order, 128 × 64, d 128, bf16, 2 stages. Shared: Q 128·128, K and V 2 · 64·128, times 2 B.
    # Registers: S (fp32) and P (bf16) 128·64, O 128·128 fp32, L 128 fp32.
    problem = Attention(1, 1, 1, 4096, 4096, 128)
    kernel = count(tiled(None, 128, 64), problem.sizes(), problem.elements()).kernels[0]
    assert kernel.shared_footprint_bytes == 2 * (128 * 128 + 2 * 2 * 64 * 128)
    assert kernel.register_footprint_bytes == 128 * 64 * 6 + 128 * 128 * 4 + 128 * 4


def test_exponentials_and_rescales_of_a_streamed_softmax():
    # One exponential a score; 3.5 vector operations a score, and every one of 64 key tiles
    # rescales O: 4096 · 128 multiplies (FlashAttention-2, section 3.1). FA1's order also
    # divides and rescales twice: 3 a pass.
    problem = Attention(1, 1, 1, 4096, 4096, 128)
    costs = [
        count(tiled(None, 128, 64, order=order), problem.sizes(), problem.elements())
        for order in (2, 1)
    ]
    for cost, rescales in zip(costs, (1, 3), strict=True):
        assert cost.special_ops == 4096 * 4096
        assert cost.vector_ops == 3.5 * 4096 * 4096 + rescales * 64 * 4096 * 128


def test_undecided_symbols_stay_open():
    sympy = pytest.importorskip("sympy")
    n = sympy.Symbol("n", positive=True, integer=True)
    open_ = where(n > 1, 2, 1)
    assert (open_.subs(n, 1), open_.subs(n, 5)) == (1, 2)


def test_a_nest_without_a_mask_has_no_visits():
    schedule = tiled(None, 8, 8)
    problem = Attention(1, 1, 1, 16, 16, 4)
    bare = rule.nest(schedule, schedule.kernels[0], problem.sizes())
    with pytest.raises(ValueError, match="visits every pair"):
        bare.visits_of({})


def test_a_kernel_that_has_no_keys_visits_no_pairs():
    problem = Attention(1, 2, 2, 70, 90, 16, causal=True)
    schedule = tiled_backward(problem.mask(), 16, 16)
    delta, main = schedule.kernels
    sizes = problem.sizes()
    assert rule.nest(schedule, main, sizes).visits is not None
    # Queries alone, whether or not the kernel is said to skip what the mask hides.
    for kernel in (delta, replace(delta, masked=True)):
        assert rule.nest(schedule, kernel, sizes).visits is None


def test_grid_loops_inside_others_are_refused():
    with pytest.raises(ProblemError, match="outside"):
        Kernel("bad", ("multiply",), (Loop("k", 8), Loop("m", 8, grid=True)))
