"""The scoreboard: a page of figures about a table of runs, held-out fits beside fitted ones."""

from __future__ import annotations

import io
import re

import heldoutchart
import numpy as np
import pandas as pd
import pytest
from cases import cases
from folders import ROOT

from perfmodel.errors import TableError
from perfmodel.fitting import fit
from perfmodel.fitting.heldout import folds
from perfmodel.table.records import tidy
from perfmodel.validation import pages, scoreboard, scores, wording
from perfmodel.validation.compare import predict_table

pytest.importorskip("scipy", reason="ranks and fits need SciPy (extra [fit])")


@pytest.fixture(scope="module")
def runs() -> pd.DataFrame:
    """Runs on two devices that took 1.1 times what the model says."""
    sides = (256, 1024, 4096)
    shapes = [{"op": "gemm", "m": m, "n": m, "k": 4096, "batch": 1} for m in sides]
    shapes += [{"op": "softmax", "rows": m, "cols": 1024} for m in sides]
    common = {"source": "made", "harness": "kernel", "dtype": "fp16", "direction": "fwd"}
    devices = ("a100-sxm4-80gb", "t4")
    rows = [
        {**common, "device": d, "implementation": "torch", **s} for d in devices for s in shapes
    ]
    table = tidy(pd.DataFrame(rows).assign(measured_us=1.0, flag=""))
    found = predict_table(table)["predicted_us"]
    return table.assign(measured_us=1.1 * found)


def test_scores_say_what_was_planted(runs):
    found = scores.scores(predict_table(runs), ["op"])
    assert list(found.index) == ["gemm", "softmax"]
    assert found["n"].tolist() == [6, 6]
    for name in ("median", "p90"):
        assert found[name].to_numpy() == pytest.approx(np.log(1.1))
    assert found["bias"].to_numpy() == pytest.approx(1 / 1.1)
    assert found["spearman"].to_numpy() == pytest.approx(1)


@pytest.fixture(scope="module")
def board(runs):
    """The scoreboard of runs by two frameworks on three devices."""
    more = [runs.assign(device="v100-sxm2"), runs.assign(implementation="vllm-0.24:mm")]
    return scoreboard.scoreboard(pd.concat([runs, *more], ignore_index=True))


def test_the_page_has_every_section(board):
    assert "36 measured runs on 3 devices" in board.page
    for heading in ("What it has not seen", "Ranges", "When first met",
                    "What each constant is worth", "Tables", "How it was fitted"):  # fmt: skip
        assert f"## {heading}\n" in board.page
    assert board.first in board.page
    assert not re.search(r"\{\w+\}", board.page), "a placeholder is left"


def test_the_page_begins_with_what_to_expect(board):
    assert wording.expected(pages.table_rows(board.first)) in board.page


def test_long_tables_are_files_that_the_page_links_to(board):
    linked = re.findall(r"\(accuracy/([\w-]+\.csv)\)", board.page)
    assert sorted(linked) == sorted(board.files)
    assert "without-each-device.csv" in linked
    assert "without-each-source.csv" not in linked, "there is one"
    by_device = board.files["in-sample-by-device.csv"]
    frame = pd.read_csv(io.StringIO(scores.csv_text(by_device)))
    (row,) = frame[(frame["family"] == "softmax") & (frame["device"] == "t4")].to_dict("records")
    assert row["n"] == 6
    assert row["median"] == pytest.approx(by_device["median"]["softmax", "t4"], abs=5e-4)
    terms = board.files["terms.csv"]
    assert {"nothing median", "hbm p90"} <= set(terms.columns)
    assert "gemm 16-bit" in terms.index


LINES = [
    {"line": "a", "without its source": "0.050 / 0.20", "without its device": "0.040 / 0.30",
     "in sample": "0.030 / 0.10"},
    {"line": "b", "without its source": "", "without its device": "0.100 / 0.25",
     "in sample": "0.200 / 0.90"},
]  # fmt: skip


def test_what_to_expect_is_the_worst_of_what_was_left_out():
    assert wording.worst(LINES[0]) == (0.05, 0.3)
    assert wording.worst(LINES[1]) == (0.1, 0.25)
    assert wording.worst({"line": "c", "in sample": "0.2 / 0.9"}) == (0.2, 0.9)
    said = " ".join(wording.expected(LINES).split())
    assert "off by 5% to 10% in the median" in said
    assert said.endswith("a factor of 1.28 of the best kind, and of 1.35 of the worst, a.")


