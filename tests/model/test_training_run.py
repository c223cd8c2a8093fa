"""A whole training run: its days, device hours, price and energy, with failures and checkpoints."""

from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from cases import cases

from perfmodel import load
from perfmodel.errors import PerfmodelError
from perfmodel.hardware import systems
from perfmodel.networks import library
from perfmodel.networks.expand import parameter_count
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step
from perfmodel.training.trainingrun import (
    TrainingRun,
    checkpoint_bytes,
    cost,
    optimal_interval,
    share_of_progress,
)

H100 = load("h100-sxm")


@pytest.fixture(scope="module")
def step():
    plan = Plan(seq=2048, data=8, zero=1, stack="te")
    return predict_step(library.load("llama-3.2-1b"), plan, H100)


def test_hours_are_tokens_over_the_rate_and_all_else_follows(step):
    run = TrainingRun(tokens=1e12, price=2.5, watts=1000.0)
    found = cost(run, step, H100)
    assert found.device_hours == pytest.approx(1e12 / step.tokens_per_second_per_device / 3600)
    assert found.days * 24 * step.plan.devices == pytest.approx(found.device_hours)
    assert found.dollars == pytest.approx(2.5 * found.device_hours)
    assert found.energy_mwh == pytest.approx(found.device_hours / 1000)
    assert found.goodput == 1.0
    twice = cost(replace(run, tokens=2e12), step, H100)
    assert twice.device_hours == pytest.approx(2 * found.device_hours)


def test_a_device_draws_its_power_limit_unless_said(step):
    found = cost(TrainingRun(tokens=1e9), step, H100)
    assert found.energy_mwh == pytest.approx(found.device_hours * 700 / 1e6)


@pytest.mark.parametrize("write", [1.0, 30.0, 600.0])
@pytest.mark.parametrize("between", [3600.0, 36000.0, 1e6])
def test_no_interval_makes_more_progress_than_dalys(write, between):
    best = optimal_interval(write, between)
    progress = share_of_progress(best, write, between, 300.0)
    assert 0.0 < progress < 1.0
    for factor in (0.5, 0.8, 1.25, 2.0):
        assert share_of_progress(factor * best, write, between, 300.0) < 1.002 * progress


def test_rare_failures_are_youngs():
    """Young 1974: the square root of twice the write and the time between failures."""
    assert optimal_interval(1.0, 1e8) == pytest.approx(math.sqrt(2e8), rel=1e-3)
    assert share_of_progress(1e4, 1.0, 1e12, 0.0) == pytest.approx(1.0 / 1.0001, rel=1e-6)


def test_failures_restarts_and_slow_storage_lose_time(step):
    base = TrainingRun(tokens=1e12, mtbf=5e4, storage=1e9)
    good = cost(base, step, H100).goodput
    assert good < 1.0
    for worse in ({"mtbf": 5e3}, {"storage": 1e7}, {"restart": 7200.0}, {"interval": 1e6}):
        assert cost(replace(base, **worse), step, H100).goodput < good


def test_a_checkpoint_has_master_weights_and_states_once(step):
    """Whatever ZeRO shards: 4 + 8 bytes a parameter of Adam with fp32 master weights."""
    count = parameter_count(step.network)
    assert checkpoint_bytes(step) == pytest.approx(12 * count)
    tuned = predict_step(step.network, replace(step.plan, lora=8), H100)
    assert checkpoint_bytes(tuned) == pytest.approx(12 * tuned.trained_parameters)


@pytest.mark.parametrize(
    ("network", "system", "plan", "tokens", "hours", "tolerance"),
    [
        (  # Llama 3 (2407.21783; model card): 30.84 million hours of H100, 90 % effective
            "llama-3.1-405b", "dgx-h100",
            Plan(seq=8192, tensor=8, pipeline=16, chunks=8, data=128, accumulation=16, zero=2,
                 stack="te"), 15.6e12, 30.84e6, 0.15,
        ),
        (  # Llama 2 (2307.09288, table 2): 1,720,320 hours of A100
            "llama-2-70b", "dgx-a100",
            Plan(seq=4096, tensor=8, pipeline=4, data=32, accumulation=32, zero=1, stack="te"),
            2e12, 1.72032e6, 0.15,
        ),
    ],
)  # fmt: skip
def test_device_hours_are_near_those_published(network, system, plan, tokens, hours, tolerance):
    """Plans are in part assumptions. Llama 3 had 419 failures in 54 days of 16,384 devices."""
    place = systems.load(system)
    device = load(place.device)
    step = predict_step(library.load(network), plan, device, place)
    run = TrainingRun(tokens=tokens, mtbf=16384 * 54 * 24 / 419, storage=1e12)
    found = cost(run, step, device)
    assert found.device_hours == pytest.approx(hours, rel=tolerance)
    assert found.goodput > 0.9


@cases
def test_fields_that_do_not_go_together_are_refused(fields, message):
    with pytest.raises(PerfmodelError, match=message):
        TrainingRun(**fields)


def test_a_run_that_never_ends_is_refused(step):
    run = TrainingRun(tokens=1e12, mtbf=1.0, storage=1e6)
    with pytest.raises(PerfmodelError, match="leave no progress"):
        cost(run, step, H100)


def test_the_command_prices_a_run(output):
    options = ("--gpus", "8,16", "--seq", "512", "--tokens", "20B", "--price", "2")
    out = output("train", "llama-3.2-1b", "-d", "h100", *options, "-f", "json")
    first, second = json.loads(out)["steps"]
    assert first["dollars"] == pytest.approx(2 * first["device_hours"])
    assert first["days"] > second["days"]
