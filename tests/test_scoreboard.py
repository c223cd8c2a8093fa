"""The scoreboard: a page of figures about a table of runs, held-out fits beside fitted ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfmodel.errors import TableError
from perfmodel.evidence.records.records import tidy
from perfmodel.fitting import fit
from perfmodel.fitting.heldout import folds
from perfmodel.validation import pages, scoreboard, scores
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
def page(runs):
    """The page of runs by two frameworks on three devices."""
    more = [runs.assign(device="v100-sxm2"), runs.assign(implementation="vllm-0.24:mm")]
    return scoreboard.page(pd.concat([runs, *more], ignore_index=True))


def test_the_page_has_every_section(page):
    whole, first = page
    assert "36 measured runs on 3 devices" in whole
    for heading in ("What it has not seen", "Ranges", "When first met", "In sample, by operator",
                    "In sample, by operator and device", "Masked", "What each term is worth",
                    "What each constant is worth", "What measured rates are worth",
                    "Without each framework", "Without each architecture",
                    "The twenty worst rows", "Constants"):  # fmt: skip
        assert f"## {heading}\n" in whole
    assert "| softmax | t4 | 6 |" in whole
    assert "Without each source" not in whole, "there is one"
    assert first in whole


def test_held_out_errors_stand_before_the_fitted_ones(page):
    head, _, *rows = page[1].splitlines()
    columns = [name.strip() for name in head.split("|")[1:-1]]
    assert columns[:2] == ["line", "runs"]
    assert columns[-1] == "in sample"
    assert {"without its framework", "without its device"} < set(columns[2:-1])
    found = {row.split("|")[1].strip(): row.split("|")[-2].strip() for row in rows}
    assert found["gemm 16-bit"].startswith("0.")
    assert set(found) == {"gemm 16-bit", "norms, softmax"}


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("attention", "bf16", "fp8", "fwd", "decode"), "decode fp8 cache"),
        (("attention", "fp16", "fp16", "fwd", "prefill"), "prefill 16-bit"),
        (("attention", "fp8", "fp8", "fwd", "prefill"), "prefill fp8"),
        (("attention", "bf16", "bf16", "fwdbwd", "prefill"), "prefill backward"),
        (("gemm", "bf16", "", "fwd", ""), "gemm 16-bit"),
        (("gemm", "nvfp4", "", "fwd", ""), "gemm nvfp4"),
        (("rmsnorm", "bf16", "", "fwd", ""), "norms, softmax"),
        (("quantise", "bf16", "", "fwd", ""), "quantise"),
    ],
)
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
    assert "without its device" not in scoreboard.page(alone, columns=("device",))[1]
