"""Laws of quantities: what is formatted parses back; a unit is never guessed."""

from __future__ import annotations

import math

import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import PerfmodelError
from perfmodel.units import DIMENSIONS, UnitError, binary, exact, parse, seconds, si

PREFIXED = [(name, symbol) for name, d in DIMENSIONS.items() if d.prefixed for symbol in d.symbols]
UNITS = [(name, symbol) for name, d in DIMENSIONS.items() for symbol in d.symbols]
numbers = st.floats(1e-9, 1e21)


@given(numbers, st.sampled_from(PREFIXED), st.integers(2, 12))
def test_parse_of_formatted_is_near(value, kind, digits):
    dimension, symbol = kind
    back = parse(si(value, symbol, digits), dimension)
    assert back == pytest.approx(value, rel=0.5001 * 10 ** (1 - digits))


@given(st.floats(0, 1e25), st.sampled_from(UNITS))
def test_parse_of_exact_is_the_identity(value, kind):
    dimension, symbol = kind
    assert parse(exact(value, symbol), dimension) == value


@given(st.floats(1, 2**50))
def test_parse_of_binary_is_near(value):
    assert parse(binary(value), "capacity") == pytest.approx(value, rel=0.005, abs=0.5)


@given(numbers, st.sampled_from("kMGTPE"))
def test_prefixes_are_decimal_powers_of_a_thousand(value, prefix):
    power = "kMGTPE".index(prefix) + 1
    text = f"{value!r} {prefix}B/s"
    assert parse(text, "bandwidth") == pytest.approx(value * 1000**power, rel=1e-12)


@given(st.floats(1e-8, 1e20), st.integers(2, 6))
def test_formatting_rounds_before_it_picks_the_prefix(value, digits):
    number = si(value, "B/s", digits).split()[0]
    assert 1 <= float(number) < 1000
    assert len(number.replace(".", "")) == max(digits, len(str(int(float(number)))))


@given(st.text(max_size=20), st.sampled_from(sorted(DIMENSIONS)))
def test_any_text_parses_or_is_one_clear_line(text, dimension):
    said, value = dimension, 0.0
    try:
        value = parse(text, dimension)
    except UnitError as error:
        said = str(error)
    assert "\n" not in said
    assert dimension in said
    assert 0 <= value < math.inf


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_dimension_accepts_its_own_example(dimension):
    assert parse(DIMENSIONS[dimension].example, dimension) > 0


@cases
def test_parse(text, dimension, value):
    assert parse(text, dimension) == value


@cases
def test_refusals_say_what_and_how(text, dimension, says):
    with pytest.raises(UnitError) as error:
        parse(text, dimension)
    assert says in str(error.value)
    assert isinstance(error.value, (PerfmodelError, ValueError))


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (si(999.9999e9, "B/s"), "1.00 TB/s"),
        (si(3.35e12, "B/s"), "3.35 TB/s"),
        (si(0, "B/s"), "0.00 B/s"),
        (si(1e22, "FLOP/s"), "10000 EFLOP/s"),
        (si(-2e9, "B/s"), "-2.00 GB/s"),
        (si(float("inf"), "B/s"), "inf B/s"),
        (seconds(1.23e-5), "12.3 µs"),
        (binary(50 * 2**20), "50.0 MiB"),
        (binary(2**20 - 1), "1.00 MiB"),
        (binary(512), "512 B"),
    ],
)
def test_shown(shown, expected):
    assert shown == expected
