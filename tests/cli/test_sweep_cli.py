"""`perfmodel sweep` as a user drives it."""

import json

from refusing import refused

GEMM = ["sweep", "gemm", "-d", "h100-sxm,b200", "-m", "512:2k:512", "-n", "4k", "-k", "4k"]


def test_a_sweep_is_written_and_asked(cli, tmp_path):
    folder = tmp_path / "sweep"
    code, out, err = cli(*GEMM, "--dtype", "bf16,fp8", "--output", folder, "--chunk", "3")
    assert (code, out) == (0, "")
    assert err.splitlines()[-1] == f"{folder}: 16 rows in 6 files"
    assert "16 of 16 points" in err
    code, out, err = cli(*GEMM, "--dtype", "bf16,fp8", "-o", folder, "--chunk", "3", "--best")
    assert code == 0
    assert "16 rows in 6 files (0 new)" in err
    assert "1 row; 16 of 16 met the condition" in out
    code, out, err = cli(
        "sweep", "ask", folder, "--best", "--per", "device,dtype", "--format", "json"
    )
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["schema_version"] == 1
    assert (found["operator"], found["matched"], found["points"]) == ("gemm", 16, 16)
    assert [(row["device"], row["dtype"], row["m"]) for row in found["rows"]] == [
        (device, dtype, 512) for device in ("h100-sxm", "b200") for dtype in ("bf16", "fp8")
    ]


def test_a_question_needs_no_folder(output):
    where = "time_us < 500 and device == b200"
    out = output(*GEMM, "--where", where, "--limit", 2, "--format", "csv")
    header, *lines = out.splitlines()
    assert header.startswith("device,case,schedule")
    assert len(lines) == 2
    assert all(line.startswith("b200,") for line in lines)


def test_a_front_is_drawn(cli, tmp_path):
    chart = tmp_path / "front.svg"
    given = [*GEMM, "--dtype", "bf16,fp8", "--pareto", "time,bytes", "--chart", chart]
    code, out, err = cli(*given, "--format", "json")
    assert code == 0
    assert f"wrote {chart}" in err
    rows = json.loads(out)["rows"]
    text = chart.read_text()
    assert "Memory traffic" in text
    assert all(f">{device}<" in text for device in {row["device"] for row in rows})


def test_bad_sweeps_are_one_line(cli, tmp_path):
    folder = tmp_path / "sweep"
    refused(cli(*GEMM), "--output", "--best")
    refused(cli(*GEMM, "--dask", "tcp://127.0.0.1:1", "--best"), "--dask", "--output")
    refused(cli(*GEMM, "-m", "64:1", "-o", folder), "empty range")
    refused(
        cli(*GEMM, "-m", "1:8k", "-n", "1:8k", "-o", folder),
        "67,108,864 cases are more than",
        "--yes",
    )
    refused(cli(*GEMM, "-o", folder, "--where", "tme_us < 1"), "time_us")
    refused(cli(*GEMM, "-o", folder, "--where", "time_us <"), "write it like")
    refused(cli(*GEMM, "-o", folder, "--best", "--pareto", "time,bytes"), "one at a time")
    refused(cli(*GEMM, "-o", folder, "--best", "--per", "devce"), "device")
    refused(cli(*GEMM, "-o", folder, "--pareto", "time"), "two quantities")
    refused(cli(*GEMM, "--best", "--chart", "x.svg"), "--pareto time,bytes")
    refused(cli(*GEMM, "--pareto", "time,-m", "--chart", "x.svg"), "'-m'")
    refused(cli(*GEMM, "--pareto", "time,bytes", "--chart", "x.doc"), ".svg")
    refused(cli(*GEMM, "-d", "h100", "-o", folder), "named twice")
    refused(cli(*GEMM, "--schedule", "flat", "-o", folder), "'flat'")
    refused(cli(*GEMM, "--format", "xml", "-o", folder), "xml")
    refused(cli("sweep", "ask", folder, "--best"), "holds no sweep")
    refused(cli("sweep", "ask", folder), "--best")
    assert not folder.exists()


def test_another_sweep_in_the_folder_is_one_line(cli, tmp_path):
    folder = tmp_path / "sweep"
    assert cli(*GEMM, "-o", folder)[0] == 0
    refused(cli(*GEMM, "--dtype", "fp8", "-o", folder), "another sweep", "grid")


def test_rows_without_a_time_are_counted(cli, tmp_path):
    given = ["attention", "-d", "h100-sxm", "--heads", "8", "--kv-heads", "1:8", "--seq", "512"]
    code, _, err = cli("sweep", *given, "-o", tmp_path / "sweep")
    assert code == 0
    assert err.splitlines()[-1].endswith("8 rows in 1 file, 4 without a time (see reason)")
    code, out, _ = cli("sweep", "ask", tmp_path / "sweep", "--where", "heads_kv == 3")
    assert "query heads are not a multiple" in out
