"""Networks larger than their device: KVPR's split, FlexGen's model, streams, divided work."""

from __future__ import annotations

import csv
import gzip
import json
import math
import statistics
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import ProblemError
from perfmodel.graph.live import alive
from perfmodel.hardware import load
from perfmodel.napkin import recompute as formula
from perfmodel.networks import library
from perfmodel.networks.operations.experts import touched as touched_experts
from perfmodel.offload import flexgen, search, sharing
from perfmodel.offload.layershape import LayerShape, Request, of_network
from perfmodel.offload.layertimes import block_seconds, predict_block
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.offload.modelled import Disk, Modelled
from perfmodel.offload.policy import Policy, of_percent
from perfmodel.offload.policymemory import LEVELS, spans
from perfmodel.offload.recompute import Recompute
from perfmodel.offload.recompute import of_network as recompute_of
from perfmodel.offload.streaming import hiding_batch, streamed

T4, A100, XEON = load("t4"), load("a100-pcie-40gb"), load("xeon-gold-6242")
OPT = library.load("opt-30b")
REQUEST = Request(512, 32)
PUBLISHED = (20, 80, 0, 100, 0, 100)
RATES = st.floats(1e12, 1e15)
LINKS = st.floats(1e9, 1e12)


def four_projections(layers, hidden, inner, heads):
    """FlexGen's layer, OPT without its biases: four projections and two products, 16 bits."""
    weights = 4.0 * hidden**2 + 2.0 * hidden * inner
    return LayerShape(layers, hidden, inner, heads, 2 * weights, 4.0 * hidden, weights)


def block(shape, policy, rates):
    """A block's passes, and its tokens a second."""
    found = predict_block(shape, REQUEST, policy, rates, {})
    return *found.children, policy.batch * REQUEST.generated / found.seconds


def leaves(part):
    """Seconds of a layer by resource."""
    return {leaf.name: leaf.seconds for leaf in part.children[0].leaves}


def held(shape, request, policy):
    """Most bytes in each memory."""
    sums = alive(spans(shape, request, policy), 2)
    return {level: max(sums[level]) for level in LEVELS}


def cache(tokens=512, hidden=4096, columns=4096.0, g=312e12, v=32e9, **more):
    return Recompute(1, tokens, hidden, columns, g, v, **more)


# -- KVPR ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hidden", "share", "time"),
    [(4096, 0.7042, 0.6479), (5120, 0.6557, 0.6722), (7168, 0.5763, 0.7118)],
)
def test_the_split_is_the_published_one(hidden, share, time):
    """2411.17089 at 312 TFLOP/s and 32 GB/s; the last from the same formula, 1 − l*/2s."""
    found = cache(100_000, hidden, float(hidden))
    assert found.meeting / found.tokens == pytest.approx(share, abs=5e-5)
    assert found.split / found.tokens == pytest.approx(share, abs=1e-4)
    assert found.time_share == pytest.approx(time, abs=1e-4)


def test_the_closed_forms_follow_from_the_time():
    sympy = pytest.importorskip("sympy")
    from perfmodel.napkin.splitting import SYMBOLS, derived

    found = derived()
    _, s, _, h, w, q_x, q, g, v = sympy.symbols(list(SYMBOLS), positive=True)
    share = formula.meeting_share(h, q, g, v)
    assert sympy.simplify(found.split - s * share) == 0
    assert sympy.simplify(found.time - formula.time_share(share, h, w, q_x, q)) == 0
    assert sympy.simplify(found.slope.subs(w, h * q_x / (2 * q))) == 0
    assert len(list(found.lines())) == 4 + len(SYMBOLS)


