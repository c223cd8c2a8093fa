"""How libraries lay rows out: in shared memory, in registers, cut over units; AMD's own code."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Rowwise
from perfmodel.hardware import load
from perfmodel.predict import predict, predict_arrays
from perfmodel.timing import rowwise
from perfmodel.timing.constants import default
from perfmodel.timing.libraries import kernel_facts
from perfmodel.timing.machine import machine
from perfmodel.timing.plan import time_plan
from perfmodel.timing.setting import Setting

CONSTANTS = default()
H100, A100, MI210 = (load(slug) for slug in ("h100-sxm", "a100-sxm4-80gb", "mi210"))
SHARED = "torch-softmax-shared"


def planned(problem: Rowwise, name: str, device=H100):
    """The plan of a class of kernels."""
    return rowwise.plan(problem, kernel_facts(name), Setting(machine(device), CONSTANTS))


def softmax(cols: int, device=H100, dtype: str = "fp32"):
    """Prediction of PyTorch's softmax since 2.2."""
    return predict(Rowwise("softmax", 20000, cols, dtype), device, implementation=SHARED)


@given(st.integers(257, 3000), st.sampled_from([H100, A100, MI210]))
def test_rows_of_whole_loads_are_read_once_and_others_three_times(quads, device):
    whole, ragged = (softmax(4 * quads + more, device) for more in (0, 1))
    rows = 20000 * 4 * 4 * quads
    assert whole.bytes["l2"] == pytest.approx(2 * rows, rel=1e-6)
    assert ragged.bytes["l2"] >= 2 * rows


@pytest.mark.parametrize(("device", "blocks"), [(MI210, 1), (A100, 2), (H100, 2)])
def test_a_block_with_rows_in_shared_memory_takes_all_that_a_launch_gives(device, blocks):
    # Of MI210's 64 KiB all; of NVIDIA's 48 KiB a block, of which more than two would fit, 1024
    # threads allow two.
    assert softmax(2048, device).occupancy == blocks
    assert softmax(2049, device).occupancy == 2


def test_rows_that_shared_memory_does_not_hold_are_streamed():
    # 12 Ki elements of fp32 are 48 KiB, of 16 bits 24 Ki.
    for dtype, limit in (("fp32", 12288), ("bf16", 24576)):
        inside, beyond = (
            planned(Rowwise("softmax", 1000, cols, dtype), SHARED).parts[0].schedule.kernels[0]
            for cols in (limit - 8, limit)
        )
        assert (float(inside.row_passes), float(beyond.row_passes)) == (1, 3)


