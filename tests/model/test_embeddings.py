"""Embedding tables: popularity, caches, look-ups on CPUs and GPUs, where tables lie."""

from __future__ import annotations

import json
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.embeddings import dlrm
from perfmodel.embeddings.bag import (
    Bags,
    bag_time,
    cache_hit,
    equal_tables,
    fetched_bytes,
    line_of,
    random_rate,
    terms,
)
from perfmodel.embeddings.placement import (
    break_even_hit,
    cached,
    in_memory,
    link_seconds,
    sharded,
)
from perfmodel.embeddings.popularity import mixed, zipf
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, systems
from perfmodel.offload.links import host_bytes_per_s

XEON, A100, H100, T4 = (load(x) for x in ("xeon-gold-6242", "a100-sxm4-80gb", "h100-sxm", "t4"))
ROWS = st.integers(1, 300_000)
EXPONENTS = st.floats(0.0, 2.0)


def bags(batch=2048, rows=1_000_000, lookups=214, exponent=1.05, **more):
    return Bags(batch, equal_tables(26, rows, lookups), 128, exponent=exponent, **more)


# -- popularity ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("exponent", "hit"), [(1.0, 0.68004), (1.2, 0.9096), (0.8, 0.36241)])
def test_pinned_rows_answer_a_ratio_of_harmonic_numbers(exponent, hit):
    """H(10⁴, a)/H(10⁶, a)."""
    assert zipf(10**6, exponent).static_hit(10**4) == pytest.approx(hit, rel=1e-4)


@given(st.integers(4_097, 500_000), EXPONENTS, st.floats(0.0, 1.0))
def test_grouped_ranks_are_as_good_as_every_rank(rows, exponent, share):
    weights = np.arange(1, rows + 1, dtype=np.float64) ** -exponent
    exact = weights[: int(share * rows)].sum() / weights.sum()
    assert zipf(rows, exponent).static_hit(int(share * rows)) == pytest.approx(exact, abs=2e-5)


@given(ROWS, EXPONENTS, st.floats(0.0, 1.0), st.floats(0.0, 1.0))
def test_a_larger_cache_hits_no_less_and_pinning_beats_lru(rows, exponent, one, other):
    found = zipf(rows, exponent)
    few, many = sorted((one * rows, other * rows))
    for hit in (found.static_hit, found.lru_hit):
        assert 0.0 <= hit(few) <= hit(many) + 1e-9 <= 1.0 + 2e-9
        assert hit(rows) == pytest.approx(1.0)
        assert hit(0) == 0.0
    assert found.lru_hit(few) <= found.static_hit(few) + 1e-9


@given(ROWS, st.floats(0.01, 0.99))
def test_rows_that_are_all_alike_hit_by_their_share(rows, share):
    found = zipf(rows, 0.0)
    assert found.static_hit(share * rows) == pytest.approx(share, rel=1e-6)
    assert found.lru_hit(share * rows) == pytest.approx(share, rel=1e-6)


def simulated(popularity, cached_rows, draws, seed=5):
    """A cache that drops what was asked for longest ago."""
    random = np.random.default_rng(seed)
    rates = np.repeat(popularity.rates, popularity.counts.astype(int))
    held: OrderedDict[int, None] = OrderedDict()
    hits = 0
    for i, row in enumerate(random.choice(len(rates), size=draws, p=rates).tolist()):
        if row in held:
            held.move_to_end(row)
            hits += i >= draws // 2
            continue
        held[row] = None
        if len(held) > cached_rows:
            held.popitem(last=False)
    return hits / (draws - draws // 2)


@pytest.mark.parametrize(
    ("exponent", "share"), [(0.6, 0.05), (0.9, 0.01), (1.05, 0.1), (1.3, 0.02), (0.0, 0.2)]
)
def test_ches_approximation_is_as_a_simulated_lru(exponent, share):
    found = zipf(5_000, exponent)
    cached_rows = round(share * 5_000)
    assert found.lru_hit(cached_rows) == pytest.approx(
        simulated(found, cached_rows, 60_000), abs=0.01
    )


def test_tables_that_share_a_cache_are_one_popularity():
    """Two tables, the second with three of four look-ups: an LRU of both, simulated."""
    both = mixed([(zipf(2_000, 1.0), 1.0, 1), (zipf(1_000, 0.7), 3.0, 1)])
    assert both.rows == 3_000
    assert np.sum(both.rates * both.counts) == pytest.approx(1.0)
    assert both.lru_hit(150) == pytest.approx(simulated(both, 150, 60_000), abs=0.01)
    assert both.static_hit(150) > both.lru_hit(150)


# -- look-ups ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("numbers", "line", "fetched"), [(64, 32, 128), (64, 64, 128), (20, 32, 64), (20, 64, 64)]
)
def test_rows_move_in_whole_lines(numbers, line, fetched):
    """Rows of 16-bit numbers, by 32-byte sectors of a GPU and 64-byte lines of a CPU."""
    assert fetched_bytes(2 * numbers, line) == fetched
    assert (line_of(A100), line_of(XEON)) == (32, 64)


