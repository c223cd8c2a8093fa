"""Published networks: parameters by the closed forms of their papers, and published totals.

The forms stand here and nowhere else: the package counts the weights that its operations own.
L layers of width h, V tokens, s positions, a heads and g key-value heads of k, an inner layer f, E
experts of which a token meets K.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from perfmodel.networks import library
from perfmodel.networks.expand import active_count, parameter_count
from perfmodel.networks.flops import flops_per_token
from perfmodel.networks.summary import (
    cache_bytes,
    cache_bytes_per_token,
    cached_elements,
    parts,
)

ENTRIES = {entry.network.name: entry for entry in library.entries()}
NETWORKS = {name: entry.network for name, entry in ENTRIES.items()}


def sizes(network):
    """L, h, V, and the first block's parts."""
    first = network.blocks[0]
    return network.layers, network.hidden, network.vocabulary, first.attention, first.mlp


def gpt(network):
    """GPT-2 and 3, Megatron, OPT, MPT as measured: biases, learned positions, tied head."""
    L, h, V, _, _ = sizes(network)
    return L * (12 * h**2 + 13 * h) + 2 * h + V * h + network.positions * h


def mpt(network):
    """As released: neither biases nor positions, two norms of h a layer."""
    L, h, V, _, _ = sizes(network)
    return gpt(network) if network.positions else L * (12 * h**2 + 2 * h) + h + V * h


def bert(network):
    L, h, V, _, _ = sizes(network)
    heads = h**2 + 5 * h + V + 2 if network.head == "pretraining" else 0
    return (V + 512 + 2) * h + 2 * h + L * (12 * h**2 + 13 * h) + h**2 + h + heads


def gptj(network):
    L, h, V, _, _ = sizes(network)
    return L * (12 * h**2 + 7 * h) + 2 * V * h + V + 2 * h


def falcon(network):
    """Norms have biases, products none; the newer form has two norms a layer."""
    L, h, V, of, mlp = sizes(network)
    attention = 2 * h * of.heads * of.head_size + 2 * h * of.kv_heads * of.head_size
    norms = 2 if network.name == "falcon-40b" else 1
    return L * (attention + 2 * h * mlp.inner + norms * 2 * h) + 2 * h + V * h


def palm(network):
    L, h, V, of, mlp = sizes(network)
    attention = 2 * h * of.heads * of.head_size + 2 * h * of.kv_heads * of.head_size
    return L * (attention + 3 * h * mlp.inner + h) + h + V * h


def grouped(of, h):
    """Queries, keys, values and output of Llama and of those after it."""
    biases = (of.heads + 2 * of.kv_heads) * of.head_size if of.qkv_bias else 0
    norms = 2 * of.head_size if of.head_norm else 0
    return 2 * h * of.heads * of.head_size + 2 * h * of.kv_heads * of.head_size + biases + norms


def inner(mlp, h, met=False):
    """A gated inner layer, or experts with a router and perhaps a shared one."""
    if not mlp.experts:
        return 3 * h * mlp.inner
    gate = h if mlp.shared_gate else 0
    experts = mlp.chosen if met else mlp.experts
    return 3 * h * mlp.inner * experts + h * mlp.experts + 3 * h * mlp.shared_inner + gate


def llama(network, met=False):
    L, h, V, of, mlp = sizes(network)
    tables = (1 if network.tied else 2) * V * h
    return L * (grouped(of, h) + inner(mlp, h, met) + 2 * h) + tables + h


def llama4(network, met=False):
    """Half of Maverick's layers are dense and of f = 16,384."""
    L, h, V, of, mlp = sizes(network)
    experts = network.blocks[-1].mlp
    dense = L // 2 if not mlp.experts else 0
    mlps = dense * 3 * h * 16384 + (L - dense) * inner(experts, h, met)
    return L * (grouped(of, h) + 2 * h) + mlps + 2 * V * h + h


def gemma(network):
    """Four norms a layer, tied."""
    L, h, V, of, mlp = sizes(network)
    return L * (grouped(of, h) + 3 * h * mlp.inner + 4 * h) + V * h + h


