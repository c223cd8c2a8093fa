"""Products of narrow types on the vector unit: DP4A adds four of them in one instruction."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.timing.architectures import architectures
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.menu import candidates, step_depth
from perfmodel.timing.power import operation_joules


@pytest.mark.parametrize("name", ["p4", "gtx1080ti", "titan-xp", "p40"])
def test_int8_runs_at_four_times_the_lanes_where_there_is_dp4a(name):
    here = machine(load(name))
    assert here.dot_length("int8") == pytest.approx(4.0, rel=5e-3)
    assert here.on_vector("int8")
    assert here.multiplied_as("int8") == "int8"
    assert here.matrix_per_unit("int8") == pytest.approx(4 * here.matrix_per_unit("fp32"), rel=5e-3)


@pytest.mark.parametrize("name", ["p100-sxm2", "m40"])
def test_what_has_no_dp4a_has_no_rate_of_int8(name):
    here = machine(load(name))
    assert here.dot_length("int8") == 0
    with pytest.raises(ProblemError, match="no int8 matrix rate"):
        here.matrix_per_unit("int8")


def test_sixteen_bits_are_widened_where_dot_products_of_them_are_missing():
    assert machine(load("p4")).multiplied_as("fp16") == "fp32"
    assert machine(load("mi60")).multiplied_as("fp16") == "fp16"
    assert machine(load("mi60")).dot_length("fp16") == pytest.approx(2.0, rel=1e-3)


def test_a_matrix_unit_is_taken_before_dot_products():
    turing = architectures()["turing"]
    here = replace(machine(load("t4")), architecture=replace(turing, dot_products=("int8",)))
    assert here.matrix_per_unit("int8") == machine(load("t4")).matrix_per_unit("int8")


def test_an_instruction_of_four_products_costs_what_one_of_fp32_does():
    here, constants = machine(load("p4")), default()
    narrow, wide = (
        operation_joules(here, constants, dtype, vector=True) for dtype in ("int8", "fp32")
    )
    assert wide / narrow == pytest.approx(here.dot_length("int8"))


def test_a_step_is_eight_instructions_deep():
    kernel = kernel_facts("cublas-dot")
    menu = candidates(kernel)
    assert step_depth(kernel, menu, 1.0, 1.0, 4.0) == 32
    assert step_depth(kernel, menu, 4.0, 4.0) == 8


def test_a_pascal_card_multiplies_int8_faster_than_fp32(cli):
    sizes = ["-m", "4096", "-n", "4096", "-k", "4096"]
    found = {}
    for dtype in ("int8", "fp32"):
        code, out, _ = cli(
            *["predict", "gemm", "-d", "gtx1080ti", "--dtype", dtype, *sizes, "-f", "json"],
            *["--implementation", "cublas" if dtype == "int8" else "cublas-fp32"],
        )
        assert code == 0
        found[dtype] = json.loads(out)["predictions"][0]
    ratio = found["fp32"]["time_us"] / found["int8"]["time_us"]
    assert 2.0 < ratio < 4.5
    assert found["int8"]["implementation"] == "cublas-dot"
