"""Serving: laws of steps, memory and loads; worked examples; formulas with their sources."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.compression import naming
from perfmodel.compression.compressed import Compressed
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.hardware import load as load_device
from perfmodel.networks.expand import active_count
from perfmodel.networks.library import load as load_network
from perfmodel.networks.network import Block, Mlp, Network, SelfAttention
from perfmodel.networks.operations.experts import busiest, touched
from perfmodel.offload.links import host_bytes_per_s
from perfmodel.serving import requests
from perfmodel.serving.cachememory import (
    fitting_batch,
    fitting_context,
    memory,
    sequence_bytes,
    token_bytes,
    weight_bytes,
)
from perfmodel.serving.clients import STATISTICS, Round, queued
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import MOST_FITTED, engines, load, read, released
from perfmodel.serving.kernels import kernels
from perfmodel.serving.served import METRICS, serve
from perfmodel.serving.speculative import Speculation, best, expected_tokens, speculate
from perfmodel.serving.steps import Steps
from perfmodel.serving.times import EXPERTS, Line, Times
from perfmodel.serving.weights import FORMATS

NETWORK, DEVICE = "llama-3-8b", "h100-sxm"


def deployment(network=NETWORK, device=DEVICE, engine="ideal", **options):
    return Deployment(load_network(network), load_device(device), load(engine), **options)


@lru_cache
def steps(*arguments, **options):
    return Steps(deployment(*arguments, **options))


def request(isl, osl, **options):
    return requests.Requests(np.array([float(isl)]), np.array([float(osl)]), **options)


def total(times):
    return float(times.total[0])


# -- steps ---------------------------------------------------------------------------------------


@given(st.integers(1, 400), st.integers(1, 400), st.integers(1, 8000), st.integers(1, 8000))
def test_a_step_of_more_sequences_or_longer_ones_takes_no_less(batch, more, past, further):
    small, wide, long = steps().decode(
        np.array([batch, batch + more, batch]), np.array([past, past, past + further])
    ).total  # fmt: skip
    assert wide >= small * 0.999
    assert long >= small * 0.999


@given(st.integers(1, 6000), st.integers(1, 2000))
def test_a_longer_prompt_takes_longer(tokens, more):
    one, other = steps().prefill(np.array([1, 1]), np.array([tokens, tokens + more])).total
    assert other > one


@given(st.integers(1, 512), st.integers(16, 8000))
def test_decoding_beats_neither_bandwidth_nor_matrix_rate(batch, past):
    of = steps().of
    seconds = total(steps().decode(np.array([batch]), np.array([past])))
    active = active_count(of.network, input_embedding=False)
    moved = 2.0 * active + batch * past * token_bytes(of)
    assert seconds > 0.98 * moved / of.device.memory.hbm.bandwidth.si
    flops = 2.0 * active * batch
    assert seconds > flops / of.device.matrix_flops("bf16")


@given(st.sampled_from([1, 2, 4, 8]), st.integers(0, 10))
def test_devices_that_share_a_layer_do_its_operations_between_them(tensor, power):
    """Products of the layers; norms run on every device."""

    def flops(ranks):
        return sum(
            one.launches * one.asked.problem.flops()
            for one in kernels(deployment(tensor=ranks), 2**power)
            if one.kind == "matmul"
        )

    assert tensor * flops(tensor) == pytest.approx(flops(1), rel=1e-3)


@given(st.integers(1, 300), st.integers(50, 6000))
def test_a_step_between_knots_is_what_it_is_there(batch, past):
    """Steps are interpolated between knots; the kernels themselves are asked here."""
    of = steps()
    exact = Steps(of.of)
    exact._fill([batch], head=False)
    exact._fill([batch], head=True)
    (attention,) = exact._attention(np.array([batch]), np.array([1]), np.array([past]))
    whole = total(exact._layers[batch]) + total(exact._heads[batch]) + total(attention)
    parts = (of.layers, of.head)
    near = sum(total(part(np.array([float(batch)]))) for part in parts)
    near += total(of.decoding(np.array([float(batch)]), np.array([float(past)])))
    assert near == pytest.approx(whole, rel=0.04)


def test_prompts_in_pieces_read_keys_again():
    """Sarathi (2308.16369): products do the same work, attention reads earlier keys again."""
    whole = deployment(engine="vllm")
    pieces = replace(whole, engine=whole.engine.having({"batching.tokens": 512}))
    took = [Steps(one).prefill(np.array([1]), np.array([8192])) for one in (whole, pieces)]
    long, short = (times.by_kind()["attention"] for times in took)
    assert short > long


def test_a_mixed_step_takes_less_than_its_parts_and_more_than_each():
    of = steps()
    one = (np.array([64.0]), np.array([1024.0]))
    both = total(of.mixed(*one, np.array([1.0]), np.array([512.0]), np.array([0.0])))
    alone, prompt = total(of.decode(*one)), total(of.prefill(np.array([1]), np.array([512])))
    assert max(alone, prompt) < both < alone + prompt


def test_the_latent_is_what_deepseek_decodes_over():
    """Its cache is 576 numbers a token and layer; expanded heads would be 40,960."""
    of = Steps(deployment("deepseek-v3", engine="vllm", weights="fp8", tensor=8))
    near, far = (of.decode(np.array([64]), np.array([past])).by_kind() for past in (1024, 8192))
    grown = far["attention"] - near["attention"]
    read_again = 64 * (8192 - 1024) * 61 * 576 * 2 / of.of.device.memory.hbm.bandwidth.si
    assert 0.8 * read_again < grown < 8 * read_again


def test_exchanges_grow_with_the_devices_that_share():
    found = [
        steps(engine="vllm", tensor=tensor).decode(np.array([16]), np.array([512])).by_kind()
        for tensor in (1, 2, 8)
    ]
    said = [one.get("communication", 0.0) for one in found]
    assert said[0] == 0.0 < said[1] < said[2]
    assert found[2]["matmul"] < found[0]["matmul"]


# -- memory --------------------------------------------------------------------------------------


@given(st.floats(1e9, 4e11), st.floats(0, 1e11), st.integers(1, 100_000))
def test_more_memory_never_lowers_the_batch_that_fits(size, more, tokens):
    of = deployment(engine="vllm")
    has = memory(of)
    small, large = (replace(has, total_bytes=total) for total in (size, size + more))
    assert fitting_batch(of, tokens, has=small) <= fitting_batch(of, tokens, has=large)
    assert fitting_context(of, 8, has=small) <= fitting_context(of, 8, has=large)


@given(st.integers(1, 512), st.sampled_from(sorted(engines())))
def test_what_fits_does_and_one_more_does_not(batch, engine):
    of = deployment(engine=engine)
    room = memory(of).cache_bytes
    context = fitting_context(of, batch)
    assert batch * sequence_bytes(of, context) <= room < batch * sequence_bytes(of, context + 1)


@given(st.integers(1, 5000), st.integers(0, 5000))
def test_a_shared_prefix_is_kept_once(tokens, shared):
    of = deployment(engine="vllm")
    own = sequence_bytes(of, tokens + shared, shared=shared)
    assert own <= sequence_bytes(of, tokens + shared)
    assert own >= sequence_bytes(of, tokens) - 1


@pytest.mark.parametrize("name", sorted(engines()))
def test_terms_of_memory_add_up(name):
    has = memory(deployment(engine=name))
    assert sum(has.terms().values()) == pytest.approx(has.total_bytes)
    assert all(value >= 0 for value in has.terms().values())


def test_formats_of_more_bits_take_more_memory():
    sizes = {name: weight_bytes(deployment(weights=name)) for name in FORMATS}
    for one, small in FORMATS.items():
        for other, large in FORMATS.items():
            ends = [(each.stored.embedding, each.stored.head) for each in (small, large)]
            if small.bits < large.bits and ends[0] == ends[1]:
                assert sizes[one] < sizes[other]


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3-70b", "falcon-7b"])
def test_a_stage_holds_its_layers_and_one_end_at_most(name):
    """The embedding is on the first stage and the head on the last. What one stage of a quarter of
    the layers has less than one of half is a quarter of the layers; the rest are the ends."""
    one, two, four = (weight_bytes(deployment(name, pipeline=stages)) for stages in (1, 2, 4))
    layers = 4 * (two - four)
    network = load_network(name)
    end = 2 * network.vocabulary * network.hidden
    ends = one - layers
    assert ends == pytest.approx(end if network.tied else 2 * end, rel=0.02)
    assert two - layers / 2 == pytest.approx(end, rel=0.02)


def test_integer_caches_carry_scales():
    whole, half = (token_bytes(deployment(cache=kind)) for kind in ("bf16", "int8"))
    assert whole / 2 < half < 0.6 * whole


def test_a_window_bounds_what_a_layer_keeps():
    attention = SelfAttention(heads=8, kv_heads=8, head_size=64, window=128)
    blocks = (
        Block(attention, Mlp(2048), repeat=12),
        Block(replace(attention, window=0), Mlp(2048), repeat=12),
    )
    network = Network("windows", 512, 32000, blocks)
    of = Deployment(network, load_device(DEVICE), load("ideal"))
    each = 2 * 8 * 64 * 2
    assert sequence_bytes(of, 8192) == 12 * each * (128 + 8192)


def test_heads_are_copied_where_devices_are_more_than_they():
    each = [
        sequence_bytes(deployment("llama-3-70b", weights="fp8", tensor=t), 1024) for t in (4, 8)
    ]
    of = deployment("qwen3-30b-a3b", tensor=8)
    assert each[0] == 2 * each[1]
    assert sequence_bytes(of, 1024) == sequence_bytes(replace(of, tensor=4), 1024)


# -- loads ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("engine", ["vllm", "sglang", "nim"])
def test_throughput_and_times_grow_with_clients(engine):
    of = steps(engine=engine)
    found = serve(of, "concurrency", [1, 4, 16, 64], 1024, 256)
    for name in ("ttft_ms", "tpot_ms", "output_tokens_per_s"):
        values = [one.metric(name).value for one in found]
        assert values == sorted(values), name


@pytest.mark.parametrize("kind", ["static batch", "concurrency"])
def test_metrics_have_ranges_and_agree(kind):
    (one,) = serve(steps(engine="vllm"), kind, [8], 512, 128)
    for name in METRICS:
        value = one.metric(name)
        assert 0 < value.low < value.value < value.high
    seconds = one.metric("e2e_ms").value / 1e3
    first, each = (one.metric(name).value / 1e3 for name in ("ttft_ms", "tpot_ms"))
    assert seconds == pytest.approx(first + 127 * each)


def test_copies_serve_each_their_share():
    one, two = (serve(steps(engine="vllm", data=d), "full", [0], 512, 512)[0] for d in (1, 2))
    made = [each.metric("output_tokens_per_s").value for each in (one, two)]
    assert made[1] == pytest.approx(2 * made[0])


@pytest.mark.parametrize("kind", ["static batch", "concurrency", "full"])
def test_stages_work_at_the_same_time(kind):
    """Two stages of half of the layers make more than one device, and at most twice as much, apart
    from the sequences that the larger memory holds and the cache that they then read."""
    one, two = (
        serve(steps(engine="vllm", pipeline=stages), kind, [128], 1024, 256)[0] for stages in (1, 2)
    )
    made = [each.metric("output_tokens_per_s").value for each in (one, two)]
    most = max(2.0, two.resident / one.resident)
    assert 1.2 * made[0] < made[1] < most * made[0]


def test_one_sequence_is_in_one_stage_at_a_time():
    one, four = (
        serve(steps(engine="vllm", pipeline=stages), "static batch", [1], 512, 64)[0]
        for stages in (1, 4)
    )
    assert four.metric("e2e_ms").value > one.metric("e2e_ms").value
    assert four.parts == 1


def test_stages_of_layers_on_several_devices_by_transformers_take_turns():
    one, two = (
        serve(steps(engine="transformers", pipeline=stages), "static batch", [32], 512, 64)[0]
        for stages in (1, 2)
    )
    assert two.metric("output_tokens_per_s").value < one.metric("output_tokens_per_s").value


def test_a_rate_that_some_number_of_residents_serves_is_not_refused():
    """With a full cache little of a step's tokens is left for prompts, so fewer serve more."""
    of, sent = steps(engine="deepspeed"), request(4096, 16)
    few = requests.steady(of, 6, sent).requests_per_s[0]
    full = requests.full(of, sent).requests_per_s[0]
    assert few > full
    (rated,) = serve(of, "rate", [(few + full) / 2 * requests.KNEE], 4096, 16)
    assert rated.requests_per_s == pytest.approx((few + full) / 2 * requests.KNEE, rel=1e-3)


