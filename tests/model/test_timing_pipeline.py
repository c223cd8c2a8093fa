"""What a kernel does not hide: filling and draining, latency by level, lanes asleep."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.operators.included import included_seconds
from perfmodel.predict import predict
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing import attention_style, memory, pipes, power, rowwise, traffic
from perfmodel.timing.circumstances import Circumstances
from perfmodel.timing.constants import default
from perfmodel.timing.kernel import busy_seconds, fill_seconds
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.occupancy import residency
from perfmodel.timing.setting import Setting
from perfmodel.timing.style import Style, Turns

H100, T4, A100 = load("h100-sxm"), load("t4"), load("a100-sxm4-80gb")
CONSTANTS = default()
STAGES = ("matrix", "shared", "special", "vector", "l2", "hbm", "latency", "transpose")
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
    # The first tile's values are transposed before anything can go on, whatever is longest.
    alone = [max(times[0], times[1]), *times[2:-1]]
    expected = (sum(alone) - max(alone) + times[-1]) / 128
    found = fill_seconds(terms, cost, where, Style("fp16"), where.busiest)
    assert found == pytest.approx(expected, rel=1e-6, abs=1e-15)


@given(st.tuples(*[seconds] * len(STAGES)), st.integers(1, 1000))
def test_blocks_that_load_ahead_never_fill_for_longer(times, rounds):
    terms = {name: np.asarray(time) for name, time in zip(STAGES, times, strict=True)}
    cost, where = block()
    where = replace(where, busiest=np.asarray(float(rounds)))
    plain = fill_seconds(terms, cost, where, Style("fp16"), where.busiest)
    ahead = fill_seconds(terms, cost, where, Style("fp16", persistent=True), where.busiest)
    shared = fill_seconds(
        terms,
        cost,
        replace(where, blocks_per_unit=np.asarray(4.0)),
        Style("fp16"),
        where.busiest,
    )
    assert 0 <= ahead <= plain * (1 + 1e-12)
    assert shared <= plain * (1 + 1e-12)


@given(st.tuples(*[seconds] * len(STAGES)), st.integers(1, 64), st.integers(1, 8))
def test_a_block_by_itself_does_one_thing_after_another(times, rounds, together):
    # FlashAttention-2 hides its softmax under the matrix work of other blocks, if there are any.
    terms = {name: np.asarray(time) for name, time in zip(STAGES, times, strict=True)}
    where = replace(block()[1], busiest=np.asarray(float(rounds)))
    where = replace(where, blocks_per_unit=np.asarray(float(together)))
    hides, fills = (Style("fp16", overlap=0.7, turns=Turns(alone=alone)) for alone in (False, True))
    stages = [max(times[0], times[1]), times[2], times[3]]
    least, found = (busy_seconds(terms, 1 / rounds, where, style) for style in (hides, fills))
    bound = sum(stages) / min(rounds, together)
    assert found == pytest.approx(max(least, bound), rel=1e-9, abs=1e-15)
    # However many there are, the longest is not done before its own work.
    longest = busy_seconds(terms, 1.0, where, fills)
    assert longest == pytest.approx(sum(stages), rel=1e-9, abs=1e-15)


@given(st.tuples(*[seconds] * len(STAGES)), st.floats(0, 1), st.floats(0, 1))
def test_what_waits_for_another_takes_no_less(times, overlap, exchange):
    terms = {name: np.asarray(time) for name, time in zip(STAGES, times, strict=True)}
    where = block()[1]
    plain = Style("fp16", overlap=overlap)
    free = busy_seconds(terms, 1.0, where, plain)
    matrix, shared, special, vector = times[:4]
    # Operands that warps fetch themselves delay the products, and are never in turn with them.
    fetching = busy_seconds(terms, 1.0, where, replace(plain, turns=Turns(fetched_by=2.5)))
    assert free * (1 - 1e-12) <= fetching <= (free + min(matrix, shared)) * (1 + 1e-12)
    # Exponentials and the vector work around them in one chain.
    chain = busy_seconds(terms, 1.0, where, replace(plain, turns=Turns(chained=True)))
    assert free * (1 - 1e-12) <= chain <= (free + min(special, vector)) * (1 + 1e-12)
    # What warps pass to each other is a stage more.
    passing = busy_seconds(terms, 1.0, where, replace(plain, turns=Turns(exchange=exchange)))
    assert free * (1 - 1e-12) <= passing <= (free + exchange * matrix) * (1 + 1e-12)


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
    found = traffic.traffic(
        here, CONSTANTS, schedule, cost, elements, where, Circumstances(warm=warm, repeats=True)
    )
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


def test_a_timing_loop_starts_on_a_rested_board():
    # A T4 at 70 W: 4096³ in fp32 takes milliseconds, and its power holds it down.
    problem = Matmul(4096, 4096, 4096, dtype="fp32")
    steady = predict(problem, T4)
    timed = predict(problem, T4, harness="cuda_events_eager")
    free = predict(problem, T4, constants=CONSTANTS.without("power"))
    assert steady.limiter == timed.limiter == "power"
    # Long after the time constant τ the run is ahead by (S / u - 1) τ.
    boost = free.seconds - free.terms["launch"] - free.terms["blocks"]
    ahead = (steady.terms["power"] / boost - 1.0) * CONSTANTS["power_lag"]
    assert steady.terms["power"] - timed.terms["power"] == pytest.approx(ahead, rel=1e-3)


@given(seconds, st.floats(0.5, 4.0), st.floats(1e-5, 1e-2))
def test_a_board_is_held_down_as_its_clock_decays(at_boost, excess, lag):
    sustained = at_boost * excess
    found = float(power.held_down_seconds(at_boost, sustained, lag))
    assert found <= max(at_boost, sustained) * (1 + 1e-12)
    assert found >= at_boost * (1 - 1e-12)
    if sustained > at_boost:
        # All work is done when the rate, integrated, comes to it.
        done = found / sustained + (1 / at_boost - 1 / sustained) * lag * -math.expm1(-found / lag)
        assert done == pytest.approx(1.0, abs=1e-5)
        assert found <= float(power.held_down_seconds(at_boost, sustained, lag / 2)) * (1 + 1e-9)
    assert float(power.held_down_seconds(at_boost, sustained, 0.0)) == max(at_boost, sustained)


@given(seconds, seconds, st.floats(1.0, 2.0))
def test_neither_more_work_at_boost_nor_more_energy_ends_sooner(at_boost, sustained, more):
    here = float(power.held_down_seconds(at_boost, sustained, 5e-4))
    assert float(power.held_down_seconds(at_boost * more, sustained, 5e-4)) >= here * (1 - 3e-3)
    assert float(power.held_down_seconds(at_boost, sustained * more, 5e-4)) >= here * (1 - 3e-3)


def test_two_warps_leave_half_of_a_unit_asleep():
    # Four schedulers of 32 lanes since Maxwell, two on P100.
    for slug, threads, share in (
        ("v100-pcie-32gb", 64, 0.5),
        ("h100-sxm", 128, 1.0),
        ("p100-pcie-16gb", 64, 1.0),
        ("p100-pcie-16gb", 32, 0.5),
        ("h100-sxm", 1024, 1.0),
        ("mi300x", 64, 1.0),
    ):
        here = machine(load(slug))
        assert float(pipes.awake_share(here, CONSTANTS, threads)) == share, slug
        assert float(pipes.awake_share(here, CONSTANTS.without("lanes"), threads)) == 1.0


def test_a_second_block_of_few_warps_costs_nothing():
    # 128 x 32 tiles of 64 threads: V100's SMs take four of them in the time of one, since products
    # staged through registers keep a scheduler busy with two warps, and a fifth starts anew.
    def matrix_seconds(blocks: int) -> float:
        device = load("v100-pcie-32gb")
        found = predict(Matmul(128, 32, 512, batch=blocks * device.units, dtype="fp32"), device)
        return float(found.terms["matrix"])

    assert matrix_seconds(2) == pytest.approx(matrix_seconds(4), rel=1e-6)
    assert matrix_seconds(8) == pytest.approx(2 * matrix_seconds(4), rel=1e-6)


@given(st.integers(1, 16384), st.integers(64, 65536))
def test_quantising_activations_costs_more_for_more_of_them(m, k):
    def cost(rows: int, columns: int) -> float:
        kernel = kernel_facts("cutlass-fp8")
        problem = Matmul(rows, 512, columns, dtype="fp8")
        includes = ("quantise_activations",)
        found = included_seconds(Setting(machine(H100), CONSTANTS), problem, kernel, includes)
        return float(np.asarray(found).reshape(-1)[0])

    assert cost(m, k) > CONSTANTS["kernel_gap"]
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


@given(st.floats(1e-9, 1e-3), st.floats(0, 1e-3))
def test_loads_wait_longer_behind_others_and_never_beyond_the_loaded_latency(waiting, crossing):
    found = memory.loaded_seconds(CONSTANTS, waiting, crossing)
    assert waiting * (1 - 1e-12) <= found <= waiting * CONSTANTS["latency_share"] * (1 + 1e-12)
    assert memory.loaded_seconds(CONSTANTS, waiting, crossing * 2) >= found * (1 - 1e-12)
    assert memory.loaded_seconds(CONSTANTS, waiting * 1.01, crossing) >= found
    assert memory.loaded_seconds(CONSTANTS, waiting, 0.0) == pytest.approx(waiting)


@cases
def test_integer_instructions_take_lanes_or_issue_slots(slug, vector, integer, slots):
    found = pipes.vector_slots(machine(load(slug)), vector, integer)
    assert found == pytest.approx(slots, rel=0.02)


def row_traffic(op: str, rows: int, cols: int, device=H100):
    """Traffic of a row-wise kernel as predicted."""
    kernel = kernel_facts({"softmax": "torch-softmax", "layernorm": "torch-layernorm"}[op])
    problem = Rowwise(op, rows, cols, dtype="fp32")
    here = machine(device)
    part = rowwise.plan(problem, kernel, Setting(here, CONSTANTS)).parts[0]
    cost = count(part.schedule, part.sizes, part.elements).kernels[0]
    where = residency(here, cost)
    found = traffic.traffic(
        here, CONSTANTS, part.schedule, cost, part.elements, where, Circumstances()
    )
    return found, cost


@given(st.sampled_from(["softmax", "layernorm"]), st.integers(64, 8192), st.integers(64, 16384))
def test_rows_read_again_cross_fewer_boundaries_the_nearer_they_are_held(op, rows, cols):
    found, cost = row_traffic(op, rows, cols)
    least = sum(part.total_bytes for part in cost.hbm.values())
    assert least * (1 - 1e-9) <= found.hbm_bytes <= found.l2_bytes * (1 + 1e-9)
    assert found.l2_bytes <= cost.bytes_at("l2") * (1 + 1e-9)
    assert 0 <= found.near <= 1
    assert found.near + found.missed <= 1 + 1e-9


def test_a_larger_l1_answers_more_of_what_is_read_again():
    # Sixteen blocks of 2048 columns: 128 KiB, in 24 KiB of a P100 or 256 KiB of an H100.
    near = [
        row_traffic("layernorm", 65536, 2048, load(s))[0].near
        for s in ("p100-pcie-16gb", "h100-sxm")
    ]
    assert near[0] < 0.01 < 0.2 < near[1]


def test_rows_of_no_whole_loads_take_more_instructions():
    # 1100 columns in fp32 go by four elements a load, 1101 mostly one at a time.
    aligned, ragged = (
        predict(
            Rowwise("softmax", 65536, cols, "fp32"), load("p100-pcie-16gb"), implementation="torch"
        )
        for cols in (1100, 1101)
    )
    assert ragged.terms["vector"] > 1.2 * aligned.terms["vector"]


@given(st.integers(1, 8192), st.sampled_from(["torch-softmax", "torch-layernorm", "vllm-quantise"]))
def test_no_row_takes_more_accesses_than_one_for_every_element_and_pass(cols, name):
    kernel = kernel_facts(name)
    problem = Rowwise(kernel.operator, 1000, cols, dtype="fp32")
    found = rowwise.plan(problem, kernel, Setting(machine(H100), CONSTANTS))
    each = found.parts[0].style.code.integer_ops / (4.0 * 1000 * cols)
    assert 0 < each <= kernel.rows.passes + 1


def test_accurate_mathematics_costs_vector_operations():
    problem = Rowwise("pointwise", 8192, 8192, "fp16", variant="silu_mul", inputs=2)
    exact, fast = (
        predict(problem, H100, implementation=name) for name in ("torch-pointwise", "fused-rows")
    )
    assert exact.terms["vector"] > fast.terms["vector"]
    assert exact.terms["special"] == pytest.approx(fast.terms["special"], rel=0.05)


@pytest.mark.parametrize("slug", ["a100-sxm4-80gb", "h100-sxm"])
@pytest.mark.parametrize("heads", [1, 4, 32])
def test_writing_the_cache_takes_its_blocks_or_its_bytes(slug, heads):
    # Few heads: each token is a block that waits for three loads. Many: keys and values stream.
    device = load(slug)
    problem = Attention(16, heads, heads, 4096, 4096, 128, causal=True)
    alone = predict(problem, device).seconds
    written = predict(problem, device, includes=("kv_write",)).seconds - alone
    moved = 4 * 16 * heads * 4096 * 128 * 2
    assert written > moved / device.hbm_bytes_per_s
    if heads == 32:
        assert written < 2 * moved / device.hbm_bytes_per_s


def test_wider_tiles_exchange_less_for_each_second_of_matrix_work():
    how, here = Style("fp16"), machine(A100)
    beside = [attention_style.exchanging(how, here, keys, 4) for keys in (64, 128, 256, 1024)]
    assert beside == sorted(beside, reverse=True)
    # 8 · 4 · 16 · d bytes at 128 B/clk beside 4 · 16 · 256 · d operations at 2048 a clock: 1 to 2.
    assert beside[2] == pytest.approx(1 / 2, rel=0.01)


@given(st.floats(0.1, 1), st.floats(0.01, 10), st.floats(0.01, 10))
def test_a_slower_matrix_unit_waits_less_for_its_instructions(share, one, other):
    slow, fast = sorted((one, other))
    assert attention_style.kept_share(share, 1.0) == pytest.approx(share)
    more, less = (attention_style.kept_share(share, rate) for rate in (slow, fast))
    assert 0 < less <= more <= 1
    # Yet a faster unit is never slower.
    assert slow * more <= fast * less * (1 + 1e-12)


def test_cut_down_boards_use_more_of_their_matrix_units():
    def share(slug: str, implementation: str) -> float:
        problem = Attention(2, 16, 16, 8192, 8192, 128)
        made = predict(problem, load(slug), implementation=implementation)
        return made.flops["matrix"] / made.seconds / load(slug).matrix_flops("fp16")

    # The same instructions at a quarter of the rate: FlashAttention-3 on H20 and H100, -2 on
    # GeForce and A100.
    assert share("h20", "flash3") > 1.2 * share("h100-sxm", "flash3")
    assert share("rtx4090", "flash2") > 1.2 * share("a100-sxm4-80gb", "flash2")


def test_a_head_of_the_first_flash_attention_keeps_to_one_unit():
    def seconds(heads: int, implementation: str) -> float:
        problem = Attention(1, heads, heads, 8192, 8192, 64)
        return predict(problem, load("a100-sxm4-40gb"), implementation=implementation).seconds

    # 108 units: a head each, then two on one of them, until each has two. They share memory alone.
    first = [seconds(heads, "flash1-first") for heads in (54, 108, 109, 216)]
    assert first[0] == pytest.approx(first[1], rel=0.15)
    assert first[2] == pytest.approx(first[3], rel=0.15)
    assert first[2] > 1.5 * first[1]
    # Later releases cut heads, so that half of them take half as long.
    later = [seconds(heads, "flash1") for heads in (54, 108)]
    assert later[1] == pytest.approx(2 * later[0], rel=0.1)
    assert later[0] < first[0]
