"""What attention kernels of serving frameworks do without, and what callers do beside them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention
from perfmodel.hardware import load
from perfmodel.operators.included import included_seconds
from perfmodel.predict import predict
from perfmodel.timing import attention, attention_style
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import Caller, caller_of, kernel_facts, resolve
from perfmodel.timing.machine import machine
from perfmodel.timing.setting import Setting

CONSTANTS = default()
A100, H100, L40S, B200 = (load(name) for name in ("a100-sxm4-80gb", "h100-sxm", "l40s", "b200"))
EXTEND = kernel_facts("sglang-triton-hopper")
UNIFIED = kernel_facts("vllm-triton")


def on(device) -> Setting:
    return Setting(machine(device), CONSTANTS)


def prefill(keys: int = 4096, dim: int = 128, **other) -> Attention:
    return Attention(1, 8, 8, keys, keys, dim, causal=True, dtype="bf16", **other)


def decode(keys: int = 4096, batch: int = 8, groups: int = 8, together: int = 4, **other):
    return Attention(batch, groups * together, groups, 1, keys, 128, dtype="bf16", **other)


# ---- Which kernel runs ---------------------------------------------------------------------------


@cases
def test_frameworks_take_the_kernel_of_the_architecture(name, device, expected):
    found, said = resolve("attention", name, "bf16", machine(load(device)))
    assert found.name == expected
    assert not any("does not run" in line for line in said)


def test_decode_has_a_kernel_of_its_own():
    name, here = "sglang-0.5.14:triton", machine(L40S)
    assert resolve("attention", name, "bf16", here, decode=True)[0].name == "sglang-triton-decode"


@pytest.mark.parametrize("device", [A100, H100, L40S, B200], ids=lambda device: device.slug)
def test_flashinfer_decodes_by_registers_in_sglang(device):
    found, _ = resolve(
        "attention", "sglang-0.5.14:flashinfer", "bf16", machine(device), decode=True
    )
    assert found.instruction == "register"


# ---- Tiles one after another, masks everywhere ---------------------------------------------------


@pytest.mark.parametrize("device", [A100, H100, L40S, B200], ids=lambda device: device.slug)
def test_a_kernel_of_one_stage_waits_for_its_loads_and_hides_nothing(device):
    """One block a unit: no less than both loads of each tile and all stages in turn."""
    name = "sglang-0.5.14:triton"
    found = predict(prefill(dim=256), device, implementation=name)
    stages = sum(found.terms[term] for term in ("matrix", "special", "vector", "l2"))
    assert found.seconds > 2.0 * found.terms["latency"] + stages / max(found.occupancy, 1.0)


def test_tiles_in_registers_on_their_way_leave_room_for_fewer_blocks():
    wide, narrow = prefill(dim=256), prefill(dim=64)
    here = machine(H100)
    held = [
        attention_style.staged_resident(problem, EXTEND, here, 64, 64, 256)
        for problem in (wide, narrow)
    ]
    assert held[0] == 1 < held[1]
    ahead = replace(EXTEND, waits=0)
    assert attention_style.staged_resident(wide, ahead, here, 64, 64, 256) == np.inf


@given(st.integers(1, 64), st.integers(1, 8))
def test_every_tile_of_triton_is_masked(blocks, times):
    problem = prefill(128 * blocks)
    found = attention_style.masking_all(problem, EXTEND, 1.0, 128, 64)
    visited = 8 * sum(2 * (row + 1) for row in range(blocks))
    # A compare for the edge and a selection, for each score of each visited tile.
    assert found == pytest.approx(2 * visited * 128 * 64, rel=0.3 / blocks + 0.02)
    assert found >= attention_style.masking(problem, problem.mask(), 1.0, 128, 64)


def test_a_loop_that_walks_tests_the_tiles_that_a_window_hides():
    """Under a window the work of masks grows with the square of the keys, not of products."""
    short, long = (prefill(keys, window=128) for keys in (4096, 16384))
    walked = [attention_style.masking_all(p, EXTEND, 1.0, 64, 64) for p in (short, long)]
    assert walked[1] / walked[0] == pytest.approx(16, rel=0.05)
    skipping = replace(EXTEND, walks=False)
    skipped = [attention_style.masking_all(p, skipping, 1.0, 64, 64) for p in (short, long)]
    assert skipped[1] / skipped[0] == pytest.approx(4, rel=0.05)
    flops = [
        predict(p, H100, implementation="sglang-0.5.14:triton").flops["matrix"]
        for p in (short, long)
    ]
    assert flops[1] / flops[0] == pytest.approx(4, rel=0.1)


@pytest.mark.parametrize(("dim", "chained"), [(64, False), (72, True), (80, True), (128, False)])
def test_flash_attention_4_takes_turns_at_some_heads_alone(dim, chained):
    how = attention_style.style(prefill(dim=dim), kernel_facts("flash4"), on(B200))
    assert how.turns.chained == chained


# ---- Narrow caches -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bf16", "fp8"])
def test_conversions_are_counted_where_the_cache_alone_is_narrow(dtype):
    problem = Attention(1, 16, 1, 64, 4096, 128, dtype=dtype, kv_dtype="fp8")
    found = attention_style.widening(problem, UNIFIED, 16.0, 16, 32)
    # 64 blocks of one token with its 16 heads, each of which converts all keys and values.
    assert found == (UNIFIED.widening_ops * 64 * 4096 * 256 if dtype == "bf16" else 0)
    same = replace(problem, kv_dtype=None)
    assert attention_style.widening(same, UNIFIED, 16.0, 16, 32) == 0


def test_conversions_fill_heads_up_to_what_was_compiled():
    problem = Attention(1, 16, 1, 64, 4096, 192, dtype="bf16", kv_dtype="fp8")
    found = attention_style.widening(problem, UNIFIED, 16.0, 16, 32)
    assert found == UNIFIED.widening_ops * 64 * 4096 * 512


def test_products_take_the_type_of_a_narrower_cache_where_queries_are_narrowed():
    here, problem = machine(B200), prefill(kv_dtype="fp8")
    assert attention_style.compute_type(problem, here, kernel_facts("fmha")) == "fp8"
    assert attention_style.compute_type(problem, here, kernel_facts("trtllm")) == "bf16"


def test_sglang_reads_fresh_keys_in_their_own_type():
    name = "sglang-0.5.14:triton"
    wide, narrow = (
        predict(prefill(kv_dtype=kind), H100, implementation=name) for kind in ("bf16", "fp8")
    )
    assert narrow.seconds == wide.seconds
    other = [
        predict(
            Attention(1, 8, 8, 1024, 4096, 128, causal=True, dtype="bf16", kv_dtype=kind),
            H100,
            implementation=name,
        ).seconds
        for kind in ("bf16", "fp8")
    ]
    assert other[0] != other[1]


def test_sglangs_ragged_flashinfer_sees_beyond_a_window():
    name = "sglang-0.5.14:flashinfer"
    whole, windowed = (
        predict(prefill(window=window), L40S, implementation=name) for window in (None, 512)
    )
    assert windowed.seconds == whole.seconds
    other = predict(prefill(window=512), L40S, implementation="vllm-0.24.0:vllm_flashinfer")
    assert other.seconds < 0.6 * whole.seconds


def kv_write(name: str, device, problem: Attention) -> float:
    kernel, _ = resolve("attention", name, problem.dtype, machine(device))
    return float(np.max(included_seconds(on(device), problem, kernel, ["kv_write"])))


def test_sglang_narrows_keys_and_values_in_kernels_of_their_own():
    problem = decode(kv_dtype="fp8")
    gap = on(L40S).at_clock("kernel_gap")
    own = kv_write("sglang-0.5.14:flashinfer", L40S, problem)
    other = kv_write("vllm-0.24.0:vllm_flashinfer", L40S, problem)
    assert own == pytest.approx(other + 2 * gap, rel=0.05)


def test_sglang_narrows_queries_for_tensorrt_llm_by_three_kernels_whatever_a_row_says():
    gap = on(B200).at_clock("kernel_gap")
    name = "sglang-0.5.14:trtllm_mha"
    wide, narrow = (kv_write(name, B200, decode(kv_dtype=kind)) for kind in ("bf16", "fp8"))
    assert narrow - wide == pytest.approx(5 * gap, rel=0.05)
    said = kv_write(name, B200, replace(decode(kv_dtype="fp8"), dtype="fp8"))
    assert said == pytest.approx(narrow)


@pytest.mark.parametrize(("device", "gaps"), [(A100, 0), (H100, 1)], ids=["a100", "h100"])
def test_a_cache_is_written_ahead_where_the_architecture_can(device, gaps):
    ahead = kv_write("sglang-0.5.14:fa3", device, decode())
    apart = kv_write("vllm-0.24.0:vllm_flash_attn", device, decode())
    assert apart - ahead == pytest.approx(gaps * on(device).at_clock("kernel_gap"))


def test_keys_and_values_of_different_heads_go_to_the_cache_by_four_kernels():
    gap = on(L40S).at_clock("kernel_gap")
    own, other = (
        kv_write(f"{name}:triton", L40S, replace(decode(), head_dim=192))
        for name in ("sglang-0.5.14", "vllm-0.24.0")
    )
    assert own - other == pytest.approx(3 * gap, rel=0.05)
    assert kv_write("sglang-0.5.14:triton", L40S, decode()) < other + gap


def test_heads_of_192_have_values_of_128_in_sglang():
    problem = replace(prefill(), head_dim=192)
    own = predict(problem, H100, implementation="sglang-0.5.14:fa3")
    said = predict(replace(problem, head_dim_v=128), H100, implementation="sglang-0.5.14:fa3")
    assert own.seconds == said.seconds
    wide = predict(replace(problem, head_dim_v=192), H100, implementation="sglang-0.5.14:fa3")
    assert own.seconds < wide.seconds


# ---- Slices --------------------------------------------------------------------------------------


def grouped(window: int | None, keys: int):
    kernel = replace(kernel_facts("flash2"), caller=Caller(paged=True, packed=True))
    return attention.forward_plan(decode(keys, window=window), kernel, on(L40S))


@pytest.mark.parametrize("keys", [64, 8192])
def test_a_stated_window_keeps_flash_attention_2s_heads_apart_and_its_keys_whole(keys):
    free, stated = grouped(None, keys), grouped(128, keys)
    heads = [np.max(plan.parts[0].schedule.kernels[0].nest[2].tile) for plan in (free, stated)]
    assert heads == [4, 1]
    assert np.max(stated.beside) == 0 < np.max(free.beside)  # no copies into another order
    assert np.all(stated.tile["splits"] == 1)


@given(st.integers(1, 512), st.integers(1, 16))
def test_small_grids_are_cut_into_segments(batch, groups):
    sizes = {"b": np.array([[float(batch)]]), "g": np.array([[float(groups)]])}
    found = UNIFIED.cut.number(sizes, (16, 16, 128), machine(H100))
    assert found == (16 if batch * groups <= 128 else 1)


def test_segments_are_of_all_keys_so_that_a_window_lies_in_one_of_them():
    kernel = replace(
        UNIFIED, caller=caller_of("attention", "vllm:vllm_triton_attn", "bf16", "tcgen05")
    )
    whole = attention.forward_plan(decode(65536), kernel, on(B200))
    windowed = attention.forward_plan(decode(65536, window=128), kernel, on(B200))
    assert np.max(whole.tile["splits"]) == 16
    assert np.max(windowed.tile["splits"]) == 1
    assert len(windowed.parts) == 2  # the kernel that adds up runs all the same


@pytest.mark.parametrize(("name", "parts"), [("vllm", 2), ("sglang", 1)])
def test_flashinfer_adds_slices_up_in_every_captured_decode(name, parts):
    caller = caller_of("attention", f"{name}-0.24.0:flashinfer", "bf16", "mma")
    kernel = replace(kernel_facts("fmha-small"), caller=caller)
    assert len(attention.forward_plan(decode(64), kernel, on(L40S)).parts) == parts


def test_sglangs_triton_decode_has_eight_slices_in_its_grid():
    kernel = replace(kernel_facts("sglang-triton-decode"), caller=Caller(paged=True))
    made = attention.forward_plan(decode(64, batch=256), kernel, on(L40S))
    assert np.max(made.tile["splits"]) == 1
    assert len(made.parts) == 2


@pytest.mark.parametrize(("keys", "cut"), [(448, False), (4096, True)])
def test_flash_attention_3_cuts_no_short_keys_unless_it_is_told_how_many_slices(keys, cut):
    kernel = replace(kernel_facts("flash3-ampere"), caller=Caller(paged=True, packed=True))
    made = attention.forward_plan(decode(keys, batch=2, groups=2), kernel, on(A100))
    assert (np.max(made.tile["splits"]) > 1) == cut
    assert np.max(made.tile["keys"]) == (112 if cut else 64)
    told = replace(kernel, caller=replace(kernel.caller, captured=True))
    made = attention.forward_plan(decode(448, batch=2, groups=2), told, on(A100))
    assert np.max(made.tile["splits"]) > 1


def test_a_block_finds_its_sequence_by_halving():
    found = [
        attention_style.style(decode(batch=batch), UNIFIED, on(L40S)).block.waits
        for batch in (1, 3, 1023)
    ]
    assert found == [1, 2, 10]


# ---- Prompts of one token ------------------------------------------------------------------------


@pytest.mark.parametrize("keys", [1, 2])
def test_a_prompt_of_one_token_is_no_decode_in_sglang(keys):
    problem = Attention(4, 8, 2, 1, keys, 128, causal=True, dtype="bf16")
    own, other = (
        predict(problem, B200, implementation=name).tile["rows"]
        for name in ("sglang-0.5.14:trtllm_mha", "vllm-0.24.0:vllm_flashinfer")
    )
    assert other == 16
    assert (own > 16) == (keys == 1)