@pytest.mark.parametrize("tokens", [1, 3, 8, 9, 32, 100])
def test_experts_of_one_token_each_run_at_every_batch(tokens):
    """Even shares of rows round down; 8 tokens reach 6 of 16 experts with one row each."""
    assert total(steps("llama-4-scout", weights="fp8", tensor=4).layers(np.array([tokens]))) > 0


def test_littles_law_holds_for_clients_and_rates():
    """Clients = requests a second x seconds of each (Little 1961), waits included."""
    (rated,) = serve(steps(engine="sglang"), "rate", [2.0], 1024, 256)
    assert rated.resident == pytest.approx(2.0 * rated.metric("e2e_ms").value / 1e3, rel=1e-3)
    (closed,) = serve(steps(engine="sglang"), "concurrency", [32], 1024, 256)
    made = closed.requests_per_s * closed.metric("e2e_ms").value / 1e3
    assert made == pytest.approx(32, rel=1e-3)


def test_beyond_the_knee_there_is_no_number():
    of = steps(engine="vllm")
    top = float(requests.full(of, request(1024, 256)).requests_per_s[0])
    serve(of, "rate", [0.5 * top], 1024, 256)
    with pytest.raises(ProblemError, match="beyond the knee"):
        serve(of, "rate", [0.97 * top], 1024, 256)
    with pytest.raises(ProblemError, match=r"are more than the .* serves; give a lower rate"):
        serve(of, "rate", [1.5 * top], 1024, 256)


