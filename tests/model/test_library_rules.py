"""What libraries decide by rule: copies around decode, tiles by rows, queries and windows."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import count
from perfmodel.hardware import load
from perfmodel.operators import operator_of
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing import attention, attention_style, floors, rowwise
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import Caller, kernel_facts, resolve
from perfmodel.timing.machine import machine
from perfmodel.timing.setting import Setting

H100, A100, B200 = load("h100-sxm"), load("a100-sxm4-80gb"), load("b200")
PAGED = replace(kernel_facts("flash3"), caller=Caller(paged=True))
CONSTANTS = default()


def test_kernels_that_count_tokens_first_cost_many_queries_a_launch():
    spared = replace(kernel_facts("trtllm-hopper"), prepares=0)

    def beside(kernel, queries):
        problem = Attention(2, 8, 8, queries, 512, 64)
        return attention.forward_plan(problem, kernel, Setting(machine(H100), CONSTANTS)).beside

    assert beside(kernel_facts("trtllm-hopper"), 512) > CONSTANTS["kernel_gap"] > 0
    assert beside(spared, 512) == 0
    assert beside(kernel_facts("trtllm-xqa"), 1) == 0


def test_a_kernel_that_rotates_queries_narrows_them_too():
    problem = Attention(8, 32, 8, 1, 4096, 128, kv_dtype="fp8")
    how = {"implementation": "trtllm-1.0.0:torch_flow", "harness": "cuda_graph"}
    alone, together = (
        predict(problem, B200, includes=parts, **how).seconds
        for parts in (("kv_write",), ("rope", "kv_write"))
    )
    assert together < alone


def test_swapped_operands_pad_few_queries_little():
    # Decode on Blackwell multiplies 16 rows for 4 heads, where FlashAttention-4's tile has 128.
    problem = Attention(32, 32, 8, 1, 4096, 128)
    few, many = (
        predict(problem, B200, implementation=name).terms["special"]
        for name in ("trtllm", "flash4")
    )
    assert few == pytest.approx(many / 8)


def seconds_of(shape: Attention, device, implementation: str, **kwargs) -> float:
    return predict(shape, device, implementation=implementation, **kwargs).seconds


@pytest.mark.parametrize("groups", [1, 8])
def test_each_copy_costs_a_kernel(groups):
    # One sequence: queries are a view, the result alone is copied; several: four copies.
    one, two = (Attention(batch, 4 * groups, groups, 1, 64, 128) for batch in (1, 2))
    alone = [Attention(p.batch, groups, groups, 1, 64, 128) for p in (one, two)]
    copies = [seconds_of(p, A100, "flash2") - seconds_of(q, A100, "flash2")
              for p, q in zip((one, two), alone, strict=True)]  # fmt: skip
    gap = default()["kernel_gap"] * 1.75e9 / A100.boost_hz
    assert copies[0] > gap
    assert copies[1] / copies[0] == pytest.approx(4 if groups > 1 else 1, rel=0.05)


def test_units_search_sequences_31_at_a_time():
    # tile_scheduler.hpp: each further group of 31 is one more step, whatever there is to do.
    def once(batch: int) -> float:
        return attention_style._search_seconds(
            Attention(batch, 1, 1, 1, 64, 128), PAGED, Setting(machine(H100), default())
        ).item()

    assert once(1) == once(31) > 0
    assert once(62) == pytest.approx(2 * once(31))
    # A step adds up, and loads the numbers of slices from the L2.
    here, search = machine(H100), default()["tile_search"]
    assert once(1) == pytest.approx(here.at_clock(search) + here.l2_latency)
    # Beyond 512 sequences nothing is sliced, and no numbers of slices are loaded.
    assert once(1024) / 34 < once(512) / 17
    assert attention_style._search_seconds(
        Attention(64, 1, 1, 1, 64, 128), kernel_facts("flash3"), Setting(machine(H100), default())
    ) == 0  # fmt: skip


@pytest.mark.parametrize(
    ("m", "tiles"),
    [(1, {(64, 16), (64, 64)}), (64, {(64, 16), (64, 64)}), (65, {(64, 128)}),
     (128, {(64, 128)}), (129, {(128, 128)}), (8192, {(128, 128)})],
)  # fmt: skip
def test_fp8_tiles_are_dispatched_by_rows(m, tiles):
    for n, k in ((256, 512), (4096, 4096), (16384, 1024)):
        tile = predict(Matmul(m, n, k, dtype="fp8"), H100, implementation="cutlass-fp8").tile
        assert (tile["m"], tile["n"]) in tiles


def test_packing_heads_saves_blocks_where_queries_are_few():
    # 8 heads × 16 queries fill one tile of 128 rows instead of 8 tiles.
    shape = Attention(64, 32, 4, 16, 16, 128)
    packed = predict(shape, H100, implementation="flash3")
    alone = predict(Attention(64, 32, 32, 16, 16, 128), H100, implementation="flash3")
    assert alone.waves == pytest.approx(8 * packed.waves)
    assert packed.seconds < alone.seconds


@pytest.mark.parametrize(
    ("shape", "rows", "keys"),
    [
        # tile_size.h
        (Attention(4, 8, 8, 16, 16, 128, causal=True), 128, None),
        (Attention(4, 64, 8, 16, 16, 128, causal=True), 128, None),
        (Attention(4, 32, 8, 128, 128, 64, causal=True), 192, 128),
        (Attention(4, 8, 8, 1, 4096, 64), 64, 192),
        (Attention(4, 8, 8, 1, 4096, 64, kv_dtype="fp8"), 64, 128),
        (Attention(4, 8, 8, 1, 4096, 256), 128, 80),
        (Attention(4, 8, 8, 1, 4096, 64, causal=True, window=128), 192, 160),
        (Attention(4, 8, 8, 1, 4096, 128, causal=True, window=128), 128, 128),
        (Attention(4, 8, 8, 16, 4096, 128, causal=True, window=128), 128, 128),
        # A window that hides nothing is none.
        (Attention(4, 8, 8, 1, 128, 64, causal=True, window=128), 64, 192),
    ],
)
def test_tiles_of_flash3_go_by_queries_windows_and_types(shape, rows, keys):
    tile = predict(shape, H100, implementation="vllm:flash_attn_fa3").tile
    assert tile["rows"] == rows
    assert keys is None or tile["keys"] == keys


def test_arrays_mix_tiles_by_problem():
    shape = Attention(4, 8, 8, np.array([16, 64, 65, 512]), 512, 128, causal=True)
    found = predict_arrays(shape, H100, implementation="vllm:flash_attn_fa3")
    assert [found.one(i).tile["rows"] for i in range(4)] == [128] * 4
    windows = replace(shape, seq_q=1, seq_kv=np.array([64, 128, 129, 4096]), window=128)
    found = predict_arrays(windows, H100, implementation="vllm:flash_attn_fa3")
    assert [found.one(i).tile["rows"] for i in range(4)] == [64, 64, 128, 128]


@pytest.mark.parametrize("queries", [1, 16])
def test_a_window_of_none_among_others_hides_nothing(queries):
    shape = Attention(4, 8, 8, queries, 4096, 128, causal=True, window=np.array([0, 128, 0, 8192]))
    for name in ("vllm:flash_attn_fa3", "flash2"):
        found = predict_arrays(shape, H100, implementation=name).seconds
        whole = predict(replace(shape, window=None), H100, implementation=name).seconds
        assert found[[0, 2, 3]] == pytest.approx([whole] * 3, rel=1e-9)
        assert found[1] < whole


def masked(shape: Attention, rows: int, keys: int) -> float:
    """Instructions of FlashAttention-2 for the mask of one problem."""
    return float(attention_style.masking(shape, shape.mask(), 1, rows, keys))


@given(
    st.integers(1, 4), st.integers(2, 300), st.integers(0, 300), st.integers(1, 400) | st.none(),
    st.sampled_from([16, 64, 128]), st.sampled_from([32, 128]),
)  # fmt: skip
def test_masks_cost_compares_in_the_tiles_that_an_edge_cuts_and_no_others(
    heads, queries, more, window, rows, keys
):
    shape = Attention(1, heads, heads, queries, queries + more, 64, causal=True, window=window)
    found = masked(shape, rows, keys)
    each = 3.0 if shape.windowed() else 2.0
    tiles = heads * math.ceil(queries / rows)
    reach = queries + more if window is None else min(queries + more, rows + window)
    # At least one tile a query tile, no more than all that it sees.
    assert (
        tiles * rows * keys * each
        <= found
        <= tiles * rows * keys * each * (math.ceil(reach / keys))
    )
    plain = replace(shape, causal=False, window=None)
    assert masked(plain, rows, keys) == 0


def test_8_bit_values_are_transposed_by_who_loads_them():
    here, wide = machine(H100), Attention(1, 8, 8, 512, 512, 128)
    narrow = replace(wide, kv_dtype="fp8")
    seconds = attention_style.transposing(narrow, PAGED, here, CONSTANTS, 160)
    assert seconds == pytest.approx(160 * 128 / CONSTANTS["transposed_bytes"] / here.clock_hz)
    assert attention_style.transposing(wide, PAGED, here, CONSTANTS, 160) == 0
    assert attention_style.transposing(narrow, kernel_facts("cudnn"), here, CONSTANTS, 160) == 0
    # It runs beside the rest, but for the first tile of a block.
    terms = predict(narrow, H100, implementation="vllm_fa3").terms
    assert terms["transpose"] > 0


def test_schedulers_that_order_their_tiles_spend_longer_on_each():
    # flash_api.cpp: causal and windowed grids; one query is neither, but for heads of 128 in pages.
    packed = replace(PAGED, caller=Caller(paged=True, packed=True))

    def price(**kwargs) -> float:
        shape = Attention(8, 8, 8, **{"seq_q": 16, "seq_kv": 512, "head_dim": 128, **kwargs})
        return attention_style.style(shape, packed, Setting(machine(H100), CONSTANTS)).block.price

    plain, more = price(), CONSTANTS["ordered_price"] / CONSTANTS["block_price"]
    ordered = pytest.approx(plain + more)
    assert price(causal=True) == ordered
    assert price(causal=True, seq_q=1) == ordered
    assert price(causal=True, seq_q=1, head_dim=64) == plain
    assert price(causal=True, seq_q=1, head_dim=64, window=128) == ordered


def test_softmax_gradients_take_a_product_of_their_own_first():
    # SoftMax.cu, softmax_backward_cuda_out: grad · output is a kernel, and both are read again.
    back = Rowwise("softmax", 65536, 512, "fp32", direction="bwd")
    fused = predict(back, A100, implementation="fused-rows").seconds
    eager = predict(back, A100, implementation="torch").seconds
    assert eager > 1.8 * fused


@pytest.mark.parametrize("variant", ["div", "mul", "pow", "where"])
def test_scalar_operands_of_traced_graphs_move_nothing(variant):
    both = Rowwise("pointwise", 16384, 4096, "fp32", variant, inputs=2)
    one = Rowwise("pointwise", 16384, 4096, "fp32", variant, inputs=1)
    named = {p.inputs: predict(p, A100, implementation="torch-eager(HF fx)") for p in (both, one)}
    assert named[2].seconds == pytest.approx(named[1].seconds)
    assert predict(both, A100, implementation="torch").bytes["hbm"] == 1.5 * named[2].bytes["hbm"]


def called_as(problem):
    """The operator whose launch floor a problem has."""
    return operator_of(problem).called_as(problem)


def test_gradients_have_the_floor_of_a_plain_call():
    there = Rowwise("layernorm", 1024, 1024, "fp32")
    assert called_as(there) == "layernorm"
    assert called_as(replace(there, direction="bwd")) == "pointwise"


@pytest.mark.parametrize(
    "variant", ["add_scalar", "mul_scalar", "div_scalar", "pow_scalar", "relu"]
)
def test_a_map_with_a_scalar_is_dispatched_twice(variant):
    # ATen wraps the scalar in a tensor and calls the map of two tensors; relu is clamp_min with 0.
    scalar = Rowwise("pointwise", 1024, 1024, "fp32", variant)
    plain = replace(scalar, variant="tanh")
    assert [called_as(p) for p in (scalar, plain)] == ["scalar", "pointwise"]
    assert called_as(replace(scalar, direction="bwd")) == "pointwise"
    eager, graph, profiler = (
        [CONSTANTS.run(harness).start_seconds(called_as(p)) for p in (scalar, plain)]
        for harness in ("cuda_events_eager", "cuda_graph", "profiler")
    )
    assert eager[0] > eager[1]
    # Where the host is not in the way, the second dispatch is not seen.
    assert graph[0] == graph[1]
    assert profiler[0] == profiler[1]


@given(columns=st.integers(1, 2**16), rows=st.integers(1, 2**20))
def test_folding_the_moments_of_a_row_costs_the_same_whatever_its_length(columns, rows):
    kernel = kernel_facts("torch-layernorm")
    without = replace(kernel.rows, folded_vector_ops=0.0)

    def beyond(kernel):
        problem = Rowwise("layernorm", rows, columns, "fp32")
        made = rowwise.plan(problem, kernel, Setting(machine(A100), CONSTANTS)).parts[0].style.code
        return made.vector_ops

    # 128 threads a row, five folds of a warp, 11 operations each.
    folds = (beyond(kernel) - beyond(replace(kernel, rows=without))) / rows
    assert folds == pytest.approx(128 * 5 * 11)


@given(elements=st.integers(1, 2**34), variant=st.sampled_from(["gelu", "pow_scalar", "pow"]))
def test_maps_take_the_operations_that_their_code_is_compiled_to(elements, variant):
    kernel = kernel_facts("torch-pointwise")
    inputs = 2 if variant == "pow" else 1
    problem = Rowwise("pointwise", elements, 1, "fp32", variant, inputs=inputs)

    def part(kernel):
        return rowwise.plan(problem, kernel, Setting(machine(A100), CONSTANTS)).parts[0]

    made = part(kernel)
    textbook = count(made.schedule, made.sizes, made.elements)
    found, plain = made.style.code, part(replace(kernel, compiled={})).style.code
    integer = found.integer_ops - plain.integer_ops
    vector = textbook.vector_ops + found.vector_ops
    special = textbook.special_ops + found.special_ops
    assert [vector, integer, special] == pytest.approx(
        [elements * each for each in kernel.compiled[variant]]
    )
    assert not found.accurate


@pytest.mark.parametrize("variant", ["tanh", "gelu", "sigmoid"])
def test_arithmetic_of_a_map_hides_under_its_traffic(variant):
    # On devices whose memory takes longer; the map of one plain operation moves as much.
    usual, plain = (Rowwise("pointwise", 2**14, 2**14, "fp32", name) for name in (variant, "neg"))
    for slug in ("v100-pcie-32gb", "a100-sxm4-80gb", "p100-pcie-16gb"):
        here = load(slug)
        times = [predict(p, here, implementation="torch").seconds for p in (usual, plain)]
        assert times[1] <= times[0] <= 1.02 * times[1]


def test_powers_to_the_last_digit_outlast_the_memory_of_pascal_alone():
    # Comparisons and selections have no lanes of their own before Volta.
    power, plain = (Rowwise("pointwise", 2**14, 2**14, "fp32", v) for v in ("pow_scalar", "neg"))

    def longer(slug):
        times = [predict(p, load(slug), implementation="torch").seconds for p in (power, plain)]
        return times[0] / times[1]

    assert longer("p100-pcie-16gb") > 1.1 > longer("v100-pcie-32gb")


def test_gradients_of_a_norm_update_no_moments():
    # layer_norm_grad_input_kernel adds up two plain sums; Welford's update is of the forward pass.
    kernel = kernel_facts("torch-layernorm")
    forward, back = (
        rowwise.plan(
            Rowwise("layernorm", 4096, 1024, "fp32", direction=way),
            kernel, Setting(machine(A100), CONSTANTS),
        ).parts[-1].style
        for way in ("fwd", "bwd")
    )  # fmt: skip
    assert forward.code.vector_ops > 0
    assert (back.code.vector_ops, back.code.special_ops) == (0.0, 0.0)


def test_a_batched_product_has_a_floor_of_its_own_where_there_is_one():
    one, many = Matmul(8, 8, 8), Matmul(8, 8, 8, 2)
    assert [called_as(p) for p in (one, many)] == ["gemm", "bmm"]
    assert called_as(replace(one, gradient=True)) == "bmm"
    found = {
        harness: [CONSTANTS.run(harness).start_seconds(name) for name in ("gemm", "bmm")]
        for harness in ("cuda_events_eager", "cuda_graph")
    }
    assert found["cuda_events_eager"][1] < found["cuda_events_eager"][0]
    assert found["cuda_graph"][1] == found["cuda_graph"][0]


@pytest.mark.parametrize("dtype", ["w8a16", "w8a8_int8"])
def test_kernels_of_few_rows_start_by_themselves_where_layers_are_timed_one_by_one(dtype):
    name = f"trtllm-1.0.0:{'weight_only' if dtype == 'w8a16' else 'smooth_quant'}/PLUGIN_V2_"
    kernel, _ = resolve("gemm", name, dtype, machine(A100))
    caller, few = kernel.caller, np.array([1, 4, 5, 512]) <= kernel.few_rows
    device = np.full(4, 1e-5)
    found = floors.dispatch(CONSTANTS, "cuda_graph", "gemm", caller, few).whole(device)
    starts = [caller.few_start_seconds] * 2 + [caller.start_seconds] * 2
    assert 0 < starts[0] < starts[-1]
    floor = CONSTANTS.run("cuda_graph").start_seconds("gemm")
    assert found == pytest.approx(1e-5 + floor + np.array(starts))
    alone = floors.dispatch(CONSTANTS, "kernel", "gemm", caller, few).whole(device)
    assert np.ptp(alone) == 0


@pytest.mark.parametrize(
    ("name", "start"), [("flash3", CONSTANTS["specialised_start"]), ("flash2", 0.0)]
)
def test_persistent_blocks_of_specialised_warps_alone_are_set_up_once(name, start):
    shape = Attention(1, 8, 8, 4096, 4096, 128)
    how = attention_style.style(shape, kernel_facts(name), Setting(machine(H100), CONSTANTS))
    assert how.block.setup_seconds == start
