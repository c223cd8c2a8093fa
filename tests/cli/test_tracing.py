"""PyTorch modules as graphs: FLOPs as torch counts them, exact bytes, fusion, gradients, errors."""

import json
import math
from collections import Counter
from itertools import pairwise

import jsonschema
import pytest
from cases import cases
from hypothesis import given
from hypothesis import strategies as st
from refusing import refused

from perfmodel import Graph, formats, load, plugins, predict_graph
from perfmodel.algorithms import Problem
from perfmodel.elements import element
from perfmodel.errors import PerfmodelError, UnknownName
from perfmodel.graph import Node
from perfmodel.networks.expand import expand, parameter_count
from perfmodel.networks.reading import made_of
from perfmodel.networks.setting import Setting
from perfmodel.tracing import FUSIONS, registry, trace
from perfmodel.tracing.lowering import with_problem
from perfmodel.tracing.module import inputs
from perfmodel.tracing.operation import Operand, Operation

torch = pytest.importorskip("torch")
nn = pytest.importorskip("torch.nn")
tracedmodels = pytest.importorskip("tracedmodels")
FlopCounterMode = pytest.importorskip("torch.utils.flop_counter").FlopCounterMode

H100 = load("h100-sxm")
IDS, HIDDEN = "int64[2,256]", f"bfloat16[2,256,{tracedmodels.HIDDEN}]"
MODELS = {
    "Llama": (IDS,),
    "Gpt2": (IDS,),
    "Bert": (HIDDEN, "bfloat16[2,1,1,256]"),
    "Experts": (HIDDEN,),
    "Patches": ("bfloat16[2,3,224,224]",),
}


def made(name):
    """A module on the meta device and its inputs."""
    with torch.device("meta"):
        torch.set_default_dtype(torch.bfloat16)
        try:
            module = getattr(tracedmodels, name)().eval()
        finally:
            torch.set_default_dtype(torch.float32)
    return module, inputs(MODELS[name])[0]


_TRACES = {}


def traced(name, fuse="none", backward=False):
    """A trace, made once."""
    key = (name, fuse, backward)
    if key not in _TRACES:
        module, args = made(name)
        _TRACES[key] = trace(module, args, fuse=fuse, backward=backward)
    return _TRACES[key]


# --- laws ------------------------------------------------------------------------------------


@pytest.mark.parametrize("fuse", FUSIONS)
@pytest.mark.parametrize("name", MODELS)
def test_flops_are_those_of_torchs_own_counter(name, fuse):
    module, args = made(name)
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        module(*args)
    assert counter.get_total_flops() > 1e8
    assert traced(name, fuse).flops == counter.get_total_flops()


@pytest.mark.parametrize("name", ["Bert", "Experts", "Patches"])
def test_flops_of_the_backward_pass_are_those_of_torchs_own_counter(name):
    module, args = made(name)
    with FlopCounterMode(display=False) as counter:
        module(*args).sum().backward()
    assert traced(name, backward=True).flops == counter.get_total_flops()


def test_attentions_backward_has_five_products_for_two():
    forward, both = (traced("Gpt2", backward=b) for b in (False, True))

    def flops(found, aten):
        return sum(item.flops for item in found.operations if item.aten == aten)

    name = "aten.scaled_dot_product_attention"
    assert flops(both, name) == flops(forward, name)
    assert flops(both, f"{name} backward") == 2.5 * flops(forward, name)


@pytest.mark.parametrize("name", MODELS)
def test_a_trace_is_a_graph_whose_weights_are_the_modules(name):
    module, _ = made(name)
    found = traced(name)
    assert isinstance(found.graph, Graph)
    assert len(found.graph.nodes) == len(found.operations)
    assert found.parameters == sum(p.numel() for p in module.parameters())
    weights = sum(found.graph.tensors[n].bytes for n in found.graph.weights)
    biases = sum(p.numel() for n, p in module.named_parameters() if n.endswith("bias"))
    everything = 2 * found.parameters
    assert everything - 2 * biases <= weights <= everything  # a product adds its bias on the way


