"""Operators around the products of a layer: bytes and operations as the counting rule has them."""

from __future__ import annotations

import pytest
from cases import listed

from perfmodel.count import compulsory_bytes
from perfmodel.graph import Edge, Graph, Node, Tensor, predict_graph
from perfmodel.hardware import load as device
from perfmodel.operators import load
from perfmodel.predict import predict

DEVICES = ["h100-sxm", "a100-sxm4-80gb", "v100-sxm2", "mi300x"]

# Sizes, bytes, vector operations and special functions by hand.
CASES = listed(__file__, "CASES")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("where", DEVICES)
def test_bytes_and_operations_are_those_by_hand(name, where):
    sizes, moved, vector, special = CASES[name]
    problem = load(name).problem(**sizes, dtype="fp16")
    assert float(compulsory_bytes(problem)) == moved
    found = predict(problem, device(where))
    # A table may cross more than once where its rows have left the caches; nothing crosses less.
    assert moved <= found.bytes["hbm"] * (1 + 1e-9)
    assert found.bytes["hbm"] == pytest.approx(moved, rel=0.1)
    assert found.flops["vector"] == pytest.approx(vector)
    assert found.flops["special"] == pytest.approx(special)
    assert found.flops["matrix"] == 0
    assert found.footprint_bytes == moved
    assert found.seconds > moved / device(where).hbm_bytes_per_s


def test_an_optimiser_updates_its_states_in_place():
    """Weights, gradients and two states of 4 bytes, and a new copy of 2: 18 bytes a parameter."""
    n = 2**20
    olds = {name: Tensor(name, (n,), "fp32") for name in ("w", "g", "m", "v")}
    news = {
        "w1": Tensor("w1", (n,), "fp32", over="w"),
        "m1": Tensor("m1", (n,), "fp32", over="m"),
        "v1": Tensor("v1", (n,), "fp32", over="v"),
        "copy": Tensor("copy", (n,)),
    }
    reads = tuple(Edge(name.upper(), (name,)) for name in olds)
    writes = tuple(
        Edge(operand, (name,))
        for operand, name in (("weights", "w1"), ("mean", "m1"), ("square", "v1"), ("copy", "copy"))
    )
    step = Node("step", load("adamw").problem(parameters=n), reads, writes)
    outputs = tuple(news)
    graph = Graph("step", (step,), {**olds, **news}, ("g",), ("w", "m", "v"), outputs)
    found = predict_graph(graph, device("h100-sxm"))
    assert found.memory.peak_bytes == 18 * n
    # Counted apart, as a call that returns new states would have it: 30 bytes.
    assert found.children[0].run.footprint_bytes == 30 * n


def test_an_embedding_holds_its_table_and_reads_its_rows():
    """128,256 rows of 4096 in bf16 are 1.05 GB; 512 tokens read 4.2 MB of them."""
    table = Tensor("table", (128_256, 4096))
    ids = Tensor("ids", (512,), "fp32")
    gather = Node(
        "gather",
        load("embedding").problem(tokens=512, hidden=4096),
        (Edge("ids", ("ids",)), Edge("table", ("table",), part=True)),
        (Edge("Y", ("x",)),),
    )
    tensors = {"table": table, "ids": ids, "x": Tensor("x", (512, 4096))}
    graph = Graph("embed", (gather,), tensors, ("ids",), ("table",), ("x",))
    found = predict_graph(graph, device("h100-sxm"))
    rows = 512 * 4096 * 2
    assert found.memory.peak_bytes == table.bytes + ids.bytes + rows
    assert found.children[0].run.bytes["hbm"] == pytest.approx(2 * rows + ids.bytes, rel=0.01)
    # Nobody knows which rows the next run asks for, so none of them is found again.
    again = predict_graph(graph, device("h100-sxm"), harness="cuda_graph")
    assert again.children[0].run.bytes["hbm"] >= 2 * rows