@given(
    st.integers(1, 1 << 16), st.integers(1, 1 << 16), st.floats(1, 300), EXPONENTS,
    st.sampled_from([XEON, A100, T4]),
)  # fmt: skip
def test_more_samples_never_take_less_and_no_bytes_move_faster_than_memory(
    one, other, lookups, exponent, device
):
    few, many = (
        bag_time(bags(batch, 100_000, lookups, exponent), device) for batch in sorted((one, other))
    )
    assert few.seconds <= many.seconds * (1 + 1e-12)
    for found in (few, many):
        assert found.low_seconds <= found.seconds <= found.high_seconds
    asked = bags(max(one, other), 100_000, lookups, exponent)
    missed = (1 - cache_hit(asked, device)) * asked.lookups * asked.row_bytes
    assert many.low_seconds >= missed / device.hbm_bytes_per_s


@given(EXPONENTS, EXPONENTS)
def test_rows_that_are_more_unequal_hit_more_and_take_no_longer(one, other):
    even, uneven = (bags(exponent=a) for a in sorted((one, other)))
    assert cache_hit(even, A100) <= cache_hit(uneven, A100) + 1e-9
    assert bag_time(uneven, A100).seconds <= bag_time(even, A100).seconds * (1 + 1e-9)


def test_memory_limits_look_ups_and_few_of_them_wait_for_it():
    """Little's law: A100 holds 108 x 64 rows on their way, a batch of one has 26."""
    one = bags(1, lookups=26)
    assert bag_time(bags(65536), A100).limiter == "memory"
    assert bag_time(one, A100).limiter == "latency"
    assert terms(one, A100)["latency"] == pytest.approx(404e-9, rel=0.02)
    assert bags().operations / (bags().lookups * bags().row_bytes) == 1 / 4


def test_small_rows_reach_less_of_memory():
    rates = [
        random_rate(Bags(1, equal_tables(1, 1000, 1), dim, "fp16"), A100) for dim in (16, 64, 256)
    ]
    assert rates == sorted(rates)
    assert rates[-1] < A100.hbm_bytes_per_s


# -- placements ----------------------------------------------------------------------------------


@given(st.floats(0, 1), st.floats(0, 1), st.booleans())
def test_a_higher_hit_rate_never_slows(one, other, pinned):
    asked = bags(exponent=0.9)
    few, many = (
        cached(asked, A100, XEON, share * 26e6, pinned=pinned) for share in sorted((one, other))
    )
    assert few.settings["hit"] <= many.settings["hit"] + 1e-9
    assert many.seconds <= few.seconds * (1 + 1e-9)


def test_everything_cached_is_everything_in_memory():
    asked = bags()
    assert cached(asked, A100, XEON, 26e6).seconds == pytest.approx(in_memory(asked, A100).seconds)


@pytest.mark.parametrize("device", [T4, A100, H100])
def test_a_cache_pays_from_the_derived_hit_rate(device):
    """Brute force over hit rates: below it the CPU by itself is faster, above it is not."""
    asked = bags(65536, exponent=0.9)
    at = break_even_hit(asked, device, XEON)
    alone = in_memory(asked, XEON).seconds
    assert 0.0 < at < 1.0
    assert link_seconds(asked, device, XEON, 1 - at) == pytest.approx(alone)
    assert link_seconds(asked, device, XEON, 1 - at + 0.01) > alone
    assert link_seconds(asked, device, XEON, 1 - at - 0.01) < alone


