"""Graphs of networks: operations by closed forms, activations by the published tables, links."""

from __future__ import annotations

from dataclasses import replace
from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st
from networksamples import STACKS, networks, operations, setting

from perfmodel.algorithms import Matmul
from perfmodel.algorithms.matmul import matmul
from perfmodel.count.exchanges import exchanges
from perfmodel.elements import element
from perfmodel.networks import library, rematerialise
from perfmodel.networks.expand import expand
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.setting import Shards
from perfmodel.schedules.mesh import over
from perfmodel.schedules.schedule import Kernel, Schedule


def distinct(network):
    """The network with equal blocks beside each other, which is the same to a count."""
    met: dict[Block, int] = {}
    for block in network.blocks:
        one = replace(block, repeat=1)
        met[one] = met.get(one, 0) + block.repeat
    return replace(network, blocks=tuple(replace(one, repeat=n) for one, n in met.items()))


NETWORKS = {entry.network.name: distinct(entry.network) for entry in library.entries()}
SEQ = 1024


# ---- Operations ----------------------------------------------------------------------------------


def projections(of, h):
    """Weights that a token meets in queries, keys, values and output: plain, or through low ranks
    (DeepSeek-V2, 2405.04434, section 2.1)."""
    output = of.heads * of.value_width * h
    if of.latent is None:
        return h * (of.heads + 2 * of.kv_heads) * of.head_size + output
    r, both = of.latent, of.heads * (of.latent.nope + of.latent.rope)
    queries = h * r.q_rank + r.q_rank * both if r.q_rank else h * both
    return queries + h * (r.kv_rank + r.rope) + r.kv_rank * of.heads * (r.nope + r.value) + output


