"""Whole networks and training steps: presets, a network of one's own, config.json files."""

from __future__ import annotations

import json
from functools import lru_cache

import yaml
from commands import device, mishap, shown
from dice import Dice
from inputs import Input

CONFIG = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 64,
    "intermediate_size": 172, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 100, "hidden_act": "silu", "rms_norm_eps": 1e-5,
    "tie_word_embeddings": False, "max_position_embeddings": 128,
}  # fmt: skip
SYSTEMS = ("dgx-h100", "dgx-a100", "gb200-nvl72", "8xl40s", "8xmi300x", "tpu-v4-pod", "foo")
NETWORKS = ("bert-base", "gpt2", "llama-3-8b", "gpt-oss-20b", "deepseek-v3", "gpt3-175b", "foo")
FAMILIES = ("llama", "qwen2", "gpt2", "bert", "deepseek_v3", "mamba", "t5", "mixtral", "foo")
STACKS = ("eager", "compile", "megatron", "te", "apex", "liger", "foo")
DTYPES = ("bf16", "fp16", "fp32", "tf32", "fp8", "nvfp4", "int8", "foo")


def make(dice: Dice) -> Input:
    """A command about a network."""
    maker = dice.choices((_pass, _step, _import, _shown), (5, 6, 5, 1))[0]
    arguments, files = maker(dice)
    if dice.chance(0.08):
        arguments = mishap(dice, arguments)
    return Input("networks", tuple(arguments), files, terminal=dice.chance(0.1))


Made = tuple[list[str], dict[str, bytes]]


@lru_cache(maxsize=1)
def _document() -> dict[str, object]:
    from perfmodel.networks import library, reading

    return dict(yaml.safe_load(reading.text(library.load("llama-3-8b"))))


def _network(dice: Dice) -> tuple[str, dict[str, bytes]]:
    if dice.chance(0.7):
        return dice.choice(NETWORKS), {}
    document = dice.document(_document()) if dice.chance(0.8) else _document()
    text = yaml.safe_dump(document)
    content = text.encode("utf-8", "surrogatepass")
    return "mine.yaml", {"mine.yaml": dice.broken(content) if dice.chance(0.1) else content}


def _whole(dice: Dice, *, lists: bool = False) -> str:
    draw = dice.random()
    if draw < 0.85:
        return str(2 ** dice.randrange(0, 7))
    if lists and draw < 0.95:
        return dice.choice(("1,2,4", "1:8:x2", "1:3", "3,5"))
    return dice.choice(("0", "-1", "7", "1.5", "9" * 20, "1,", dice.hostile()))


def _pass(dice: Dice) -> Made:
    name, files = _network(dice)
    found = ["network", name, "-d", device(dice)]
    choices = {
        "--batch": _whole(dice),
        "--seq": dice.choice(("1", "128", "2k", "0", "1M", _whole(dice))),
        "--pass": dice.choice(("forward", "train", "prefill", "decode", "foo")),
        "--dtype": dice.choice(DTYPES),
        "--stack": dice.choice(STACKS),
        "--attention": dice.choice(("unfused", "flash", "flash2", "cublas", "foo", "")),
        "--by": dice.choice(("class", "layer", "operator", "foo")),
        "--chart": dice.choice(("roof.svg", "roof.xml")),
    }
    shares = {"--chart": 0.02}
    for flag, word in choices.items():
        if dice.chance(shares.get(flag, 0.4)):
            found += [flag, word]
    return found + shown(dice), files


def _step(dice: Dice) -> Made:
    name, files = _network(dice)
    found = ["train", name]
    if dice.chance(0.5):
        found += ["-d", device(dice)]
    if dice.chance(0.5):
        found += ["--system", dice.choice(SYSTEMS)]
    for flag in dice.some(
        (
            "--gpus", "--micro-batch", "--tensor", "--pipeline", "--chunks", "--context",
            "--expert",
        ),
        0.3,
    ):  # fmt: skip
        found += [flag, _whole(dice, lists=True)]
    choices = {
        "--seq": dice.choice(("1", "128", "2k", "0", _whole(dice))),
        "--global-batch": dice.choice(("1", "64", "1024", "63", _whole(dice))),
        "--zero": dice.choice(("0", "1", "2", "3", "4", "0,3", "-1")),
        "--recompute": dice.choice(("none", "selective", "full", "host", "none,full", "foo")),
        "--recompute-layers": dice.choice(("0", "1", "1000", "-1", "x")),
        "--dtype": dice.choice(DTYPES),
        "--stack": dice.choice(STACKS),
        "--optimiser": dice.choice(("adamw", "none", "adam-8bit", "lamb", "muon", "foo")),
        "--schedule": dice.choice(("1f1b", "gpipe", "zb-h1", "zb-v", "dualpipe", "foo")),
        "--mfu": dice.choice(("megatron", "palm", "foo")),
    }
    for flag, word in choices.items():
        if dice.chance(0.25):
            found += [flag, word]
    if dice.chance(0.1):
        found += ["--fastest"]
    if dice.chance(0.02):
        found += ["--chart", "line.svg"]
    return found + shown(dice), files


def _import(dice: Dice) -> Made:
    config: object = CONFIG | {"model_type": dice.choice(FAMILIES)}
    if dice.chance(0.7):
        config = dice.document(config)
    content = json.dumps(config).encode("utf-8", "surrogatepass")
    content = dice.broken(content) if dice.chance(0.2) else content
    found = ["network", "import", "config.json"]
    for flag, words in (
        ("--family", FAMILIES),
        ("--name", ("mine", "", dice.hostile())),
        ("--output", ("my.yaml", "my.txt", "no/such/my.yaml")),
    ):
        if dice.chance(0.25):
            found += [flag, dice.choice(words)]
    return found, {"config.json": content}


def _shown(dice: Dice) -> Made:
    if dice.chance(0.3):
        return ["network", "list", "--family", dice.choice(FAMILIES), *shown(dice)], {}
    name, files = _network(dice)
    return ["network", "show", name, *shown(dice)], files
