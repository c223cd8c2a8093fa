"""The circumstances of a run: what each harness adds to device time, and does to the device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.analysis.sweep.plan import _constants_text
from perfmodel.entryschema import about
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing import floors, runs
from perfmodel.timing.circumstances import circumstances
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine

A100 = load("a100-sxm4-80gb")
CONSTANTS = default()
APART = ("name", "about", "pace", "sources")
PROBLEMS = {
    "gemm": Matmul(256, 256, 256),
    "bmm": Matmul(64, 64, 64, 8),
    "attention": Attention(1, 8, 8, 128, 128, 64),
    "softmax": Rowwise("softmax", 256, 256),
    "map": Rowwise("pointwise", 256, 256, "fp32", "add_scalar"),
}


@pytest.mark.parametrize("run", runs.HARNESSES.values(), ids=lambda run: run.name)
def test_every_value_of_a_harness_has_unit_meaning_and_source(run):
    assert len(run.about) > 5
    docs = {name: doc for name, doc in about(runs.Run).items() if name not in APART}
    assert all(doc.unit and len(doc.meaning) > 10 for doc in docs.values())
    assert run.calls_as is None or run.calls_as in runs.HARNESSES
    usual = runs.Run("", "")
    changed = {name for name in docs if getattr(run, name) != getattr(usual, name)}
    said = {name.partition(".")[0] for name in run.sources}
    assert changed <= said
    for name in runs.BY_OPERATOR:
        assert {f"{name}.{operator}" for operator in getattr(run, name)} <= set(run.sources)
    assert all(len(source) > 5 for source in run.sources.values())


@pytest.mark.parametrize("harness", runs.harnesses())
@pytest.mark.parametrize("name", PROBLEMS)
def test_a_harness_never_reports_less_than_the_start_of_the_call(harness, name):
    found = predict(PROBLEMS[name], A100, harness=harness)
    operator = {"map": "scalar"}.get(name, name)
    start = CONSTANTS.run(harness).start_seconds(operator)
    assert found.seconds > start > 0
    bare = predict(PROBLEMS[name], A100, harness=harness, constants=CONSTANTS.without("floor"))
    assert found.seconds >= bare.seconds + start - 1e-12


@pytest.mark.parametrize("harness", runs.harnesses())
@given(pace=st.floats(0.0, 20.0))
def test_a_slower_host_adds_its_own_time_and_no_more(harness, pace):
    problem = PROBLEMS["softmax"]
    slow = CONSTANTS.with_runs(runs.paced(CONSTANTS.runs, pace))
    bare = predict(problem, A100, harness=harness, constants=CONSTANTS.without("floor")).seconds
    run = CONSTANTS.run(harness)
    start, call = (pace * one("softmax") for one in (run.start_seconds, run.call_seconds))
    start *= floors.pace(run, "softmax", machine(A100), CONSTANTS)
    found = predict(problem, A100, harness=harness, constants=slow).seconds
    assert found == pytest.approx(max(call, start + bare), rel=1e-9)


def test_an_operator_without_a_start_of_its_own_has_that_of_those_it_stands_among():
    run = replace(CONSTANTS.run("paper"), starts={"any": 1e-6, "gemm": 2e-6, "rowwise": 3e-6})
    names = ("bmm", "gemm", "attention", "softmax", "scalar", "nobody's operator")
    found = [run.start_seconds(name) for name in names]
    assert found == [2e-6, 2e-6, 1e-6, 3e-6, 3e-6, 1e-6]
    ends = {runs.ANY}
    for name in runs.AMONG:
        seen = [name]
        while seen[-1] in runs.AMONG:
            seen.append(runs.AMONG[seen[-1]])
            assert len(seen) < 5
        ends.add(seen[-1])
    assert ends == {"any", "gemm", "rowwise"}


def test_a_harness_of_ones_own_is_data():
    base = CONSTANTS.run("kernel")
    made = replace(
        base, name="bench", starts={"any": 1e-3}, warm=1.0, rotates=("gemm",), copies=6.0
    )
    constants = CONSTANTS.with_runs({**CONSTANTS.runs, "bench": made})
    problem = PROBLEMS["softmax"]
    bare = predict(problem, A100, constants=CONSTANTS.without("floor")).seconds
    found = predict(problem, A100, harness="bench", constants=constants).seconds
    assert 1e-3 < found <= 1e-3 + bare
    assert circumstances("bench", "softmax", constants).warm == 1.0
    assert circumstances("bench", "softmax", constants).copies == 1.0
    assert circumstances("bench", "gemm", constants).copies == 6.0
    with pytest.raises(ProblemError, match="harness 'bench' is not known; it is one of kernel, "):
        predict(problem, A100, harness="bench")


def test_copies_keep_how_runs_are_timed_and_sweeps_tell_them_apart():
    slow = CONSTANTS.with_runs(runs.paced(CONSTANTS.runs, 2.0))
    for copy in (slow.without("power"), slow.with_values({"matrix_share": 0.7})):
        assert copy.runs == slow.runs
    assert slow.without("power").with_values({}).off == {"power"}
    told = {_constants_text(each) for each in (CONSTANTS, slow, CONSTANTS.without("power"))}
    assert len(told) == 3


def test_the_limit_of_power_lags_where_calls_come_one_at_a_time():
    lags = {name: circumstances(name, "gemm", CONSTANTS).lag_seconds for name in runs.harnesses()}
    assert {name for name, lag in lags.items() if lag} == {"cuda_events_eager", "wall_clock"}
    off = CONSTANTS.without("lag")
    assert circumstances("wall_clock", "gemm", off).lag_seconds == 0.0


SHIPPED = Path(runs.__file__).with_name("runs.yaml")


def test_the_file_is_what_a_fit_would_write():
    assert runs.text(runs.HARNESSES.values()) == SHIPPED.read_text(encoding="utf-8")
