"""`perfmodel infer`: loads, what fits, charts, every format, and one line for bad input."""

from __future__ import annotations

import csv
import io
import json

import pytest
from cases import cases

from perfmodel.cli import run

ONE = ("infer", "llama-3-8b", "-d", "h100-sxm", "--engine", "tensorrt-llm")


def test_a_batch_is_a_row(output):
    text = output(*ONE, "--isl", "1k", "--osl", "1k", "--batch", "1:256:x2", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["size"] for row in rows] == [f"{2.0**i}" for i in range(9)]
    rates = [float(row["output_tokens_per_s"]) for row in rows[:8]]
    assert rates == sorted(rates)
    assert all(float(row["low_tpot_ms"]) < float(row["tpot_ms"]) for row in rows)


@pytest.mark.parametrize(
    "load",
    [("--load", "full"), ("--concurrency", "1,8"), ("--rate", "0.5,2"), ("--batch", "4")],
    ids=lambda load: load[0],
)
def test_loads_and_their_terms_as_json(output, load):
    document = json.loads(output(*ONE, *load, "--terms", "-f", "json"))
    for row in document["loads"]:
        assert row["limiter"] in ("matmul", "attention", "host", "communication")
        token = row["terms_us"]["token"]
        assert sum(token.values()) == pytest.approx(row["tpot_ms"] * 1e3)
        assert all(isinstance(value, float) for value in token.values())
        made = row["output_tokens_per_s_per_device"] * row["devices"]
        assert made == pytest.approx(row["output_tokens_per_s"])


@pytest.mark.parametrize("format", ["table", "markdown"])
def test_terms_are_columns_for_people(output, format):
    text = output(*ONE, "--tp", "2", "--terms", "-f", format)
    assert "attention" in text
    assert "communication" in text
    assert "host" in text


def test_several_devices_engines_and_copies(output):
    text = output(
        "infer", "qwen3-32b", "-d", "h100-sxm", "-d", "b200", "--engine", "vllm,sglang",
        "--tp", "2", "--dp", "2", "--concurrency", "16", "-f", "json",
    )  # fmt: skip
    rows = json.loads(text)["loads"]
    assert [(row["device"], row["engine"]) for row in rows] == [
        (device, engine) for device in ("h100-sxm", "b200") for engine in ("vllm", "sglang")
    ]
    assert {row["devices"] for row in rows} == {4}


def test_experts_are_shared_among_copies(output):
    text = output(
        "infer", "qwen3-30b-a3b", "-d", "h100-sxm", "--engine", "vllm", "--ep", "4", "--dp", "4",
        "--batch", "64", "--terms",
    )  # fmt: skip
    assert "communication" in text


@pytest.mark.parametrize("what", ["batch", "context"])
def test_every_term_of_what_fits(output, what):
    document = json.loads(output(*ONE, "--fit", what, "-f", "json"))
    (row,) = document["fits"]
    terms = {
        f"{name}_bytes"
        for name in ("weights", "context", "exchange_buffers", "graphs", "activations",
                     "cache_room", "left_alone")
    }  # fmt: skip
    assert sum(row[name] for name in terms) == pytest.approx(row["total_bytes"])
    assert row["sequences" if what == "batch" else "context"] > 0
    assert "cache room" in output(*ONE, "--fit", what)


def test_charts(output, tmp_path):
    front, bars = tmp_path / "front.svg", tmp_path / "bars.svg"
    output(*ONE, "--batch", "1,8,64", "--chart", str(front), "--operators", str(bars))
    assert "tokens/s/user" in front.read_text()
    assert "time between tokens" in bars.read_text()


def test_a_format_that_a_device_cannot_run(capsys):
    assert run(["infer", "llama-3-8b", "-d", "p100", "--weights", "w8a8"]) == 2
    assert "no int8 matrix rate" in capsys.readouterr().err


def test_formats_and_devices_of_a_layer_may_be_lists(output):
    text = output(*ONE, "--weights", "bf16,fp8", "--tp", "1,2", "--batch", "8", "-f", "csv")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [(row["weights"], row["tensor"]) for row in rows] == [
        ("bf16", "1"), ("bf16", "2"), ("fp8", "1"), ("fp8", "2"),
    ]  # fmt: skip
    for row in rows:
        alone = output(*ONE, "--weights", row["weights"], "--tp", row["tensor"], "--batch", "8",
                     "-f", "csv")  # fmt: skip
        assert next(csv.DictReader(io.StringIO(alone))) == row
    title, header, *_ = output(*ONE, "--weights", "bf16,fp8", "--tp", "1,2").splitlines()
    # Under this engine a checkpoint in fp8 has an fp8 cache.
    assert header.split()[:4] == ["weights", "tensor", "cache", "batch"]
    assert "weights" not in title


def test_what_cannot_be_deployed_is_named_beside_what_can(output, capsys):
    text = output(*ONE, "--tp", "2,3")
    assert "left out: tensor 3: 32 heads do not divide by tensor 3" in text
    document = json.loads(output(*ONE, "--tp", "2,3", "-f", "json"))
    assert [item["deployment"] for item in document["refused"]] == ["tensor 3"]
    assert len(document["loads"]) == 1
    assert run([*ONE, "--tp", "3,5"]) == 2
    assert "tensor of 1, 2, 4, 8 would (and 1 more)" in capsys.readouterr().err
    assert run([*ONE, "--tp", "1:2100"]) == 2
    assert "2,100 deployments are more than 2,000; narrow a range" in capsys.readouterr().err