@pytest.mark.parametrize("name", MODELS)
def test_fusing_more_moves_fewer_bytes_in_fewer_kernels_and_less_time(name):
    graphs = [traced(name, fuse).graph for fuse in FUSIONS]
    predicted = [predict_graph(graph, H100) for graph in graphs]
    moved = [sum(run.bytes["hbm"] for _, run in one.kernels) for one in predicted]
    for less, more in ((1, 0), (2, 1)):
        assert len(graphs[less].nodes) <= len(graphs[more].nodes)
        assert moved[less] <= moved[more] * 1.001  # caches keep other things then
        assert predicted[less].seconds <= predicted[more].seconds * (1 + 1e-6)


@pytest.mark.parametrize("fuse", FUSIONS)
@pytest.mark.parametrize("name", MODELS)
def test_the_backward_pass_gives_every_parameter_a_gradient(name, fuse):
    found = traced(name, fuse, backward=True)
    gradients = {t for t in found.graph.tensors if t.startswith("d.p_")}
    written = {n for node in found.graph.nodes for edge in node.writes for n in edge.tensors}
    contractions = {n for n in found.graph.weights if f"d.{n}" in written}
    assert gradients & written
    biases = [n for n in found.graph.weights if n.endswith("bias")]
    assert set(found.graph.weights) - contractions <= set(biases)


@pytest.mark.parametrize("name", MODELS)
def test_nothing_is_unknown_and_what_is_estimated_costs_little(name):
    found = traced(name)
    assert not found.unknown
    predicted = predict_graph(found.graph, H100)
    pairs = zip(found.operations, predicted.children, strict=False)
    estimated = sum(node.seconds for item, node in pairs if item.estimated)
    assert estimated < (0.15 if name == "Experts" else 0.02) * predicted.seconds


SHAPE = st.lists(st.integers(1, 9), min_size=1, max_size=4)


@given(SHAPE, st.lists(st.lists(st.booleans(), min_size=4, max_size=4), max_size=3), st.data())
def test_a_map_moves_exactly_the_bytes_of_its_tensors(domain, broadcast, data):
    """Whatever is broadcast: each tensor once, by its own extents and type."""
    types = st.sampled_from(["bf16", "fp32", "int8"])
    out = Operand("out", tuple(domain), data.draw(types))
    reads = [Operand("x", tuple(domain), data.draw(types))]
    for i, ones in enumerate(broadcast):
        shape = tuple(1 if one else n for n, one in zip(domain, ones, strict=False))
        reads.append(Operand(f"y{i}", shape, data.draw(types)))
    item = with_problem(
        Operation("m", "aten.add", "", "pointwise", tuple(reads), (out,), domain=out.shape)
    )
    algorithm = item.problem.algorithm()
    bare = Node.__new__(Node)
    object.__setattr__(bare, "problem", item.problem)
    for name, operands in item.operands.items():
        expected = sum(x.distinct * element(x.dtype).bytes for x in operands)
        assert bare.operand_bytes(name) == pytest.approx(expected), name
    assert set(item.operands) == {*algorithm.inputs, *algorithm.outputs}


# --- examples --------------------------------------------------------------------------------


def atens(found):
    return [item.aten for item in found.operations]


def test_views_cost_nothing_and_layers_keep_their_place():
    found = traced("Llama")
    assert found.views > 20
    assert not {"aten.view", "aten.transpose", "aten.reshape"} & set(atens(found))
    assert [item.module for item in found.operations if item.aten == "aten.silu"] == [
        "layers.0.mlp", "layers.1.mlp",
    ]  # fmt: skip


