"""What a command takes where an option is not given is what the noun takes that it fills."""

from __future__ import annotations

import dataclasses
import inspect
import json

import pytest

from perfmodel.cli import networkpredict, train
from perfmodel.errors import ProblemError
from perfmodel.hardware import load, systems
from perfmodel.networks import library
from perfmodel.networks.expand import expand
from perfmodel.networks.flops import USUAL, flops_per_token
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.setting import Setting, Shards
from perfmodel.networks.stack import load as stack
from perfmodel.training.plan import Plan
from perfmodel.training.result import Step
from perfmodel.training.step import predict_step


def defaults(function):
    return {
        name: one.default
        for name, one in inspect.signature(function).parameters.items()
        if one.default is not inspect.Parameter.empty
    }


def test_train_takes_the_defaults_of_a_plan():
    options = defaults(train.train)
    shared = [field for field in dataclasses.fields(Plan) if field.name in options]
    assert len(shared) == 15
    for field in shared:
        assert str(options[field.name]) == str(field.default), field.name
    assert options["convention"] == USUAL == defaults(Step.mfu)["convention"]


@pytest.mark.parametrize("tensor", [1, 2, 8])
def test_python_and_the_command_predict_one_step_with_tensor_parallelism(cli, tensor):
    """Rows of norms are split wherever layers are, unless a plan says otherwise."""
    options = ("--gpus", str(tensor), "--tensor", str(tensor), "--seq", "512")
    code, out, err = cli("train", "llama-3.2-1b", "-s", "dgx-a100", *options, "-f", "json")
    assert code == 0, err
    (told,) = json.loads(out)["steps"]
    system = systems.load("dgx-a100")
    network, device = library.load("llama-3.2-1b"), load(system.device)
    plan = Plan(seq=512, tensor=tensor)
    assert predict_step(network, plan, device, system).as_dict() == told
    assert told["plan"]["sequence"] == (tensor > 1)
    assert dataclasses.replace(Plan(seq=512), tensor=tensor) == plan
    whole = predict_step(network, Plan(seq=512, tensor=tensor, sequence=False), device, system)
    kept = whole.as_dict()["memory_bytes"]["activations"]
    assert (kept > told["memory_bytes"]["activations"]) == (tensor > 1)


def test_a_pass_takes_the_defaults_of_a_setting():
    options = defaults(networkpredict.predict)
    for name in ("attention", "dtype"):
        assert options[name] == getattr(Setting, name)
    assert options["stack_"] == Setting(1, 1).stack.name


@pytest.mark.parametrize("name", ["llama-4-scout", "mistral-7b-v0.1", "gemma-3-4b", "gpt-oss-20b"])
def test_causal_keys_are_those_that_a_token_sees(name):
    network = library.load(name)

    def scores(seq):
        seen = 0.0
        for block in network.blocks:
            of = block.attention
            for i in range(seq):
                keys = (
                    min(i + 1, of.window) if of.window else i % of.chunk + 1 if of.chunk else i + 1
                )
                seen += block.repeat * keys * of.heads * (of.score_width + of.value_width) / seq
        return 6.0 * seen

    for seq in (100, 1025, 8192, 8193):
        masked = flops_per_token(network, seq, "causal") - flops_per_token(network, 1, "causal")
        assert masked == pytest.approx(scores(seq) - scores(1), rel=1e-9)


def test_causal_flops_of_published_networks():
    for name, seq, wanted in (
        ("llama-4-scout", 8193, 1.0890781e11),
        ("mistral-7b-v0.1", 4097, 4.5885161e10),
    ):
        assert flops_per_token(library.load(name), seq) == pytest.approx(wanted, rel=1e-7)


@pytest.mark.parametrize("tensor", [3, 8, 14])
def test_a_hint_names_what_every_size_divides_by(tensor):
    network = library.load("qwen2.5-7b")
    with pytest.raises(ProblemError, match=r"tensor of 1, 2, 4 would"):
        expand(network, Setting(1, 1, shards=Shards(tensor=tensor)))
    for fits in (1, 2, 4):
        expand(network, Setting(1, 1, shards=Shards(tensor=fits)))


def test_a_hint_of_stages_names_pipelines_that_the_chunks_allow():
    plan = Plan(pipeline=5, chunks=2)
    with pytest.raises(ProblemError, match=r"pipeline of 1, 2, 4, 8, 16 would"):
        plan.check(library.load("llama-3-8b"))


def test_eager_attention_after_llama_keeps_the_softmax_in_fp32():
    """transformers' Llama saves 18,223,104 bytes with the norms' 4,096 of statistics."""
    block = Block(SelfAttention(8, 8, 64), Mlp(1376))

    def saved(norm, attention):
        network = Network("small", 512, 32000, (block,), norm=norm)
        setting = Setting(2, 256, training=True, stack=stack("eager"), attention=attention)
        (layer,) = (one for one in expand(network, setting) if one.block)
        return layer.saved_bytes

    assert saved("rmsnorm", "unfused") == 18_223_104 - 4_096
    assert saved("rmsnorm", "flash") == 11_948_032 - 4_096 - 16_384  # and the scores' log-sum-exp


@pytest.mark.parametrize(
    "arguments",
    [
        ("offload", "opt-30b", "-d", "t4", "--host", "xeon-gold-6242", "--disk-rate"),
        ("hold", "llama-2-70b", "-d", "wse-2", "--stream-rate"),
    ],
    ids=["disk", "stream"],
)
@pytest.mark.parametrize("rate", ["0 GB/s", "-1 GB/s", "inf GB/s", "1e-300 GB/s", "1e300 GB/s"])
def test_a_rate_is_above_0_and_finite(cli, arguments, rate):
    code, _, err = cli(*arguments, rate)
    assert code == 2
    assert len(err.splitlines()) == 1


def test_a_price_without_a_finite_sum_is_refused(cli):
    code, _, err = cli("hold", "llama-2-70b", "-d", "h100", "--price", "1e308")
    assert (code, len(err.splitlines())) == (2, 1)
    assert "no finite sum" in err


def test_a_pass_is_called_what_was_asked(cli):
    for way in networkpredict.PASSES:
        _, out, _ = cli("network", "llama-3.2-1b", "-d", "h100", "--seq", "128", "--pass", way)
        assert f"pass={way}" in out
