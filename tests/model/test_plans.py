"""What a library's kernel is given, by hand: tiles, threads, instructions, kernels beside it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.algorithms.algorithm import Algorithm, Step, Tensor
from perfmodel.arithmetic import ceil_div
from perfmodel.count import count, rule
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.operators import included
from perfmodel.predict import predict, predict_arrays
from perfmodel.schedules import tiled
from perfmodel.schedules.schedule import Kernel, Loop, Schedule
from perfmodel.timing import (
    attention,
    attention_style,
    floors,
    memory,
    physical,
    pipes,
    rowwise,
    splitkv,
)
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import Caller, kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.menu import candidates, slice_k, stages_held, step_depth
from perfmodel.timing.runs import UNKNOWN
from perfmodel.timing.setting import Setting

CONSTANTS = default()
A100, H100 = (machine(load(slug)) for slug in ("a100-sxm4-80gb", "h100-sxm"))
near = pytest.approx


# ---- Rows ----------------------------------------------------------------------------------------


def kernel_of(name: str, op: str, cols: int, dtype: str = "fp32", rows: int = 100, **more):
    """The plan of one row-wise kernel: its part's kernel, and its style."""
    problem = Rowwise(op, rows, cols, dtype, **more)
    part = rowwise.plan(problem, kernel_facts(name), Setting(A100, CONSTANTS)).parts[-1]
    return part.schedule.kernels[0], part.style


@cases
def test_softmax_rows_are_laid_out_as_pytorch_does(cols, dtype, threads, tile, rows, passes):
    kernel, _ = kernel_of("torch-softmax", "softmax", cols, dtype)
    (down,), (along,) = kernel.loops("n"), kernel.loops("c")
    assert (float(kernel.threads), float(along.tile)) == (threads, tile)
    assert (float(down.tile), float(kernel.row_passes)) == (rows, passes)


def test_blocks_of_rows_have_two_warps_at_least_and_what_their_class_takes():
    # vLLM's norm: a thread an element, from a warp of them to 1,024, and the row read twice.
    for cols, threads in ((16, 64), (64, 64), (65, 65), (1000, 1000), (5000, 1024)):
        kernel, _ = kernel_of("vllm-rmsnorm", "rmsnorm", cols)
        assert float(kernel.threads) == threads
        (along,) = kernel.loops("c")
        assert float(along.tile) == min(cols, 1024)
        assert float(kernel.row_passes) == 2
    kernel, style = kernel_of("cache-write", "pointwise", 5000, rows=7)
    assert float(kernel.threads) == 512
    assert style.block.waits == 2
    assert float(kernel_of("cache-write", "pointwise", 3, rows=7)[0].threads) == 64


def test_a_row_waits_for_its_reductions():
    # Maximum and sum within warps and across them; a norm's one sum; a warp's row within it alone;
    # what is read once and held by no one waits for one step.
    price = CONSTANTS["row_price"]

    def steps(name, op, cols):
        return kernel_of(name, op, cols)[1].block.chain_seconds / price

    assert steps("torch-softmax", "softmax", 4096) == near(4)
    assert steps("torch-softmax", "softmax", 1024) == near(2)
    assert steps("torch-layernorm", "layernorm", 4096) == near(2)
    assert steps("vllm-rmsnorm", "rmsnorm", 512) == near(2)
    assert steps("vllm-static-quantise", "quantise", 4096) == near(1)
    assert steps("cache-write", "pointwise", 4096) == near(1)
    assert steps("torch-pointwise", "pointwise", 4096) == 0


def integers(name: str, op: str, cols: int, dtype: str = "fp32", **more) -> float:
    """Integer instructions of an element."""
    return float(np.max(kernel_of(name, op, cols, dtype, **more)[1].code.integer_ops)) / (
        100 * cols
    )