def test_a_norm_that_is_written_out_is_one_kernel():
    found = traced("Llama", "pointwise")
    norms = [item for item in found.operations if item.kind == "norm"]
    assert len(norms) == 5  # two of each layer and the last
    assert sum(item.problem.operator == "rmsnorm" for item in norms) == 4
    (joined,) = (item for item in norms if item.problem.operator != "rmsnorm")
    assert joined.aten.startswith("add+")  # with the residual sum before it


def test_an_engine_has_one_product_for_queries_keys_and_values():
    products = [item for item in traced("Llama", "engine").operations if item.kind == "matmul"]
    columns = [item.problem.n for item in products]
    width, narrow = tracedmodels.HIDDEN, tracedmodels.KV_HEADS * tracedmodels.DIM
    assert columns[:3] == [width + 2 * narrow, width, 2 * tracedmodels.FFN]


def test_attention_is_seen_whole():
    (item, _) = (x for x in traced("Llama").operations if x.kind == "attention")
    shape = item.problem
    assert (shape.heads_q, shape.heads_kv, shape.seq_q, shape.causal) == (8, 2, 256, True)


class Heads(torch.nn.Module):
    """Scores of heads that lie beside each other in the rows of a token."""

    def forward(self, x):
        heads = x.view(2, 16, 4, 8).transpose(1, 2)
        return torch.matmul(heads, heads.transpose(-1, -2))


def test_a_product_of_strided_heads_copies_them_first():
    found = trace(Heads(), (torch.zeros(2, 16, 32, device="meta"),))
    assert atens(found) == ["aten.clone", "aten.clone", "aten.matmul"]
    assert (found.copies, found.flops) == (2, 2 * 2 * 4 * 16 * 16 * 8)
    copies, product = found.graph.nodes[:2], found.graph.nodes[2]
    written = [edge.tensors for copy in copies for edge in copy.writes]
    assert [edge.tensors for edge in product.reads] == written


class Joined(torch.nn.Module):
    """Two tensors beside each other."""

    def forward(self, left, right):
        return torch.cat((left, right), dim=-1)


def test_tensors_side_by_side_are_copied_in_rows_of_the_result():
    with torch.device("meta"):
        (item,) = trace(Joined(), (torch.zeros(6, 5), torch.zeros(6, 7))).operations
    assert (item.problem.rows, item.problem.cols) == (6, 12)


class Batched(torch.nn.Module):
    """A product of three different sizes for each of two copies."""

    def forward(self, left, right):
        return torch.matmul(left, right)


def test_flops_of_a_product_are_twice_its_volume():
    sizes = (torch.zeros(2, 3, 5, device="meta"), torch.zeros(2, 5, 7, device="meta"))
    (product,) = trace(Batched(), sizes).operations
    assert (product.problem.m, product.problem.n, product.problem.k) == (3, 7, 5)
    assert product.flops == 2 * 2 * 3 * 7 * 5


class Overwritten(torch.nn.Module):
    """Two halves written into one tensor, which is then read."""

    def forward(self, x):
        whole = x.new_empty(4, 32)
        whole[:, :16].copy_(x)
        whole[:, 16:].copy_(torch.relu(x))
        return torch.exp(whole)


def test_what_is_written_in_place_is_read_as_it_then_is():
    found = trace(Overwritten(), (torch.zeros(4, 16, device="meta"),))
    assert atens(found) == ["aten.copy", "aten.relu", "aten.copy", "aten.exp"]
    (read,), (written,) = found.graph.nodes[3].reads, found.graph.nodes[2].writes
    assert read.tensors == written.tensors
    assert found.graph.tensors[read.tensors[0]].shape == (4, 32)
    assert [x.elements for x in found.operations[0].reads] == [
        64
    ]  # what is overwritten is not read


OVER_NOTHING = {
    "product": lambda x: x[:, :0] @ x[:0],
    "product of rows": lambda x: nn.functional.linear(x[:, :0], x[:, :0], x[:, 0]),
    "sum": lambda x: x[:0].sum(),
    "all": lambda x: (x[:0] > 0).all(0),
    "vectors": lambda x: torch.linalg.vecdot(x[:, :0], x[:, :0]),
    "attention": lambda x: nn.functional.scaled_dot_product_attention(
        x[None, None], x[None, None, :0], x[None, None, :0]
    ),
}


