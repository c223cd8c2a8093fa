"""Modules of transformers: their traces are the networks of their configurations.

The trace reads the code of a model, the import reads the sizes in its configuration. They know
nothing of each other, so where they differ one of them is wrong, or the code does what no size
says. What the code does beside is listed here, kernel by kernel.
"""

import json
import operator
import re
from collections import Counter
from dataclasses import replace
from functools import cache

import pytest
from folders import ROOT
from refusing import refused

from perfmodel import load, predict_graph
from perfmodel.networks.expand import expand, parameter_count
from perfmodel.networks.huggingface import read
from perfmodel.networks.setting import Setting
from perfmodel.tracing import trace
from perfmodel.tracing.exporting import exported

torch = pytest.importorskip("torch")
transformers = pytest.importorskip(
    "transformers", reason="transformers is not installed; it is in the extra dev"
)
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

BATCH, SEQ, WINDOW = 3, 40, 16
TOKENS = BATCH * SEQ
# Every extent is another number, so that no axis is taken for another.
TABLE = {"vocab_size": 1000, "pad_token_id": None, "bos_token_id": 1, "eos_token_id": 2}
SIZES = {
    **TABLE, "hidden_size": 96, "num_hidden_layers": 2, "num_attention_heads": 6,
    "max_position_embeddings": 128, "intermediate_size": 272,
}  # fmt: skip
GROUPED = {**SIZES, "num_key_value_heads": 2}
EXPERTS = {"num_experts_per_tok": 2, "moe_intermediate_size": 56}
FAMILIES = {
    "Llama": GROUPED,
    "GPT2": {"n_embd": 96, "n_layer": 2, "n_head": 6, "n_positions": 128, "n_inner": 272, **TABLE},
    "Bert": SIZES,
    "OPT": {**SIZES, "ffn_dim": 272, "word_embed_proj_dim": 96},
    "Mistral": {**GROUPED, "sliding_window": WINDOW},
    "Qwen3Moe": {**GROUPED, **EXPERTS, "head_dim": 24, "num_experts": 8},
    "DeepseekV3": {
        **SIZES, **EXPERTS, "num_key_value_heads": 6, "n_routed_experts": 8, "n_shared_experts": 1,
        "q_lora_rank": 48, "kv_lora_rank": 32, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16,
        "v_head_dim": 20, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1,
    },
    "Gemma3": {**GROUPED, "head_dim": 24, "sliding_window": WINDOW},
    "Falcon": {**SIZES, "ffn_hidden_size": 272, "new_decoder_architecture": True,
               "num_kv_heads": 2, "alibi": False},
    "GptOss": {**GROUPED, "intermediate_size": 56, "head_dim": 24, "num_local_experts": 8,
               "num_experts_per_tok": 2, "sliding_window": WINDOW},
}  # fmt: skip
UNLIKE = ("Llama", "DeepseekV3", "Gemma3", "GptOss")
"""One of each kind of code: plain, latent with experts, with windows, with sinks."""
FUSED = [name for name in FAMILIES if name != "GptOss"]  # whose sinks no fused kernel of torch has


def config(name, attention, **sizes):
    """The configuration of a family, its cache on as it comes."""
    kind = getattr(transformers, f"{name}TextConfig" if name == "Gemma3" else f"{name}Config")
    found = kind(**{**FAMILIES[name], **sizes})
    found._attn_implementation = attention
    return found


def module(made, dtype=torch.bfloat16):
    """The language model of a configuration, on the meta device."""
    kind = type(made).__name__.removesuffix("Config").removesuffix("Text")
    called = {"GPT2": "GPT2LMHeadModel", "Bert": "BertModel"}.get(kind, f"{kind}ForCausalLM")
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device("meta"):
            return getattr(transformers, called)(made).eval()
    finally:
        torch.set_default_dtype(before)


def given(name):
    """Tokens; of BERT with a mask, without which it hides nothing."""
    ids = torch.zeros(BATCH, SEQ, dtype=torch.int64, device="meta")
    return (ids, ids) if name == "Bert" else (ids,)


@cache
def traced(name, attention="eager", **sizes):
    """The trace of a family, made once."""
    return trace(module(config(name, attention, **sizes)), given(name))


def network(name, **sizes):
    """What the import reads in its configuration."""
    return read(config(name, "eager", **sizes).to_dict())


