"""A pytest plugin that compares a test's run time with the prediction; inactive unless used.

    @pytest.mark.perfmodel(Matmul(4096, 4096, 4096), "h100-sxm", within=1.5)
    def test_my_product():
        torch.matmul(A, B)

The body of the test is one call. It is warmed up and timed by device events. Its median must be at
most `within` times the prediction. It must not be below both the range of the prediction and
1/`within` of it: so fast a call does not do the whole problem. Without that GPU the test is skipped
with a message.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from perfmodel.algorithms import Problem
    from perfmodel.prediction import Prediction

MARK = "perfmodel"
WITHIN = 1.5
"""Measured over predicted time that is allowed where the mark does not say."""
_HELP = (
    f"{MARK}(problem, device, within={WITHIN}, implementation=None): time the body of the test on "
    "that device and hold it against the prediction; skipped where that device is not there"
)


def pytest_configure(config: pytest.Config) -> None:
    """Make the mark known, as --strict-markers asks."""
    config.addinivalue_line("markers", _HELP)


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Time the body of a marked test in place of running it once."""
    mark = pyfuncitem.get_closest_marker(MARK)
    if mark is None:
        return None
    expected, tolerance = _expectation(*mark.args, **mark.kwargs)
    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    measured = seconds_of(lambda: pyfuncitem.obj(**arguments))
    fault = verdict(expected, measured, tolerance)
    if fault:
        pytest.fail(fault, pytrace=False)
    return True


def _expectation(
    problem: Problem,
    device: str,
    within: float = WITHIN,
    implementation: str | None = None,
) -> tuple[Prediction, float]:
    """The prediction for a mark's problem, as the events of this plugin would time it.

    Skips the test where the device is not there.
    """
    from perfmodel.hardware import load
    from perfmodel.measured.timer import HARNESS
    from perfmodel.predict import predict

    spec, slug = load(device), device_here()
    if slug != spec.slug:
        state = f"here is {slug}" if slug else "there is no GPU here"
        pytest.skip(f"perfmodel: runs on {spec.slug}, and {state}")
    harness = HARNESS["events"]
    return predict(problem, spec, implementation=implementation, harness=harness), within


def device_here() -> str:
    """The slug of this machine's GPU; empty where there is none, or no torch."""
    from importlib.util import find_spec

    if find_spec("torch") is None:
        return ""
    import torch

    if not torch.cuda.is_available():
        return ""
    from perfmodel.measured.environment import device_slug

    return device_slug(torch.cuda.get_device_properties(torch.cuda.current_device()).name)


def seconds_of(call: Callable[[], Any]) -> float:
    """The median of a call by device events, warmed up."""
    from perfmodel.measured.timer import DeviceEvents, Policy, collect

    return collect([call], DeviceEvents(), Policy()).median


def verdict(expected: Prediction, measured: float, within: float) -> str:
    """Why a measured time fails; empty where it holds."""
    from perfmodel.units import seconds

    comparison = (
        f"measured {seconds(measured)}, predicted {seconds(expected.seconds)} on "
        f"{expected.device} ({seconds(expected.low_seconds)} to {seconds(expected.high_seconds)}, "
        f"limited by {expected.levels.get(expected.limiter, expected.limiter)})"
    )
    ratio = measured / expected.seconds
    if ratio > within:
        return f"{comparison}: {ratio:.2f} times the prediction, and {within:g} times is allowed"
    if measured < min(expected.low_seconds, expected.seconds / within):
        return f"{comparison}: faster than the model's range; is the work all inside the test?"
    return ""
