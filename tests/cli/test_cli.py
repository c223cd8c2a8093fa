"""The command line as a user drives it: results, formats, errors of one line, exit codes."""

import json
import os
import subprocess
import sys

import pytest
from cases import cases
from folders import ROOT

ATTENTION = ["predict", "attention", "--device", "h100-sxm"]


@pytest.fixture
def predictions(cli):
    """The predictions of a successful `predict ... --format json`."""

    def call(*arguments):
        code, out, err = cli("predict", *arguments, "--format", "json")
        assert (code, err) == (0, "")
        document = json.loads(out)
        assert document["schema_version"] == 1
        return document["predictions"]

    return call


def process(*arguments, **options):
    """The command line as a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NO_COLOR": "1"}
    command = [sys.executable, "-m", "perfmodel.cli", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, env=environment, check=False, **options
    )


def test_one_element_per_device_case_and_schedule_in_that_order(predictions):
    found = predictions(
        *("attention", "-d", "h100-sxm", "--gpu", "a100", "--schedule", "standard,tiled"),
        *("--seq", "512,1k", "--heads", "8", "--batch", "1:2"),
    )
    order = [(p["device"], p["problem"]["batch"], p["problem"]["seq_q"]) for p in found]
    devices = ("h100-sxm", "a100-sxm4-80gb")
    cases = [(batch, seq) for batch in (1, 2) for seq in (512, 1024)]
    assert order == [(device, *case) for device in devices for _ in range(2) for case in cases]
    assert [p["schedule"] for p in found[:8]] == ["standard"] * 4 + [found[4]["schedule"]] * 4
    assert found[4]["schedule"].startswith("tiled")


@cases
def test_every_operator(predictions, arguments):
    found = predictions(*arguments, "--device", "h100-sxm")
    assert all(one["time_us"] > 0 for one in found)


def test_table_shows_what_varies_and_says_the_rest_above(cli):
    code, out, _ = cli(*ATTENTION, "--seq", "1k,2k", "--batch", "3")
    title, header, *_ = out.splitlines()
    assert code == 0
    assert "batch=3" in title
    assert "seq" not in title
    assert "seq_q" in header.split()
    assert "batch" not in header.split()
    assert "\x1b" not in out


def test_terms_show_every_resource(cli):
    _, out, _ = cli(*ATTENTION, "--terms")
    for start in (
        "grid    tile",
        "grid    waves",
        "units   matrix",
        "units   special",
        "memory  HBM3",
        "chip    power",
        "start   launch",
    ):
        assert f"\n{start}" in out
    assert "0.00" not in out  # what is zero has no line, or a dash


@pytest.mark.parametrize(("suffix", "start"), [("json", "{"), ("csv", "device,"), ("md", "**")])
def test_the_suffix_of_the_output_decides(cli, tmp_path, suffix, start):
    path = tmp_path / f"out.{suffix}"
    code, out, err = cli(*ATTENTION, "--output", path)
    assert (code, out, err) == (0, "", f"wrote {path}\n")
    assert path.read_text().startswith(start)
    assert [item.name for item in tmp_path.iterdir()] == [path.name]


def test_an_impossible_problem_costs_its_row(cli):
    code, out, err = cli(*ATTENTION, "--heads", "8,12", "--kv-heads", "8", "-f", "csv")
    assert code == 0
    assert len(out.splitlines()) == 2
    assert "multiple" in err


def test_no_arguments_are_answered_with_help(cli):
    for arguments in ((), ("predict",), ("hardware",)):
        code, _, err = cli(*arguments)
        assert code == 2
        assert err.startswith("Usage:")


def test_version(cli):
    assert cli("--version")[1].startswith("perfmodel ")


def test_predicting_loads_nothing_heavy():
    code = (
        "import sys; from perfmodel.cli import run; "
        "code = run('predict attention -d h100-sxm --seq 512 --format json'.split()); "
        "heavy = {'torch', 'triton', 'pandas', 'matplotlib', 'sympy', 'scipy', 'rich.table', "
        "'rich.console', 'perfmodel.cli.compare', 'perfmodel.cli.roofline', "
        "'perfmodel.validation.compare', 'perfmodel.cli.hardware', 'perfmodel.cli.demo'}; "
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr); sys.exit(code)"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "[]\n"
    assert json.loads(done.stdout)["predictions"]


def test_as_a_process():
    done = process("predict", "gemm", "-d", "a100", "-f", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["predictions"][0]["device"] == "a100-sxm4-80gb"
    done = process("predict", "gemm", "-d", "a1000000")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("perfmodel: no device named 'a1000000'")
    assert done.stderr.count("\n") == 1


def test_a_reader_that_leaves_early_is_no_error():
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = f"{sys.executable} -m perfmodel.cli predict gemm -d a100 -m 1:4000 -f csv | head -1"
    done = subprocess.run(
        command, shell=True, capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout.startswith("device,")
    assert done.stderr == ""


def test_unfused_attention_pays_for_masks_and_dropout_in_bytes_and_fused_does_not(predictions):
    case = (*ATTENTION[1:], "--seq", "2k", "--heads", "64", "--schedule", "standard,tiled")
    plain, fused = predictions(*case)
    padded, fused_padded = predictions(*case, "--padding-mask")
    dropped, fused_dropped = predictions(*case, "--dropout")
    assert plain["bytes"]["hbm"] < padded["bytes"]["hbm"] < dropped["bytes"]["hbm"]
    assert fused["bytes"] == fused_padded["bytes"] == fused_dropped["bytes"]
    vector = [item["flops"]["vector"] for item in (fused, fused_padded, fused_dropped)]
    assert vector == sorted(set(vector))
    assert "dropout" not in fused["problem"]
    assert fused_dropped["problem"]["dropout"] is True


def test_a_second_prediction_of_a_shipped_device_loads_no_validator(tmp_path):
    """The first process decodes and checks what the second finds in the cache."""
    code = """import sys
from perfmodel.cli import run
assert run(["predict", "gemm", "-d", "h100", "--m", "64", "--terms"]) == 0
print(sorted({"pydantic", "yaml"} & set(sys.modules)))"""
    environment = {**os.environ, "PERFMODEL_CACHE": str(tmp_path)}
    last = [
        subprocess.check_output(
            [sys.executable, "-c", code], text=True, env=environment
        ).splitlines()[-1]
        for _ in range(2)
    ]
    assert last == ["['pydantic', 'yaml']", "[]"]
