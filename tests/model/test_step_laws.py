"""Laws of a network's and of a training step's time and memory, on random networks and plans."""

from __future__ import annotations

from dataclasses import replace

import pytest
from draws import DRAWS
from hypothesis import given
from hypothesis import strategies as st
from networksamples import STACKS, networks, setting
from strategies import examples

from perfmodel.errors import UnknownName
from perfmodel.graph.live import Memory, Span
from perfmodel.hardware import load
from perfmodel.networks import hosts, library
from perfmodel.networks.expand import expand
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.networktime import predict_network
from perfmodel.networks.recorder import Exchanged
from perfmodel.networks.value import Value
from perfmodel.training import step
from perfmodel.training.copies import Copies
from perfmodel.training.fabric import Fabric, exchange, fabric
from perfmodel.training.layers import layers
from perfmodel.training.pipeline import KINDS
from perfmodel.training.plan import Plan
from perfmodel.training.step import Step, predict_step
from perfmodel.training.stepmemory import allocated_bytes

SLUGS = ("a100-sxm4-80gb", "h100-sxm", "v100-sxm2")
devices = st.sampled_from(SLUGS)
ROUNDING = 1e-9


def predicted(network: Network, plan: Plan, device) -> Step | None:
    """The step, counted; none where it is refused."""
    return DRAWS.counted(predict_step, network, plan, device)


@st.composite
def plans(draw, training: bool = True) -> Plan:
    """A step of one device."""
    return Plan(
        seq=32 * draw(st.integers(1, 2)),
        micro_batch=draw(st.integers(1, 4)),
        accumulation=draw(st.integers(1, 3)),
        recompute=draw(st.sampled_from(["none", "selective", "selective-op", "full"])),
        dtype=draw(st.sampled_from(["fp16", "fp32"])),
        stack=draw(st.sampled_from(STACKS)),
        attention=draw(st.sampled_from(["unfused", "flash"])),
        optimiser=draw(st.sampled_from(["adamw", "sgd", "none"])),
        training=training,
    )


# ---- Time ----------------------------------------------------------------------------------------

RATES = ("hbm_bandwidth", "l2_bandwidth", "matrix", "vector", "special", "clock",
         "shared_bandwidth", "power")  # fmt: skip


@examples(0.4)
@given(networks(), plans(), devices, st.sampled_from(RATES), st.sampled_from([1.25, 2.0]))
def test_a_step_gets_no_longer_with_any_rate(network, plan, slug, rate, factor):
    device = load(slug)
    first = predicted(network, plan, device)
    better = predicted(network, plan, device.scaled(**{rate: factor}))
    assert first is not None
    assert better is not None
    assert better.seconds <= first.seconds * (1 + ROUNDING)


@examples(0.4)
@given(networks(), plans(), devices)
def test_a_step_is_no_shorter_than_its_operations_and_its_bytes(network, plan, slug):
    device = load(slug)
    found = predicted(network, plan, device)
    assert found is not None
    segments = expand(network, plan.setting)
    kernels = [
        (runs * one.repeat * plan.accumulation * kernel.repeat, kernel)
        for one in layers(predict_network(network, plan.setting, device), segments, plan)
        for kernel, runs in one.kernels()
    ]
    operations = sum(n * each.run.flops["matrix"] for n, each in kernels)
    moved = sum(n * each.run.bytes["hbm"] for n, each in kernels)
    fastest = max(device.matrix_flops(dtype) for dtype in device.matrix_types)
    assert found.seconds >= operations / fastest
    assert found.seconds >= moved / device.hbm_bytes_per_s
    assert found.seconds >= sum(n * each.seconds / each.repeat for n, each in kernels)


@examples(0.4)
@given(networks(), plans(), devices)
def test_a_step_is_its_classes_and_lies_in_its_range(network, plan, slug):
    found = predicted(network, plan, load(slug))
    assert found is not None
    assert sum(found.classes.values()) == pytest.approx(found.seconds, rel=1e-9)
    assert found.low_seconds < found.seconds < found.high_seconds
    assert found.limiter in found.classes
    assert found.forward_seconds + found.backward_seconds <= found.seconds * (1 + ROUNDING)


