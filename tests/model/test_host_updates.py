"""Optimiser states in host memory, updated there (ZeRO-Offload, 2101.06840)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from perfmodel import load
from perfmodel.errors import ProblemError
from perfmodel.hardware import systems
from perfmodel.networks import library
from perfmodel.networks.expand import parameter_count
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.training.plan import Plan
from perfmodel.training.planning import Floors
from perfmodel.training.step import check, predict_step, step_memory

SYSTEM = systems.load("dgx-h100")
H100 = load(SYSTEM.device)
NETWORK = library.load("gpt2-xl")
ALONE = Plan(seq=1024, micro_batch=4, stack="megatron", recompute="full")
PLANS = [
    ALONE,
    replace(ALONE, accumulation=4),
    replace(ALONE, stack="compile", accumulation=2),
    *(replace(ALONE, stack="te", data=4, zero=zero) for zero in (0, 1, 2, 3)),
    replace(ALONE, data=2, zero=1, pipeline=4, accumulation=8),
    replace(ALONE, tensor=5, seq=1000),
]
MOVED = ("master weights", "optimiser states")


def hosted(plan: Plan) -> Plan:
    return replace(plan, offload="optimiser")


def with_host_memory(factor: float):
    memory = SYSTEM.host.memory_bandwidth
    faster = replace(memory, value=f"{factor * memory.si!r} B/s")
    return replace(SYSTEM, host=replace(SYSTEM.host, memory_bandwidth=faster))


def with_link(rate: str):
    host = H100.links.host
    bandwidth = replace(host.bandwidth_per_direction, value=rate)
    return replace(
        H100,
        links=replace(H100.links, host=replace(host, bandwidth_per_direction=bandwidth)),
    )


@pytest.mark.parametrize("plan", PLANS)
def test_the_device_loses_states_and_master_weights_and_the_host_has_them(plan):
    """Gradients leave too, but for the two layers at work and on the link."""
    before, after = (predict_step(NETWORK, each, H100, SYSTEM).memory
                     for each in (plan, hosted(plan)))  # fmt: skip
    moved = sum(before.lines.get(name, 0.0) for name in MOVED)
    left = before.lines["gradients"] - after.lines["gradients"]
    assert (left > 0) == hosted(plan).gradients_leave
    assert before.peak_bytes - after.peak_bytes == pytest.approx(moved + left, rel=1e-12)
    assert not set(MOVED) & set(after.lines)
    kept = {span.name: span.bytes for span in after.spans if span.place == "host"}
    for name in MOVED:
        if name in before.lines:
            assert kept[name] == before.lines[name]
    assert kept["master weights"] > 0
    assert after.footprints["host"] == sum(kept.values())
    floors = Floors.of(NETWORK, hosted(plan), H100)
    assert floors.bytes(hosted(plan)) <= after.peak_bytes
    assert step_memory(NETWORK, hosted(plan), H100).lines == after.lines


@pytest.mark.parametrize("plan", PLANS)
def test_it_is_never_faster_and_faster_hosts_are_never_slower(plan):
    kept = predict_step(NETWORK, plan, H100, SYSTEM)
    assert kept.memory.fits
    seconds = [predict_step(NETWORK, hosted(plan), H100, with_host_memory(f)).seconds
               for f in (0.5, 1.0, 2.0)]  # fmt: skip
    assert kept.seconds < seconds[2] <= seconds[1] < seconds[0]
    links = [predict_step(NETWORK, hosted(plan), with_link(rate), SYSTEM).seconds
             for rate in ("16 GB/s", "63 GB/s", "252 GB/s")]  # fmt: skip
    assert links[0] > links[1] >= links[2] > kept.seconds


@pytest.mark.parametrize("accumulation", [1, 3])
def test_over_a_slow_link_all_gradients_of_each_micro_batch_cross_and_weights_once(accumulation):
    """Megatron keeps gradients in 32 bits and weights in 16. Those of the embedding count again
    behind the last layer. Only those of the last norm hide, beside the head."""
    plan = hosted(replace(ALONE, accumulation=accumulation))
    slow, slower = with_link("0.2 GB/s"), with_link("0.1 GB/s")
    seconds = [predict_step(NETWORK, plan, each, SYSTEM).seconds for each in (slow, slower)]
    parameters = parameter_count(NETWORK)
    first = 4 * NETWORK.hidden * (NETWORK.vocabulary + NETWORK.positions)
    crossing = 4 * parameters * accumulation + first + 2 * parameters
    rates = [host_bytes_per_s(each) for each in (slow, slower)]
    more = crossing / rates[1] - crossing / rates[0]
    assert seconds[1] - seconds[0] == pytest.approx(more, rel=1e-5)


def test_the_host_moves_every_stream_of_adamw_once():
    """30 bytes a parameter: a gradient of 4, master weight and two moments of 4 read and written, a
    weight of 2 written. One process has the memory of one of two sockets."""
    step = predict_step(NETWORK, hosted(ALONE), H100, SYSTEM)
    rate = SYSTEM.host.memory_bandwidth.si / 2
    assert step.classes["optimiser"] == pytest.approx(
        30 * parameter_count(NETWORK) / rate, rel=1e-3
    )
    eight = predict_step(NETWORK, hosted(replace(ALONE, data=8)), H100, SYSTEM)
    assert eight.classes["optimiser"] == pytest.approx(4 * step.classes["optimiser"])


def gpt(layers: int, hidden: int):
    """A GPT of ZeRO-Offload's evaluation (table 3: layers and hidden size)."""
    network = library.load("gpt2-xl")
    block = network.blocks[0]
    return replace(
        network,
        name=f"gpt-{layers}-{hidden}",
        hidden=hidden,
        blocks=(
            replace(
                block,
                repeat=layers,
                attention=replace(
                    block.attention, heads=hidden // 128, kv_heads=hidden // 128, head_size=128
                ),
                mlp=replace(block.mlp, inner=4 * hidden),
            ),
        ),
    )


def test_ten_billion_parameters_train_on_one_v100_of_32_gb():
    """ZeRO-Offload's abstract: 10 billion at 40 TFLOP/s, where PyTorch alone trains 1.4 billion at
    30; 13 billion are the most. The plan's micro-batches are assumed."""
    v100 = load("v100-sxm2-32gb")
    plan = Plan(seq=1024, micro_batch=8, accumulation=64, recompute="full", dtype="fp16",
                stack="deepspeed", precision="mixed", attention="unfused")  # fmt: skip
    ten = gpt(50, 4096)
    assert parameter_count(ten) == pytest.approx(10.3e9, rel=0.02)
    assert not predict_step(ten, plan, v100).memory.fits
    step = predict_step(ten, hosted(plan), v100)
    assert step.memory.fits
    assert step.flops_per_second_per_device("megatron") > 30e12
    kept, host = (predict_step(gpt(24, 2048), each, v100) for each in (plan, hosted(plan)))
    assert kept.memory.fits
    assert host.memory.fits
    small = replace(plan, micro_batch=1, accumulation=1)
    assert step_memory(gpt(65, 4096), hosted(small), v100).fits  # 13 billion
    assert not step_memory(gpt(100, 4096), hosted(small), v100).fits  # 20 billion


def test_a_host_of_unknown_memory_is_refused():
    with pytest.raises(ProblemError, match="rate of the host's memory"):
        check(NETWORK, hosted(ALONE), load("rtx-4090"))
