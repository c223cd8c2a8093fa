"""What memory of a kind gives, what a loop leaves in a cache, and whose time a start is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfmodel.algorithms import Matmul, Rowwise
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing import floors
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.memory import hbm_rate
from perfmodel.timing.rowwise import _device_layout, _integer_ops
from perfmodel.timing.traffic import held_share, swept_share

CONSTANTS = default()
H100, L40S, T4 = load("h100-sxm"), load("l40s"), load("t4")
STATIC = "vllm-0.24.0:static_scaled_fp8_quant"
SGLANG = "sglang-0.5.14:sglang"


@pytest.mark.parametrize("slug", ["t4", "l4", "l40s", "a10", "a40"])
def test_bits_of_error_correction_in_the_memory_itself_take_a_fifth_of_its_bandwidth(slug):
    here = machine(load(slug))
    without = hbm_rate(replace(here, inline_ecc=False), CONSTANTS)
    assert here.inline_ecc
    assert hbm_rate(here, CONSTANTS) == pytest.approx(CONSTANTS["inline_ecc_share"] * without)
    assert CONSTANTS["inline_ecc_share"] == pytest.approx(0.8, abs=0.03)
    # Reads; copies of T4, L4 and L40S reach 0.74 to 0.78 of their peaks.
    assert 0.7 < hbm_rate(here, CONSTANTS) / here.hbm_bytes_per_s < 0.83


@pytest.mark.parametrize("slug", ["a100-sxm4-80gb", "h100-sxm", "rtx4090", "p100-pcie-16gb"])
def test_memory_with_a_place_for_them_or_none_loses_nothing(slug):
    assert not machine(load(slug)).inline_ecc


def test_lines_that_both_halves_of_a_cache_keep_leave_room_for_two_thirds():
    assert machine(H100).l2_distinct_bytes == pytest.approx(2 / 3 * 50 * 2**20, rel=1e-3)
    assert machine(L40S).l2_distinct_bytes == 96 * 2**20


def test_what_a_loop_sweeps_is_held_or_gone():
    for share, least, most in ((0.7, 0.99, 1.0), (1.0, 0.5, 0.5), (1.3, 0.0, 0.02)):
        assert least <= swept_share(share * 1e8, 1e8, 1.0) <= most
    assert held_share(1.3e8, 1e8, 1.0) > 0.2  # distances within a kernel differ
    assert swept_share(1.0, 0.0, 1.0) == 0.0
    assert swept_share(np.array([1e30]), 1.0, 1.0) < 1e-9


def test_a_captured_loop_that_fits_leaves_nothing_for_memory():
    # 4096 × 4096 in bf16 and fp8: 50 MB, in 96 MiB of an L40S and two thirds of 50 of an H100.
    problem = Rowwise("quantise", 4096, 4096)
    moved = {
        (device.slug, harness): predict(
            problem, device, harness=harness, implementation=STATIC
        ).bytes["hbm"]
        for device in (L40S, H100) for harness in ("cuda_graph", "kernel")
    }  # fmt: skip
    every = moved["l40s", "kernel"]
    assert every == pytest.approx(3 * 4096 * 4096, rel=0.01)
    assert moved["l40s", "cuda_graph"] < 0.01 * every
    assert moved["h100-sxm", "cuda_graph"] > 0.99 * every


def test_where_other_kernels_run_between_what_is_written_is_new():
    problem = Rowwise("quantise", 1024, 4096)
    found = predict(problem, L40S, harness="profiler", implementation=STATIC)
    assert found.bytes["hbm"] == pytest.approx(1024 * 4096, rel=0.05)  # the result alone


@pytest.mark.parametrize(
    ("m", "n", "k", "share"),
    [
        (16, 2048, 2048, 0.0),  # 50 MB of weights in turn
        (16, 8192, 4096, 1.0),  # 400 MB
        (8192, 2048, 64, 0.0),  # 35 MB of results, in the same memory each time
    ],
)
def test_weights_that_take_turns_lie_in_a_cache_that_holds_all_copies(m, n, k, share):
    found, cold = (
        predict(Matmul(m, n, k), L40S, harness=harness, implementation=SGLANG).bytes["hbm"]
        for harness in ("cuda_graph", "kernel")
    )
    assert found / cold == pytest.approx(share, abs=0.03)


def test_a_captured_kernel_starts_by_the_clock_of_the_device():
    run = CONSTANTS.run("cuda_graph")
    for device in (T4, H100, L40S):
        clock = 1.75e9 / machine(device).clock_hz
        assert floors.pace(run, "gemm", machine(device), CONSTANTS) == pytest.approx(clock)
        assert floors.pace(run, "quantise", machine(device), CONSTANTS) == pytest.approx(clock)
        assert floors.pace(run, "attention", machine(device), CONSTANTS) == 1.0


def test_hosts_are_of_the_years_of_their_boards():
    run = CONSTANTS.run("cuda_events_eager")
    older, same, newer = (
        floors.pace(run, "softmax", machine(load(slug)), CONSTANTS)
        for slug in ("t4", "a100-sxm4-80gb", "h100-sxm")
    )
    assert (older, same) == (1.0, 1.0)
    assert newer == pytest.approx(CONSTANTS["host_pace"] ** 2)
    small = Rowwise("softmax", 16, 64, "fp32")
    found = predict(small, H100, harness="cuda_events_eager", implementation="torch").seconds
    assert found == pytest.approx(newer * run.call_seconds("softmax"), rel=0.01)


def test_a_compiled_call_takes_three_eager_ones():
    small = Rowwise("pointwise", 16, 64, "fp32", "relu")
    eager, compiled = (
        predict(small, load("a100-sxm4-80gb"), harness="cuda_events_eager", implementation=name)
        for name in ("torch-eager", "torch-compile")
    )
    assert 2.0 < compiled.seconds / eager.seconds < 4.0


def test_a_chain_moves_what_each_of_its_operators_does():
    # x / scale reads 2 bytes an element and writes 4, the clamp 4 and 4, to(fp8) 4 and 1, the copy
    # 1 and 1: 21 where no cache holds anything.
    problem = Rowwise("quantise", 65536, 32768)
    found = predict(problem, L40S, harness="cuda_graph", implementation=SGLANG)
    assert found.bytes["hbm"] == pytest.approx(21 * 65536 * 32768, rel=1e-3)
    small = predict(Rowwise("quantise", 8, 64), L40S, harness="cuda_graph", implementation=SGLANG)
    gap = machine(L40S).at_clock(CONSTANTS["kernel_gap"])
    assert small.terms["gap"] == pytest.approx(3 * gap)


def test_threads_that_stride_over_whole_loads_leave_none_of_them_apart():
    layout = kernel_facts("vllm-static-quantise").rows
    assert layout is not None
    assert layout.strided
    problem = Rowwise("quantise", 100, 6144)
    rounds = replace(layout, strided=False)
    here = machine(load("h100-sxm"))
    strided, plain = (_device_layout(each, problem, here) for each in (layout, rounds))
    whole, ragged = (_integer_ops(problem, each) for each in (strided, plain))
    assert whole == pytest.approx(4 * 100 * 6144 * 2 / 16)
    assert ragged > 4 * whole  # a third of each row goes one element at a time
    ends = _integer_ops(Rowwise("quantise", 100, 6145), strided)
    assert whole < ends < 1.02 * whole


def test_amds_library_functions_are_longer():
    problem = Rowwise("pointwise", 8192, 8192, "fp32", "pow", inputs=2)
    power, product = (
        predict(replace(problem, variant=name), load("mi210"), implementation="torch-eager")
        for name in ("pow", "mul")
    )
    assert power.implementation == "torch-pointwise-rocm"
    assert power.limiter == "vector"
    assert 1.5 < power.seconds / product.seconds < 2.5  # 1.8 to 2 as published