def deepseek(network, met=False):
    """Latent attention; dense layers first."""
    L, h, V, of, mlp = sizes(network)
    r, low = of.latent, of.latent.q_rank
    both = of.heads * (r.nope + r.rope)
    queries = h * low + low + low * both if low else h * both
    keys = h * (r.kv_rank + r.rope) + r.kv_rank + r.kv_rank * of.heads * (r.nope + r.value)
    attention = queries + keys + of.heads * r.value * h
    dense, sparse = network.blocks[0].repeat, network.blocks[1].mlp
    bias = sparse.experts if network.name == "deepseek-v3" else 0
    mlps = dense * 3 * h * mlp.inner + (L - dense) * (inner(sparse, h, met) + bias)
    return L * (attention + 2 * h) + mlps + 2 * V * h + h


def gpt_oss(network, met=False):
    """Biases in every product, a sink a head."""
    L, h, V, of, mlp = sizes(network)
    k, f = of.head_size, mlp.inner
    attention = (
        2 * h * of.heads * k + 2 * h * of.kv_heads * k + (of.heads + 2 * of.kv_heads) * k + h
    )
    experts = (3 * h * f + 2 * f + h) * (mlp.chosen if met else mlp.experts)
    return L * (attention + of.heads + experts + (h + 1) * mlp.experts + 2 * h) + 2 * V * h + h


def t5(network, met=False):
    """Products without biases, distances in the first layer of each stack."""
    h, V, of = network.hidden, network.vocabulary, network.blocks[0].attention
    width = of.heads * of.head_size
    total = V * h
    for blocks, attentions in ((network.encoder, 1), (network.blocks, 2)):
        for block in blocks:
            mlp = block.mlp
            one = (2 + mlp.gated) * h * mlp.inner
            experts = (1 if met else mlp.experts) * one + h * mlp.experts if mlp.experts else one
            total += block.repeat * (attentions * (4 * h * width + h) + experts + h)
        total += 32 * of.heads + h
    return total if network.tied else total + V * h


def whisper(network):
    """Keys without biases, norms with; two convolutions of three taps; both stacks' positions."""
    h, V, mels = network.hidden, network.vocabulary, network.frames.mels
    total = V * h + (448 + 1500) * h + 3 * mels * h + h + 3 * h * h + h
    for blocks, attentions in ((network.encoder, 1), (network.blocks, 2)):
        for block in blocks:
            inner = 2 * h * block.mlp.inner + block.mlp.inner + h
            total += block.repeat * (attentions * (4 * h * h + 3 * h + 2 * h) + inner + 2 * h)
        total += 2 * h
    return total


FORMS = {
    "gpt2": gpt, "megatron": gpt, "opt": gpt, "mpt": mpt, "bert": bert, "gptj": gptj,
    "falcon": falcon, "palm": palm, "llama": llama, "mistral": llama, "mixtral": llama,
    "qwen2": llama, "qwen2_moe": llama, "qwen3": llama, "qwen3_moe": llama, "llama4_text": llama4,
    "gemma2": gemma, "gemma3_text": gemma, "deepseek_v2": deepseek, "deepseek_v3": deepseek,
    "gpt_oss": gpt_oss, "t5": t5, "switch_transformers": t5, "whisper": whisper,
}  # fmt: skip


def test_parameters_are_those_of_the_closed_form():
    for name in NETWORKS:
        found = NETWORKS[name]
        assert parameter_count(found) == FORMS[found.family](found)
        assert sum(part.parameters for part in parts(found)) == parameter_count(found)
        assert sum(part.active for part in parts(found)) == active_count(found)


EXPERTS = [n for n, one in NETWORKS.items() if any(block.mlp.experts for block in one.blocks)]


@pytest.mark.parametrize("name", EXPERTS)
def test_active_parameters_count_the_experts_that_a_token_meets(name):
    found = NETWORKS[name]
    active = FORMS[found.family](found, met=True)
    assert active_count(found) == active
    table = 0 if found.tied else found.vocabulary * found.hidden
    assert active_count(found, input_embedding=False) == active - table
    assert active < parameter_count(found)