def test_what_fits_has_a_column_for_what_is_listed(output):
    text = output(*ONE, "--tp", "1,2", "--weights", "bf16,fp8", "--fit", "batch", "-f", "csv")
    found = {
        (row["weights"], row["tensor"]): int(row["sequences"])
        for row in csv.DictReader(io.StringIO(text))
    }
    assert found["bf16", "1"] < found["fp8", "1"] < found["bf16", "2"] < found["fp8", "2"]


BIG = ("infer", "llama-3-70b", "-d", "h100-sxm", "--tp", "4")


def test_a_draft_gains_more_the_surer_it_is_and_less_the_larger_the_batch(output):
    text = output(
        *BIG, "--draft", "llama-3-8b", "--accept", "0.5,0.9", "--batch", "1,64", "-f", "csv"
    )
    gain = {
        (row["accept"], row["batch"]): float(row["speedup"])
        for row in csv.DictReader(io.StringIO(text))
    }
    assert gain["0.5", "1"] < gain["0.9", "1"]
    assert gain["0.9", "64"] < gain["0.9", "1"]
    assert min(gain.values()) >= 1.0


def test_no_draft_is_as_good_as_none(output):
    text = output(*BIG, "--draft", "llama-3-8b", "--accept", "0", "-f", "json")
    (row,) = json.loads(text)["drafts"]
    assert (row["drafts"], row["speedup"]) == (0, 1.0)
    assert row["tpot_us"] == row["drafted_tpot_us"] > 0


def test_more_copies_for_prompts_have_earlier_first_tokens(output):
    text = output(*BIG, "--pools", "1:1,2:1", "--isl", "2k", "--users", "64", "-f", "csv")
    few, many = csv.DictReader(io.StringIO(text))
    assert (few["pools"], many["pools"]) == ("1xtp4:1", "2xtp4:1")
    assert float(few["ttft_ms"]) > float(many["ttft_ms"])
    assert int(many["devices"]) == 12


def test_prefixes_and_statistics_are_said(output):
    text = output(*ONE, "--concurrency", "16", "--cached", "0,50%,1k", "--isl", "2k", "--statistic",
                "p90", "--vary", "0.2", "-f", "csv")  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["cached"] for row in rows] == ["0", "1024", "1024"]
    assert float(rows[0]["ttft_ms"]) > float(rows[1]["ttft_ms"]) == float(rows[2]["ttft_ms"])
    assert "TTFT: p90 of the requests" in output(*ONE, "--concurrency", "4", "--statistic", "p90")


def test_degrees_of_experts_that_do_not_fit_are_left_out(cli):
    """Of hints, those that leave a share of a device to no expert are none."""
    degrees = ("--ep", "1:8:x2", "-d", "h100-sxm")
    code, out, err = cli("infer", "deepseek-v2-lite", *degrees)
    assert code == 0, err
    assert len(out.splitlines()) > 1
    assert "expert 8" in err + out


SEARCH = ("infer", "llama-3-8b", "-d", "l40s", "--gpus", "2", "--tp", "1,2", "--osl", "64")


def test_a_search_shows_plans_that_meet_the_targets(output):
    text = output(*SEARCH, "--plan", "auto", "--ttft", "2s", "--tpot", "60ms", "-f", "json")
    rows = json.loads(text)["plans"]
    assert all(row["ttft_ms"] <= 2000.0 and row["tpot_ms"] <= 60.0 for row in rows)
    assert all(row["devices"] <= 2 for row in rows)
    assert rows[0]["launch"].startswith("vllm serve llama-3-8b")


def test_simulated_requests_say_their_quantiles(output):
    load = ("--users", "4", "--requests", "50", "--osl", "16", "--ttft", "1s")
    (row,) = json.loads(output(*ONE, *load, "-f", "json"))["simulations"]
    assert row["ttft_ms_p50"] <= row["ttft_ms_p90"] <= row["ttft_ms_p99"]
    assert row["good_share"] == 1.0
    assert output(*ONE, *load) == output(*ONE, *load)


def test_drafts_whose_acceptance_is_taken_are_told(output):
    asked = ("infer", "deepseek-v3", "-d", "h200", "--tp", "8", "--weights", "fp8", "--mtp", "3")
    out = output(*asked)
    assert "assumed: a pass with 3 drafts makes 2.44 tokens" in " ".join(out.split())
    out = output(*asked, "--accepted", "2.2")
    assert "assumed: a pass" not in out


@cases
def test_a_network_runs_in_its_own_format_unless_told_otherwise(output, arguments, rows, cell):
    formats = {}
    for network in ("gpt-oss-20b", "llama-3-8b"):
        out = output(*arguments, network, "-d", "h100-sxm", "-f", "json")
        formats[network] = json.loads(out)[rows][0][cell]
    assert formats == {
        "gpt-oss-20b": "mxfp4",
        "llama-3-8b": "bf16" if arguments == ["infer"] else "fp16",
    }


@pytest.mark.parametrize(
    "command", [("hold",), ("offload", "--policy", "stream", "--isl", "64", "--osl", "8")]
)
def test_a_title_names_the_format_of_the_weights(output, command):
    name, *options = command
    title = {}
    for weights in ((), ("--weights", "w4a16")):
        out = output(name, "gpt-oss-20b", "-d", "h100-sxm", *options, *weights)
        title[weights] = out.splitlines()[0]
    assert "mxfp4" in title[()]
    assert "w4a16" in title["--weights", "w4a16"]