def kernels(name, attention="", **sizes):
    """Every kernel of its network: what it is called, its node and its tensors."""
    segments = expand(network(name, **sizes).network, Setting(BATCH, SEQ, attention=attention))
    return [
        (node.name, node, segment.forward.graph.tensors)
        for segment in segments
        for node in segment.forward.graph.nodes
        for _ in range(segment.repeat * node.repeat)
    ]


def is_product(node):
    return node.problem.operator in ("gemm", "attention")


def moved(node, tensors):
    """Bytes of each operand that is read, and of each that is written, no tensor counted twice."""

    def sizes(edges):
        for edge in edges:
            there = sum(tensors[n].bytes for n in set(edge.tensors))
            yield min(node.operand_bytes(edge.operand), there)

    return list(sizes(node.reads)), list(sizes(node.writes))


def products(nodes):
    """Products and attention, each with the bytes of its operands."""
    return Counter(
        (node.problem, *(tuple(side) for side in moved(node, tensors)))
        for node, tensors in nodes
        if is_product(node)
    )


def of_trace(found):
    return [(node, found.graph.tensors) for node in found.graph.nodes]


# --- products and attention ------------------------------------------------------------------


@pytest.mark.parametrize("name", FAMILIES)
def test_products_are_those_of_the_configuration(name):
    """Operators, sizes, types and bytes, attention as products of its own; FLOPs follow."""
    expected = products((node, tensors) for _, node, tensors in kernels(name))
    found = products(of_trace(traced(name)))
    if name == "DeepseekV3":  # whose code alone multiplies the router's scores in fp32
        router = Counter(m for m in found.elements() if m[0].dtype == "fp32")
        assert [(m[0].m, m[0].n, m[0].k) for m in router] == [(TOKENS, 8, 96)]
        narrow = Counter(m for m in expected.elements() if m[0].n == 8)
        assert [replace(m[0], dtype="fp32") for m in narrow] == [m[0] for m in router]
        found, expected = found - router, expected - narrow
    assert found == expected


# Falcon's code repeats the keys and makes the mask a tensor, as that of windows does.
@pytest.mark.parametrize("name", [name for name in FUSED if name != "Falcon"])
def test_fused_attention_is_that_of_the_configuration(name):
    """Heads, heads of keys, queries, keys, widths and mask, where torch's kernel hides the keys."""
    sizes = {"sliding_window": 64} if "sliding_window" in FAMILIES[name] else {}
    expected = Counter(
        node.problem
        for _, node, _ in kernels(name, "flash2", **sizes)
        if node.problem.operator == "attention"
    )
    nodes = traced(name, "sdpa", **sizes).graph.nodes
    assert Counter(n.problem for n in nodes if n.problem.operator == "attention") == expected
    assert sum(expected.values()) == 2


def test_a_window_as_a_tensor_hides_nothing():
    """torch's kernels read such a mask and skip no key; the code repeats the keys for them."""
    problems = [n.problem for n in traced("Mistral", "sdpa").graph.nodes]
    windowed = [p for p in problems if p.operator == "attention"]
    assert [(p.causal, p.window, p.heads_kv) for p in windowed] == [(False, None, 6)] * 2


@pytest.mark.parametrize("name", FAMILIES)
def test_parameters_are_those_of_the_configuration(name):
    """Tied ones once. What corrects a choice of experts is a buffer, no parameter, to torch."""
    found = network(name).network
    corrections = 8 * (name == "DeepseekV3")
    parameters = sum(p.numel() for p in module(config(name, "eager")).parameters())
    assert traced(name).parameters == parameters == parameter_count(found) - corrections


TRAINED = ("Llama", "GPT2", "DeepseekV3")  # with grouped heads, without, and with experts


@pytest.mark.parametrize("name", FAMILIES)
def test_flops_are_those_of_torchs_own_counter(name):
    """Which knows no product in groups: those are 2 FLOPs for each weight that a token meets."""
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(config(name, "eager"))(given(name)[0])
    assert counter.get_total_flops() > 1e6
    assert traced(name).flops == counter.get_total_flops() + routed(name)


def routed(name):
    """FLOPs of experts: three products for each token and each expert that it goes to."""
    of = network(name).network
    each = (block.repeat * block.mlp.chosen * block.mlp.inner for block in of.blocks)
    return 2 * 3 * TOKENS * of.hidden * sum(each)