@examples(0.4)
@given(networks(), plans(), devices, st.integers(1, 3))
def test_more_micro_batches_recomputation_and_layers_take_longer(network, plan, slug, more):
    device = load(slug)
    alone = predicted(network, replace(plan, recompute="none"), device)
    again = predicted(network, replace(plan, recompute="full"), device)
    twice = predicted(network, replace(plan, accumulation=plan.accumulation + more), device)
    first = predicted(network, plan, device)
    assert alone is not None
    assert alone.seconds <= first.seconds * (1 + ROUNDING)
    assert first.seconds <= again.seconds * (1 + ROUNDING)
    assert first.seconds < twice.seconds
    assert twice.seconds <= first.seconds * (plan.accumulation + more) / plan.accumulation * 1.001


@examples(0.4)
@given(networks(), plans(training=False), devices)
def test_a_forward_pass_is_shorter_than_one_that_trains(network, plan, slug):
    forward = predicted(network, plan, load(slug))
    trained = predicted(network, replace(plan, training=True), load(slug))
    assert forward is not None
    assert forward.seconds < trained.seconds


@examples(0.32)
@given(networks(), st.sampled_from(STACKS), devices)
def test_graphs_and_quicker_hosts_take_no_longer(network, stack, slug):
    def seconds(name):
        given_ = setting(2, 32, stack)
        given_ = replace(given_, stack=replace(given_.stack, host=name))
        return predict_network(network, given_, load(slug)).seconds

    assert seconds("graph") <= seconds("compile") <= seconds("eager")


# ---- Memory --------------------------------------------------------------------------------------


@examples(0.4)
@given(networks(), plans(), devices)
def test_shards_of_one_copy_are_the_whole(network, plan, slug):
    plan = replace(plan, precision="megatron")
    device = load(slug)
    whole = predicted(network, replace(plan, zero=0), device)
    shards = predicted(network, replace(plan, zero=3), device)
    assert whole is not None
    assert shards.memory.lines == whole.memory.lines
    assert shards.seconds == pytest.approx(whole.seconds, rel=1e-12)


SHARED = ("weights", "gradients", "master weights", "optimiser states")


@examples(0.32)
@given(networks(), plans(), st.sampled_from([2, 4, 8]))
def test_each_stage_of_zero_holds_no_more_than_the_one_before(network, plan, copies):
    plan = replace(plan, precision="megatron", data=copies)
    held = []
    for zero in range(4):
        found = predicted(network, replace(plan, zero=zero), load("a100-sxm4-80gb"))
        assert found is not None
        lines = found.memory.lines
        held.append(sum(lines.get(name, 0.0) for name in SHARED))
    assert held == sorted(held, reverse=True)
    assert held[3] == pytest.approx(held[0] / copies)


@examples(0.4)
@given(networks(), plans(), st.sampled_from(STACKS))
def test_recomputing_more_never_holds_more_between_passes(network, plan, stack):
    held = {}
    for mode in ("none", "selective", "full", "host"):
        given_ = replace(plan, recompute=mode, stack=stack)
        found = predicted(network, given_, load("a100-sxm4-80gb"))
        assert found is not None
        held[mode] = found.memory.lines.get("activations", 0.0)
    assert list(held.values()) == sorted(held.values(), reverse=True)


def test_what_lacks_is_said_in_bytes():
    spans = (Span("weights", 100.0, 0, 0), Span("context", 5.0, 0, 0))
    found = Memory(spans, ("step",), {"hbm": 60.0})
    assert (found.fits, found.lacking_bytes, allocated_bytes(found)) == (False, 45.0, 100.0)
    assert replace(found, rooms={}).fits


# ---- Links ---------------------------------------------------------------------------------------

LLAMA = Network("llama", 64, 96, (Block(SelfAttention(4, 2, 16), Mlp(128), 4),))
MOE = Network("moe", 64, 96, (Block(SelfAttention(4, 2, 16), Mlp(32, experts=8, chosen=2), 4),))
RATE = 1e11


def linked(monkeypatch, node_devices=8, rate=RATE):
    """Every exchange takes its bytes over one rate, whoever takes part; those that were asked."""
    asked = []

    def ask(op, tensor_bytes, ranks, near, _stride):
        asked.append((op, tensor_bytes, ranks))
        each = tensor_bytes * (ranks - 1) / ranks / rate
        return exchange("all-reduce", (each, 0.9 * each, 1.1 * each))

    monkeypatch.setattr(step, "fabric", lambda plan, *_: Fabric(plan, node_devices, ask))
    return asked


