"""Terms of the time model one by one, against arithmetic by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul
from perfmodel.arithmetic import ceil_div
from perfmodel.count import compulsory_bytes, count
from perfmodel.elements import element
from perfmodel.hardware import load
from perfmodel.predict import predict, predict_arrays
from perfmodel.schedules import tiled
from perfmodel.schedules.matmul import tiled_matmul
from perfmodel.timing import (
    floors,
    memory,
    physical,
    pipes,
    power,
    traffic,
)
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts, resolve
from perfmodel.timing.machine import machine
from perfmodel.timing.occupancy import residency
from perfmodel.timing.runs import harnesses
from perfmodel.timing.shares import matrix_share

H100 = load("h100-sxm")
A100 = load("a100-sxm4-80gb")
CONSTANTS = default()
times = st.lists(st.floats(0, 1e3), min_size=1, max_size=5)


# Overlap.


@given(times, st.floats(0, 1))
def test_overlap_lies_between_the_longest_and_the_sum(values, overlap):
    found = pipes.overlapped([np.asarray(v) for v in values], overlap)
    assert max(values) * (1 - 1e-12) <= found <= sum(values) * (1 + 1e-12) + 1e-300


def test_overlap_worked_by_hand():
    parts = [np.asarray(v) for v in (5.0, 3.0, 2.0)]
    assert pipes.overlapped(parts, 0.0) == 10.0
    assert pipes.overlapped(parts, 1.0) == 5.0
    assert pipes.overlapped(parts, 0.6) == pytest.approx(5 + 0.4 * 5)


@given(times, st.floats(1, 8))
def test_resources_together_lie_between_the_longest_and_the_sum(values, exponent):
    found = float(pipes.together([np.asarray(v) for v in values], exponent))
    assert max(values) * (1 - 1e-9) <= found <= sum(values) * (1 + 1e-9) + 1e-300


def test_two_equal_resources_lose_what_the_exponent_says():
    # (1² + 1²)^(1/2) = √2; a plain maximum would lose nothing.
    pair = [np.asarray(1.0), np.asarray(1.0)]
    assert float(pipes.together(pair, 2.0)) == pytest.approx(2**0.5)
    assert float(pipes.together([np.asarray(0.0)], 2.0)) == 0.0


# Memory.


@given(st.floats(0, 1e12), st.floats(1, 1e9), st.floats(0.1, 1))
def test_the_share_held_falls_smoothly_from_one_to_nothing(working, capacity, knee):
    held = traffic.held_share(working, capacity, knee)
    assert 0 <= held <= 1
    assert traffic.held_share(working * 1.01 + 1, capacity, knee) <= held
    assert traffic.held_share(working, capacity * 2, knee) >= held


def test_half_is_held_at_the_knee_and_nothing_without_a_cache():
    assert traffic.held_share(0.6 * 50e6, 50e6, 0.6) == pytest.approx(0.5)
    assert traffic.held_share(1.0, 0.0, 0.6) == 0.0


def test_small_products_move_each_operand_once():
    # 1024³ in bf16: 3 · 1024² · 2 B = 6 MiB, far below the 50 MiB of L2.
    found = predict(Matmul(1024, 1024, 1024), H100)
    assert found.bytes["hbm"] == pytest.approx(6 * 2**20, rel=0.01)
    assert found.bytes["l2"] > found.bytes["hbm"]


def test_a_warm_cache_spares_the_inputs():
    # Event timing repeats a kernel; a small K and V are in L2 from the run before.
    problem = Attention(1, 8, 8, 512, 512, 64)
    cold, warm = (predict(problem, H100, harness=h) for h in ("kernel", "cuda_events_eager"))
    assert warm.bytes["hbm"] < 0.6 * cold.bytes["hbm"]


def test_compulsory_bytes_leave_out_what_a_mask_hides():
    # 100 queries aligned to the end of 10 keys: the first 90 see none, and their outputs are zeros.
    # Read 10 rows of Q and 10 of K and V, write 100 of O: 130 rows of 64 bf16.
    hidden = Attention(1, 1, 1, 100, 10, 64, causal=True)
    assert compulsory_bytes(hidden) == 130 * 64 * 2
    # A window of 16 over 1000 keys lets 100 queries see the nearest 116.
    seen = Attention(1, 1, 1, 100, 1000, 64, causal=True, window=16)
    assert compulsory_bytes(seen) == (100 + 2 * 116 + 100) * 64 * 2
    whole = Attention(1, 1, 1, 100, 1000, 64)
    assert compulsory_bytes(whole) == (100 + 2 * 1000 + 100) * 64 * 2
    flash1 = predict_arrays(
        Attention(8, 8, 8, 4096, 16, 128, causal=True), A100, schedule="tiled-1"
    )
    floor = physical.floor_seconds(flash1.problem, A100, flash1.flops["matrix"])
    assert flash1.seconds >= floor


# Blocks and units.


def test_occupancy_worked_by_hand():
    # 128 × 128 tiles, two stages of 64-deep bf16 steps: 2 · (128 + 128) · 64 · 2 B = 64 KiB and
    # 1 KiB of the system a block, so 3 fit into 228 KiB. Registers: 64 KiB of accumulators and
    # 40 · 4 B · 128 threads = 20 KiB, so 3 fit into 256 KiB.
    schedule = tiled_matmul(128, 128, 64, stages=2, threads=128)
    problem = Matmul(4096, 4096, 4096)
    cost = count(schedule, problem.sizes(), problem.elements()).kernels[0]
    where = residency(machine(H100), cost)
    assert (where.blocks_per_unit, where.slots) == (3, 3 * 132)
    # 32 · 32 tiles on 132 units: 8 blocks on the busiest, 1024 / 396 waves.
    assert (where.busiest, where.waves) == (8, 1024 / 396)


def test_a_block_too_large_for_shared_memory_does_not_fit():
    schedule = tiled_matmul(256, 256, 64, stages=4, threads=256)  # 4 · 512 · 128 B = 256 KiB
    problem = Matmul(4096, 4096, 4096)
    cost = count(schedule, problem.sizes(), problem.elements()).kernels[0]
    assert residency(machine(H100), cost).blocks_per_unit == 0


def test_waves_are_whole():
    # 128 × 128 tiles: 132 of them are one round on 132 units, 133 are two.
    full, over = (predict(Matmul(128 * 12, 128 * n, 8192), H100) for n in (11, 12))
    per_flop = [p.seconds / p.flops["matrix"] for p in (full, over)]
    assert per_flop[1] > per_flop[0]


def test_latency_is_littles_law():
    # One block an SM, K in steps of 64 bf16: 8192 / 64 = 128 loads, 2 in flight: 64 latencies.
    schedule = tiled_matmul(128, 128, 64, stages=3)
    problem = Matmul(128, 128, 8192)
    cost = count(schedule, problem.sizes(), problem.elements()).kernels[0]
    where = residency(machine(H100), cost)
    even = pipes.balance(cost, where, longest_first=True)
    assert memory.latency_seconds(cost, where, even, 1e-6) == pytest.approx(64e-6)


def list_schedule(
    rows: int, heads: int, units: int, resident: int, *, longest_first: bool
) -> float:
    """Simulated end of blocks of 1 to `rows` tiles, head by head, over the even share.

    Every unit works at one rate, which its resident blocks share; in mean blocks.
    """
    lengths = np.arange(1.0, rows + 1)[:: -1 if longest_first else 1]
    queue = list(np.tile(lengths, heads))[::-1]
    running: list[list[float]] = [[] for _ in range(units)]
    for _ in range(resident):
        for unit in running:
            if queue:
                unit.append(queue.pop())
    now = 0.0
    while any(running):
        step = min(min(unit) * len(unit) for unit in running if unit)
        now += step
        for i, unit in enumerate(running):
            left = [length - step / len(unit) for length in unit]
            running[i] = [length for length in left if length > 1e-9]
            while queue and len(running[i]) < resident:
                running[i].append(queue.pop())
    return now / lengths.mean() - heads * rows / units


@pytest.mark.parametrize("longest_first", [False, True])
@pytest.mark.parametrize(("rows", "heads"), [(8, 12), (8, 20), (24, 4), (24, 8), (48, 3), (96, 2)])
def test_blocks_of_a_mask_end_as_simulated(rows, heads, longest_first):
    # The closed form against list schedules of 24 units with one block each.
    simulated = list_schedule(rows, heads, 24, 1, longest_first=longest_first)
    uneven = rows / ((rows + 1) / 2)
    formula = pipes.beyond_even(uneven, 1.0, rows / 24 if longest_first else None)
    even = heads * rows / 24
    assert (even + formula) / (even + simulated) == pytest.approx(1.0, abs=0.17)


def test_resident_blocks_hide_less_of_what_is_left():
    alone, shared = (list_schedule(24, 8, 24, n, longest_first=False) for n in (1, 2))
    assert shared > alone
    formula = [float(pipes.beyond_even(1.92, n, None)) for n in (1.0, 2.0)]
    assert formula[1] > formula[0]


# Slices of prompts, clusters, kernels for few rows.


def test_blocks_of_packed_sequences_cost_more_than_dense_ones():
    short = Attention(64, 32, 32, 128, 128, 64)
    packed, dense = (
        predict(short, H100, implementation=name).terms["blocks"] for name in ("vllm_fa3", "flash3")
    )
    assert packed > 1.1 * dense


@pytest.mark.parametrize("dtype", ["fp8", "bf16"])
def test_a_row_beyond_a_block_costs_less_than_a_block_more(dtype):
    def seconds(m: int) -> float:
        return predict(Matmul(m, 16384, 8192, 1, dtype), H100).seconds

    assert 0 < seconds(257) < 0.9 * seconds(512)
    assert seconds(64) < 0.9 * seconds(512)


def test_four_rows_of_int8_go_without_matrix_instructions():
    found = [predict(Matmul(m, 4096, 4096, 1, "w8a8_int8"), A100).tile["m"] for m in (4, 5)]
    assert found[0] == 4
    assert found[1] >= 32


# Power, instructions, floors.


H100_SXM = machine(H100)


def _power(here, operations, dram_bytes=0.0, dtype="bf16", share=1.0):
    return float(
        power.power_seconds(
            here, CONSTANTS, dtype, operations, dram_bytes, activity=1.0, share=share
        )
    )


def test_power_worked_by_hand():
    # 1 PFLOP of bf16: P·t³ = E·t₀² until the voltage stays, then P·t = E·v².
    usable = 700 * (1 - CONSTANTS["idle_share"]) - CONSTANTS["idle_watts"]
    assert power.usable_watts(H100_SXM, CONSTANTS) == pytest.approx(usable)
    joules = 1e15 * power.operation_joules(H100_SXM, CONSTANTS, "bf16", vector=False)
    at_boost = 1e15 / (H100_SXM.matrix_per_unit("bf16") * H100_SXM.units)
    seconds = _power(H100_SXM, 1e15)
    assert usable * seconds**3 == pytest.approx(joules * at_boost**2)
    # Work that is all memory costs its energy at any clock.
    assert _power(H100_SXM, 0.0, 1e15) == pytest.approx(1e15 * CONSTANTS["dram_joules"] / usable)


@pytest.mark.parametrize(
    ("dtype", "voltage"), [("bf16", "least_voltage"), ("fp32", "vector_voltage")]
)
def test_below_the_least_voltage_an_operation_costs_the_same_energy(dtype, voltage):
    starved = replace(H100_SXM, tdp_watts=50.0, base_share=0.0)
    joules = power.operation_joules(H100_SXM, CONSTANTS, dtype, vector=dtype == "fp32")
    least = CONSTANTS[voltage] ** 2 * 1e15 * joules / power.usable_watts(starved, CONSTANTS)
    assert _power(starved, 1e15, dtype=dtype) == pytest.approx(least)


@given(watts=st.floats(60, 2000), more=st.floats(1, 4), gigaflop=st.floats(1, 1e6))
def test_power_buys_time_but_no_more_than_its_share(watts, more, gigaflop):
    # More power is never a slower rate, and at most the rate of all that is usable.
    low, high = (replace(H100_SXM, tdp_watts=w) for w in (watts, watts * more))
    before, after = _power(low, 1e9 * gigaflop), _power(high, 1e9 * gigaflop)
    usable = power.usable_watts(high, CONSTANTS) / power.usable_watts(low, CONSTANTS)
    assert before / usable * (1 - 1e-9) <= after <= before * (1 + 1e-9)


def test_the_vector_unit_keeps_its_base_clock():
    p4 = machine(load("p4"))
    flops = p4.matrix_per_unit("fp32") * p4.units
    slowest = 1e12 / (0.8 * flops * 886 / 1063)
    assert _power(p4, 1e12, dtype="fp32", share=0.8) == pytest.approx(slowest)
    unknown = replace(p4, base_share=0.0)
    assert _power(unknown, 1e12, dtype="fp32", share=0.8) > slowest


def test_energy_falls_with_width_and_with_the_process():
    now, before = machine(H100), machine(load("v100-sxm2"))
    joules = lambda m, t, v=False: power.operation_joules(m, CONSTANTS, t, vector=v)  # noqa: E731
    assert joules(now, "fp8") < joules(now, "bf16") < joules(now, "tf32")
    assert joules(now, "fp16") < joules(before, "fp16")
    assert joules(now, "fp32", True) > joules(now, "fp32")
    # Fetching operands shrinks less than multiplying them.
    gates, wires = (joules(now, t, v) / joules(before, t, v) for t, v in (("fp16", 0), ("fp32", 1)))
    assert gates == pytest.approx(now.node_nm / before.node_nm)
    assert gates < wires == pytest.approx(gates ** CONSTANTS["vector_node"])


@pytest.mark.parametrize(
    ("slug", "share"),
    [("a100-sxm4-80gb", 1.0), ("h100-sxm", 0.62), ("b200", 0.25)],
)
def test_older_instructions_reach_a_share_of_newer_units(slug, share):
    here = machine(load(slug))
    assert matrix_share(kernel_facts("flash2"), here) == share
    assert matrix_share(kernel_facts("flash-triton"), here) == 1.0


def test_flash_2_is_slower_than_flash_3_on_hopper_and_the_same_on_ampere():
    problem = Attention(4, 32, 32, 8192, 8192, 128)
    old, new = (predict(problem, H100, implementation=i).seconds for i in ("flash2", "flash3"))
    assert 1.2 < old / new < 2.5
    fallen = predict(problem, A100, implementation="flash3")
    assert fallen.seconds == predict(problem, A100, implementation="flash2").seconds
    assert any("does not run on" in said for said in fallen.assumptions)


def test_floors_by_harness():
    cublas = kernel_facts("cublas")
    short, long = np.array([1e-6]), np.array([1e-2])
    run = CONSTANTS.run("cuda_events_eager")
    floor = run.start_seconds("gemm")
    assert floor < run.call_seconds("gemm")
    eager = floors.dispatch(CONSTANTS, "cuda_events_eager", "gemm", cublas.caller).whole(short)
    assert eager == max(run.call_seconds("gemm"), 1e-6 + floor)
    graph = floors.dispatch(CONSTANTS, "cuda_graph", "gemm", cublas.caller).whole(short)
    assert graph == pytest.approx(1e-6 + CONSTANTS.run("cuda_graph").start_seconds("gemm"))
    for harness in harnesses():
        assert floors.dispatch(CONSTANTS, harness, "gemm", cublas.caller).whole(long) >= long


def test_a_host_that_prepares_for_long_hides_the_kernel():
    deep, _ = resolve("gemm", "vllm:DeepGemmFp8BlockScaledMMKernel", "fp8_block", machine(H100))
    deep, floor = deep.caller, deep.caller.host_seconds
    assert floors.dispatch(CONSTANTS, "cuda_graph", "gemm", deep).whole(np.array([1e-6])) == floor
    assert floors.dispatch(CONSTANTS, "kernel", "gemm", deep).whole(np.array([1e-6])) < floor


def test_weight_only_bytes_are_those_of_the_narrow_weights():
    # 4 bits and a 16-bit scale for 128: 0.5156 B a weight, 1024 · 16384 · 0.5156 = 8.65 MB.
    assert element("int4_g128").bytes == 0.515625
    found = predict(Matmul(1, 16384, 1024, dtype="w4a16"), H100)
    assert found.bytes["hbm"] == pytest.approx(1024 * 16384 * 0.515625, rel=0.02)


@pytest.mark.parametrize("slug", ["h100-sxm", "a100-sxm4-80gb"])
@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_few_heads_fill_the_machine_by_slices_of_a_long_sequence(slug, direction):
    """The same work over fewer heads keeps its rate: FlashAttention-1 slices what it streams."""

    def rate(batch, length):
        problem = Attention(batch, 16, 16, length, length, 128, dtype="fp16", direction=direction)
        found = predict(problem, load(slug), implementation="flash1")
        return found.useful_flops / found.seconds

    assert rate(1, 16384) == pytest.approx(rate(16, 4096), rel=0.35)


@given(st.integers(1, 64), st.integers(1, 2048), st.sampled_from([64, 128]))
def test_key_slices_move_no_key_twice_and_each_query_once_a_slice(slices, length, bc):
    problem = Attention(1, 2, 2, length, length, 64, dtype="fp16", direction="bwd")
    key_slice = ceil_div(ceil_div(length, slices), bc) * bc
    tiles, blocks = ceil_div(length, bc), ceil_div(length, key_slice)

    def moved(**options):
        schedule = tiled.tiled_backward(None, 16, bc, order=1, **options)
        return count(schedule, problem.sizes(), problem.elements()).kernels[-1]

    whole, sliced = moved(), moved(key_slice=key_slice)
    for name in ("K", "V", "Q", "dO", "dK", "dV"):
        assert sliced.l2[name].total_bytes == whole.l2[name].total_bytes, name
    # O is read on the first key tile of every slice, dQ added once a key tile.
    assert sliced.l2["O"].total_bytes == blocks * whole.l2["O"].total_bytes
    assert sliced.blocks == blocks * whole.blocks
    assert sliced.l2["dQ"].total_bytes <= 2 * tiles * 2 * length * 64 * 4
