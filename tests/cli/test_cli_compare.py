"""`perfmodel compare`, `roofline` and `demo` as a user runs them."""

import json
import re

import pandas as pd
import pytest
from cases import cases
from refusing import refused

from perfmodel.table.records import published, read_table, write_table

SIZES = ("--batch", "2", "--heads", "16", "--seq", "8k", "--dtype", "fp16")


# Of every source, device and direction some.
SOME = published().groupby(["source", "causal"]).head(2).reset_index(drop=True)


@pytest.fixture
def runs(tmp_path):
    path = tmp_path / "runs.csv"
    write_table(SOME, path)
    return path


def test_report_as_json(cli, runs):
    code, out, err = cli("compare", runs, "--by", "device,direction", "--format", "json")
    document = json.loads(out)
    assert (code, err) == (0, "")
    assert document["schema_version"] == 1
    assert document["rows"] == len(SOME)
    assert document["unpredicted"] == {}
    assert document["diagnoses"] == []
    *groups, whole = document["report"]
    assert whole["device"] == whole["direction"] == "all"
    assert whole["n"] == sum(group["n"] for group in groups) == len(SOME)
    assert 0 < whole["mape"] < 1


def test_report_as_table_csv_and_markdown(cli, runs):
    assert "MAPE" in cli("compare", runs)[1]
    assert cli("compare", runs, "-f", "csv")[1].startswith("n,unpredicted,flagged,mape,")
    assert "| --- | ---: |" in cli("compare", runs, "-f", "markdown", "--by", "op")[1]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".parquet"])
def test_output_gives_every_row_back_with_its_prediction(cli, runs, tmp_path, suffix):
    path = tmp_path / f"out{suffix}"
    code, _, err = cli("compare", runs, "--output", path)
    assert (code, err) == (0, f"wrote {path}\n")
    found = read_table(path)
    pd.testing.assert_frame_equal(found[list(SOME)], SOME)
    assert {"predicted_us", "low_us", "high_us", "limiter", "reason"} <= set(found)


def test_where_keeps_some_rows(cli, runs):
    _, out, _ = cli(
        "compare", runs, "--where", "device=H100-SXM", "--where", "causal=true", "-f", "json"
    )
    wanted = ((SOME["device"] == "h100-sxm") & SOME["causal"]).sum()
    assert json.loads(out)["rows"] == wanted


def test_the_gate_decides_the_exit_code(cli, runs):
    code, out, err = cli("compare", runs, "--max-error", "1%", "--format", "json")
    assert code == 1
    assert err.startswith("gate failed: all: MAPE ")
    gate = json.loads(out)["gate"]
    assert (gate["max_error"], gate["passed"], len(gate["misses"])) == (0.01, False, 1)
    assert cli("compare", runs, "--max-error", "10")[0] == 0


def test_rows_that_cannot_be_predicted_are_named(cli, output, tmp_path):
    path = tmp_path / "runs.csv"
    write_table(SOME.assign(device="abacus"), path)
    out = output("compare", path)
    assert f"{len(SOME)} rows not predicted: no device named 'abacus'" in out
    assert cli("compare", path, "--max-error", "20%")[0] == 1


@cases
def test_bad_input_is_one_line(cli, runs, arguments, said):
    result = cli("compare", *(item.replace("{runs}", str(runs)) for item in arguments))
    assert said in refused(result)


@pytest.mark.parametrize(
    ("suffix", "start"), [("svg", b"<?xml"), ("pdf", b"%PDF"), ("png", b"\x89PNG")]
)
def test_roofline_in_every_format(cli, tmp_path, suffix, start):
    path = tmp_path / f"roofline.{suffix}"
    code, out, err = cli("roofline", "attention", "-d", "h100-sxm", *SIZES, "-o", path)
    assert (code, out, err) == (0, "", f"wrote {path}\n")
    assert path.read_bytes().startswith(start)


def test_roofline_with_measured_runs(cli, tmp_path):
    path, runs = tmp_path / "roofline.svg", tmp_path / "runs.csv"
    write_table(published().query("seq_q == 8192"), runs)
    code, *_ = cli(
        *("roofline", "attention", "-d", "h100-sxm", "-d", "a100", *SIZES),
        *("--schedule", "standard,tiled", "--measured", runs, "-o", path),
    )
    text = path.read_text()
    assert code == 0
    for what, name, level in (
        ("predicted", "standard", "hbm"), ("predicted", "tiled", "l2"),
        ("measured", "tiled", "shared"),
    ):  # fmt: skip
        assert re.search(f"what: {what}\n.*\nname: {name}\nlevel: {level}\n", text)


