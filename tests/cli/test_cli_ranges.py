"""Sizes as people type them: lists, ranges, suffixes, and what is refused."""

import csv
import io
from itertools import pairwise

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms.sizes import LARGEST
from perfmodel.cli import run
from perfmodel.cli.ranges import LIMIT, parse, read
from perfmodel.errors import ProblemError
from perfmodel.operators import load
from perfmodel.operators.grid import Grid

SIZES = st.integers(1, LARGEST)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("4096", [4096]),
        ("8,16,32", [8, 16, 32]),
        (" 8 , 16 ", [8, 16]),
        ("1:4", [1, 2, 3, 4]),
        ("256:1024:256", [256, 512, 768, 1024]),
        ("256:1000:256", [256, 512, 768]),
        ("512:4k:x2", [512, 1024, 2048, 4096]),
        ("1:100:x10", [1, 10, 100]),
        ("3:3", [3]),
        ("1k,2M,1G", [1024, 2 * 1024**2, 1024**3]),
        ("1:3,8", [1, 2, 3, 8]),
        ("1099511627776", [2**40]),
    ],
)
def test_lists_and_ranges(text, values):
    found = parse(text, "--seq")
    assert found.dtype == np.int64
    assert found.tolist() == values


@cases
def test_what_is_refused_is_said_in_one_line(text, said):
    with pytest.raises(ProblemError) as caught:
        parse(text, "--seq")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.lists(SIZES, min_size=1, max_size=6))
def test_a_list_gives_back_its_numbers(values):
    assert parse(",".join(map(str, values)), "--seq").tolist() == values


@given(st.integers(1, 10**6), st.integers(0, 2000), st.integers(1, 500))
def test_a_range_is_pythons_with_both_ends(start, span, step):
    text = f"{start}:{start + span}:{step}"
    assert parse(text, "--seq").tolist() == list(range(start, start + span + 1, step))


@given(st.integers(1, 1000), st.integers(1, 10**9), st.integers(2, 10))
def test_a_factor_grows_to_the_end(start, span, factor):
    values = parse(f"{start}:{start + span}:x{factor}", "--seq").tolist()
    assert values[0] == start
    assert all(b == a * factor for a, b in pairwise(values))
    assert values[-1] <= start + span < values[-1] * factor


@given(st.text(max_size=12))
def test_any_text_is_sizes_or_one_line(text):
    try:
        values = parse(text, "--seq")
    except ProblemError as error:
        said = str(error)
    else:
        said = ""
        assert values.min() >= 1
    assert "\n" not in said


@pytest.mark.parametrize("text", ["1:10000000", f"1:{LARGEST}:1000000", "7,1:9:2,1k:64k:x2"])
def test_values_are_counted_before_they_are_made(text):
    values = read(text, "--seq")
    assert "array" not in vars(values)
    assert len(values) == len(values.array)
    first = Grid(load("gemm"), {"m": values.array}, {}).corners().sizes["m"]
    assert first[0] == values.array[0]
    # One of each kind: a single query is a decode.
    assert set(first > 1) == set(values.array > 1)
    assert len(first) == len(set(first > 1))


def test_an_option_has_no_more_values_than_the_limit_in_all_its_parts():
    text = ",".join(["1:6000000"] * 2)
    with pytest.raises(ProblemError, match=f"more than {LIMIT:,} values"):
        read(text, "--seq")


def test_a_table_of_several_kinds_has_every_column(capsys):
    """A decode has slices of keys, which the queries listed before it have not."""
    sizes = ("--seq-q", "11k,256,1", "--window", "128", "--causal")
    code = run(["predict", "attention", "-d", "gc200", *sizes, "--format", "csv"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert code == 0
    assert [row["problem_seq_q"] for row in rows] == ["11264", "256", "1"]
    assert all({"tile_rows", "tile_splits"} <= row.keys() for row in rows)
