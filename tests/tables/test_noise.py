"""Errors beside the noise of measurements, and measurements in a unit that they do not say."""

import json
import math

import numpy as np
import pandas as pd
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from perfmodel.validation.judging import OPERATORS, report
from perfmodel.validation.noise import (
    IN_RANGE,
    TOO_FAST,
    TOO_SLOW,
    VERDICT,
    WITHIN,
    half_widths,
    judged,
    remark,
)
from perfmodel.validation.units import wrong_units

CASE = ("device", "op", "m")


def predicted(measured, by=1.0, **columns):
    """Rows predicted `by` times as long as they were measured, within a range of 20 %."""
    table = pd.DataFrame({"measured_us": measured, **columns}).assign(
        flag="", device="h100", op="gemm"
    )
    guess = table["measured_us"] * by
    return table.assign(predicted_us=guess, low_us=guess / 1.2, high_us=guess * 1.2)


@given(st.floats(1, 1e5), st.floats(0.001, 0.2), st.integers(0, 2**32 - 1))
def test_a_sample_of_a_normal_has_its_own_noise_in_every_form(middle, sigma, seed):
    """Quantiles, deviations and repeats of one distribution name the same half-width."""
    logs = np.random.default_rng(seed).normal(math.log(middle), sigma, 20_000)
    times = np.exp(logs)
    q = {f"p{p}_us": [np.quantile(times, p / 100)] for p in (10, 20, 80, 90)}
    wanted = pytest.approx(1.2816 * sigma, rel=0.05)
    for low, high in (("p10_us", "p90_us"), ("p20_us", "p80_us")):
        table = predicted([np.median(times)], m=[1], **{low: q[low], high: q[high]})
        assert half_widths(table, OPERATORS, CASE)[0] == wanted
    repeated = predicted(times[:5000], m=np.ones(5000))
    assert half_widths(repeated, OPERATORS, CASE)[0] == pytest.approx(1.2816 * sigma, rel=0.1)
    if sigma < 0.05:  # where a deviation of times is one of their logarithms
        table = predicted([times.mean()], m=[1], std_us=[times.std()])
        assert half_widths(table, OPERATORS, CASE)[0] == pytest.approx(1.2816 * sigma, rel=0.1)


@pytest.mark.parametrize(
    ("by", "verdict"),
    [
        (1.0, WITHIN),
        (1.04, WITHIN),
        (0.96, WITHIN),
        (1.15, IN_RANGE),
        (1.3, TOO_SLOW),
        (0.7, TOO_FAST),
    ],
)
def test_verdicts(by, verdict):
    table = predicted([100.0], by, m=[1], p10_us=[95.0], p90_us=[105.0])
    assert judged(table, OPERATORS, CASE)[VERDICT].tolist() == [verdict]


@pytest.mark.parametrize("metric", ["output_tokens_per_s", "tflops_per_device", "mfu_percent"])
def test_less_of_a_rate_is_too_slow(metric):
    for by, verdict in ((0.7, TOO_SLOW), (1.3, TOO_FAST)):
        table = predicted([100.0], by, m=[1], metric=metric)
        assert judged(table, OPERATORS, CASE)[VERDICT].tolist() == [verdict]


def test_without_evidence_there_is_no_noise_and_a_verdict_by_the_range():
    found = judged(predicted([100.0, 100.0], 1.1, m=[1, 2]), OPERATORS, CASE)
    assert found["noise_ln"].isna().all()
    assert found[VERDICT].tolist() == [IN_RANGE, IN_RANGE]
    assert remark(found, OPERATORS) == ""
    assert "noise_ln" not in report(found)


def test_the_larger_noise_counts_and_unpredicted_rows_have_no_verdict():
    table = predicted(
        [100.0, 100.0, 100.0], 1.02, m=[1, 1, 2], p20_us=[97.0] * 3, p80_us=[103.0] * 3
    )
    table.loc[2, ["predicted_us", "low_us", "high_us"]] = np.nan
    found = judged(table, OPERATORS, CASE)
    assert found["noise_ln"].gt(0.04).all()
    assert found[VERDICT].tolist() == [WITHIN, WITHIN, ""]
    line = report(found).iloc[0]
    assert (line["within_noise"], line["noise_ln"]) == (1.0, pytest.approx(0.0457, abs=1e-3))
    assert "their median error of 2.0% is within noise" in remark(found, OPERATORS)