MESHES = [
    {"tensor": 4, "sequence": False}, {"tensor": 2, "data": 2}, {"data": 8}, {"data": 4, "zero": 3},
    {"data": 4, "zero": 1}, {"context": 2, "data": 2}, {"pipeline": 2, "accumulation": 4},
    {"pipeline": 2, "data": 2, "tensor": 2, "accumulation": 4}, {"data": 4, "expert": 4},
    {"data": 2, "tensor": 2, "expert": 4}, {"data": 8, "expert": 2, "zero": 1},
]  # fmt: skip


def step_of(mesh, stack="te", **more) -> Step:
    network = MOE if "expert" in mesh else LLAMA
    found = predicted(network, Plan(seq=128, stack=stack, **mesh, **more), load("h100-sxm"))
    assert found is not None
    return found


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_where_links_are_equal_it_is_the_same_which_devices_are_neighbours(monkeypatch, mesh):
    found = set()
    for node_devices in (1, 2, 8, 64):
        linked(monkeypatch, node_devices)
        # A transfer to another node holds fewer units, which is no matter of the mesh.
        monkeypatch.setattr("perfmodel.training.copies.NETWORK_UNITS", 0.15)
        # This stack sends a row as often as it is asked for, not once to a node.
        found.add(step_of(mesh, stack="megatron").seconds)
    assert len(found) == 1


@pytest.mark.parametrize("mesh", MESHES, ids=str)
def test_faster_links_take_no_longer_and_a_step_holds_its_longest_exchange(monkeypatch, mesh):
    times = []
    for rate in (1e6, 1e8, 1e10, 1e12):
        asked = linked(monkeypatch, rate=rate)
        found = step_of(mesh)
        times.append(found.seconds)
        assert asked
        assert found.seconds >= max(size * (n - 1) / n / rate for _, size, n in asked)
        assert sum(found.classes.values()) == pytest.approx(found.seconds, rel=1e-9)
    assert times[0] > times[-1]
    assert times == sorted(times, reverse=True)


@given(st.floats(0.0, 1.0), st.floats(0.0, 1.0), st.sampled_from([1, 8]))
def test_overlap_lies_between_the_larger_and_the_sum(layer, transfer, node_devices):
    from perfmodel.graph.stretch import Stretch

    plan = Plan(seq=16, data=8, zero=3)
    copies = Copies(plan, Fabric(plan, node_devices), hosts.load(plan.setting.stack.host))
    found = copies.beside(Stretch.of(layer, 0.0), transfer)
    assert max(layer, transfer) <= found.device_seconds * (1 + 1e-12)
    assert found.device_seconds <= (layer + transfer) * (1 + 1e-12)
    assert found.latest_seconds == pytest.approx(found.device_seconds)


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0), st.sampled_from(["megatron", "te", "nemo"]))
def test_an_exchange_in_tiles_hides_all_but_a_tile_at_most(product, transfer, stack):
    plan = Plan(seq=16, tensor=4, stack=stack)
    links = Fabric(plan, 8, lambda *_: exchange("all-reduce", (transfer,) * 3))
    one = Exchanged("gather", "all-gather", "tensor", 1.0, Value("x", 1, 1, "bf16"), 0)
    alone, beside = links.seconds(one, 0.0, 0.0), links.seconds(one, product, 0.0)
    tiles = plan.setting.stack.tiles
    assert alone == transfer
    assert transfer / tiles * (1 - 1e-9) <= beside <= transfer * (1 + 1e-9)
    assert (beside < transfer) == (tiles > 1)


@given(st.floats(1e-6, 1.0), st.floats(1e-6, 1.0))
def test_gradients_of_inputs_are_added_up_beside_those_of_weights(product, transfer):
    """Megatron-LM since 2022: the product is slower by the units that the exchange occupies."""
    one = Exchanged("sum", "all-reduce", "tensor", 1.0, Value("x", 1, 1, "bf16"), 0)
    for stack, beside in (("megatron", True), ("megatron-2021", False), ("eager", False)):
        plan = Plan(seq=16, tensor=4, stack=stack)
        links = Fabric(plan, 8, lambda *_: exchange("all-reduce", (transfer,) * 3))
        added = links.seconds(one, 0.0, product)
        assert max(transfer - product, 0.0) <= added * (1 + 1e-9)
        assert (added < transfer * 0.9) == beside or product < transfer / 5
        assert beside or added == transfer