@pytest.mark.parametrize("clients", [1, 7, 64, 200])
@pytest.mark.parametrize("isl", [64, 1000, 5000])
def test_the_mean_first_token_waits_for_no_more_than_all_prompts(clients, isl):
    """In phase, the last of the prompts waits for all, and the first for its own step."""
    of = steps(engine="sglang")
    assert not of.of.engine.batching.mixed
    found = requests.closed(of, np.array([float(clients)]), request(isl, 64))
    every = total(of.prefill(found.resident, np.array([float(isl)])))
    first = total(found.prompt)
    if clients * isl <= of.of.engine.batching.tokens or found.resident[0] == 1:
        assert first == pytest.approx(every)  # one step has all of them
    assert every / 2 < first <= every * (1 + 1e-9)
    assert every / found.resident[0] <= first


@pytest.mark.parametrize("engine", ["sglang", "vllm", "tensorrt-llm", "nim"])
@pytest.mark.parametrize("clients", [2, 16, 64])
def test_clients_out_of_phase_wait_less_for_first_tokens(engine, clients):
    """Spread ends leave fewer prompts before one's own, down to the prompt, the host and steps."""
    of = steps("llama-3-70b", engine=engine, weights="fp8", tensor=4)
    ask = {"statistic": "p50"}
    took = [
        serve(of, "concurrency", [clients], 4096, 512, vary=vary, **ask)[0].metric("ttft_ms").value
        for vary in (0.0, 0.02, 0.2, 1.0)
    ]
    assert took == sorted(took, reverse=True)
    assert took[-1] > 1e3 * total(of.prefill(np.array([1]), np.array([4096])))


@pytest.mark.parametrize("engine", ["sglang", "vllm"])
@pytest.mark.parametrize("kind", ["concurrency", "rate"])
def test_statistics_of_first_tokens_are_in_order(engine, kind):
    of = steps("llama-3-70b", engine=engine, weights="fp8", tensor=4)
    size = {"concurrency": 32, "rate": 1.0}[kind]
    values = {
        name: serve(of, kind, [size], 1024, 256, vary=0.2, statistic=name)[0]
        .metric("ttft_ms").value
        for name in STATISTICS
    }  # fmt: skip
    assert values["p50"] <= values["mean"] <= values["p99"]
    assert values["p50"] <= values["p90"] <= values["p99"]
    (served,) = serve(of, kind, [size], 1024, 256, vary=0.2)
    assert served.metric("ttft_ms").value == values["mean"]


