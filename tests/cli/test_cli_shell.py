"""The command line as a stranger meets it: help pages, other spellings, lists, an interrupt."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time

import click
import pytest
from cases import cases
from refusing import refused

from perfmodel.cli import COMMANDS, app, run


def _pages():
    """The words of every command."""
    found = []

    def walk(command, context):
        for name in getattr(command, "list_commands", lambda _: ())(context):
            below = command.get_command(context, name)
            walk(below, click.Context(below, parent=context, info_name=name))
        found.append(tuple(context.command_path.split()[1:]))

    walk(app, click.Context(app, info_name="perfmodel"))
    return found


def test_help_pages_fit_80_columns_cut_no_summary_and_show_two_examples(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    pages = _pages()
    assert len(pages) > 100
    for words in pages:
        assert run([*words, "--help"]) == 0
        page = capsys.readouterr().out
        assert [line for line in page.splitlines() if len(line) > 80] == [], words
        commands = page.partition("Commands:")[2]
        assert not re.search(r"\w\.\.\.$", commands, re.MULTILINE), words
        if commands or words[:1] in ((), ("show",)):  # one page shows the examples of all below it
            continue
        assert len(re.findall(r"^ +(make |perfmodel )", page, re.MULTILINE)) >= 2, words
        if words[0] in ("predict", "whatif", "sweep", "roofline"):  # options of operators
            accepted = re.sub(r"\.\.\.\s+\(|=SIZE,\.\.\.", "", page.split("Options:")[-1])
            assert "..." not in accepted, words
            assert not re.search(r"\{|<(str|int|float)", page), words


def test_folded_examples_are_the_commands_that_they_were(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run(["infer", "--help"]) == 0
    page = re.sub(r" \\\n +", " ", capsys.readouterr().out)
    assert (
        "perfmodel infer qwen3-32b -d h100-sxm --tensor 2 --engine vllm --concurrency 1:256:x2"
    ) in page


def test_commands_and_options_stand_in_groups(cli):
    page = cli("--help")[1]
    for heading in ("Predict:", "Plan:", "Compare with runs:", "Hardware:"):
        assert f"\n{heading}\n" in page
    assert all(re.search(rf"^  {name} ", page, re.MULTILINE) for name in COMMANDS)
    page = cli("infer", "--help")[1]
    places = [page.index(f"\n{name}:\n") for name in ("Load", "Plan", "Formats", "Output")]
    assert places == sorted(places)
    assert re.search(r"^  predict ", cli("network", "--help")[1], re.MULTILINE)


def test_one_spelling_of_parallelism_and_a_short_one(cli):
    case = ("infer", "llama-3-8b", "-d", "h100", "-f", "json")
    assert cli(*case, "--tensor", "2", "--data", "2") == cli(*case, "--tp", "2", "--dp", "2")
    case = ("train", "llama-3-8b", "-d", "h100", "--gpus", "8", "-f", "json")
    assert cli(*case, "--tensor", "2", "--context", "2") == cli(*case, "--tp", "2", "--cp", "2")


def test_formats_of_weights_have_the_same_names_everywhere(cli):
    infer = ("infer", "llama-3-8b", "-d", "h100", "-f", "json", "--weights")
    compress = ("compress", "llama-3-8b", "-d", "h100", "-f", "json", "--formats")
    for one, other in (("w8a16", "int8"), ("w4a16", "int4-g128"), ("w4a16-gptfast", "int4-g32")):
        for command in (infer, compress):
            assert cli(*command, one) == cli(*command, other)
            assert cli(*command, one)[0] == 0


@pytest.mark.parametrize("spelling", ["float16", "torch.float16", "half", "fp16"])
def test_types_go_by_their_names_in_torch(cli, spelling):
    case = ("predict", "gemm", "-d", "h100", "-f", "json", "--dtype")
    assert cli(*case, spelling) == cli(*case, "fp16")
    case = ("network", "show", "llama-3-8b", "-f", "json", "--kv-dtype")
    assert cli(*case, spelling) == cli(*case, "fp16")


@cases
def test_a_repository_names_the_network_in_it_and_a_note_says_which(cli, name, network):
    code, out, err = cli("network", "show", name, "-f", "json")
    assert code == 0
    assert err.startswith(f"perfmodel: {name} is predicted as {network}")
    assert (0, out, "") == cli("network", "show", network, "-f", "json")


def test_names_of_networks_and_files_stay_what_they_are(cli):
    assert cli("network", "show", "llama-3.1-8b")[2] == ""
    assert "no network named" in refused(cli("network", "show", "owner/No-Such-Model-Instruct"))
    assert "no such file" in refused(cli("network", "show", "./owner/model.yaml"))


def test_other_names_of_operators_kinds_and_powers_of_ten(cli):
    case = ("-d", "h100", "-f", "json")
    assert cli("predict", "sdpa", *case) == cli("predict", "attention", *case)
    assert cli("explain", "flashattention") == cli("explain", "attention")
    assert cli("list", "gpus") == cli("list", "devices")
    assert cli("predict", "gemm", *case, "-m", "1e3") == cli("predict", "gemm", *case, "-m", 1000)


@pytest.mark.parametrize(
    "word",
    [
        *("ttft", "tpot", "slo", "lora", "qlora", "eagle", "eagle3", "mtp", "prefix"),
        *("prefix-cache", "chunked", "chunked-prefill", "sparse", "2:4", "page", "page-size"),
        *("fsdp", "mamba", "ssd", "vlm", "mxfp8", "epilogue"),
    ],
)
def test_well_known_words_that_are_not_predicted_say_what_is_nearest(cli, word):
    asked = [
        (word,),
        ("predict", word),
        ("network", "show", word),
        ("predict", "gemm", "-d", "h100", "--dtype", word),
    ]
    if word != "2:4":  # which no option can be called
        asked.append(("predict", "attention", "-d", "h100", f"--{word}", "4"))
    for arguments in asked:
        assert "not predicted; nearest: " in refused(cli(*arguments)), arguments


def test_a_misspelt_name_is_no_such_word(cli):
    assert "did you mean vllm" in refused(
        cli("infer", "llama-3-8b", "-d", "h100", "--engine", "vlm")
    )


def test_an_unknown_network_is_a_short_line(cli):
    line = refused(cli("infer", "xyzzy", "-d", "h100"))
    assert len(line) < 220
    assert line.rstrip().endswith("(perfmodel network list)")


@cases
def test_an_impossible_element_costs_its_row_not_the_list(cli, arguments, lost):
    code, out, err = cli(*arguments)
    assert code == 0
    (told,) = [line for line in (out + err).splitlines() if "left out: " in line]
    assert lost in told
    (place,) = [i for i, text in enumerate(arguments) if "," in str(text)]
    alone = [*arguments[:place], arguments[place].rpartition(",")[0], *arguments[place + 1 :]]
    rows = cli(*alone)[1].splitlines()[2:4]
    assert rows
    assert "left out" not in "".join(cli(*alone)[1:])


def test_the_fastest_plan_that_fits_needs_one(cli):
    case = ("train", "llama-3-70b", "-d", "h100", "--gpus", "8", "--fastest", "--tensor")
    code, out, err = cli(*case, "4,8")
    assert (code, "not by" in out) == (1, True)
    assert "no plan fits" in err
    assert cli(*case, "8")[0] == 1
    assert (
        cli("train", "llama-3-8b", "-d", "h100", "--gpus", "8", "--zero", "3", "--fastest")[0] == 0
    )


@pytest.mark.parametrize("operator", ["embedding", "kv-write"])
def test_what_moves_bytes_has_a_rate_in_bytes(cli, operator):
    out = cli("predict", operator, "-d", "h100")[1]
    assert "0.00 FLOP/s" not in out
    assert "B/s" in out


def _interrupted(seconds, *arguments):
    """Exit code and standard error of a command that is interrupted after `seconds`."""
    process = subprocess.Popen(
        [sys.executable, "-X", "importtime", "-m", "perfmodel", *arguments]
        if seconds == 0
        else [sys.executable, "-m", "perfmodel", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    )
    if seconds == 0:  # click is being imported: the command line has not started yet
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "click." in line:
                break
    else:
        time.sleep(seconds)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=60)[1]
    told = [line for line in error.splitlines() if not line.startswith("import time:")]
    return process.returncode, told


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT for one process")
@pytest.mark.parametrize("seconds", [0, 3.0])
def test_an_interrupt_is_one_line(seconds):
    arguments = ("predict", "gemm", "-d", "h100", "-m", "1:60000", "-f", "csv")
    assert _interrupted(seconds, *arguments) == (130, ["perfmodel: interrupted"])


def test_a_copied_spec_takes_changes_and_drops_measured_numbers_that_no_longer_fit(cli):
    changes = ("-c", "L2 capacity x2", "-c", "HBM 12 TB/s", "-c", "SM 160")
    code, _, err = cli("hardware", "new", "new.yaml", "--like", "h100", *changes)
    assert code == 0
    assert "measured l2_bandwidth of the other device is dropped" in err
    assert cli("hardware", "validate", "new.yaml")[0] == 0
    facts = {row["fact"]: row for row in _facts(cli, "./new.yaml")}
    assert facts["memory.l2.capacity"]["si"] == 100 * 2**20
    assert facts["memory.hbm.bandwidth"]["si"] == pytest.approx(12e12, rel=1e-3)
    assert facts["compute.units"]["si"] == 160
    assert facts["compute.matrix.bf16"]["si"] == pytest.approx(989.4e12 * 160 / 132, rel=1e-3)
    assert "measured.l2_bandwidth" not in facts
    assert "no number of a spec" in refused(
        cli("hardware", "new", "other.yaml", "--like", "h100", "-c", "launch x2")
    )


def _facts(cli, name):
    import json

    return json.loads(cli("hardware", "show", name, "-f", "json")[1])["facts"]


@pytest.mark.parametrize("device", ["rtx5090", "h100", "mi300x", "m4-max"])
def test_units_changed_by_hand_are_named_as_the_cause(cli, device, tmp_path):
    assert cli("hardware", "new", "a.yaml", "--like", device)[0] == 0
    file = tmp_path / "a.yaml"
    text, units = file.read_text(), re.compile(r"units: \{value: (\d+)")
    half = int(units.search(text)[1]) // 2
    file.write_text(units.sub(f"units: {{value: {half}", text, count=1))
    code, out, line = cli("hardware", "validate", "a.yaml")
    assert (code, out) == (2, "")
    assert f"{half} units × rate × clock give: did you change the units" in line
    assert "sparse" not in line


def test_a_change_says_which_number_it_means(cli):
    out = cli("whatif", "gemm", "-d", "h100", "-c", "L2 x2", "-c", "L2 capacity x2")[1]
    assert "L2 x2 (L2 bandwidth)" in out
    assert "L2 capacity x2 (" not in out


def test_a_missing_size_is_none_and_not_zero_bytes(cli):
    out = cli("predict", "gemm", "-d", "m4-max")[1]
    assert "L2 capacity is not in the spec: none taken" in out
    assert "0.00 B" not in out