@given(
    st.integers(1, 96), st.integers(64, 8192), st.integers(64, 8192), RATES, LINKS,
    st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.0, 1e6, 1e9]),
)  # fmt: skip
def test_the_split_is_the_best_of_all(tokens, hidden, columns, g, v, width, weights):
    """Brute force over every number of tokens; the ends are among them."""
    found = cache(tokens, hidden, float(columns), g, v, cache_width=width, weight_bytes=weights)
    least = min(found.seconds(count) for count in range(tokens + 1))
    assert found.seconds(found.split) == pytest.approx(least, rel=1e-9)
    assert found.seconds(found.split) <= found.seconds(0) * (1 + 1e-12)
    if found.gains:
        assert found.seconds(found.split) <= found.seconds(tokens) * (1 + 1e-12)


@given(st.integers(64, 8192), st.integers(64, 8192), RATES, LINKS)
def test_time_falls_as_derived(hidden, columns, g, v):
    found = cache(10**6, hidden, float(columns), g, v)
    share = float(formula.meeting_share(hidden, 2.0, g, v))
    if not found.gains:
        assert (found.split, found.time_share) == (0, 1.0)
        return
    expected = formula.time_share(share, hidden, columns, 2.0, 2.0)
    assert found.time_share == pytest.approx(float(expected), abs=1e-5)
    if columns == hidden:
        assert found.time_share >= 0.5


@cases
def test_grouped_and_latent_heads_have_nothing_to_gain(network, gains):
    """h·q_x < 2·w·q: with all heads 1 < 2; with an eighth 1 > 1/4; a latent has 576 of 7,168.
    An fp8 cache of all heads is as large as the activations, and gains nothing either."""
    found = recompute_of(library.load(network), A100, 8, 1024)
    assert found.gains is gains
    assert (found.split > 0) is gains
    assert (found.time_share < 1.0) is gains
    narrow = recompute_of(library.load(network), A100, 8, 1024, kv_dtype="fp8")
    assert not narrow.gains
    everywhere = [found.seconds(count) for count in range(0, 1025, 64)]
    assert (min(everywhere) < found.seconds(0)) is gains


def test_weights_on_the_link_leave_more_time_to_compute():
    """Column by column: the layer's weights come over as well."""
    resident, streamed = cache(), cache(weight_bytes=50e6)
    assert resident.meeting < streamed.meeting <= streamed.tokens
    assert streamed.seconds(0) == pytest.approx(resident.seconds(0) + 50e6 / 32e9)


# -- FlexGen -------------------------------------------------------------------------------------


def test_flexgens_own_model_is_exact():
    """cost_model.py at 004ffef, OPT-30B on a T4, 3 blocks of 48: 4.38897 s and 0.292402 s a layer,
    7.1357 tokens a second; 7.32 were measured (2303.06865, table 1)."""
    shape = four_projections(48, 7168, 28672, 56)
    policy, rates = of_percent(48, 3, PUBLISHED), flexgen.load("t4-gcp")
    prefill, decode, rate = block(shape, policy, rates)
    assert prefill.seconds / 48 == pytest.approx(4.388966937243567, rel=1e-9)
    assert decode.seconds / 48 / 31 == pytest.approx(0.29240165669289053, rel=1e-9)
    assert rate == pytest.approx(7.135732933960288, rel=1e-9)
    assert rate == pytest.approx(7.32, rel=0.03)
    assert block_seconds(shape, REQUEST, policy, rates) == pytest.approx(144 * 32 / rate)


def test_the_network_by_name_is_flexgens_layer_with_biases():
    found = of_network(OPT)
    assert found.weight_bytes == pytest.approx(
        four_projections(48, 7168, 28672, 56).weight_bytes, rel=1e-3
    )
    assert found.cache_bytes == 4 * 7168


