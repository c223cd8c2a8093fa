"""What a kernel does not hide: filling and draining, latency by level, a moment above the power."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing import memory, traffic
from perfmodel.timing.classes import kernel_class
from perfmodel.timing.constants import default
from perfmodel.timing.included import included_seconds
from perfmodel.timing.kernel import Style, fill_seconds
from perfmodel.timing.machine import machine
from perfmodel.timing.occupancy import residency

H100, T4 = load("h100-sxm"), load("t4")
CONSTANTS = default()
STAGES = ("matrix", "shared", "special", "vector", "l2", "hbm", "latency")
seconds = st.floats(1e-7, 1e-3)


def block(k: int = 8192):
    """Cost and residency of a matmul of one 128 × 128 tile in steps of 64."""
    schedule = tiled_matmul(128, 128, 64, stages=4)
    problem = Matmul(128, 128, k)
    cost = count(schedule, problem.sizes(), problem.elements()).kernels[0]
    return cost, residency(machine(H100), cost, 1)


@given(st.tuples(*[seconds] * len(STAGES)))
def test_one_block_fills_once_with_what_its_longest_stage_leaves(times):
    terms = {name: np.asarray(time) for name, time in zip(STAGES, times, strict=True)}
    cost, where = block()
    alone = [max(times[0], times[1]), *times[2:]]
    expected = (sum(alone) - max(alone)) / 128
    found = fill_seconds(terms, cost, where, Style("fp16"))
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)


@given(st.tuples(*[seconds] * len(STAGES)), st.integers(1, 1000))
def test_blocks_that_load_ahead_never_fill_for_longer(times, rounds):
    terms = {name: np.asarray(time) for name, time in zip(STAGES, times, strict=True)}
    cost, where = block()
    where = replace(where, busiest=np.asarray(float(rounds)))
    plain = fill_seconds(terms, cost, where, Style("fp16"))
    ahead = fill_seconds(terms, cost, where, Style("fp16", persistent=True))
    shared = fill_seconds(
        terms, cost, replace(where, blocks_per_unit=np.asarray(4.0)), Style("fp16")
    )
    assert 0 <= ahead <= plain * (1 + 1e-12)
    assert shared <= plain * (1 + 1e-12)


@given(st.floats(0, 1), st.floats(0, 1))
def test_latency_lies_between_the_cache_and_the_memory_and_grows_with_misses(one, other):
    here = machine(H100)
    less, more = sorted((one, other))
    found = memory.mean_latency(here, less)
    assert here.l2_latency <= found <= here.hbm_latency
    assert memory.mean_latency(here, more) >= found


def missed(m: int, n: int, k: int, warm: float = 0.0) -> float:
    """Share of the loads of 128 × 128 tiles that wait for an H100's memory."""
    schedule = tiled_matmul(128, 128, 64, stages=4, group_m=8)
    problem = Matmul(m, n, k)
    elements = problem.elements()
    cost = count(schedule, problem.sizes(), elements).kernels[0]
    here = machine(H100)
    where = residency(here, cost)
    found = traffic.traffic(here, CONSTANTS, schedule, cost, elements, where, warm)
    return float(found.missed)


@given(st.integers(1, 1024), st.integers(1, 1024), st.integers(64, 4096))
def test_blocks_of_one_wave_share_every_miss_and_each_waits_for_it(m, n, k):
    # At most 64 tiles: one wave, however many of them share a row or a column.
    assert missed(m, n, k) == pytest.approx(1.0)


@given(st.integers(1, 2**15), st.integers(1, 2**15), st.integers(64, 8192), st.floats(0, 1))
def test_misses_are_a_share_and_fall_with_what_an_earlier_run_left(m, n, k, warm):
    cold = missed(m, n, k)
    assert 0 <= missed(m, n, k, warm) <= cold <= 1


def test_later_waves_find_what_earlier_ones_fetched():
    assert missed(16384, 16384, 256) < 0.6


def test_a_timing_loop_starts_on_a_cool_board():
    # A T4 at 70 W: 4096³ in fp32 takes milliseconds, and its power holds it down.
    problem = Matmul(4096, 4096, 4096, dtype="fp32")
    steady = predict(problem, T4)
    timed = predict(problem, T4, harness="cuda_events_eager")
    assert steady.limiter == "power"
    credit = steady.terms["power"] - timed.terms["power"]
    assert credit == pytest.approx(CONSTANTS["power_credit"], rel=1e-6)


@given(st.integers(1, 16384), st.integers(64, 65536))
def test_quantising_activations_costs_more_for_more_of_them(m, k):
    def cost(rows: int, columns: int) -> float:
        kernel = kernel_class("cutlass-fp8")
        problem = Matmul(rows, 512, columns, dtype="fp8")
        includes = ("quantise_activations",)
        found = included_seconds(machine(H100), CONSTANTS, problem, kernel, includes)
        return float(np.asarray(found).reshape(-1)[0])

    assert cost(m, k) > CONSTANTS["quantise_price"]
    assert cost(2 * m, k) >= cost(m, k)
    # The 16-bit rows are read and the 8-bit ones written at the least.
    assert cost(m, k) >= 3 * m * k / 3.352e12 - 2 * 50 * 2**20 / 3.352e12


def test_a_scalar_activation_kernel_is_slower_than_a_vector_one():
    problem = Rowwise("pointwise", 8192, 14336, "fp16", variant="silu_mul", inputs=2)
    device = load("a100-sxm4-80gb")
    scalar = predict(problem, device, implementation="vllm-activation")
    vector = predict(problem, device, implementation="torch-pointwise")
    assert scalar.bytes["hbm"] == pytest.approx(vector.bytes["hbm"], rel=0.05)
    assert 1.05 < scalar.seconds / vector.seconds < 4


def test_a_narrow_cache_costs_one_more_kernel_for_the_queries():
    wide = Attention(32, 32, 8, 1, 1024, 128)
    narrow = replace(wide, kv_dtype="fp8")
    options = {"harness": "cuda_graph", "implementation": "flash3", "includes": ("kv_write",)}
    extra = [predict(p, H100, **options).terms["included"] for p in (wide, narrow)]
    # Half the bytes are written, but queries are narrowed in a kernel of their own.
    assert extra[1] > extra[0]