class Scaled(torch.nn.Module):
    """A function of x times a parameter."""

    def __init__(self, function):
        super().__init__()
        self.function, self.scale = function, nn.Parameter(torch.ones(16, 16, device="meta"))

    def forward(self, x):
        return self.function(x * self.scale)


@pytest.mark.parametrize("name", OVER_NOTHING)
def test_a_sum_over_no_elements_is_a_fill_of_its_result(name):
    x, module = torch.zeros(16, 16, device="meta"), Scaled(OVER_NOTHING[name])
    found = trace(module, (x,))
    assert found.flops == 0
    assert [y.elements for y in found.operations[-1].writes] == [OVER_NOTHING[name](x).numel()]
    for each in (found, trace(module, (x,), backward=True)):
        assert predict_graph(each.graph, H100).seconds > 0


SUMS = {
    "sum": torch.sum,
    "mean": torch.mean,
    "amax": torch.amax,
    "norm": torch.linalg.vector_norm,
    "var": torch.var,
    "dot": lambda x: torch.dot(x.view(-1), x.view(-1)),
    "loss": lambda x: nn.functional.cross_entropy(x, torch.zeros_like(x[:, 0]).long()),
    "columns": lambda x: x.view(-1, 4).sum(0),
}


@pytest.mark.parametrize("name", SUMS)
def test_a_sum_over_all_elements_goes_at_the_memorys_rate(name):
    x = torch.zeros(4096, 2048, device="meta")

    class Sum(torch.nn.Module):
        def forward(self, x):
            return SUMS[name](x)

    found = predict_graph(trace(Sum(), (x,)).graph, H100)
    for node, _ in found.kernels:
        moving = float(node.run.bytes["hbm"]) / H100.hbm_bytes_per_s
        assert node.seconds < 2 * moving + 8e-6, node.name


class Region(torch.nn.Module):
    """A product in a region of another precision, and one of weights that are the same."""

    def __init__(self):
        super().__init__()
        self.one, self.other = nn.Linear(32, 32, bias=False), nn.Linear(32, 32, bias=False)
        self.other.weight = self.one.weight

    def forward(self, x):
        with torch.autocast("cuda", enabled=False):
            y = self.one(x)
        return self.other(y)


def test_regions_are_traced_as_what_is_around_them_and_tied_weights_once():
    with torch.device("meta"):
        found = trace(Region(), (torch.zeros(8, 32),))
    first, second = found.graph.nodes
    assert atens(found) == ["aten.linear"] * 2
    assert first.writes[0].tensors == second.reads[0].tensors
    assert first.reads[1].tensors == second.reads[1].tensors == found.graph.weights
    assert found.parameters == 32 * 32


class Mapped(torch.nn.Module):
    def forward(self, x):
        return torch.vmap(torch.exp)(x)


def test_within_vmap_all_of_a_tensor_counts():
    (item,) = trace(Mapped(), (torch.zeros(64, 128, device="meta"),)).operations
    assert item.writes[0].elements == 64 * 128


class Cache:
    """An object of no type that torch knows."""

    def __init__(self, *tensors):
        self.layers = [{"kept": tensor} for tensor in tensors]
        self.owner = self


class Caching(torch.nn.Module):
    def forward(self, x):
        return {"result": torch.relu(x), "cache": Cache(torch.exp(x))}


def test_tensors_are_returned_that_lie_in_objects():
    found = trace(Caching(), (torch.zeros(64, 128, device="meta"),))
    assert set(found.graph.outputs) == {"exp", "relu"}


class Asked(torch.nn.Module):
    def forward(self, x):
        return x.exp() if torch.compiler.is_exporting() else x.relu()


