"""FSDP's weights after a forward pass: bytes gathered and held as counted, and no other work."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.cli import run
from perfmodel.errors import ProblemError, SizeError
from perfmodel.hardware import load
from perfmodel.networks import hosts, library
from perfmodel.networks.expand import expand
from perfmodel.training.copies import Copies
from perfmodel.training.fabric import Fabric, exchange
from perfmodel.training.plan import Plan
from perfmodel.training.planning import legal
from perfmodel.training.step import check, predict_step, step_memory

H100 = load("h100-sxm")
LLAMA = library.load("llama-3-8b")
BASE = Plan(seq=1024, data=16, zero=3, accumulation=4, stack="compile")
STAGES = replace(BASE, pipeline=2, data=8)
KERNELS = ("matmul", "attention", "norm", "pointwise", "embedding", "loss")


def received_bytes(plan):
    """Bytes that a device receives in a step: of gathered weights, and of scattered gradients, over
    all layers as if one device had them all."""

    def counted(op, size, ranks, local, stride):
        received[op] = received.get(op, 0.0) + size * (ranks - 1) / ranks
        return exchange(op, (0.0, 0.0, 0.0))

    received: dict[str, float] = {}
    for edge, passes in ((False, plan.accumulation - 1), (True, 1)):
        for segment in expand(LLAMA, plan.setting):
            links = Fabric(plan, 8, counted)
            copies = Copies(plan, links, hosts.load(plan.setting.stack.host))
            before = dict(received)
            for way in ("forward", "backward"):
                links.asked.clear()
                copies.gather_seconds(segment, way, edge=edge)
            links.asked.clear()
            if copies._scatters or edge:
                copies.reduce_seconds(segment)
            runs = passes * segment.repeat
            for op, size in received.items():
                received[op] = before.get(op, 0.0) + runs * (size - before.get(op, 0.0))
    return received


def weight_bytes(plan):
    return sum(
        segment.repeat * plan.gathered_bytes(weight)
        for segment in expand(LLAMA, plan.setting)
        for weight in segment.weights
        if not weight.shared
    )


@given(st.sampled_from([2, 4, 8]), st.integers(1, 5))
def test_gathered_bytes_are_those_of_the_formula(group, micro_batches):
    plan = replace(BASE, accumulation=micro_batches)
    d, total = plan.copies, micro_batches * weight_bytes(plan)
    groups = {"true": d, "false": 1, str(group): group}
    for reshard, g in groups.items():
        each = received_bytes(replace(plan, reshard=reshard))
        assert each["all-gather"] == pytest.approx(total * ((d - 1) / d + (g - 1) / g))
        assert each["reduce-scatter"] == pytest.approx(total * (d - 1) / d)


def test_a_pipeline_that_keeps_weights_exchanges_what_zero_1_does():
    """Each weight once and each gradient once a step, the latter in the type it is kept in."""
    kept = replace(STAGES, reshard="false", precision="megatron")
    d, total = kept.copies, weight_bytes(kept)
    each = received_bytes(kept)
    assert each["all-gather"] == pytest.approx(total * (d - 1) / d)
    assert each["reduce-scatter"] == pytest.approx(2 * total * (d - 1) / d)
    usual = received_bytes(replace(STAGES, reshard="true"))
    assert usual["all-gather"] == pytest.approx(2 * kept.accumulation * each["all-gather"])
    lines = [
        step_memory(LLAMA, plan, H100).lines for plan in (kept, replace(kept, zero=1, reshard=""))
    ]
    for name in ("gradients", "master weights", "optimiser states"):
        assert lines[0][name] == pytest.approx(lines[1][name])
    stage = lines[1]["weights"]
    assert lines[0]["weights"] == pytest.approx(stage / d)
    assert lines[0]["gathered weights"] == pytest.approx(stage)


@pytest.mark.parametrize("base", [BASE, STAGES])
def test_the_larger_a_group_the_less_is_held_and_the_longer_a_step_takes(base):
    choices = ("false", "2", "4", "true")
    steps = [predict_step(LLAMA, replace(base, reshard=each), H100) for each in choices]
    held = [step.memory.peak_bytes for step in steps]
    times = [step.seconds for step in steps]
    assert held == sorted(held, reverse=True)
    assert held[0] > held[-1]
    assert times == sorted(times)
    assert times[0] < times[-1]


@pytest.mark.parametrize("reshard", ["false", "4"])
def test_the_work_of_a_step_is_kept(reshard):
    plain, other = (
        predict_step(LLAMA, replace(BASE, reshard=each), H100) for each in ("true", reshard)
    )
    for name in KERNELS:
        assert other.classes[name] == pytest.approx(plain.classes[name])
    for step in (plain, other):
        assert sum(step.classes.values()) == pytest.approx(step.seconds)
    gained = plain.seconds - other.seconds
    spared = sum(
        plain.classes.get(name, 0.0) - other.classes.get(name, 0.0)
        for name in ("communication", "host")
    )
    assert gained == pytest.approx(spared)


def test_what_layers_keep_is_held_until_their_backward_pass():
    """W/g beside the layers at work: 1/4 of all weights in 16 bits."""
    plain, split = (
        step_memory(LLAMA, replace(BASE, reshard=each), H100).lines["gathered weights"]
        for each in ("true", "4")
    )
    assert split - plain == pytest.approx(weight_bytes(BASE) / 4)


def test_values_are_spelled_as_pytorch_and_the_command_line_spell_them(capsys):
    for value in (True, False, 4):
        assert replace(BASE, reshard=value) == replace(BASE, reshard=str(value).lower())
    said = []
    for arguments in (["--reshard", "false"], []):
        run(["train", "llama-3-8b", "-d", "h100", "--gpus", "16", "--zero", "3", *arguments])
        said.append(capsys.readouterr().out)
    assert "reshard=false" in said[0]
    assert said[0] != said[1]


def test_stacks_that_keep_weights_do_so_in_pipelines():
    titan = replace(STAGES, stack="torchtitan")
    assert titan.keeps_whole
    assert not replace(titan, reshard="true").keeps_whole
    assert not replace(titan, pipeline=1).keeps_whole
    assert not STAGES.keeps_whole


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"reshard": "no"}, "reshard is no; give true, false, or the devices of a group"),
        ({"reshard": "1"}, "reshard is 1; give true, false"),
        ({"reshard": 0}, "reshard is 0; give true, false"),
    ],
)
def test_choices_that_are_none_are_refused(fields, says):
    with pytest.raises(ProblemError, match=says):
        replace(BASE, **fields)


def test_weights_that_are_not_in_shards_are_refused_and_a_search_takes_none():
    with pytest.raises(ProblemError, match="reshard is of weights in shards; give zero 3, not 2"):
        check(LLAMA, replace(BASE, zero=2, reshard="false"), H100)
    base = Plan(seq=1024, reshard="false", stack="compile")
    plans = list(legal(LLAMA, base, 16, 16, 8, {}))
    assert {plan.zero for plan in plans} == {3}
    assert any(plan.keeps_whole for plan in plans)


@pytest.mark.parametrize("group", [3, 16, 32])
def test_a_group_that_does_not_divide_the_copies_is_refused_with_those_that_do(group):
    with pytest.raises(SizeError, match="reshard of 2, 4, 8 would"):
        check(LLAMA, replace(BASE, reshard=group), H100)
