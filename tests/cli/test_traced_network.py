"""A user's module as a network: nothing of its trace is lost, and plans apply to it."""

from dataclasses import replace

import pytest
from cases import cases
from folders import TESTS

from perfmodel.algorithms import Attention, Matmul
from perfmodel.errors import ProblemError
from perfmodel.hardware import load
from perfmodel.networks import rematerialise
from perfmodel.networks.expand import expand, parameter_count
from perfmodel.networks.flops import CONVENTIONS, flops_per_token
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.setting import Setting
from perfmodel.networks.stack import load as stack
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step, step_memory

tracedmodels = pytest.importorskip("tracedmodels")

from perfmodel.tracing.tracednetwork import TracedNetwork  # noqa: E402

FILE = TESTS / "tracedmodels.py"
LLAMA, GPT = (TracedNetwork.at(f"{FILE}:{name}") for name in ("Llama", "Gpt"))
H, HEADS, VOCABULARY = tracedmodels.HIDDEN, tracedmodels.HEADS, tracedmodels.VOCABULARY
LAYERS = 3


def setting(network, **more):
    return Setting(2, 128, training=True, stack=stack("eager"), **more)


@pytest.mark.parametrize("network", [LLAMA, GPT])
def test_every_kernel_and_parameter_of_the_trace_is_in_one_layer(network):
    given = setting(network)
    segments = expand(network, given)
    record = network._traced(given)
    kernels = [len(s.forward.nodes) + len(s.backward.nodes) for s in segments]
    assert sum(n * s.repeat for n, s in zip(kernels, segments, strict=True)) == len(
        record.operations
    )
    assert parameter_count(network) == record.parameters
    assert sum(s.repeat for s in segments if s.block) == network.layers > 1


def test_layers_of_equal_kernels_are_one_segment_and_keep_what_their_gradients_read():
    segments = expand(GPT, setting(GPT))
    assert [(s.name, s.repeat) for s in segments] == [
        ("embedding", 1), ("block", LAYERS), ("head", 1)
    ]  # fmt: skip
    block = segments[1]
    # Both norms' inputs and results, q, k, v, attention's result and the sum, 4 h wide gelu and its
    # input, in 2 bytes; a logarithm of a sum a head, a deviation a norm.
    tokens = 2 * 128
    statistics = tokens * 4 * (HEADS + 2)
    kept = block.saved_bytes + block.statistics_bytes
    assert kept == tokens * 2 * H * (1 + 1 + 3 + 1 + 1 + 1 + 4 + 4) + statistics
    assert rematerialise.kept_bytes(block, "full") == tokens * 2 * H


def test_products_are_those_of_the_same_network_by_its_sizes():
    attention = SelfAttention(HEADS, HEADS, H // HEADS, rotary=False, joined=True)
    mlp = Mlp(4 * H, gated=False, activation="gelu")
    same = Network("gpt", H, VOCABULARY, (Block(attention, mlp, LAYERS),))
    flops = []
    for network in (GPT, same):
        segments = expand(network, setting(network))
        flops.append(
            sum(
                s.repeat * node.repeat * node.problem.flops()
                for s in segments
                for way in (s.forward, s.backward)
                for node in way.nodes
                if isinstance(node.problem, Matmul | Attention)
            )
        )
    assert flops[0] == flops[1]
    plan, device = Plan(seq=128, micro_batch=2, stack="eager", zero=3, data=8), load("h100-sxm")
    traced, sized = (predict_step(network, plan, device) for network in (GPT, same))
    for convention in CONVENTIONS:
        counts = (flops_per_token(network, 128, convention) for network in (GPT, same))
        assert next(counts) == pytest.approx(next(counts), rel=1e-2), convention
    for line in ("weights", "gradients", "optimiser states"):
        assert traced.memory.lines[line] == pytest.approx(sized.memory.lines[line], rel=1e-6)


def test_zero_and_recomputation_shrink_the_memory_of_a_module_as_of_a_network():
    device = load("h100-sxm")
    plan = Plan(seq=128, micro_batch=2, stack="eager", data=8)
    whole, sharded = (step_memory(GPT, replace(plan, zero=zero), device) for zero in (0, 3))
    full = step_memory(GPT, replace(plan, recompute="full"), device)
    for line in ("gradients", "optimiser states"):
        assert sharded.lines[line] * 8 == pytest.approx(whole.lines[line], rel=1e-9)
    assert full.lines["activations"] < whole.lines["activations"] / 4


@cases
def test_what_a_trace_does_not_show_is_refused(options, message):
    with pytest.raises(ProblemError, match=message):
        predict_step(GPT, Plan(**{"seq": 128, "stack": "eager", **options}), load("h100-sxm"))


def test_a_module_trains_under_a_plan_from_the_command_line(cli, output):
    out = output(
        "train", f"{FILE}:Gpt", "-d", "h100-sxm", "--gpus", "3", "--pipeline", "3,1", "--zero",
        "0,1", "--recompute", "full", "--seq", "128", "--stack", "compile",
        "--input", "int64[batch,seq]",
    )  # fmt: skip
    assert out.count("pipeline") >= 1
    code, _, err = cli("train", "gpt2-xl", "-d", "h100-sxm", "--input", "int64[1,2]")
    assert (code, err) == (2, "perfmodel: --input is of a module FILE.py:NAME; drop it\n")
