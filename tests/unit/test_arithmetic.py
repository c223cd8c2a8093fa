"""Arithmetic operations that work on ints, arrays and symbols."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import arithmetic as ar

small = st.integers(0, 60)
positive = st.integers(1, 60)


@given(n=st.integers(0, 80), m=positive, a=st.integers(0, 200), b=st.integers(0, 200))
def test_floor_sum_is_the_sum_of_floors(n, m, a, b):
    assert ar.floor_sum(n, m, a, b) == sum((a * i + b) // m for i in range(n))


@given(st.lists(st.tuples(st.integers(0, 80), positive, small, small), min_size=1, max_size=20))
def test_floor_sum_of_arrays_is_that_of_each_element(rows):
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    assert ar.floor_sum(*columns).tolist() == [ar.floor_sum(*row) for row in rows]


def test_floor_sum_broadcasts():
    n, m = np.array([[3], [5]]), np.array([1, 2, 7])
    expected = [[ar.floor_sum(i, j, 3, 4) for j in (1, 2, 7)] for i in (3, 5)]
    assert ar.floor_sum(n, m, 3, 4).tolist() == expected


@pytest.mark.parametrize("b", [0, 17, 2**40])
def test_floor_sum_past_64_bits(b):
    # n(n − 1)/2 · a alone is 2^39 · (2^40 − 1) · 2^40 ≈ 2^119: an int64 would wrap.
    n, m, a = 2**40, 3 * 2**20, 2**40 - 1
    exact = ar.floor_sum(n, m, a, b)
    # Each floor drops less than 1, so the sum lies less than n below that of the quotients.
    quotients = Fraction(a * n * (n - 1), 2 * m) + Fraction(b * n, m)
    assert 0 <= quotients - exact < n
    arrays = ar.floor_sum(np.array([n, 4]), np.array([m, 3]), np.array([a, 5]), b)
    assert arrays.dtype == np.float64
    assert arrays[0] == pytest.approx(exact, rel=1e-15)
    assert arrays[1] == ar.floor_sum(4, 3, 5, b)


def test_floor_sum_stays_in_integers_where_they_hold():
    assert ar.floor_sum(np.array([1000]), 64, 128, 63).dtype == np.int64


@given(a=st.integers(0, 10**30), b=st.integers(1, 10**15))
def test_ceil_div_and_floor_div_bracket_the_quotient(a, b):
    up, down = ar.ceil_div(a, b), ar.floor_div(a, b)
    assert (up - 1) * b < a <= up * b
    assert down * b <= a < (down + 1) * b


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(0, 20))
def test_clamp_holds_ints_and_arrays_alike(value, low, width):
    high = low + width
    held = ar.clamp(value, low, high)
    assert low <= held <= high
    assert (held == value) == (low <= value <= high)
    assert ar.clamp(np.array([value]), low, high).tolist() == [held]


def test_symbols_simplify_where_the_declaration_says_so():
    sympy = pytest.importorskip("sympy")
    t, b = sympy.symbols("t b", positive=True, integer=True)
    assert ar.ceil_div(t * b, b) == t
    assert ar.floor_div(t * b, b) == t
    assert ar.minimum(t, t) == t
    assert ar.maximum(sympy.Integer(3), t).subs(t, 2) == 3
    assert ar.is_symbolic(1, t)
    assert not ar.is_symbolic(1, np.ones(2), 2.0)


@given(st.lists(st.integers(1, 10**9), max_size=5))
def test_product_of_ints_is_exact_and_of_arrays_does_not_wrap(values):
    exact = 1
    for value in values:
        exact *= value
    assert ar.product(values) == exact
    assert np.all(ar.product([np.array([v]) for v in values]) == pytest.approx(exact, rel=1e-12))


def test_where_chooses_elementwise():
    assert ar.where(True, 1, 2) == 1
    assert ar.where(False, 1, 2) == 2
    assert ar.where(np.array([True, False]), 1, 2).tolist() == [1, 2]
