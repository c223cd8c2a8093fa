"""Laws of quantities: what is formatted parses back; a unit is never guessed."""

from __future__ import annotations

import math

import pytest
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


@pytest.mark.parametrize(
    ("text", "dimension", "value"),
    [
        ("3.35 TB/s", "bandwidth", 3.35e12),
        ("50 MiB", "capacity", 50 * 2**20),
        ("80 GB", "capacity", 80e9),
        ("989.4 TFLOP/s", "compute rate", 989.4e12),
        ("1248 TOP/s", "compute rate", 1248e12),
        ("7.5 PFLOP/s", "compute rate", 7.5e15),
        ("1 EFLOP/s", "compute rate", 1e18),
        ("1830 MHz", "frequency", 1.83e9),
        ("700 W", "power", 700.0),
        ("655 cycles", "cycles", 655.0),
        ("373 ns", "time", 373e-9),
        ("2.5 us", "time", 2.5e-6),
        ("2.5 µs", "time", 2.5e-6),
        ("2.5 μs", "time", 2.5e-6),
        ("128 B/clk", "bytes per clock", 128.0),
        ("16 /clk", "rate per clock", 16.0),
        ("16/clk", "rate per clock", 16.0),
        ("3.35e12 B/s", "bandwidth", 3.35e12),
    ],
)
def test_parse(text, dimension, value):
    assert parse(text, dimension) == value


@pytest.mark.parametrize(
    ("text", "dimension", "says"),
    [
        ("3.35e12", "bandwidth", 'has no unit; write it like "3.35 TB/s"'),
        ("", "bandwidth", "is not a number with a unit"),
        ("fast", "bandwidth", "is not a number with a unit"),
        ("nan TB/s", "bandwidth", "is not a number with a unit"),
        ("inf TB/s", "bandwidth", "is not a number with a unit"),
        ("-1 TB/s", "bandwidth", "is negative"),
        ("1e999 TB/s", "bandwidth", "too large"),
        ("3 TiB/s", "bandwidth", "rates are decimal"),
        ("3 tb/s", "bandwidth", "did you mean 'TB/s'?"),
        ("700 W", "bandwidth", "has the unit of a power"),
        ("50 MB/s", "capacity", "has the unit of a bandwidth"),
        ("3 KB", "capacity", "did you mean 'kB'?"),
        ("5 MHz", "time", "has the unit of a frequency"),
    ],
)
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
