"""Overlap of computing and communication: between the larger and the sum, and exact where known."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from perfmodel.errors import ProblemError
from perfmodel.training.overlap import (
    Queued,
    Work,
    gathered_and_reduced,
    in_turn,
    pace,
    prefetched,
    reduced_in_buckets,
    run,
    tiled,
    together_seconds,
)

seconds = st.floats(0, 10)
shares = st.floats(0, 1)
works = st.builds(Work, seconds, shares, shares)
queues = st.lists(works, min_size=1, max_size=8)


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


@given(works, works)
def test_two_entries_are_the_formula(compute, transfer):
    found = run([Queued(compute)], [Queued(transfer)])
    assert found.seconds == pytest.approx(together_seconds(compute, transfer))


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
    compute = Work.moving(1.0, hbm_bytes=2e12, hbm_bytes_per_s=rate, unit_share=0.3)
    transfer = Work.moving(1.0, hbm_bytes=5e11, hbm_bytes_per_s=rate, unit_share=0.1)
    assert (compute.memory_share, transfer.memory_share) == (1.0, 0.25)
    assert together_seconds(compute, transfer) == pytest.approx((2e12 + 5e11) / rate)
    bound = Work(1.0, unit_share=1.0, memory_share=0.5)  # by units: 0.9 left, 0.25 of memory free
    assert together_seconds(bound, transfer) == pytest.approx(1.1)


def test_arrays_are_their_numbers():
    taken = np.array([1.0, 2.0, 5.0])
    found = together_seconds(Work(taken, 1.0), Work(2.0, 0.25))
    assert found.tolist() == [together_seconds(kernel(t), Work(2.0, 0.25)) for t in taken]


@settings(max_examples=60)
@given(queues, queues, st.data())
def test_queues_take_no_less_than_the_longer_and_no_more_than_both_in_turn(layers, sends, data):
    """Whatever waits for whatever, as long as something can go on."""
    needs = sorted(data.draw(st.integers(0, len(sends))) for _ in layers)
    queue = [Queued(work, n) for work, n in zip(layers, needs, strict=True)]
    transfers = []
    for j, work in enumerate(sends):
        before = sum(n <= j for n in needs)  # layers that do not wait for this transfer
        transfers.append(Queued(work, data.draw(st.integers(0, before))))
    found = run(queue, transfers)
    compute, sent = (sum(work.seconds for work in each) for each in (layers, sends))
    assert found.compute_seconds == pytest.approx(compute)
    assert found.transfer_seconds == pytest.approx(sent)
    assert found.seconds >= max(compute, sent) * (1 - 1e-12)
    assert found.seconds <= (compute + sent) * (1 + 1e-12)
    assert found.seconds == pytest.approx(compute + found.exposed_seconds)
    assert found.waiting_seconds >= -1e-9
    assert found.exposed_seconds >= found.waiting_seconds - 1e-9
    assert found.hidden_seconds >= -1e-9


@given(st.integers(1, 9), st.floats(0.1, 5), st.floats(0.1, 5))
def test_prefetching_hides_all_but_the_first_gather_or_all_but_the_last_layer(n, c, g):
    found = prefetched([kernel(c)] * n, [free(g)] * n)
    assert found.seconds == pytest.approx(g + n * c if c >= g else n * g + c)
    exposed = g + (n - 1) * max(0, g - c)  # the first, and what a layer does not cover
    assert found.exposed_seconds == pytest.approx(exposed)
    alone = prefetched([kernel(c)] * n, [free(g)] * n, ahead=0)
    assert alone.seconds == pytest.approx(n * (c + g))


@given(queues, st.integers(0, 3))
def test_prefetching_further_is_never_slower(layers, ahead):
    gathers = [free(work.seconds / 2 + 0.1) for work in layers]
    near, far = (prefetched(layers, gathers, ahead=n).seconds for n in (ahead, ahead + 1))
    assert far <= near * (1 + 1e-12)


@given(st.integers(1, 9), st.floats(0.1, 5), st.floats(0.05, 5), st.floats(0.05, 5))
def test_backward_of_sharded_weights_shows_its_first_gather_and_last_reduction(n, c, g, r):
    found = gathered_and_reduced([kernel(c)] * n, [free(g)] * n, [free(r)] * n)
    least = max(g + n * c + r, n * (g + r))
    assert found.seconds >= least * (1 - 1e-12)
    if g + r <= c:
        assert found.seconds == pytest.approx(g + n * c + r)


def test_contention_costs_sharded_training_its_share():
    """Gathers that take four fifths of the time and hold 10 % of the units: 8 % more."""
    plain = prefetched([kernel(1.0)] * 100, [Work(0.8, 0.0)] * 100)
    shared = prefetched([kernel(1.0)] * 100, [Work(0.8, 0.1)] * 100)
    assert shared.seconds / plain.seconds == pytest.approx(1.08, abs=0.002)
    assert shared.slowed_seconds == pytest.approx(99 * 0.08)
    assert shared.waiting_seconds == pytest.approx(0.8)


@given(st.integers(1, 9), st.floats(0.1, 5), st.floats(0.1, 5))
def test_reduction_hides_all_but_the_last_bucket(n, c, r):
    buckets = [(i + 1, free(r)) for i in range(n)]
    found = reduced_in_buckets([kernel(c)] * n, buckets)
    assert found.seconds == pytest.approx(n * c + r if r <= c else c + n * r)
    one = reduced_in_buckets([kernel(c)] * n, [(n, free(n * r))])
    assert one.seconds == pytest.approx(n * (c + r))
    assert found.seconds <= one.seconds * (1 + 1e-12)


@given(queues)
def test_tensor_parallel_sums_are_all_exposed(layers):
    found = in_turn(layers, [Work(0.5, 1.0)] * len(layers))
    assert found.exposed_seconds == pytest.approx(0.5 * len(layers))
    assert found.waiting_seconds == pytest.approx(0.5 * len(layers))


@given(st.floats(0.1, 5), st.floats(0.1, 5), st.integers(1, 16))
def test_tiles_hide_all_but_the_last_of_them(c, t, tiles):
    found = tiled(kernel(c), free(t), tiles)
    assert found.seconds == pytest.approx(min(c, t) / tiles + max(c, t))
    assert found.hidden_seconds <= t * (tiles - 1) / tiles + 1e-9
    finer = tiled(kernel(c), free(t), 2 * tiles)
    assert finer.seconds <= found.seconds * (1 + 1e-12)


def test_bad_input_is_one_line():
    for seconds, units, memory in ((-1, 0, 0), (float("nan"), 0, 0), (1, 1.2, 0), (1, 0, -0.1)):
        with pytest.raises(ProblemError, match="give a number from 0"):
            Work(seconds, units, memory)
    with pytest.raises(ProblemError, match="2 gathers for 1 layers; give one a layer"):
        prefetched([kernel(1)], [free(1)] * 2)
    with pytest.raises(ProblemError, match="0 tiles; write a whole number from 1"):
        tiled(kernel(1), free(1), 0)
    with pytest.raises(ProblemError, match="needs 1 transfers, and no more than 0 can end"):
        run([Queued(kernel(1), 1)], [Queued(free(1), 1)])
    with pytest.raises(ProblemError, match="transfer 0 waits for more layers than there are"):
        run([Queued(kernel(1))], [Queued(free(1), 2)])
    with pytest.raises(ProblemError, match="needs 2 transfers, and no more than 1 can end"):
        run([Queued(kernel(1), 2)], [Queued(free(1))])
