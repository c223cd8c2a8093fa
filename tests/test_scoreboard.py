"""The scoreboard: a page of figures about a table of runs, held-out fits beside fitted ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfmodel.errors import TableError
from perfmodel.evidence.records.records import tidy
from perfmodel.fitting import fit
from perfmodel.fitting.heldout import left_out
from perfmodel.timing.constants import shipped
from perfmodel.validation import scoreboard
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
    found = scoreboard.scores(predict_table(runs), ["op"])
    assert list(found.index) == ["gemm", "softmax"]
    assert found["n"].tolist() == [6, 6]
    for name in ("median", "p90"):
        assert found[name].to_numpy() == pytest.approx(np.log(1.1))
    assert found["bias"].to_numpy() == pytest.approx(1 / 1.1)
    assert found["spearman"].to_numpy() == pytest.approx(1)


def test_the_page_has_every_section(runs):
    page = scoreboard.page(runs, columns=())
    assert "12 measured runs on 2 devices" in page
    for heading in ("By operator", "By operator and device", "What each term is worth",
                    "The twenty worst rows", "Constants"):  # fmt: skip
        assert f"## {heading}\n" in page
    assert "| softmax | t4 | 3 | 0.095 | 0.095 |" in page


def test_held_out_errors_stand_beside_the_fitted_ones(runs, monkeypatch):
    def doubled(table, column, start, first):
        found = predict_table(table).assign(held_out=table[column])
        return found.assign(predicted_us=2.2 * found["predicted_us"]).iloc[::-1]

    monkeypatch.setattr(scoreboard, "left_out", doubled)
    section = scoreboard.held_out(runs, "device", np.zeros((len(runs), 1)))
    times = np.log(2) / np.log(1.1)
    line = next(line for line in section.splitlines() if line.startswith("| a100-sxm4-80gb | gemm"))
    assert line.count("|") == section.splitlines()[-2].count("|")
    median, p90, bias, _coverage, fitted, more = line.split("|")[4:10]
    assert [median, p90, bias] == [" 0.693 ", " 0.693 ", " 2.000 "]
    assert [fitted, more] == [" 0.095 ", f" {times:.3f} "]


def test_plain_roofline_is_never_slower_than_the_scaled_one(runs):
    rows = scoreboard.baselines(predict_table(runs))
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


def test_a_table_of_one_device_leaves_nothing_out(runs, monkeypatch):
    alone = runs[runs["device"] == "t4"].reset_index(drop=True)
    with pytest.raises(TableError, match="more than one device"):
        left_out(alone, "device", shipped())
    monkeypatch.setattr(scoreboard, "left_out", None)
    assert "Held out" not in scoreboard.page(alone, columns=("device",))