@pytest.mark.parametrize("window", ["", "256"])
def test_roofline_reads_the_rows_that_compare_writes(cli, tmp_path, window):
    """A device by its driver's name, a direction left out; a window only where it is asked for."""
    table, out = tmp_path / "mine.csv", tmp_path / "rows.csv"
    table.write_text(
        "GPU,kernel,dtype,batch,nheads,seqlen,headdim,causal,window,time_ms\n"
        f"NVIDIA H100 80GB HBM3,FlashAttention-2,bf16,4,16,4096,128,True,{window},0.90\n"
    )
    assert cli("compare", table, "--output", out)[0] == 0
    data = tmp_path / "data.csv"
    chart = ("-o", tmp_path / "x.svg", "--data", data, "--measured", out)
    asked = ("--batch", "4", "--heads", "16", "--seq", "4k", "--causal")
    result = cli("roofline", "attention", "-d", "h100-sxm", *asked, *chart)
    if window == "256":
        assert "is one of these cases on these devices" in refused(result)
        assert (
            cli("roofline", "attention", "-d", "h100-sxm", *asked, "--window", "256", *chart)[0]
            == 0
        )
    else:
        assert result[0] == 0
    assert "measured" in data.read_text()


@pytest.mark.parametrize("operator", ["gemm", "softmax", "pointwise"])
def test_roofline_of_other_operators(cli, tmp_path, operator):
    path = tmp_path / "roofline.svg"
    assert cli("roofline", operator, "-d", "l40s", "-o", path)[0] == 0


def test_roofline_says_when_no_measured_run_fits(cli, runs, tmp_path):
    result = cli("roofline", "gemm", "-d", "b200", "--measured", runs, "-o", tmp_path / "x.svg")
    assert "is one of these cases on these devices" in refused(result)
    assert not (tmp_path / "x.svg").exists()


def test_demo_prints_compares_and_draws(cli, tmp_path):
    code, out, err = cli("demo", "--output-dir", tmp_path / "demo")
    assert code == 0
    for word in ("speed-up", "limiter", "65536", "b200", "flash3", "MAPE", "257 GiB*"):
        assert word in out
    charts = sorted(item.name for item in (tmp_path / "demo").iterdir())
    assert charts == ["roofline.svg", "scatter.svg", "speed-up.svg", "standard-vs-tiled.svg"]
    assert len(err.splitlines()) == 4


def test_demo_says_where_it_cannot_write(cli, tmp_path):
    (tmp_path / "file").write_text("")
    assert "cannot make the folder" in refused(cli("demo", "--output-dir", tmp_path / "file"))


def test_an_unknown_kind_of_table_is_named(cli, runs):
    assert "no choice for --kind named 'operators'; did you mean operator?" in refused(
        cli("compare", runs, "--kind", "operators")
    )


def test_rows_are_shown_on_request(cli, output, tmp_path):
    text = (
        "GPU,op,dtype,m,n,k,us\nh100-sxm,gemm,bf16,4096,4096,4096,190\n"
        "h100-sxm,gemm,bf16,64,4096,4096,x\n"
    )
    path = tmp_path / "own.csv"
    path.write_text(text)
    shown = output("compare", path, "--rows", "--by", "GPU")
    lines = shown.splitlines()
    assert lines[0].startswith("in all rows: device h100-sxm, op gemm, dtype bf16")
    assert "190 µs" in lines[3]
    assert "in range" in lines[3]
    assert "us is 'x', not a number" in shown
    document = json.loads(cli("compare", path, "--rows", "-f", "json")[1])
    assert [row["m"] for row in document["runs"]] == [4096, 64]
    assert document["report"][-1]["n"] == 1


def test_of_many_rows_those_furthest_off_are_shown(cli, tmp_path):
    write_table(published().head(52), tmp_path / "runs.csv")
    _, shown, _ = cli("compare", tmp_path / "runs.csv", "--rows")
    assert "2 rows less far off are not shown" in shown


def test_rows_that_all_miss_one_way_are_explained(cli, tmp_path):
    path = tmp_path / "own.csv"
    row = "{},gemm,bf16,{},4096,4096,{}\n"
    rows = [row.format("h100-sxm", m, 4000) for m in (1024, 2048, 4096)]
    path.write_text("device,op,dtype,m,n,k,us\n" + "".join(rows))
    _, shown, _ = cli("compare", path, "--explain")
    assert "every row of gemm on h100-sxm is too fast" in shown


def test_a_mapped_measurement_is_read_beside_a_column_of_its_name(cli, tmp_path):
    """The file's own measured_us is another column then; a bad cell costs its row."""
    head = "device,op,dtype,m,n,k,mine,measured_us"
    row = "h100-sxm,gemm,bf16,512,512,512"
    text = "\n".join([head, f"{row},900,7", f"{row},bad,7", f"{row},800,7"])
    (tmp_path / "runs.csv").write_text(text + "\n", encoding="utf-8")
    path = tmp_path / "out.csv"
    given = ("--map", "mine=measured_us", "--unit", "us", "--output", str(path))
    code, out, err = cli("compare", str(tmp_path / "runs.csv"), *given)
    assert code == 0, err
    assert "mine is 'bad', not a number" in out + err
    times = pd.read_csv(path)["measured_us"]
    assert sorted(times.dropna()) == [800, 900]
