"""Experts in training: their loads, of which the busiest device bounds a step, and their split."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Matmul
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.networks import library
from perfmodel.networks.expand import expand
from perfmodel.networks.loads import Loads
from perfmodel.training import planning
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step

H100 = load("h100-sxm")
MIXTRAL = library.load("mixtral-8x7b")
BASE = Plan(seq=2048, data=8, expert=8, tensor=4, accumulation=4, zero=1)
ROWS, EXPERTS, CHOSEN = 4096, 8, 2


def step_of(**fields):
    return predict_step(MIXTRAL, replace(BASE, **fields), H100)


def mixed(shares, evenness):
    """Measured shares, and even ones for a part of the rows."""
    return ",".join(
        repr((1.0 - evenness) * share / sum(shares) + evenness / len(shares)) for share in shares
    )


shares = st.lists(st.integers(4, 9), min_size=EXPERTS, max_size=EXPERTS)


@given(st.one_of(shares.map(lambda s: {"shares": mixed(s, 0.0)}), st.just({"skew": 1.2})))
def test_rows_are_kept_and_the_busiest_device_has_at_least_its_share(fields):
    for each in Loads(**fields).of(ROWS, EXPERTS, CHOSEN):
        assert each.sum() == pytest.approx(ROWS)
    for ranks in (1, 2, 4, 8):
        occupied, rows = Loads(**fields).busiest(ROWS, EXPERTS, ranks, CHOSEN)
        assert occupied * rows >= ROWS / ranks
    assert Loads(**fields).busiest(ROWS, EXPERTS, 1, CHOSEN)[1] == math.ceil(ROWS / EXPERTS)


@given(shares, st.floats(1.0, 4.0))
def test_an_expert_has_its_capacity_at_most_and_no_other_loses_a_row(given_shares, capacity):
    free, capped = (
        next(Loads(shares=mixed(given_shares, 0.0), capacity=most).of(ROWS, EXPERTS, CHOSEN))
        for most in (None, capacity)
    )
    most = math.ceil(capacity * ROWS / EXPERTS)
    assert np.array_equal(capped, np.where(free > most, most, free))


@given(shares, st.floats(0.0, 1.0), st.sampled_from([1, 2, 4, 8]))
def test_evener_shares_never_give_the_busiest_device_more(given_shares, evenness, ranks):
    given_rows, evener = (
        math.prod(Loads(shares=mixed(given_shares, part)).busiest(ROWS, EXPERTS, ranks, CHOSEN))
        for part in (0.0, evenness)
    )
    assert evener <= given_rows


def test_even_loads_and_a_capacity_of_the_mean_are_as_without():
    plain = step_of()
    for fields in ({"capacity": 1.0}, {"capacity": 1.25}, {"shares": "1,1,1,1,1,1,1,1"},
                   {"skew": 1.2, "capacity": 1.0}):  # fmt: skip
        each = step_of(**fields)
        assert (each.seconds, each.classes) == (plain.seconds, plain.classes)
        assert each.memory.lines == plain.memory.lines


def test_a_step_takes_longer_the_fuller_its_busiest_device():
    steps = [
        step_of(shares=mixed([9, 5, 4, 4, 4, 4, 4, 4], evenness)) for evenness in (1.0, 0.5, 0.0)
    ]
    steps += [step_of(skew=1.2, capacity=capacity) for capacity in (1.0, 1.25, 2.0, None)]
    for less, more in pairwise(steps):
        if more.plan.capacity != 1.0:
            assert less.seconds < more.seconds
            assert less.memory.peak_bytes < more.memory.peak_bytes
            assert less.classes["communication"] < more.classes["communication"]


def test_one_device_does_the_work_of_all_whatever_their_loads():
    plan = Plan(seq=2048, tensor=8)
    even, uneven = (
        predict_step(MIXTRAL, replace(plan, shares=each), H100).seconds
        for each in ("", "3,1,1,1,1,1,1,1")
    )
    assert uneven == pytest.approx(even, rel=1e-3)


def test_the_search_leaves_out_no_plan_that_drops_tokens():
    """Its floor by operations counts no expert, of which the busiest device may drop any part."""
    plan = replace(BASE, shares="93,1,1,1,1,1,1,1", capacity=1.0)
    with pytest.raises(ProblemError, match="none has more"):
        plan.predicted(H100, network=MIXTRAL)
    plan = replace(plan, shares="50,49,1,0,0,0,0,0", expert=4)
    floors = planning.Floors.of(MIXTRAL, plan, H100)
    assert floors.flops < planning.Floors.of(MIXTRAL, BASE, H100).flops
    assert floors.seconds(plan) < plan.predicted(H100, network=MIXTRAL).seconds


@cases
def test_loads_that_are_none_are_refused(fields, says):
    with pytest.raises(ProblemError, match=says):
        step_of(**fields)


def test_a_dense_network_has_no_loads():
    with pytest.raises(ProblemError, match="has no experts; drop skew"):
        predict_step(library.load("llama-3-8b"), Plan(capacity=1.25), H100)


# ---- Experts that the devices of tensor split, or not --------------------------------------------


def products_of(plan):
    """Operations of all products of experts of a forward pass on one device."""
    return sum(
        segment.repeat * node.repeat * node.problem.flops()
        for segment in expand(MIXTRAL, plan.setting)
        for node in segment.forward.nodes
        if node.name.startswith("experts ") and isinstance(node.problem, Matmul)
    )


def experts_of(plan):
    """Parameters of experts on one device."""
    return sum(
        segment.repeat * weight.elements
        for segment in expand(MIXTRAL, plan.setting)
        for weight in segment.weights
        if weight.expert
    )


@pytest.mark.parametrize("fields", [{}, {"expert": 4}, {"expert": 1}, {"context": 2}])
def test_experts_that_all_devices_of_tensor_split_are_as_by_default(fields):
    plain, split = step_of(**fields), step_of(**fields, expert_tensor=4)
    assert (plain.seconds, plain.memory.lines) == (split.seconds, split.memory.lines)


def test_more_ranks_than_copies_have_whole_experts_by_default():
    plain, whole = (step_of(data=2, expert_tensor=each) for each in (0, 1))
    assert (plain.seconds, plain.memory.lines) == (whole.seconds, whole.memory.lines)


def test_a_stack_may_keep_experts_whole():
    bridge = replace(BASE, stack="megatron-bridge")
    plain, whole = (step_of(stack=bridge.stack, expert_tensor=each) for each in (0, 1))
    assert (plain.seconds, plain.memory.lines) == (whole.seconds, whole.memory.lines)
    assert not bridge.splits_experts
    for fields in ({"expert": 1}, {"sequence": False}, {"expert_tensor": 4}):
        assert replace(bridge, **fields).splits_experts


@pytest.mark.parametrize("expert", [1, 2, 4, 8])
@pytest.mark.parametrize("context", [1, 2])
def test_whole_experts_take_the_same_products_and_lie_on_all_devices_as_often(expert, context):
    split, whole = (
        replace(BASE, expert=expert, context=context, expert_tensor=each) for each in (4, 1)
    )
    assert products_of(whole) == products_of(split)
    assert experts_of(whole) == 4 * experts_of(split)
    assert whole.expert_copies == 4 * split.expert_copies
    lines = [plan.predicted(H100, network=MIXTRAL).memory.lines for plan in (split, whole)]
    assert lines[0]["optimiser states"] == lines[1]["optimiser states"]
    assert lines[0]["weights"] < lines[1]["weights"]


def test_whole_experts_exchange_each_row_once_and_gather_none():
    """Devices of tensor send rows of their own, in place of those of all, and reduce no sums."""
    sent = []
    for degree in (4, 1):
        plan = replace(BASE, expert_tensor=degree)
        (layer,) = (one for one in expand(MIXTRAL, plan.setting) if one.block)
        sent.append([(each.axis, each.tensor_bytes) for each in layer.forward.exchanges])
    rows = [[size for axis, size in each if axis == "expert"] for each in sent]
    assert len(rows[0]) == 2
    assert rows[0] == [4 * size for size in rows[1]]
    tensor = [sum(axis == "tensor" for axis, _ in each) for each in sent]
    assert tensor[0] == tensor[1] + 2


def test_a_search_finds_what_timing_every_plan_with_experts_finds():
    given = {"micro_batch": (1,), "chunks": (1,), "context": (1,), "zero": (1,),
             "recompute": ("none",), "pipeline": (1,), "tensor": (2, 4)}  # fmt: skip
    plans = list(planning.legal(MIXTRAL, Plan(seq=4096), 32, 32, 8, given))
    steps = [plan.predicted(H100, network=MIXTRAL) for plan in plans]
    assert {plan.splits_experts for plan in plans} == {True, False}
    assert len(set(plans)) == len(plans)
    floors = planning.Floors.of(MIXTRAL, plans[0], H100)
    for step in steps:
        assert floors.seconds(step.plan) <= step.seconds
        assert floors.bytes(step.plan) <= step.memory.peak_bytes
    best = sorted((s for s in steps if s.memory.fits), key=lambda s: s.seconds)[:5]
    result = planning.search(MIXTRAL, Plan(seq=4096), 32, 32, H100, given=given)
    assert [each.plan for each in result.best] == [each.plan for each in best]


def test_a_part_of_the_devices_of_tensor_is_refused():
    with pytest.raises(ProblemError, match="expert_tensor is 2 and tensor 4"):
        step_of(expert_tensor=2)
    with pytest.raises(ProblemError, match="go with sequence parallelism"):
        step_of(expert_tensor=1, sequence=False)
