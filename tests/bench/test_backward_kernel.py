"""The attention backward kernels: gradients of any shape, bytes as counted, menus that fit."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from cases import cases
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from walker import same

pytest.importorskip("torch")
pytest.importorskip("triton")

import torch
from perfmodel_kernels.backward_menu import BackwardConfig
from perfmodel_kernels.common import visible

from perfmodel.algorithms import Attention
from perfmodel.count import count
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.proof import registry
from perfmodel.proof.compiled.compiled import CompiledKernel, Request, compile_all
from perfmodel.proof.compiled.compiledeffect import effect
from perfmodel.proof.compiled.disassembly import loops
from perfmodel.proof.compiled.instructions import unit_of
from perfmodel.proof.compiled.targets import TARGETS, target
from perfmodel.proof.kernel import Inputs, relative_error
from perfmodel.proof.replay.replay import TOLERANCES, replay
from perfmodel.schedules.tiled import tiled_gradients

NAME = "attention-backward"
KERNEL = registry.kernel(NAME)
tiles = st.sampled_from([16, 32, 64])


@st.composite
def problems(draw: st.DrawFn, most: int = 90) -> Attention:
    """Ragged lengths, grouped heads, two head dims, causal masks and windows."""
    batch, kv, ratio = draw(st.sampled_from([(1, 1, 1), (2, 1, 1), (1, 2, 2), (1, 1, 3)]))
    return Attention(
        batch,
        ratio * kv,
        kv,
        draw(st.integers(1, most)),
        draw(st.integers(1, most)),
        draw(st.sampled_from([16, 24, 40, 64, 128])),
        head_dim_v=draw(st.none() | st.sampled_from([16, 32, 72])),
        causal=draw(st.booleans()),
        window=draw(st.none() | st.integers(1, most + 5)),
        dtype=draw(st.sampled_from(["fp32", "fp16"])),
        direction="bwd",
    )


configs = st.builds(
    BackwardConfig,
    tiles,
    tiles,
    query_br=st.sampled_from([0, 16, 64]),
    query_bc=tiles,
    spread=st.booleans(),
    descriptors=st.booleans(),
    turned=st.booleans(),
)


def by_autograd(inputs: Inputs) -> dict[str, torch.Tensor]:
    """dQ, dK and dV in float64, by differentiating softmax(Q·Kᵀ/√d)·V."""
    problem = inputs.problem
    q, k, v = (inputs.tensors[name].double().requires_grad_() for name in "QKV")
    group = problem.heads_q // problem.heads_kv
    scores = q @ k.repeat_interleave(group, 1).mT / math.sqrt(problem.head_dim)
    seen = visible(problem)
    if seen is not None:
        scores = scores.masked_fill(~seen, -1e300)
        weights = torch.where(seen, scores.softmax(-1), 0.0)
    else:
        weights = scores.softmax(-1)
    out = weights @ v.repeat_interleave(group, 1)
    out.backward(inputs.tensors["dO"].double())
    return {"dQ": q.grad, "dK": k.grad, "dV": v.grad}


# -- gradients -----------------------------------------------------------------------------------


@given(problems(), st.integers(0, 99))
def test_the_reference_is_autograds(problem, seed):
    inputs = KERNEL.make_inputs(replace(problem, dtype="fp32"), seed)
    found, expected = KERNEL.reference(inputs), by_autograd(inputs)
    whole = max(float(each.norm()) for each in expected.values())
    for name in expected:
        assert float((found[name] - expected[name]).norm()) <= 1e-6 * whole, name


@settings(max_examples=10)  # each is a replay of four kernels
@given(problems(most=70), configs, st.integers(0, 99))
def test_gradients_are_right_and_bytes_are_those_counted(problem, config, seed):
    # Where every row sees one key dQ and dK cancel, and an error of them has no scale.
    seen = visible(problem)
    assume(problem.seq_kv > 1 and (seen is None or int(seen.sum(-1).max()) > 1))
    found = replay(NAME, problem, config, seed=seed)
    assert found.equal, [row for row in found.tensors if not row.equal]
    assert not found.misread
    assert found.largest_error <= TOLERANCES[problem.dtype]


@pytest.mark.parametrize("apart", [0, 16])
def test_gradients_are_in_the_problems_type_and_nothing_is_left_unwritten(apart):
    problem = Attention(1, 4, 2, 40, 24, 16, causal=True, dtype="fp16", direction="bwd")
    inputs = KERNEL.make_inputs(problem)
    found = KERNEL.run(inputs, BackwardConfig(16, 16, query_br=apart))
    assert set(found) == {"dQ", "dK", "dV"}
    for gradient in found.values():
        assert gradient.dtype == torch.float16
        assert not gradient.isnan().any()
    assert not found["dQ"][:, :, :16].any()  # rows that see no key


def test_heads_as_blocks_of_their_own_change_no_gradient():
    problem = Attention(1, 6, 2, 50, 70, 32, causal=True, dtype="fp32", direction="bwd")
    inputs = KERNEL.make_inputs(problem)
    one, each = (KERNEL.run(inputs, BackwardConfig(16, 32, spread=way)) for way in (False, True))
    for name in one:
        assert relative_error(one[name], each[name]) < 1e-6
    launches = KERNEL.launches(problem, BackwardConfig(16, 32, spread=True))
    blocks = {launch.kernel: launch.blocks for launch in launches}
    alone = KERNEL.launches(problem, BackwardConfig(16, 32))
    assert blocks["key-gradients"] == 3 * alone[1].blocks


# -- what is counted -----------------------------------------------------------------------------


@given(
    problems(most=40),
    st.integers(3, 20),
    st.integers(3, 20),
    st.none() | st.tuples(st.integers(3, 20), st.integers(3, 20)),
    st.booleans(),
)
def test_the_rule_is_the_walk(problem, br, bc, queries, spread):
    schedule = tiled_gradients(problem.mask(), br, bc, queries=queries, spread=spread)
    same(schedule, problem.sizes(), problem.elements())


def test_a_second_kernel_for_dq_costs_two_products_more_and_saves_the_sums():
    problem = Attention(4, 16, 16, 4096, 4096, 128, direction="bwd")
    sizes, elements = problem.sizes(), problem.elements()
    summed, apart = (
        count(tiled_gradients(None, 64, 128, queries=tile), sizes, elements)
        for tile in (None, (128, 64))
    )
    assert 5 * apart.matrix_flops == 7 * summed.matrix_flops
    sums = summed.kernels[1].l2["dQ32"]
    # Every tile of 128 keys adds every row once, in fp32.
    assert sums.atomic_bytes == 4096 / 128 * 4 * 16 * 4096 * 128 * 4
    assert not any(part.atomic_bytes for kernel in apart.kernels for part in kernel.l2.values())
    assert apart.bytes_at("l2") < summed.bytes_at("l2")


# -- menus ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TARGETS)
def test_menus_are_short_and_part_of_the_configs(name):
    units = load(target(name).device).units
    for problem in KERNEL.forms:
        menu = KERNEL.menu(problem, name, units)
        assert 3 <= len(menu) <= 6
        assert len(set(menu)) == len(menu)
        assert set(menu) <= set(KERNEL.configs)


@pytest.mark.parametrize("name", TARGETS)
@given(
    dims=st.tuples(st.integers(1, 256), st.integers(1, 256)),
    dtype=st.sampled_from(["bf16", "fp32"]),
)
def test_every_head_dimension_has_a_menu(name, dims, dtype):
    d, e = dims
    problem = Attention(1, 2, 2, 300, 300, d, head_dim_v=e, dtype=dtype, direction="bwd")
    menu = KERNEL.menu(problem, name, 100)
    aligned = d % 8 == 0 and e % 8 == 0
    assert aligned or not any(config.descriptors for config in menu)


def test_heads_are_spread_where_blocks_are_few():
    few = Attention(1, 32, 2, 2048, 2048, 128, direction="bwd")
    many = Attention(8, 32, 8, 8192, 8192, 128, direction="bwd")
    for problem, spread in ((few, True), (many, False)):
        first, second, *_ = KERNEL.menu(problem, "sm_90", 132)
        assert (first.spread, second.spread) == (spread, not spread)
        assert replace(first, spread=not spread) == second
    alone = replace(few, heads_q=2)
    assert not any(config.spread for config in KERNEL.menu(alone, "sm_90", 132))


# The form with both loops and all that needs registers. That no entry of any menu spills is in
# test_compile_facts.py.
HELD = KERNEL.forms[-1]


@pytest.fixture(scope="module")
def compiled() -> list[CompiledKernel]:
    """The menu on Hopper: the first entry of each way to do it."""
    every = KERNEL.menu(HELD, "sm_90", load("h100-sxm").units)
    menu = [next(each for each in every if each.apart == apart) for apart in (False, True)]
    requests = [Request(KERNEL, HELD, config, target("sm_90")) for config in menu]
    made = [each for _, each in compile_all(requests)]
    assert all(isinstance(each, CompiledKernel) for each in made), made
    return made


def selections(launch) -> list[int]:
    """Selects between two values in each loop that multiplies."""
    matrix = {i for i, item in enumerate(launch.program) if unit_of(item) == "matrix"}
    every = [body for body in loops(launch.program) if body & matrix]
    inner = [body for body in every if not any(other < body for other in every)]
    return [sum(launch.program[i].stem == "FSEL" for i in body) for body in inner]


def test_masks_are_computed_on_edge_tiles_only(compiled):
    for made in compiled:
        for launch in made.launches:
            if launch.kernel.endswith("gradients"):
                whole, edge = sorted(selections(launch))
                assert whole == 0
                assert edge > 0


def test_products_are_five_or_seven_a_pair(compiled):
    """No product is computed twice, however many warps share its rows."""
    for made in compiled:
        total = 0.0
        for launch in made.launches:
            if launch.kernel.endswith("gradients"):
                tile = (made.config.br, made.config.bc)
                if launch.kernel == "query-gradients":
                    tile = (made.config.query_br, made.config.query_bc)
                total += launch.loop_operations / (2 * tile[0] * tile[1] * 128)
        assert total == (7 if made.config.apart else 5)


def test_a_prediction_with_compiled_footprints_covers_every_kernel(compiled):
    made = compiled[0]
    found = effect(HELD, load("h100-sxm"), KERNEL, made.config, facts=made.facts())
    assert [part.kernel for part in found.kernels] == [launch.kernel for launch in made.launches]
    assert math.isfinite(found.seconds)


# -- what the kernels cannot do ------------------------------------------------------------------

PROBLEM = Attention(1, 4, 2, 64, 64, 32, dtype="fp16", direction="bwd")


@cases
def test_what_cannot_be_done_is_one_line(changes, config, says):
    with pytest.raises(ProblemError, match=says) as caught:
        KERNEL.launches(replace(PROBLEM, **changes), BackwardConfig(**config))
    assert "\n" not in str(caught.value)
