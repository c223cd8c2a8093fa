"""Attention over several devices: placements counted from the mask, rings run, bytes from the rule.

Ids are those of the project's lists of published vectors; those left out, with reasons: LEFT_OUT.
"""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention
from perfmodel.context_parallel import (
    PLACEMENTS,
    OverLink,
    OverSystem,
    every_way,
    placed,
    predict_context,
    threshold,
)
from perfmodel.context_parallel.contexttime import block_lengths, exchanged, ring_seconds
from perfmodel.context_parallel.placement import Shard, gathered_calls, step_calls
from perfmodel.errors import ProblemError, UnknownName
from perfmodel.hardware import load, systems
from perfmodel.napkin.ring import least_block
from perfmodel.predict import predict
from perfmodel.timing.exchange import link_of
from perfmodel.timing.machine import Link

LEFT_OUT = {
    "predict.maxlen.*, lengths": "a whole model's training memory decides, by a recipe not stated",
    "predict.maxlen.tpuv4-1024, tpuv5e-256": "512 and 128 times one device's length, of rings of "
    "1024 and 256: how many devices a ring had is not stated",
}

H100 = load("h100-sxm")
NVLINK, NETWORK = (OverLink(link_of(H100, name)[1]) for name in ("peer", "network"))
LLAMA = Attention(1, 32, 8, 65536, 65536, 128, causal=True)
ranks_of = st.integers(1, 6)
placements = st.sampled_from(PLACEMENTS)


def computed(tree):
    """Seconds of attention and of merging."""
    return tree.classes["attention"] + tree.classes.get("pointwise", 0.0)


def shared(problem=LLAMA, carrier=NVLINK, ranks=8, **options):
    return predict_context(problem, H100, carrier, ranks, **options)


def tokens(held):
    return [shard.first + shard.stride * i for shard in held for i in range(shard.count)]


def walked(queries, keys, causal=True):
    """Visible pairs, key by key."""
    return sum(k <= q or not causal for q in tokens(queries) for k in tokens(keys))


def seen(call):
    """Pairs of a call, its last query aligned to its last key."""
    keys = np.arange(call.seq_kv) - call.seq_kv
    queries = np.arange(call.seq_q) - call.seq_q
    visible = keys[None] <= queries[:, None] if call.causal else np.ones((len(queries), len(keys)))
    return int(visible.sum())


# What a device holds and sees.


@given(placements, ranks_of, st.integers(1, 5))
def test_every_token_is_on_one_device(placement, ranks, each):
    length = 2 * ranks * each
    held = placed(placement, length, ranks)
    assert sorted(token for device in held for token in tokens(device)) == list(range(length))
    assert len({len(tokens(device)) for device in held}) == 1
    assert all(a < b for device in held for a, b in pairwise(tokens(device)))


@given(placements, ranks_of, st.integers(1, 4), st.booleans())
def test_calls_compute_every_pair_once(placement, ranks, each, causal):
    problem = replace(LLAMA, seq_q=2 * ranks * each, seq_kv=2 * ranks * each, causal=causal)
    held = placed(placement, problem.seq_q, ranks)
    for queries in held:
        for keys in held:
            made = step_calls(problem, queries, keys)
            assert sum(map(seen, made)) == walked(queries, keys, causal=causal)
        if placement != "striped" or not causal:  # striped rows see gathered keys in steps
            of_all = walked(queries, (Shard(0, 1, problem.seq_q),), causal=causal)
            assert sum(map(seen, gathered_calls(problem, queries))) == of_all


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 20), st.integers(0, 20))
def test_shards_of_any_place_and_length_are_computed(queries, keys, first, other):
    """Beside the placements: a band that ends inside of either shard."""
    rows, cells = (Shard(first, 1, queries),), (Shard(other, 1, keys),)
    if rows != cells:
        made = step_calls(LLAMA, rows, cells)
        assert sum(map(seen, made)) == walked(rows, cells)


@given(placements, st.integers(1, 6), st.integers(1, 6))
def test_causal_balance(placement, ranks, each):
    """Contiguous: the last device has r(c − 1)·r full pairs and a triangle. 2 − 1/c when long."""
    length, r = 2 * ranks * each, 2 * each
    held = placed(placement, length, ranks)
    most = max(sum(walked(queries, keys) for keys in held) for queries in held)
    mean = length * (length + 1) / 2 / ranks
    if placement == "contiguous":
        assert most == (ranks - 1) * r**2 + r * (r + 1) / 2
    else:
        assert mean <= most <= mean * (1 + ranks / (length + 1))