def test_the_chart_draws_the_first_table():
    chart = heldoutchart.heldout_chart(LINES[::-1])
    assert list(dict.fromkeys(row["kind"] for row in chart.rows)) == ["a", "b"], "the best first"
    assert chart.rows[0] == {"kind": "a", "what": "left out", "median": 0.05, "p90": 0.3}
    (axes,) = chart.figure.axes
    ends = [(bar.get_x(), bar.get_x() + bar.get_width()) for bar in axes.patches]
    drawn = {(round(start, 9), round(end, 9)) for start, end in ends}
    assert drawn == {
        (0, 0.05), (0.05, 0.3), (0, 0.03), (0.03, 0.1), (0, 0.1), (0.1, 0.25), (0, 0.2), (0.2, 0.9),
    }  # fmt: skip
    assert [label.get_text() for label in axes.get_yticklabels()] == ["a", "b"]
    assert "a: left out 5% (90th percentile 30%), in sample 3% (10%)" in chart.description


def test_the_shipped_page_and_its_chart_say_the_same(tmp_path):
    page = ROOT / "docs" / "accuracy.md"
    text = page.read_text(encoding="utf-8")
    rows = pages.table_rows(text)
    assert wording.expected(rows) in text
    documents = "".join(path.read_text(encoding="utf-8") for path in page.parent.glob("*.md"))
    linked = set(re.findall(r"\(accuracy/([\w-]+\.csv)\)", documents))
    assert linked == {path.name for path in (page.parent / "accuracy").iterdir()}
    assert heldoutchart.main([str(page), "--output", str(tmp_path / "drawn.svg")]) == 0
    description = re.compile("<desc.*?</desc>", re.DOTALL)
    drawn, shown = (
        description.search(path.read_text(encoding="utf-8"))
        for path in (tmp_path / "drawn.svg", page.parent / "images" / "accuracy.svg")
    )
    assert drawn is not None
    assert shown is not None
    assert drawn[0] == shown[0], "make docs draws it anew"


def test_a_page_without_the_table_is_one_line(tmp_path, capsys):
    (tmp_path / "bare.md").write_text("no table\n", encoding="utf-8")
    assert heldoutchart.main([str(tmp_path / "bare.md"), "--output", str(tmp_path / "x.svg")]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "no table on the page begins with a column 'line'" in said
    assert not (tmp_path / "x.svg").exists()


def test_held_out_errors_stand_before_the_fitted_ones(board):
    head, _, *rows = board.first.splitlines()
    columns = [name.strip() for name in head.split("|")[1:-1]]
    assert columns[:2] == ["line", "runs"]
    assert columns[-1] == "in sample"
    assert {"without its framework", "without its device"} < set(columns[2:-1])
    found = {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows}
    assert found["gemm 16-bit"].startswith("0.")
    assert set(found) == {"gemm 16-bit", "norms, softmax"}


@cases
def test_every_run_has_a_line(row, line):
    columns = ["op", "dtype", "kv_dtype", "direction", "phase"]
    assert scores.lines(pd.DataFrame([row], columns=columns)).tolist() == [line]


def test_a_block_is_written_between_its_markers_and_nowhere_else():
    begin, end = "<!-- accuracy: begin -->", "<!-- accuracy: end -->"
    text = f"before\n{begin}\nold\n{end}\nafter\n"
    found = pages.between(text, "new", "page.md")
    assert found == f"before\n{begin}\nnew\n{end}\nafter\n"
    with pytest.raises(TableError, match=r"page\.md: no <!-- accuracy: begin"):
        pages.between("bare", "new", "page.md")


def test_a_page_written_anew_keeps_the_blocks_of_other_commands():
    block = "<!-- others: begin -->\ntheirs\n<!-- others: end -->"
    assert pages.kept(f"old\n\n{block}\n", "new\n") == f"new\n\n{block}\n"
    assert pages.kept("old\n", "new\n") == "new\n"
    twice = pages.kept(f"old\n\n{block}\n", f"new\n\n{block}\n")
    assert twice == f"new\n\n{block}\n"


def test_plain_roofline_is_never_slower_than_the_scaled_one(runs):
    rows = scores.baselines(predict_table(runs))
    assert (rows["roofline_us"] < rows["scaled_us"]).all()


@pytest.mark.parametrize("module", [scoreboard, fit])
def test_a_table_that_is_not_there_is_one_line(module, tmp_path, capsys):
    assert module.main([str(tmp_path / "absent.csv"), "--output", str(tmp_path)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "absent.csv" in said
    assert not list(tmp_path.iterdir())


def test_impossible_rows_are_counted_and_left_out_of_a_fit(runs, capsys):
    wrong = runs.copy()
    wrong.loc[wrong.index[0], "m"] = -5
    assert len(fit.possible(wrong)) == len(runs) - 1
    assert "left out 1 rows that cannot be predicted (m is -5" in capsys.readouterr().out
    with pytest.raises(TableError, match="no row can be fitted"):
        fit.possible(wrong[:1])


def test_a_table_of_one_device_leaves_nothing_out(runs):
    alone = runs[runs["device"] == "t4"].reset_index(drop=True)
    with pytest.raises(TableError, match="more than one device"):
        folds(alone, "device")
