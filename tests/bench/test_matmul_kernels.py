"""Matmul kernels: what each form computes and asks for, what is refused, what compilers make."""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases import cases
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from menulaw import compiled, global_accesses, is_wide, menu
from perfmodel_kernels import microscaled

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.grouped import GroupedMatmul
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.compiled import compilefacts
from perfmodel.proof.compiled.targets import TARGETS, target
from perfmodel.proof.replay import suite
from perfmodel.proof.replay.replay import replay

KERNELS = ("matmul", "matmul-split-k", "matmul-persistent")
TARGET_NAMES = ("sm_90", "sm_100", "gfx942")
BF16, FP8, INT8 = (Matmul(8192, 8192, 8192, 1, dtype) for dtype in ("bf16", "fp8", "w8a8_int8"))
SKINNY = Matmul(16, 4096, 16384, 1, "bf16")


def config_of(**fields):
    return replace(registry.kernel("matmul").configs[0], **fields)


SMALL = {"bm": 32, "bn": 64, "bk": 32, "group_m": 2}
ragged = st.integers(1, 12).map(lambda n: 8 * n + 8)  # aligned rows, tiles that do not divide
forms = st.fixed_dictionaries(
    {
        "descriptors": st.sampled_from(["none", "host"]),
        "persistent": st.none() | st.integers(1, 9),
        "split_k": st.none() | st.sampled_from([32, 64]),
        "group_m": st.sampled_from([None, 1, 3]),
    }
)


@given(st.tuples(ragged, ragged, ragged, st.integers(1, 2)), forms, st.data())
def test_every_form_is_right_and_asks_for_what_is_counted(sizes, form, data):
    dtype = data.draw(st.sampled_from(["fp32", "fp16"]))
    config = config_of(**(SMALL | form))
    if form["descriptors"] == "host":
        config = replace(config, subtiles=data.draw(st.sampled_from([1, 2, 4])))
    if form["persistent"] is not None:
        config = replace(config, flatten=data.draw(st.booleans()))
    found = replay("matmul", Matmul(*sizes, dtype), config)
    assert found.equal, [row for row in found.tensors if not row.equal]
    assert found.largest_error < (1e-5 if dtype == "fp32" else 3e-3)


@settings(max_examples=10)
@given(
    st.integers(1, 40), st.integers(1, 9), st.integers(1, 3), st.floats(0, 2), st.integers(1, 90)
)
def test_groups_are_multiplied_by_their_own_matrices(tokens, groups, ranks, skew, n):
    """Whatever their rows, and in expectation as even loads where they are even."""
    kernel = registry.kernel("matmul-grouped")
    example, config = kernel.cases[0]
    chosen = min(example.chosen, groups)
    problem = replace(
        example, m=tokens * chosen, batch=groups, ranks=ranks, skew=skew, chosen=chosen, n=n
    )
    found = replay("matmul-grouped", problem, config)
    assert suite.passes(found), found.tensors
    even = replace(problem, skew=0.0)
    model = GroupedMatmul(*(getattr(even, name) for name in ("m", "n", "k", "batch", "dtype")),
                          chosen=chosen, ranks=ranks)  # fmt: skip
    assert model.sizes().items() <= even.sizes().items()
    assert even.flops() == pytest.approx(model.flops())


def test_formats_are_decoded_as_they_are_defined():
    """The reference's formula beside torch's types and the table of e2m1 (OCP MX 1.0, table 5)."""
    codes = torch.arange(256, dtype=torch.uint8)
    for form, kind, bits in (("e4m3", torch.float8_e4m3fn, (4, 3)), ("e8m0", None, None)):
        if bits is None:
            got, right = microscaled.scales(codes), codes.view(torch.float8_e8m0fnu).double()
        else:
            got, right = microscaled.values(codes, form), codes.view(kind).double()
        numbers = ~right.isnan()
        assert got[numbers].equal(right[numbers])
        assert numbers.sum() == {"e4m3": 254, "e8m0": 255}[form]
    packed = torch.tensor([[0x10, 0x32, 0x54, 0x76, 0xF8]], dtype=torch.uint8)
    table = [[0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -6]]
    assert microscaled.values(packed, "e2m1").tolist() == table


