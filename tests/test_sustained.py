"""Long runs pay the energy of their clock: at the clock that energies are stated for, no more."""

import pytest
from test_timing_memory import sustained as published

from perfmodel import Matmul, load, predict
from perfmodel.hardware import specs
from perfmodel.networks.networktime import sustained
from perfmodel.timing.constants import default

GPUS = [device for device in specs() if device.kind == "gpu" and device.boost_hz]


@pytest.mark.parametrize("slug", ["a100-sxm4-80gb", "mi300x"])
def test_energies_hold_at_the_clock_they_are_stated_for(slug):
    assert sustained(default(), load(slug))["matrix_joules"] == default()["matrix_joules"]


@pytest.mark.parametrize("vendor", ["NVIDIA", "AMD"])
def test_a_higher_clock_takes_more_energy(vendor):
    found = sorted(
        (device.boost_hz, sustained(default(), device)["matrix_joules"])
        for device in GPUS
        if device.vendor == vendor
    )
    joules = [energy for _, energy in found]
    assert len(found) > 5
    assert joules == sorted(joules)
    assert joules[0] < joules[-1]


@pytest.mark.parametrize("slug", ["mi300x", "mi325x"])
def test_long_products_are_near_the_published_rate(slug):
    """AMD, hipBLASLt on random data at the board's limit; the spec states rate and source."""
    device = load(slug)
    rate = published(device)["bf16"]
    long = predict(Matmul(8192, 8192, 8192), device, constants=sustained(default(), device))
    assert long.flops_per_second == pytest.approx(rate, rel=0.15)
