"""Scaling: steps on more and more devices, and what of the efficiency is lost by cause."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.hardware import load, systems
from perfmodel.networks import library
from perfmodel.training.plan import Plan
from perfmodel.training.scaling import CAUSES, scaled, shares
from perfmodel.training.step import predict_step

SYSTEM = systems.load("dgx-h100")
DEVICE = load(SYSTEM.device)
NETWORK = library.load("llama-3-8b")
BASE = Plan(seq=4096, tensor=8, pipeline=2, zero=1, stack="te", recompute="full")
DEVICES = (16, 64, 256)


def step(devices, batch):
    plan = Plan.over(devices, batch, **{name: getattr(BASE, name) for name in (
        "seq", "tensor", "pipeline", "zero", "stack", "recompute")})  # fmt: skip
    return predict_step(NETWORK, plan, DEVICE, SYSTEM)


@pytest.fixture(scope="module")
def ways():
    return {
        "strong": [step(n, 64) for n in DEVICES],
        "weak": [step(n, 64 * n // DEVICES[0]) for n in DEVICES],
    }


def test_shares_add_up_to_the_step_and_losses_to_what_efficiency_lacks(ways):
    for steps in ways.values():
        for each, found in zip(steps, scaled(steps), strict=True):
            assert found.shares == shares(each)
            assert sum(found.shares.values()) == pytest.approx(1.0)
            assert sum(found.lost.values()) == pytest.approx(1.0 - found.efficiency)
            assert [*found.shares] == [*found.lost] == [*CAUSES]
        assert scaled(steps)[0].efficiency == 1.0


def test_weak_scaling_keeps_micro_batches_and_strong_scaling_waits_for_the_pipeline(ways):
    strong, weak = (scaled(ways[way]) for way in ("strong", "weak"))
    assert strong[-1].efficiency < 0.8 < weak[-1].efficiency <= 1.0
    assert max(strong[-1].lost, key=strong[-1].lost.get) == "bubble"
    assert weak[-1].lost["bubble"] == pytest.approx(0.0, abs=1e-3)
    assert weak[-1].lost["communication"] > 0


def test_recomputation_is_the_forward_kernels_that_run_again(ways):
    (first, *_) = ways["strong"]
    none = predict_step(NETWORK, replace(first.plan, recompute="none"), DEVICE, SYSTEM)
    assert none.recompute_seconds == 0.0 < first.recompute_seconds
    kinds = ("matmul", "attention", "norm", "pointwise")
    kernels = [sum(each.classes.get(kind, 0.0) for kind in kinds) for each in (none, first)]
    assert first.recompute_seconds == pytest.approx(kernels[1] - kernels[0], rel=0.01)


@given(st.permutations(range(3)))
def test_the_fewest_devices_are_the_measure_whatever_the_order(ways, order):
    steps = ways["strong"]
    mixed = scaled([steps[i] for i in order])
    assert [mixed[order.index(i)] for i in range(3)] == scaled(steps)


OPTIONS = (
    "train", "llama-3-8b", "-s", "dgx-h100", "--gpus", "16,64", "--tensor", "8", "--pipeline", "2",
    "--seq", "4k", "--zero", "1", "--stack", "te", "--micro-batch", "1,2",
)  # fmt: skip


def test_the_command_says_what_is_lost_and_draws_it(output, tmp_path):
    chart, numbers = tmp_path / "scaling.svg", tmp_path / "scaling.json"
    out = output(*OPTIONS, "--global-batch", "64", "--scaling", "weak", "-f", "json",
                         "--chart", str(chart), "--chart-data", str(numbers))  # fmt: skip
    few, many = json.loads(out)["steps"]
    assert (few["devices"], many["devices"]) == (16, 64)
    assert many["global_batch"] == 4 * few["global_batch"] == 256
    assert sum(many["lost"].values()) == pytest.approx(1 - many["efficiency"])
    assert "weak scaling" in chart.read_text()
    assert {row["title"].split(": ")[1] for row in json.loads(numbers.read_text())["data"]} <= {
        *CAUSES
    }
    out = output(*OPTIONS, "--global-batch", "64", "--scaling", "strong")
    assert "efficiency and what causes take of it add up to 100 %" in out


def test_scaling_needs_the_batch_of_the_fewest_devices(cli):
    code, _, err = cli(*OPTIONS, "--scaling", "strong")
    assert code == 2
    assert "--scaling needs a --global-batch" in err
