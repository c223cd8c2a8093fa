"""Products of 8 and 4 bits: who narrows the activations, pairs of units, dot products, scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import cases

from perfmodel import Matmul, Rowwise, load, predict
from perfmodel.entries import Misfit
from perfmodel.operators.included import included_seconds
from perfmodel.timing import matmul, rowchain, rowwise
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts, resolve
from perfmodel.timing.libraries.files import kernels
from perfmodel.timing.libraries.naming import caller_of
from perfmodel.timing.libraries.soundness import check_links
from perfmodel.timing.machine import DOT_PRODUCTS, machine
from perfmodel.timing.menu import candidates, step_depth
from perfmodel.timing.physical import dense_peak
from perfmodel.timing.plan import time_plan
from perfmodel.timing.power import operation_joules
from perfmodel.timing.setting import Setting

CONSTANTS = default()
near = pytest.approx
B200, H100, T4, P4 = (machine(load(slug)) for slug in ("b200", "h100-sxm", "t4", "p4"))


def column(*sizes: int) -> list[np.ndarray]:
    return [np.array([[size]]) for size in sizes]


# ---- Activations ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cutlass-fp8", "sgl-fp8", "cutlass-fp4", "vllm-deepgemm"])
def test_activations_are_narrowed_by_the_frameworks_own_kernel_to_the_products_type(name):
    kernel, setting = kernel_facts(name), Setting(B200, CONSTANTS)
    (dtype, *_) = kernel.formats
    m, n, k = column(512, 4096, 4096)
    problem = Matmul(m, n, k, dtype=dtype)
    narrow = {"fp8": "fp8", "fp8_block": "fp8_block", "nvfp4": "nvfp4"}[dtype]
    alone = setting.further_seconds + rowchain.beside(
        setting, Rowwise("quantise", m, k, output_dtype=narrow), kernel.quantiser
    )
    assert included_seconds(setting, problem, kernel, ["quantise_activations"]) == near(alone)


@pytest.mark.parametrize(
    "slug", ["h100-sxm", "b200", "l40s", "rtx-pro-6000-server", "a100-sxm4-80gb"]
)
@cases
def test_a_fallback_keeps_the_quantiser_of_the_kernel_that_was_asked_for(slug, dtype, name):
    """What narrows the activations is the caller's, whichever kernel multiplies them."""
    asked, _ = resolve(
        "gemm", name, dtype, machine(load("b200" if dtype == "nvfp4" else "h100-sxm"))
    )
    taken, _ = resolve("gemm", name, dtype, machine(load(slug)))
    assert taken.quantises == asked.quantises
    assert taken.quantiser == asked.quantiser or kernel_facts(taken.name).quantises


@pytest.mark.parametrize("slug", ["h100-sxm", "b200", "l40s"])
def test_every_kernel_of_a_chain_takes_its_gap_and_its_own_shortest_run(slug):
    """Five kernels of a few rows (set to zero, maximum, narrowing, to fp32, the product) take no
    less than five times the shortest published run of a chain's kernel, less a tenth."""
    device = load(slug)
    few = Matmul(4, 256, 256, dtype="fp8")
    harness = {"harness": "cuda_graph"}
    chain = predict(few, device, implementation="trtllm-1.0.0:torch_flow", **harness).seconds
    alone = predict(replace(few, dtype="bf16"), device, implementation="trtllm-1.0.0:t", **harness)
    each = (chain - alone.seconds) / 4
    gap = machine(device).at_clock(CONSTANTS["kernel_gap"])
    assert gap + machine(device).at_clock(CONSTANTS["kernel_start"]) < each < 2.2 * gap


def test_a_quantiser_is_a_kernel_that_quantises():
    known = kernels()
    for name in ("cublas", "vllm-rmsnorm", "nothing"):
        kernel = replace(kernel_facts("cutlass-fp8"), quantiser=name)
        with pytest.raises(Misfit, match=f"there is no kernel '{name}' of quantise"):
            check_links(kernel, known)
    check_links(kernel_facts("cutlass-fp8"), known)


def quantising(name: str, rows: int, cols: int, **changes: object) -> float:
    kernel = kernel_facts(name)
    kernel = replace(kernel, rows=replace(kernel.rows, **changes))
    n, c = column(rows, cols)
    plan = rowwise.plan(Rowwise("quantise", n, c), kernel, Setting(H100, CONSTANTS))
    return float(time_plan(H100, CONSTANTS, plan, (1, 1)).seconds[0, 0])


def test_a_group_with_a_scale_of_its_own_is_a_row():
    together = quantising("vllm-group-quantise", 64, 128 * 96)
    assert together == near(quantising("vllm-group-quantise", 64 * 96, 128))
    assert together == near(quantising("vllm-group-quantise", 1, 128 * 96 * 64))
    # One row of a thousand groups is spread over the device, one without groups is not.
    assert quantising("vllm-group-quantise", 1, 2**20, group=0) > 10 * quantising(
        "vllm-group-quantise", 1, 2**20
    )


def test_conversions_in_software_take_integer_lanes():
    shape = (16384, 16384)
    software = quantising("vllm-group-quantise", *shape)
    assert software > quantising("vllm-group-quantise", *shape, integer_ops=0.0)