@pytest.mark.parametrize("field", ["poll", "ahead"])
@pytest.mark.parametrize("kind", ["concurrency", "rate"])
def test_steps_between_a_request_and_its_prompt_delay_first_tokens(field, kind):
    of = steps("llama-3-70b", engine="sglang", weights="fp8", tensor=4)
    size = {"concurrency": 16, "rate": 1.0}[kind]
    before = getattr(of.of.engine.batching, field)
    took = [
        serve(
            Steps(replace(of.of, engine=of.of.engine.having({f"batching.{field}": before + more}))),
            kind, [size], 1024, 256, vary=0.2, statistic="p50",
        )[0].metric("ttft_ms").value
        for more in (0, 20)
    ]  # fmt: skip
    step = total(of.decode(np.array([size * 1.0]), np.array([1100])))
    assert took[1] - took[0] > 1e3 * step


def together(engine="tensorrt-llm", gather=1):
    """Eight copies that share experts."""
    of = steps("deepseek-v3", "h200-sxm", engine, weights="fp8-block", expert=8, data=8)
    return Steps(replace(of.of, engine=of.of.engine.having({"batching.gather": gather})))


@pytest.mark.parametrize(("share", "gather"), [(0.02, 1), (0.002, 60), (0.004, 60), (0.01, 20)])
def test_prompts_wait_for_those_of_other_copies_as_a_scheduler_holds_them(share, gather):
    """Copies get a prompt in a share of the steps; one of each runs when all have one, or after so
    many steps."""
    of, draw = together(gather=gather), np.random.default_rng(0)
    arrived, waits, held, ran, steps_run = [[] for _ in range(8)], [], 0, 0, 100_000
    for step, came in enumerate(draw.random((steps_run, 8)) < share):
        for copy in np.flatnonzero(came):
            arrived[copy].append(step)
        held += 1
        if all(arrived) or held >= gather:
            first = [queue.pop(0) for queue in arrived if queue]
            waits += [step - at for at in first]
            ran, held = ran + bool(first), 0
    resident, shares = np.array([8.0]), np.array([share])
    assert requests._gate_steps(of, resident, shares)[0] == pytest.approx(
        np.mean(waits), rel=0.1, abs=0.1
    )
    run = share * requests._stall_factor(of, resident, shares)[0]
    assert run == pytest.approx(ran / steps_run, rel=0.2)


@pytest.mark.parametrize("engine", ["sglang", "vllm", "tensorrt-llm"])
def test_copies_that_share_experts_wait_for_each_others_prompts(engine):
    """A prompt of any copy stalls the tokens of all, unless all of them come at once."""
    took = [
        requests.closed(together(engine), np.array([8.0]), request(4096, 512, vary=vary)).tpot[0]
        for vary in (0.0, 0.2)
    ]
    alone = total(together(engine).decode(np.array([8.0]), np.array([4352.0])))
    prompt = total(together(engine).prefill(np.array([1.0]), np.array([4096.0])))
    assert took[0] < took[1] < alone + 8 * 8 / 512 * 1.1 * prompt
    assert took[1] > alone + 8 * 8 / 512 * 0.5 * prompt


def test_prompts_that_are_held_spare_the_tokens_of_others():
    asked = np.array([8.0]), request(4096, 512, vary=0.2)
    free, held = (requests.closed(together(gather=most), *asked) for most in (1, 60))
    assert held.ttft[0] > free.ttft[0] + 20 * held.tpot[0]
    assert held.tpot[0] < free.tpot[0]


@pytest.mark.parametrize(("clients", "vary"), [(1.0, 0.2), (8.0, 0.0)])
def test_no_prompt_waits_for_copies_that_have_none_or_all_one(clients, vary):
    """A copy's only client finds nothing to spare; prompts of one length come together."""
    asked = np.array([clients]), request(4096, 512, vary=vary)
    free, held = (requests.closed(together(gather=most), *asked) for most in (1, 60))
    assert held.ttft[0] == pytest.approx(free.ttft[0])
    assert held.tpot[0] == pytest.approx(free.tpot[0])


@given(st.integers(2, 600), st.integers(1, 8000), st.booleans())
def test_two_halves_in_turn_take_no_less_than_either_resource_and_no_more_than_both(
    tokens, past, prompt
):
    of = together("sglang")
    both = Steps(replace(of.of, engine=of.of.engine.overlapping()))
    batch, past, half = np.array([float(tokens)]), np.array([past]), np.array([tokens / 2.0])
    if prompt:
        one = np.array([1.0])
        whole = both.prefill(one, batch).by_kind()
        attends = total(of.prompts(one, batch, np.array([0.0]))) + total(of.head(one))
    else:
        whole = both.decode(batch, past).by_kind()
        attends = 2.0 * total(of.decoding(half, past)) + total(of.head(batch))
    sent = 2.0 * of.layers(half).by_kind()["communication"]
    computing = 2.0 * total(of.layers(half)) - sent + attends
    took = sum(seconds for kind, seconds in whole.items() if kind != "host")
    assert max(sent, computing) * (1 - 1e-9) <= took <= (sent + computing) * (1 + 1e-9)


def test_overlap_pays_in_long_prompts_and_costs_a_few_tokens():
    """Each half reads the weights: 8 tokens a copy take longer, 8,192 shorter."""
    of = together("sglang")
    both = Steps(replace(of.of, engine=of.of.engine.overlapping()))
    long, few, past = np.array([8192.0]), np.array([8.0]), np.array([4096])
    assert total(both.prefill(np.array([1.0]), long)) < total(of.prefill(np.array([1.0]), long))
    assert total(both.decode(few, past)) > total(of.decode(few, past))
    one = np.array([1.0])
    assert total(both.decode(one, past)) == total(of.decode(one, past))


