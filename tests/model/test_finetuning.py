"""Fine-tuning: LoRA, DoRA, quantised frozen weights, frozen parts, packed sequences.

Published counts and memory: LoRA (2106.09685, tables 2 and 4), QLoRA (2305.14314, section 3), DoRA
(2402.09353, table 1), PEFT's and Unsloth's print_trainable_parameters, torchtune's README.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from cases import cases

from perfmodel import load
from perfmodel.compression import quantised
from perfmodel.errors import PerfmodelError
from perfmodel.networks import library
from perfmodel.networks.expand import expand, parameter_count
from perfmodel.networks.finetuning import FineTuning
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.setting import Setting
from perfmodel.networks.stack import load as load_stack
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.training.plan import Plan
from perfmodel.training.step import predict_step
from perfmodel.training.stepmemory import allocated_bytes, memory

GIB = 2**30
LLAMA = library.load("llama-3-8b")
A100 = load("a100")
QKVUD = "q,k,v,up,down"


def trained(name: str, rank: int, targets: str, **fields) -> int:
    tuning = FineTuning(lora=rank, lora_targets=targets, **fields)
    return parameter_count(library.load(name), tuning, trained=True)


def memory_of(network, plan):
    parts = [(segment, segment.repeat) for segment in expand(network, plan.setting)]
    return memory(parts, plan, plan.recipe, None)


def kernels(plan: Plan, network=LLAMA, way: str = "backward") -> list[str]:
    tapes = [getattr(segment, way) for segment in expand(network, plan.setting)]
    return [node.name for tape in tapes for node in tape.nodes]


@cases
def test_trained_parameters_are_those_published(network, rank, targets, count, tolerance):
    assert trained(network, rank, targets) == pytest.approx(count, rel=tolerance)


@cases
def test_shares_that_train_are_those_of_dora_table_1(network, dora, percent):
    whole = library.load(network)
    count = trained(network, 32, QKVUD, dora=dora)
    total = parameter_count(whole, FineTuning(lora=32, lora_targets=QKVUD, dora=dora))
    assert 100 * count / total == pytest.approx(percent, abs=0.015)


def test_an_adapter_has_r_times_in_plus_out_parameters():
    block = LLAMA.blocks[0]
    hidden, kv = LLAMA.hidden, block.attention.kv_heads * block.attention.head_size
    for rank in (1, 16, 256):
        assert trained("llama-3-8b", rank, "k") == LLAMA.layers * rank * (hidden + kv)
        assert trained("llama-3-8b", rank, "down") == LLAMA.layers * rank * (
            hidden + block.mlp.inner
        )


def test_double_quantisation_takes_an_eighth_of_a_bit_a_weight():
    """QLoRA, section 3: 8/64 + 32/(64 x 256) = 0.127 bits for 32/64 = 0.5."""
    assert quantised.load("nf4").bits_at(1) - 4 == pytest.approx(0.127, abs=5e-4)
    assert quantised.load("nf4-single").bits_at(1) - 4 == 0.5


def test_frozen_bytes_are_the_formats():
    plan = Plan(lora=16, base="nf4", stack="torchtune", accumulation=2)
    lines = memory_of(LLAMA, plan).lines
    tables = 2 * LLAMA.vocabulary * LLAMA.hidden
    norms = (2 * LLAMA.layers + 1) * LLAMA.hidden
    matrices = parameter_count(LLAMA) - tables - norms
    bits = 4 + 8 / 64 + 32 / (64 * 256)
    assert lines["frozen weights"] == pytest.approx(matrices * bits / 8 + 2 * (tables + norms))
    assert lines["optimiser states"] == 2 * lines["weights"] == 2 * lines["gradients"]


@cases
def test_memory_is_that_of_torchtune(network, seq, options, gib):
    """README of torchtune 0.5, peak memory of two packed sequences on one device."""
    plan = Plan(
        seq=seq, micro_batch=2, stack="torchtune", recompute="full-host", lora=8,
        lora_targets="q,v,o,mlp", **options,
    )  # fmt: skip
    held = allocated_bytes(memory_of(library.load(network), plan))
    assert held / GIB == pytest.approx(gib, rel=0.10)


def test_frozen_weights_have_no_gradients():
    names = kernels(Plan(lora=16, lora_targets="q,v", stack="eager"))
    products = [name for name in names if name.endswith(".wgrad")]
    assert products
    assert all(name.endswith((" A.wgrad", " B.wgrad")) for name in products)
    everything = kernels(Plan(stack="eager"))
    base = {n for n in everything if n.endswith(".dgrad")}
    assert base <= set(names)  # all input gradients remain


def test_a_backward_pass_ends_where_nothing_before_it_trains():
    assert kernels(Plan(trains="none", stack="eager")) == []
    head = kernels(Plan(trains="head", stack="eager"))
    assert [name for name in head if name.startswith("logits")] == ["logits.wgrad"]
    plan = Plan(frozen_layers=30, stack="eager")
    segments = {s.name: s for s in expand(LLAMA, plan.setting)}
    assert segments["frozen block"].repeat == 30
    assert segments["block"].repeat == 2
    assert segments["frozen block"].saved_bytes == 0
    assert not segments["frozen block"].backward.nodes
    assert segments["block"].backward.nodes


def test_activations_are_kept_only_where_a_gradient_needs_them():
    plan = Plan(stack="compile", accumulation=2)
    full = memory_of(LLAMA, plan).lines["activations"]
    adapters = memory_of(LLAMA, replace(plan, lora=1)).lines["activations"]
    products = memory_of(LLAMA, replace(plan, lora=1, lora_targets="all"))
    last = memory_of(LLAMA, replace(plan, frozen_layers=24)).lines["activations"]
    assert adapters < products.lines["activations"] < 1.01 * full
    assert last == pytest.approx(full / 4, rel=0.01)


def test_gradients_of_one_copy_and_the_activations_of_all_layers_are_not_there_at_once():
    """PyTorch frees gradients between steps; sums of micro-batches, of copies and of Megatron's
    buffer are there all the time."""
    for seq, kept in ((512, False), (16384, True)):  # states are larger; activations are
        plan = Plan(seq=seq, stack="compile", optimiser="adamw")
        once = memory_of(LLAMA, plan)
        sums = memory_of(LLAMA, replace(plan, accumulation=2))
        gradients = sums.lines["gradients"]
        assert ("gradients" in once.lines) is not kept
        least = min(gradients, sums.lines["activations"] + sums.lines.get("logits", 0.0))
        assert 0 < sums.peak_bytes - once.peak_bytes <= least
    for change in ({"stack": "megatron"}, {"data": 2}):
        assert "gradients" in memory_of(LLAMA, replace(plan, **change)).lines


def test_memory_grows_with_the_rank_and_with_the_targets():
    sizes = [
        memory_of(LLAMA, Plan(lora=rank, lora_targets=targets, stack="eager")).peak_bytes
        for targets in ("q,v", "attention", "all")
        for rank in (1, 8, 64)
    ]
    assert sizes[:3] == sorted(sizes[:3])
    assert sizes[3:6] == sorted(sizes[3:6])
    assert sizes[0] < sizes[3] < sizes[6]
    assert len(set(sizes)) == len(sizes)


def test_zero_shards_adapters_and_frozen_weights_alike():
    plan = Plan(lora=16, stack="torchtune", accumulation=2)
    whole = memory_of(LLAMA, plan).lines
    shards = memory_of(LLAMA, replace(plan, data=8, zero=3)).lines
    for kind in ("frozen weights", "weights", "gradients", "optimiser states"):
        assert shards[kind] == pytest.approx(whole[kind] / 8)


def test_model_flops_of_frozen_weights_are_four_a_token():
    """A forward product and an input gradient; with everything frozen the forward pass alone."""
    seq = 2048
    full = flops_per_token(LLAMA, seq)
    half = flops_per_token(LLAMA, seq, tuning=FineTuning(lora=1, lora_targets="q"))
    none = flops_per_token(LLAMA, seq, tuning=FineTuning(trains="none"))
    products = parameter_count(LLAMA) - LLAMA.vocabulary * LLAMA.hidden
    assert full - half == pytest.approx(2 * products, rel=0.001)
    assert none == pytest.approx(full / 3, rel=0.001)


def test_a_step_with_adapters_takes_longer_than_without_and_less_than_all():
    """A high rank costs more than a low one; what is frozen costs less than what trains."""
    plan = Plan(seq=2048, stack="compile")
    forward = predict_step(LLAMA, replace(plan, training=False, optimiser="none"), A100).seconds
    times = [
        predict_step(LLAMA, replace(plan, lora=rank, lora_targets="all"), A100).seconds
        for rank in (8, 64, 512)
    ]
    full = predict_step(LLAMA, plan, A100).seconds
    assert forward < times[0] < times[1] < times[2]
    assert times[0] < full


def test_no_saving_of_memory_is_free():
    plan = Plan(seq=2048, stack="eager", lora=16, lora_targets="all")
    steps = [
        predict_step(LLAMA, replace(plan, **more), A100)
        for more in ({}, {"base": "nf4-single"}, {"base": "nf4"})
    ]
    sizes = [step.memory.peak_bytes for step in steps]
    assert sizes[0] > sizes[1] > sizes[2]
    assert steps[0].seconds < steps[1].seconds < steps[2].seconds
    assert steps[0].seconds < predict_step(LLAMA, replace(plan, dora=True), A100).seconds


def test_adapters_in_their_products_epilogue_are_faster_than_apart():
    assert load_stack("unsloth").fused_adapters
    apart, fused = (
        predict_step(LLAMA, Plan(stack=stack, lora=16, lora_targets="all"), A100)
        for stack in ("liger", "unsloth")
    )
    assert fused.seconds < apart.seconds


def test_dequantisation_moves_the_formats_bytes():
    """Read 4.5 bits and write 16 a weight, forward and backward; scales 1 + 4 + 4 + 4 bytes."""
    plan = Plan(lora=16, base="nf4", stack="eager")
    block = next(s for s in expand(LLAMA, plan.setting) if s.name == "block")
    for tape in (block.forward, block.backward):
        tensors = tape.graph.tensors
        sources = [t for name, t in tensors.items() if " in bits4.5" in name]
        down = next(t for t in sources if t.name.startswith("mlp down"))
        hidden, inner = LLAMA.hidden, LLAMA.blocks[0].mlp.inner
        assert down.bytes == pytest.approx(hidden * inner * 4.5 / 8, rel=1e-3)
        assert len(sources) == 7


def test_packed_documents_attend_to_themselves():
    """Attention's work falls with the documents of a row; padding counts in time, not in tokens."""
    plan = Plan(seq=8192, stack="compile")
    whole, packed = (
        predict_step(LLAMA, replace(plan, packed=number), A100) for number in (1.0, 16.0)
    )
    assert packed.classes["attention"] < whole.classes["attention"] / 4
    assert packed.classes["matmul"] == pytest.approx(whole.classes["matmul"])
    half = predict_step(LLAMA, replace(plan, fill=0.5), A100)
    assert half.tokens_per_second * half.seconds == pytest.approx(8192 / 2)
    assert half.classes["attention"] < whole.classes["attention"] / 2
    assert half.classes["matmul"] == pytest.approx(whole.classes["matmul"])