def test_kernels_about_scales_cost_their_launches():
    kernel, setting = kernel_facts("cutlass-fp4"), Setting(B200, CONSTANTS)
    problem = Matmul(*column(64, 1024, 1024), dtype="nvfp4")

    def seconds(prepares: int) -> float:
        plan = matmul.plan(problem, replace(kernel, prepares=prepares), setting)
        width = plan.tile["m"].shape[-1]
        return float(time_plan(B200, CONSTANTS, plan, (1, width)).seconds.min())

    each = seconds(1) - seconds(0)
    assert each > setting.further_seconds > setting.at_clock("kernel_gap")
    assert seconds(5) - seconds(0) == near(5 * each)


# ---- Pairs of units ------------------------------------------------------------------------------


# ---- Scales --------------------------------------------------------------------------------------


def test_steps_that_wait_for_their_scales_follow_each_other():
    kernel, setting = kernel_facts("deepgemm"), Setting(H100, CONSTANTS)

    def seconds(k: int, cycles: float) -> float:
        problem = Matmul(*column(8, 128, k), dtype="fp8_block")
        plan = matmul.plan(problem, replace(kernel, step_cycles=cycles), setting)
        width = plan.tile["m"].shape[-1]
        return float(time_plan(H100, CONSTANTS, plan, (1, width)).seconds.min())

    for k in (2**15, 2**16):
        assert seconds(k, 400) > seconds(k, 0)
        assert seconds(k, 400) >= k / 128 * 400 / H100.clock_hz
    # What is loaded ahead comes meanwhile: waits shorter than a load in flight cost nothing.
    assert seconds(2**16, 1) == near(seconds(2**16, 0))


# ---- Dot products --------------------------------------------------------------------------------


def test_eight_bit_dot_products_are_four_multiply_adds_a_lane():
    assert T4.matrix_per_unit(DOT_PRODUCTS) == near(64 * 8 * T4.clock_hz)
    assert P4.matrix_per_unit(DOT_PRODUCTS) == near(load("p4").vector_flops("int8") / P4.units)
    for vector in (T4, P4):
        fp32 = operation_joules(vector, CONSTANTS, "fp32", vector=True)
        assert operation_joules(vector, CONSTANTS, DOT_PRODUCTS, vector=True) == near(fp32 / 4)


@pytest.mark.parametrize(
    ("slug", "name"), [("t4", "cublas-int8"), ("p4", "cublas-int8"), ("h100-sxm", "cublas")]
)
def test_plain_int8_runs_on_the_matrix_unit_from_ampere_on(slug, name):
    kernel, _ = resolve("gemm", "cublas", "int8", machine(load(slug)))
    assert kernel.name == name


def test_int8_on_integer_lanes_stays_below_their_rate_and_steps_by_registers_of_four():
    shape = Matmul(4096, 4096, 4096, dtype="int8")
    found = predict(shape, load("t4"), implementation="cublas-int8")
    assert shape.flops() / found.seconds < T4.units * T4.matrix_per_unit(DOT_PRODUCTS)
    kernel = replace(kernel_facts("cublas-int8"), few_load=0)
    assert step_depth(kernel, candidates(kernel), 1.0, 1.0) == 32
    fp32 = kernel_facts("cublas-fp32")
    assert step_depth(fp32, candidates(fp32), 4.0, 4.0) == 8


def test_more_fp32_lanes_do_not_slow_products_on_integer_lanes_down():
    volta = load("v100-pcie-32gb")
    for shape in (Matmul(1, 298, 10475, dtype="int8"), Matmul(5309, 7754, 8142, dtype="int8")):
        found = [predict(shape, on) for on in (volta, volta.scaled(vector=2.0))]
        assert found[1].implementation == "cublas-int8"
        assert found[1].seconds == near(found[0].seconds)


def test_the_floor_of_int8_is_that_of_dot_products_where_there_is_no_matrix_unit():
    v100 = load("v100-pcie-32gb")
    shape = Matmul(64, 64, 64, dtype="int8")
    assert dense_peak(shape, v100) == near(80 * 64 * 8 * machine(v100).clock_hz, rel=0.01)
    # Turing's matrix units are faster.
    assert dense_peak(shape, load("t4")) == near(130e12, rel=0.01)


# ---- Callers -------------------------------------------------------------------------------------


def test_host_time_is_that_of_the_path_on_the_device():
    def host(name: str, instruction: str) -> float:
        return caller_of("gemm", name, "fp8_block", instruction).host_seconds

    name = "vllm-0.24.0:DeepGemmFp8BlockScaledMMKernel"
    assert host(name, "tcgen05") > host(name, "wgmma") > 0


def test_data_of_a_caller_may_toggle_less_than_those_of_its_harness():
    kernel, _ = resolve("gemm", "cublas", "int8", T4)
    assert kernel.caller.activity is not None
    setting = Setting(T4, CONSTANTS)
    how = matmul.products(kernel, DOT_PRODUCTS, setting)
    assert how.run.activity == kernel.caller.activity < setting.run.activity
