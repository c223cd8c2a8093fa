"""Layers with a state of fixed size, and sparse attention: laws of networks and of serving."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from folders import TESTS

from perfmodel.errors import ProblemError
from perfmodel.hardware import load as load_device
from perfmodel.networks.expand import expand, parameter_count
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.huggingface import read
from perfmodel.networks.network import Block, Indexer, Mlp, Network, SelfAttention, State
from perfmodel.networks.reading import parse, text
from perfmodel.networks.setting import Setting, Shards
from perfmodel.networks.summary import cache_bytes, cache_bytes_per_token
from perfmodel.serving import engine
from perfmodel.serving.cachememory import sequence_bytes
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.steps import Steps

DEPLOYED = json.loads((TESTS / "vectors" / "deployed.json").read_text(encoding="utf-8"))
H100 = load_device("h100-sxm")
STATES = ("qwen3-next-80b-a3b", "mamba-codestral-7b", "falcon-mamba-7b", "kimi-linear-48b-a3b",
          "minimax-text-01", "nemotron-h-8b", "jamba-v0.1")  # fmt: skip


def network(name):
    return read(DEPLOYED[name]["keys"], name=name).network


def served(name, **options):
    return Steps(Deployment(network(name), H100, engine.load("vllm"), **options))


@pytest.mark.parametrize("name", STATES)
def test_a_network_file_has_the_states(name):
    net = network(name)
    assert parse(text(net))[0].network == replace(net, sizes={})


@pytest.mark.parametrize("name", STATES)
def test_devices_share_the_products_of_a_state(name):
    """All weights but those that each device has whole: norms, routers, shared keys."""
    net = network(name)
    whole, half = (
        sum(weight.elements * segment.repeat
            for segment in expand(net, Setting(1, 1, shards=Shards(tensor=tensor, expert=1)))
            for weight in segment.weights)
        for tensor in (1, 2)
    )  # fmt: skip
    assert 0.5 <= half / whole < 0.52


@pytest.mark.parametrize("name", STATES[1::5])
def test_a_training_step_takes_three_forward_passes(name):
    net = network(name)
    forward = net.predicted(H100, batch=1, seq=1024).seconds
    training = net.predicted(H100, batch=1, seq=1024, training=True).seconds
    assert 2.5 < training / forward < 4.0


def test_a_state_takes_as_many_bytes_after_any_number_of_tokens():
    net = network("mamba-codestral-7b")
    assert cache_bytes(net, 1) == cache_bytes(net, 100_000)
    assert cache_bytes_per_token(net) == 0
    # 64 layers of 128 heads of 64 x 128 in fp32; 3 tokens of 8,192 + 2 x 1,024 channels
    assert cache_bytes(net, 7) == 64 * (128 * 64 * 128 * 4 + 3 * (8192 + 2048) * 2)
    setup = Deployment(net, H100, engine.load("vllm"))
    assert sequence_bytes(setup, 10) == sequence_bytes(setup, 100_000) == cache_bytes(net, 7)


def test_decoding_with_states_alone_does_not_wait_for_what_was_read():
    steps = served("mamba-codestral-7b")
    short, long = steps.decode(np.array([8.0, 8.0]), np.array([128.0, 65_536.0])).total
    assert short == pytest.approx(long)


def test_a_step_with_states_takes_at_least_reading_and_writing_them():
    net, batch = network("mamba-codestral-7b"), 64
    steps = served("mamba-codestral-7b")
    state = steps.decoding(np.array([float(batch)]), np.array([1024.0])).total[0]
    assert state > 2 * batch * cache_bytes(net, 1) / 3.35e12


def test_prompts_of_states_take_time_in_proportion():
    steps = served("mamba-codestral-7b")
    times = steps.prompts(np.array([1.0, 1.0]), np.array([4096.0, 8192.0]), np.zeros(2)).total
    assert times[1] / times[0] == pytest.approx(2.0, rel=0.15)


def test_operations_of_a_state_are_those_of_its_two_products():
    state = State(key_size=16)
    mixer = SelfAttention(heads=4, kv_heads=2, head_size=32, state=state)
    net = Network("n", 128, 1000, (Block(mixer, Mlp(256)),))
    products = flops_per_token(net, 64) - 6.0 * sum(
        weight.elements for segment in expand(net, Setting(1, 1)) for weight in segment.weights
        if weight.kind == "matrix" or weight.name == "head.weight"
    )  # fmt: skip
    assert products == 6.0 * 2 * 4 * 16 * 32
    assert flops_per_token(net, 64) == flops_per_token(net, 6400)


def test_a_state_is_not_split_over_tokens():
    with pytest.raises(ProblemError, match="a state passes from token to token; give context 1"):
        expand(network("mamba-codestral-7b"), Setting(1, 8, shards=Shards(context=2)))


def test_chosen_keys_bound_the_attention_of_a_long_context():
    """With an indexer a step grows by its scores alone; without one by all keys."""
    sparse = network("deepseek-v3.2")
    blocks = tuple(
        replace(block, attention=replace(block.attention, indexer=None)) for block in sparse.blocks
    )
    seconds = {}
    for name, net in (("sparse", sparse), ("dense", replace(sparse, blocks=blocks))):
        setup = Deployment(net, load_device("h200"), engine.load("sglang"), "fp8", tensor=8)
        steps = Steps(setup)
        seconds[name] = steps.decoding(np.full(2, 32.0), np.array([4096.0, 131_072.0])).total
    growth = {name: long - short for name, (short, long) in seconds.items()}
    assert growth["sparse"] < growth["dense"] / 3
    layers = 61 * (1536 * 64 * 128 + 7168 * (128 + 64) + 2 * 128)  # the indexer's weights
    assert parameter_count(sparse) - parameter_count(replace(sparse, blocks=blocks)) == layers


def test_an_indexer_needs_the_latent_of_queries():
    with pytest.raises(ProblemError, match="indexer goes with a latent of queries"):
        SelfAttention(4, 4, 64, indexer=Indexer(4, 32, 128))