@pytest.mark.parametrize("name", TRAINED)
def test_flops_of_the_backward_pass_are_those_of_torchs_own_counter(name):
    model = module(config(name, "eager"))
    with FlopCounterMode(display=False) as counter:
        model(given(name)[0]).logits.sum().backward()
    found = trace(model, given(name), backward=True)
    assert found.flops == counter.get_total_flops() + 3 * routed(name)


@pytest.mark.parametrize("name", FAMILIES)
def test_every_key_of_a_configuration_is_read(name):
    """Whatever transformers writes into one."""
    assert not [note for note in network(name).notes if "not recognised" in note]


def test_a_bidirectional_gemma_is_not_causal():
    (block, *_) = network("Gemma3", use_bidirectional_attention=True).network.blocks
    assert not block.attention.causal


# --- every other kernel ----------------------------------------------------------------------

# What transformers' code does beside the network of its sizes, by "operator module", and what the
# network has that the code does otherwise. `eager` is the stack of plain operators.
CODE_ALONE = {
    "GPT2": {"embedding wpe": 1},
    "Bert": {"embedding position_embeddings": 1},
    "OPT": {r"(softmax|to) self_attn": 4},  # of scores in fp32, and its result narrowed
    # Rotary positions of even and odd columns, and keys put together in one tensor.
    "DeepseekV3": {r"(mul|sub|add|copy|cat) self_attn": 24},
    # The weight of a norm, in fp32 and 1 more, multiplies before the result is narrowed.
    "Gemma3": {r"mul \w*norm": 11, r"(to|add) \w*norm": 26},
    # Keys are repeated for all heads before they are rotated, by gathers of them.
    "Falcon": {r"(index|neg|mul|cat|flatten|add) self_attention": 16},
    # Sinks are joined to the scores; rotary positions by halves; norms as Gemma's.
    "GptOss": {r"(mul|sub|add|cat|max|softmax) self_attn": 28, r"mul \w*norm": 5},
}
NETWORK_ALONE = {
    "GPT2": {"positions": 2},  # rows of one sequence, added to each by the code
    "Bert": {"positions": 2},
    "OPT": {"softmax": 2},
    "Qwen3Moe": {"choice": 4},
    "DeepseekV3": {"choice": 2, "rotary": 9, "copy": 2},
    "Gemma3": {r"norm.* [268]": 8},
    "Falcon": {"rotary": 10},
    "GptOss": {"softmax": 2, "choice": 4, "rotary": 10, "norm": 5},
}


def beside(item):
    """Why a kernel of the code is in no network, whatever the family; empty where it should be."""
    if not re.search(r"\.\d+(\.|$)|norm$", item.module) and item.kind != "embedding":
        return "masks, positions and angles, once a pass"
    if re.search(r"\.(experts|gate|router)$", item.module):
        return "a token's way to its experts, which a network has in three passes"
    if item.aten == "aten.cat" and len(item.reads) == 1:
        return "keys and values put behind those of an empty cache"
    return ""


def outline(node, tensors):
    """A kernel by its class and the bytes of its operands, those left out that are small beside
    another: weights of a row, statistics, masks of all heads, angles of all sequences."""
    reads, writes = moved(node, tensors)
    most = max([*reads, *writes])
    kind = getattr(node.problem, "op", "pointwise")
    sides = (tuple(sorted(int(x) for x in side if 5 * x > most)) for side in (reads, writes))
    return kind if kind in ("softmax", "layernorm") else "map", *sides


@pytest.mark.parametrize("name", FAMILIES)
def test_every_other_kernel_is_one_of_the_eager_stack(name):
    """Norms, activations, residual sums, rotary positions, softmax: kernel by kernel."""
    found = traced(name)
    code, stack = {}, {}
    for item, (node, tensors) in zip(found.operations, of_trace(found), strict=True):
        if not is_product(node):
            label = f"{item.aten.removeprefix('aten.')} {item.module.rpartition('.')[2]}"
            code.setdefault(outline(node, tensors), []).append("" if beside(item) else label)
    for called, node, tensors in kernels(name):
        if not is_product(node):
            stack.setdefault(outline(node, tensors), []).append(called)
    assert alone(code, stack, CODE_ALONE.get(name, {})) == CODE_ALONE.get(name, {})
    assert alone(stack, code, NETWORK_ALONE.get(name, {})) == NETWORK_ALONE.get(name, {})


