"""What earlier kernels left in the caches: reuse distances in a prediction."""

from __future__ import annotations

import numpy as np
import pytest
from draws import DRAWS, KINDS, make
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import compulsory_bytes
from perfmodel.hardware import load
from perfmodel.operators import load as operator
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing.constants import default
from perfmodel.timing.reuse import Reuse
from perfmodel.timing.traffic import held_share

H100, MI300X = load("h100-sxm"), load("mi300x")


def left(problem, share, distance):
    """Every input as earlier kernels may have left it."""
    return {name: [Reuse(share, distance)] for name in problem.algorithm().inputs}


def swept(problem, distance):
    """Every operand as a run of the same kernel left it."""
    algorithm = problem.algorithm()
    return {
        name: [Reuse(1.0, distance, swept=True)] for name in (*algorithm.inputs, *algorithm.outputs)
    }


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_left_is_what_a_single_kernel_finds(kind):
    problem, schedule = make(kind, 3, 8)
    alone = DRAWS.run(problem, H100, schedule)
    cold = DRAWS.run(problem, H100, schedule, reuse={})
    gone = DRAWS.run(problem, H100, schedule, reuse=left(problem, 1.0, 1e18))
    assert np.array_equal(alone.seconds, cold.seconds)
    assert gone.seconds == pytest.approx(alone.seconds)


@given(
    st.sampled_from(KINDS), st.sampled_from([H100, MI300X]), st.integers(0, 99), st.data()
)  # fmt: skip
def test_the_more_is_left_and_the_less_went_by_the_less_is_moved(kind, device, seed, data):
    problem, schedule = make(kind, seed, 8)
    less, more = sorted((data.draw(st.floats(0, 1)), data.draw(st.floats(0, 1))))
    near, far = sorted(10 ** data.draw(st.floats(3, 10)) for _ in range(2))
    best = DRAWS.run(problem, device, schedule, reuse=left(problem, more, near))
    for share, distance in ((less, near), (more, far)):
        found = DRAWS.run(problem, device, schedule, reuse=left(problem, share, distance))
        if best is None or found is None:
            assert best is None
            assert found is None
            continue
        assert np.all(best.seconds <= found.seconds * (1 + 1e-9))


@pytest.mark.parametrize("op", ["softmax", "rmsnorm", "layernorm", "quantise", "pointwise"])
@pytest.mark.parametrize("rows", [64, 2048, 8192])
def test_a_kernel_that_is_run_again_finds_what_a_warm_run_finds(op, rows):
    """A run that repeats a kernel leaves each operand as far away as all that it touches."""
    problem = Rowwise(op, rows, 2048)
    touched = float(compulsory_bytes(problem))
    again = predict(problem, H100, harness="cuda_graph", reuse=swept(problem, touched))
    warm = predict(problem, H100, harness="cuda_graph")
    assert again.bytes["hbm"] == pytest.approx(warm.bytes["hbm"], rel=1e-3)
    assert again.seconds == pytest.approx(warm.seconds, rel=1e-3)


def test_what_is_found_need_not_be_read():
    """4096 × 4096 in bf16 are 33.6 MB: the output is written, and of the input what is lost read.

    Of 40 MB the L2 of an H100, which holds 35 MB of distinct lines, holds 1 / (1 + (40 / 35)⁴).
    """
    problem, one = Rowwise("pointwise", 4096, 4096), 4096 * 4096 * 2
    found = predict(problem, H100, reuse={"X": [Reuse(1.0, 0.0)]})
    assert found.bytes["hbm"] == pytest.approx(one)
    kept = 1 / (1 + (40e6 / (default()["l2_knee"] * 0.667 * 50 * 2**20)) ** 4)
    half = predict(problem, H100, reuse={"X": [Reuse(0.5, 40e6)]})
    assert half.bytes["hbm"] == pytest.approx(one + one * (1 - 0.5 * kept))
    apart = predict(problem, H100, reuse={"X": [Reuse(0.25, 40e6), Reuse(0.25, 40e6)]})
    assert apart.bytes == half.bytes


def test_a_memory_side_cache_answers_where_the_l2_does_not():
    problem, one = Rowwise("pointwise", 8192, 4096), 8192 * 4096 * 2
    cold = predict(problem, MI300X)
    found = predict(problem, MI300X, reuse={"X": [Reuse(1.0, 100e6)]})
    assert found.bytes["llc"] == pytest.approx(cold.bytes["llc"], rel=0.02)
    caught = held_share(100e6, 256 * 2**20, default()["l2_knee"])
    assert found.bytes["hbm"] == pytest.approx(one + one * (1 - caught))


def test_a_product_reads_no_more_again_than_it_would():
    """What is found spares the first reading of an operand; later ones are the kernel's own."""
    problem = Matmul(16384, 4096, 4096)
    cold = predict(problem, H100)
    found = predict(problem, H100, reuse={"B": [Reuse(1.0, 0.0)]})
    assert found.bytes["hbm"] == pytest.approx(cold.bytes["hbm"] - 4096 * 4096 * 2)


def test_an_operand_behind_a_link_is_read_over_it():
    problem = Attention(4, 32, 8, 1, 8192, 128)
    place = {"kv": "host"}
    cold = predict(problem, H100, place=place)
    found = predict(problem, H100, place=place, reuse=left(problem, 1.0, 0.0))
    assert found.bytes["host"] == cold.bytes["host"]


def test_arrays_are_the_problems_one_by_one():
    rows = np.array([16, 512, 4096])
    shares, distances = np.array([1.0, 0.5, 1.0]), np.array([1e6, 2e7, 4e7])
    every = predict_arrays(
        Matmul(rows, 4096, 4096), H100, reuse={"A": [Reuse(shares, distances)]}
    ).seconds
    for i, seconds in enumerate(every):
        one = Matmul(int(rows[i]), 4096, 4096)
        reuse = {"A": [Reuse(shares[i], distances[i])]}
        assert predict(one, H100, reuse=reuse).seconds == pytest.approx(seconds)


@pytest.mark.parametrize(
    "problem",
    [
        Matmul(64, 64, 64),
        Rowwise("softmax", 64, 64),
        Attention(1, 8, 8, 512, 512, 64, dtype="fp16"),
        operator("conv").problem(height=8, channels=64),
    ],
    ids=lambda problem: problem.operator,
)
@pytest.mark.parametrize("harness", ["kernel", "cuda_graph", "cuda_events_eager", "wall_clock"])
def test_a_prediction_says_which_part_the_host_has_in_it(problem, harness):
    found = predict(problem, H100, harness=harness)
    host, device = found.dispatch, found.seconds - found.terms["launch"]
    started = host["start_seconds"] + host["library_seconds"] + device
    assert found.seconds == pytest.approx(max(host["least_seconds"], started))
    calls = default().run(harness).calls_as is not None
    assert (host["queued_seconds"] > 0) == calls
