"""The search of training plans: every legal plan, bounded from below, is as good as timing all."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfmodel.errors import PerfmodelError, ProblemError
from perfmodel.hardware import load, systems
from perfmodel.networks import library
from perfmodel.training.plan import Plan
from perfmodel.training.planning import Floors, kernel_seconds, legal, search
from perfmodel.training.step import predict_step, step_memory

NETWORK = library.load("llama-3-8b")
SYSTEM = systems.load("dgx-h100")
DEVICE = load(SYSTEM.device)
BASE = Plan(seq=4096, stack="te")
GIVEN = {"micro_batch": (1, 2), "chunks": (1, 2), "context": (1, 2), "zero": (0, 3)}


@pytest.fixture(scope="module")
def plans():
    return list(legal(NETWORK, BASE, 8, 16, 8, GIVEN))


@pytest.fixture(scope="module")
def steps(plans):
    found = []
    for plan in plans:
        try:
            found.append(predict_step(NETWORK, plan, DEVICE, SYSTEM))
        except PerfmodelError:
            continue
    return found


def test_every_legal_plan_can_be_laid_out(plans, steps):
    assert len(steps) == len(plans) == len(set(plans)) > 30
    assert all(p.devices == 8 and p.global_batch == 16 for p in plans)


def test_a_search_finds_what_timing_every_plan_finds(steps):
    best = sorted((s for s in steps if s.memory.fits), key=lambda s: s.seconds)[:5]
    found = search(NETWORK, BASE, 8, 16, DEVICE, SYSTEM, GIVEN)
    assert [s.plan for s in found.best] == [s.plan for s in best]
    assert found.legal == len(steps)
    assert found.timed + found.too_large + found.too_slow == found.legal
    assert found.timed < len(steps)


def test_no_step_is_faster_than_its_floors_or_smaller(steps):
    floors = Floors.of(NETWORK, BASE, DEVICE)
    for step in steps:
        kernels = kernel_seconds(NETWORK, step.plan, DEVICE)
        assert floors.seconds(step.plan) <= kernels <= step.seconds * (1 + 1e-9)
        assert floors.bytes(step.plan) <= step.memory.peak_bytes
        assert step_memory(NETWORK, step.plan, DEVICE).lines == step.memory.lines


def test_the_nearest_plan_that_does_not_fit_is_named(steps):
    found = search(NETWORK, BASE, 8, 16, DEVICE, SYSTEM, GIVEN)
    assert found.next is not None
    plan, lacking = found.next
    assert predict_step(NETWORK, plan, DEVICE, SYSTEM).memory.lacking_bytes == lacking > 0


def test_given_axes_are_kept_and_adapters_take_part():
    base = replace(BASE, lora=16)
    found = search(NETWORK, base, 2, 8, DEVICE, SYSTEM, {"tensor": (2,), "chunks": (1,)})
    assert all(step.plan.tensor == 2 and step.plan.lora == 16 for step in found.best)
    with pytest.raises(ProblemError, match="no plan of llama-3-8b"):
        search(NETWORK, BASE, 8, 16, DEVICE, SYSTEM, {"tensor": (3,)})
