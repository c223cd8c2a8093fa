"""Graphs: what is refused when one is made, and which bytes are alive at each node."""

from __future__ import annotations

from dataclasses import replace

import pytest
from graphs import alone, random_graph
from hypothesis import given
from hypothesis import strategies as st

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.errors import PerfmodelError, ProblemError, UnknownName
from perfmodel.graph import Edge, Graph, Node, Tensor
from perfmodel.graph.live import intervals, live_bytes

X, W = Tensor("x", (64, 32)), Tensor("w", (32, 16))
H, Y = Tensor("h", (64, 16)), Tensor("y", (64, 16))
PRODUCT = Node(
    "product",
    Matmul(64, 16, 32),
    (Edge("A", ("x",)), Edge("B", ("w",))),
    (Edge("C", ("h",)),),
)
GELU = Node(
    "gelu",
    Rowwise("pointwise", 64, 16, variant="gelu"),
    (Edge("X", ("h",)),),
    (Edge("Y", ("y",)),),
)
GRAPH = Graph("two", (PRODUCT, GELU), {t.name: t for t in (X, W, H, Y)}, ("x",), ("w",), ("y",))


def changed(**tensors):
    """The tensors of the graph, some of them others."""
    return {**GRAPH.tensors, **{t.name: t for t in tensors.values()}}


def having(name, **values):
    """The tensors of the graph, one of them changed."""
    return {**GRAPH.tensors, name: replace(GRAPH.tensors[name], **values)}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"nodes": ()}, "graph two has no nodes"),
        ({"nodes": (GELU, PRODUCT)}, "node gelu reads h before anything writes it"),
        ({"nodes": (PRODUCT, PRODUCT)}, "two of the node product"),
        ({"nodes": (PRODUCT, replace(PRODUCT, name="b"))}, "writes h, which node product made"),
        ({"inputs": ("x", "h")}, "node product writes h, which the inputs or weights made before"),
        ({"inputs": ("x", "w")}, "two of the input or weight w"),
        ({"inputs": ()}, "node product reads x before anything writes it"),
        ({"outputs": ("z",)}, "no tensor of graph two named 'z'"),
        ({"tensors": changed(z=Tensor("z", (1,)))}, "does nothing with the tensor z"),
        ({"tensors": {"x": X}}, "no tensor of graph two named 'w'"),
        ({"tensors": {**changed(), "x": W}}, "has tensor w under x"),
        ({"tensors": having("x", shape=(64, 31))}, "A of node product has 4,096 bytes, and x 3,"),
        ({"tensors": having("h", dtype="fp32")}, "C of node product has 2,048 bytes, and h 4,096"),
        ({"tensors": having("h", place="host")}, "node product writes h, which lies in host"),
        ({"tensors": having("y", over="x")}, None),
        ({"tensors": having("y", over="z")}, "no tensor of node gelu named 'z'"),
        ({"tensors": having("h", over="y")}, "h is written over y, which is not there"),
    ],
)  # fmt: skip
def test_a_graph_is_checked_when_it_is_made(change, said):
    if said is None:
        assert replace(GRAPH, **change)
        return
    with pytest.raises(PerfmodelError) as raised:
        replace(GRAPH, **change)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"repeat": 0}, ProblemError, "node product runs 0 times"),
        ({"reads": PRODUCT.reads[:1]}, ProblemError, "does not say what it reads as B"),
        ({"reads": (*PRODUCT.reads, Edge("D", ("x",)))}, UnknownName, "named 'D'"),
        ({"writes": (Edge("A", ("h",)),)}, UnknownName, "output of gemm"),
        ({"reads": (*PRODUCT.reads, PRODUCT.reads[0])}, ProblemError, "two edges for one input"),
    ],
)
def test_a_node_names_the_operands_of_its_operator(change, error, said):
    with pytest.raises(error, match=said):
        replace(PRODUCT, **change)


def test_a_tensor_has_a_shape_a_type_and_a_level():
    assert Tensor("t", (3, 5), "int4_g128").bytes == pytest.approx(15 * 4.125 / 8)
    assert Tensor("t", (0, 5)).bytes == 0
    for bad in (
        {"shape": (-1,)}, {"shape": (1.5,)}, {"dtype": "fp17"}, {"place": "moon"},
    ):  # fmt: skip
        with pytest.raises(PerfmodelError):
            Tensor(**{"name": "t", "shape": (1,), **bad})