def test_activations_in_host_memory_take_no_less_time():
    plan = Plan(seq=4096, stack="compile", lora=16, recompute="full")
    device = predict_step(LLAMA, plan, A100)
    host = predict_step(LLAMA, replace(plan, recompute="full-host"), A100)
    assert host.seconds >= device.seconds
    assert host.memory.peak_bytes < device.memory.peak_bytes


def test_a_paged_optimiser_moves_what_does_not_fit_and_pays_the_link():
    """States leave the device only as far as it is short, there and back in each update."""
    small = load("rtx-4090")
    plan = Plan(seq=4096, micro_batch=2, lora=512, lora_targets="all", base="nf4", stack="liger",
                recompute="full")  # fmt: skip
    kept, paged = (predict_step(LLAMA, replace(plan, paged=on), small) for on in (False, True))
    short = kept.memory.lacking_bytes
    assert short > 0
    assert paged.memory.footprints["host"] == pytest.approx(short)
    assert paged.memory.fits
    link = host_bytes_per_s(small)
    assert paged.seconds - kept.seconds == pytest.approx(2 * short / link, rel=1e-6)
    roomy = predict_step(LLAMA, replace(plan, paged=True), A100)
    assert "host" not in roomy.memory.footprints


@pytest.mark.parametrize(
    ("targets", "shapes"),
    [
        ("attention", [(4096, 16), (16, 6144)]),  # one adapter of the joined product
        ("q,v", [(4096, 16), (16, 4096), (4096, 16), (16, 1024)]),  # one of each named part
    ],
)
def test_a_joined_product_has_one_adapter_or_one_of_each_named_part(targets, shapes):
    plan = Plan(lora=16, lora_targets=targets, stack="te")
    block = next(s for s in expand(LLAMA, plan.setting) if s.name == "block")
    assert [
        w.shape for w in block.weights if w.trains and not w.name.startswith("attention output")
    ] == shapes


def test_experts_have_an_adapter_each():
    count = trained("mixtral-8x7b", 8, "down")
    mixtral = library.load("mixtral-8x7b")
    mlp = mixtral.blocks[0].mlp
    assert count == mixtral.layers * mlp.experts * 8 * (mixtral.hidden + mlp.inner)


@cases
def test_fields_that_do_not_go_together_are_refused(fields, message):
    with pytest.raises(PerfmodelError, match=message):
        Plan(**fields)


@cases
def test_what_a_network_does_not_have_is_refused(network, fields, message):
    with pytest.raises(PerfmodelError, match=message):
        expand(library.load(network), Plan(stack="eager", **fields).setting)


def test_a_setting_without_tuning_is_as_before():
    sizes = Setting(batch=1, seq=128, training=True)
    assert all(w.trains for s in expand(LLAMA, sizes) for w in s.weights)
    assert all(len(s.active) == len(s.operations) for s in expand(LLAMA, sizes))
