"""The event loop of serving: against a plain simulation, against queueing theory, and laws."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
import pytest
import queueoracle
from cases import listed
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.errors import ProblemError
from perfmodel.hardware import load as load_device
from perfmodel.networks.library import load as load_network
from perfmodel.serving.deployment import Deployment
from perfmodel.serving.engine import Batching, load
from perfmodel.serving.queue import trace
from perfmodel.serving.queue.loop import Site, run, simulate
from perfmodel.serving.queue.steptable import Curve, Host, StepTable, tabulated
from perfmodel.serving.queue.traffic import Arrivals, Traffic
from perfmodel.serving.served import serve
from perfmodel.serving.steps import Steps


def table(step=1e-3, token=1e-5, sequence=1e-5, cached=1e-8):
    """Steps whose seconds are linear in what they hold."""
    ends = [1.0, 1e6]
    attention = np.array([[cached * n * length for length in ends] for n in ends])
    return StepTable(
        Curve(ends, [step + token * t for t in ends]), Curve(ends, [0.0, 0.0]),
        Curve(ends, [0.0, 0.0]), Curve(ends, [sequence * n for n in ends]),
        (ends, ends, attention), ([1.0], [1.0], [0.0, 1e6], np.array([[[0.0, 1e-2]]])),
        Host(step=1e-4), Host(step=2e-4),
    )  # fmt: skip


def arrivals(seconds, inputs, outputs, **options):
    count = len(seconds)
    fields = {"cached": np.zeros(count, int), "priorities": np.zeros(count, int), **options}
    return Arrivals(np.asarray(seconds, float), np.asarray(inputs), np.asarray(outputs), **fields)


@st.composite
def places(draw):
    """A site and its requests, with little memory and short steps so that everything happens."""
    count = draw(st.integers(1, 25))
    whole = st.lists(st.integers(1, 40), min_size=count, max_size=count)
    inputs, outputs = np.array(draw(whole)), np.array(draw(whole))
    batching = Batching(
        tokens=draw(st.sampled_from([8, 32, 100])), sequences=draw(st.sampled_from([1, 3, 50])),
        continuous=draw(st.booleans()), mixed=draw(st.booleans()), chunked=draw(st.booleans()),
        poll=draw(st.sampled_from([1, 1, 4])), ahead=draw(st.integers(0, 2)),
        gather=draw(st.sampled_from([1, 5])), reserves=draw(st.booleans()),
    )  # fmt: skip
    block = draw(st.sampled_from([1, 4, 8]))
    longest = -(-int(np.max(inputs + outputs)) // block)
    clients = draw(st.sampled_from([0, 0, 1, 4]))
    gaps = np.array(
        draw(st.lists(st.sampled_from([0, 0.001, 0.01, 0.1]), min_size=count, max_size=count))
    )
    ranks = draw(st.lists(st.sampled_from([0, 0, 1]), min_size=count, max_size=count))
    pieces = ()
    if draw(st.booleans()):  # prompts of two texts
        texts = draw(st.lists(st.sampled_from([0, 100]), min_size=count, max_size=count))
        pieces = [list(range(t, t + n // 8)) for t, n in zip(texts, inputs.tolist(), strict=True)]
    where = Site(
        table(), batching, longest + draw(st.sampled_from([0, 2, 10, 100])), block,
        draw(st.sampled_from([1, 1, 2])), draw(st.sampled_from([1, 1, 2])),
        draw(st.sampled_from([0.0, 0.005])), draw(st.sampled_from([0.0, 2e-3])),
    )  # fmt: skip
    asked = arrivals(
        np.zeros(count) if clients else np.cumsum(gaps), inputs, outputs,
        cached=np.minimum(draw(st.sampled_from([0, 5])), inputs - 1),
        priorities=np.array(ranks),
        pieces=pieces, piece=8, clients=clients,
    )  # fmt: skip
    return where, asked


@given(places())
def test_the_event_loop_is_the_plain_simulation_to_the_last_bit(place):
    where, asked = place
    outcome, record = run(where, asked), queueoracle.simulate(where, asked)
    numbers = range(len(asked))
    assert outcome.first.tolist() == [record.first[i] for i in numbers]
    assert outcome.end.tolist() == [record.end[i] for i in numbers]
    assert outcome.sent.tolist() == [record.sent[i] for i in numbers]
    assert outcome.fullest == record.fullest / where.blocks


@given(places())
def test_every_request_ends_once_and_the_cache_never_overflows(place):
    where, asked = place
    outcome = run(where, asked)
    several = asked.outputs > 1
    assert np.all(outcome.first >= outcome.sent + where.request)
    assert np.all(outcome.end[several] > outcome.first[several])
    assert np.all(outcome.end[~several] == outcome.first[~several])
    assert 0.0 < outcome.fullest <= 1.0
    assert np.all(outcome.sent >= asked.seconds)
    assert not (where.batching.reserves and outcome.preemptions)


@given(places())
def test_every_token_is_made_once(place):
    """Tokens of a request are those of its prompts' last steps and of the decoding steps that it
    takes part in; a preempted one loses none."""
    where, asked = place
    record = queueoracle.simulate(where, asked)
    made = record.tokens + len(asked) + record.preempted
    assert int(asked.outputs.sum()) <= made <= int(asked.outputs.sum()) + record.preempted
    assert run(where, asked).preemptions >= 0


@pytest.mark.parametrize("load", [0.3, 0.6])
@pytest.mark.parametrize("variation", [0.0, 1.0])
def test_prompts_of_one_server_queue_as_theory_says(load, variation):
    """M/D/1 and M/G/1: the mean wait is rate * E[S^2] / (2 (1 - load)) (Pollaczek, Khinchine)."""
    lengths = f"lognormal:{variation}" if variation else None

    def drawn(count, seed):
        traffic = Traffic(requests=count, seed=seed, lengths=lengths)
        return replace(traffic.arriving(1000, 1, rate=load), outputs=np.ones(count, int))

    def waits(asked):  # Lindley: a request starts when it has come and the one before has ended
        service = asked.inputs * 1e-3
        idle = asked.seconds - np.append(0.0, np.cumsum(service)[:-1])
        return np.maximum.accumulate(idle) - idle

    silent = table(step=0.0, token=1e-3, sequence=0.0, cached=0.0)
    where = Site(
        replace(silent, plain=Host(), prompt=Host(), prompts=NONE),
        Batching(tokens=10**9, sequences=1), 10**9,
    )  # fmt: skip
    asked = drawn(4000, 0)
    ours = run(where, asked).seconds["ttft"] - asked.inputs * 1e-3
    assert ours == pytest.approx(waits(asked), abs=1e-6)
    errors = []
    for seed in range(4):
        many = drawn(10**6, seed)
        service, rate = many.inputs * 1e-3, len(many) / many.seconds[-1]
        theory = rate * np.mean(service**2) / (2.0 * (1.0 - rate * np.mean(service)))
        errors.append(np.mean(waits(many)) / theory - 1.0)
    assert abs(np.mean(errors)) < 0.01


NONE = ([1.0], [1.0], [0.0, 1e6], np.zeros((1, 1, 2)))
"""Attention of prompts that takes no time."""


@lru_cache
def steps(engine, network="llama-3-8b", **options):
    return Steps(
        Deployment(load_network(network), load_device("h100-sxm"), load(engine), **options)
    )


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize(("share", "allowed"), [(0.2, 0.06), (0.5, 0.06), (0.75, 0.12)])
def test_closed_forms_are_the_means_of_the_event_loop_in_an_open_loop(engine, share, allowed):
    top = serve(steps(engine), "full", [0], 1024, 128)[0].requests_per_s
    (form,) = serve(steps(engine), "rate", [share * top], 1024, 128)
    outcome = simulate(
        steps(engine), Traffic(requests=6000, seed=5).arriving(1024, 128, rate=share * top)
    )
    for metric in ("ttft", "tpot", "e2e") if share == 0.2 else ("tpot", "e2e"):
        mean = outcome.statistic(metric, "mean")
        assert mean * 1e3 == pytest.approx(form.metric(f"{metric}_ms").value, rel=allowed), metric


@pytest.mark.parametrize("engine", ["vllm", "sglang", "tensorrt-llm"])
@pytest.mark.parametrize("clients", [4, 32])
def test_closed_forms_are_the_means_of_the_event_loop_in_a_closed_loop(engine, clients):
    (form,) = serve(steps(engine), "concurrency", [clients], 1024, 256, vary=0.2)
    asked = Traffic(requests=10 * clients, seed=5).arriving(1024, 256, clients=clients, vary=0.2)
    outcome = simulate(steps(engine), asked)
    for metric in ("tpot", "e2e"):
        mean = outcome.statistic(metric, "mean")
        assert mean * 1e3 == pytest.approx(form.metric(f"{metric}_ms").value, rel=0.06), metric


@pytest.mark.parametrize("engine", ["vllm", "sglang"])
@pytest.mark.parametrize("options", [{}, {"tensor": 2, "pipeline": 2}])
def test_the_table_has_the_seconds_of_steps(engine, options):
    one = steps(engine, **options)
    held = tabulated(one, 4096, 256)
    for batch, past in ((1, 1024), (64, 2048), (200, 700)):
        total = float(one.decode(np.array([batch]), np.array([past])).total[0])
        assert held.decode(batch).at(past) == pytest.approx(total, rel=0.005)
    for batch, prompts, tokens, before in ((64, 1, 1024, 0), (8, 4, 1000, 512), (0, 2, 2048, 0)):
        sizes = (np.array([float(v)]) for v in (batch, 1500, prompts, tokens, before))
        total = float(one.mixed(*sizes).total[0])
        ours = held.mixed(batch, 1500, prompts, prompts * tokens, before)
        assert ours == pytest.approx(total, rel=0.03)


def test_no_step_is_shorter_than_its_tokens_take_to_be_streamed():
    silent = replace(table(), stream=1e-2)
    assert silent.mixed(7, 1000.0, 1, 8, 0.0) == 8e-2
    assert silent.decode(8).at(1000) == pytest.approx(8e-2, rel=1e-3)
    assert replace(table(), stream=1e-9).decode(8).at(1000) == table().decode(8).at(1000)


def test_equal_seeds_are_equal_and_others_are_not():
    def ends(seed):
        traffic = Traffic(requests=300, seed=seed, lengths="gamma:0.5", burst=2.0)
        return simulate(steps("vllm"), traffic.arriving(512, 64, rate=5.0)).end.tobytes()

    assert ends(1) == ends(1) != ends(2)


@pytest.mark.parametrize("name", ["uniform:0.4", "lognormal:1", "gamma:0.7"])
def test_lengths_have_the_mean_and_the_deviation_that_are_asked_for(name):
    drawn = Traffic(requests=100_000, lengths=name).arriving(1000, 500, rate=1.0)
    variation = float(name.partition(":")[2])
    for lengths, mean in ((drawn.inputs, 1000), (drawn.outputs, 500)):
        assert lengths.mean() == pytest.approx(mean, rel=0.02)
        assert lengths.std() / lengths.mean() == pytest.approx(variation, rel=0.04)


@pytest.mark.parametrize("burst", [0.0, 0.5, 1.0, 3.0])
def test_bursts_have_the_deviation_that_is_asked_for(burst):
    gaps = np.diff(Traffic(requests=100_000, burst=burst).arriving(9, 9, rate=4.0).seconds)
    assert gaps.mean() == pytest.approx(0.25, rel=0.02)
    assert gaps.std() / gaps.mean() == pytest.approx(burst, rel=0.05, abs=1e-9)


def test_bursts_and_longer_tails_make_the_slow_requests_slower():
    def p99(**options):
        asked = Traffic(requests=2000, seed=2, **options).arriving(1024, 128, rate=8.0)
        return simulate(steps("vllm"), asked).statistic("ttft", "p99")

    assert p99(burst=0.0) < p99() < p99(burst=4.0)
    assert p99() < p99(lengths="lognormal:1.5")


def test_shared_prefixes_hit_and_shorten_first_tokens(tmp_path):
    """A text of 2,048 tokens that every prompt begins with is computed once."""
    path = tmp_path / "trace.jsonl"
    lines = [
        f'{{"timestamp": {900 * i}, "input_length": 2100, "output_length": 8, '
        f'"hash_ids": [0, 1, 2, 3, {100 + i}]}}'
        for i in range(20)
    ]
    path.write_text("\n".join(lines))
    recorded = trace.read(str(path))
    with_hits = simulate(steps("vllm"), recorded)
    without = simulate(steps("vllm"), replace(recorded, pieces=()))
    assert with_hits.hit_tokens == 19 * 2048
    assert without.hit_tokens == 0
    assert with_hits.statistic("ttft", "p90") < 0.6 * without.statistic("ttft", "p90")


FORMS = listed(__file__, "FORMS")


@pytest.mark.parametrize("name", FORMS)
def test_traces_of_every_form_are_read(tmp_path, name):
    path = tmp_path / name
    path.write_text(FORMS[name])
    recorded = trace.read(str(path))
    assert recorded.seconds == pytest.approx([0.0, 1.5])
    assert recorded.inputs.tolist() == [50, 100]
    assert recorded.outputs.tolist() == [3, 7]
    assert recorded.cached.tolist() == [0, 20 if "ours" in name else 0]
    assert len(trace.read(str(path), 1)) == 1


BROKEN = {
    "": "no requests",
    "time,tokens\n1,2\n": "no columns arrival, input, output",
    "arrival,input,output\n1,x,3\n": ":2: arrival, input and output are numbers",
    "arrival,input,output\n1,,3\n": ":2: ",
    "arrival,input,output\nnan,4,3\n": ":2: ",
    '{"arrival": 1}\n': "no columns",
    '{"arrival": 1, "input": 1, "output": 2}\n{oops\n': ":2: no JSON object",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_trace_is_told_in_a_line(tmp_path, text):
    path = tmp_path / "trace"
    path.write_text(text)
    with pytest.raises(ProblemError, match=BROKEN[text]) as error:
        trace.read(str(path))
    assert "\n" not in str(error.value)


def test_what_cannot_be_simulated_is_told():
    with pytest.raises(ProblemError, match="does not fit the cache"):
        simulate(steps("vllm"), Traffic(requests=1).arriving(10**7, 5, rate=1.0))
    with pytest.raises(ProblemError, match="No such file"):
        trace.read("/no/such/trace")
    with pytest.raises(ProblemError, match="no blocks of 48"):
        run(
            Site(table(), Batching(), 100, 48),
            arrivals([0.0], [9], [9], pieces=[[1]], piece=512),
        )
