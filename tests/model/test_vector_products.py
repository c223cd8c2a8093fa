"""Products on the vector unit, by AMD's libraries, and by libraries that are called directly."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Matmul
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing import power
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import Caller, kernel_facts, resolve
from perfmodel.timing.machine import machine
from perfmodel.timing.matmul import plan, products
from perfmodel.timing.menu import candidates
from perfmodel.timing.plan import time_plan
from perfmodel.timing.setting import Setting

H100, A100, L40S, V100 = (load(x) for x in ("h100-sxm", "a100-sxm4-80gb", "l40s", "v100-sxm2"))
MI210, MI300X = load("mi210"), load("mi300x")
CONSTANTS = default()
LARGE = Matmul(8192, 8192, 8192, dtype="fp32")


def at_rated_boost(card):
    """A card that does not go beyond its rated boost clock."""
    clocks = replace(card.compute.clocks, reached=None)
    compute = replace(card.compute, clocks=clocks)
    return replace(card, compute=compute)


def terms(problem, name, device, tile):
    """Terms of one tile of a kernel's menu, k whole."""
    kernel = replace(kernel_facts(name), tiles={10**9: (tile,)}, splits=(1,), slim_columns=0)
    planned = plan(problem, kernel, Setting(machine(device), CONSTANTS))
    found = time_plan(machine(device), CONSTANTS, planned, (1, 1)).at(np.array([0]))
    return {key: float(value[0]) for key, value in found.terms.items()}


@pytest.mark.parametrize(("tile", "share"), [((128, 128, 256), 1.0), ((256, 128, 256), 0.75)])
def test_a_threads_loads_take_the_port_as_long_as_its_lanes_multiply(tile, share):
    """16 numbers of 4 bytes a lane for 64 multiply-adds: 2048 bytes of a warp at 128 a clock are 16
    clocks, and so are 64 instructions on four schedulers. 24 for 128 are three quarters of that."""
    here = machine(H100)
    found = terms(LARGE, "cublas-fp32", H100, tile)
    how = products(kernel_facts("cublas-fp32"), "fp32", Setting(here, CONSTANTS))
    assert found["shared"] == pytest.approx(share * found["matrix"] * how.matrix_share, rel=0.02)


def test_loads_of_a_thread_delay_its_products_only_where_every_issue_slot_is_taken():
    for device, delayed in ((H100, True), (L40S, True), (A100, False), (V100, False)):
        setting = Setting(machine(device), CONSTANTS)
        turns = products(kernel_facts("cublas-fp32"), "fp32", setting).turns
        assert (turns.fetched_by is not None) == delayed
    assert (
        products(kernel_facts("cublas"), "fp16", Setting(machine(H100), CONSTANTS)).turns.fetched_by
        is None
    )


def test_fp32_reaches_less_of_the_rate_where_lanes_take_every_issue_slot():
    def reached(device):
        found = predict(LARGE, device)
        rate = 2.0 * machine(device).vector_ops_per_unit * machine(device).units
        return 2.0 * 8192.0**3 / (found.seconds) / rate

    assert reached(A100) > 0.9
    assert 0.7 < reached(H100) < 0.82


@given(m=st.integers(1, 3000), n=st.integers(1, 3000), k=st.integers(64, 9000))
def test_a_direct_call_is_the_transposed_call_of_a_framework(m, n, k):
    """cuBLAS stores by columns, and a framework that stores by rows asks for the transpose."""
    framework = kernel_facts("cublas-fp32-volta")
    direct = replace(framework, caller=Caller(column_major=True))
    setting = Setting(machine(V100), CONSTANTS)

    def fastest(kernel, rows, columns):
        problem = Matmul(rows, columns, k, dtype="fp32")
        planned = plan(problem, kernel, setting)
        size = planned.tile["m"].size
        times = time_plan(machine(V100), CONSTANTS, planned, (1, size)).seconds
        return times.min()

    # Which operand's blocks are launched together is all that does not turn round.
    assert fastest(direct, m, n) == pytest.approx(fastest(framework, n, m), rel=0.25)


def test_a_turned_menu_serves_columns_for_rows():
    menu = candidates(kernel_facts("cublas-fp32-turing"))
    turned = menu.by_columns()
    assert (turned.serves(5000.0, 16.0) == menu.serves(16.0, 5000.0)).all()
    assert (turned.rows == menu.columns).all()
    slim = predict(Matmul(8448, 16, 2816, dtype="fp32"), V100, implementation="cublas")
    assert slim.tile["n"] == 32


def test_a_kernels_name_stands_for_its_librarys_kernel_of_the_type():
    """`cublas` is a kernel for 16 bits, and the library that has another for fp32."""
    found, _ = resolve("gemm", "cublas", "fp32", machine(V100))
    assert found.name == "cublas-fp32-volta"
    assert found.caller.column_major
    found, _ = resolve("gemm", "cublas", "fp16", machine(V100))
    assert found.name == "cublas-mma"


def test_amd_multiplies_fp32_on_the_matrix_unit_at_a_share_of_its_rate():
    found = predict(LARGE, MI210)
    rate = 2.0 * 8192.0**3 / (found.seconds)
    assert found.implementation == "rocblas-fp32"
    assert 22.6e12 < rate < 0.76 * 45.3e12
    for dtype, device, name in (
        ("fp16", MI210, "rocblas"), ("fp16", MI300X, "blas"), ("fp32", MI300X, "rocblas-fp32"),
    ):  # fmt: skip
        kernel, _ = resolve("gemm", "torch.matmul", dtype, machine(device))
        assert kernel.name == name


def test_scaled_sums_follow_the_products_of_a_composable_kernel():
    """128 of k at a time are added up on the vector unit, by the wavefront that multiplies."""
    sizes = (8192, 5120, 5120)
    plain = predict(Matmul(*sizes, dtype="fp8"), MI300X, implementation="aiter:ck")
    scaled = predict(Matmul(*sizes, dtype="fp8_block"), MI300X, implementation="aiter:ck")
    assert scaled.seconds > 1.02 * plain.seconds
    assert (plain.implementation, scaled.implementation) == ("ck-gemm", "ck-gemm-block")


def test_a_card_that_goes_beyond_its_rated_boost_is_faster_where_its_power_allows():
    card = load("gtx1080ti")
    rated = at_rated_boost(card)
    beyond = card.beyond_boost
    assert (rated.beyond_boost, beyond > 1.0) == (1.0, True)
    here, there = machine(card), machine(rated)
    assert here.matrix_per_unit("fp32") == pytest.approx(beyond * there.matrix_per_unit("fp32"))
    assert here.clock_hz == pytest.approx(beyond * there.clock_hz)
    slower, faster = (predict(LARGE, device).seconds for device in (rated, card))
    assert 1.05 * faster < slower < 1.001 * beyond * faster


def test_power_allows_no_more_beyond_the_rated_boost():
    """Voltage follows the clock: a board at its limit does the same work in the same time."""
    card = load("rtx2080ti")
    rated = at_rated_boost(card)

    def sustained(device):
        work = (CONSTANTS, "fp32", 1e15, 0.0)
        return power.power_seconds(machine(device), *work, activity=1.0, share=0.9)

    assert sustained(card) == pytest.approx(sustained(rated))
