"""Overlap of computing and communication: between the larger and the sum, and exact where known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import ProblemError
from perfmodel.graph.jobs import Jobs
from perfmodel.training.overlap import Work, pace, tiled_seconds, together_seconds

seconds = st.floats(0, 10)
shares = st.floats(0, 1)
works = st.builds(Work, seconds, shares, shares)


def free(taken):
    """Work that asks for nothing but time."""
    return Work(taken, 0.0)


def kernel(taken):
    return Work(taken, 1.0)


@given(works, works)
def test_both_take_no_less_than_the_longer_and_no_more_than_one_after_the_other(a, b):
    found = together_seconds(a, b)
    assert found >= max(a.seconds, b.seconds)
    assert found <= (a.seconds + b.seconds) * (1 + 1e-12)


@given(works, works, st.floats(0, 1))
def test_more_units_or_memory_for_the_transfer_never_help(compute, transfer, more):
    for name in ("unit_share", "memory_share"):
        held = getattr(transfer, name)
        heavier = {"unit_share": transfer.unit_share, "memory_share": transfer.memory_share}
        heavier[name] = held + more * (1 - held)
        other = Work(transfer.seconds, **heavier)
        assert pace(compute, other) <= pace(compute, transfer)
        assert together_seconds(compute, other) >= together_seconds(compute, transfer)


def test_a_collective_that_lasts_slows_a_product_by_the_units_that_it_holds():
    compute, transfer = kernel(8.0), Work(10.0, unit_share=0.2)
    assert together_seconds(compute, transfer) == 10.0  # 8/(1 − 0.2) = 10: just hidden
    assert together_seconds(kernel(9.0), transfer) == pytest.approx(11.0)  # and then 1 s alone
    assert together_seconds(compute, Work(5.0, unit_share=0.2)) == pytest.approx(9.0)


def test_bytes_of_both_add_up_where_memory_binds():
    rate = 2e12
    compute = Work(1.0, unit_share=0.3, memory_share=2e12 / rate)
    transfer = Work(1.0, unit_share=0.1, memory_share=5e11 / rate)
    assert together_seconds(compute, transfer) == pytest.approx((2e12 + 5e11) / rate)
    bound = Work(1.0, unit_share=1.0, memory_share=0.5)  # by units: 0.9 left, 0.25 of memory free
    assert together_seconds(bound, transfer) == pytest.approx(1.1)


def test_arrays_are_their_numbers():
    taken = np.array([1.0, 2.0, 5.0])
    found = together_seconds(Work(taken, 1.0), Work(2.0, 0.25))
    assert found.tolist() == [together_seconds(kernel(t), Work(2.0, 0.25)) for t in taken]


@given(st.integers(1, 9), st.floats(0.1, 5), st.floats(0.1, 5))
def test_prefetching_hides_all_but_the_first_gather_or_all_but_the_last_layer(n, c, g):
    """Layers and gathers as two queues of jobs: gather i is sent after layer i − 2, or i − 1."""

    def seconds(ahead):
        layers = {i: [(n + i, -1)] for i in range(n)}
        gathers = {n + i: [(i - ahead - 1, -1)] for i in range(ahead + 1, n)}
        return max(Jobs([n, n], layers | gathers).ends([c] * n + [g] * n))

    assert seconds(1) == pytest.approx(g + n * c if c >= g else n * g + c)
    assert seconds(0) == pytest.approx(n * (c + g))


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.integers(1, 16))
def test_tiles_hide_all_but_the_last_of_them(c, t, tiles):
    found = tiled_seconds(kernel(c), free(t), tiles)
    assert found == pytest.approx(min(c, t) / tiles + max(c, t))
    assert c + t - found <= t * (tiles - 1) / tiles + 1e-9
    assert tiled_seconds(kernel(c), free(t), 2 * tiles) <= found * (1 + 1e-12)


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.floats(0, 0.9), st.integers(1, 16))
def test_tiles_are_two_queues_that_slow_each_other(c, t, units, tiles):
    """Stepped from one end to the next: a tile's transfer follows its product."""
    pieces, sends, clock = [c / tiles] * tiles, [], 0.0
    while pieces or sends:
        speed = 1 - units if pieces and sends else 1.0
        step = min([*(p / speed for p in pieces[:1]), *sends[:1]])
        clock += step
        sends[:1] = [sends[0] - step] if sends and sends[0] - step > 1e-9 else []
        if pieces:
            rest = pieces[0] - step * speed
            pieces[:1] = [rest] if rest > 1e-9 else []
            sends += [] if rest > 1e-9 else [t / tiles]
    assert tiled_seconds(kernel(c), Work(t, units), tiles) == pytest.approx(clock)


def test_bad_input_is_one_line():
    for seconds, units, memory in ((-1, 0, 0), (float("nan"), 0, 0), (1, 1.2, 0), (1, 0, -0.1)):
        with pytest.raises(ProblemError, match="give a number from 0"):
            Work(seconds, units, memory)
    with pytest.raises(ProblemError, match="0 tiles; write a whole number from 1"):
        tiled_seconds(kernel(1), free(1), 0)
