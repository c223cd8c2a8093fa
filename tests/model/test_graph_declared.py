"""Declared graphs: a decoder layer and unfused attention by hand, and what files may say wrong."""

from __future__ import annotations

from importlib.resources import files

import pytest
from cases import listed

from perfmodel.algorithms import Attention, Matmul, Rowwise
from perfmodel.count import compulsory_bytes
from perfmodel.errors import PerfmodelError, ProblemError, SpecError
from perfmodel.graph import Edge, Graph, Node, declare, load, names, predict_graph, read
from perfmodel.graph.live import live_bytes
from perfmodel.hardware import load as device
from perfmodel.predict import predict
from perfmodel.timing.constants import default
from perfmodel.timing.machine import machine

H100 = device("h100-sxm")
DEVICES = ["h100-sxm", "a100-sxm4-80gb", "v100-sxm2", "b200", "mi300x", "rtx-4090"]
LAYER = load("decoder-layer")


def text(name):
    return files("perfmodel.graph").joinpath("declared", f"{name}.yaml").read_text("utf-8")


def test_every_graph_that_comes_along_has_a_source_and_is_short():
    assert {"decoder-layer", "unfused-attention"} <= set(names())
    for name in names():
        found = load(name)
        assert found.name == name
        assert found.about
        assert found.source
    assert len(text("decoder-layer").splitlines()) <= 40
    assert len(text("unfused-attention").splitlines()) <= 20


def test_a_layer_has_the_operations_of_its_shapes():
    """218,103,808 weights are multiplied by 4,096 tokens: 2 · 218.1 M · 4,096 = 1.787 TFLOP.

    qkv 4096 · (4096 + 2 · 1024), out 4096², gate and up 4096 · 28672, down 14336 · 4096. Causal
    attention has 4 · 32 · 128 operations for each of 4096² / 2 pairs, as the papers count them.
    """
    graph = LAYER.at()
    products = [node for node in graph.nodes if node.operator == "gemm"]
    weights = 4096 * 6144 + 4096**2 + 4096 * 28672 + 14336 * 4096
    assert weights == 218_103_808
    assert sum(node.problem.flops() for node in products) == 2 * 4096 * weights
    (attention,) = (node for node in graph.nodes if node.operator == "attention")
    assert attention.problem.flops() == 4 * 32 * 128 * 4096**2 / 2
    # The layer of Llama-3-8B: with two norms, 32 of them and two tables of 128,256 rows, 8.03 G.
    own = sum(graph.tensors[name].bytes / 2 for name in graph.weights)
    assert own == weights + 2 * 4096
    assert 32 * own + 2 * 128_256 * 4096 + 4096 == 8_030_261_248


def test_a_layer_has_the_bytes_of_its_shapes():
    """Each operator reads its inputs and writes its outputs once, in bytes by hand."""
    tokens, hidden, keys, ffn = 4096, 4096, 1024, 14336
    x = tokens * hidden * 2
    kv = tokens * keys * 2
    norm = 2 * x + 2 * hidden + 4 * tokens
    by_hand = {
        "norm1": norm,
        "qkv": x + hidden * 6144 * 2 + x + 2 * kv,
        "rotary": 2 * (x + kv) + 2 * tokens * 64 * 4,
        "cache": 4 * kv + 4 * tokens,
        "attention": 2 * x + 2 * kv,
        "out": 2 * x + hidden * hidden * 2,
        "add1": 3 * x,
        "norm2": norm,
        "gate_up": x + hidden * 2 * ffn * 2 + tokens * 2 * ffn * 2,
        "silu_mul": 3 * tokens * ffn * 2,
        "down": tokens * ffn * 2 + ffn * hidden * 2 + x,
        "add2": 3 * x,
    }
    graph = LAYER.at()
    for node in graph.nodes:
        edges = sum(node.operand_bytes(edge.operand) for edge in node.edges)
        assert edges == by_hand[node.name], node.name
        assert float(compulsory_bytes(node.problem)) == by_hand[node.name], node.name


