"""A device as the time model sees it: published figures, and what is taken without them."""

from __future__ import annotations

import pytest

from perfmodel.hardware import load
from perfmodel.timing import occupancy
from perfmodel.timing.machine import Machine, machine

near = pytest.approx
KIB, CLOCK = 1024.0, 1.75e9


def of(slug: str) -> Machine:
    """The machine of a shipped device."""
    return machine(load(slug))


def test_a_unit_of_a100_by_its_white_paper_and_the_programming_guide():
    # 64 fp32 and 64 int32 lanes, 4 schedulers of 32 lanes, 16 special units, 128 B a clock of
    # shared memory; 164 KiB of it, 163 a block, 1 KiB of the system's, of 192 KiB with the L1.
    here, clock = of("a100-sxm4-80gb"), 1.41e9
    assert (here.units, here.clock_hz, here.tdp_watts) == (108, clock, 400.0)
    assert here.vector_ops_per_unit == near(64 * clock, rel=1e-3)
    assert here.integer_per_unit == near(64 * clock)
    assert here.issue_per_unit == near(128 * clock)
    assert here.special_per_unit == near(16 * clock)
    assert here.shared_bytes_per_unit == near(128 * clock)
    shared = here.shared_capacity, here.shared_per_block, here.shared_reserved
    assert shared == (164 * KIB, 163 * KIB, KIB)
    assert (here.registers_bytes, here.thread_registers_bytes) == (256 * KIB, 4 * 256)
    assert (here.max_threads, here.max_blocks) == (2048, 32)
    assert (here.l1_capacity, here.l2_capacity) == (192 * KIB, 40 * KIB**2)
    assert here.base_share == near(1275 / 1410)
    assert here.l1_latency == near(36 / clock)
    assert here.memory_family == "stacked"
    # Rates of a unit: 312 TFLOP/s of 108 for bf16, two operations of each lane for fp32.
    assert here.matrix_per_unit("bf16") == near(312e12 / 108)
    assert here.matrix_per_unit("fp32") == 2 * here.vector_ops_per_unit
    assert here.matrix_per_unit("tf32") == near(156e12 / 108)
    assert not here.staged
    assert not here.issue_bound()


def test_a_unit_of_turing_keeps_32_kib_of_its_96_for_shared_memory():
    here = of("t4")
    assert (here.shared_capacity, here.shared_per_block) == (64 * KIB, 64 * KIB)
    assert here.l1_capacity == (96 - 32) * KIB
    assert here.shared_reserved == 0
    assert (here.max_threads, here.max_blocks) == (1024, 16)
    assert here.base_share == near(585 / 1590)
    assert (here.memory_family, here.inline_ecc, here.staged) == ("gddr", True, True)
    # Not in its spec: 22 B a clock and unit of the L2, and Volta's latency of memory.
    assert here.l2_bytes_per_s == near(22 * 40 * 1.59e9)
    assert here.hbm_latency == near(650 / CLOCK)
    assert [said.split(" is not")[0] for said in here.assumptions] == [
        "L2 bandwidth", "memory latency",
    ]  # fmt: skip


def test_pascal_and_cdna_have_no_more_than_their_specs_say():
    p100, mi300x = of("p100-pcie-16gb"), of("mi300x")
    assert (p100.shared_capacity, p100.shared_per_block) == (64 * KIB, 48 * KIB)
    assert p100.l1_capacity == 24 * KIB
    assert p100.matrix_per_unit("fp64") == near(4.7e12 / 56, rel=0.02)
    assert p100.l1_latency == near(82 / 1.328e9)
    assert p100.l2_latency == near(234 / 1.328e9)
    assert p100.base_share == 0
    assert p100.multiplied_as("bf16") == "fp32"
    assert mi300x.multiplied_as("bf16") == "bf16"
    assert mi300x.registers_bytes == 512 * KIB
    assert mi300x.memory_family == "amd"
    # An AMD device multiplies fp32 on its matrix units, at twice the vector rate or more.
    assert mi300x.matrix_per_unit("fp32") == near(163.4e12 / 304)
    assert not mi300x.on_vector("fp32")
    assert of("rtx4090").on_vector("fp32")


def test_units_of_a_systolic_accelerator_are_as_many_as_have_its_matrix_rate():
    # TPU v4: 4 arrays of 128 × 128 a core, 131,072 operations a clock, 64 times those of A100's SM.
    tpu = of("tpu-v4")
    assert tpu.units == 2 * 64
    assert tpu.matrix_per_unit("bf16") == near(275e12 / 128)
    assert tpu.shared_capacity == 16 * KIB**2 / 64
    assert tpu.shared_bytes_per_unit == near(12865 / 64 * 1.05e9)
    # Its spec has no vector unit: 1/32 of the matrix rate, and an eighth of that of functions.
    assert tpu.vector_ops_per_unit == near(275e12 / 128 / 32)
    assert tpu.special_per_unit == near(tpu.vector_ops_per_unit / 8)
    assert tpu.integer_per_unit == tpu.issue_per_unit == tpu.vector_ops_per_unit
    assert "64 of a GPU" in tpu.assumptions[0]
    # A wafer's cores do less than an SM each, and so do a processor's and Apple's.
    assert of("wse-2").units == 850_000
    assert of("epyc-9654").units == 96
    assert of("m4-max").units == 40
    assert not any("GPU's size" in said for said in of("h100-sxm").assumptions)


def test_what_a_spec_leaves_out_is_taken_and_said():
    wafer = of("wse-2")
    assert wafer.shared_bytes_per_unit == near(128 * 1.1e9)
    assert wafer.vector_ops_per_unit == near(7.5e15 / 32 / 850_000)
    assert wafer.l2_bytes_per_s == near(24 * 850_000 * 1.1e9)
    assert (wafer.l1_capacity, wafer.l2_capacity) == (0, 0)
    assert min(wafer.shared_capacity, wafer.shared_per_block, wafer.registers_bytes) > 1e17
    assert (wafer.max_threads, wafer.max_blocks, wafer.shared_reserved) == (2048, 32, 0)
    assert wafer.thread_registers_bytes == 1024
    for what in ("vector", "L2 bandwidth", "L2 capacity", "special", "memory latency", "shared"):
        assert any(what in said for said in wafer.assumptions), what
    # An L2 is never slower than the memory behind it: 80 TB/s of on-chip memory, and a margin.
    assert of("groq-lpu").l2_bytes_per_s == near(1.05 * 80e12)
    assert of("m4-max").tdp_watts == 1e9
    assert of("m4-max").memory_family == "other"


def test_latencies_that_no_spec_has_are_those_of_volta():
    a10 = of("a10")
    assert a10.l1_latency == near(34 / CLOCK)
    assert a10.l2_latency == near(260 / CLOCK)
    assert "L2 latency" in " ".join(a10.assumptions)


def test_cycles_are_given_at_1750_mhz():
    assert of("a100-sxm4-80gb").at_clock(1.0) == near(1.75 / 1.41)


def test_a_grid_spreads_over_units_first():
    here = of("a100-sxm4-80gb")
    for grid, active, busiest in ((1, 1, 1), (107, 107, 1), (108, 108, 1), (109, 108, 2)):
        found = occupancy.fill(here, grid, 3.0)
        assert (found.active_units, found.busiest) == (active, busiest)
        assert (found.slots, found.waves) == (324, grid / 324)
    # A block that does not fit is waited for by itself.
    assert occupancy.fill(here, 216, 0.0).waves == 2