def rounding(published):
    """Half a unit of the last digit of a total that is not a zero."""
    unit = 1
    while published % (10 * unit) == 0:
        unit *= 10
    return unit / 2 if unit > 1 else 0


def test_published_totals_are_met_to_their_last_digit():
    exact = 0
    for found in NETWORKS.values():
        total = found.sizes.get("parameters")
        if total is not None:
            assert abs(parameter_count(found) - total) <= rounding(total), found.name
            exact += rounding(total) == 0
        active = found.sizes.get("active")
        if active is not None:
            either = [active_count(found), active_count(found, input_embedding=False)]
            assert min(abs(one - active) for one in either) <= rounding(active), found.name
    assert exact >= 45


def test_every_family_asked_for_is_there():
    wanted = """
        bert-base bert-large gpt2 gpt2-medium gpt2-large gpt2-xl gpt3-small gpt3-medium gpt3-large
        gpt3-xl gpt3-2.7b gpt3-6.7b gpt3-13b gpt3-175b gpt-1.7b gpt-1008.0b gpt-22b gpt-175b
        gpt-530b gpt-1t mt-nlg-530b mpt-125m mpt-350m mpt-760m mpt-1b mpt-3b mpt-7b mpt-13b mpt-30b
        mpt-70b llama-7b llama-65b llama-2-7b llama-2-70b llama-3-8b llama-3.1-8b llama-3.1-70b
        llama-3.1-405b llama-3.2-1b llama-4-scout llama-4-maverick mistral-7b mistral-7b-v0.3
        mixtral-8x7b mixtral-8x22b qwen2.5-7b qwen3-8b qwen3-30b-a3b qwen3-235b-a22b
        deepseek-v2-lite deepseek-v2 deepseek-v3 deepseek-r1 gpt-oss-20b gpt-oss-120b
    """.split()  # noqa: SIM905  a list of names
    assert all(library.load(name).layers for name in wanted)


def test_every_network_has_a_source_and_names_of_its_own():
    seen = {}
    for entry in ENTRIES.values():
        assert len(entry.network.source.split()) > 2, entry.network.name
        for spelling in library.spellings(entry):
            assert seen.setdefault(spelling, entry.network.name) == entry.network.name
            assert library.load(spelling) is entry.network
    assert library.load("LLaMA 3_8B") is NETWORKS["llama-3-8b"]


def test_sizes_that_papers_print_wrongly_say_so():
    thirteen = NETWORKS["gpt3-13b"]
    assert thirteen.hidden == 5120
    assert "5,140" in thirteen.about


@pytest.fixture(scope="module")
def vectors(measured):
    """Published numbers by id; those of networks before those of inference."""
    found = {}
    for name in ("inference_vectors", "networks_vectors"):
        path = measured.parent / "reference" / f"{name}.yaml"
        if not path.is_file():
            pytest.skip(f"no published numbers at {path}")
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        listed = yaml.load(path.read_text(encoding="utf-8"), Loader=loader)
        found |= {(name, item["id"]): item for item in listed}
    return found


def within(vector, value):
    """Whether a value is the vector's, as exactly as it says."""
    wanted, allowed = vector["expected"], vector.get("tolerance", {})
    near = max(allowed.get("rel", 0) * abs(wanted), allowed.get("abs", 0))
    return abs(value - wanted) <= near


PARAMETERS = {
    "bert-base", "bert-large", "gpt2-medium", "gpt2-xl", "llama-2-7b", "llama-2-13b", "llama-2-70b",
    "llama-3-8b", "llama-3-70b", "llama-3.1-405b", "mistral-7b", "mistral-7b-v0.1", "mixtral-8x7b",
    "mixtral-8x22b-v0.1", "qwen2.5-7b", "qwen2.5-72b", "qwen3-30b-a3b", "gpt-j-6b",
}  # fmt: skip


