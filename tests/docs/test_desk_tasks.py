"""Commands that a new user types in the first half hour, and what their output must contain.

Each test is one task. Other tests check the numbers; these check that the command is accepted and
that its output answers the question.
"""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import transcripts
from cases import cases

from perfmodel.table import records

PUBLISHED = Path(records.__file__).with_name("published.csv")


def rows(text):
    """The predictions of a JSON document."""
    return json.loads(text)["predictions"]


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "gemm"), ("whatif", "gemm"), ("graph", "decoder-layer"),
        ("map", "mlp", "--tokens", "256", "--hidden", "256", "--ffn", "512"), ("trend",),
        ("sweep", "gemm", "--best", "--per", "device"), ("roofline", "gemm", "--chart", "x.svg"),
        ("network", "gpt2", "--seq", "512"), ("train", "gpt2", "--seq", "512"),
        ("infer", "llama-3-8b"), ("compress", "llama-2-7b", "--formats", "fp16"),
        ("hold", "llama-2-7b"), ("embedding", "--rows", "1k"),
        ("offload", "llama-2-7b", "--policy", "stream"),
    ],
    ids=lambda words: " ".join(words[:2]),
)  # fmt: skip
def test_every_command_takes_a_list_of_devices(output, command):
    if command[0] == "sweep":
        pytest.importorskip("pyarrow")
    out = output(*command, "-d", "a100,h100")
    if command[0] not in ("trend", "roofline"):
        assert "a100-sxm4-80gb" in out
        assert "h100-sxm" in out


def test_narrow_types_and_their_names(cli, output):
    out = output(
        "predict", "gemm", "-d", "h100,b200", "--dtype", "fp8,bf16", "-m", "8k", "-f", "csv"
    )
    assert [row["problem_dtype"] for row in csv.DictReader(io.StringIO(out))] == ["fp8", "bf16"] * 2
    assert "w4a16" in cli("predict", "gemm", "-d", "h100", "--dtype", "int4")[2]
    assert "nvfp4 or mxfp4" in cli("predict", "gemm", "-d", "b200", "--dtype", "fp4")[2]
    assert "v100-sxm2 has no bf16 rate" in output("predict", "gemm", "-d", "v100")


def test_a_kernel_is_replayed_from_its_file(tmp_path):
    pytest.importorskip("triton")
    page = (transcripts.ROOT / "docs" / "kernels.md").read_text(encoding="utf-8")
    (block,) = (b for b in transcripts.blocks(page, "python") if b.file == "my_package/double.py")
    (tmp_path / "double.py").write_text(block.text, encoding="utf-8")
    done = [
        subprocess.run(
            [sys.executable, "-m", "perfmodel.cli", "replay", *arguments],
            capture_output=True,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "TRITON_INTERPRET": "1", "PYTHONPATH": str(transcripts.ROOT)},
            check=False,
        )
        for arguments in (("./double.py:KERNEL",), ("double.py:KERNLE",))
    ]
    assert "equal, byte for byte" in done[0].stdout, done[0].stderr
    assert done[1].returncode == 2
    assert done[1].stderr.endswith(
        "name a kernel of the file, as double.py:double; it has double\n"
    )


def test_a_gpu_of_ones_own(cli, output, tmp_path):
    output("hardware", "new", "mine.yaml", "--like", "l40s")
    assert "memory" in (tmp_path / "mine.yaml").read_text(encoding="utf-8")
    (one,) = rows(output("predict", "gemm", "-d", "./mine.yaml", "-f", "json"))
    (other,) = rows(output("predict", "gemm", "-d", "l40s", "-f", "json"))
    assert one["time_us"] == pytest.approx(other["time_us"])


def test_what_is_assumed_has_units(output):
    out = output("predict", "gemm", "-d", "mi300x,groq-lpu,xeon-8480plus", "--dtype", "fp32")
    for number in re.findall(r"not in the spec: (.*) taken", out):
        assert re.fullmatch(r"none|[\d.]+ \S*(s|B|B/s|FMA/s|/s|/clk)", number), number


@cases
def test_a_shell_completes_values(monkeypatch, capsys, typed, offered):
    from perfmodel.cli import main

    words = f"perfmodel {typed}"
    monkeypatch.setenv("_PERFMODEL_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", words)
    monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
    with pytest.raises(SystemExit):
        main([])
    lines = capsys.readouterr().out.splitlines()  # "plain,VALUE"
    assert offered in [line.partition(",")[2] for line in lines]


@pytest.mark.parametrize("quiet", [False, True])
def test_a_terminal_sees_colours_unless_told_otherwise(monkeypatch, quiet):
    from perfmodel.cli import run

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("NO_COLOR", "1" if quiet else "")
    assert run(["predict", "gemm", "-d", "h100", "-m", "16"]) == 0
    out = terminal.getvalue()
    assert ("\x1b[36mHBM3" in out) != quiet
    assert ("\x1b" in out) != quiet


def test_help_has_every_harness_and_target(output):
    from perfmodel.proof.compiled.targets import TARGETS
    from perfmodel.timing.runs import harnesses

    said = " ".join(output("predict", "gemm", "--help").split())
    assert all(name in said for name in harnesses() if name != "unknown")
    assert all(name in output("compile", "--help") for name in TARGETS)


def test_a_case_without_a_window_is_called_so(output):
    """Of cases with and without a window the sentences say which is which in words."""
    out = output(
        "predict", "attention", "-d", "h100", "--window", "0,1k", "--seq", "8k", "--causal"
    )
    assert re.findall(r"^why h100-sxm flash3 (.*?):", out, re.MULTILINE) == [
        "no window",
        "window=1024",
    ]