@settings(max_examples=8)
@given(
    st.sampled_from(sorted(microscaled.OPERANDS)), st.integers(1, 40), st.integers(1, 40),
    st.integers(1, 7), st.data(),
)  # fmt: skip
def test_every_scale_is_read_once_and_counts(dtype, m, n, blocks, data):
    """Bytes are exact for ragged products, and doubling one scale doubles its block's share."""
    block = microscaled.KINDS[microscaled.OPERANDS[dtype][1]].block
    problem = microscaled.Microscaled(m, n, block * blocks, dtype)
    kernel = registry.kernel("matmul-microscaled")
    config = microscaled.MicroscaledConfig(16, 16, data.draw(st.sampled_from([32, 64])))
    found = replay(kernel.name, problem, config)
    assert suite.passes(found), found.tensors
    assert found.largest_error < 5e-3  # the result is rounded to bf16, once
    inputs = kernel.make_inputs(problem)
    scale, at = inputs.tensors["SB"], data.draw(st.integers(0, n - 1))
    before = kernel.reference(inputs)["C"]
    scale.view(torch.uint8)[at] += 1 if scale.dtype == torch.uint8 else 8  # the exponent's last bit
    louder = kernel.reference(inputs)["C"]
    assert louder[:, at].equal(2 * before[:, at])
    assert kernel.errors(inputs, kernel.run(inputs, config))["C"] < 5e-3


@pytest.mark.parametrize(
    ("dtype", "target", "told"),
    [
        ("mxfp8", "sm_80", "has no 8-bit floats; take mxfp4"),
        ("nvfp4", "sm_90", "widens no scales of e4m3 for sm_90; take mxfp4"),
        ("mxfp4", "gfx942", "widens one operand for gfx942; take w4a16_mxfp4"),
    ],
)
def test_a_scaled_product_that_a_target_cannot_do_says_what_to_take(dtype, target, told):
    with pytest.raises(ProblemError, match=told):
        registry.kernel("matmul-microscaled").menu(
            microscaled.Microscaled(64, 64, 64, dtype), target, 132
        )
    with pytest.raises(ProblemError, match=r"whole blocks of (16|32), but k is 40"):
        microscaled.Microscaled(64, 64, 40, dtype)


@settings(max_examples=10)
@given(ragged, ragged, ragged, st.none() | st.integers(1, 5))
def test_descriptors_that_a_block_makes_do_the_same(m, n, k, persistent):
    config = config_of(**SMALL, descriptors="block", specialise=True, persistent=persistent)
    found = replay("matmul", Matmul(m, n, k, 1, "fp16"), config)
    assert found.equal
    assert found.largest_error < 3e-3


@pytest.mark.parametrize("descriptors", ["host", "block"])
@pytest.mark.parametrize("size", [(64, 64, 333), (64, 222, 64)])
def test_rows_that_are_not_aligned_are_refused_and_left_off_the_menu(size, descriptors):
    problem = Matmul(*size, 1, "fp16")
    kernel = registry.kernel("matmul")
    with pytest.raises(ProblemError, match=r"multiple of 16; pad .* config without descriptors"):
        kernel.launches(problem, config_of(descriptors=descriptors))
    for name in TARGET_NAMES:
        assert {config.descriptors for config in menu(kernel, problem, name)} == {"none"}


@cases
def test_a_config_that_cannot_be_is_one_line(fields, told):
    with pytest.raises(ProblemError, match=told) as caught:
        registry.kernel("matmul").launches(Matmul(256, 256, 256, 1, "fp16"), config_of(**fields))
    assert "\n" not in str(caught.value)


def test_offsets_that_do_not_fit_are_refused():
    with pytest.raises(ProblemError, match="32 bits; take smaller tiles"):
        registry.kernel("matmul").launches(Matmul(256, 256, 2**25, 1, "fp16"), config_of())


@pytest.mark.parametrize("dtype", ["fp8", "int8", "w8a8_int8", "fp16", "fp32"])
def test_8_bit_weights_are_stored_column_by_column_and_no_others(dtype):
    kernel = registry.kernel("matmul")
    tensor = kernel.make_inputs(Matmul(16, 48, 32, 2, dtype)).tensors["B"]
    assert tuple(tensor.shape) == (2, 32, 48)
    by_columns = dtype in ("fp8", "int8", "w8a8_int8")
    assert tensor.stride() == ((32 * 48, 1, 32) if by_columns else (32 * 48, 48, 1))


@pytest.mark.parametrize("name", ["sm_80", "gfx942"])
def test_a_target_without_the_type_has_no_menu_and_says_why(name):
    with pytest.raises(ProblemError, match=f"{name} .*; take w8a8_int8"):
        registry.kernel("matmul").menu(FP8, name, 108)


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_menu_is_short_and_has_a_config_without_descriptors(kernel):
    kernel = registry.kernel(kernel)
    for name in (*TARGET_NAMES, "sm_80", "sm_120"):
        for problem in kernel.forms:
            if problem.dtype == "fp8" and name in ("sm_80", "gfx942"):
                continue
            found = menu(kernel, problem, name)
            assert 2 <= len(found) <= 6
            assert len(set(found)) == len(found)
            assert any(config.descriptors == "none" for config in found)
            at_usual = kernel.menu(problem, name, 132)
            assert set(at_usual) <= set(kernel.configs)


