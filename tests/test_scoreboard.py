"""The scoreboard: a page of figures about a table of runs, held-out fits beside fitted ones."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from perfmodel import scoreboard
from perfmodel.compare import predict_table
from perfmodel.evidence.records import tidy


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
    def doubled(table, column, start):
        found = predict_table(table).assign(held_out=table[column])
        return found.assign(predicted_us=2.2 * found["predicted_us"]).iloc[::-1]

    monkeypatch.setattr(scoreboard, "left_out", doubled)
    section = scoreboard.held_out(runs, "device")
    times = np.log(2) / np.log(1.1)
    line = next(line for line in section.splitlines() if line.startswith("| a100-sxm4-80gb | gemm"))
    assert line.count("|") == section.splitlines()[-2].count("|")
    median, p90, bias, _coverage, fitted, more = line.split("|")[4:10]
    assert [median, p90, bias] == [" 0.693 ", " 0.693 ", " 2.000 "]
    assert [fitted, more] == [" 0.095 ", f" {times:.3f} "]


def test_plain_roofline_is_never_slower_than_the_scaled_one(runs):
    rows = scoreboard.baselines(predict_table(runs))
    assert (rows["roofline_us"] < rows["scaled_us"]).all()
