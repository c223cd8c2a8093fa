"""`perfmodel network`: names, one network, config.json files as a user imports them."""

from __future__ import annotations

import json
from typing import Annotated

from folders import TESTS

from perfmodel.fieldoption import FieldOption
from perfmodel.networks import library
from perfmodel.networks.expand import active_count, parameter_count

CONFIGS = TESTS / "configs"


def test_list_has_every_network_with_its_size(cli):
    code, out, err = cli("network", "list", "--format", "json")
    assert (code, err) == (0, "")
    rows = {row["name"]: row for row in json.loads(out)["networks"]}
    assert list(rows) == library.names()
    row = rows["mixtral-8x7b"]
    assert (row["parameters"], row["active"]) == (46_702_792_704, 12_879_925_248)
    assert (row["layers"], row["heads"], row["kv_heads"]) == (32, 32, 8)
    assert "llama-3.1-8b" in rows["llama-3-8b"]["aliases"]


def test_list_of_a_family(cli):
    _, out, _ = cli("network", "list", "--family", "gpt_oss", "-f", "csv")
    assert [line.split(",")[0] for line in out.splitlines()[1:]] == ["gpt-oss-20b", "gpt-oss-120b"]
    code, _, err = cli("network", "list", "--family", "gptoss")
    assert code == 2
    assert "no family named 'gptoss'; did you mean gpt_oss" in err


def test_show_counts_parts_and_says_what_was_published(cli, output):
    out = output("network", "show", "deepseek-v3")
    assert "671,026,419,200 (published: 671,000,000,000)" in out
    assert "37,552,297,472 with the input embedding, 36,625,618,432 without" in out
    assert "cache: 68.6 KiB a token in bf16" in out
    assert "58 layers: 128 heads, scores 192 and values 128 wide" in out
    _, out, _ = cli("network", "show", "llama-3.1-8b", "--seq", "8k", "-f", "json")
    document = json.loads(out)
    assert document["parameters"] == parameter_count(library.load("llama-3-8b"))
    assert document["kv_bytes_per_token"] == 131_072
    assert document["kv_bytes"] == 8192 * 131_072
    assert sum(row["parameters"] for row in document["parts"]) == document["parameters"]
    assert document["network"]["blocks"][0]["repeat"] == 32
    flops = document["training_flops_per_token"]
    assert flops["causal"] < flops["megatron"]


def test_what_is_shown_as_yaml_is_the_network(cli, tmp_path):
    code, out, err = cli("network", "show", "gpt-oss-120b", "--yaml", "-o", "mine.yaml")
    assert (code, out, err) == (0, "", "wrote mine.yaml\n")
    assert library.load(tmp_path / "mine.yaml") == library.load("gpt-oss-120b")
    code, out, _ = cli("network", "show", "./mine.yaml", "-f", "json")
    assert json.loads(out)["active"] == active_count(library.load("gpt-oss-120b"))


def test_import_writes_a_file_that_is_the_network(cli, tmp_path):
    code, out, err = cli(
        "network", "import", CONFIGS / "deepseek-v3.json", "--name", "v3", "-o", "mine.yaml"
    )
    assert (code, out) == (0, "")
    assert err.splitlines() == [
        "wrote mine.yaml",
        "note: num_nextn_predict_layers: layers that predict further tokens are left out",
    ]
    found = library.load(tmp_path / "mine.yaml")
    assert found.name == "v3"
    assert found.blocks == library.load("deepseek-v3").blocks


def test_import_prints_yaml_and_notes_apart(cli, tmp_path):
    code, out, err = cli("network", "import", CONFIGS / "gemma-3-4b.json")
    assert code == 0
    (tmp_path / "piped.yaml").write_text(out)
    assert library.load("./piped.yaml").blocks == library.load("gemma-3-4b").blocks
    assert all(line.startswith("note: ") for line in err.splitlines())


def test_import_of_an_unknown_family_writes_nothing(cli, output, tmp_path):
    data = json.loads((CONFIGS / "llama-3-8b.json").read_text()) | {"model_type": "new"}
    (tmp_path / "config.json").write_text(json.dumps(data))
    code, out, err = cli("network", "import", "config.json", "-o", "mine.yaml")
    assert (code, out) == (2, "")
    assert err.startswith("perfmodel: config.json: model_type 'new' is not known, ")
    assert not (tmp_path / "mine.yaml").exists()
    output("network", "import", "config.json", "-o", "mine.yaml", "--family", "llama")
    assert library.load("./mine.yaml").blocks == library.load("llama-3-8b").blocks


def test_a_name_in_place_of_a_command_goes_to_predict_where_it_is(cli, monkeypatch):
    from perfmodel.cli import network

    seen = []
    own = network.Networks()

    @own.command("list")
    def list_() -> None:
        seen.append("list")

    @own.command("predict")
    def predict(name: Annotated[str, FieldOption(argument=True)], batch: int = 1) -> None:
        seen.append((name, batch))

    for words in (["list"], ["llama-3-8b", "--batch", "8"], ["predict", "gpt2"]):
        own.main(words, standalone_mode=False)
    assert seen == ["list", ("llama-3-8b", 8), ("gpt2", 1)]


def test_intensities_are_never_in_exponents(cli):
    code, out, _ = cli("network", "llama-3-8b", "-d", "h100-sxm", "--seq", "2k", "--stack", "vllm")
    (line,) = (line for line in out.splitlines() if line.startswith("attention"))
    assert code == 0
    assert "e+" not in line
    assert 950 < int(line.split()[-1]) < 1050


def test_weights_that_are_more_than_the_device_holds_are_said(cli):
    code, _, err = cli("network", "deepseek-v3", "-d", "b200,h100", "--pass", "decode",
                       "--seq", "1k")  # fmt: skip
    assert code == 0
    assert err.count("timed as if they fitted") == 2
    assert "the weights of deepseek-v3 take 1.2" in err
    code, out, err = cli("network", "llama-3-8b", "-d", "h100", "--pass", "decode")
    assert (code, err) == (0, "")
    assert "latents" not in out


def test_a_cache_of_latents_is_said_to_be_read_expanded(cli):
    _, out, _ = cli("network", "deepseek-v3", "-d", "b200", "--pass", "decode", "--seq", "1k")
    assert "assumed: latents are cached expanded to keys and values" in out
    _, out, _ = cli("network", "deepseek-v3", "-d", "b200", "--pass", "prefill", "--seq", "1k")
    assert "latents" not in out
