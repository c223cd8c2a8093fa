"""Predictions that were once silently wrong, each with the law that it violated."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from draws import DRAWS
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.algorithm import Band
from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import Device, load, names
from perfmodel.predict import predict, predict_arrays, rank
from perfmodel.render import roofs
from perfmodel.timing.knowledge import table
from perfmodel.timing.libraries import is_known, kernels
from perfmodel.timing.physical import dense_peak

H100, A100, T4, B200 = (load(name) for name in ("h100-sxm", "a100-sxm4-80gb", "t4", "b200"))
DEVICES = st.sampled_from(names()).map(cache(load))


# ---- Masks ---------------------------------------------------------------------------------------


def brute_pairs(band: Band, queries: int, keys: int) -> int:
    shift = keys - queries
    return sum(
        (band.left is None or key > query + shift - band.left)
        and (band.right is None or key <= query + shift + band.right)
        for query in range(queries)
        for key in range(keys)
    )


edges = st.none() | st.integers(0, 15)


@given(st.integers(1, 12), st.integers(1, 12), edges.filter(lambda left: left != 0), edges)
def test_pairs_that_a_band_leaves_are_those_of_the_brute_force(queries, keys, left, right):
    band = Band("q", "x", left, right)
    expected = brute_pairs(band, queries, keys)
    assert band.visible_pairs(queries, keys) == expected
    arrays = band.visible_pairs(np.array([queries]), np.array([keys]))
    assert arrays.tolist() == [expected]


@pytest.mark.parametrize("causal", [True, False])
def test_windows_over_several_lengths_are_those_of_each_alone(causal):
    lengths, windows = np.array([1024, 4096, 4096, 300]), np.array([512, 512, 1, 9000])
    many = Attention(2, 8, 8, lengths, lengths, 64, causal=causal, window=windows)
    found = predict_arrays(many, H100)
    for i, (length, window) in enumerate(zip(lengths.tolist(), windows.tolist(), strict=True)):
        one = predict(replace(many, seq_q=length, seq_kv=length, window=window), H100)
        assert found.seconds[i] == one.seconds
        assert found.useful_flops[i] == one.useful_flops


def test_operations_are_those_that_the_mask_leaves():
    # 32k queries that see 1,024 keys each, but for the first 1,023: 4·64 operations a pair.
    pairs = 32768 * 1024 - 1023 * 1024 // 2
    windowed = Attention(1, 1, 1, 32768, 32768, 64, causal=True, window=1024)
    assert windowed.flops() == 4 * 64 * pairs
    # The papers' convention of a causal square, and what it is of a few queries at its end.
    assert Attention(1, 1, 1, 4096, 4096, 64, causal=True).flops() == 4 * 64 * 4096**2 / 2
    late = Attention(1, 1, 1, 16, 4096, 64, causal=True)
    assert late.flops() == 4 * 64 * (16 * 4096 - 16**2 / 2)
    assert Attention(1, 1, 1, 1, 4096, 64, causal=True).flops() == 4 * 64 * 4096


# ---- Rates ---------------------------------------------------------------------------------------

problems = st.one_of(
    st.builds(
        Matmul,
        *(st.integers(1, 8192) for _ in range(3)),
        st.just(1),
        st.sampled_from(["bf16", "fp16", "fp32", "fp8", "w8a8_int8", "w4a16"]),
    ),
    st.builds(
        lambda batch, heads, queries, more, causal, window, dtype, direction: Attention(
            batch, heads, heads, queries, queries + more, 64, causal=causal, window=window,
            dtype=dtype, direction=direction,
        ),
        st.integers(1, 8), st.integers(1, 8), st.integers(1, 4096), st.integers(0, 4096),
        st.booleans(), st.none() | st.integers(1, 4096), st.sampled_from(["bf16", "fp16", "fp32"]),
        st.sampled_from(["fwd", "bwd"]),
    ),
)  # fmt: skip


def predicted(problem, device: Device):
    """The prediction, counted; none where the device has no such rate or no tile fits."""
    found = DRAWS.run(problem, device)
    return None if found is None else found.one(0)


@examples(6)
@given(problems, DEVICES)
def test_no_rate_exceeds_the_peak_of_the_unit_that_multiplies(problem, device):
    found = predicted(problem, device)
    if found is None:
        return
    peak = dense_peak(problem, device)
    assert found.useful_flops <= peak * found.seconds * (1 + 1e-9)
    assert found.useful_flops <= peak * found.low_seconds * (1 + 1e-9)


@given(problems, st.sampled_from(["h100-sxm", "b200", "rtx5090", "mi300x", "a100-sxm4-80gb"]))
def test_no_prediction_lies_above_its_own_roofs(problem, slug):
    device = load(slug)
    found = predicted(problem, device)
    if found is None or found.flops["matrix"] == 0:
        return
    dtype = problem.dtype if problem.dtype in device.matrix_types else "bf16"
    drawn = roofs.roofs(device, [dtype])
    kernel = roofs.Kernel("it", slug, found.flops_per_second, found.intensity)
    above = drawn.above(kernel)
    assert not above or found.flops_per_second <= dense_peak(problem, device)
    for level in found.bytes:
        if level in drawn.levels:
            rate = found.bytes[level] / found.seconds
            assert rate <= drawn.levels[level].highest * 1.01, level


@pytest.mark.parametrize("slug", ["v100-sxm2", "t4", "rtx2080ti"])
def test_bf16_without_instructions_runs_as_fp32_and_says_so(slug):
    device = load(slug)
    wide = predict(Matmul(4096, 4096, 4096, 1, "fp32"), device)
    found = predict(Matmul(4096, 4096, 4096, 1, "bf16"), device)
    assert found.seconds > 0.9 * wide.seconds
    assert found.seconds > 3 * predict(Matmul(4096, 4096, 4096, 1, "fp16"), device).seconds
    said = f"{slug} has no bf16 rate: values are widened and multiplied as fp32"
    assert said in found.assumptions
    assert said in predict(Attention(1, 8, 8, 512, 512, 64, dtype="bf16"), device).assumptions


def test_a_device_that_cannot_widen_bf16_refuses_it():
    with pytest.raises(ProblemError, match="groq-lpu has no bf16 matrix rate; it has: fp16, int8"):
        predict(Matmul(64, 64, 64, 1, "bf16"), load("groq-lpu"))


def test_one_chip_has_one_roof_for_its_sixteen_bit_types():
    for slug in names():
        device = load(slug)
        if {"fp16", "bf16"} <= set(device.matrix_types):
            if device.matrix_flops("fp16") != device.matrix_flops("bf16"):
                continue
            one, other = (roofs.roofs(device, [dtype]).matrix[0] for dtype in ("fp16", "bf16"))
            assert (one.value, one.datasheet) == (other.value, other.datasheet), slug


# ---- Limiters ------------------------------------------------------------------------------------


def test_the_limiter_is_the_largest_term_and_power_only_where_it_binds():
    for problem in (
        Attention(4, 32, 8, 4096, 4096, 128, causal=True),
        Matmul(8192, 8192, 8192),
        Rowwise("softmax", 8192, 4096),
    ):
        found = predict(problem, H100)
        others = {name: time for name, time in found.terms.items() if name != "power"}
        first, second = sorted(others, key=lambda name: -others[name])[:2]
        if found.limiter == "power":
            assert found.terms["power"] >= max(others.values())
            assert found.runner_up == first
        else:
            assert (found.limiter, found.runner_up) == (first, second)


def test_power_that_is_slack_is_no_limiter_however_large_its_term():
    terms = {name: np.array([value]) for name, value in {
        "matrix": 7.0, "hbm": 3.0, "power": 7.7, "blocks": 0.0, "gap": 0.0, "launch": 0.0,
        "included": 0.0,
    }.items()}  # fmt: skip
    assert rank(terms, np.array([9.9])) == (["matrix"], ["hbm"])
    assert rank(terms, np.array([7.7])) == (["power"], ["matrix"])


# ---- What is not known ---------------------------------------------------------------------------


def test_a_generation_that_nobody_knows_is_said():
    known = replace(H100, compute_capability="13.0", slug="next")
    found = predict(Matmul(4096, 4096, 4096), known)
    assert any("nothing is known of compute capability 13.0" in s for s in found.assumptions)
    assert not any("nothing is known" in s for s in predict(Matmul(64, 64, 64), H100).assumptions)


@pytest.mark.parametrize(
    ("options", "widening"),
    [({"implementation": "nobodys"}, "implementation"), ({"harness": "unknown"}, "harness")],
)
def test_a_name_that_nobody_knows_is_said_and_widens_the_range(options, widening):
    problem, named = Matmul(4096, 4096, 4096), {"implementation": "cublas"}
    usual, found = (predict(problem, H100, **named | more) for more in ({}, options))
    assert len(found.assumptions) == len(usual.assumptions) + 1
    assert "is not known" in found.assumptions[-1]

    def width(item):
        return np.log(item.high_seconds / item.seconds)

    expected = width(usual) * table()["factors"][widening]["assumed"][1]
    if widening == "implementation":
        expected = max(width(usual), table()["families"]["gemm-16"]["assumed"][1])
    assert expected > width(usual)
    assert width(found) == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    "problem",
    [Attention(1, 8, 8, 4, 512, 128), Matmul(64, 64, 64), Rowwise("softmax", 64, 64)],
    ids=lambda problem: type(problem).__name__,
)
def test_a_class_of_another_operator_is_said_and_not_taken(problem):
    """A table may name any class for any operator: the row is predicted as if nobody knew it."""
    op = {"Attention": "attention", "Matmul": "gemm", "Rowwise": "softmax"}[type(problem).__name__]
    for name in kernels().keys() - {"cpu-blocked"}:
        found = predict(problem, H100, implementation=name)
        said = any(f"{name!r} is not known" in line for line in found.assumptions)
        assert said or is_known(op, name)
        assert kernels()[name].operator in (op, "rowwise") or found.implementation != name


def test_a_processor_says_that_it_is_no_gpu_and_has_a_first_guess_of_a_range():
    found = predict(Rowwise("softmax", 4096, 4096), load("xeon-gold-6242"))
    assert any("is not a GPU" in said for said in found.assumptions)
    assert found.high_seconds > 1.9 * found.seconds


def test_what_the_memory_does_not_hold_is_marked():
    large = Matmul(200_000, 200_000, 8192)
    found = predict(large, T4)
    assert not found.fits
    assert any("could not run" in said for said in found.assumptions)
    both = predict_arrays(replace(large, m=np.array([200_000, 64])), A100)
    assert [both.one(i).fits for i in range(2)] == [False, True]
    assert not any("could not run" in said for said in both.one(1).assumptions)


@given(st.integers(1, 4096), st.integers(1, 4096), st.integers(1, 2**18))
def test_split_k_is_what_splits_k(m, n, k):
    found = predict(Matmul(m, n, k), A100)
    assert (found.schedule == "split-k") == (found.tile["slices"] > 1)


def test_slices_are_chosen_without_a_rule_whatever_the_tiles():
    """Tiles are arrays where windows differ; a class may bound its blocks a unit or not."""
    problem = Attention(4, 32, 8, 1, np.array([4096, 8192]), 128, window=np.array([128, 0]))
    for name in ("cudnn", "flash4", "flash-triton", "xformers"):
        found = predict_arrays(problem, B200, implementation=name, schedule="split-kv")
        assert np.all(np.isfinite(found.seconds))


def test_every_error_here_is_the_tools_own():
    with pytest.raises(PerfmodelError, match="harness 'nobodys' is not known; it is one of kernel"):
        predict(Matmul(64, 64, 64), H100, harness="nobodys")
