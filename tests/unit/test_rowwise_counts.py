"""Row-wise and element-wise operators: the rule against the walker, and their passes."""

from __future__ import annotations

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from walker import same

from perfmodel.algorithms import Attention, Rowwise
from perfmodel.count import count
from perfmodel.errors import UnknownName
from perfmodel.schedules.rowwise import elementwise, rows

lengths = st.integers(1, 70)
tiles = st.integers(1, 24)
ops = st.sampled_from(["softmax", "layernorm", "rmsnorm", "quantise"])
graded = st.sampled_from(["softmax", "layernorm", "rmsnorm"])


def counts(schedule, problem: Rowwise):
    return count(schedule, problem.sizes(), problem.elements())


@given(ops, lengths, lengths, tiles, st.none() | tiles)
def test_rows_forward(op, height, width, block, column_tile):
    problem = Rowwise(op, height, width)
    same(rows(problem, block, column_tile), problem.sizes(), problem.elements())


@given(graded, lengths, st.integers(1, 150), tiles, st.none() | tiles)
def test_rows_backward(op, height, width, block, column_tile):
    problem = Rowwise(op, height, width, direction="bwd")
    same(rows(problem, block, column_tile), problem.sizes(), problem.elements())


@given(lengths, lengths, st.integers(1, 5), st.integers(1, 3), st.integers(1, 400))
def test_elementwise(height, width, inputs, outputs, tile):
    problem = Rowwise("pointwise", height, width, inputs=inputs, outputs=outputs)
    same(elementwise(problem, tile), problem.sizes(), problem.elements())
    cost = counts(elementwise(problem, tile), problem)
    assert cost.bytes_at("l2") == cost.bytes_at("hbm") == (inputs + outputs) * height * width * 2


@given(ops, st.lists(st.tuples(lengths, lengths, tiles, tiles), min_size=1, max_size=6))
def test_arrays_of_problems_are_each_of_them(op, cases):
    height, width, block, column = (np.array(c) for c in zip(*cases, strict=True))
    problem = Rowwise(op, height, width)
    together = counts(rows(problem, block, column), problem)
    for i, (h, w, b, c) in enumerate(cases):
        alone = counts(rows(Rowwise(op, h, w), b, c), Rowwise(op, h, w))
        assert together.bytes_at("l2")[i] == pytest.approx(alone.bytes_at("l2"), rel=1e-12)
        assert together.vector_ops[i] == pytest.approx(alone.vector_ops, rel=1e-12)
        assert together.kernels[0].blocks[i] == alone.kernels[0].blocks


@given(ops, lengths, lengths, tiles, tiles)
def test_streaming_a_row_costs_one_more_read_of_it_and_no_more(op, height, width, block, tile):
    problem = Rowwise(op, height, width)
    held, streamed = (counts(rows(problem, block, t), problem).kernels[0] for t in (None, tile))
    extra = {n: t.read_bytes - held.l2[n].read_bytes for n, t in streamed.l2.items()}
    again = height * width * 2 if tile < width else 0
    assert extra.pop("X") == again
    assert set(extra.values()) <= {0}
    if tile <= width:  # a tile longer than its row still sets its whole length aside
        assert streamed.register_footprint_bytes <= held.register_footprint_bytes


def test_a_softmax_row_on_chip_moves_twice_its_size_and_a_streamed_one_three_times():
    problem = Rowwise("softmax", 1024, 8192)
    size = 1024 * 8192 * 2
    assert counts(rows(problem), problem).bytes_at("l2") == 2 * size
    assert counts(rows(problem, 1, 2048), problem).bytes_at("l2") == 3 * size


def test_norms_read_their_weights_once_a_block_and_write_their_statistics():
    # 4096 rows in blocks of 4 read gamma and beta 1024 times; mean and 1/σ in fp32.
    problem = Rowwise("layernorm", 4096, 1024)
    kernel = counts(rows(problem, 4), problem).kernels[0]
    assert kernel.l2["gamma"].read_bytes == kernel.l2["beta"].read_bytes == 1024 * 1024 * 2
    assert kernel.hbm["gamma"].read_bytes == 1024 * 2
    assert kernel.l2["mean"].write_bytes == kernel.l2["rstd"].write_bytes == 4096 * 4
    # Streamed, the row passes twice; the weights play no part in the normaliser and pass once.
    streamed = counts(rows(problem, 4, 256), problem).kernels[0]
    assert streamed.l2["X"].read_bytes == 2 * kernel.l2["X"].read_bytes
    assert streamed.l2["gamma"] == kernel.l2["gamma"]


def test_quantising_writes_one_byte_and_a_scale_a_row():
    problem = Rowwise("quantise", 128, 4096)
    kernel = counts(rows(problem), problem).kernels[0]
    assert kernel.l2["Y"].write_bytes == 128 * 4096
    assert kernel.l2["scale"].write_bytes == 128 * 4


def test_softmax_exponentials():
    problem = Rowwise("softmax", 128, 4096)
    assert counts(rows(problem), problem).special_ops == 128 * 4096


@cases
def test_gradients_of_maps_read_what_the_map_is_not_linear_in(variant, inputs, reads, writes):
    there = Rowwise("pointwise", 64, 128, "fp32", variant, inputs)
    back = Rowwise("pointwise", 64, 128, "fp32", variant, inputs, direction="bwd")
    assert there.streams() == (inputs, 1)
    assert back.streams() == (reads, writes)
    hbm = count(elementwise(back), back.sizes(), back.elements()).bytes_at("hbm")
    assert hbm == (reads + writes) * 64 * 128 * 4


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


def test_symbols():
    sympy = pytest.importorskip("sympy")
    n, t, c = sympy.symbols("n t c", positive=True, integer=True)
    problem = Rowwise("softmax", n, 2 * t * c)
    held = counts(rows(problem), problem)
    assert sympy.simplify(held.bytes_at("l2") - 2 * n * 2 * t * c * 2) == 0
    # Whether a streamed row needs its second pass stays open until the tile count is known.
    streamed = counts(rows(problem, 1, c), problem).bytes_at("l2")
    assert streamed.subs({n: 8, t: 3, c: 16}) == 3 * 8 * 96 * 2


@given(lengths, lengths, st.tuples(*[st.integers(0, 3)] * 4))
def test_an_element_is_accessed_as_often_as_its_tensors_are_moved(height, width, tensors):
    reads, writes, also_reads, also_writes = tensors
    problem = Rowwise(
        "pointwise",
        height,
        width,
        inputs=reads + 1,
        outputs=writes,
        also_inputs=also_reads,
        also_outputs=also_writes + 1,
        also_dtype="bf16",
    )
    assert counts(elementwise(problem), problem).bytes_at("hbm") == (
        2 * height * width * problem.accesses()
    )