def test_a_module_is_traced_as_it_runs_and_not_as_it_is_exported():
    assert atens(trace(Asked(), (torch.zeros(4, device="meta"),))) == ["aten.relu"]


@given(st.integers(0, 10**7), st.integers(1, 10**7))
def test_what_is_counted_by_its_bytes_has_them_but_for_one_part_in_64(read, written):
    reads = (Operand("x", (read,), "int8"),) if read else ()
    out = Operand("y", (written,), "int8")
    item = with_problem(Operation("m", "a.b", "", "other", reads, (out,), estimated=True))
    bare = Node.__new__(Node)
    object.__setattr__(bare, "problem", item.problem)
    for name, wanted in (("X", read), ("Y", written)):
        if name in item.operands:
            assert abs(bare.operand_bytes(name) - wanted) <= max(read, written) / 63
    assert bare.operand_bytes("Y") <= written


def test_a_convolution_without_overlap_is_a_product():
    found = traced("Patches")
    assert found.operations[0].problem.sizes()["k"] == 3 * 16 * 16
    assert [x.kind for x in found.operations] == ["matmul", "pointwise"]


class Unknown(torch.nn.Module):
    def forward(self, x):
        return torch.ops.perfmodel_tests.mystery(torch.relu(x))


@pytest.fixture
def mystery():
    """An operator that nobody has heard of."""
    with torch.library._scoped_library("perfmodel_tests", "DEF") as library:
        library.define("mystery(Tensor x) -> Tensor")
        library.impl("mystery", torch.empty_like, "Meta")
        yield "perfmodel_tests.mystery"


def test_an_unknown_operator_is_named_and_counted_by_its_bytes(mystery):
    x = torch.zeros(64, 128, device="meta")
    found = trace(Unknown(), (x,))
    assert found.unknown == {mystery: 1}
    assert found.estimated == {mystery: 1}
    node = predict_graph(found.graph, H100).kernels[-1][0]
    assert node.run.bytes["l2"] == pytest.approx(2 * 64 * 128 * 4)


def test_a_handler_makes_an_operator_known(mystery, monkeypatch):
    monkeypatch.setattr(registry, "_HANDLERS", dict(registry.handlers()))
    registry.handlers.cache_clear()

    @registry.operation(mystery)
    def handler(call):
        return call.map(vector_ops=3.0)

    try:
        found = trace(Unknown(), (torch.zeros(64, 128, device="meta"),), fuse="pointwise")
    finally:
        registry.handlers.cache_clear()
    assert not found.unknown
    assert atens(found) == [f"relu+{mystery}"]


def test_handlers_come_from_packages_too(monkeypatch):
    asked = []
    monkeypatch.setattr(plugins, "brought", lambda group: asked.append(group) or ())
    registry.handlers.cache_clear()
    registry.handlers()
    registry.handlers.cache_clear()
    assert asked == ["tracing"]


class Grouped(torch.nn.Module):
    def __init__(self, experts):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(experts, 64, 32, dtype=torch.bfloat16))

    def forward(self, rows, ends):
        return torch._grouped_mm(rows, self.weight, ends)