def test_integer_instructions_of_accesses_by_hand():
    # A load, its address, the bound and the branch: four of each access. In registers a softmax's
    # elements are loaded and stored by four.
    assert integers("torch-softmax", "softmax", 1000) == near(2 * 4 / 4)
    # Streamed three times and stored: four elements an access where a row is whole rounds of them.
    assert integers("torch-softmax", "softmax", 4096) == near(4 * 4 / 4)
    # 6,000 in 512 threads: two rounds of 2,048 in loads of four, 1,904 elements one at a time.
    share = 4096 / 6000
    assert integers("torch-softmax", "softmax", 6000) == near(16 * (share / 4 + 1 - share))
    # 8,194 are no whole loads: 512 elements align the row, three rounds of 2,048 are left whole.
    share = 6144 / 8194
    assert integers("torch-softmax", "softmax", 8194) == near(16 * (share / 4 + 1 - share))
    # 1,030 in 256 threads: 774 behind the alignment are no round of 1,024.
    assert integers("torch-softmax", "softmax", 1030) == near(16)
    # A map of two inputs has three streams, of four elements an access, or of one.
    assert integers("torch-pointwise", "pointwise", 4096, inputs=2) == near(4 * 3 / 4)
    assert integers("vllm-activation", "pointwise", 4096, variant="silu_mul", inputs=2) == near(
        4 * sum(Rowwise("pointwise", 1, 1, "fp32", "silu_mul", inputs=2).streams())
    )


def test_operations_beyond_the_textbooks_grow_where_a_row_is_streamed_again():
    held, streamed = (kernel_of("torch-softmax", "softmax", n)[1].code for n in (1024, 4096))
    assert (np.max(held.vector_ops), np.max(held.special_ops)) == (0, 100 * 1024)
    assert np.max(streamed.special_ops) == 2 * 100 * 4096


# ---- Attention -----------------------------------------------------------------------------------


@cases
@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_the_longest_block_under_a_causal_mask_by_hand(queries, longest, direction):
    shape = Attention(2, 3, 3, queries, queries, 64, causal=True, direction=direction)
    forward = tiled.tiled(shape.mask(), 64, 64)
    made = forward if direction == "fwd" else tiled.tiled_backward(shape.mask(), 64, 64)
    cost = count(made, shape.sizes(), shape.elements()).kernels[-1]
    assert pipes.longest_share(cost) == near(longest)
    plain = count(tiled.tiled(None, 64, 64), shape.sizes(), shape.elements()).kernels[0]
    assert pipes.longest_share(plain) == 1


@pytest.mark.parametrize("kernels", [0, 1, 2])
def test_small_kernels_before_one_for_many_queries_cost_what_they_are(kernels):
    shape = Attention(4, 8, 8, 512, 512, 128, causal=True)
    kernel = replace(kernel_facts("flash3"), prepares=kernels)
    found = attention.forward_plan(shape, kernel, Setting(H100, CONSTANTS)).beside
    started = CONSTANTS["kernel_gap"] + CONSTANTS["kernel_start"] + CONSTANTS["block_price"]
    each = H100.at_clock(started) + 3 * H100.l2_latency
    assert found == near(kernels * each)


@cases
def test_combining_kernels_with_nothing_to_combine_by_hand(sizes, blocks):
    axes = {axis: np.array([[float(sizes.get(axis, 1))]]) for axis in "bgrqd"}
    price = H100.at_clock(CONSTANTS["block_price"])
    rounds = max(blocks / (H100.units * 8), 1)
    found = splitkv._idle_seconds(axes, Setting(H100, CONSTANTS)).item()
    assert found == near(rounds * (price + 3 * H100.l2_latency))


def test_what_idles_beside_a_paged_decode_is_one_kernel_and_no_other():
    paged = replace(kernel_facts("flash3"), caller=Caller(paged=True))

    def beside(batch: int) -> tuple[float, float]:
        shape = Attention(batch, 1, 1, 1, 8192, 128)
        how = attention_style.style(shape, paged, Setting(H100, CONSTANTS))
        made = splitkv.split_plan(shape, None, paged, Setting(H100, CONSTANTS), how)
        return made.tile["splits"].item(), np.max(made.beside)

    axes = {axis: np.array([[500.0 if axis == "b" else 1.0]]) for axis in "bgrq"}
    idle = splitkv._idle_seconds(axes | {"d": np.array([[128.0]])}, Setting(H100, CONSTANTS)).item()
    # 500 sequences are whole, and the kernel that adds up finds that out; 60 are cut in two.
    assert beside(500) == (1, near(idle))
    assert beside(60) == (2, 0)