def test_live_memory_of_a_layer_peaks_at_the_activation():
    """Weights 436.2 MB; x, x1 33.6 each; gate, up and their product 117.4 each; the new keys and
    values 8.4 each; angles 2.1 and slots 16 KiB: 874.5 MB, 834 MiB.
    """
    graph = LAYER.at()
    weights = (218_103_808 + 2 * 4096) * 2
    x, wide, kv = 4096 * 4096 * 2, 4096 * 14336 * 2, 4096 * 1024 * 2
    beside = 2 * 4096 * 64 * 4 + 4 * 4096
    peak = weights + 2 * x + 3 * wide + 2 * kv + beside
    alive = live_bytes(graph)["hbm"]
    assert max(alive) == peak == 874_545_152
    assert graph.nodes[alive.index(peak)].name == "silu_mul"
    # The first norm: weights, angles, slots, x, its result and a statistic a row.
    assert alive[0] == weights + beside + 2 * x + 4 * 4096
    # The last addition: x1, the product and y; keys and values are handed on.
    assert alive[-1] == weights + beside + x + 3 * x + 2 * kv


@pytest.mark.parametrize("name", DEVICES[::2])
@pytest.mark.parametrize(
    "sizes", [{}, {"seq": 1, "past": 8192, "batch": 16}], ids=["prompt", "token"]
)
def test_a_layer_is_predicted_on_every_kind_of_device(name, sizes):
    graph = LAYER.at(sizes, "fp16")
    found = predict_graph(graph, device(name))
    assert found.low_seconds < found.seconds < found.high_seconds
    assert set(found.operators) == {node.operator for node in graph.nodes}
    assert found.memory.peak_node == "silu_mul"
    assert found.memory.fits
    apart = sum(predict(node.problem, device(name)).seconds for node in graph.nodes)
    gaps = 11 * float(machine(device(name)).at_clock(default()["kernel_gap"]))
    assert found.seconds <= apart + gaps
    largest = next(iter(found.operators))
    assert largest in ({"gemm"} if not sizes else {"gemm", "attention"})
    # 218 M weights are read once, whatever is in the caches.
    assert found.seconds > 218_103_808 * 2 / device(name).hbm_bytes_per_s


def test_a_layer_reads_less_than_its_operators_apart():
    """Of 128 tokens a norm finds all of the 1 MB that the addition before it left in 50 MB of L2.

    The product after it streams 235 MB of weights past its 1 MB, most of which is gone by the time
    that it is asked for.
    """
    graph = LAYER.at({"seq": 128})
    found = predict_graph(graph, H100)
    spared = {}
    for node, (one, _) in zip(graph.nodes, found.kernels, strict=True):
        cold = predict(node.problem, H100).bytes["hbm"]
        names = {name for edge in node.reads for name in edge.tensors}
        there = sum(graph.tensors[name].bytes for name in names - set(graph.weights))
        spared[node.name] = (cold - one.run.bytes["hbm"]) / there
    assert all(0 <= share <= 1 + 1e-9 for share in spared.values())
    assert spared.pop("norm1") == 0
    assert spared["norm2"] == pytest.approx(1, abs=1e-3)
    assert spared["attention"] == pytest.approx(1, abs=1e-3)
    assert 0.05 < spared["gate_up"] < 0.25


def test_unfused_attention_is_the_standard_schedule_but_for_its_copies():
    """A framework also brings heads before positions, in four kernels with a gap after each."""
    sizes = {"batch": 2, "heads": 16, "seq": 2048, "head_dim": 64}
    problem = Attention(2, 16, 16, 2048, 2048, 64, dtype="fp16")
    each = 2 * 16 * 2048 * 64
    for name in DEVICES:
        here = device(name)
        graph = predict_graph(load("unfused-attention").at(sizes), here)
        whole = predict(problem, here, schedule="standard")
        copies = predict(
            Rowwise("pointwise", 4 * each, 1, "fp16", "copy"),
            here,
            implementation="torch-pointwise",
        )
        gap = float(machine(here).at_clock(default()["kernel_gap"]))
        copied = copies.seconds - copies.terms["launch"] + 4 * gap
        # Beyond them, what the softmax and the last product find of the scores in the caches, and
        # the integer instructions by which a copy finds each element in the other order.
        cold = graph.seconds + copied
        assert cold <= whole.seconds * (1 + 1e-9)
        assert cold == pytest.approx(whole.seconds, rel=0.1)