@pytest.mark.parametrize(("rows", "batch"), [(48, 8), (12, 6), (7, 7), (1, 1)])
def test_a_grouped_product_has_a_product_for_each_expert_that_has_rows(rows, batch):
    with torch.device("meta"):
        module = Grouped(8)
        args = torch.zeros(rows, 64, dtype=torch.bfloat16), torch.zeros(8, dtype=torch.int32)
    (item,) = trace(module, args).operations
    assert (item.problem.batch, item.problem.m) == (batch, rows // batch)
    assert item.flops == 2 * rows * 64 * 32


def test_a_module_is_the_network_of_its_sizes():
    """The same products, attention and parameters as the network that is described by its sizes."""
    described = made_of(
        {
            "name": "small",
            "family": "llama",
            "hidden": tracedmodels.HIDDEN,
            "vocabulary": tracedmodels.VOCABULARY,
            "blocks": [
                {
                    "repeat": 2,
                    "attention": {"heads": 8, "kv_heads": 2, "head_size": tracedmodels.DIM},
                    "mlp": {"inner": tracedmodels.FFN},
                }
            ],
        }
    )
    segments = expand(described, Setting(batch=2, seq=256, attention="flash2"))

    def heavy(problem):
        return problem.operator in ("gemm", "attention")

    expected: Counter[Problem] = Counter()
    for segment in segments:
        for node in segment.forward.graph.nodes:
            expected[node.problem] += segment.repeat * heavy(node.problem)
    found = traced("Llama")
    assert Counter(n.problem for n in found.graph.nodes if heavy(n.problem)) == +expected
    assert found.parameters == parameter_count(described)


# --- errors and the command line -------------------------------------------------------------


@pytest.fixture
def file(tmp_path):
    """A file with a module, which a test may change."""
    path = tmp_path / "mine.py"
    path.write_text("from torch import nn\n\ndef Model():\n    return nn.Linear(64, 32)\n")
    return path


def test_a_module_on_the_command_line(cli, file):
    asked = ("trace", f"{file}:Model", "-i", "bf16[8,64]", "-d", "h100-sxm", "-d", "a100")
    code, out, err = cli(*asked, "--format", "json")
    found = json.loads(out)
    assert (code, err) == (0, "")
    jsonschema.validate(found, formats.schema("prediction"))
    assert (found["module"], found["parameters"], found["kernels"]) == ("Model", 64 * 32 + 32, 1)
    assert found["flops"] == 2 * 8 * 64 * 32
    rows = found["trace"]
    assert [row["line"] for row in rows] == ["(itself)", "gaps", "waiting", "all"] * 2
    for device in ("h100-sxm", "a100-sxm4-80gb"):
        *parts, whole = (row for row in rows if row["device"] == device)
        assert math.isclose(sum(row["time_us"] for row in parts), whole["time_us"])
    for by in ("kind", "operator", "node"):
        assert cli(*asked, "--by", by)[0] == 0


@cases
def test_a_module_that_cannot_be_traced_is_one_line(cli, file, text, said):
    file.write_text(text)
    code, out, err = cli("trace", f"{file}:Model", "-i", "fp32[8,64]", "-d", "h100-sxm")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err
    assert "\x1b" not in err


@cases
def test_bad_input_is_one_line(cli, file, arguments, said):
    refused(cli("trace", *(a.format(file=file) for a in arguments), "-d", "h100-sxm"), said)


def test_strict_fails_where_an_operator_is_unknown(cli, file, mystery):
    file.write_text(
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.ops.perfmodel_tests.mystery(x)\n"
    )
    asked = ("trace", f"{file}:Model", "-i", "fp32[8,64]", "-d", "h100-sxm")
    code, out, _ = cli(*asked)
    assert (code, f"not known, counted by their bytes: {mystery}" in out) == (0, True)
    assert cli(*asked, "--strict")[0] == 1


def test_another_fusion_is_refused():
    with pytest.raises(UnknownName, match="fusion"):
        trace(torch.nn.Linear(2, 2), (), fuse="much")
    assert issubclass(UnknownName, PerfmodelError)
    assert all(a != b for a, b in pairwise(FUSIONS))


class Columns(torch.nn.Module):
    """A dot product of each column, along the first dimension."""

    def forward(self, left, right):
        return torch.linalg.vecdot(left, right, dim=0)


def test_dot_products_along_any_dimension_count_each_element_once():
    with torch.device("meta"):
        (item,) = trace(Columns(), (torch.zeros(6, 5), torch.zeros(6, 5))).operations
    assert item.flops == 2 * 6 * 5
    assert (item.domain, item.reduced) == ((6, 5), (0,))
