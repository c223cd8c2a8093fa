"""Which kernel of its library runs which problem: group, head size, cache, window, mask, grid."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from perfmodel import Attention, Matmul, load, predict
from perfmodel.predict import predict_arrays
from perfmodel.render.facts import shown
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.libraries.files import kernels
from perfmodel.timing.machine import machine
from perfmodel.timing.routing import routed, routes
from perfmodel.timing.stated import of_kernel

H100, A100, B200 = (load(slug) for slug in ("h100-sxm", "a100-sxm4-80gb", "b200"))
TRTLLM = "trtllm-1.3.0rc20:torch_flow"
WITH_ROUTES = sorted(name for name, kernel in kernels().items() if getattr(kernel, "where", ()))


def decode(batch=64, heads=32, kv_heads=8, keys=2048, dim=128, **more):
    return Attention(batch, heads, kv_heads, 1, keys, dim, **more)


# ---- Laws ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", ["h100-sxm", "a100-sxm4-80gb", "l40s", "b200"])
def test_problems_of_one_array_run_on_the_kernel_that_each_runs_on_alone(slug):
    groups = np.array([1, 2, 8, 16, 17, 32, 33, 64, 128])
    batch = np.array([1, 4, 16, 64, 256, 2, 8, 32, 128])
    many = Attention(batch, groups, 1, 1, 1024, 128)
    together = predict_arrays(many, load(slug), implementation=TRTLLM)
    for i, (heads, sequences) in enumerate(zip(groups, batch, strict=True)):
        one = Attention(int(sequences), int(heads), 1, 1, 1024, 128)
        alone = predict(one, load(slug), implementation=TRTLLM)
        assert together.one(i).implementation == alone.implementation
        assert together.seconds[i] == pytest.approx(alone.seconds)


@pytest.mark.parametrize("name", WITH_ROUTES)
def test_each_route_ends_at_a_kernel_without_routes(name):
    for route in kernel_facts(name).where:
        assert not kernel_facts(route.kernel).where


@pytest.mark.parametrize("name", WITH_ROUTES)
def test_the_first_route_that_holds_is_taken_and_none_is_the_kernel_itself(name):
    kernel, here = kernel_facts(name), machine(H100)
    problem = decode(heads=64, kv_heads=1, padding_mask=True)
    taken = int(routes(problem, kernel, here)[0])
    held = [
        len(kernel.where) > i
        and int(routes(problem, replace(kernel, where=(route,)), here)[0]) == 0
        for i, route in enumerate(kernel.where)
    ]
    assert taken == (held.index(True) if True in held else len(held))
    assert routed(problem, replace(kernel, where=()), here).name == name


# ---- TensorRT-LLM's decode -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("device", "problem", "kernel"),
    [
        # kernelUtils.cpp: 2 to 32 query heads a key-value head, heads to 256.
        (H100, decode(heads=32, kv_heads=1), "trtllm-xqa"),
        (H100, decode(heads=33, kv_heads=1), "trtllm-mmha"),
        (H100, decode(heads=8, kv_heads=8), "trtllm-mmha"),
        (H100, decode(dim=288), "trtllm-mmha"),
        (A100, decode(heads=64, kv_heads=1), "trtllm-mmha"),
        # The kernel fed from registers takes no window that hides keys, Hopper's own does.
        (H100, decode(window=1024, causal=True), "trtllm-mmha"),
        (H100, decode(window=4096, causal=True), "trtllm-xqa"),
        (H100, decode(window=1024, causal=True, kv_dtype="fp8"), "trtllm-xqa-wide"),
        (A100, decode(window=1024, causal=True, kv_dtype="fp8"), "trtllm-mmha"),
        # decoderXQAImplJIT.cpp: blocks x 4 >= units: 33 of H100's 132, 27 of A100's 108.
        (H100, decode(batch=33, heads=8, kv_heads=1, keys=8), "trtllm-xqa"),
        (H100, decode(batch=32, heads=8, kv_heads=1, keys=8), "trtllm-mmha"),
        (A100, decode(batch=27, heads=8, kv_heads=1, keys=8), "trtllm-xqa"),
        (A100, decode(batch=26, heads=8, kv_heads=1, keys=8), "trtllm-mmha"),
        (H100, decode(batch=1, heads=8, kv_heads=1, keys=33 * 128 + 1), "trtllm-xqa"),
        (H100, decode(batch=1, heads=8, kv_heads=1, keys=32 * 128 + 1), "trtllm-mmha"),
        # xqaDispatcher.cpp: up to 16 on datacentre Blackwell.
        (B200, decode(heads=16, kv_heads=1), "trtllm-gen"),
        (B200, decode(heads=17, kv_heads=1), "trtllm-mmha"),
        (B200, decode(heads=8, kv_heads=8), "trtllm-gen"),
    ],
)
def test_decode_of_tensorrt_llm_goes_to_the_kernel_of_its_dispatcher(device, problem, kernel):
    assert predict(problem, device, implementation=TRTLLM).implementation == kernel


def test_a_kernel_without_runs_in_the_fit_widens_the_range():
    prompt = Attention(2, 16, 16, 4096, 4096, 128, causal=True)
    fitted, named = (
        predict(prompt, H100, implementation=name) for name in ("flash3", "attention-gluon")
    )
    assert (fitted.known.implementation, named.known.implementation) == ("fitted", "named")
    widths = [np.log(time.high_seconds / time.low_seconds) for time in (fitted, named)]
    assert widths[1] > widths[0] > 0


def test_heads_that_share_no_keys_read_them_once_each():
    shared, apart = (
        predict(decode(batch=256, heads=heads, kv_heads=1), H100, implementation=TRTLLM)
        for heads in (32, 64)
    )
    assert apart.bytes["l2"] > 10 * shared.bytes["l2"]
    assert apart.seconds > 5 * shared.seconds


# ---- Others --------------------------------------------------------------------------------------


def test_an_explicit_mask_takes_the_mathematical_path():
    plain, masked = (
        predict(Attention(8, 16, 16, 512, 512, 64, padding_mask=mask), H100, implementation="sdpa")
        for mask in (False, True)
    )
    assert (plain.implementation, masked.implementation) == ("sdpa", "eager")
    assert masked.seconds > 3 * plain.seconds


@pytest.mark.parametrize(("name", "rows"), [("sglang-0.5.14:sgl", 128), ("vllm-0.24.0:fp8", 16)])
def test_fp8_products_of_small_blackwell_have_the_tiles_of_their_library(name, rows):
    problem = Matmul(16, 4096, 4096, dtype="fp8")
    found = predict(problem, load("rtx-pro-6000-server"), implementation=name)
    assert (found.tile["m"], found.tile["slices"]) == (rows, 1)


def test_routes_are_shown_by_their_conditions():
    found = {fact.name: fact for fact in of_kernel("trtllm-gen")}["where"]
    assert shown(found.value, found.unit) == "kernel trtllm-mmha, group 17 to 1e+06"
