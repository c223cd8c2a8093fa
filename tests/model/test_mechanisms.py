"""Single mechanisms of the time model against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from draws import KINDS, make
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.operators.included import included_seconds
from perfmodel.predict import predict_arrays
from perfmodel.schedules import rowwise
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing import attention_style, circumstances, memory, splitkv
from perfmodel.timing import kernel as kernel_module
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import default
from perfmodel.timing.kernel import time_kernel
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.occupancy import residency
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Code, Style
from perfmodel.timing.traffic import traffic

H100 = machine(load("h100-sxm"))
CONSTANTS = default()


def traffic_of(problem, schedule, device=H100):
    elements = problem.elements()
    (cost,) = count(schedule, problem.sizes(), elements).kernels
    held = residency(device, cost)
    return cost, held, traffic(device, CONSTANTS, schedule, cost, elements, held, Circumstances())


# ---- Memory --------------------------------------------------------------------------------------


def test_a_copy_turns_the_bus_around_for_half_of_its_bytes_and_a_long_sum_for_its_result():
    """DRAM turnarounds are charged on the fewer of bytes read and bytes written."""
    copy = Rowwise("pointwise", 4096, 4096, "fp32")
    _, _, moved = traffic_of(copy, rowwise.elementwise(copy))
    assert moved.turnaround_bytes == moved.hbm_bytes / 2 == 4096 * 4096 * 4
    long = Matmul(128, 128, 2**20)
    _, _, moved = traffic_of(long, tiled_matmul(128, 128, 64))
    assert moved.turnaround_bytes == 128 * 128 * 2


@given(st.integers(1, 4), st.integers(1, 4), st.integers(1, 64))
def test_a_units_port_brings_its_blocks_bytes_at_64_a_clock(down, across, steps):
    """One block a unit, which asks for its rows of A, its columns of B, and stores its tile."""
    problem = Matmul(128 * down, 64 * across, 64 * steps)
    schedule = tiled_matmul(128, 64, 64)
    cost, held, moved = traffic_of(problem, schedule)
    port = (2 * 64 * steps * (128 + 64) + 2 * 128 * 64) / (64 * H100.clock_hz)
    found = memory.l2_seconds(H100, CONSTANTS, cost, held, moved.l2_bytes)
    chip = moved.l2_bytes / (H100.l2_bytes_per_s * CONSTANTS["l2_share"])
    assert found == pytest.approx(max(port, chip))
    assert port > chip  # so few blocks leave most of the L2's rate unused


# ---- Units ---------------------------------------------------------------------------------------


def test_exact_functions_take_six_operations_and_an_integer_one_each():
    """On Hopper each takes an issue slot, and there are as many of those as vector lanes."""
    problem = Rowwise("softmax", 4096, 1024, "fp32")
    schedule = rowwise.rows(problem)
    elements = problem.elements()
    (cost,) = count(schedule, problem.sizes(), elements).kernels
    plain = Style(compute="fp32")
    times = [
        time_kernel(H100, CONSTANTS, schedule, cost, elements, style).terms["vector"]
        for style in (plain, replace(plain, code=Code(accurate=True)))
    ]
    assert times[1] / times[0] == pytest.approx(
        (cost.vector_ops + 7 * cost.special_ops) / cost.vector_ops, rel=1e-3
    )


def test_scores_that_pass_through_shared_memory_take_their_bytes_at_its_rate():
    """xFormers: 2 bytes a score written once and read by d / 32 warps, beside 4·d operations."""
    columns, style = kernel_facts("xformers").passed_columns, Style("fp16", matrix_share=0.5)
    assert columns == 32
    for dim, passed in ((64, 6), (128, 10), (256, 18)):
        scores = 128 * 128
        matrix = 4 * dim * scores / (0.5 * H100.matrix_per_unit("fp16"))
        through = passed * scores / H100.shared_bytes_per_unit
        found = attention_style.passing(style, columns, H100, dim)
        assert found == pytest.approx(through / matrix)


# ---- What lies around a kernel -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("batch", "groups", "heads", "copies"), [(4, 2, 16, 4), (1, 2, 16, 1), (4, 1, 16, 1)]
)
def test_flash_2_copies_all_query_heads_around_its_grouped_decode(batch, groups, heads, copies):
    problem = Attention(batch, heads, groups, 1, 4096, 128)
    around = circumstances.circumstances("cuda_graph", "attention", CONSTANTS)
    found = splitkv._regrouping(problem, Setting(H100, CONSTANTS, around))
    whole = Rowwise("pointwise", batch * heads, 128)
    setting = Setting(H100, CONSTANTS, around)
    copy = splitkv.rowchain.beside(setting, whole, "torch-pointwise")
    once = setting.at_clock("kernel_gap") + copy
    assert found == pytest.approx(copies * once)


def test_what_a_run_includes_is_what_it_names():
    """A rotary embedding reads and writes queries and fresh keys once; a name adds its own part."""
    problem = Attention(4, 32, 8, 128, 128, 128)
    around = circumstances.circumstances("cuda_graph", "attention", CONSTANTS)

    def extra(*names: str) -> float:
        kernel = kernel_facts("flash3")
        found = included_seconds(Setting(H100, CONSTANTS, around), problem, kernel, names)
        return float(np.asarray(found).max())

    rotated = 2 * 2 * 4 * 128 * (32 + 8) * 128
    assert extra("rope") == pytest.approx(rotated / memory.hbm_rate(H100, CONSTANTS))
    assert extra("kv_write") > extra("quantise_activations") == extra() == 0
    assert extra("rope", "kv_write") == pytest.approx(extra("rope") + extra("kv_write"))


@pytest.mark.parametrize("kind", KINDS)
def test_every_kernels_traffic_is_possible(kind, monkeypatch):
    """Shares lie between 0 and 1, and no level delivers more than it was asked for."""
    seen = []

    def recorded(machine_, constants, schedule, cost, *rest, **more):
        found = traffic(machine_, constants, schedule, cost, *rest, **more)
        seen.append((cost, found))
        return found

    monkeypatch.setattr(kernel_module, "traffic", recorded)
    problem, schedule = make(kind, 11, 8)
    predict_arrays(problem, load("h100-sxm"), schedule=schedule)
    assert seen
    for cost, found in seen:
        asked, touched = cost.bytes_at("l2"), cost.bytes_at("hbm")
        for share in (found.missed, found.near, found.missed + found.near):
            assert np.all((share >= 0) & (share <= 1 + 1e-9))
        assert np.all(found.hbm_bytes >= 0)
        assert np.all(found.l2_bytes <= asked * (1 + 1e-9))
        assert np.all(2 * found.turnaround_bytes <= found.hbm_bytes * (1 + 1e-9))
        if not cost.nest.kernel.steps:  # what was just written, all of it at most
            assert np.all(found.hbm_bytes <= touched * (1 + 1e-9))
