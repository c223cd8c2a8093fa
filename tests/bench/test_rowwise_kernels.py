"""Row-wise kernels: sums over slices of rows, wide accesses, and menus that follow the columns."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walker import same

pytest.importorskip("torch")
pytest.importorskip("triton")

from menulaw import compiled, global_accesses, is_wide, menu

from perfmodel.algorithms import Rowwise
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.compiled.targets import target
from perfmodel.proof.replay.replay import replay
from perfmodel.schedules.rowwise import norm_gradients

TARGET_NAMES = ("sm_90", "sm_100", "gfx942")
NORMS = ("layernorm", "rmsnorm")
lengths, tiles = st.integers(1, 70), st.integers(1, 24)


@given(st.sampled_from(NORMS), lengths, lengths, tiles, tiles, tiles, tiles, st.booleans())
def test_sliced_gradients_are_counted_as_they_are_walked(
    op, height, width, block, span, step, columns, fused
):
    problem = Rowwise(op, height, width, direction="bwd")
    schedule = norm_gradients(
        problem, block, 128, span=span * block * step, fused=fused, weight_tile=(step, columns)
    )
    same(schedule, problem.sizes(), problem.elements())
    assert ("fold" in [kernel.name for kernel in schedule.kernels]) == (
        height > span * block * step
    )


@settings(max_examples=15)
@given(
    st.sampled_from(NORMS),
    st.integers(1, 90),
    st.integers(1, 600),
    st.integers(1, 20),
    st.sampled_from([1, 2, 4]),
    st.booleans(),
)
def test_gradients_in_any_number_of_slices_are_right(op, height, width, slices, held, fused):
    name = f"{op}-backward"
    kernel = registry.kernel(name)
    config = replace(kernel.configs[0], rows=held, slices=slices, fused=fused)
    problem = Rowwise(op, height, max(width, 2), "fp32", direction="bwd")
    found = replay(name, problem, config, check=width > 4)  # of short rows x̂ is all cancellation
    assert found.equal, [row for row in found.tensors if not row.equal]
    assert found.largest_error is None or found.largest_error < 1e-4


ROWS = Rowwise("layernorm", 64, 512, "fp16")
POINTS = Rowwise("pointwise", 64, 512, "fp16")


@pytest.mark.parametrize(
    ("kernel", "problem", "fields", "told"),
    [
        ("rmsnorm", ROWS, {}, "rmsnorm computes rmsnorm fwd, not layernorm fwd"),
        ("layernorm-backward", ROWS, {}, "computes layernorm bwd, not layernorm fwd"),
        ("layernorm", replace(ROWS, output_dtype="fp8"), {}, "of fp16 leaves fp16, not fp8"),
        ("layernorm", ROWS, {"rows": 3}, "rows must be a power of two, not 3"),
        ("layernorm", replace(ROWS, cols=2**19), {"rows": 4}, "at most 1048576; take fewer rows"),
        ("layernorm-backward", replace(ROWS, direction="bwd"), {"slices": 0}, "at least 1, not 0"),
        ("softmax", ROWS, {}, "softmax computes softmax fwd, not layernorm fwd"),
        ("softmax-online", replace(ROWS, op="softmax"), {"cols": 100}, "a power of two, not 100"),
        ("add", POINTS, {}, "add makes 1 tensor of 2, not 1 of 1"),
        ("copy", replace(POINTS, variant="gelu"), {}, "copy does not compute gelu"),
        ("copy", POINTS, {"tile": 1000}, "tile must be a power of two, not 1000"),
        ("matmul-w8a16", None, {"split_k": 100}, "a slice is whole steps of bk="),
        ("matmul-w4a16", None, {"bn": 96}, "bn must be a power of two, not 96"),
        ("quantise", ROWS, {}, "quantise computes quantise fwd, not layernorm fwd"),
        (
            "quantise",
            replace(ROWS, op="quantise", output_dtype="fp16"),
            {},
            "fp8 or int8, not fp16",
        ),
        ("silu_mul", replace(POINTS, inputs=2), {}, "silu_mul does not compute a map without a"),
        ("cross-entropy", None, {"bd": 128}, "is one step of bd=128; take a shorter step"),
        ("rotary", None, {"heads": 3}, "heads must be a power of two, not 3"),
        ("add-rmsnorm", None, {"rows": 2**20}, "at most 1048576; take fewer rows"),
        ("chain-fused", None, {"cols": 0}, "cols must be a power of two, not 0"),
        ("ssd-scan", None, {"tile": 8}, "tile must be at least 16"),
        ("ssd-scan", None, {"rows": 3}, "rows must be a power of two, not 3"),
        ("gated-delta", None, {"walked": 8}, "walked and columns must be at least 16"),
    ],
)
def test_what_a_kernel_cannot_do_is_one_line(kernel, problem, fields, told):
    kernel = registry.kernel(kernel)
    with pytest.raises(ProblemError, match=told) as caught:
        kernel.launches(problem or kernel.cases[0][0], replace(kernel.configs[0], **fields))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "widest"),
    [("softmax", 32768), ("layernorm", 32768), ("quantise", 32768), ("rmsnorm-backward", 16384)],
)
def test_rows_that_would_spill_have_no_menu(name, widest):
    kernel = registry.kernel(name)
    assert kernel.menu(replace(kernel.forms[0], cols=widest), "sm_90", 132)
    with pytest.raises(ProblemError, match=f"a row of {widest + 1} columns spills"):
        kernel.menu(replace(kernel.forms[0], cols=widest + 1), "sm_90", 132)


@pytest.mark.parametrize("name", TARGET_NAMES)
@pytest.mark.parametrize("op", NORMS)
def test_the_weights_gradients_have_blocks_for_every_unit(op, name):
    kernel = registry.kernel(f"{op}-backward")
    units = load(target(name).device).units
    for problem in kernel.forms:
        for config in menu(kernel, problem, name):
            (summing,) = [
                launch for launch in kernel.launches(problem, config) if "dgamma" in launch.kernel
            ]
            assert summing.blocks >= units


@pytest.mark.parametrize("name", ["softmax", "layernorm", "rmsnorm", "layernorm-backward"])
def test_menus_follow_the_columns(name):
    kernel = registry.kernel(name)
    narrow, wide = (
        {config.warps for config in menu(kernel, replace(kernel.forms[0], cols=cols), "sm_90")}
        for cols in (1024, 16384)
    )
    assert min(wide) > min(narrow)
    assert max(wide) > max(narrow)


def test_a_config_has_no_field_that_its_kernel_does_not_read():
    held, streamed = (
        {item.name for item in fields(registry.kernel(name).configs[0])}
        for name in ("softmax", "softmax-online")
    )
    assert held == {"rows", "warps"}
    assert streamed == {"rows", "cols", "warps", "stages"}


# ---- Compiled ------------------------------------------------------------------------------------

COMPILED = ("copy", "softmax", "layernorm", "chain-fused")


@pytest.fixture(scope="module")
def binaries():
    """The first of the menus, each kernel on the forms that ask most of it."""
    kernels = [registry.kernel(name) for name in COMPILED]
    return compiled(
        (kernel, name, problem, 1)
        for name in ("sm_90", "gfx942")
        for kernel in kernels
        for problem in _asking(kernel)
    )


@pytest.fixture(params=["sm_90", "gfx942"])
def made(request, binaries):
    """The binaries of one target by kernel."""
    return request.param, {name: binaries[request.param, name] for name in COMPILED}


def _asking(kernel):
    """Both ends of the columns of a kernel that holds rows, the first form of others."""
    if kernel.name not in ("softmax", "layernorm"):
        return kernel.forms[:1]
    halves = [problem for problem in kernel.forms if problem.dtype == "bf16"]
    return [halves[0], max(halves, key=lambda problem: (problem.cols % 1024 == 0, problem.cols))]


# Mean and rstd, a number a row, and weights that the rows of a block share.
NARROW = {"layernorm": 4, "chain-fused": 1}


def test_rows_are_read_and_written_16_bytes_at_a_time(made):
    name, found = made
    for kernel, items in found.items():
        for item in items:
            (launch,) = item.launches
            found_accesses = global_accesses(launch.program)
            narrow = [opcode for opcode in found_accesses if not is_wide(opcode)]
            assert len(narrow) <= NARROW.get(kernel, 0), (name, kernel, item.config, narrow)
            assert len(found_accesses) - len(narrow) >= 2


def test_a_copy_has_twice_the_bytes_in_flight_that_the_memory_needs(made):
    """Little's law: bandwidth × latency, here at twice the idle latency, over the units."""
    name, found = made
    device = load(target(name).device)
    latency = device.latency_seconds("hbm") or load("h100-sxm").latency_seconds("hbm")
    needed = 2 * device.hbm_bytes_per_s * latency / device.units
    for item in found["copy"]:
        (launch,) = item.launches
        resident = launch.occupancy(device).blocks
        assert resident * item.config.tile * 2 >= needed, item.config