@pytest.mark.parametrize("kind", KINDS)
def test_the_parts_of_a_pipelines_step_are_no_longer_than_it(kind):
    """Where each direction has half of the micro-batches, its layers run half as often."""
    chunks = KINDS[kind].chunks or 2
    plan = Plan(
        seq=16, pipeline=2, chunks=chunks, schedule=kind, accumulation=8, tensor=2, stack="te"
    )
    found = predict_step(LLAMA, plan, load("h100-sxm"))
    assert sum(found.classes.values()) <= found.seconds * 1.001


@given(st.sampled_from(["norms", "attention", "activations", "norms+attention+activations"]))
def test_recomputed_parts_lie_between_all_and_nothing(mode):
    """Each part drops what it makes, and runs its own kernels again, without an exchange."""
    times, sizes = {}, {}
    for each in ("none", mode, "full"):
        plan = Plan(seq=256, tensor=2, recompute=each, stack="te")
        found = predict_step(LLAMA, plan, load("h100-sxm"))
        times[each], sizes[each] = found.recompute_seconds, found.memory.lines["activations"]
        waits = found.classes["communication"]
        assert each == "full" or waits == pytest.approx(
            predict_step(LLAMA, replace(plan, recompute="none"), load("h100-sxm"))
            .classes["communication"]
        )  # fmt: skip
    assert sizes["full"] < sizes[mode] < sizes["none"]
    assert times["none"] == 0.0 < times[mode] < times["full"]


def test_a_part_that_nothing_has_is_refused():
    with pytest.raises(UnknownName, match="no recomputation named 'norm'; did you mean norms"):
        Plan(recompute="norm+attention")


@pytest.mark.parametrize("recompute", ["none", "selective", "full"])
def test_weights_in_shards_enter_a_node_of_deepspeed_by_one_adapter(recompute):
    """Narayanan et al. (2104.04473), table 2: 349 GB of weights a gather at 25 GB/s, three times in
    a step, and four with full recomputation."""
    network, a100 = library.load("gpt3-175b"), load("a100-sxm4-80gb")
    plan = Plan(data=768, zero=3, dtype="fp16", recompute=recompute, stack="deepspeed")
    found, fsdp = (
        predict_step(network, replace(plan, stack=s), a100).seconds for s in ("deepspeed", "eager")
    )
    adapter = sum(n * dense for n, dense, _ in weights_of(network, plan)) * 2 / 25e9
    passes = 4 if recompute == "full" else 3
    assert found > passes * adapter
    assert found == pytest.approx(passes * adapter / 0.9, rel=0.05)
    assert fsdp < found / 2


@given(st.integers(1, 16), st.sampled_from([2, 4, 8]), st.integers(1, 8))
def test_megatrons_fused_softmax_takes_multiples_of_four_heads(heads, tensor, batch):
    """Elsewhere torch casts, scales, masks and normalises (fused_softmax.py)."""
    network = replace(LLAMA, blocks=tuple(
        replace(b, attention=replace(b.attention, heads=heads * tensor, kv_heads=heads * tensor))
        for b in LLAMA.blocks
    ))  # fmt: skip
    setting = Plan(seq=512, micro_batch=batch, tensor=tensor, dtype="fp16", attention="").setting
    names = [k for one in expand(network, setting) for k in one.forward.graph.nodes]
    wide = any(".mask" in node.name for node in names)
    assert wide == bool(heads * batch % 4)


def weights_of(network, plan):
    """Parameters of each segment of a network."""
    return [
        (one.repeat, sum(w.elements for w in one.weights if not w.shared and not w.expert),
         sum(w.elements for w in one.weights if w.expert))
        for one in expand(network, plan.setting)
    ]  # fmt: skip