@pytest.mark.parametrize(
    ("prompts", "ranks", "spare", "requests", "tokens", "published"),
    [(True, 32, 32, 4.0, 4096, 7839.0), (False, 128, 0, 128.0, 4096, 2324.0)],
    ids=["prompts", "tokens"],
)
def test_deepseeks_own_rates_lie_inside_the_ranges(
    prompts, ranks, spare, requests, tokens, published
):
    """Tokens a second of a H800 (DeepSeek, profile-data; LMSYS, 2025-05-05): 16K tokens of prompts
    on 32 devices, 128 sequences each on 128, in two halves. 25 % and 4 % too fast."""
    plan = Deployment(
        load_network("deepseek-v3"), load_device("h800-sxm"), load("deepseek").overlapping(),
        weights="fp8-block", data=ranks, expert=ranks, redundant=spare,
    )  # fmt: skip
    batch, past = np.array([requests]), np.array([float(tokens)])
    step = Steps(plan).prefill(batch, past) if prompts else Steps(plan).decode(batch, past)
    rate = requests * (tokens if prompts else 1.0) / total(step)
    assert rate == pytest.approx(published, rel=0.3)
    low, high = step.range(0)
    assert rate / high <= published <= rate / low


@pytest.mark.parametrize(
    ("sent", "took"),
    [(0.5, 11.5), (2.0, 8.0 / 0.85 + 3.0 + 0.15 * 2.0 * 3.0 / 11.0), (20.0, 20.0)],
    ids=["no more than both in turn", "products leave its units", "no less than the exchange"],
)
def test_a_step_in_two_halves_by_hand(sent, took):
    """8 s of products and 3 s of others beside an exchange, which has 15 % of the units."""
    kinds = {"product": "matmul", "norm": "norm", f"{EXPERTS}all-to-all": "communication"}
    lines = tuple(Line(name, kind, kind) for name, kind in kinds.items())
    seconds = np.array([[8.0], [3.0], [sent]])
    step, two = Times(lines, seconds, seconds, seconds), np.array([2.0])
    assert total(Steps._overlap(step, two, 0.15)) == pytest.approx(took)
    assert total(Steps._overlap(step, two, 0.0)) == pytest.approx(max(11.0, sent))
    assert total(Steps._overlap(step, np.array([1.0]), 0.15)) == pytest.approx(11.0 + sent)


def test_engines_overlap_halves_of_a_step_as_they_are_started():
    """Off unless asked for, as in SGLang and vLLM."""
    known = {engine.name: engine.batching.overlap for engine in engines().values()}
    assert {known[name] for name in ("sglang", "vllm", "deepseek", "ideal")} == {"option"}
    assert load("sglang").overlapping().batching.overlap == "always"
    with pytest.raises(ProblemError, match="drop --overlap, or take deepseek, ideal, sglang"):
        load("tensorrt-llm").overlapping()
    alone = replace(deployment(engine="sglang"), engine=load("sglang").overlapping())
    assert not alone.overlaps  # no experts on other copies


def cached_at(place, part, load=("static batch", 1.0), isl=4096, **options):
    of = steps(cached_at=place, **options)
    return serve(of, load[0], [load[1]], isl, 64, cached=part)[0]


@given(
    st.sampled_from([0.25, 0.5, 1024, 0.9]), st.sampled_from(["vllm", "tensorrt-llm", "ideal"]),
    st.sampled_from([("static batch", 4.0), ("concurrency", 16.0), ("rate", 1.0), ("full", 0.0)]),
)  # fmt: skip
def test_a_cache_at_the_host_lies_between_one_on_the_device_and_none(part, engine, load):
    device, host = (cached_at(at, part, load, engine=engine) for at in ("device", "host"))
    none = cached_at("host", 0, load, engine=engine)
    assert device.ttft_seconds < host.ttft_seconds < none.ttft_seconds
    assert host.requests_per_s <= device.requests_per_s * (1.0 + 1e-6)  # by halvings
    assert cached_at("device", 0, load, engine=engine).ttft_seconds == none.ttft_seconds


def test_a_cache_at_the_host_arrives_layer_by_layer():
    """C seconds of 32 layers beside T of the link: max(C + T/32, T + C/32); every token has 128 KiB
    and crosses at 0.8 of 64 GB/s. Two devices have a link each."""
    for part, tensor in ((1024, 1), (4000, 1), (4000, 2)):
        device, host = (
            cached_at(at, part, engine="ideal", tensor=tensor).ttft_seconds
            for at in ("device", "host")
        )
        sent = part * 128 * 1024 / tensor / host_bytes_per_s(load_device(DEVICE))
        layered = max(device + sent / 32, sent + device / 32)
        assert host == pytest.approx(layered, rel=5e-3)  # blocks of the cache are whole


@given(st.floats(0.1, 300.0), st.sampled_from([0.25, 1024, 0.9]))
def test_a_slower_disk_is_never_faster_and_one_beyond_the_link_is_the_host(rate, part):
    host, disk, slower = (
        cached_at(at, part, disk_rate=f"{each} GB/s", engine="vllm").ttft_seconds
        for at, each in (("host", rate), ("disk", rate), ("disk", rate / 2))
    )
    none = cached_at("disk", 0, disk_rate="1 GB/s", engine="vllm").ttft_seconds
    assert host <= disk <= slower <= none
    beyond = rate * 1e9 >= host_bytes_per_s(load_device(DEVICE))
    assert (disk == host) is beyond


def test_a_fast_device_computes_again_what_a_slow_link_holds():
    """A token of 512 KiB crosses in 10 us of PCIe 5; its 13.5 GFLOP in fp8 take half on a B200."""
    options = {"network": "llama-2-7b", "device": "b200", "weights": "fp8"}
    device, host = (cached_at(at, 0.9, **options) for at in ("device", "host"))
    none = cached_at("device", 0, **options)
    assert device.ttft_seconds < host.ttft_seconds == none.ttft_seconds