@given(st.integers(1, 300))
def test_a_persistent_grid_follows_the_units(units):
    kernel = registry.kernel("matmul-persistent")
    for config in kernel.menu(BF16, "sm_90", units):
        assert config.persistent % units == 0
        (launch,) = kernel.launches(BF16, config)
        assert launch.blocks == min(config.persistent, 8192**2 // (config.bm * config.bn))


@given(st.sampled_from([16, 64, 512]), st.integers(1, 300))
def test_slices_of_k_fill_the_device_with_steps_to_spare(m, units):
    kernel = registry.kernel("matmul-split-k")
    problem = Matmul(m, 1024, 8192, 1, "bf16")
    for config in kernel.menu(problem, "sm_90", units):
        product, _ = kernel.launches(problem, config)
        deepest = config.split_k <= 4 * config.bk
        assert product.blocks >= min(2 * units, 2) or deepest
        assert config.split_k % config.bk == 0
        assert config.split_k < problem.k


# ---- Compiled ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def binaries():
    """The first of the menus: a 16-bit square, an 8-bit one, and few rows of A.

    `python -m perfmodel.measured.compilesuite` compiles every menu.
    """
    return compiled(
        (registry.kernel(kernel), name, problem, most)
        for name, kernel, problem, most in (
            ("sm_90", "matmul", FP8, 2),
            ("sm_90", "matmul-split-k", SKINNY, 1),
            ("sm_90", "matmul-persistent", BF16, 2),
            ("sm_100", "matmul", FP8, 1),
            ("gfx942", "matmul", BF16, 1),
            ("gfx942", "matmul-split-k", SKINNY, 1),
        )
    )


@pytest.fixture(params=TARGET_NAMES)
def made(request, binaries):
    """The binaries of one target by kernel."""
    name = request.param
    return name, {kernel: items for (target, kernel), items in binaries.items() if target == name}


@pytest.mark.parametrize("name", TARGET_NAMES)
def test_persistent_grids_are_what_the_device_holds(name):
    """By the table of compile facts, which test_compile_facts.py holds against the compiler."""
    kernel, goal = registry.kernel("matmul-persistent"), target(name)
    units, others = load(goal.device).units, set()
    for problem in kernel.forms:
        if problem.dtype == "fp8" and name == "gfx942":
            continue
        for config in menu(kernel, problem, name):
            (fact,) = compilefacts.table().of(kernel, problem, config, goal)
            if config.persistent != units * fact.blocks:
                others.add((problem.dtype, config.bm, config.bn))
    # Registers leave room for 3 blocks of that entry, and its grid is of 4.
    assert others == ({("fp32", 64, 64)} if name == "sm_100" else set())


def test_warps_are_specialised_where_the_config_says_so(made):
    name, found = made
    for item in (item for items in found.values() for item in items):
        launch = item.launches[0]
        told = item.config.specialise
        assert (launch.threads > 32 * item.config.warps and name != "gfx942") == told
        assert any(step.stem == "USETMAXREG" for step in launch.program) == told


def test_descriptors_move_tiles_by_the_copy_engine_both_ways(made):
    name, found = made
    for item in (item for items in found.values() for item in items):
        stems = [step.stem for step in item.launches[0].program]
        if item.config.descriptors != "none":
            assert stems.count("UTMALDG") >= 2
            assert stems.count("UTMASTG") >= item.config.subtiles
            assert not {"LDG", "STG", "LDGSTS"} & set(stems) or item.config.descriptors == "block"
        elif name != "gfx942":
            assert "UTMALDG" not in stems


def test_matrix_instructions_are_what_a_square_product_waits_for(made):
    """Without an epilogue in its loop, the matrix pipe is the busiest one."""
    name, found = made
    device = load(target(name).device)
    for item in found["matmul"]:
        if item.config.descriptors == "host" or name == "gfx942":
            assert item.launches[0].issue_slots(device).limiter == "matrix", item.config


def test_partial_tiles_are_added_up_with_the_widest_accesses(made):
    _, found = made
    for item in found.get("matmul-split-k", ()):
        combine = item.launches[1].program
        reads = global_accesses(combine, "load") or global_accesses(combine, "LDG")
        assert len(reads) >= 4
        assert all(is_wide(opcode) for opcode in reads)


def test_every_target_is_known():
    assert set(TARGET_NAMES) < set(TARGETS)
