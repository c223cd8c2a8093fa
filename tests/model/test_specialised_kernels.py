"""Bundled kernels with specialised warps: what their roles overlap, and what a binary lacks."""

from __future__ import annotations

import pytest

from perfmodel.algorithms import Attention, Matmul
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.proof import registry
from perfmodel.proof.compiled.compiledeffect import effect, forecast
from perfmodel.proof.compiled.targets import target_of

LONG = Attention(16, 16, 16, 8192, 8192, 128, dtype="bf16")


def best(name: str, slug: str, problem=LONG) -> float:
    """Seconds of a kernel's first config."""
    device, kernel = load(slug), registry.kernel(name)
    config = kernel.menu(problem, target_of(device).name, int(device.units))[0]
    return forecast(problem, device, kernel, config).assumed_seconds


@pytest.mark.parametrize(
    ("specialised", "slug"),
    [("attention-gluon", "h100-sxm"), ("attention-gluon-blackwell", "b200")],
)
def test_specialised_attention_is_faster_than_one_program_for_all_warps(specialised, slug):
    seconds = best(specialised, slug)
    assert seconds < 0.8 * best("attention-tiled", slug)
    library = predict(LONG, load(slug), implementation="cudnn").seconds
    assert 0.8 < library / seconds < 1.1


def test_a_binary_without_exponentials_still_pays_for_them():
    device, kernel = load("b200"), registry.kernel("attention-gluon-blackwell")
    config = kernel.menu(LONG, "sm_100", int(device.units))[0]
    (item,) = effect(LONG, device, kernel, config).kernels
    # 16 exponentials a clock and unit
    scores = 16 * 16 * 8192**2
    exponentials = scores / (16 * device.units * device.boost_hz)
    assert item.seconds > exponentials
    assert item.seconds == pytest.approx(item.assumed_seconds, rel=0.05)


def test_a_persistent_block_that_specialises_loads_ahead():
    problem, device = Matmul(8192, 8192, 8192, dtype="bf16"), load("h100-sxm")

    def seconds(name: str) -> float:
        kernel = registry.kernel(name)
        menu = kernel.menu(problem, "sm_90", int(device.units))
        config = next(c for c in menu if c.specialise and c.descriptors == "block")
        return forecast(problem, device, kernel, config).assumed_seconds

    assert seconds("matmul-persistent") < seconds("matmul")