def test_the_same_graph_in_python():
    """What the file says, by hand."""
    found = load("unfused-attention").at({"heads": 4, "seq": 256})
    tensors = found.tensors
    nodes = (
        Node("scores", Matmul(256, 256, 64, 4, "fp16"), (Edge("A", ("q",)), Edge("B", ("k",))),
             (Edge("C", ("s",)),), implementation="torch"),
        Node("softmax", Rowwise("softmax", 1024, 256, "fp16"), (Edge("X", ("s",)),),
             (Edge("Y", ("p",)),), implementation="torch-softmax"),
        Node("values", Matmul(256, 64, 256, 4, "fp16"), (Edge("A", ("p",)), Edge("B", ("v",))),
             (Edge("C", ("o",)),), implementation="torch"),
    )  # fmt: skip
    made = Graph("unfused-attention", nodes, tensors, ("q", "k", "v"), (), ("o",), found.sizes)
    assert made == found


DATA = listed(__file__, "DATA")


def node(**changes):
    """The data with the node changed."""
    return {"nodes": {"softmax": {**DATA["nodes"]["softmax"], **changes}}}


def test_sizes_follow_one_another():
    graph = declare(**DATA).at({"rows": 32})
    assert graph.tensors["x"].shape == (32, 64)
    assert graph.tensors["y"].bytes == 32 * 64 * 2
    assert declare(**DATA).at({}, "fp32").tensors["y"].bytes == 64 * 128 * 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "lacks name"),
        ({"name": "a\nb"}, "is no name: write up to 60 printable characters"),
        ({"nodes": {}}, "lacks nodes"),
        ({"node": {}}, "unknown key 'node'; did you mean nodes?"),
        ({"sizes": ["rows"]}, "sizes is a mapping"),
        ({"sizes": {"rows": "cols", "cols": "rows"}}, "sizes form a cycle"),
        ({"sizes": {"rows": 64}}, "unknown size 'cols'; known: rows"),
        ({"sizes": {"rows": 64, "cols": 0.5}}, "'cols' is 0.5, which is no whole number"),
        ({"inputs": {"x": {"type": "bf16"}}}, "tensor x has no shape"),
        ({"inputs": {"x": {"shape": 1, "typ": ""}}}, "unknown key 'typ'; did you mean type?"),
        ({"inputs": {"x": {"shape": ["rows", "cols"], "type": "bf17"}}}, "no element type named"),
        ({"tensors": {"x": ["rows", "cols"]}}, "tensor x is declared twice"),
        ({"inputs": {"x": ["rows"]}}, "X of node softmax has 16,384 bytes, and x 128"),
        ({"outputs": "z"}, "no tensor of graph small named 'z'"),
        ({"outputs": [1]}, "neither a name nor a list of names"),
        ({"nodes": {"softmax": "softmax"}}, "a node is {operator: NAME"),
        (node(operator="softmix"), "no operator named 'softmix'; did you mean softmax"),
        (node(size={}), "unknown key 'size'; did you mean sizes?"),
        (node(sizes={"rows": "rows"}), "softmax needs cols"),
        (node(sizes={"rows": 1, "heads": 1}), "no option of softmax named 'heads'"),
        (node(sizes={"rows": 0, "cols": "cols"}), "rows"),
        (node(sizes={"rows": "rows", "cols": "cols", "dtype": "fp17"}), "fp17"),
        (node(reads={"A": "x"}), "named 'A'"),
        (node(reads={"X": {"parts": "x"}}), "unknown key 'parts'; did you mean part?"),
        (node(writes={"Y": ["y", "z"]}), "y is a part of Y; declare its shape under tensors"),
        (node(implementation=3), "'3' is no name; write one in quotes"),
        (node(schedule=["auto"]), "is no name; write one in quotes"),
        (node(repeat=0), "runs 0 times"),
        (node(repeat="rows / 7"), "no whole number"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_one_line(changes, said, tmp_path):
    import yaml

    data = {**DATA, **changes}
    with pytest.raises(ProblemError) as raised:
        declare(**data)
    assert said in str(raised.value)
    assert "\n" not in str(raised.value)
    path = tmp_path / "graph.yaml"
    path.write_text(yaml.safe_dump(data, sort_keys=False), encoding="utf-8")
    with pytest.raises(SpecError) as raised:
        read(path)
    assert said in str(raised.value)
    assert str(raised.value).startswith(f"{path}:")
    assert str(raised.value).count(str(path)) == 1


def test_a_size_that_is_not_there_is_named():
    with pytest.raises(
        PerfmodelError, match="no size of graph decoder-layer named 'sequence'; did"
    ):
        LAYER.at({"sequence": 1})
    with pytest.raises(ProblemError, match=r"^graph decoder-layer: .*head"):
        LAYER.at({"heads": 12})