def test_what_our_rates_lose_against_fitted_ones():
    """By operators and a documented link the same policy takes 0.4 of the published time: FlexGen's
    attention on the host reached 12 GFLOP/s, a tenth of what the host's memory allows."""
    policy = of_percent(48, 3, PUBLISHED)
    *own, rate = block(of_network(OPT), policy, Modelled(OPT, T4, XEON))
    assert 1.0 < rate / 7.32 < 3.0
    *fitted, _ = block(of_network(OPT), policy, flexgen.load("t4-gcp"))
    (prefill, decode), (theirs, last) = (map(leaves, passes) for passes in (own, fitted))
    assert prefill["link to device"] == pytest.approx(theirs["link to device"], rel=0.12)
    assert prefill["work"] == pytest.approx(theirs["work"], rel=0.45)
    assert decode["work"] < last["work"]


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1))
def test_more_at_hand_never_sends_more(w, w2, c, c2):
    shape, rates = of_network(OPT), flexgen.load("t4-gcp")

    def sent(weights, kept):
        policy = Policy(8, 2, (weights, 1 - weights, 0.0), (kept, 1 - kept, 0.0), (1.0, 0.0, 0.0))
        prefill, decode, _ = block(shape, policy, rates)
        prefill, decode = leaves(prefill), leaves(decode)
        return prefill["link to device"], prefill["link to host"], decode["link to device"]

    fewer, more = sent(min(w, w2), min(c, c2)), sent(max(w, w2), max(c, c2))
    assert all(a >= b - 1e-9 for a, b in zip(fewer, more, strict=True))


def test_the_search_finds_the_best_of_what_it_looks_at():
    """Brute force: every policy of one part and block by itself."""
    shape, rates, rooms = of_network(OPT), flexgen.load("t4-gcp"), {"hbm": 14e9, "host": 190e9}
    found = search.best(shape, REQUEST, rates, rooms, parts=(16,), blocks=(4,))
    best = 0.0
    for w in np.arange(0, 1.01, 0.05):
        for c in np.arange(0, 1.01, 0.05):
            for x in (0.0, 1.0):
                policy = Policy(16, 4, (w, 1 - w, 0.0), (c, 1 - c, 0.0), (x, 1 - x, 0.0))
                if search.fits(shape, REQUEST, policy, rooms):
                    best = max(best, block(shape, policy, rates)[-1])
    assert block(shape, found, rates)[-1] == pytest.approx(best)
    assert search.fits(shape, REQUEST, found, rooms)


@given(st.floats(8e9, 64e9), st.floats(8e9, 64e9))
def test_more_memory_never_slows_the_best_policy(one, other):
    shape, rates = of_network(OPT), flexgen.load("t4-gcp")
    rooms = ({"hbm": room, "host": 190e9} for room in sorted((one, other)))
    found = (search.best(shape, REQUEST, rates, room, (8, 32), (1, 4)) for room in rooms)
    few, many = (block(shape, policy, rates)[-1] for policy in found)
    assert few <= many * (1 + 1e-12)


def test_a_policy_is_counted_where_it_lies():
    """Everything on the device: weights, cache and activations; nothing on the host."""
    shape = of_network(OPT)
    whole = Policy(1, 1, (1.0, 0.0, 0.0), (1.0, 0.0, 0.0), (1.0, 0.0, 0.0))
    found = held(shape, REQUEST, whole)
    home = shape.layers * (shape.weight_bytes + shape.cache_bytes * REQUEST.tokens)
    assert home < found["hbm"] < home * 1.05
    assert found["host"] < 1e7
    assert found["disk"] == 0.0
    away = held(shape, REQUEST, Policy(1, 1, (0.0, 0.5, 0.5), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)))
    assert away["disk"] == pytest.approx(
        shape.layers * (shape.weight_bytes / 2 + shape.cache_bytes * REQUEST.tokens)
    )
    assert away["hbm"] < 6 * shape.weight_bytes


def test_the_inner_layer_of_different_blocks_is_the_widest_that_a_token_uses():
    """DeepSeek-V3: three dense layers of 18,432, then eight experts of 2,048 and more."""
    network = library.load("deepseek-v3")
    widths = {block.mlp.inner * max(block.mlp.chosen, 1) for block in network.blocks}
    assert len(widths) > 1
    assert of_network(network).inner == max(widths) == 18_432


