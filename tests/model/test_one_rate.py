"""What pages and charts say of a prediction is what its table says."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

from perfmodel import Attention, Matmul, load, predict
from perfmodel.cli import run
from perfmodel.errors import TableError
from perfmodel.render.html import page, readers
from perfmodel.render.html.results import Results

H100 = load("h100-sxm")


def results_of(*predictions):
    """Predictions as a page reads them."""
    results = Results()
    readers.add({"predictions": [each.as_dict() for each in predictions]}, results, "x.json")
    return results


def told(*predictions):
    """What the page of some predictions shows."""
    return page.contents(results_of(*predictions))


def alike(*predictions):
    """What the page says of all rows of some predictions."""
    text = page.render(results_of(*predictions), title="x", command="x")
    (line,) = re.findall("In all rows: (.*?)[.]<", text)
    return line


@examples(0.6)
@given(st.integers(64, 3000), st.booleans())
def test_a_prediction_has_one_rate_and_one_intensity(tokens, causal):
    made = predict(Attention(1, 32, 8, tokens, tokens, 128, causal=causal), H100)
    (case,) = told(made).cases
    assert case["work"] == made.work == made.useful_flops
    assert made.flops_per_second == pytest.approx(made.useful_flops / made.seconds)
    for level, moved in made.bytes.items():
        # A mark's height over its place is the bandwidth that the kernel uses.
        assert made.flops_per_second / made.intensity[level] == pytest.approx(moved / made.seconds)
        assert case["arithmetic_intensity"][level] == pytest.approx(made.intensity[level])


def test_half_masked_tiles_are_no_useful_work():
    """At 512 tokens tiles of 128 x 128 execute 10 of 16, and the mask leaves 8 of 16."""
    made = predict(Attention(1, 32, 8, 512, 512, 128, causal=True), H100)
    assert made.flops["matrix"] / made.work == pytest.approx(10 / 8)


def test_the_page_says_what_was_predicted():
    prediction = predict(Attention(1, 32, 8, 512, 512, 128, causal=True), H100)
    line = alike(prediction)
    for words in ("batch 1", "heads_q 32", "heads_kv 8", "head_dim 128", "causal yes", "bf16"):
        assert words in line
    assert "blocks (fill and drain) 1" in " ".join(told(prediction).sentences)


def test_problems_that_differ_are_not_said_to_be_shared():
    line = alike(*(predict(Matmul(m, 64, 64), H100) for m in (64, 128)))
    assert "n 64, k 64" in line
    assert "m 64" not in line


@pytest.mark.parametrize("damaged", ["x", "12,5", True])
def test_a_damaged_number_is_named_by_row_and_column(damaged):
    rows = [predict(Matmul(m, 64, 64), H100).as_dict() for m in (64, 128)]
    for member, key, name in (
        (rows[1], "time_us", "time_us"),
        (rows[1]["terms_us"], "hbm", "terms_us_hbm"),
        (rows[1]["problem"], "m", "problem_m"),
    ):
        kept, member[key] = member[key], damaged
        with pytest.raises(TableError, match=rf"x.json: row 2, column {name}: "):
            readers.add({"predictions": rows}, Results(), "x.json")
        member[key] = kept


def test_a_damaged_cell_of_a_csv_ends_with_one_line(tmp_path, capsys):
    path = tmp_path / "r.csv"
    path.write_text("device,algorithm,time_us\nh100-sxm,gemm,5\nh100-sxm,gemm,5x\n")
    assert run(["report", str(path), "-o", str(tmp_path / "r.html")]) == 2
    said = capsys.readouterr().err
    assert said.startswith("perfmodel: r.csv: row 2, column time_us: '5x'")
    assert said.count("\n") == 1