def test_without_a_cache_of_the_cpu_it_is_one_less_the_ratio_of_rates():
    """Rows all alike and many, and many of them a sum: 1 − v/BW, with BW what the CPU's memory
    delivers at random."""
    asked = bags(65536, rows=40_000_000, lookups=26_000, exponent=0.0)
    expected = 1 - host_bytes_per_s(T4) / random_rate(asked, XEON)
    assert break_even_hit(asked, T4, XEON) == pytest.approx(expected, abs=0.003)


def test_a_cpu_wins_where_a_gpus_cache_misses():
    """DLRM-DCNv2 has 104.5 GB of tables: no single GPU here holds them. A Gold 6242 does; behind a
    T4's link it wins against a cache of one part in a thousand, and loses to one of a tenth."""
    asked = dlrm.load("dlrm-dcnv2").bags(2048, 0.6)
    assert asked.table_bytes == pytest.approx(104.5e9, rel=0.01)
    assert not in_memory(asked, A100).memory.fits
    assert in_memory(asked, XEON).memory.fits
    cpu = in_memory(asked, XEON).seconds
    small = cached(asked, T4, XEON, 0.001 * T4.memory_bytes / asked.row_bytes)
    assert small.limiter == "link"
    assert small.seconds > cpu
    assert cached(asked, H100, XEON, 0.9 * H100.memory_bytes / asked.row_bytes).seconds < cpu


def test_shards_look_up_a_share_and_exchange_sums():
    asked = dlrm.load("dlrm-dcnv2").bags(65536, 1.05)
    (system,) = [one for one in systems.made_of(A100.slug) if one.slug == "dgx-a100"]
    two, eight = (sharded(asked, A100, system, n) for n in (2, 8))
    assert eight.seconds < in_memory(asked, A100).seconds < two.seconds  # half of the sums cross
    assert two.memory.fits
    assert eight.low_seconds < eight.seconds < eight.high_seconds
    with pytest.raises(ProblemError, match="give 2 or more"):
        sharded(asked, A100, system, 1)


def test_dlrm_has_its_published_shape():
    """MLPerf: 26 tables of 204,184,588 rows, 214 look-ups a sample, rows of 128."""
    found = dlrm.load("dlrm-dcnv2")
    assert len(found.rows) == len(found.lookups) == 26
    assert sum(found.rows) == 204_184_588
    assert sum(found.lookups) == 214
    assert found.dim == 128
    assert found.dense_seconds(65536, A100) > found.dense_seconds(2048, A100)
    assert found.dense_seconds(2048, XEON) > 10 * found.dense_seconds(2048, A100)
    with pytest.raises(UnknownName, match="did you mean dlrm-dcnv2"):
        dlrm.load("dlrm-dcn")


# -- the command ---------------------------------------------------------------------------------


def test_the_command_has_a_line_a_placement(cli):
    code, out, err = cli(
        "embedding", "--model", "dlrm-dcnv2", "-d", "xeon-gold-6242", "-d", "a100-sxm4-80gb",
        "--host", "xeon-gold-6242", "--cache", "0.1", "--shards", "2,8", "-f", "json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    rows = json.loads(out)["placements"]
    kinds = [(row["placement"], row["devices"]) for row in rows]
    assert kinds == [("memory", 1), ("memory", 1), ("cached", 1), ("sharded", 2), ("sharded", 8)]
    assert 0 < rows[2]["break_even_hit"] < rows[2]["hit"] < 1
    assert all(row["low_us"] <= row["time_us"] <= row["high_us"] for row in rows)
    assert rows[0]["samples_per_s"] == pytest.approx(
        2048e6 / (rows[0]["time_us"] + rows[0]["dense_us"])
    )


def test_an_lru_cache_hits_less_than_a_pinned_one(cli):
    hits = []
    for more in ([], ["--lru"]):
        _, out, _ = cli(
            "embedding", "-d", "t4", "--host", "xeon-gold-6242", "--cache", "0.01", "-f", "json",
            *more,
        )  # fmt: skip
        hits.append(json.loads(out)["placements"][1]["hit"])
    assert hits[1] < hits[0]