@pytest.mark.parametrize("cached", [0.0, 0.5, 1.0])
def test_activations_cross_the_link_for_each_sequence(cached):
    """In decoding those on the host, and queries and results of attention over the host's cache."""
    shape, rates = of_network(OPT), Modelled(OPT, T4, XEON)
    one, three = (
        rates.decode(
            shape,
            REQUEST,
            Policy(8, blocks, (1.0, 0.0, 0.0), (cached, 1 - cached, 0.0), (0.0, 1.0, 0.0)),
        )
        for blocks in (1, 3)
    )
    assert three.to_device == pytest.approx(3 * one.to_device)
    assert three.to_host == pytest.approx(3 * one.to_host)
    link = host_bytes_per_s(T4, XEON)
    assert one.to_host == pytest.approx(8 * shape.activation_bytes * (2 - cached) / link)


@pytest.mark.parametrize("part", [1, 8])
def test_a_cache_on_the_device_is_there_as_a_whole_and_twice_for_the_part_that_runs(part):
    """2303.06865, appendix A.2: attention reads one copy of its part's cache and writes another.
    A token more therefore adds its cache in all layers, twice in one, and its scores."""
    shape = of_network(OPT)
    policy = Policy(part, 3, (0.0, 1.0, 0.0), (1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
    few, many = (held(shape, Request(1, tokens), policy)["hbm"] for tokens in (4000, 4100))
    cache = part * shape.cache_bytes
    scores = part * 2.0 * shape.heads
    assert many - few == pytest.approx(100 * (shape.layers * 3 * cache + 2 * cache + scores))


def test_nothing_lies_on_a_disk_that_is_not_there():
    rates, shape = Modelled(OPT, T4, XEON), of_network(OPT)
    policy = Policy(1, 1, (0.0, 0.5, 0.5), (0.0, 1.0, 0.0), (1.0, 0.0, 0.0))
    with pytest.raises(ProblemError, match="the policy has data on disk, but there is no disk"):
        block(shape, policy, rates)
    slow, fast = (
        block(shape, policy, replace(rates, disk=Disk(rate, 1e12)))[-1] for rate in (5e8, 5e9)
    )
    assert slow < fast


@pytest.mark.parametrize(
    ("part", "blocks", "percent", "said"),
    [
        (1, 1, (20, 80), "six numbers, not 2"),
        (1, 1, (120, 0, 0, 100, 0, 100), "a share of weights is below 0"),
        (0, 1, PUBLISHED, "part is 0"),
        (1, 0, PUBLISHED, "blocks is 0"),
    ],
)
def test_a_policy_without_meaning_is_one_line(part, blocks, percent, said):
    with pytest.raises(ProblemError, match=said):
        of_percent(part, blocks, percent)


# -- streams -------------------------------------------------------------------------------------


def test_a_stream_is_never_shorter_than_its_link_and_a_batch_hides_it():
    weights = 48 * of_network(OPT).weight_bytes
    at = hiding_batch(OPT, T4, 128)
    assert at is not None
    one, few, many = (streamed(OPT, T4, batch, 128) for batch in (1, at - 1, at))
    link, work = one.children
    assert link.seconds == pytest.approx(weights / host_bytes_per_s(T4))
    assert many.children[1].seconds >= link.seconds > few.children[1].seconds
    assert one.seconds == link.seconds
    assert one.by(lambda leaf: leaf.name) == pytest.approx(
        {leaf.name: 0.0 for leaf in work.leaves} | {"weights": one.seconds}
    )
    assert hiding_batch(OPT, T4, 128, away=0.1) < at


PUBLISHED_STREAMS = [
    ("opt-30b", 8, 0.62), ("opt-30b", 4, 0.60), ("opt-6.7b", 16, 9.28)
]  # fmt: skip
"""FlexLLMGen README, T4: Accelerate and ZeRO-Inference, tokens a second at a batch."""


@pytest.mark.parametrize(("network", "batch", "published"), PUBLISHED_STREAMS)
def test_published_streams_stay_below_the_links_bound(network, batch, published):
    """Neither overlaps its copies wholly: a bound, 1.4 to 2.8 times what was measured."""
    found = batch / streamed(library.load(network), T4, batch, 544).seconds
    assert 1.0 < found / published < 3.0


def test_what_fits_is_not_streamed():
    """Accelerate with OPT-6.7B and two sequences on a T4: 25.12 tokens a second."""
    _, work = streamed(library.load("opt-6.7b"), T4, 2, 544).children
    found = 2 / work.seconds
    assert abs(math.log(found / 25.12)) < 0.3


# -- divided work --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("experts", "chosen", "tokens", "touched"),
    [(128, 8, 4, 29.123), (256, 8, 16, 101.9622), (256, 8, 64, 222.4425)],
)
def test_experts_that_tokens_touch(experts, chosen, tokens, touched):
    assert touched_experts(experts, chosen, tokens) == pytest.approx(touched, rel=1e-4)
    rng = np.random.default_rng(3)
    met = [
        len(
            set(np.concatenate([rng.choice(experts, chosen, replace=False) for _ in range(tokens)]))
        )
        for _ in range(300)
    ]
    assert np.mean(met) == pytest.approx(touched, rel=0.02)


def test_layers_of_two_machines_add_up():
    llama = library.load("llama-2-13b")
    times = [sharing.layers(llama, T4, XEON, n, 1, 512).seconds for n in range(41)]
    steps = np.diff(times[1:40])
    assert np.allclose(steps, steps[0], rtol=1e-6)
    assert all(a > b for a, b in pairwise(times[1:]))
    with pytest.raises(ProblemError, match="not 0 to the 40 of llama-2-13b"):
        sharing.layers(llama, T4, XEON, 41, 1, 512)


def test_llama_cpp_on_several_gpus_takes_as_long_as_on_one(measured):
    """LLM-Inference-Bench: layers split over 1, 2 or 4 GPUs, one sequence, nothing overlaps. A sum
    of layers on equal machines does not depend on how many there are."""
    llama = library.load("llama-2-7b")
    split, whole = (sharing.layers(llama, A100, A100, n, 1, 512).seconds for n in (16, 32))
    assert split == pytest.approx(whole, rel=0.001)
    times: dict[tuple[str, ...], dict[str, float]] = {}
    with gzip.open(measured / "serving_runs_dev.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            if row["engine"] == "llama.cpp" and row["source"].startswith("argonne"):
                keys = ("device", "network", "weights_dtype", "isl", "osl", "notes")
                case = tuple(row[key] for key in keys)
                times.setdefault(case, {})[row["devices"]] = float(row["value"])
    ratios = [
        case[many] / case["1"]
        for case in times.values()
        for many in ("2", "4")
        if "1" in case and many in case
    ]
    assert len(ratios) > 50
    assert statistics.median(ratios) == pytest.approx(1.0, abs=0.15)


# -- the command ---------------------------------------------------------------------------------


def test_the_command_searches_a_policy(cli):
    code, out, err = cli(
        "offload", "opt-30b", "-d", "t4", "--host", "xeon-gold-6242", "--policy", "auto",
        "--isl", "512", "--osl", "32", "--batch", "32,64", "-f", "json",
    )  # fmt: skip
    assert (code, err) == (0, "")
    (row,) = json.loads(out)["policies"]
    assert row["footprints"]["hbm"] <= 0.9 * T4.memory_bytes
    assert row["weights_device"] + row["weights_host"] == pytest.approx(1.0)
    assert row["tokens_per_s"] == pytest.approx(
        row["part"] * row["blocks"] * 32e6 / (row["prefill_us"] + row["decode_us"])
    )