def inner(mlp, h, tokens):
    """Weights times rows of the inner layer: of E experts each has ⌈T·K/E⌉ rows, of T·K experts at
    most one each."""
    products = 3 if mlp.gated else 2
    if not mlp.experts:
        return tokens * products * h * mlp.inner
    met = min(mlp.experts, tokens * mlp.chosen)
    rows = met * -(-tokens * mlp.chosen // met)
    beside = products * h * mlp.shared_inner + h * mlp.experts + h * mlp.shared_gate
    return rows * products * h * mlp.inner + tokens * beside


def pairs(of, s):
    """Queries times the keys that each sees, of one head; a causal square has s²/2 of them (the
    convention of FlashAttention-2, section 4.1)."""
    if of.chunk and of.chunk < s:
        return s // of.chunk * pairs(replace(of, chunk=0), of.chunk)
    reach = of.window if 0 < of.window < s else s
    if of.causal and reach == s:
        return s * s / 2
    if of.causal:
        return sum(min(i + 1, reach) for i in range(s))
    return sum(min(s, i + reach) - max(0, i - reach + 1) for i in range(s)) if of.window else s * s


def forward_flops(network, b, s, *, fused):
    """2 operations a weight and token, and 2·(k + v) a pair of a query and a key. An encoder of
    sound has rows of its own, of which cross-attention makes keys and values."""
    tokens, total, h, sound = b * s, 0, network.hidden, network.frames
    heard = sound.positions if sound else s
    sides = [(block, heard) for block in network.encoder] + [(block, s) for block in network.blocks]
    for block, rows in sides:
        for of in (block.attention, block.cross):
            if of is None:
                continue
            source = heard if of is block.cross else rows
            seen = rows * source if of is block.cross or not fused else pairs(of, rows)
            weights = rows * projections(of, h)
            if source != rows:
                weights += (source - rows) * 2 * h * of.kv_heads * of.head_size
            total += block.repeat * 2 * b * weights
            total += block.repeat * 2 * b * of.heads * (of.score_width + of.value_width) * seen
        total += block.repeat * 2 * inner(block.mlp, h, b * rows)
    if sound:  # three taps each, the second of every other row
        total += 2 * b * heard * (2 * 3 * sound.mels * h + 3 * h * h)
    if network.head in ("pooler", "pretraining"):
        total += 2 * b * h * h
    if network.head == "pretraining":
        total += 2 * b * 2 * h + 2 * tokens * h * h
    if network.head in ("language", "pretraining"):
        total += 2 * tokens * h * network.vocabulary
    return total


def length(network):
    """Tokens at which every expert of every network has some, where it has so many positions."""
    return min(network.positions or SEQ, SEQ)


def test_operations_of_every_network_are_those_of_the_closed_form():
    for name in NETWORKS:
        network = NETWORKS[name]
        seq = length(network)
        found = expand(network, setting(1, seq, "eager", dropout=0.0))
        assert operations(found, "forward") == forward_flops(network, 1, seq, fused=False)
        # Two products for each product of the forward pass.
        assert operations(found, "backward") == 2 * operations(found, "forward")


def test_fused_attention_does_what_its_mask_leaves_and_half_more_again_backward():
    for name in NETWORKS:
        network = NETWORKS[name]
        seq = length(network)
        found = expand(network, setting(1, seq, "te", dropout=0.0))
        whole = forward_flops(network, 1, seq, fused=True)
        assert operations(found, "forward") == pytest.approx(whole, rel=1e-12)
        products = sum(
            one.repeat * node.repeat * node.problem.flops()
            for one in found
            for node in one.forward.nodes
            if isinstance(node.problem, Matmul)
        )
        # Five products in place of two.
        core = whole - products
        assert operations(found, "backward") == pytest.approx(2 * products + 2.5 * core, rel=1e-12)


@given(networks(), st.integers(1, 4), st.sampled_from(STACKS))
def test_operations_of_random_networks_are_those_of_the_closed_form(network, batch, stack):
    found = expand(network, setting(batch, 32, stack, attention="unfused"))
    assert operations(found, "forward") == forward_flops(network, batch, 32, fused=False)
    assert operations(found, "backward") == 2 * operations(found, "forward")


@given(networks(), st.integers(1, 3), st.integers(1, 3), st.sampled_from(STACKS))
def test_splitting_a_batch_never_lowers_operations(network, one, other, stack):
    def whole(batch):
        found = expand(network, setting(batch, 32, stack))
        return operations(found, "forward") + operations(found, "backward")

    assert whole(one) + whole(other) >= whole(one + other)


@given(networks(multiple=2), st.booleans(), st.sampled_from(STACKS))
def test_devices_that_share_a_layer_share_its_operations(network, sequence, stack):
    def of(shards):
        found = expand(network, setting(2, 32, stack, shards, attention="unfused"))
        products = [one for one in found if one.name != "head"]
        return operations(products, "forward"), operations(products, "backward")

    alone, half = of(Shards()), of(Shards(tensor=2, sequence=sequence))
    mlp = network.blocks[0].mlp
    # Every device has the router, and all tokens of it.
    router = network.layers * 2 * 64 * network.hidden * mlp.experts
    assert [2 * a - router * n for a, n in zip(half, (1, 2), strict=True)] == list(alone)


# ---- Activations ---------------------------------------------------------------------------------


def korthikanti(tensor, sequence, mode, a, s, h, t):
    """Bytes of a layer over s·b·h (2205.05198, table 2): f = 4h, dropout, 16 bits."""
    core = 0 if mode == "selective" else 5 * a * s / h
    if mode == "full":
        return 2 / t if sequence else 2
    if not tensor:
        return 34 + core
    return (34 + core) / t if sequence else 10 + 24 / t + core / t


def gpt_layer(a, k, t=1):
    attention = SelfAttention(a, a, k, rotary=False, qkv_bias=True, output_bias=True)
    mlp = Mlp(4 * a * k, gated=False, activation="gelu", bias=True)
    return Network("layer", a * k, 1000 * t, (Block(attention, mlp, 2),), norm="layernorm",
                   norm_bias=True, dropout=0.1)  # fmt: skip


@given(
    st.integers(1, 6), st.integers(1, 8), st.integers(1, 8), st.integers(1, 3),
    st.sampled_from([1, 2, 4]), st.booleans(), st.sampled_from(["none", "selective", "full"]),
)  # fmt: skip
def test_a_layer_keeps_what_the_published_table_says(a, k, s, b, t, sequence, mode):
    a, k, s = 4 * a * t, 8 * k, 16 * s  # the table's softmax is the fused one: 4 heads a device
    sequence = sequence and t > 1
    network = gpt_layer(a, k, t)
    shards = Shards(tensor=t, sequence=sequence)
    (layer,) = expand(network, setting(b, s, "megatron", shards, ends=False))
    kept = sum(value.bytes for value in rematerialise.kept(layer, mode))
    assert kept == s * b * a * k * korthikanti(t > 1, sequence, mode, a, s, a * k, t)


@given(
    st.integers(1, 4), st.integers(1, 4), st.integers(1, 8), st.integers(1, 40),
    st.sampled_from(["te", "megatron", "liger", "compile"]),
)  # fmt: skip
def test_a_llama_layer_keeps_12h_4gk_6f_bytes_a_token(g, r, k, f, stack):
    a, k, f = g * r, 8 * k, 8 * f
    block = Block(SelfAttention(a, g, k), Mlp(f))
    network = Network("llama", a * k, 100, (block,))
    (layer,) = expand(network, setting(3, 16, stack, ends=False, attention="flash"))
    assert layer.saved_bytes == 3 * 16 * (12 * a * k + 4 * g * k + 6 * f)
    # Beside them the logarithm of a sum a query and head, and a deviation a row of two norms.
    assert layer.statistics_bytes == 3 * 16 * 4 * (a + 2)


# ---- Rematerialisation ---------------------------------------------------------------------------

# Pairs of which the second recomputes more.
LESS = [("none", "selective"), ("selective", "full"), ("none", "selective-op"),
        ("selective-op", "full"), ("full", "host")]  # fmt: skip


@given(networks(), st.sampled_from(STACKS), st.sampled_from(["unfused", "flash"]))
def test_recomputing_more_never_keeps_more(network, stack, attention):
    found = expand(network, setting(2, 64, stack, attention=attention))
    for layer in found:
        kept = {mode: rematerialise.kept_bytes(layer, mode) for mode in rematerialise.MODES}
        again = {mode: rematerialise.again(layer, mode) for mode in rematerialise.MODES}
        kernels = range(len(layer.forward.nodes))
        for some, more in LESS:
            assert kept[more] <= kept[some], (layer.name, more, some)
        assert again["none"] == again["host"] == ()
        assert set(again["selective"]) <= set(again["full"]) <= set(kernels)
        if layer.block:
            assert again["full"] == tuple(kernels)
            assert 0 == kept["host"] < kept["full"]
            assert 0 < len(again["selective-op"]) < len(kernels)
        else:
            assert len(set(kept.values())) == 1


def test_selective_recomputation_runs_the_core_of_attention_again():
    (layer,) = expand(NETWORKS["gpt3-175b"], setting(1, 2048, "megatron", ends=False))
    names = [layer.forward.nodes[i].name for i in rematerialise.again(layer, "selective")]
    assert names == ["attention.scores", "attention.softmax", "attention.values"]
    (fused,) = expand(
        NETWORKS["gpt3-175b"], setting(1, 2048, "megatron", ends=False, attention="flash")
    )
    assert rematerialise.again(fused, "selective") == ()


# ---- Graphs --------------------------------------------------------------------------------------


@given(networks(), st.sampled_from(STACKS), st.sampled_from(["bf16", "fp32", "fp8"]))
def test_what_a_backward_pass_reads_is_kept_or_a_gradient_or_a_weight(network, stack, dtype):
    """A tensor of the forward pass that some kernel of the backward pass reads was said to be."""
    for layer in expand(network, setting(2, 32, stack, dtype=dtype)):
        backward, forward = layer.backward, layer.forward
        made = forward.written | {x.name for x in layer.operations[0].inputs}
        numbers = {each.name for one in layer.operations for each in one.statistics}
        kept = {value.name for value in layer.saved} | numbers
        read = {name for node in backward.nodes for edge in node.reads for name in edge.tensors}
        assert (read & made) - set(backward.weights) - backward.written <= kept


@given(networks(), st.sampled_from(STACKS))
def test_every_parameter_of_a_product_gets_a_gradient(network, stack):
    for layer in expand(network, setting(2, 32, stack)):
        written = layer.backward.written
        for weight in layer.weights:
            if weight.kind == "matrix":
                assert f"d({weight.name})" in written


# ---- Exchanges -----------------------------------------------------------------------------------


def moved(layer, way, axis="tensor"):
    """Bytes of the whole tensor of each exchange of a pass, by kind."""
    found: dict[str, list[float]] = {}
    for one in getattr(layer, way).exchanges:
        if one.axis == axis:
            found.setdefault(one.kind, []).append(one.tensor_bytes)
    return found


sizes = st.tuples(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.sampled_from([2, 4]))


@given(sizes)
def test_tensor_parallel_layers_have_two_all_reduces_each_way(drawn):
    b, s, a, t = drawn
    (layer,) = expand(
        gpt_layer(a * t, 8, t), setting(b, 16 * s, shards=Shards(tensor=t), ends=False)
    )
    whole = b * 16 * s * a * t * 8 * 2
    assert moved(layer, "forward") == moved(layer, "backward") == {"all-reduce": [whole, whole]}


@given(sizes, st.sampled_from(STACKS))
def test_sequence_parallel_layers_gather_and_scatter_and_gather_again(drawn, stack):
    b, s, a, t = drawn
    shards = Shards(tensor=t, sequence=True)
    given_ = setting(b, 16 * s, stack, shards, ends=False)
    (layer,) = expand(gpt_layer(a * t, 8, t), given_)
    whole = b * 16 * s * a * t * 8 * 2
    twice = [whole, whole]
    assert moved(layer, "forward") == {"all-gather": twice, "reduce-scatter": twice}
    # Of the backward pass two gathers are the gradients of the scatters, two for the weights.
    assert moved(layer, "backward") == {"all-gather": 2 * twice, "reduce-scatter": twice}


@given(sizes)
def test_a_shared_vocabulary_sends_three_numbers_a_token_and_one_gradient(drawn):
    b, s, a, t = drawn
    head = expand(gpt_layer(a * t, 8, t), setting(b, 16 * s, shards=Shards(tensor=t)))[-1]
    tokens = b * 16 * s
    assert moved(head, "forward") == {"all-reduce": 3 * [4 * tokens]}
    assert moved(head, "backward") == {"all-reduce": [tokens * a * t * 8 * 2]}


@given(sizes, st.sampled_from(["fp32", "bf16"]))
def test_context_parallel_layers_pass_keys_and_values_round(drawn, dtype):
    b, s, g, c = drawn
    network = Network("llama", 64, 100, (Block(SelfAttention(2 * g, g, 8), Mlp(64)),))
    given_ = setting(b, 16 * s * c, "te", Shards(context=c), ends=False, dtype=dtype)
    (layer,) = expand(network, given_)
    each = b * 16 * s * c * g * 8 * element(dtype).bytes
    assert moved(layer, "forward", "context") == {"ring": [each, each]}
    assert moved(layer, "backward", "context") == {"ring-gradient": [each, each]}


@given(sizes, st.integers(1, 3))
def test_experts_are_sent_chosen_rows_of_each_token_and_send_them_back(drawn, chosen):
    b, s, a, e = drawn
    mlp = Mlp(32, experts=4 * e, chosen=chosen)
    network = Network("moe", 16, 100, (Block(SelfAttention(a, a, 8), mlp),))
    layer = expand(network, setting(b, 16 * s, "te", Shards(expert=e), ends=False))[0]
    tokens, local = b * 16 * s, 4
    rows = local * -(-tokens * chosen * e // (4 * e))  # an even share of all devices' tokens
    assert moved(layer, "forward", "expert") == {"all-to-all": 2 * [rows * 16 * 2]}
    assert moved(layer, "backward", "expert") == moved(layer, "forward", "expert")
    if tokens * chosen % 4 == 0:
        assert rows == tokens * chosen


def rule(sizes_, axis, t, tensor, lies):
    """Kind and bytes of the whole tensor that the counting rule finds for one operand of a product
    whose `axis` is split over t devices, where that operand `lies` whole or in shards."""
    extents = {"b": 1, **dict(zip("mnk", sizes_, strict=True))}
    bare = Schedule("bare", matmul(), (Kernel("matmul", ("multiply",), ()),))
    placed = over(bare, extents, {axis: (t, axis)})
    found = exchanges(placed, extents, Matmul(1, 1, 1).elements(), {(tensor, axis): lies})
    return {one.kind: [one.tensor_bytes] for one in found if one.tensor == tensor}


@given(sizes, st.booleans())
def test_exchanges_of_products_are_those_of_the_counting_rule(drawn, sequence):
    """Forward, the input's gradient and the weight's, of a product split along its columns (the
    mesh over n, then over the reduced axis, then over n again) and of one along its rows."""
    b, s, a, t = drawn
    T, h = b * 16 * s, a * t * 8
    shards = Shards(tensor=t, sequence=sequence)
    (layer,) = expand(gpt_layer(a * t, 8, t), setting(b, 16 * s, shards=shards, ends=False))
    lies = "m" if sequence else None
    f = 4 * h
    expected_forward = [rule((T, f, h), "n", t, "A", lies), rule((T, h, f), "k", t, "C", lies)]
    expected_backward = [
        rule((T, f, h), "n", t, "A", lies),  # dY of the product back, dX = dY·Wᵀ
        rule((T, h, f), "k", t, "C", lies),  # dX of the product up
        rule((h, f, T), "n", t, "A", "k" if sequence else None),  # Xᵀ of dW = Xᵀ·dY
    ]
    for way, expected in (("forward", expected_forward), ("backward", expected_backward)):
        wanted: dict[str, list[float]] = {}
        for one in expected:
            for kind, whole in one.items():
                wanted.setdefault(kind, []).extend(2 * whole)  # attention, then the inner layer
        assert moved(layer, way) == wanted


def test_the_rule_in_symbols_is_what_layers_send():
    sympy = pytest.importorskip("sympy")
    T, h, f, t = letters = sympy.symbols("T h f t", positive=True, integer=True)
    ((summed,),) = rule((T, h, f), "k", t, "C", None).values()
    for values in ((64, 32, 128, 4), (96, 64, 256, 2)):
        tokens, hidden, _, ranks = values
        network = gpt_layer(hidden // 8, 8, ranks)
        (layer,) = expand(network, setting(1, tokens, shards=Shards(tensor=ranks), ends=False))
        at = dict(zip(letters, values, strict=True))
        assert moved(layer, "forward")["all-reduce"][-1] == float(summed.subs(at))


def test_a_device_holds_its_share_of_every_matrix():
    network = gpt_layer(8, 8, 4)
    (whole,) = expand(network, setting(ends=False))
    (share,) = expand(network, setting(shards=Shards(tensor=4), ends=False))
    for one, other in zip(whole.weights, share.weights, strict=True):
        if one.kind == "matrix":
            assert prod(one.shape) == 4 * prod(other.shape), one.name