def test_queries_that_are_narrowed_are_those_of_all_heads():
    # 16-bit queries to 8 bits: 3 bytes for each element, of every head and new token.
    shape = Attention(4, 24, 8, 16, 16, 128, kv_dtype="fp8")
    native, plain = kernel_facts("flash3"), kernel_facts("flash2")

    def seconds(kernel, *names):
        return np.max(included.included_seconds(Setting(H100, CONSTANTS), shape, kernel, names))

    moved = 4 * 16 * 24 * 128 * 3 / memory.hbm_rate(H100, CONSTANTS)
    gap = H100.at_clock(CONSTANTS["kernel_gap"])
    assert seconds(native, "kv_write") - seconds(plain, "kv_write") == near(gap + moved)
    # Rotated on the way, they are narrowed by the kernel that rotates.
    both = seconds(native, "kv_write", "rope") - seconds(native, "rope")
    assert both - seconds(plain, "kv_write") == near(moved)


def test_arrays_with_what_a_run_includes_are_each_of_their_problems():
    batch = np.array([1, 7, 64])
    names = ("kv_write", "rope")
    found = predict_arrays(Attention(batch, 8, 8, 16, 512, 128), H100.device, includes=names)
    for i, b in enumerate(batch):
        alone = predict(Attention(int(b), 8, 8, 16, 512, 128), H100.device, includes=names)
        assert found.seconds[i] == near(alone.seconds)
        assert found.terms["included"][i] == near(alone.terms["included"])
        assert alone.terms["included"] > 0


def test_a_library_that_quantises_does_so_in_every_run_but_of_the_kernel_alone():
    shape, name = Matmul(64, 4096, 4096, dtype="fp8_block"), "vllm_default"

    def extra(harness: str, *names: str) -> float:
        found = predict(shape, H100.device, implementation=name, harness=harness, includes=names)
        return found.terms["included"]

    assert extra("kernel") == 0
    asked = extra("kernel", "quantise_activations")
    assert asked > 0
    assert extra("cuda_graph") > 0
    assert extra("cuda_graph") == extra("cuda_graph", "quantise_activations")


# ---- Products ------------------------------------------------------------------------------------


def test_a_schedule_without_slices_leaves_k_whole():
    shape = Matmul(64, 64, 65536)
    tiled, free = (predict(shape, A100.device, schedule=s) for s in ("tiled", "auto"))
    assert tiled.tile["slices"] == 1
    assert free.tile["slices"] > 1
    assert free.seconds < tiled.seconds


def test_buffers_of_a_product_fill_half_of_shared_memory_or_all_of_it():
    # A100: 163 KiB a block, half of it in copies of 3 to 5; H100: 227 KiB, 3 to 8; before, two.
    for stage, ampere, hopper in ((8, 5, 8), (20, 4, 8), (27, 3, 8), (30, 3, 7), (60, 3, 3),
                                  (100, 3, 3)):  # fmt: skip
        assert stages_held(A100, stage * 1024) == ampere
        assert stages_held(H100, stage * 1024) == hopper
        assert stages_held(machine(load("v100-sxm2")), stage * 1024) == 2


@given(st.integers(1, 10**6), st.integers(1, 128), st.sampled_from([8, 32, 64]))
def test_slices_of_k_are_whole_pairs_of_steps(k, slices, depth):
    found = float(slice_k(np.array(float(k)), np.array(float(slices)), depth))
    assert found == ceil_div(ceil_div(k, slices), 2 * depth) * 2 * depth


def test_steps_of_k_are_a_line_or_what_the_threads_of_few_rows_load():
    int8, half = kernel_facts("cutlass-int8"), kernel_facts("cublas")
    menu = candidates(half)
    assert step_depth(half, menu, 2.0, 2.0) == 64
    assert step_depth(half, menu, 1.0, 1.0) == 128
    assert step_depth(kernel_facts("cublas-fp32"), menu, 4.0, 4.0) == 8
    # 512 threads of 16 bytes are 8,192 weights of 8 columns, in the kernel of up to 4 rows alone.
    found = step_depth(int8, candidates(int8), 1.0, 1.0)[0]
    few = candidates(int8).upto[0] == 4
    assert few.sum() == 1
    assert found[few] == 512 * 16 / 8
    assert np.all(found[~few] == 128)
    wide = step_depth(int8, candidates(int8), 2.0, 2.0)[0]
    assert (wide[few].item(), wide[~few][0]) == (512 * 16 / 8 / 2, 64)


