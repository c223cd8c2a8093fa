"""Devices and frameworks without measured runs: every row is predicted, by its library's kernel."""

import numpy as np
import pytest

from perfmodel.algorithms.attention import Attention
from perfmodel.algorithms.matmul import Matmul
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing.libraries import kernel_facts, resolve
from perfmodel.timing.libraries.naming import caller_of
from perfmodel.timing.machine import machine
from perfmodel.timing.physical import floor_seconds

FLOW = "trtllm-1.3.0rc20:torch_flow"


@pytest.mark.parametrize(
    ("slug", "name", "head_dim", "queries"),
    [
        ("t4", FLOW, 128, 2048),
        ("l40", "sglang-0.5.14:fa3", 256, 1),
        ("mi325x", "aiter:fmha", 256, 1),
        ("rtx-pro-6000-server", "vllm-1.0.0:vllm_triton_attn", 256, 2048),
    ],
)
def test_where_no_tile_fits_a_smaller_one_runs(slug, name, head_dim, queries):
    problem = Attention(4, 32, 8, queries, 2048, head_dim, causal=True, dtype="fp16")
    found = predict(problem, load(slug), implementation=name)
    assert np.isfinite(found.seconds)
    assert any("a smaller one taken" in said for said in found.assumptions)


def test_smaller_tiles_end_at_the_least_instruction():
    kernel, seen = kernel_facts("flash2"), set()
    while kernel.smaller() != kernel:
        kernel = kernel.smaller()
        seen |= {menu[-1][:2] for menu in kernel.tiles.values()}
    assert min(min(tile) for tile in seen) == 16


def test_a_tile_that_fits_stays():
    problem = Attention(4, 32, 8, 2048, 2048, 128, causal=True, dtype="fp16")
    said = predict(problem, load("l40"), implementation="flash2").assumptions
    assert not any("smaller one" in text for text in said)


def test_tensorrt_llm_takes_the_maximum_of_activations_in_each_call():
    kernel, _ = resolve("gemm", FLOW, "fp8", machine(load("h100-sxm")))
    assert kernel.quantiser == "tensor-quantise"
    chain, plain = kernel_facts("tensor-quantise").chain, kernel_facts("flat-quantise").chain
    assert len(chain.steps) == len(plain.steps) + 3
    assert sum(read == "data" for read, *_ in chain.steps) == 2


@pytest.mark.parametrize("slug", ["l40s", "rtx-pro-6000-server"])
def test_tensorrt_llm_narrows_for_block_scales_where_there_is_no_deepgemm(slug):
    kernel, _ = resolve("gemm", FLOW, "fp8_block", machine(load(slug)))
    assert kernel.name == "trtllm-fp8-block"
    few = Matmul(16, 4096, 4096, dtype="fp8_block")
    times = predict(few, load(slug), implementation=FLOW, harness="cuda_graph")
    assert times.terms["included"] > 0


def test_layers_of_tensorrt_llm_are_random_but_for_its_plugins():
    assert caller_of("gemm", FLOW, "bf16", "wgmma").activity == 1.0
    plugin = caller_of("gemm", "trtllm-1.0.0:smooth/PLUGIN_V2_x", "w8a8_int8", "mma")
    assert plugin.activity is None


def test_sglang_runs_its_triton_kernel_where_there_is_no_deepgemm():
    here = machine(load("rtx-pro-6000-server"))
    kernel, _ = resolve("gemm", "sglang-0.6.0:sglang", "fp8_block", here)
    assert kernel.name == "triton-fp8-block"


def test_no_kernel_beats_the_dot_products_of_integer_lanes():
    layer = Matmul(8192, 8192, 8192, dtype="int8")
    v100 = load("v100-sxm2")
    found = predict(layer, v100, implementation="cublas")
    least = floor_seconds(layer, v100, layer.flops())
    assert 0.5 * found.seconds < least < found.seconds
