"""Row-wise kernels: sums over slices of rows, wide accesses, and menus that follow the columns."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walker import same

pytest.importorskip("torch")
pytest.importorskip("triton")

from menulaw import compiled, menu

from perfmodel.algorithms import Rowwise
from perfmodel.errors import ProblemError
from perfmodel.evidence import registry
from perfmodel.evidence.replay import replay
from perfmodel.evidence.targets import target
from perfmodel.hardware import load
from perfmodel.schedules.rowwise import norm_gradients

TARGET_NAMES = ("sm_90", "sm_100", "gfx942")
NORMS = ("layernorm", "rmsnorm")
lengths, tiles = st.integers(1, 70), st.integers(1, 24)


@settings(max_examples=200)
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


@settings(max_examples=25)
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


def test_no_slices_at_all_is_refused():
    kernel = registry.kernel("rmsnorm-backward")
    problem, config = kernel.cases[0]
    with pytest.raises(ProblemError, match="1 slice or more, not 0"):
        kernel.launches(problem, replace(config, slices=0))


@pytest.mark.parametrize("name", TARGET_NAMES)
@pytest.mark.parametrize("op", NORMS)
def test_the_weights_gradients_have_blocks_for_every_unit(op, name):
    kernel = registry.kernel(f"{op}-backward")
    units = load(target(name).device).units
    for problem in kernel.forms:
        for config in menu(kernel, problem, name):
            (summing,) = [
                launch
                for launch in kernel.launches(problem, config)
                if launch.kernel.endswith("weight-gradient")
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

COMPILED = (
    "copy", "triad", "softmax", "softmax-online", "layernorm", "layernorm-backward",
    "rmsnorm-backward", "chain-fused", "matmul-w8a16", "matmul-w4a16",
)  # fmt: skip


@pytest.fixture(scope="module", params=TARGET_NAMES)
def made(request):
    """Menus of one target compiled, each kernel on the forms that ask most of it."""
    found = {}
    for name in COMPILED:
        kernel = registry.kernel(name)
        found[name] = compiled(kernel, request.param, _asking(kernel))
    return request.param, found


def _asking(kernel):
    """Both ends of the columns that a row-wise kernel is meant for, the first form of others."""
    if not isinstance(kernel.forms[0], Rowwise) or kernel.forms[0].op == "pointwise":
        return kernel.forms[:1]
    halves = [problem for problem in kernel.forms if problem.dtype == "bf16"]
    return [halves[0], max(halves, key=lambda problem: (problem.cols % 1024 == 0, problem.cols))]


def test_nothing_on_a_menu_spills(made):
    _, found = made
    assert all(found[name] for name in COMPILED)


def test_rows_are_read_and_written_16_bytes_at_a_time(made):
    name, found = made
    for kernel in ("copy", "triad", "softmax", "layernorm", "chain-fused"):
        for item in found[kernel]:
            (launch,) = item.launches
            wide, narrow = _accesses(launch.program)
            statistics = 2 if kernel == "layernorm" else 0  # mean and rstd, a number a row
            assert narrow <= statistics, (name, kernel, item.config)
            assert wide >= 2


def _accesses(program):
    """Global accesses of 16 bytes a lane, and narrower ones."""
    wide = narrow = 0
    for item in program:
        if item.stem in ("LDG", "STG", "LDGSTS"):
            wide, narrow = wide + (".128" in item.opcode), narrow + (".128" not in item.opcode)
        elif item.opcode.startswith(("global_load", "global_store", "buffer_load", "buffer_store")):
            full = item.opcode.endswith("dwordx4")
            wide, narrow = wide + full, narrow + (not full)
    return wide, narrow


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
