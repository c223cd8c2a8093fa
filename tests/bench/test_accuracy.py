"""Accuracy against measured runs: the gates that the model must pass, per operator and phase."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import pytest

from perfmodel.table.records import read_table
from perfmodel.validation.compare import predict_table
from perfmodel.validation.judging import report, scored

# Highest mean absolute percentage error by (operator, phase), 1.15 of what the model reaches on the
# sample: for comparison, two good libraries on one GPU differ by 4-6 % for a matmul and 10-60 % for
# attention.
GATES = {
    ("gemm", ""): 0.145,
    ("attention", "prefill"): 0.15,
    ("attention", "decode"): 0.11,
    ("softmax", ""): 0.125,
    ("layernorm", ""): 0.13,
    ("rmsnorm", ""): 0.092,
    ("pointwise", ""): 0.06,
    ("quantise", ""): 0.081,
}


@pytest.fixture(scope="module")
def core(measured: Path):
    """The development sample, predicted."""
    return predict_table(read_table([str(measured / "measured_dev2_core.csv.gz")]))


def lines(table):
    """The report by operator and phase, forward only, as {(op, phase): line}."""
    forward = table[table["direction"].isin(["fwd", ""])]
    found = report(forward, ["op", "phase"]).to_dict("records")
    phases = ("prefill", "decode")
    return {(line["op"], line["phase"] if line["phase"] in phases else ""): line for line in found}


def test_nearly_every_row_is_predicted(core):
    assert core["predicted_us"].notna().mean() >= 0.98
    # What is not says why.
    assert (core.loc[core["predicted_us"].isna(), "reason"] != "").all()
    assert (core.loc[core["predicted_us"].notna(), "reason"] == "").all()


@pytest.mark.parametrize("group", GATES, ids=lambda group: "-".join(filter(None, group)))
def test_mean_error_is_within_its_gate(core, group):
    line = lines(core)[group]
    assert line["n"] > 50
    assert line["mape"] <= GATES[group], line


def test_ranges_hold_at_least_what_they_say_of_the_measurements(core):
    # They are fitted to hold four fifths of devices and libraries that the fit has not seen, so
    # that they hold more of this sample, which it has.
    kept = scored(core)
    inside = (kept["low_us"] <= kept["measured_us"]) & (kept["measured_us"] <= kept["high_us"])
    assert 0.80 <= inside.mean() <= 0.93
    assert (kept["low_us"] <= kept["predicted_us"]).all()
    assert (kept["predicted_us"] <= kept["high_us"]).all()


def test_order_is_right_within_every_operator(core):
    for group, line in lines(core).items():
        if group in GATES:
            assert line["spearman"] > 0.97, group


def test_no_operator_leans_far_to_one_side(core):
    for group, line in lines(core).items():
        if group in GATES:
            assert 0.9 < line["bias"] < 1.1, group


@pytest.fixture(scope="module")
def published():
    """The cited figures that the package itself holds."""
    path = files("perfmodel.table").joinpath("published.csv")
    return predict_table(read_table([str(path)]))


def test_published_runs_are_predicted(published):
    assert published["predicted_us"].notna().mean() >= 0.98
    line = report(published).to_dict("records")[-1]
    assert line["n"] > 200
    assert line["mape"] <= 0.30
    assert line["median_abs_ln"] <= 0.25
    assert line["spearman"] > 0.95
    # Papers' own kernels on their own benches: harder than the families that ranges come from.
    assert 0.55 <= line["coverage"] <= 0.95


def test_published_runs_say_which_kernel_is_faster(published):
    # Wherever a paper shows two kernels on the same problem, the model picks the faster one.
    problem = ["device", "direction", "batch", "heads_q", "seq_q", "head_dim", "causal", "dtype"]
    right = total = 0
    for _, rows in published.groupby([*problem, "source"], dropna=False):
        best = rows.loc[rows["measured_us"].idxmin()]
        for _, row in rows.iterrows():
            if row["measured_us"] > 1.25 * best["measured_us"]:
                total += 1
                right += row["predicted_us"] > best["predicted_us"]
    assert total > 50
    assert right / total > 0.85
