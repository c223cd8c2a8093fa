"""Questions to a sweep: against the same answers by brute force."""

import numpy as np
import pyarrow as pa
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel import operators
from perfmodel.analysis.sweep import Grid, Sweep, answers, best, matching, pareto
from perfmodel.analysis.sweep.expressions import condition, quantity
from perfmodel.analysis.sweep.runner import tables
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import load

KINDS = {"device": "text", "x": "number", "y": "number", "z": "number", "causal": "truth",
         "time_us": "number", "limiter": "text"}  # fmt: skip


def table(values, groups):
    x, y, z = (np.array(column, dtype=float) for column in zip(*values, strict=True))
    names = pa.array([f"d{group}" for group in groups]).dictionary_encode()
    return pa.table({"device": names, "x": x, "y": y, "z": z, "i": np.arange(len(x))})


def beaten(a, b):
    """Whether a is no better than b anywhere, and comes later where they are equal."""
    return all(q <= p for p, q in zip(a[0], b[0], strict=True)) and (a[0] != b[0] or b[1] < a[1])


rows = st.lists(
    st.tuples(*[st.integers(0, 4)] * 3, st.integers(0, 2)), min_size=1, max_size=40
)  # fmt: skip


@given(rows, st.integers(1, 9), st.sampled_from([("x", "y"), ("x", "y", "z")]), st.booleans())
def test_a_front_is_what_nothing_beats(values, chunk, names, apart):
    made = table([row[:3] for row in values], [row[3] for row in values])
    pieces = [made.slice(i, chunk) for i in range(0, made.num_rows, chunk)]
    by = [quantity(name, KINDS) for name in names]
    found = pareto(pieces, by, ("device",) if apart else ())
    points = [(row[: len(names)], i, row[3]) for i, row in enumerate(values)]
    expected = [
        a[1]
        for a in points
        if not any(beaten(a, b) for b in points if a[1] != b[1] and (not apart or a[2] == b[2]))
    ]
    assert sorted(row["i"] for row in found.rows) == expected
    assert found.matched == found.seen == len(values)


@given(rows, st.integers(1, 9), st.booleans())
def test_the_best_is_the_least_and_the_first_of_equals(values, chunk, apart):
    made = table([row[:3] for row in values], [row[3] for row in values])
    pieces = [made.slice(i, chunk) for i in range(0, made.num_rows, chunk)]
    found = best(pieces, quantity("x + y", KINDS), ("device",) if apart else ())
    groups = {row[3] if apart else 0 for row in values}
    expected = {
        min((row[0] + row[1], i) for i, row in enumerate(values) if not apart or row[3] == group)
        for group in groups
    }
    assert {(row["x"] + row["y"], row["i"]) for row in found.rows} == expected


def test_rows_without_a_time_win_nothing():
    made = pa.table({"x": pa.array([None, 3.0, 2.0]), "y": pa.array([0.0, 1.0, None])})
    assert best([made], quantity("x", KINDS)).rows == [{"x": 2.0, "y": None}]
    fronted = pareto([made], [quantity("x", KINDS), quantity("y", KINDS)])
    assert fronted.rows == [{"x": 3.0, "y": 1.0}]
    assert best([made.slice(0, 1)], quantity("x", KINDS)).rows == []
    assert best([], quantity("x", KINDS)).rows == []


def test_a_sweep_answers_as_its_rows_do():
    sizes = {"m": 64 * np.arange(1, 30), "n": np.array([512, 4096]), "k": np.array([1024])}
    sweep = Sweep(
        Grid(operators.load("gemm"), sizes, {"dtype": ("bf16", "fp8")}),
        (load("h100-sxm"), load("a100")),
        chunk=17,
    )
    kinds = answers_kinds(sweep)
    everything = [row for part in tables(sweep) for row in part.to_pylist()]
    fast = condition("time_us < 20 and not (limiter == hbm or m < 300)", kinds)
    expected = [
        row
        for row in everything
        if row["time_us"] is not None
        and row["time_us"] < 20
        and not (row["limiter"] == "hbm" or row["m"] < 300)
    ]
    found = matching(tables(sweep), fast, limit=5)
    assert found.rows == expected[:5]
    assert (found.matched, found.seen) == (len(expected), len(everything))
    quick = best(tables(sweep), quantity("-useful_flops / time", kinds), ("device", "dtype"))
    rates = {
        (row["device"], row["dtype"]): row["useful_flops"] / row["time_us"] for row in quick.rows
    }
    for row in everything:
        if row["time_us"] is not None:
            assert row["useful_flops"] / row["time_us"] <= rates[row["device"], row["dtype"]]
    assert ("a100-sxm4-80gb", "fp8") not in rates


def answers_kinds(sweep):
    from perfmodel.analysis.sweep.chunk import column_kinds

    return column_kinds(sweep)


def test_long_answers_stay_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(answers, "MOST", 50)
    monkeypatch.setattr(answers, "_BATCH", 10)
    made = [table([(i, -i, 0)], [0]) for i in range(200)]
    by = [quantity("x", KINDS), quantity("y", KINDS)]
    with pytest.raises(ProblemError, match="more than 50 rows"):
        pareto(made, by)
    with pytest.raises(ProblemError, match="more than 50 rows"):
        matching(made)
    assert len(matching(made, limit=7).rows) == 7
    assert len(best(made, by[0]).rows) == 1


COLUMNS = {
    "x": np.array([1.0, 2.0, 3.0, np.nan]),
    "y": np.array([4.0, 0.0, 1.0, 1.0]),
    "causal": np.array([True, False, True, False]),
    "device": np.array(["h100-sxm", "b200", "a", ""], dtype=object),
    "limiter": np.array(["hbm", "l2", "hbm", ""], dtype=object),
}


@cases
def test_conditions_mean_what_they_say(text, expected):
    found = np.broadcast_to(condition(text, KINDS)(COLUMNS), (4,))
    assert found.tolist() == [bool(value) for value in expected]


@cases
def test_what_is_no_condition_is_one_line(text, words):
    with pytest.raises((ProblemError, UnknownName)) as caught:
        condition(text, KINDS)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


@given(st.text(alphabet="xy()<>=!+-*/ .10eandorntlimiter'\"\n", max_size=30))
def test_any_text_is_a_condition_or_one_error(text):
    try:
        found = condition(text, KINDS)
    except PerfmodelError as error:
        if "\n" in str(error):
            pytest.fail(f"{text!r} gives more than one line: {error}")
    else:
        assert np.broadcast_to(found(COLUMNS), (4,)).dtype == bool


def test_quantities_are_numbers():
    assert quantity("x * 2", KINDS)(COLUMNS)[:3].tolist() == [2.0, 4.0, 6.0]
    assert quantity("time", KINDS).columns == {"time_us"}
    with pytest.raises(ProblemError, match="not a number"):
        quantity("x < 2", KINDS)
    with pytest.raises(UnknownName, match="speed"):
        quantity("speed", KINDS)