def test_parameters_of_published_models(vectors):
    found = 0
    for (file, key), vector in vectors.items():
        name = key.removeprefix("params.")
        if not key.startswith("params.") or name not in PARAMETERS:
            continue
        one = library.load(name)
        wanted = vector["expected"]
        if isinstance(wanted, list):
            assert [parameter_count(one), active_count(one)] == wanted, (file, key)
        else:
            assert parameter_count(one) == wanted, (file, key)
        found += 1
    assert found >= 23


def test_parameters_of_tables_and_of_experts(vectors):
    at = {key: vector for (_, key), vector in vectors.items()}
    v3 = library.load("deepseek-v3")
    assert within(at["params.deepseek-v3.total"], parameter_count(v3))
    assert within(at["params.deepseek-v3.active"], active_count(v3))
    assert parameter_count(v3) == at["params.deepseek-v3.total"]["computed"]
    assert active_count(v3) == at["params.deepseek-v3.active"]["computed"]
    mixtral = library.load("mixtral-8x7b")
    assert within(at["params.mixtral-8x7b.active"], active_count(mixtral))
    for key in ("mpt-1b.65536", "mpt-7b.2048", "mpt-30b.8192"):
        name, positions = key.split(".")
        one = replace(library.load(name), positions=int(positions))
        assert parameter_count(one) == at[f"params.{key}"]["expected"]
    tables = [key for key in at if key.startswith("params.megatron.")]
    assert len(tables) == 7
    for key in tables:
        one = library.load(f"megatron-{key.removeprefix('params.megatron.')}")
        assert within(at[key], parameter_count(one) / 1e9), key


def test_training_flops_of_published_models(vectors):
    at = {key: vector for (_, key), vector in vectors.items()}
    for name, size in (("small", "small"), ("medium", "medium"), ("xl", "xl"), ("175b", "175b")):
        vector = at[f"flops.gpt3.{name}"]  # 6 P T, with P as the paper's table has it
        parameters = parameter_count(library.load(f"gpt3-{size}"))
        assert 6 * parameters * vector["inputs"]["tokens"] == pytest.approx(
            vector["expected"], rel=0.006
        )
    llama_405b = flops_per_token(library.load("llama-3.1-405b"), 4096, "causal")
    assert within(at["flops.llama3-405b.token"], llama_405b / 1e9)
    vector = at["flops.megatron.175b.iter"]
    tokens = vector["inputs"]["B"] * vector["inputs"]["s"]
    found = tokens * flops_per_token(library.load("megatron-174.6b"), 2048, "narayanan")
    assert within(vector, found / 1e18)


CACHES = ("llama-2-7b", "llama-2-70b", "llama-3-8b", "llama-3-70b")


def test_bytes_of_a_cached_token(vectors):
    at = {key: vector for (_, key), vector in vectors.items()}
    for name in CACHES:
        found = cache_bytes_per_token(library.load(name))
        assert found == at[f"kv.per_token.{name}"]["expected"]
    fp8 = cache_bytes_per_token(library.load("llama-3-70b"), "fp8")
    assert fp8 == at["kv.per_token.llama-3-70b.fp8"]["expected"]
    v3 = cache_bytes_per_token(library.load("deepseek-v3"))
    assert v3 == at["kv.per_token.deepseek-v3.mla"]["expected"]
    oss = cache_bytes(library.load("gpt-oss-20b"), 8192)
    assert oss == at["kv.window.alternating"]["expected"]
    thirteen = cache_bytes(library.load("llama-13b"), 2048)
    assert within(at["kv.llama-13b.full"], thirteen / 1e9)


def test_a_cache_grows_with_tokens_and_no_further_than_windows():
    for name in NETWORKS:
        found = NETWORKS[name]
        sizes = [cache_bytes(found, tokens) for tokens in (0, 1, 1000, 10_000, 10**7, 2 * 10**7)]
        assert sizes == sorted(sizes)
        assert sizes[0] == 0
        full = [
            block for block in found.blocks if not (block.attention.window or block.attention.chunk)
        ]
        grows = sum(b.repeat * cached_elements(b.attention) for b in full if b.attention.causal)
        assert sizes[-1] - sizes[-2] == 2 * 10**7 * grows
