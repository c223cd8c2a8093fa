"""The time of a graph: laws over random graphs, and what kernels, gaps and host come to."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import alone, random_graph
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.errors import ProblemError
from perfmodel.graph import Edge, Graph, Node, Tensor, predict_graph
from perfmodel.graph.asks import answers, ask
from perfmodel.graph.touches import reuses
from perfmodel.graph.tree import Tree, together
from perfmodel.hardware import load
from perfmodel.predict import predict
from perfmodel.timing import floors, physical
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine
from perfmodel.timing.runs import harnesses

H100, A100, MI300X = load("h100-sxm"), load("a100-sxm4-80gb"), load("mi300x")
DEVICES = [H100, A100, MI300X, load("v100-sxm2"), load("b200")]
CONSTANTS = default()
SEEDS = st.integers(0, 10**6)


def gap_of(device):
    return float(machine(device).at_clock(CONSTANTS["kernel_gap"]))


@pytest.mark.parametrize("harness", harnesses())
@pytest.mark.parametrize(
    "problem",
    [
        Matmul(512, 4096, 4096),
        Matmul(16, 128, 128),
        Rowwise("softmax", 4096, 4096),
        Rowwise("layernorm", 16, 64),
        Attention(4, 32, 8, 1, 8192, 128),
    ],
    ids=str,
)
def test_a_graph_of_one_node_is_that_node(problem, harness):
    """To the bit where caches are cold; a run again and again may find another share of them."""
    graph = predict_graph(alone(problem), H100, harness=harness)
    one = predict(problem, H100, harness=harness)
    warm = CONSTANTS.run(harness).warm > 0
    assert graph.seconds == pytest.approx(one.seconds, rel=0.1 if warm else 1e-12)
    if not warm:
        assert graph.low_seconds <= one.seconds <= graph.high_seconds
        assert graph.children[0].run == one


@given(SEEDS, st.sampled_from(DEVICES))
def test_no_graph_is_faster_than_its_bounds_or_slower_than_its_nodes_apart(seed, device):
    graph = random_graph(seed)
    found = predict_graph(graph, device)
    # What is written has to go to memory; what is read may be in the caches from before.
    floor = sum(_written_bytes(node) / device.hbm_bytes_per_s for node in graph.nodes)
    compute = sum(
        float(physical.floor_seconds(node.problem, device, node.problem.flops()))
        for node in graph.nodes
    )
    apart = sum(predict(node.problem, device).seconds for node in graph.nodes)
    assert max(floor, compute) <= found.seconds
    assert found.seconds <= (apart + gap_of(device) * (len(graph.nodes) - 1)) * (1 + 1e-9)
    assert compute * (1 - 1e-9) <= found.low_seconds <= found.seconds <= found.high_seconds


def _written_bytes(node):
    return sum(node.operand_bytes(edge.operand) for edge in node.writes)


@given(SEEDS, st.sampled_from([H100, A100]), st.floats(1.05, 4))
def test_more_bandwidth_never_slows_a_graph(seed, device, factor):
    graph = random_graph(seed)
    better = device.scaled(hbm_bandwidth=factor)
    assert predict_graph(graph, better).seconds <= predict_graph(graph, device).seconds * (1 + 1e-9)


@given(SEEDS, st.sampled_from(DEVICES), st.sampled_from(["kernel", "cuda_graph", "wall_clock"]))
def test_a_graph_is_its_nodes_its_gaps_and_its_waiting(seed, device, harness):
    found = predict_graph(random_graph(seed), device, harness=harness)
    nodes = sum(node.seconds for node, _ in found.kernels)
    assert sum(found.operators.values()) == pytest.approx(nodes)
    whole = nodes + found.phases["gap"] + found.phases["waiting"]
    assert found.seconds == pytest.approx(whole)
    assert found.seconds == pytest.approx(sum(child.seconds for child in found.children))
    assert found.phases["gap"] == pytest.approx(gap_of(device) * (len(found.kernels) - 1))
    assert found.phases["waiting"] > 0
    told = found.as_dict()
    parts = sum(node["time_us"] for node in told["kernels"]) + told["gap_us"] + told["waiting_us"]
    assert told["time_us"] == pytest.approx(parts)


@given(st.integers(1, 50), st.sampled_from(DEVICES))
def test_n_runs_cost_n_times_one(n, device):
    problem = Rowwise("pointwise", 512, 4096)
    one, many = (predict_graph(alone(problem, k), device) for k in (1, n))
    step = one.children[0].seconds + gap_of(device)
    assert many.seconds == pytest.approx(one.seconds + (n - 1) * step)
    assert many.children[0].seconds == pytest.approx(n * one.children[0].seconds)
    wide = (many.high_seconds - many.low_seconds) / (one.high_seconds - one.low_seconds)
    assert wide == pytest.approx(n)


@given(SEEDS, st.sampled_from([H100, MI300X]))
def test_nodes_predicted_together_are_the_nodes_one_by_one(seed, device):
    graph = random_graph(seed, 10)
    found = reuses(graph, [0.0] * 10, device, again=False)
    asked = [ask(node, {}, found[i]) for i, node in enumerate(graph.nodes)]
    every = answers(asked, device, harness="kernel", constants=None)
    for i, node in enumerate(graph.nodes):
        one = predict(node.problem, device, reuse=found[i])
        assert every[i].seconds == pytest.approx(one.seconds, rel=1e-9)
        assert every[i].problem == one.problem


def test_each_distinct_question_is_asked_once(monkeypatch):
    from perfmodel.graph import asks

    seen = []

    def recorded(problem, *where, **how):
        found = asks_predict(problem, *where, **how)
        seen.append(len(found))
        return found

    asks_predict = asks.predict_arrays
    monkeypatch.setattr(asks, "predict_arrays", recorded)
    problem = Rowwise("pointwise", 8192, 8192)
    tensors = {f"x{i}": Tensor(f"x{i}", (8192, 8192)) for i in range(9)}
    nodes = tuple(
        Node(f"n{i}", problem, (Edge("X", (f"x{i}",)),), (Edge("Y", (f"x{i + 1}",)),))
        for i in range(8)
    )
    predict_graph(Graph("chain", nodes, tensors, ("x0",), outputs=("x8",)), H100)
    # The first finds nothing, all others what one of their kind left.
    assert seen == [2]


def chain(rows, cols=4096):
    """Two maps, one after the other."""
    tensors = {name: Tensor(name, (rows, cols)) for name in "xyz"}
    problem = Rowwise("pointwise", rows, cols)
    nodes = tuple(
        Node(f"{a}{b}", problem, (Edge("X", (a,)),), (Edge("Y", (b,)),)) for a, b in ("xy", "yz")
    )
    return Graph("chain", nodes, tensors, ("x",), outputs=("z",))


def test_a_node_finds_what_the_one_before_left_by_hand():
    """y, 2048 × 4096 in bf16, is 16.8 MB. Between writing and reading it go by y itself, half of x
    and half of z: 33.6 MB. Of these an H100's 50 MiB, two thirds of them for distinct lines and
    that times the knee, keep 1 / (1 + (33.6 / 36.7)⁴), 59 %.
    """
    one = 2048 * 4096 * 2
    found = predict_graph(chain(2048), H100)
    first, second = (run.bytes["hbm"] for _, run in found.kernels)
    kept = 1 / (1 + (2 * one / (CONSTANTS["l2_knee"] * 0.667 * 50 * 2**20)) ** 4)
    assert kept == pytest.approx(0.59, abs=0.02)
    assert first == pytest.approx(2 * one)
    assert second == pytest.approx(one + (1 - kept) * one)
    # Run again and again, the first one finds x: x, y and z, each once, went by since.
    again = predict_graph(chain(2048), H100, harness="cuda_graph")
    kept = 1 / (1 + (3 * one / (CONSTANTS["l2_knee"] * 0.667 * 50 * 2**20)) ** 4)
    assert again.children[0].run.bytes["hbm"] == pytest.approx(one + (1 - kept) * one)


def test_a_larger_cache_or_a_smaller_tensor_leaves_more():
    times = [predict_graph(chain(rows), H100).children[:2] for rows in (256, 2048, 32768)]
    saved = [1 - second.seconds / first.seconds for first, second in times]
    assert saved[0] > saved[1] > saved[2]
    assert saved[2] == pytest.approx(0, abs=1e-3)
    first, second, *_ = predict_graph(chain(8192), MI300X).children
    assert second.seconds < 0.8 * first.seconds  # 134 MB in an Infinity Cache of 256 MiB


def test_what_lies_behind_a_link_is_read_over_it():
    problem = Attention(1, 32, 8, 1, 65536, 128)
    local = alone(problem)
    tensors = {n: replace(t, place="host") if n in "KV" else t for n, t in local.tensors.items()}
    away = predict_graph(replace(local, tensors=tensors), H100)
    asked = predict(problem, H100, place={"K": "host", "V": "host"})
    assert away.children[0].run == asked
    kv = 2 * 65536 * 8 * 128 * 2
    assert away.memory.footprints["host"] == kv
    assert away.memory.peak_bytes == pytest.approx(
        predict_graph(local, H100).memory.peak_bytes - kv
    )


def test_scratch_counts_as_memory_and_goes_through_the_caches():
    """Standard attention keeps scores and weights: 2 · 16 · 4096² · 2 bytes beyond q, k, v, o."""
    problem = Attention(1, 16, 16, 4096, 4096, 64, dtype="fp16")
    graph = alone(problem)
    graph = replace(graph, nodes=(replace(graph.nodes[0], schedule="standard"),))
    node, *_ = predict_graph(graph, H100).children
    assert node.scratch_bytes == pytest.approx(2 * 16 * 4096**2 * 2, rel=0.01)
    assert node.live_bytes == pytest.approx(node.scratch_bytes + 4 * 16 * 4096 * 64 * 2, rel=0.01)


def test_what_does_not_fit_is_said():
    found = predict_graph(alone(Matmul(400_000, 400_000, 64)), H100)
    assert not found.memory.fits
    assert found.memory.fits_at == {"hbm": False}
    assert any("could not run" in said for said in found.assumptions)


def test_a_node_that_cannot_run_is_named():
    graph = alone(Attention(1, 1, 1, 1024, 1024, 512, dtype="fp32", direction="fwd"))
    node = replace(graph.nodes[0], schedule="tiled-4")
    with pytest.raises(ProblemError, match="node only: schedule 'tiled-4' is not known"):
        predict_graph(replace(graph, nodes=(node,)), H100)


def test_small_kernels_wait_for_the_host_and_large_ones_do_not():
    run = CONSTANTS.run("cuda_events_eager")
    small, large = (predict_graph(chain(rows), H100, harness=run.name) for rows in (16, 65536))
    pace = floors.pace(
        run, "pointwise", machine(H100), CONSTANTS
    )  # a host younger than the one that is stated
    assert small.seconds == pytest.approx(2 * pace * run.call_seconds("pointwise"))
    device = sum(node.seconds for node, _ in large.kernels) + large.phases["gap"]
    assert large.seconds == pytest.approx(device + pace * run.start_seconds("pointwise"))
    captured = predict_graph(chain(16), H100, harness="cuda_graph")
    assert captured.seconds < small.seconds / 4


def leaf(family, seconds, low, high):
    """A kernel by its range alone."""
    return Tree(
        name="x", kind=family, family=family, seconds=seconds, low_seconds=low, high_seconds=high
    )


LEAVES = st.lists(
    st.builds(leaf, st.sampled_from("abc"), *[st.floats(1e-6, 1)] * 3), min_size=1, max_size=4
)


@given(st.lists(st.tuples(LEAVES, st.integers(1, 9)), min_size=1, max_size=4), st.integers(1, 5))
def test_a_tree_is_its_leaves_with_all_their_runs(parts, times):
    nodes = [Tree.series("part", "pass", leaves, repeat) for leaves, repeat in parts]
    tree = Tree.series("tree", "network", nodes, times)
    each = [(each, times * repeat) for leaves, repeat in parts for each in leaves]
    assert [x.repeat for x in tree.leaves] == [runs for _, runs in each]
    for end in ("seconds", "low_seconds", "high_seconds"):
        total = sum(runs * getattr(x, end) for x, runs in each)
        assert getattr(tree, end) == pytest.approx(total)
        assert sum(getattr(x, end) for x in tree.leaves) == pytest.approx(total)
    assert sum(tree.classes.values()) == pytest.approx(tree.seconds)


@given(st.lists(st.builds(
    lambda family, mid, down, up: leaf(family, mid, mid * (1 - down), mid * (1 + up)),
    st.sampled_from(["gemm", "attention", "norm"]), st.floats(1e-6, 1), st.floats(0, 0.9),
    st.floats(0, 2),
), min_size=1))  # fmt: skip
def test_ranges_add_within_a_family_and_by_squares_between_families(parts):
    low, high = together(parts)
    total = sum(part.seconds for part in parts)
    families = {part.family for part in parts}
    down, up = dict.fromkeys(families, 0.0), dict.fromkeys(families, 0.0)
    for part in parts:
        down[part.family] += part.seconds - part.low_seconds
        up[part.family] += part.high_seconds - part.seconds
    for factor, widths in ((1 - low, down), (high - 1, up)):
        assert max(widths.values()) <= factor * total * (1 + 1e-6) + 1e-12
        assert factor * total <= sum(widths.values()) * (1 + 1e-6) + 1e-12
        if len(families) == 1:
            assert factor * total == pytest.approx(sum(widths.values()), abs=1e-9)


def test_two_families_of_one_width_by_hand():
    """1 s ± 10 % twice: 2 s ± 0.1 · √2; of one family, ± 0.2."""
    apart = [leaf(name, 1.0, 0.9, 1.1) for name in ("gemm", "attention")]
    assert together(apart) == pytest.approx((1 - 0.1 * 2**0.5 / 2, 1 + 0.1 * 2**0.5 / 2))
    assert together([apart[0], apart[0]]) == pytest.approx((0.9, 1.1))
