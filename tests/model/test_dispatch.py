"""Host and device side by side: stretches of launches against a launch-by-launch simulation."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.graph.stretch import Stretch, joined

seconds = st.floats(0.0, 10.0)
launches = st.lists(st.tuples(seconds, seconds), max_size=12)
"""Kernel and launch of each, in order."""


def simulated(queue) -> float:
    """The host makes one launch after another; a kernel starts when its launch is made and the one
    before has ended."""
    host = device = 0.0
    for kernel, launch in queue:
        host += launch
        device = max(device, host) + kernel
    return device


def stretch(queue) -> Stretch:
    return joined(Stretch.of(kernel, launch) for kernel, launch in queue)


@given(launches)
def test_a_stretch_ends_when_the_last_of_its_launches_does(queue):
    assert stretch(queue).seconds == pytest.approx(simulated(queue), rel=1e-12)


@given(launches, st.integers(0, 6))
def test_a_repeated_stretch_is_as_many_after_each_other(queue, times):
    assert stretch(queue).times(times).seconds == pytest.approx(simulated(queue * times), rel=1e-12)


@given(launches, launches, launches, st.integers(1, 4))
def test_stretches_join_in_any_grouping(one, other, last, times):
    whole = stretch(one).then(stretch(other).times(times)).then(stretch(last))
    grouped = stretch(one).then(stretch(other).times(times).then(stretch(last)))
    found = simulated([*one, *other * times, *last])
    assert whole.seconds == pytest.approx(found, rel=1e-12)
    assert grouped.seconds == pytest.approx(found, rel=1e-12)


@given(launches)
def test_a_stretch_lies_between_the_longer_of_both_and_their_sum(queue):
    found = stretch(queue)
    device, host = (sum(each[i] for each in queue) for i in range(2))
    assert max(device, host) <= found.seconds * (1 + 1e-12)
    assert found.seconds <= (device + host) * (1 + 1e-12)


@given(launches, st.integers(2, 50))
def test_many_equal_stretches_add_the_longer_of_device_and_host(queue, times):
    found = stretch(queue)
    more = found.times(times).seconds - found.seconds
    assert more == pytest.approx((times - 1) * found.steady_seconds, rel=1e-9, abs=1e-12)


def test_queued_ahead_the_host_hides_and_in_front_it_does_not():
    # A long kernel first: the host is ahead from then on. At the end: every launch is waited for.
    long, short = (8.0, 1.0), (0.25, 1.0)
    assert stretch([long, *4 * [short]]).seconds == 1.0 + 8.0 + 4 * 0.25
    assert stretch([*4 * [short], long]).seconds == 5.0 + 8.0