@given(st.sampled_from([1e-3, 1e3, 1e6]), st.floats(0.5, 2), st.integers(1, 12))
def test_a_wrong_unit_is_named_whatever_the_error(factor, error, rows):
    table = predicted([100.0] * rows, factor * error, source="mine", m=list(range(rows)))
    (found,) = wrong_units(table, OPERATORS)
    names = {
        1e-3: "1,000 too long, as nanoseconds",
        1e3: "1,000 too short, as milliseconds",
        1e6: "1,000,000 too short, as seconds",
    }
    assert names[factor] in found.text
    assert len(found.rows) == rows


@given(st.floats(0.02, 50))
def test_a_poor_prediction_is_no_wrong_unit(error):
    assert wrong_units(predicted([100.0] * 9, error, source="mine", m=[1] * 9), OPERATORS) == []


def test_one_slow_row_among_others_is_no_wrong_unit():
    table = predicted([100.0] * 9, source="mine", m=[1] * 9)
    table.loc[0, "predicted_us"] = 1e5
    assert wrong_units(table, OPERATORS) == []


# ---- As a user runs it ---------------------------------------------------------------------------

RUNS = """gpu;op;dtype;M;N;K;Latency (ms);p20 (ms);p80 (ms)
H100;matmul;bfloat16;4.096;4.096;4.096;0,205;0,190;0,221
H100;matmul;bfloat16;8.192;8.192;8.192;1,60;1,50;1,71
H100;matmul;bfloat16;8.192;many;8.192;1,60;1,50;1,71
"""


@pytest.fixture
def runs(cli, tmp_path):
    path = tmp_path / "runs.csv"
    path.write_text(RUNS)
    return path


def test_compare_says_how_a_table_was_read_and_what_it_is_worth(cli, runs):
    code, out, err = cli("compare", "runs.csv")
    assert (code, err) == (0, "")
    assert "in noise" in out
    assert "read Latency (ms) as measured_us, from ms" in out
    assert "not read: runs.csv:4: N is 'many', not a whole number" in out
    assert "noise: 2 of 2 rows have repeats or quantiles" in out
    document = json.loads(cli("compare", "runs.csv", "-f", "json")[1])
    assert document["unread"] == ["runs.csv:4: N is 'many', not a whole number below 2^62"]
    assert document["read"][0] == "read gpu as device"
    (line,) = document["report"]
    assert (line["n"], line["unpredicted"]) == (2, 1)
    assert 0 < line["noise_ln"] < 1


def test_compare_gives_every_row_back_in_its_place(cli, runs):
    text = RUNS.replace(";many;", ";8.192;", 1).replace("8.192;8.192;8.192", "8.192;few;8.192", 1)
    runs.write_text(text)
    assert cli("compare", "runs.csv", "--output", "rows.csv")[0] == 0
    rows = pd.read_csv("rows.csv")
    assert rows["reason"].isna().tolist() == [True, False, True]
    assert rows["reason"][1].startswith("runs.csv:3: N is 'few'")
    assert rows["verdict"].isna().tolist() == [False, True, False]
    assert rows["predicted_us"].notna().tolist() == [True, False, True]


def test_compare_names_a_factor_of_a_thousand(cli, runs):
    out = cli("compare", "runs.csv", "--unit", "us")[1]
    assert "wrong unit: runs of no named source on H100 are a factor 1,000 too short" in out
    assert "--unit" in out


def test_a_template_goes_to_standard_output(cli):
    code, out, err = cli("compare", "--template", "attention")
    assert (code, err) == (0, "")
    head, row = out.splitlines()
    assert head.startswith("device,op,implementation,harness,dtype")
    assert head.endswith(",measured_us")
    assert row.startswith("h100-sxm,attention,")


@cases
def test_bad_hints_are_one_line(cli, runs, arguments, said):
    refused(cli("compare", *arguments), said)