# A ring, step by step.

times = st.floats(0, 5)


@given(st.integers(1, 8), times, times)
def test_equal_steps_take_the_longer_of_both_each(ranks, compute, send):
    found = ring_seconds(np.full((ranks, ranks, 1), compute), np.array([send]))
    assert found[0] == pytest.approx((ranks - 1) * max(compute, send) + compute)


@given(st.integers(1, 6), st.integers(0, 2**32 - 1), times)
def test_a_ring_waits_for_its_slowest_and_no_longer_than_all_in_step(ranks, seed, send):
    """And it is the recurrence of the module's docstring, walked step by step."""
    steps = np.random.default_rng(seed).uniform(0, 4, (ranks, ranks, 1))
    (found,) = ring_seconds(steps, np.array([send]))
    assert found >= max(steps.sum(axis=1).max(), (ranks - 1) * send) - 1e-9
    in_step = np.maximum(steps.max(axis=0)[:-1, 0], send).sum() + steps.max(axis=0)[-1, 0]
    assert found <= in_step + 1e-9
    start = np.zeros(ranks)
    for step in range(ranks - 1):
        arrival = np.maximum(np.roll(start, 1), start) + send
        ends = [start + steps[:, step, 0], arrival, np.roll(arrival, -1)]
        start = np.max(ends, axis=0)
    assert found == (start + steps[:, -1, 0]).max()


# Bytes, out of the rule (networks.md, section 8: what each parallelism moves).


@given(st.integers(2, 8), st.integers(1, 4), st.integers(1, 3), st.sampled_from([64, 128]))
def test_a_ring_and_a_gather_send_all_keys_but_ones_own(c, groups, ratio, head):
    each = 128
    problem = Attention(2, groups * ratio, groups, c * each, c * each, head, dtype="bf16")
    block = 2 * 2 * groups * each * head * 2  # K and V of b = 2, 16 bits
    for way in ("ring", "gather"):
        found = exchanged(way, problem, c)
        assert sum(x.sent_bytes for x in found) == pytest.approx((c - 1) * block)
    assert {x.kind for x in exchanged("ring", problem, c)} == {"ring"}
    assert {x.kind for x in exchanged("gather", problem, c)} == {"all-gather"}
    back = replace(problem, direction="bwd")
    found = exchanged("ring", back, c, gradient="bf16")
    assert sum(x.sent_bytes for x in found) == pytest.approx(2 * (c - 1) * block)
    found = exchanged("ring", back, c)  # parts of dK and dV in fp32
    assert sum(x.sent_bytes for x in found) == pytest.approx(3 * (c - 1) * block)
    found = exchanged("gather", back, c, gradient="bf16")
    assert {x.kind for x in found} == {"reduce-scatter"}
    assert sum(x.sent_bytes for x in found) == pytest.approx((c - 1) * block)