@given(*[st.integers(1, 30)] * 2, *[st.integers(1, 7)] * 2, *[st.integers(1, 12)] * 2)
def test_windows_of_tiles_overlap_by_their_taps(positions, width, stride, taps, tile, held):
    """An image under a filter, tile by tile: stride · (positions − 1) + taps elements of each."""
    image = Tensor("I", ("p", "c", "r"), windows=(("p", "r", stride),))
    filters = Tensor("F", ("r", "c", "f"))
    result = Tensor("O", ("p", "f"), "output")
    step = Step("convolve", "contraction", ("I", "F"), ("O",), ("c", "r"))
    tensors = {tensor.name: tensor for tensor in (image, filters, result)}
    algorithm = Algorithm("convolution", tuple("pcrf"), tensors, (step,), ("O",))
    nest = (Loop("p", tile, grid=True), Loop("f", 4, grid=True), Loop("r", held))
    schedule = Schedule("any", algorithm, (Kernel("any", ("convolve",), nest),))
    sizes = {"p": positions, "c": width, "r": taps, "f": 3}
    found = rule.windowed(rule.nest(schedule, schedule.kernels[0], sizes), image)
    expected = sum(
        stride * (min(tile, positions - p) - 1) + min(held, taps - r)
        for p in range(0, positions, tile)
        for r in range(0, taps, held)
    )
    assert found == width * expected


# ---- What none can beat --------------------------------------------------------------------------


def test_the_floor_counts_bytes_beyond_the_last_cache_and_operations_at_the_dense_peak():
    device = A100.device
    small, large = Matmul(128, 128, 128), Rowwise("pointwise", 2**15, 2**15, "fp32")
    # 8 GiB read and written at 2,039 GB/s, less 40 MiB that may be there from before.
    held = 40 * 2**20
    assert physical.floor_seconds(large, device, 0.0) == near((2**33 - held) / 2.039e12)
    # Less than the cache holds takes no bytes, and its operations at 312 TFLOP/s.
    assert physical.floor_seconds(small, device, 2.0 * 128**3) == near(2 * 128**3 / 312e12)
    # Of executed and useful operations the fewer count.
    assert physical.floor_seconds(small, device, 1e12) == near(2 * 128**3 / 312e12)
    assert physical.floor_seconds(small, device, 1e3) == near(1e3 / 312e12)
    # The largest of several caches: 4 MiB of L2 an XCD behind 256 MiB on MI300X.
    amd = load("mi300x")
    held = amd.memory.llc.capacity.si
    assert physical.floor_seconds(large, amd, 0.0) == near((2**33 - held) / 5.3e12)
    # Without any cache all of it.
    bare = load("gc200")
    assert physical.floor_seconds(large, bare, 0.0) == near(2**33 / bare.hbm_bytes_per_s)


def test_what_no_tile_fits_says_how_much_a_block_may_hold():
    shape = Attention(1, 1, 1, 1024, 1024, 512, dtype="fp32", direction="bwd")
    with pytest.raises(ProblemError, match="may hold 48 KiB of shared memory; use a smaller head"):
        predict(shape, load("p100-pcie-16gb"))


def test_several_calls_of_a_framework_take_its_host_one_after_another():
    each = CONSTANTS.run("cuda_events_eager").call_seconds("pointwise")
    assert each > 0
    assert floors.host_seconds(CONSTANTS, "cuda_events_eager", 5) == near(5 * each)
    assert floors.host_seconds(CONSTANTS, "wall_clock", 1) == near(each)
    for harness in ("kernel", "cuda_graph", "profiler", UNKNOWN):
        assert floors.host_seconds(CONSTANTS, harness, 5) == 0