def alone(mine, theirs, patterns):
    """How many kernels have no counterpart of the same outline, by the pattern that names them.
    Those that are explained, whose name is empty, are the first to have none."""
    found = Counter()
    for key, names in mine.items():
        left = [name for name in names if name]
        many = min(len(names) - len(theirs.get(key, ())) - names.count(""), len(left))
        if many > 0:
            found[pattern_of(left, many, patterns)] += many
    return found


def pattern_of(names, many, patterns):
    """The pattern that so many of these names have; the names themselves where none has."""
    for pattern in patterns:
        if sum(bool(re.search(pattern, name)) for name in names) >= many:
            return pattern
    return ", ".join(sorted(set(names)))


def test_the_documents_table_is_what_comes_out():
    """Kernels and bytes of each family, traced and imported."""
    text = (ROOT / "docs/trace.md").read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| ([\w -]+) \| (\d+, \d+ \| [\d.]+) \|", text, re.MULTILINE))
    called = {"GPT2": "GPT-2", "Bert": "BERT", "Qwen3Moe": "Qwen3-MoE", "Gemma3": "Gemma 3",
              "DeepseekV3": "DeepSeek-V3", "GptOss": "gpt-oss"}  # fmt: skip
    assert len(shown) == len(FAMILIES)
    for name in FAMILIES:
        code, stack = of_trace(traced(name)), [each[1:] for each in kernels(name)]
        ratio = total(code) / total(stack)
        said = f"{len(code)}, {len(stack)} | {ratio:#.3g}"
        assert shown[called.get(name, name)] == said


def total(nodes):
    """Bytes of all operands."""
    return sum(sum(map(sum, moved(node, tensors))) for node, tensors in nodes)


# --- what is known ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", UNLIKE)
def test_no_call_is_dropped(name):
    """Each call that torch records is an operation or costs nothing; none is unknown."""
    attention = "sdpa" if name in FUSED else "eager"
    program = exported(module(config(name, attention)), given(name), {})
    calls = [n for n in program.graph.nodes if n.op == "call_function"]
    picks = [n for n in calls if n.target is operator.getitem]
    found = traced(name, attention)
    assert found.aten_nodes == len(calls) - len(picks)
    assert len(found.operations) == found.aten_nodes - found.views + found.copies
    assert not found.unknown


@pytest.mark.parametrize("name", UNLIKE)
def test_what_is_counted_by_its_bytes_takes_little(name):
    """At the sizes that a family has by default, of one layer and without its head, operators that
    are known by name and not by what they do take less than 2 % of the time."""
    found = published(name, num_hidden_layers=1)
    predicted = predict_graph(found.graph, load("h100-sxm"))
    each = list(zip(found.operations, (node for node, _ in predicted.kernels), strict=True))
    body = [(item, node.seconds) for item, node in each if "head" not in item.module]
    estimated = sum(seconds for item, seconds in body if item.estimated)
    assert estimated < 0.02 * sum(seconds for _, seconds in body)


def published(name, **sizes):
    """The trace of a family at the sizes that its configuration has by default."""
    kind = getattr(transformers, f"{name}TextConfig" if name == "Gemma3" else f"{name}Config")
    ids = torch.zeros(1, 512, dtype=torch.int64, device="meta")
    return trace(module(kind(**sizes)), (ids,))


# --- the command line ------------------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    """A file that builds a model as a user does: everything as it comes, cache and all."""
    path = tmp_path / "mine.py"
    path.write_text(
        "from transformers import LlamaConfig, LlamaForCausalLM\n\n"
        "def small():\n"
        "    return LlamaForCausalLM(LlamaConfig(hidden_size=96, num_hidden_layers=2,\n"
        "        num_attention_heads=6, num_key_value_heads=2, vocab_size=1000,\n"
        "        intermediate_size=272))\n"
    )
    return path


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_a_model_on_the_command_line(cli, file, dtype):
    asked = ("trace", f"{file}:small", "-i", "input_ids:int64[3,40]", "-d", "h100-sxm")
    code, out, err = cli(*asked, "--dtype", dtype, "--format", "json")
    assert (code, err) == (0, "")
    found = json.loads(out)
    assert found["parameters"] == traced("Llama").parameters
    assert found["flops"] == traced("Llama").flops
    assert "model.layers.*.self_attn.q_proj" in [row["line"] for row in found["trace"]]


def test_an_input_of_another_name_is_one_line(cli, file):
    refused(
        cli("trace", f"{file}:small", "-i", "ids:int64[3,40]", "-d", "h100-sxm"),
        "it has no argument named ids, but input_ids, attention_mask",
    )
