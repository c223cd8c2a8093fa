"""`compare` as a pass/fail check: limits, baselines, and the formats for CI systems."""

import json
import xml.etree.ElementTree as ET

import pandas as pd
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from perfmodel.render.gates import FORMATS
from perfmodel.render.report import Report, text
from perfmodel.table.records import published, write_table
from perfmodel.validation.judging import Verdict, gate, verdicts


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    table = published()
    write_table(table[table["device"] != "h100-sxm"].groupby("source").head(3), path)
    return path


def summary(**mape):
    """A report of a group a name, each with ten rows."""
    lines = [{"op": name, "n": 10, "unpredicted": 0, "mape": m} for name, m in mape.items()]
    return pd.DataFrame(lines)


@given(st.floats(0, 2), st.floats(0, 2), st.floats(0, 1))
def test_a_line_holds_while_it_is_no_worse_than_is_allowed(now, before, worse):
    (found,) = verdicts(summary(gemm=now), None, summary(gemm=before), worse)
    assert bool(found.miss) == (now > before + worse)
    (found,) = verdicts(summary(gemm=now), before)
    assert bool(found.miss) == (now > before)


def test_a_group_that_the_baseline_lacks_is_not_worse_than_it():
    found = verdicts(summary(gemm=0.1, softmax=5.0), None, summary(gemm=0.2))
    assert [bool(item.miss) for item in found] == [False, False]


def test_a_limit_and_a_baseline_both_hold():
    found = verdicts(summary(a=0.3, b=0.1, c=0.1), 0.2, summary(a=1.0, b=0.05, c=0.2))
    assert [item.miss.split(" is ")[0] for item in found] == ["MAPE 30.0%", "MAPE 10.00%", ""]
    assert gate(summary(a=0.3), 0.2) == ["a: MAPE 30.0% is above 20.0%"]


def test_no_row_to_score_fails():
    empty = summary(a=float("nan")).assign(n=0)
    assert verdicts(empty, 0.2)[-1] == Verdict("all", "no row is left to score")


def test_a_baseline_of_itself_passes_and_a_better_one_does_not(cli, runs, tmp_path):
    rows = tmp_path / "rows.csv"
    assert cli("compare", runs, "--by", "device", "--output", rows)[0] == 0
    code, out, err = cli("compare", runs, "--by", "device", "--baseline", rows, "-f", "json")
    assert err == ""
    assert (code, json.loads(out)["gate"]["passed"]) == (0, True)
    table = pd.read_csv(rows)
    table.assign(predicted_us=table["measured_us"] * 1.001).to_csv(rows, index=False)
    code, _, err = cli("compare", runs, "--by", "device", "--baseline", rows)
    assert code == 1
    assert "which the baseline allows" in err
    assert cli("compare", runs, "--baseline", rows, "--worse", "50%")[0] == 0


@cases
def test_bad_baselines_are_one_line(cli, runs, tmp_path, arguments, said):
    words = tmp_path / "words.csv"
    some = published().head(2).assign(predicted_us="much", low_us="a", high_us="b")
    some.to_csv(words, index=False)
    refused(cli("compare", runs, *(a.format(runs=runs, words=words) for a in arguments)), said)


def test_junit_has_a_case_for_each_line(cli, runs):
    code, out, _ = cli("compare", runs, "--by", "device", "--max-error", "10%", "-f", "junit")
    (suite,) = ET.fromstring(out)
    cases = {case.get("name"): case for case in suite}
    failing = [name for name, case in cases.items() if case.find("failure") is not None]
    assert code == (1 if failing else 0)
    assert int(suite.get("tests")) == len(cases) == 3
    assert int(suite.get("failures")) == len(failing)
    assert "MAPE: " in cases["all"].find("system-out").text
    code, out, _ = cli("compare", runs, "-f", "junit")  # no gate, nothing fails
    assert (code, ET.fromstring(out)[0].get("failures")) == (0, "0")


def test_github_annotates_what_fails_and_adds_to_the_summary(cli, runs, tmp_path, monkeypatch):
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    code, out, _ = cli("compare", runs, "--by", "device", "--max-error", "1%", "-f", "github")
    errors = [line for line in out.splitlines() if line.startswith("::error file=")]
    assert code == 1
    assert len(errors) == 3
    assert "MAPE" in errors[0]
    assert "%25" in errors[0]
    assert out.splitlines()[-1].startswith("::notice ")
    assert "| device |" in (tmp_path / "summary.md").read_text()


HOSTILE = '<b>&"\x1b[31m\n::error::x%,:'


@pytest.mark.parametrize("name", FORMATS)
def test_hostile_names_stay_text(name):
    verdict = Verdict(HOSTILE, f"worse {HOSTILE}")
    columns = [text(HOSTILE, "op")]
    report = Report("report", [{"op": HOSTILE}], columns, title=HOSTILE)
    out = "".join(FORMATS[name](report, [verdict], HOSTILE))
    assert "\x1b" not in out
    if name == "junit":
        (suite,) = ET.fromstring(out)
        assert suite[0].get("name").startswith('<b>&"')
    else:
        assert all(
            line.startswith(("::error file=", "::notice file=")) for line in out.splitlines()
        )
        assert len(out.splitlines()) == 2
