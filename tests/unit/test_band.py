"""Masked sums against a brute force over every row and key."""

from __future__ import annotations

from collections import Counter
from dataclasses import astuple, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel.algorithms import Band
from perfmodel.count.band import Visits, visit
from perfmodel.errors import ProblemError

lengths = st.integers(1, 70)
tiles = st.integers(1, 24)
bands = st.builds(
    lambda left, right: Band("q", "x", left, right),
    st.none() | st.integers(1, 90),
    st.none() | st.integers(0, 30),
)


def summed(
    tiles: list[list[tuple[int, int]]], seen: set[int], rows: int, most_queries: int = 0
) -> Visits:
    """The sums over the (rows, keys) of the key tiles that each query tile visits."""
    pairs = [pair for visited in tiles for pair in visited]
    return Visits(
        pairs=len(pairs),
        queries=sum(r for r, _ in pairs),
        keys=sum(c for _, c in pairs),
        area=sum(r * c for r, c in pairs),
        distinct_queries=rows,
        most_keys=max(sum(c for _, c in visited) for visited in tiles),
        distinct_keys=len(seen),
        most_queries=most_queries,
    )


def brute(band: Band, seq_q: int, seq_kv: int, br: int, bc: int) -> Visits:
    """Every tile pair, visited iff some (row, key) in it is visible."""
    i, j = np.indices((seq_q, seq_kv))
    ahead = j - i - (seq_kv - seq_q)
    seen = np.ones((seq_q, seq_kv), dtype=bool)
    if band.right is not None:
        seen &= ahead <= band.right
    if band.left is not None:
        seen &= ahead > -band.left
    extents, rows_seen, seen_keys = [], 0, set()
    queries = Counter[int]()
    for top in range(0, seq_q, br):
        row = [
            (seen[top : top + br, at : at + bc].shape, seen[top : top + br, at : at + bc].any())
            for at in range(0, seq_kv, bc)
        ]
        here = [shape for shape, any_seen in row if any_seen]
        extents.append(here)
        for k, (shape, any_seen) in enumerate(row):
            seen_keys |= set(range(k * bc, k * bc + shape[1])) if any_seen else set()
            queries[k] += shape[0] if any_seen else 0
        rows_seen += min(br, seq_q - top) if here else 0
    return summed(extents, seen_keys, rows_seen, max(queries.values()))


@examples(8)
@given(bands, lengths, lengths, tiles, tiles)
def test_visits_are_those_of_the_brute_force(band, seq_q, seq_kv, br, bc):
    found, expected = visit(band, seq_q, seq_kv, br, bc), brute(band, seq_q, seq_kv, br, bc)
    unbound = {"most_keys": 0, "most_queries": 0}
    assert replace(found, **unbound) == replace(expected, **unbound)
    # The busiest tile's extents are exact without a left edge, and a bound with one: less than one
    # tile over what it would be without the clipping at the ends.
    assert found.most_queries >= expected.most_queries
    if band.left is None:
        assert found.most_keys == expected.most_keys
        assert found.most_queries == expected.most_queries or band.right is None
    else:
        assert found.most_keys >= expected.most_keys
        if br == seq_q:
            assert found.most_keys < expected.most_keys + bc


@given(bands, st.lists(st.tuples(lengths, lengths, tiles, tiles), min_size=1, max_size=12))
def test_arrays_of_problems_are_each_of_them(band, rows):
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    together = astuple(visit(band, *columns))
    for i, row in enumerate(rows):
        alone = astuple(visit(band, *row))
        assert tuple(np.broadcast_to(a, len(rows))[i] for a in together) == alone


@given(st.lists(st.integers(1, 90), min_size=1, max_size=8), lengths, lengths, tiles, tiles)
def test_the_band_itself_may_be_an_array(lefts, seq_q, seq_kv, br, bc):
    together = visit(Band("q", "x", np.array(lefts), 0), seq_q, seq_kv, br, bc)
    alone = [visit(Band("q", "x", left, 0), seq_q, seq_kv, br, bc) for left in lefts]
    assert together.area.tolist() == [v.area for v in alone]
    assert together.pairs.tolist() == [v.pairs for v in alone]


@given(bands, lengths, lengths, tiles, tiles, st.integers(1, 4), st.integers(1, 4))
def test_a_mask_hides_and_finer_tiles_hide_more(band, seq_q, seq_kv, br, bc, fr, fc):
    coarse = visit(band, seq_q, seq_kv, br * fr, bc * fc)
    fine = visit(band, seq_q, seq_kv, br, bc)
    full = visit(None, seq_q, seq_kv, br, bc)
    assert fine.area <= coarse.area <= seq_q * seq_kv
    assert fine.pairs <= full.pairs
    assert fine.keys <= full.keys


@given(st.integers(1, 12), st.integers(1, 8), st.integers(1, 4), st.booleans())
def test_symbols_give_the_sums_of_nesting_tiles(trips, tile, ratio, tall):
    sympy = pytest.importorskip("sympy")
    t, b = sympy.symbols("t b", positive=True, integer=True)
    br, bc = (ratio * b, b) if tall else (b, ratio * b)
    length = t * ratio * b
    causal = Band("q", "x", right=0)
    symbolic = visit(causal, length, length, br, bc)
    values = {t: trips, b: tile}
    numbers = [int(sympy.S(n).subs(values)) for n in (length, length, br, bc)]
    expected = visit(causal, *numbers)
    got = [int(sympy.S(value).subs(values)) for value in astuple(symbolic)]
    assert got == list(astuple(expected))


def test_symbols_that_do_not_nest_are_refused():
    sympy = pytest.importorskip("sympy")
    n, br, bc = sympy.symbols("n br bc", positive=True, integer=True)
    with pytest.raises(ProblemError, match="divide"):
        visit(Band("q", "x", right=0), n, n, br, bc)
    with pytest.raises(ProblemError, match="nest"):
        visit(Band("q", "x", right=0), 6 * n, 6 * n, 2 * n, 3 * n)


def test_a_long_causal_problem_is_exact_for_ints_and_close_for_arrays():
    # N = 2^40 in tiles of 128 × 64: 2^33 query tiles, tile i visits 2(i + 1) key tiles.
    n = 2**40
    pairs = 2 * (2**33 * (2**33 + 1) // 2)
    exact = visit(Band("q", "x", right=0), n, n, 128, 64)
    assert exact.pairs == pairs
    assert exact.area == pairs * 128 * 64
    arrays = visit(Band("q", "x", right=0), np.array([n]), np.array([n]), 128, 64)
    assert arrays.area[0] == pytest.approx(exact.area, rel=1e-12)
    windowed = visit(Band("q", "x", 4096, 0), np.array([n]), np.array([n]), 128, 64)
    exact_window = visit(Band("q", "x", 4096, 0), n, n, 128, 64)
    assert windowed.area[0] == pytest.approx(exact_window.area, rel=1e-5)
    assert np.isfinite(arrays.area[0])
    # A left edge alone: 2^33 · 2^34 pairs less those to the left would wrap in 64 bits.
    behind = visit(Band("q", "x", 4096, None), np.array([n]), np.array([n]), 128, 64)
    exact_behind = visit(Band("q", "x", 4096, None), n, n, 128, 64)
    assert behind.pairs[0] == pytest.approx(exact_behind.pairs, rel=1e-12)