@given(st.integers(1, 16))
def test_a_leftover_takes_rounds_of_single_elements(thousands):
    # 1024 threads: rounds of 4096 in whole loads, then of 1024; one more where a row is ragged.
    cols = 1024 * thousands + 1
    plan = planned(Rowwise("softmax", 1000, cols, "fp32"), SHARED)
    (along,) = plan.parts[0].schedule.kernels[0].loops("c")
    rounds = float(np.ceil(cols / np.max(along.tile)))
    left = cols - 1024
    whole, single = divmod(left, 4096)
    assert rounds == 1 + whole + -(-single // 1024)


def test_gradients_have_the_layout_of_the_older_kernel():
    problem = Rowwise("softmax", 20000, 3000, "fp32", direction="bwd")
    new, old = (predict(problem, A100, implementation=n).seconds for n in (SHARED, "torch-softmax"))
    assert new == old


@pytest.mark.parametrize("op", ["softmax", "rmsnorm", "layernorm"])
def test_shuffles_take_half_of_the_steps(op):
    steps = {
        shuffles: planned_with(op, shuffles).parts[0].style.block.chain_seconds
        for shuffles in (False, True)
    }
    assert steps[True] == pytest.approx(steps[False] / 2)


def planned_with(op: str, shuffles: bool):
    """The plan of a class that folds in one way or the other."""
    kernel = kernel_facts("fused-rows")
    kernel = replace(kernel, rows=replace(kernel.rows, shuffles=shuffles))
    return rowwise.plan(Rowwise(op, 4096, 4096), kernel, Setting(machine(H100), CONSTANTS))


def test_a_wavefront_of_64_folds_six_times():
    problem = Rowwise("layernorm", 1000, 512, "fp32")
    nvidia, amd = (
        planned(problem, "torch-layernorm", d).parts[0].style.code for d in (H100, MI210)
    )
    rows = kernel_facts("torch-layernorm").rows
    more = 1000 * rows.most_threads * rows.folded_vector_ops
    assert np.max(amd.vector_ops) - np.max(nvidia.vector_ops) == pytest.approx(more)


def test_an_exact_exponential_of_amd_takes_more_of_the_vector_unit():
    # Twelve operations beside v_exp, which takes four slots; CUDA has seven beside ex2.
    here = machine(MI210)
    plan = planned(Rowwise("softmax", 20000, 512, "fp32"), SHARED, MI210)
    cuda = replace(here, architecture=machine(H100).architecture)
    times = [time_plan(m, CONSTANTS, plan, (1, 1)).launches[0].time.terms["vector"]
             for m in (here, cuda)]  # fmt: skip
    assert float(np.max(times[0])) > 1.25 * float(np.max(times[1]))


COLUMNS = np.unique(np.round(2 ** np.arange(10, 15.01, 0.125)).astype(int))


@pytest.mark.parametrize("slug", ["h100-sxm", "a100-sxm4-80gb", "b200", "l40s", "mi300x"])
@pytest.mark.parametrize("op", ["rmsnorm", "layernorm", "softmax"])
def test_no_row_of_a_good_library_falls_into_a_hole(slug, op):
    """A byte of a longer row takes at most a third longer: where a row takes twice the threads."""
    problem = Rowwise(op, np.full(COLUMNS.size, 8192), COLUMNS, "bf16")
    seconds = np.asarray(predict_arrays(problem, load(slug)).seconds) / COLUMNS
    best = np.minimum.accumulate(seconds)
    assert np.all(seconds < 1.34 * best), np.round(seconds / best, 2)
    assert np.all(np.diff(seconds * COLUMNS) > 0)


LONG = (16, 4_194_304)


@pytest.mark.parametrize("op", ["layernorm", "rmsnorm", "softmax"])
@pytest.mark.parametrize("device", [A100, H100])
def test_compiled_code_cuts_few_long_rows_over_all_units(op, device):
    problem = Rowwise(op, *LONG, "fp32")
    cut = predict(problem, device, implementation=f"inductor-{op}")
    eager = {"layernorm": "torch-layernorm", "softmax": SHARED}.get(op, "vllm-rmsnorm")
    assert cut.seconds < 0.4 * predict(problem, device, implementation=eager).seconds
    passes = kernel_facts(f"inductor-{op}").pieces.streams + 1
    # A row of either tensor and the weights of as many elements are more than an L2 holds, so that
    # each row reads most of the weights again.
    weights = {"layernorm": 2, "rmsnorm": 1, "softmax": 0}[op]
    whole = 4 * LONG[0] * LONG[1]
    assert passes * 0.98 <= cut.bytes["hbm"] / whole <= (passes + weights) * 1.02
    assert weights == 0 or cut.bytes["hbm"] / whole > passes + 0.4
    assert cut.footprint_bytes < 1.3 * 2 * 4 * LONG[0] * LONG[1]


@pytest.mark.parametrize(
    ("rows", "cols", "cut"), [(16, 8192, 0), (16, 8193, 1), (215, 65536, 1), (216, 65536, 0)]
)
def test_rows_are_cut_where_they_are_fewer_than_two_a_unit_and_long(rows, cols, cut):
    plan = planned(Rowwise("layernorm", rows, cols, "fp32"), "inductor-layernorm", A100)
    assert [float(part.used) for part in plan.parts] == [1 - cut, cut]
    assert float(plan.calls) == 3 * cut


def test_each_kernel_of_cut_rows_is_launched_by_the_host():
    # Maximum and sum of exponentials, two kernels each, and the quotients: five calls.
    problem = Rowwise("softmax", 16, 16384, "fp32")
    one, five = (
        predict(problem, A100, implementation=name, harness="wall_clock").seconds
        for name in (SHARED, "inductor-softmax")
    )
    call = CONSTANTS.run("cuda_events_eager").call_seconds("pointwise")
    assert five == pytest.approx(5 * call)
    assert one < 2 * call


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_an_eager_norm_is_a_chain_of_maps(dtype):
    problem = Rowwise("rmsnorm", 65536, 4096, dtype)
    eager = predict(problem, H100, implementation="transformers")
    fused = predict(problem, H100, implementation="fused-rows")
    assert eager.seconds > {"bf16": 6, "fp32": 3}[dtype] * fused.seconds
    few = Rowwise("rmsnorm", 8, 4096, dtype)
    times = [predict(few, H100, implementation=n, harness="cuda_events_eager").seconds
             for n in ("transformers", "fused-rows")]  # fmt: skip
    assert times[0] > 2.5 * times[1]


@pytest.mark.parametrize(
    "name", ["flashinfer-norm", "trtllm-rmsnorm", "vllm-rmsnorm-wide", "inductor-rmsnorm"]
)
@pytest.mark.parametrize("slug", ["h100-sxm", "b200", "l40s", "mi300x", "t4"])
def test_norms_of_frameworks_move_what_a_good_library_moves(name, slug):
    problem = Rowwise("rmsnorm", 16384, 4096, "bf16")
    own, good = (predict(problem, load(slug), implementation=n) for n in (name, "fused-rows"))
    assert own.bytes["hbm"] == pytest.approx(good.bytes["hbm"], rel=0.6)
    assert 0.8 * good.seconds < own.seconds < 1.8 * good.seconds


@pytest.mark.parametrize(("slug", "cols"), [("v100-sxm2", 5678), ("a100-sxm4-80gb", 8517)])
def test_an_l1_holds_half_of_what_sweeps_seven_tenths_of_it(slug, cols):
    # Lines replaced at random: after s of c others e^(-s/c) of them are left. Of V100's 128 KiB
    # and A100's 192, four rows of fp32 (512 threads each) that sweep ln 2.
    here = load(slug)
    problem = Rowwise("softmax", 65536, np.array([cols // 2, cols, 2 * cols]), "fp32")
    kernel = kernel_facts("torch-softmax")
    kernel = replace(kernel, rows=replace(kernel.rows, most_threads=512, least_threads=512))
    plan = rowwise.plan(problem, kernel, Setting(machine(here), CONSTANTS))
    timing = time_plan(machine(here), CONSTANTS, plan, (1, 3))
    (launch,) = timing.launches
    rows = 65536 * np.asarray(problem.cols) * 4.0
    again = np.ravel(launch.time.bytes["l2"]) / rows - 2.0  # of two more reads
    assert np.all(np.ravel(launch.time.occupancy) == 4)
    assert again[0] < 0.2 < 0.9 < again[1] < 1.1 < 1.8 < again[2]