@given(st.integers(0, 1023), st.integers(1, 64))
def test_cached_tokens_of_a_prompt_cost_attention_alone(cached, clients):
    """Fewer products never take longer, and take no room from the cache."""
    of = steps(engine="vllm")
    for kind in ("static batch", "concurrency"):
        none, some = (serve(of, kind, [clients], 1024, 64, cached=part)[0] for part in (0, cached))
        most = 1.05 if cached < 512 else 0.95  # ragged tiles cost a little
        assert some.metric("ttft_ms").value <= none.metric("ttft_ms").value * most
        assert some.resident == none.resident


def test_a_share_of_a_prompt_is_its_tokens():
    of = steps(engine="vllm")
    ask = [serve(of, "concurrency", [8], 1024, 64, cached=part)[0] for part in (0.5, 512, 0.9999)]
    assert [one.cached for one in ask] == [512, 512, 1023]
    assert ask[0].metric("ttft_ms") == ask[1].metric("ttft_ms")
    with pytest.raises(ProblemError, match="cached is 1025 of a prompt of 1024 tokens"):
        serve(of, "concurrency", [8], 1024, 64, cached=1025)
    with pytest.raises(ProblemError, match="lengths vary by 0 to 2 of their mean"):
        serve(of, "concurrency", [8], 1024, 64, vary=-0.1)


def test_a_prefix_halves_what_prompts_add():
    """A step without prompts is the same; half a prompt adds about half of its products."""
    of = steps(engine="vllm")
    none, half, all_ = (
        requests.steady(of, 16, request(2048, 64, cached=part)).tpot[0] for part in (0, 1024, 2047)
    )
    assert none - all_ == pytest.approx(2 * (half - all_), rel=0.15)
    assert none > 1.1 * half > 1.1 * all_


def test_what_does_not_reside_at_once_runs_in_waves():
    of = steps("llama-2-7b", "a100-sxm4-40gb", "vllm-v0", weights="fp16")
    most = fitting_batch(of.of, 2048)
    once, twice = serve(of, "static batch", [most, 2 * most], 1024, 1024)
    assert twice.metric("e2e_ms").value == pytest.approx(2 * once.metric("e2e_ms").value)


# -- drafts and pools ----------------------------------------------------------------------------


def test_speculation_by_its_theorem():
    """2211.17192, equation 1 and theorem 3.8."""
    assert expected_tokens(0.8, 5) == pytest.approx(3.68928)
    gain = Speculation(5, 1, expected_tokens(0.8, 5), 0.05, 1.0, 5 * 0.05 + 1.0, 1.0)
    assert gain.speedup == pytest.approx(2.95142, rel=1e-4)
    assert expected_tokens(0.9, 3) == pytest.approx(3.439)


@given(st.floats(0, 1), st.integers(0, 16))
def test_a_pass_makes_one_token_at_least_and_all_at_most(accept, gamma):
    assert 1 <= expected_tokens(accept, gamma) <= gamma + 1 + 1e-9


def test_checking_drafts_costs_more_in_a_larger_batch():
    target, draft = (
        steps(name, "a100-sxm4-80gb", "gpt-fast", weights="int4-g32")
        for name in ("llama-2-70b", "llama-2-7b")
    )
    found = [speculate(target, draft, 0.72, 5, batch, 128) for batch in (1, 16, 256)]
    assert [one.verify for one in found] == sorted(one.verify for one in found)
    assert found[0].speedup > 1.5 > 1 > found[2].speedup
    assert best(target, draft, 0.72, 256, 128).gamma == 0
    # gpt-fast README: 25.25 tokens/s, 48.4 with this draft, of which 0.72 follows.
    assert found[0].speedup == pytest.approx(48.4 / 25.25, rel=0.15)


def pooled(pools, users, isl=1024, osl=256, **options):
    of = steps("llama-3-70b", engine="vllm", weights="fp8", tensor=4, pools=pools, **options)
    return serve(of, "concurrency", users, isl, osl)


def test_clients_are_in_one_pool_or_the_other():
    """Little's law over both pools, and of the pool for tokens, whose step is that of its share."""
    (load,) = pooled("1:2", [512])
    assert load.of.devices == 12
    seconds = load.ttft_seconds + 255 * load.tpot_seconds
    assert load.requests_per_s * seconds == pytest.approx(512)
    decoding = load.requests_per_s * 255 * load.tpot_seconds / 2
    step = steps("llama-3-70b", engine="vllm", weights="fp8", tensor=4).decode(
        np.array([decoding]), np.array([1024 + 128])
    )
    assert load.tpot_seconds == pytest.approx(total(step), rel=0.02)
    assert load.tpot_seconds > pooled("1:2", [8])[0].tpot_seconds


def test_a_pool_that_is_too_small_bounds_the_rate():
    """With few copies for prompts the rate is theirs, however many make tokens."""
    one, more = (pooled(pools, [2048], isl=4096, osl=64)[0] for pools in ("1:1", "1:3"))
    alone = total(Steps(one.of.for_prompts).prefill(np.array([1]), np.array([4096])))
    assert one.requests_per_s == pytest.approx(1 / alone, rel=0.02)
    assert more.requests_per_s == pytest.approx(one.requests_per_s, rel=0.02)
    wider = pooled("2:1", [2048], isl=4096, osl=64)[0]
    assert wider.requests_per_s > 1.8 * one.requests_per_s
    assert wider.ttft_seconds < one.ttft_seconds
    assert pooled("1:1", [2048], isl=1024, osl=64)[0].requests_per_s > 2 * one.requests_per_s