@given(st.sampled_from([1, 2, 4, 8]), st.integers(1, 3))
def test_ulysses_deals_all_four_tensors_out_anew_both_ways(c, ratio):
    problem = Attention(1, 8 * ratio, 8, 1024, 1024, 128)
    own = (1024 // c) * (2 * 8 * ratio + 2 * 8) * 128 * 2  # q, o of a heads; k, v of g
    for direction in ("fwd", "bwd"):
        found = exchanged("ulysses", replace(problem, direction=direction), c)
        assert [x.kind for x in found] == ["all-to-all"] * (4 if c > 1 else 0)
        assert sum(x.sent_bytes for x in found) == pytest.approx(own * (c - 1) / c)


def test_tree_volume_and_tree_comm():
    """Elements a device sends in a step: 2(p − 1)/p·(b·a·k + 2·b·a), and a ring's."""
    problem = Attention(1, 32, 32, 1, 131072, 128)
    found = exchanged("tree", problem, 8)
    width = {"O": 2, "softmax statistics": 4}
    assert {x.tensor for x in found} == set(width)
    assert sum(x.sent_bytes / width[x.tensor] for x in found) == pytest.approx(7280.0)
    rung = exchanged("ring", problem, 8)
    assert sum(x.sent_bytes for x in rung) / 2 == pytest.approx(939524096.0)


# Times.


@pytest.mark.parametrize("way", ["ring", "gather", "ulysses"])
@pytest.mark.parametrize("direction", ["fwd", "bwd"])
def test_one_device_shares_nothing(way, direction):
    problem = replace(LLAMA, direction=direction, seq_q=8192, seq_kv=8192)
    found = shared(problem, ranks=1, way=way, placement="contiguous")
    assert found.seconds == pytest.approx(predict(problem, H100).seconds)
    assert (found.sent_bytes, found.exchanges) == (0, ())
    assert "communication" not in found.classes


@given(
    st.sampled_from(["ring", "gather", "ulysses"]),
    st.sampled_from(["fwd", "bwd", "fwdbwd"]),
    st.integers(1, 4),
    st.booleans(),
    st.floats(1e9, 1e12),
)
def test_time_is_computing_and_what_shows_of_the_link(way, direction, size, causal, rate):
    length = 4096 * size
    problem = replace(LLAMA, seq_q=length, seq_kv=length, causal=causal, direction=direction)
    slow, fast = (OverLink(Link("any", x, 1e-6)) for x in (rate, 2 * rate))
    found = shared(problem, slow, 4, way=way)
    assert found.seconds == pytest.approx(computed(found) + found.classes.get("communication", 0.0))
    assert found.low_seconds <= found.seconds <= found.high_seconds
    assert shared(problem, fast, 4, way=way).seconds <= found.seconds
    assert found.classes.get("communication", 0.0) <= found.sent_bytes / rate + 1e-3
    assert found.seconds >= predict(problem, H100).seconds / 4 * 0.9
    if way == "ring":
        assert found.seconds >= found.sent_bytes / rate
        merged = shared(problem, slow, 4, way=way, merged=True)
        assert merged.classes.get("pointwise", 0.0) == 0
        assert computed(merged) == pytest.approx(found.classes["attention"])
    else:
        assert found.classes.get("communication", 0.0) >= found.sent_bytes / rate


def test_forward_and_backward_are_both_in_turn():
    both = shared(replace(LLAMA, direction="fwdbwd"))
    apart = [shared(replace(LLAMA, direction=one)) for one in ("fwd", "bwd")]
    assert both.seconds == pytest.approx(sum(one.seconds for one in apart))
    assert both.sent_bytes == sum(one.sent_bytes for one in apart)
    assert 2 <= computed(apart[1]) / computed(apart[0]) <= 4  # 5 products for 2


def test_a_contiguous_ring_takes_nearly_twice_as_long():
    """(2 − 1/c) of the balanced ring, but for blocks' own efficiencies: 1.875 on 8 devices."""
    long = replace(LLAMA, seq_q=2**18, seq_kv=2**18)
    ratio = shared(long, placement="contiguous").seconds / shared(long).seconds
    assert ratio == pytest.approx(1.875, rel=0.05)


def test_merging_is_a_pass_of_the_output_in_fp32():
    """Read and written in fp32, the block's read in 16 bits; 7 steps of zigzag, half the rows or
    all of them."""
    found = shared(LLAMA)
    rows = 32 * 65536 // 8
    step = rows * 128 * (4 + 4 + 2) / H100.hbm_bytes_per_s
    assert 3.5 * step < found.classes.get("pointwise", 0.0) < 7 * 2 * step


def test_a_tree_is_faster_than_a_ring_for_one_query():
    decode = replace(LLAMA, seq_q=1)
    tree, rung = (shared(decode, way=way) for way in ("tree", "ring"))
    assert tree.seconds < rung.seconds / 5
    alpha = NVLINK.link.latency_seconds
    steps = 2 * 2 * math.log2(8)  # two sums, up and down a tree of 8
    sent = tree.sent_bytes / NVLINK.link.bytes_per_s
    assert tree.classes.get("communication", 0.0) == pytest.approx(steps * alpha + sent)


def test_a_system_answers_with_its_library_and_its_ranges():
    system = OverSystem(systems.load("dgx-h100"))
    for way in ("ring", "gather", "ulysses"):
        by_link, by_system = (shared(carrier=one, way=way) for one in (NVLINK, system))
        assert by_system.sent_bytes == by_link.sent_bytes
        assert computed(by_system) == computed(by_link)
        assert by_system.low_seconds < by_system.seconds < by_system.high_seconds
    assert shared(carrier=system, way="gather").classes["communication"] > 0
    tree = shared(replace(LLAMA, seq_q=1), system, way="tree")
    assert 0 < tree.classes.get("communication", 0.0) < 1e-3


# Where the link hides.


@pytest.mark.parametrize("groups", [4, 8, 32])
def test_a_block_hides_its_transfer_from_the_ridge_of_the_link_on(groups):
    """r ≥ (g/a)·P/B with the rate that the kernel achieves on it. Waves of blocks make rates of
    neighbouring lengths differ, and the last one that does not hide decides.
    """
    problem = replace(LLAMA, heads_kv=groups)
    found = threshold(problem, H100, NETWORK)
    assert found.compute_seconds >= found.send_seconds
    ridge = least_block(found.flops_per_s, NETWORK.link.bytes_per_s) * groups / 32
    assert ridge <= found.block
    block = replace(problem, seq_q=found.block, seq_kv=found.block, causal=False)
    assert predict(block, H100).seconds == pytest.approx(found.compute_seconds)
    # A sixteenth shorter, its keys and values take longer than it computes.
    shorter = max(length for length in block_lengths() if length < found.block)
    block = replace(problem, seq_q=shorter, seq_kv=shorter, causal=False)
    sent_bytes = 2 * 2 * groups * shorter * LLAMA.head_dim
    assert predict(block, H100).seconds < NETWORK.send_seconds(sent_bytes)[0]


def test_a_faster_link_hides_under_shorter_blocks():
    full = replace(LLAMA, heads_kv=32)
    blocks = [
        threshold(full, H100, OverLink(Link("any", rate, 1e-6))).block
        for rate in (25e9, 50e9, 100e9, 450e9)
    ]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[0] > 1.8 * blocks[1] > 3 * blocks[2]
    with pytest.raises(ProblemError, match="not even a block of 1,048,576 tokens hides"):
        threshold(full, H100, OverLink(Link("any", 1e7, 1e-6)))


def test_where_one_way_overtakes_another():
    """Over a slow network a ring hides once its blocks are long; before, fewer bytes win."""
    found = [
        every_way(replace(LLAMA, seq_q=n, seq_kv=n), H100, NETWORK, 8)
        for n in (2**k for k in range(12, 19))
    ]
    assert [set(ways) for ways in found] == [{"ring", "gather", "ulysses"}] * 7
    assert next(iter(found[0])) == "ulysses"
    assert next(iter(found[-1])) == "ring"
    for ways in found:
        times = [way.seconds for way in ways.values()]
        assert times == sorted(times)
    assert list(every_way(replace(LLAMA, seq_q=1), H100, NVLINK, 8)) == ["tree", "ring"]


# Bad input.


@pytest.mark.parametrize(
    ("changed", "options", "said"),
    [
        ({}, {"way": "star"}, "no way to share attention named 'star'"),
        ({}, {"placement": "zigzig"}, "did you mean zigzag"),
        ({"seq_q": 1000, "seq_kv": 1000}, {}, "take 992 or 1,008 tokens"),
        ({"seq_q": 10, "seq_kv": 10}, {}, "10 tokens do not divide into 16 zigzag parts"),
        ({"seq_q": 4, "seq_kv": 4}, {"way": "ulysses"}, "take 8 tokens"),
        ({}, {"ranks": 0}, "0 devices share a sequence; write a whole number from 1"),
        ({"heads_q": 28, "heads_kv": 4}, {"way": "ulysses"}, "take 1, 2, 4, 28 devices, or ring"),
        ({"window": 4096}, {}, "leave the window out"),
        ({"seq_q": 128}, {}, "give as many of each, or one query"),
        ({}, {"way": "tree"}, "tree is for one query a sequence"),
        ({"seq_q": 1}, {"way": "gather"}, "take tree or ring"),
        ({"seq_q": 1, "seq_kv": 9}, {"way": "tree"}, "take 8 or 16 tokens"),
        ({}, {"way": "gather", "placement": "striped"}, "take zigzag or contiguous"),
        ({"batch": np.array([1, 2])}, {}, "predict one at a time"),
    ],
)
def test_what_cannot_be_shared_says_what_can(changed, options, said):
    with pytest.raises((ProblemError, UnknownName)) as caught:
        shared(replace(LLAMA, **changed), **options)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