def test_what_was_written_over_is_gone():
    """y takes the memory of x, which nobody may read any more."""
    late = replace(
        GELU, name="late", reads=(Edge("X", ("x",)),), writes=(Edge("Y", ("z",)),),
        problem=Rowwise("pointwise", 64, 32),
    )  # fmt: skip
    tensors = changed(y=Tensor("y", (64, 16), over="x"), z=Tensor("z", (64, 32)))
    with pytest.raises(ProblemError, match="reads x after y was written over it"):
        replace(GRAPH, nodes=(*GRAPH.nodes, late), tensors=tensors, outputs=("y", "z"))
    small = changed(x=Tensor("x", (64, 32)), y=Tensor("y", (64, 16), over="w"))
    with pytest.raises(ProblemError, match="which does not hold it"):
        replace(GRAPH, tensors=small)


def test_an_operand_may_be_several_tensors_or_a_part_of_one():
    halves = [Tensor("left", (64, 8)), Tensor("right", (64, 8))]
    first = replace(PRODUCT, writes=(Edge("C", ("left", "right")),))
    second = replace(GELU, reads=(Edge("X", ("left", "right")),))
    tensors = {t.name: t for t in (X, W, *halves, Y)}
    assert replace(GRAPH, nodes=(first, second), tensors=tensors)
    table = changed(w=Tensor("w", (500, 16)))
    with pytest.raises(ProblemError, match="B of node product"):
        replace(GRAPH, tensors=table)
    rows = replace(PRODUCT, reads=(PRODUCT.reads[0], Edge("B", ("w",), part=True)))
    assert replace(GRAPH, nodes=(rows, GELU), tensors=table)


def test_each_of_several_runs_may_have_a_share_of_its_own():
    stacked = {t.name: replace(t, shape=(3, *t.shape)) for t in (W, H, Y)}
    weights = {**GRAPH.tensors, **stacked}
    nodes = tuple(replace(node, repeat=3) for node in GRAPH.nodes)
    assert replace(GRAPH, nodes=nodes, tensors=weights).launches == 6
    with pytest.raises(ProblemError, match="B of node product"):
        replace(GRAPH, nodes=nodes, tensors={**weights, "w": Tensor("w", (2, 32, 16))})


def test_live_memory_by_hand():
    """x 4096 B, w 1024 B, h 2048 B, y 2048 B: all but y at the first node, all at the second.

    Written over x, y takes no memory of its own. Scratch counts while its node runs.
    """
    assert live_bytes(GRAPH) == {"hbm": [7168.0, 9216.0]}
    over = replace(GRAPH, tensors=changed(y=Tensor("y", (64, 16), over="x")))
    assert live_bytes(over) == {"hbm": [7168.0, 7168.0]}
    assert live_bytes(GRAPH, [10.0, 0.0]) == {"hbm": [7178.0, 9216.0]}
    away = replace(GRAPH, tensors=changed(w=Tensor("w", (32, 16), place="host")))
    assert live_bytes(away) == {"hbm": [6144.0, 8192.0], "host": [1024.0, 1024.0]}


@given(st.integers(0, 10**6))
def test_a_tensor_lives_from_its_writing_to_its_last_reading(seed):
    graph = random_graph(seed)
    spans = intervals(graph)
    for i, node in enumerate(graph.nodes):
        for edge in node.edges:
            for name in edge.tensors:
                assert spans[name][0] <= i <= spans[name][1]
    for name, (first, last) in spans.items():
        if name in (*graph.inputs, *graph.weights):
            assert (first, last) == (0, len(graph.nodes) - 1)
            continue
        users = [i for i, n in enumerate(graph.nodes) if any(name in e.tensors for e in n.edges)]
        assert first == users[0]
        assert last == (len(graph.nodes) - 1 if name in graph.outputs else users[-1])
    alive = live_bytes(graph)["hbm"]
    every = sum(tensor.bytes for tensor in graph.tensors.values())
    used = [{n for edge in node.edges for n in edge.tensors} for node in graph.nodes]
    own = [sum(graph.tensors[n].bytes for n in names) for names in used]
    assert max(own) <= max(alive) <= every
    assert all(mine <= all_ for mine, all_ in zip(own, alive, strict=True))


@pytest.mark.parametrize(
    "problem",
    [Matmul(64, 64, 64), Attention(1, 8, 8, 64, 64, 64), Rowwise("layernorm", 64, 64)],
    ids=lambda problem: problem.operator,
)
def test_sizes_agree_with_what_every_operator_says(problem):
    graph = alone(problem)
    assert len(graph.nodes) == 1
    name = graph.inputs[0]
    wrong = replace(graph.tensors[name], shape=(*graph.tensors[name].shape, 2))
    with pytest.raises(ProblemError, match="bytes, and"):
        replace(graph, tensors={**graph.tensors, name: wrong})
