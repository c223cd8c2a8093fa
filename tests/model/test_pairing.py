"""DualPipe's joined passes: exchanges with experts of each run beside the other's kernels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.hardware import load, systems
from perfmodel.networks import hosts, library
from perfmodel.networks.dispatching import occupied_share
from perfmodel.networks.expand import expand
from perfmodel.networks.networktime import predict_network
from perfmodel.networks.stack import load as load_stack
from perfmodel.training import pairing
from perfmodel.training.copies import Copies
from perfmodel.training.fabric import fabric
from perfmodel.training.layers import layers
from perfmodel.training.pairing import pair_seconds
from perfmodel.training.pipeline import StageTimes, schedule, simulate
from perfmodel.training.plan import Plan
from perfmodel.training.stages import parts
from perfmodel.training.step import predict_step

H800 = load("h800-sxm")
MIXTRAL = library.load("mixtral-8x7b")
PLAN = Plan(
    seq=1024, data=8, expert=8, pipeline=4, chunks=2, accumulation=16, schedule="dualpipe",
    stack="te", zero=1,
)  # fmt: skip
plans = st.builds(
    lambda kind, expert, stack, recompute: replace(
        PLAN, schedule=kind, expert=expert, stack=stack, recompute=recompute
    ),
    st.sampled_from(["dualpipe", "dualpipe-v"]),
    st.sampled_from([2, 8]),
    st.sampled_from(["te", "megatron"]),
    st.sampled_from(["none", "full"]),
)


def work_of(plan):
    """The schedule of a plan, its parts, and its exchanges."""
    prediction = predict_network(MIXTRAL, plan.setting, H800)
    work = layers(prediction, expand(MIXTRAL, plan.setting), plan)
    order = schedule(plan.schedule_kind, plan.pipeline, plan.accumulation, plan.chunks)
    return (
        order,
        parts(work, order.parts),
        Copies(plan, fabric(plan, H800), hosts.load(plan.setting.stack.host)),
    )


def passes_of(order, cut, copies):
    """Seconds of the passes by stage and chunk: F, and BW of the stage's other chunk."""
    forward = [part.forward(copies).steady_seconds for part in cut]
    backward = [part.backward(copies).steady_seconds for part in cut]
    return order.by_place(np.array(forward)), order.by_place(np.array(backward))[:, ::-1]


@given(plans)
def test_a_pair_takes_at_least_either_pass_and_its_kernels_and_at_most_both(plan):
    order, cut, copies = work_of(plan)
    pair = pair_seconds(order, cut, copies)
    forward, backward = passes_of(order, cut, copies)
    bare = replace(copies, links=replace(copies.links, without="expert"), layers={})
    kernels = sum(passes_of(order, cut, bare))
    assert np.all(pair >= np.maximum(np.maximum(forward, backward), kernels) * (1 - 1e-12))
    assert np.all(pair < forward + backward)


@given(plans)
def test_hidden_exchanges_shorten_a_step_and_its_parts_add_up_to_it(plan):
    step = predict_step(MIXTRAL, plan, H800)
    assert sum(step.classes.values()) == pytest.approx(step.seconds)
    order, cut, copies = work_of(plan)
    forward, backward = passes_of(order, cut, copies)
    backward, weight = backward[:, ::-1], np.zeros(forward.shape)
    pair = pair_seconds(order, cut, copies)
    apart, joined = (
        simulate(order, StageTimes(forward, backward, weight, each)).seconds
        for each in (None, pair)
    )
    assert joined < apart


def test_an_exchange_hides_behind_another_pass_alone():
    """No schedule without joined passes hides one, and no plan whose experts are not split has one
    to hide."""
    for fields in ({"schedule": "zb-v"}, {"schedule": "1f1b", "chunks": 1}, {"expert": 1}):
        assert pair_seconds(*work_of(replace(PLAN, **fields))) is None


def test_a_pair_takes_longer_the_more_units_its_exchanges_occupy(monkeypatch):
    times = []
    for share in (0.0, 0.15, 0.5):
        monkeypatch.setattr(pairing, "_units", lambda copies, share=share: share)
        times.append(pair_seconds(*work_of(PLAN)).sum())
    assert times == sorted(times)
    assert times[0] < times[-1]


def test_dispatchers_occupy_their_units_and_the_library_has_none():
    """DeepSeek-V3's kernels: 20 of an H800's 132 units (2412.19437, section 3.2.2)."""
    system = systems.usual(H800)
    assert occupied_share(load_stack("te"), system) == pytest.approx(20 / 132)
    assert occupied_share(load_stack("megatron"), system) is None
    assert occupied_share(load_stack("te"), systems.load("gb200-nvl72")) is None