def test_a_wait_is_that_of_a_closed_network():
    """One client never waits; few clients wait as in an open queue (M/D/1); many keep the server
    busy; and in between the waits are those of a simulation."""
    ones = np.ones(3)
    assert queued(ones, ones, np.array([0.1, 1.0, 10.0])).tolist() == [0.0, 0.0, 0.0]
    many = np.array([1e3])
    assert queued(many, np.ones(1), np.array([4e3]))[0] == pytest.approx(1 / 6, rel=0.05)
    assert queued(many, np.ones(1), np.array([10.0]))[0] == pytest.approx(1e3 - 11.0)
    draw = np.random.default_rng(0)
    heap = [(second, 0.0) for second in draw.exponential(10.0, 10)]
    waits, free = [], 0.0
    for _ in range(20_000):
        heap.sort()
        second, _ = heap.pop(0)
        waits.append(max(free - second, 0.0))
        free = max(free, second) + 1.0
        heap.append((free + draw.exponential(10.0), 0.0))
    found = queued(np.array([10.0]), np.ones(1), np.array([10.0]))[0]
    assert found == pytest.approx(np.mean(waits), rel=0.15)


def test_first_tokens_wait_for_the_server_where_it_is_busy():
    """One process admits requests, one streams tokens: the slower one is what fast devices meet,
    and first tokens and further ones wait for it alike."""
    few, many = serve(steps(engine="tensorrt-llm", tensor=8), "concurrency", [8, 128], 1024, 512)
    engine = many.of.engine
    most = 1 / engine.served_seconds(512)
    assert most == min(1 / engine.admit_seconds, 1 / (512 * engine.stream_seconds))
    assert 0.8 * most < many.requests_per_s <= 1.02 * most
    assert many.ttft_seconds > 5 * few.ttft_seconds
    assert many.tpot_seconds > 1.5 * few.tpot_seconds
    assert many.load.seconds[1] == pytest.approx(many.ttft_seconds + 511 * many.tpot_seconds)
    (rated,) = serve(Steps(many.of), "rate", [0.9 / engine.admit_seconds], 1024, 128)
    assert rated.ttft_seconds > 2 * few.ttft_seconds
    with pytest.raises(ProblemError, match="serves; give a lower rate"):
        serve(Steps(many.of), "rate", [1.1 * most], 1024, 512)


@pytest.mark.parametrize(("tokens", "met"), [(1, 2.55), (4, 6.56), (16, 16.75), (64, 30.30)])
def test_a_step_waits_for_the_device_with_most_experts(tokens, met):
    """Means of 2,000 draws of 8 of 256 experts a token, on 8 devices; the mean device has less."""
    mean = touched(256, 8, tokens) / 8
    assert mean < busiest(256, 8 * mean, 8) == pytest.approx(met, rel=0.1)
    assert busiest(256, 8 * mean, 1) == 8 * mean


def test_second_copies_of_experts_take_memory_and_halve_the_fullest():
    """DeepSeek-V3 with 32 of 256 experts copied (2412.19437, section 3.4): a device has 9 for 8.
    An even router gains nothing; one whose fullest expert has four times the mean does."""
    even = load_network("deepseek-v3")
    options = {"weights": "fp8", "expert": 32, "data": 32}
    of = [
        Deployment(even, load_device("h800-sxm"), load("sglang"), redundant=redundant, **options)
        for redundant in (0, 32)
    ]
    expert = 3 * 7168 * 2048
    more = weight_bytes(of[1]) - weight_bytes(of[0])
    assert more == pytest.approx(58 * expert, rel=1e-3)
    blocks = [replace(b, mlp=replace(b.mlp, imbalance=4.0)) for b in even.blocks if b.mlp.experts]
    uneven = replace(even, blocks=tuple(blocks))
    even = replace(even, blocks=even.blocks[-len(blocks) :])

    def seconds(network, plan):
        return total(Steps(replace(plan, network=network)).layers(np.array([4096])))

    assert seconds(even, of[1]) >= 0.99 * seconds(even, of[0])
    assert seconds(uneven, of[1]) < 0.8 * seconds(uneven, of[0])
    with pytest.raises(ProblemError, match="do not divide"):
        seconds(even, replace(of[0], expert=9, data=9))
    assert seconds(even, replace(of[1], expert=9, data=9)) > 0.0
    with pytest.raises(ProblemError, match="give --expert"):
        replace(of[1], expert=1, data=1)


def test_experts_on_the_devices_of_a_copy_share_its_reduction():
    """Whole experts in place of slices: the same bytes, without an exchange of tokens."""
    slices, wholes = (
        steps("deepseek-v3", "h200-sxm", "vllm", weights="fp8", tensor=8, expert=expert)
        for expert in (1, 8)
    )
    assert weight_bytes(wholes.of) == pytest.approx(weight_bytes(slices.of), rel=1e-3)
    names = [
        {line.name for line in of.layers(np.array([64])).lines if line.kind == "communication"}
        for of in (slices, wholes)
    ]
    assert names[0] == names[1] == {"all-reduce"}


def test_a_shared_expert_is_one_of_the_chosen_where_the_engine_fuses_it():
    names = {
        engine: {one.name for one in kernels(deployment("deepseek-v3", engine=engine), 8)}
        for engine in ("sglang", "vllm")
    }
    assert not any(name.startswith("shared expert") for name in names["sglang"])
    assert "shared expert down" in names["vllm"]
    for found in names.values():  # one product for the latents of queries, and of keys and values
        assert "attention down" in found
        assert "attention kv down" not in found


# -- engines -------------------------------------------------------------------------------------


