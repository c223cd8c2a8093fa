"""Modules of transformers: their traces are the networks of their configurations.

The trace reads the code of a model, the import reads the sizes in its configuration. They know
nothing of each other, so where they differ one of them is wrong, or the code does what no size
says. What the code does beside is listed here, kernel by kernel.
"""

import json
import re
from collections import Counter
from dataclasses import replace
from functools import lru_cache

import pytest

from perfmodel import load, predict_graph
from perfmodel.graph import Node
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
SCORES = 2 * BATCH * 6 * SEQ * SEQ  # bytes of all scores, in bf16
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


@lru_cache(maxsize=None)
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


@pytest.mark.parametrize("name", FUSED)
def test_fused_attention_is_that_of_the_configuration(name):
    """Heads, heads of keys, queries, keys, widths and mask, where torch's kernel hides the keys."""
    if name == "Falcon":
        pytest.skip("its code repeats the keys and makes the mask a tensor, which hides nothing")
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
    """Tied ones once. What corrects a choice of experts is no parameter to torch: it is a buffer."""
    found = network(name).network
    corrections = 8 * (name == "DeepseekV3")
    parameters = sum(p.numel() for p in module(config(name, "eager")).parameters())
    assert traced(name).parameters == parameters == parameter_count(found) - corrections


@pytest.mark.parametrize("name", FAMILIES)
def test_flops_are_those_of_torchs_own_counter(name):
    """Which knows no product in groups: those are 2 FLOPs for each weight that a token meets."""
    model = module(config(name, "eager"))
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model(given(name)[0])
    of = network(name).network
    routed = sum(
        block.repeat * TOKENS * block.mlp.chosen * 2 * 3 * of.hidden * block.mlp.inner
        for block in of.blocks
    )
    assert counter.get_total_flops() > 1e6
    assert traced(name).flops == counter.get_total_flops() + routed