def test_bytes_of_copies_are_those_of_the_published_table(monkeypatch):
    """Data parallel 2Ψ or 4Ψ by the gradients' type, FSDP 2Ψ a gather, twice, and 2Ψ a scatter."""
    plan = Plan(seq=128, data=4)
    whole = sum(n * dense for n, dense, _ in weights_of(LLAMA, plan))
    for precision, width in (("megatron", 4), ("autocast", 4)):
        asked = linked(monkeypatch)
        step_of({"data": 4}, precision=precision)
        first = weights_of(LLAMA, plan)[0][1]
        assert ("all-reduce", first * width, 4) in asked
    asked = linked(monkeypatch)
    found = predicted(LLAMA, replace(plan, stack="megatron"), load("h100-sxm"))
    assert found is not None
    # Nothing overlaps in Megatron's own stack: one sum of all gradients in fp32.
    assert asked == [("all-reduce", whole * 4, 4)]
    asked = linked(monkeypatch)
    step_of({"data": 4, "zero": 3})
    layers_ = {dense for _, dense, _ in weights_of(LLAMA, plan)}
    assert {each for op, each, _ in asked if op == "all-gather"} == {2 * n for n in layers_}
    assert {each for op, each, _ in asked if op == "reduce-scatter"} == {2 * n for n in layers_}
    assert {op for op, _, _ in asked} == {"all-gather", "reduce-scatter"}


def test_stages_send_rows_of_the_residual_stream(monkeypatch):
    whole = 3 * 128 * 64 * 2
    for mesh, sent in (({}, whole), ({"tensor": 2}, whole / 2),
                       ({"tensor": 2, "sequence": False}, whole / 2)):  # fmt: skip
        asked = linked(monkeypatch)
        step_of({"pipeline": 2, "accumulation": 4, "micro_batch": 3, **mesh})
        assert {each for op, each, _ in asked if op == "send-receive"} == {sent}


def test_experts_are_summed_and_shared_out_among_their_own_copies(monkeypatch):
    """Of d copies of a layer d/e have an expert."""
    asked = linked(monkeypatch)
    plan = Plan(seq=128, stack="te", data=8, expert=2, zero=1)
    found = predicted(MOE, plan, load("h100-sxm"))
    assert found is not None
    dense = sum(n * each for n, each, _ in weights_of(MOE, plan))
    experts = sum(n * each for n, _, each in weights_of(MOE, plan))
    assert experts == 4 * 8 * 3 * 64 * 32 / 2
    # All weights back to their copies, in 16 bits.
    assert ("all-gather", 2 * dense, 8) in asked
    assert ("all-gather", 2 * experts, 4) in asked
    lines = found.memory.lines
    assert lines["weights"] == 2 * (dense + experts)
    assert lines["optimiser states"] == 8 * dense / 8 + 8 * experts / 4
    assert lines["master weights"] == 4 * dense / 8 + 4 * experts / 4
    alone = predicted(MOE, replace(plan, expert=1), load("h100-sxm"))
    assert alone is not None
    assert alone.memory.lines["optimiser states"] == pytest.approx(8 * (dense + 2 * experts) / 8)


def test_states_are_those_of_the_published_table():
    # Rajbhandari et al. (1910.02054), table 1: (4 + K)Ψ with K = 12, without exchange or context.
    network = library.load("gpt3-6.7b")
    plan = Plan(seq=128, precision="mixed", recompute="full")
    found = predicted(network, plan, load("a100-sxm4-80gb"))
    assert found is not None
    total = sum(each * n for n, each, _ in weights_of(network, plan))
    assert sum(found.memory.lines.get(name, 0.0) for name in SHARED) == 16 * total


def test_keys_that_are_gathered_before_attention_are_waited_for():
    """Llama 3's context parallelism (2407.21783, section 3.3.2) sends the bytes of a ring, and no
    kernel hides them."""
    network, device = library.load("llama-3-8b"), load("h100-sxm")
    waits, sent = [], []
    for stack in ("megatron-2021", "llama3"):
        plan = Plan(seq=8192, context=4, stack=stack)
        prediction = predict_network(network, plan.setting, device)
        links = fabric(plan, device)
        every = layers(prediction, expand(network, plan.setting), plan)
        work = next(each for each in every if each.segment.block)
        waits.append(work.exchanged(links.seconds))
        moved = [e for line in (work.first, *work.second) for e in line[1] if e.axis == "context"]
        sent.append(sum(e.tensor_bytes for e in moved))
        total = sum(links.between(e).seconds for e in moved)
    assert sent[0] == sent[1] > 0
    assert waits[0] < waits[1] == pytest.approx(total)