@pytest.mark.parametrize("one", engines().values(), ids=lambda one: one.name)
def test_an_engine_has_sources_and_few_fitted_numbers(one):
    assert len(one.fitted) <= MOST_FITTED
    assert all(part.source for part in (one, one.host, one.cache, one.batching))
    assert all(one.constant(name) > 0 for name in one.fitted)
    fields = ("step_us", "sequence_us", "sharing_us", "client_us", "admit_us")
    numbers = {f"host.{name}" for name in fields}
    assert {name for name in numbers if one.constant(name)} <= set(one.fitted)


def test_no_engine_knows_a_device():
    from perfmodel.serving.engine import FOLDER

    for path in FOLDER.glob("*.yaml"):
        body = [line for line in path.read_text().splitlines() if "source" not in line]
        assert not any(word in " ".join(body).lower() for word in ("h100", "a100", "b200"))


def test_a_release_is_its_own_engine():
    assert released("vllm", "0.5.3").name == "vllm-v0"
    assert released("vllm", "0.12.0").name == released("vllm", "").name == "vllm"
    assert released("trtllm", "0.6.1").name == "tensorrt-llm-session"
    assert released("tensorrt-llm", "0.11.0").name == "tensorrt-llm-v0"
    assert released("tensorrt-llm", "1.0.0rc3").name == "tensorrt-llm"
    image = "nvcr.io/nvidia/tensorrt-llm/release:1.3.0rc14"
    assert released("tensorrt-llm", image).name == "tensorrt-llm"
    assert released("vllm", "vllm/vllm-openai:v0.5.3").name == "vllm-v0"


@cases
def test_a_file_that_is_wrong_says_where(tmp_path, line, said):
    entry = {"about": "x", "version": "1", "stack": "vllm", "source": "x"}
    key = line.partition(":")[0]
    lines = ["engine: mine", line, *(f"{k}: {v!r}" for k, v in entry.items() if k != key)]
    path = tmp_path / "mine.yaml"
    path.write_text("\n".join(lines))
    with pytest.raises(PerfmodelError, match=said):
        read(path)


@cases
def test_what_cannot_be_served_says_what_would(options, said):
    with pytest.raises((ProblemError, UnknownName), match=said):
        serve(Steps(deployment(**options)), "static batch", [1], 128, 16)


@pytest.mark.parametrize(
    ("load", "sizes", "said"),
    [("burst", [1], "no load named"), ("concurrency", [0], "give a number above 0")],
)
def test_loads_without_meaning_are_refused(load, sizes, said):
    with pytest.raises((ProblemError, UnknownName), match=said):
        serve(steps(), load, sizes, 128, 16)


def test_formats_without_a_rate_are_widened():
    assert deployment(weights="mxfp4").product == "w4a16"
    assert deployment(device="b200", weights="mxfp4").product == "mxfp4"


# Published files: llama.cpp's Q4_K_M of Llama-3.2-3B-Instruct and of Llama-3.3-70B-Instruct
# (geerlingguy/ai-benchmarks#53, runpod/docs#839); safetensors of gpt-oss (alvarobartt/hf-mem#60,
# AMD-AGI/Primus#1070).
@cases
def test_weights_take_what_published_files_take(network, weights, file_bytes, off):
    served = weight_bytes(deployment(network, "h200-sxm", weights=weights))
    assert served == pytest.approx(file_bytes, rel=off)
    compressed = Compressed(load_network(network), naming.scheme(weights))
    assert compressed.weight_bytes == pytest.approx(served, rel=1e-6)


@pytest.mark.parametrize(("window", "busy"), [(4.0, 0.5), (1.0, 0.8), (4 / 9, 0.9)])
def test_the_tail_of_a_queue_is_that_of_heavy_traffic(window, busy):
    """ln(busy / 0.01) / (2 (1 - busy)) steps of a prompt for one in a hundred; 4 clients of 1 s."""
    line = Line("prompt", "matmul", "gemm", 1)
    tail = math.log(busy / 0.01) / (2 * (1 - busy))
    one = Times.exactly(line, np.ones(1))
    batching = replace(load("tensorrt-llm").batching, mixed=False)
    clients = np.array([4.0])
    many, half = np.array([1.0 + tail]), np.ones(1)
    round_ = Round(clients, one, many, half, np.zeros(1), np.array([window]), 0.0, batching)
    beyond = round_.quantile(0.99) - round_.usual
    assert beyond[0] == pytest.approx(tail - round_.queue[0])


def test_a_pass_with_drafts_makes_the_published_number_of_tokens():
    drafted = deployment("deepseek-v3", "h200-sxm", tensor=8, weights="fp8", drafted=3)
    assert drafted.pass_tokens == pytest.approx(2.44, abs=0.01)
    assert replace(drafted, drafted=0).pass_tokens == 1.0
    assert replace(drafted, accepted=3.0).pass_tokens == 3.0
    with pytest.raises(ProblemError, match=r"accepted is 4\.5 with 3 tokens drafted"):
        replace(drafted, accepted=4.5)


def test_drafts_shorten_small_batches_most():
    """A pass over few tokens waits for the weights, whatever their number; over many it takes its
    time for each, rejected ones included. (Of experts, more tokens read more.)"""
    plain = deployment("llama-3-70b", "h200-sxm", tensor=8, weights="fp8")
    batch, past = np.array([1.0, 512.0]), np.full(2, 2048.0)
    alone = Steps(plain).decode(batch, past).total
    gains = alone / Steps(replace(plain, drafted=3)).decode(batch, past).total
    assert 1.0 < gains[0] < 2.44
    assert gains[1] < gains[0]
    refused = Steps(replace(plain, drafted=3, accepted=1.0)).decode(batch, past).total
    assert np.all(refused > alone)
