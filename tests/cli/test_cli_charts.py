"""The options of charts, as a user gives them: style, size, title, caption, and the data drawn."""

import csv
import json

GEMM = ("gemm", "-d", "h100-sxm", "-m", "64,4k")


def test_data_are_what_the_chart_draws(cli, tmp_path):
    code, _, err = cli("roofline", *GEMM, "-o", "x.svg", "--data", "x.csv")
    assert (code, err) == (0, "wrote x.svg\nwrote x.csv\n")
    rows = list(csv.DictReader((tmp_path / "x.csv").read_text().splitlines()))
    marks = [row for row in rows if row["what"] == "predicted"]
    assert {row["name"] for row in marks} == {"m = 64", "m = 4096"}
    text = (tmp_path / "x.svg").read_text()
    for row in marks:
        assert f"name: {row['name']}\nlevel: {row['level']}\n" in text
    cli("trend", "-o", "t.svg", "--data", "t.json")
    found = json.loads((tmp_path / "t.json").read_text())
    assert found["title"].startswith("The memory wall")
    assert any(row.get("name") == "h100-sxm" for row in found["data"])


def test_title_style_and_caption(cli, tmp_path):
    code, _, err = cli("roofline", *GEMM, "-o", "x.svg", "--style", "paper", "--title", "Mine")
    assert code == 0
    assert "caption: Roofs of h100-sxm: " in err
    text = (tmp_path / "x.svg").read_text()
    assert ">Mine<" in text
    assert 'width="237.6pt" height="180pt"' in text  # 3.3 by 2.5 inches
    cli("roofline", *GEMM, "-o", "y.svg", "--title", "", "--width", "100mm", "--transparent")
    assert 'width="283.4' in (tmp_path / "y.svg").read_text()
    cli("roofline", *GEMM, "-o", "z.svg")
    assert "gemm bf16, n 4096, k 4096" in (tmp_path / "z.svg").read_text()


def test_options_of_a_chart_need_a_chart(cli):
    assert cli("trend", "--style", "dark")[2] == (
        "perfmodel: --style is an option of charts; add --output FILE.svg, or drop it\n"
    )
    assert "add --chart FILE" in cli("whatif", *GEMM, "--data", "x.csv")[2]


def test_an_operator_s_own_width_leaves_the_longer_spelling(cli, tmp_path):
    declared = tmp_path / "mine.yaml"
    declared.write_text(
        "name: mine\nabout: A product\nparameters: {width: 512}\n"
        "axes: {m: width, n: width, k: width}\n"
        "tensors: {A: [m, k], B: [k, n], C: {axes: [m, n], element: output}}\n"
        "steps: {product: {contraction: [A, B], to: C, over: k}}\noutputs: C\n"
    )
    code, _, err = cli("roofline", declared, "-d", "h100-sxm", "-o", "x.svg", "--chart-width", "5")
    assert (code, err) == (0, "wrote x.svg\n")


def test_every_command_that_draws_takes_the_same_options(output):
    for command in ("train", "infer", "calibrate", "compare", "trend", "network predict", "map"):
        out = output(*command.split(), "--help")
        options = ("--style", "--title", "--dpi", "--transparent", "--chart-data", "--no-caption")
        assert [option for option in options if option not in out] == [], command


def test_style_of_plans_and_loads(output, tmp_path):
    step = ("train", "gpt2", "-d", "a100", "--seq", "1k", "--zero", "1,3", "--gpus", "8")
    loads = ("infer", "gpt2", "-d", "a100", "--isl", "256", "--osl", "64", "--batch", "1,8")
    for arguments in (step, loads):
        pictures = {}
        for style in ("default", "dark"):
            chart = tmp_path / f"{arguments[0]}-{style}.svg"
            numbers = tmp_path / f"{arguments[0]}-{style}.csv"
            output(*arguments, "--chart", chart, "--style", style, "--chart-data", numbers)
            pictures[style] = chart.read_text()
            assert len(numbers.read_text().splitlines()) > 2
        assert pictures["default"] != pictures["dark"]
